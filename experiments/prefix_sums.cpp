/// How wrong, how repeatable and how fast are prefix sums, and does each have the bits of a sum?
#include <algorithm>
#include <optional>

#include "harness/dataset.hpp"
#include "harness/launch.hpp"
#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/repeats_table.hpp"
#include "harness/speed_table.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

struct Wanted {
  bool full;
  std::string data;
  std::optional<int> longest;  ///< log2 of n
};

Json key_of(const std::string& kind, const Method& m, const Part& part, std::size_t n, std::uint64_t seed) {
  return {{"kind", kind},
          {"method", m.name},
          {"promise", name_of(m.promise)},
          {"operation", m.operation},
          {"input_format", part.format->name},
          {"data", part.data->name},
          {"seed", seed},
          {"n", n}};
}

/// Generated elements, with a copy on the GPU, which is made when a method first needs it, and room for their
/// prefix sums.
class Elements {
 public:
  explicit Elements(Column x) : x_{std::move(x)}, results_(x_.bytes.size()) {}

  Values for_method(const Method& m) {
    if (!runs_on_gpu(m)) return x_.values();
    if (!on_gpu_) on_gpu_ = m.place(x_.values());
    return on_gpu_->values;
  }
  /// All prefix sums, valid until the next call.
  std::span<const std::byte> scanned(const Method& m, Options options = {}) {
    reduce(m, for_method(m), Layout::vector(x_.size()), results(m), options);
    return results_;
  }
  std::span<const std::byte> scanned_in_schedule(const Method& m, int schedule) {
    reduce_in_schedule(m, for_method(m), nullptr, Layout::vector(x_.size()), results(m), schedule);
    return results_;
  }
  const Column& column() const { return x_; }

 private:
  Results results(const Method& m) { return {m.format, results_.data(), x_.size()}; }

  Column x_;
  std::vector<std::byte> results_;
  std::optional<Placed> on_gpu_;
};

// --- errors ----------------------------------------------------------------------------------------

constexpr std::size_t most_compared = 1024, most_summed = 16;  // prefixes of one array

/// The lengths of the prefixes that are compared: all, or spread evenly but for a shift, so that they end
/// anywhere in a tile, and always the whole array.
std::vector<std::size_t> compared_prefixes(std::size_t n) {
  std::vector<std::size_t> all;
  const std::size_t step = std::max<std::size_t>(n / most_compared, 1);
  for (std::size_t first = 0; first < n; first += step)
    all.push_back(first + first / step * 40503 % step + 1);
  while (all.back() > n) all.pop_back();
  if (all.back() != n) all.push_back(n);
  return all;
}

std::vector<Truth> truths_of(const Column& x, const std::vector<std::size_t>& prefixes) {
  std::vector<Truth> all;
  Truth truth;
  std::size_t done = 0;
  for (const std::size_t n : prefixes) {
    truth.add({*x.format, x.bytes.data() + done * x.format->bytes, n - done});
    done = n;
    all.push_back(truth);
  }
  return all;
}

/// The sum with the same order and accumulator; null for peers.
const Method* sum_like(const Method& m) {
  return is_peer(m) ? nullptr : &find("sum" + m.name.substr(m.operation.size()));
}

Json error_values(const Method& m, Elements& elements, const std::vector<std::size_t>& prefixes,
                  const std::vector<Truth>& truths) {
  const std::span<const std::byte> results = elements.scanned(m);
  ErrorsOfResults errors;
  for (std::size_t k = 0; k < prefixes.size(); ++k)
    errors.add(judge(m, *elements.column().format, truths[k], number_at(m, results, prefixes[k] - 1)));
  Json values = errors.values();
  const Method* const sum = sum_like(m);
  if (!sum) return values;
  std::size_t summed = 0, same = 0;
  const Values x = elements.for_method(m);
  for (std::size_t k = 0; k < prefixes.size(); k += std::max<std::size_t>(prefixes.size() / most_summed, 1)) {
    ++summed;
    same += (*sum)(Values{*x.format, x.data, prefixes[k]}) == number_at(m, results, prefixes[k] - 1);
  }
  values["sums"] = summed;
  values["same_as_sums"] = same;
  return values;
}

/// log2 of the longest array. By default the longest are those of fp32, on a GPU uniform ones, which take the
/// least time to generate.
int longest_of(const Wanted& wanted, const Part& part, const Method& m) {
  const int most = m.is_slow ? 20 : 36;
  if (wanted.longest) return std::min(*wanted.longest, most);
  if (!wanted.full) return 18;
  const bool in_fp32 = part.format->name == "fp32";
  return std::min(most, runs_on_gpu(m) ? (in_fp32 && part.data->name == "uniform" ? 28 : 24)
                        : in_fp32      ? 24
                                       : 20);
}

std::vector<std::size_t> lengths(int longest) {
  std::vector<std::size_t> all;
  for (int e = 4; e < longest; e += 4) all.push_back(two_to(e));
  all.push_back(two_to(longest));
  return all;
}

std::vector<std::size_t> lengths_of(const Wanted& wanted, const Part& part) {
  int longest = 0;
  for (const Method* m : part.methods) longest = std::max(longest, longest_of(wanted, part, *m));
  return lengths(longest);
}

constexpr std::size_t name_width = 26, column_width = 8;

void measure_errors(Study& study, const Wanted& wanted, const Part& part) {
  std::vector<std::string> lines;
  for (const Method* m : part.methods) lines.push_back(left(name_without_format(*m), name_width));
  std::string head = left("", name_width);
  for (const std::size_t n : lengths_of(wanted, part)) {
    std::optional<Elements> elements;
    const std::vector<std::size_t> prefixes = compared_prefixes(n);
    std::vector<Truth> truths;
    head += right(power_or_number(n), column_width);
    for (std::size_t i = 0; i < part.methods.size(); ++i) {
      const Method& m = *part.methods[i];
      if (n > two_to(longest_of(wanted, part, m))) continue;
      const Json row = study.row(key_of("errors", m, part, n, study.seed()), [&] {
        if (!elements) {
          elements.emplace(part.data->make(*part.format, n, study.seed()));
          truths = truths_of(elements->column(), prefixes);
        }
        return error_values(m, *elements, prefixes, truths);
      });
      const Json& ulps = row["largest_ulps"];
      lines[i] += right(ulps.is_null() ? "inf" : compact(ulps, column_width - 1), column_width);
      if (const std::string why = complaint_about_errors(m, row); !why.empty())
        study.fail(m.name + " on " + part.data->name + ", n = " + power_or_number(n) + ": " + why);
    }
  }
  study.print(part.data->name + " in " + std::string{part.format->name} +
              ": largest error of a prefix sum in ulps");
  study.print(head);
  for (const std::string& line : lines) study.print(line);
  study.print("");
}

// --- repeats ---------------------------------------------------------------------------------------

const std::vector<RepeatAxis<Elements>> axes{
    {"runs",
     Promise::run_to_run,
     {18, 24},
     [](const Method& m) -> std::size_t { return m.is_slow ? 0 : 100; },
     [](const Method& m, Elements& x, std::size_t) { return x.scanned(m, {.threads = several_threads()}); }},
    {"threads",
     Promise::everywhere,
     {16, 20},
     [](const Method& m) -> std::size_t {
       return runs_on_gpu(m) || is_peer(m) ? 0 : static_cast<std::size_t>(several_threads());
     },
     [](const Method& m, Elements& x, std::size_t run) {
       return x.scanned(m, {.threads = static_cast<int>(run) + 1});
     }},
    {"schedule",
     Promise::everywhere,
     {18, 22},
     [](const Method& m) -> std::size_t {
       return m.backend == "cuda" && !m.is_slow ? static_cast<std::size_t>(schedules_of(m)) : 0;
     },
     [](const Method& m, Elements& x, std::size_t run) {
       return x.scanned_in_schedule(m, static_cast<int>(run));
     }},
    {"backend",
     Promise::everywhere,
     {14, 14},
     [](const Method& m) -> std::size_t { return is_peer(m) ? 0 : 2; },
     [](const Method& m, Elements& x, std::size_t run) {
       return x.scanned(run == 0 ? find_on("reference", m) : m);
     }},
};

void measure_repeats(Study& study, const Part& part) {
  study.print(part.data->name + " in " + std::string{part.format->name} + ": distinct results/runs");
  print_repeats<Elements>(
      study, axes, part.methods, left("method", name_width) + left("promise", 11),
      [](const Method& m) {
        return left(name_without_format(m), name_width) + left(std::string{name_of(m.promise)}, 11);
      },
      [&](const Method& m, std::size_t n) { return key_of("repeats", m, part, n, study.seed()); },
      [&](std::size_t n) { return Elements{part.data->make(*part.format, n, study.seed())}; });
}

// --- speed -----------------------------------------------------------------------------------------

std::vector<Cell> cells(const Wanted& wanted) {
  std::vector<Cell> all;
  for (const FormatInfo& format : formats) {
    if (format.name != "fp32" && (format.name != "fp64" || !wanted.full)) continue;
    const int longest = wanted.full ? 24 : 22;
    for (const int e : {12, 18, longest})
      all.push_back({.input = &format, .n = two_to(e), .operation = "cumsum"});
    if (format.name == "fp32")
      all.push_back({.input = &format, .n = two_to(longest), .threads = 2, .operation = "cumsum"});
    for (int e = 12; e <= 28 && absent().empty(); e += wanted.full ? 2 : 4)
      all.push_back({.input = &format,
                     .n = two_to(e),
                     .threads = 0,
                     .operation = "cumsum",
                     .grid = grid_for_normal_data});
  }
  append_awkward_data(all, {.input = find_format("fp32"), .n = two_to(18), .operation = "cumsum"});
  if (absent().empty())
    for (const char* format : {"fp32", "fp64"})
      if (wanted.full || format == std::string{"fp32"})
        append_awkward_data(
            all, {.input = find_format(format), .n = two_to(24), .threads = 0, .operation = "cumsum"});
  std::erase_if(all, [&](const Cell& c) { return c.n > two_to(wanted.longest.value_or(40)); });
  return all;
}

std::vector<SpeedTask> tasks(const Wanted& wanted, const std::vector<const Method*>& methods) {
  std::vector<SpeedTask> all;
  for (const Cell& cell : cells(wanted)) {
    SpeedTask task{cell, {}};
    for (const Method* m : methods)
      if ((cell.data == "normal" || may_depend_on_data(*m)) && !is_peer(*m) && !m->is_slow &&
          !(is_sequential(*m) && cell.threads > 1) && m->format == cell.input && fits(*m, cell) &&
          m->backend != "reference")
        task.methods.push_back(m);
    if (task.methods.empty()) continue;
    if (cell.data == "normal") append_peers(task);
    all.push_back(task);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "prefix_sums",
      "How wrong, how repeatable and how fast are prefix sums?",
      "Result i of a prefix sum is the sum of the first i + 1 elements. Errors are those of up to 1024 "
      "prefixes of each array, at places spread over it, and of the whole array: distances from the exact "
      "sums, which come from integer buckets, and shares of the bound for a sum of so many elements "
      "(Higham, Accuracy and Stability of Numerical Algorithms, 2002, eq. 4.6, and the accumulators' own). "
      "Up to 16 of these prefixes are also summed on their own by the same order and accumulator: the bits "
      "must be those of the prefix sum. WG21 P4229R0 calls this consistency.\n\n"
      "All results of repeated calls are compared bit by bit. The axes differ in what changes: nothing, "
      "the number of threads, the schedule on a GPU (through a hook for the library's tests), or the "
      "backend, which is then the reference implementation in one of two runs.\n\n"
      "Speeds are measured in turns, as by speed_of_reductions, on normal data, exact and fixed_point also "
      "on other data: " +
          listed(awkward_data()) +
          ". GB/s counts bytes read and written; the ceiling is a copy. Peers are std::inclusive_scan and "
          "std::partial_sum, on a GPU DeviceScan of CUB. Exit code 1 if an error exceeds its bound, an "
          "exact result is not correctly rounded, a prefix does not have the bits of its sum, or a promise "
          "is broken.",
      {"errors", "repeats", "reduction", "declined"},
      "  prefix_sums\n"
      "  prefix_sums --filter 'prefix/*/fp32@cpu' --longest 12\n"
      "  prefix_sums --full --out build/study\n\nData:" +
          datasets_in_words()};
  Wanted wanted{};
  study.add_option("--data", "GLOB,…", wanted.data, "Data sets of the errors (default uniform,normal)");
  study.add_option("--longest", "E", wanted.longest, "Arrays of at most 2^E elements, for errors and\nspeeds",
                   {4, 36});
  study.add_processes();
  return study.run(argc, argv, [&](Study& s) {
    wanted.full = s.full();
    const std::vector<const Method*> methods = methods_in_own_format(s.filter(), "cumsum");
    const std::vector<Part> of_errors =
        parts(datasets_matching(wanted.data.empty() ? "uniform,normal" : wanted.data), methods);
    const std::vector<Part> of_repeats = parts(datasets_matching("normal"), methods);
    const std::vector<SpeedTask> of_speeds = tasks(wanted, methods);
    for (const Part& part : of_errors)
      for (const Method* m : part.methods) s.expect(lengths(longest_of(wanted, part, *m)).size());
    for (const Part& part : of_repeats)
      for (const Method* m : part.methods)
        s.expect(static_cast<std::size_t>(
            std::ranges::count_if(axes, [&](const auto& axis) { return axis.runs(*m) > 0; })));
    for (const SpeedTask& task : of_speeds) s.expect(rows_of(task));
    for (const Part& part : of_errors) measure_errors(s, wanted, part);
    for (const Part& part : of_repeats) measure_repeats(s, part);
    measure_speeds(s, of_speeds);
  });
}
