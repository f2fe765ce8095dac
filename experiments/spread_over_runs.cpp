/// How many different answers does each variant give?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <thread>

#include "harness/commands.hpp"
#include "harness/dataset.hpp"
#include "harness/peers.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t cache_line = 64;

/// The same elements at any place in a cache line, where a variant can read them.
class Sample {
 public:
  Sample(const Dataset& data, const FormatInfo& format, std::size_t n, std::uint64_t seed)
      : column_{data.make(format, n, seed)},
        truth_{column_.values()},
        memory_(column_.bytes.size() + 2 * cache_line) {}

  /// The elements, which begin so many of them after the start of a line. Valid until the next call.
  Values at(std::size_t offset, const Variant& v) {
    const std::size_t before = offset * column_.format->bytes;
    if (std::pair wanted{offset, v.move}; !placed_ || wanted != placed_at_) {
      std::memcpy(line() + before, column_.bytes.data(), column_.bytes.size());
      placed_ = v.place({*column_.format, line(), offset + column_.size()});
      placed_at_ = wanted;
    }
    const auto* first = static_cast<const std::byte*>(placed_->values.data) + before;
    return {*column_.format, first, column_.size()};
  }
  double ulp() const { return truth_.ulp(*column_.format); }

 private:
  std::byte* line() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (cache_line - address % cache_line) % cache_line;
  }

  Column column_;
  Truth truth_;
  std::vector<std::byte> memory_;
  std::optional<Placed> placed_;
  std::pair<std::size_t, decltype(Variant::move)> placed_at_;
};

// --- what changes from run to run ----------------------------------------------------------------

struct Setting {
  std::size_t offset;
  int threads;
};

/// More than there are cores for, so that they get in each other's way.
int several_threads() { return std::max(4, static_cast<int>(std::thread::hardware_concurrency())); }

struct Axis {
  const char* name;
  Promise forbids;                      ///< the least promise that a second answer breaks
  int log2_n[2];                        ///< quick and full
  double patience[2];                   ///< in seconds: no run is begun after them, but for the first three
  std::size_t (*runs)(const Variant&);  ///< at most; 0 where there is no such axis
  Setting (*setting)(std::size_t run);
};

/// Arrival order varies where threads work side by side for long enough: the first axis needs long arrays.
/// The others need many settings.
const std::vector<Axis> axes{
    {"runs",
     Promise::run_to_run,
     {22, 24},
     {0.15, 2},
     [](const Variant&) -> std::size_t { return 100; },
     [](std::size_t) {
       return Setting{0, several_threads()};
     }},
    {"threads",
     Promise::everywhere,
     {20, 22},
     {infinity, infinity},
     [](const Variant& v) { return v.move ? 0 : static_cast<std::size_t>(several_threads()) + 3; },
     [](std::size_t run) {
       const int threads = static_cast<int>(run) + 1;
       return Setting{0, threads <= several_threads() ? threads : 2 * threads + 1};
     }},
    {"alignment",
     Promise::everywhere,
     {16, 20},
     {infinity, infinity},
     [](const Variant& v) { return cache_line / v.format->bytes; },
     [](std::size_t run) {
       return Setting{run, several_threads()};
     }},
};

std::size_t length(const Axis& axis, bool full) { return std::size_t{1} << axis.log2_n[full]; }

std::vector<Number> answers(const Variant& v, const Axis& axis, Sample& sample, bool full) {
  using Clock = std::chrono::steady_clock;
  std::vector<Number> all;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (all.size() < axis.runs(v) && (all.size() < 3 || seconds() < axis.patience[full])) {
    const Setting setting = axis.setting(all.size());
    all.push_back(v(sample.at(setting.offset, v), {.threads = setting.threads}));
  }
  return all;
}

// --- the study -----------------------------------------------------------------------------------

constexpr std::size_t name_width = 25, promise_width = 11, axis_width = 11, spread_width = 9;

void print_head(Study& study, const Part& part) {
  study.print(part.data->name + " in " + std::string{part.format->name} +
              ": different answers of so many runs");
  std::string names = left("method", name_width) + left("promise", promise_width), lengths(names.size(), ' ');
  for (const Axis& axis : axes) {
    names += right(axis.name, axis_width);
    lengths += right("n = " + power_or_number(length(axis, study.full())), axis_width);
  }
  study.print(names + right("ulps", spread_width));
  study.print(lengths + right("apart", spread_width));
}

void measure(Study& study, const Part& part) {
  print_head(study, part);
  std::map<std::size_t, Sample> samples;  // by length
  for (const Variant* v : part.methods) {
    std::string line =
        left(name_without_format(*v), name_width) + left(std::string{name_of(v->promise)}, promise_width);
    double apart = 0;
    for (const Axis& axis : axes) {
      if (axis.runs(*v) == 0) {
        line += right("", axis_width);
        continue;
      }
      const std::size_t n = length(axis, study.full());
      const Json key = {{"kind", "spread"},
                        {"method", v->name},
                        {"promise", name_of(v->promise)},
                        {"input_format", part.format->name},
                        {"data", part.data->name},
                        {"seed", study.seed()},
                        {"n", n},
                        {"axis", axis.name}};
      const Json row = study.row(key, [&] {
        Sample& sample = samples.try_emplace(n, *part.data, *part.format, n, study.seed()).first->second;
        const Spread found = spread_of(answers(*v, axis, sample, study.full()), sample.ulp());
        return Json{{"runs", found.runs},
                    {"distinct_bits", found.distinct_bits},
                    {"spread_ulps", number_or_null(found.ulps)},
                    {"lowest", number_or_null(found.lowest)},
                    {"highest", number_or_null(found.highest)},
                    {"broken", found.distinct_bits > 1 && v->promise >= axis.forbids}};
      });
      line += right(row["distinct_bits"].dump() + "/" + row["runs"].dump(), axis_width);
      apart = std::max(apart, row["spread_ulps"].is_null() ? infinity : row["spread_ulps"].get<double>());
      if (row["broken"] && !is_peer(*v))
        study.fail(v->name + " on " + part.data->name + ": promises " + std::string{name_of(v->promise)} +
                   " but gave " + row["distinct_bits"].dump() + " answers over " + axis.name);
    }
    study.print(line + right(compact(apart, 8), spread_width));
  }
  study.print("");
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "spread_over_runs",
      "How many different answers does each variant give?",
      "Each method sums the same elements again and again, and the different bit patterns among its "
      "answers are counted, as by Shanmugavelu et al. 2024. From run to run nothing changes (axis "
      "runs: at most 100, with more threads than cores), or the number of threads, or where in a cache "
      "line of 64 bytes the elements begin. The axis runs has long arrays, since arrival order varies "
      "where threads work side by side for long enough.\n\n"
      "Exit code 1 if a method gave a second answer where its promise forbids one.",
      {"spread"},
      "  spread_over_runs --filter 'atomic/*,*@peer'\n"
      "  spread_over_runs --data 'kappa*' --json\n"
      "  spread_over_runs --full --out build/study\n\nData:" +
          datasets_in_words()};
  std::string data = "normal,60 binades";
  study.app().add_option("--data", data, "Which (default normal,60 binades)")->type_name("GLOB,…");
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Part> all = parts(datasets_matching(data), variants_in_own_format(s.filter()));
    for (const Part& part : all)
      for (const Variant* v : part.methods)
        s.expect(static_cast<std::size_t>(
            std::ranges::count_if(axes, [&](const Axis& axis) { return axis.runs(*v) > 0; })));
    for (const Part& part : all) measure(s, part);
  });
}
