/// How many different results does each method return?
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "harness/dataset.hpp"
#include "harness/launch.hpp"
#include "harness/measure.hpp"
#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/repeat.hpp"
#include "harness/sample.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t cache_line = 64;

// --- what changes from run to run ----------------------------------------------------------------

struct Setting {
  int threads;
  std::size_t offset = 0;         ///< elements between the start of a cache line and the first element
  LaunchShape shape = {};         ///< on a GPU
  std::uint64_t permutation = 0;  ///< seed; 0: the elements in their original order
};

/// Elements in any order and at any offset in a cache line, in memory that the method can read.
class Movable {
 public:
  explicit Movable(Column column)
      : column_{std::move(column)}, memory_(column_.bytes.size() + 2 * cache_line) {}

  /// The result is valid until the next call.
  Values at(const Setting& setting, const Method& v) {
    const std::size_t before = setting.offset * column_.format->bytes;
    if (std::tuple wanted{setting.offset, setting.permutation, runs_on_gpu(v)};
        !placed_ || wanted != placed_at_) {
      write(line() + before, setting.permutation);
      placed_ = v.place({*column_.format, line(), setting.offset + column_.size()});
      placed_at_ = wanted;
    }
    const auto* first = static_cast<const std::byte*>(placed_->values.data) + before;
    return {*column_.format, first, column_.size()};
  }
  Values original() const { return column_.values(); }

 private:
  std::byte* line() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (cache_line - address % cache_line) % cache_line;
  }

  void write(std::byte* to, std::uint64_t permutation) {
    std::memcpy(to, column_.bytes.data(), column_.bytes.size());
    if (permutation == 0) return;
    with_format(*column_.format, [&]<class F>() {
      std::mt19937_64 random{permutation};
      F* x = reinterpret_cast<F*>(to);
      // The first element stays: it is the one whose softmax is compared.
      for (std::size_t i = column_.size(); i > 2; --i) std::swap(x[i - 1], x[1 + random() % (i - 1)]);
    });
  }

  Column column_;
  std::vector<std::byte> memory_;
  std::optional<Placed> placed_;
  std::tuple<std::size_t, std::uint64_t, bool> placed_at_;
};

/// The elements that an operation reduces; dot has two vectors, in the same order.
class MovableSample {
 public:
  MovableSample(const std::string& operation, const Dataset& data, const FormatInfo& format, std::size_t n,
                std::uint64_t seed)
      : x_{data.make(format, n, seed)}, index_{compared_index(operation)} {
    if (methods(operation).front().inputs == 2) y_.emplace(data.make(format, n, seed + 1));
    if (operation == "sum") truth_.emplace(x_.original());
  }

  Number answer(const Method& v, const Setting& setting) {
    const Inputs in{x_.at(setting, v), y_ ? std::optional{y_->at(setting, v)} : std::nullopt};
    if (setting.shape.blocks > 0) return sum_in_shape(v, in.x, setting.shape);
    return result_of(v, in, {.threads = setting.threads}).number[index_];
  }
  /// In which the distance between results is given: the unit in the last place of the correctly rounded
  /// sum, for other operations of the first result.
  double ulp(const Number& first) const {
    if (truth_) return truth_->ulp(*first.format);
    return with_format(*first.format, [&]<class F>() {
      const F only = first.as<F>();
      return Truth{Values{std::span{&only, 1}}}.ulp(*first.format);
    });
  }

 private:
  Movable x_;
  std::optional<Movable> y_;
  std::size_t index_;
  std::optional<Truth> truth_;
};

struct Axis {
  const char* name;
  std::size_t column;                  ///< in the table
  Promise forbids;                     ///< the weakest promise that a second result breaks
  int log2_n[2];                       ///< quick and full
  double patience[2];                  ///< seconds after which no further run starts; three always run
  std::size_t (*runs)(const Method&);  ///< largest number of runs; 0 if the axis does not apply
  Setting (*setting)(std::size_t run);
};

/// Threads and launch shapes share a column, because no method has both.
constexpr const char* columns[] = {"runs", "threads", "address", "order"};

/// Arrival order varies only if threads run side by side for long enough, so the first axis uses long arrays.
/// The other axes use many settings.
const std::vector<Axis> axes{
    {"runs",
     0,
     Promise::run_to_run,
     {22, 24},
     {0.05, 2},
     [](const Method& v) -> std::size_t { return is_sequential(v) ? 0 : 100; },
     [](std::size_t) { return Setting{several_threads()}; }},
    {"threads",
     1,
     Promise::everywhere,
     {20, 22},
     {infinity, infinity},
     [](const Method& v) {
       return runs_on_gpu(v) || is_sequential(v) ? 0 : static_cast<std::size_t>(several_threads()) + 3;
     },
     [](std::size_t run) {
       const int threads = static_cast<int>(run) + 1;
       return Setting{threads <= several_threads() ? threads : 2 * threads + 1};
     }},
    {"launch",
     1,
     Promise::everywhere,
     {20, 22},
     {infinity, infinity},
     [](const Method& v) {
       return v.backend == "cuda" && v.operation == "sum" ? std::size(launch_shapes) : 0;
     },
     [](std::size_t run) { return Setting{.threads = 0, .shape = launch_shapes[run]}; }},
    {"alignment",
     2,
     Promise::everywhere,
     {14, 20},
     {infinity, infinity},
     [](const Method& v) { return cache_line / v.format->bytes; },
     [](std::size_t run) { return Setting{.threads = several_threads(), .offset = run}; }},
    {"permutation",
     3,
     Promise::order_free,
     {14, 20},
     {infinity, infinity},
     [](const Method&) -> std::size_t { return 8; },
     [](std::size_t run) { return Setting{.threads = several_threads(), .permutation = run}; }},
};

/// There are many other operations than sum, so they have a quarter of the elements.
std::size_t length(const Axis& axis, const std::string& operation, bool full) {
  return std::size_t{1} << (axis.log2_n[full] - (operation == "sum" ? 0 : 2));
}

std::vector<Number> answers(const Method& v, const Axis& axis, MovableSample& sample, bool full) {
  return repeat(axis.runs(v), axis.patience[full],
                [&](std::size_t run) { return sample.answer(v, axis.setting(run)); });
}

// --- the study -----------------------------------------------------------------------------------

constexpr std::size_t name_width = 25, promise_width = 11, axis_width = 9, spread_width = 8, growth_width = 7;

void print_head(Study& study, const Part& part) {
  const std::string& operation = part.methods.front()->operation;
  study.print(title_prefix(operation) + part.data->name + " in " + std::string{part.format->name} +
              ": distinct results/runs (threads: launch shapes on a GPU)");
  std::string names = left("method", name_width) + left("promise", promise_width), lengths(names.size(), ' ');
  for (std::size_t column = 0; column < std::size(columns); ++column) {
    const Axis& axis = *std::ranges::find(axes, column, &Axis::column);
    names += right(columns[column], axis_width);
    lengths += right("n = " + power_or_number(length(axis, operation, study.full())), axis_width);
  }
  study.print(names + right("ulps", spread_width));
  study.print(lengths + right("apart", spread_width));
}

void measure(Study& study, const Part& part) {
  print_head(study, part);
  std::map<std::size_t, MovableSample> samples;  // by length
  for (const Method* v : part.methods) {
    std::array<std::string, std::size(columns)> cells;
    double apart = 0;
    for (const Axis& axis : axes) {
      if (axis.runs(*v) == 0) continue;
      const std::size_t n = length(axis, v->operation, study.full());
      const Json key = with_operation({{"kind", "spread"},
                                       {"method", v->name},
                                       {"promise", name_of(v->promise)},
                                       {"input_format", part.format->name},
                                       {"data", part.data->name},
                                       {"seed", study.seed()},
                                       {"n", n},
                                       {"axis", axis.name}},
                                      *v);
      const Json row = study.row(key, [&] {
        MovableSample& sample =
            samples.try_emplace(n, v->operation, *part.data, *part.format, n, study.seed()).first->second;
        const std::vector<Number> all = answers(*v, axis, sample, study.full());
        const Spread found = spread_of(all, sample.ulp(all.front()));
        return Json{{"runs", found.runs},
                    {"distinct_bits", found.distinct_bits},
                    {"spread_ulps", number_or_null(found.ulps)},
                    {"lowest", number_or_null(found.lowest)},
                    {"highest", number_or_null(found.highest)},
                    {"vs_max", number_or_null(largest_variability(all))},
                    {"broken", found.distinct_bits > 1 && v->promise >= axis.forbids}};
      });
      cells[axis.column] = row["distinct_bits"].dump() + "/" + row["runs"].dump();
      apart = std::max(apart, row["spread_ulps"].is_null() ? infinity : row["spread_ulps"].get<double>());
      if (row["broken"] && !is_peer(*v))
        study.fail(v->name + " on " + part.data->name + ": promises " + std::string{name_of(v->promise)} +
                   " but gave " + row["distinct_bits"].dump() + " results over " + axis.name);
    }
    std::string line =
        left(name_without_format(*v), name_width) + left(std::string{name_of(v->promise)}, promise_width);
    for (const std::string& cell : cells) line += right(cell, axis_width);
    study.print(line + right(compact(apart, spread_width - 1, 2), spread_width));
  }
  study.print("");
}

// --- growth with the length ------------------------------------------------------------------------

/// Plain sums of one data set in one format, for arrays of growing length.
struct Growing {
  const Dataset* data;
  const FormatInfo* format;
  std::vector<const Method*> methods;
};

bool promises_nothing(const Method& v) { return v.promise == Promise::none; }

/// Methods without a promise vary from run to run. The others vary with the order of the elements, which
/// stands for the order of arrival; on a GPU they have the bits of the CPU.
bool grows(const Method& v) {
  return v.format->bytes >= 4 && (promises_nothing(v) || (v.backend == "cpu" && v.accumulator == "plain"));
}

std::vector<Growing> growing(const std::string& data, const std::vector<const Method*>& methods) {
  std::vector<Growing> all;
  for (const Dataset* d : datasets_matching("uniform,normal")) {
    if (!data.empty() && std::ranges::count(datasets_matching(data), d) == 0) continue;
    for (const FormatInfo& format : formats) {
      Growing g{d, &format, {}};
      std::ranges::copy_if(methods, std::back_inserter(g.methods),
                           [&](const Method* v) { return v->format == &format && grows(*v); });
      if (!g.methods.empty()) all.push_back(g);
    }
  }
  return all;
}

std::vector<std::size_t> growing_lengths(bool full) {
  std::vector<std::size_t> all;
  for (int e = 8; e <= (full ? 22 : 18); e += 2) all.push_back(std::size_t{1} << e);
  return all;
}
constexpr std::uint64_t growing_seeds = 3;
std::size_t growing_runs(bool full) { return full ? 100 : 20; }

/// The largest |Vs| of each method. Methods without a promise sum the same elements repeatedly; the others
/// sum one permutation per run. A permutation is made once for all methods: that takes longer than a sum.
std::vector<Json> variabilities(const std::vector<const Method*>& methods, MovableSample& sample,
                                std::size_t runs) {
  std::vector<std::vector<Number>> answers(methods.size());
  const auto sum = [&](std::size_t i, std::uint64_t permutation) {
    answers[i].push_back(
        sample.answer(*methods[i], {.threads = several_threads(), .permutation = permutation}));
  };
  for (std::size_t i = 0; i < methods.size(); ++i)
    for (std::size_t run = 1; promises_nothing(*methods[i]) && run <= runs; ++run) sum(i, 0);
  for (std::size_t run = 1; run <= runs; ++run)
    for (std::size_t i = 0; i < methods.size(); ++i)
      if (!promises_nothing(*methods[i])) sum(i, run);
  std::vector<Json> values;
  for (const auto& of_method : answers)
    values.push_back({{"vs_max", number_or_null(largest_variability(of_method))}});
  return values;
}

void measure_growth(Study& study, const Growing& g) {
  study.print(g.data->name + " in " + std::string{g.format->name} + ": largest |Vs| of " +
              std::to_string(growing_runs(study.full())) + " runs (*: over permutations), " +
              std::to_string(growing_seeds) + " seeds");
  const std::vector<std::size_t> lengths = growing_lengths(study.full());
  std::map<const Method*, std::map<std::size_t, double>> largest;
  for (const std::size_t n : lengths)
    for (std::uint64_t seed = study.seed(); seed < study.seed() + growing_seeds; ++seed) {
      const std::size_t runs = growing_runs(study.full());
      std::vector<Json> keys;
      for (const Method* v : g.methods)
        keys.push_back({{"kind", "growth"},
                        {"method", v->name},
                        {"promise", name_of(v->promise)},
                        {"input_format", g.format->name},
                        {"data", g.data->name},
                        {"seed", seed},
                        {"n", n},
                        {"axis", promises_nothing(*v) ? "runs" : "permutation"},
                        {"runs", runs}});
      const std::vector<Json> rows = study.rows(keys, [&] {
        MovableSample sample{"sum", *g.data, *g.format, n, seed};
        return variabilities(g.methods, sample, runs);
      });
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (const Json& vs = rows[i]["vs_max"]; vs.is_number()) {
          double& most = largest[g.methods[i]][n];
          most = std::max(most, vs.get<double>());
        }
    }
  std::string head = left("n", name_width - 5);
  for (const std::size_t n : lengths) head += right(power_or_number(n), growth_width);
  study.print(head);
  for (const Method* v : g.methods) {
    std::string line = left(name_without_format(*v) + (promises_nothing(*v) ? "" : " *"), name_width - 5);
    for (const std::size_t n : lengths)
      line += right(largest[v].contains(n) ? compact(largest[v][n], 5, 1) : "-", growth_width);
    study.print(line);
  }
  study.print("");
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "spread_over_runs",
      "How many different results does each method give, and how far apart are they?",
      "Each method sums the same elements repeatedly, and the distinct bit patterns of its results are "
      "counted. The axes differ in what changes from run to run. runs: nothing (at most 100 runs, with more "
      "threads than cores). threads: the number of threads. launch: the launch shape on a GPU (through a "
      "hook for the library's tests; callers cannot choose it). alignment: the place in a cache line of 64 "
      "bytes at which the elements begin. permutation: the order of the elements (seeded permutations). The "
      "axis runs uses long arrays, because the order of arrival varies only if threads run side by side for "
      "long enough; operations other than sum have a quarter of the elements. Sequential orders use one "
      "thread, so the axes runs and threads leave them out. The "
      "distance between results is given in ulps (units in the last place) and as the relative spread |Vs|, "
      "Vs = 1 - |S / S1|, where S1 is the result of the first run (Shanmugavelu et al. 2024).\n\n"
      "The second part measures the largest |Vs| of plain fp32 and fp64 sums for growing arrays of uniform "
      "and normal data: over runs for methods that promise nothing, otherwise over permutations, which "
      "stand for orders of arrival. That paper finds that it grows with the square root of n.\n\n"
      "Exit code 1 if a method gave a second result although its promise forbids one.",
      {"spread", "growth"},
      "  spread_over_runs --filter 'atomic/*,*@peer'\n"
      "  spread_over_runs --data 'kappa*' --json\n"
      "  spread_over_runs --full --out build/study\n\nData:" +
          datasets_in_words()};
  std::string data;
  study.add_option("--data", "GLOB,…", data,
                   "Data sets (default normal,60 binades; of other\noperations normal, of prod near 1)");
  study.add_operations(rounded_operations());
  return study.run(argc, argv, [&](Study& s) {
    std::vector<Part> all;
    std::vector<Growing> longer;
    for (const std::string& operation : s.operations()) {
      const std::vector<const Method*> methods = methods_in_own_format(s.filter(), operation);
      const char* usual = operation == "sum"    ? "normal,60 binades"
                          : operation == "prod" ? "near 1"
                                                : "normal";
      std::ranges::copy(parts(datasets_matching(data.empty() ? usual : data), methods),
                        std::back_inserter(all));
      if (operation == "sum") longer = growing(data, methods);
    }
    for (const Part& part : all)
      for (const Method* v : part.methods)
        s.expect(static_cast<std::size_t>(
            std::ranges::count_if(axes, [&](const Axis& axis) { return axis.runs(*v) > 0; })));
    for (const Growing& g : longer)
      s.expect(g.methods.size() * growing_lengths(s.full()).size() * growing_seeds);
    for (const Part& part : all) measure(s, part);
    for (const Growing& g : longer) measure_growth(s, g);
  });
}
