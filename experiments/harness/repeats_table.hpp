/// Tables of how many different results a method gives when a call is repeated in several ways.
#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>

#include "harness/repeat.hpp"
#include "harness/result_arrays.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace samesum::harness {

/// A way to repeat a call on a sample: with other threads, in another schedule, and so on.
template <class Sample> struct RepeatAxis {
  const char* name;
  Promise forbids;                     ///< the weakest promise that a second result breaks
  int log2_n[2];                       ///< quick and full
  std::size_t (*runs)(const Method&);  ///< largest number of runs; 0 if the axis does not apply
  std::span<const std::byte> (*run)(const Method&, Sample&, std::size_t run);
};

/// Seconds after which no further run of many starts. Methods that promise nothing run longest.
inline double patience_for(const Method& m, std::size_t runs, bool full) {
  if (runs < 100) return std::numeric_limits<double>::infinity();
  return !full ? 0.05 : m.promise == Promise::none ? 2 : 0.2;
}

/// Prints a line for each method, which starts with name(method), and a column for each axis. `head` stands
/// above the names. key_of(method, n) returns the key of a row without its axis, make(n) a sample of n
/// elements.
template <class Sample, class Name, class KeyOf, class Make>
void print_repeats(Study& study, std::span<const RepeatAxis<Sample>> axes,
                   std::span<const Method* const> methods, std::string head, Name name, KeyOf key_of,
                   Make make) {
  constexpr std::size_t width = 9;
  for (const RepeatAxis<Sample>& axis : axes)
    head += right(std::string{axis.name}.substr(0, width - 1), width);
  study.print(head);
  std::map<std::size_t, Sample> samples;  // by length; no two axes that change a sample have one length
  for (const Method* m : methods) {
    std::string line = name(*m);
    for (const RepeatAxis<Sample>& axis : axes) {
      const std::size_t runs = axis.runs(*m), n = std::size_t{1} << axis.log2_n[study.full()];
      if (runs == 0) {
        line += right("", width);
        continue;
      }
      Json key = key_of(*m, n);
      key["axis"] = axis.name;
      const Json row = study.row(key, [&] {
        auto found = samples.find(n);
        if (found == samples.end()) found = samples.emplace(n, make(n)).first;
        DistinctResults distinct;
        repeat(runs, patience_for(*m, runs, study.full()), [&](std::size_t run) {
          distinct.add(axis.run(*m, found->second, run));
          return run;
        });
        return distinct.values(*m, axis.forbids);
      });
      line += right(row["distinct_bits"].dump() + "/" + row["runs"].dump(), width);
      if (row["broken"] && !is_peer(*m))
        study.fail(m->name + ": promises " + std::string{name_of(m->promise)} + " but gave " +
                   row["distinct_bits"].dump() + " results over " + axis.name);
    }
    study.print(line);
  }
  study.print("");
}

}  // namespace samesum::harness
