#include "harness/bars.hpp"

#include <algorithm>

#include "harness/names.hpp"

namespace samesum::harness {
namespace {

constexpr std::size_t any = SIZE_MAX, megabyte = 1'000'000;

enum class Shape { vector, rows, columns };

Shape shape_of(const Cell& cell) {
  return cell.inner > 1 ? Shape::columns : cell.outer > 1 ? Shape::rows : Shape::vector;
}

/// A bar: the method must reach `factor` times the speed of the fastest method that `against` matches, or
/// take at most `factor` microseconds.
struct Bar {
  std::string methods;  ///< a glob
  std::vector<std::string> inputs;
  std::vector<std::string> data, places;
  std::size_t shortest, longest;  ///< range of n
  double factor;
  std::string against;       ///< a glob; empty for microseconds. The other method reduces normal data.
  int threads = 1;           ///< the other method has as many, except `itself`
  std::string ceiling = {};  ///< a method whose speed is sufficient, whatever the factor
  Shape shape = Shape::vector;
  std::size_t least_bytes = 0;  ///< of the input
  // For operations by key:
  std::vector<std::string> keys = {};       ///< sets of keys
  std::size_t fewest = 0, most = SIZE_MAX;  ///< range of the number of keys
  bool given_grid = false;                  ///< whether the method is given a grid
};

/// A bar for an operation by key with keys that are spread or skewed. On a GPU for long arrays.
Bar by_key(const std::string& method, int threads, std::size_t fewest, std::size_t most, double factor,
           const std::string& against, bool given_grid = false) {
  Bar bar{.methods = "scatter_add/" + method,
          .inputs = {"fp32"},
          .data = {"normal"},
          .places = {"GPU", "other", "L2", "DRAM"},
          .shortest = threads == 0 ? two_to(26) : 0,
          .longest = any,
          .factor = factor,
          .against = against};
  bar.threads = threads;
  bar.keys = {"uniform", "skewed"};
  bar.fewest = fewest;
  bar.most = most;
  bar.given_grid = given_grid;
  return bar;
}

/// A bar for exact sums on a GPU: the speed on awkward data relative to that on normal data.
Bar on_awkward_data(const std::string& methods, Shape shape, std::vector<std::string> data, double factor,
                    std::vector<std::string> keys = {}) {
  Bar bar{.methods = methods,
          .inputs = {"bf16", "fp32", "fp64"},
          .data = std::move(data),
          .places = {"GPU"},
          .shortest = 0,
          .longest = any,
          .factor = factor,
          .against = "itself"};
  bar.threads = 0;
  bar.shape = shape;
  bar.least_bytes = 64 * megabyte;
  bar.keys = std::move(keys);
  return bar;
}

/// A bar on a GPU: the method may take at most `times` as long as another one on normal data.
Bar at_most(double times, const std::string& against, const std::string& methods, Shape shape,
            std::size_t shortest, std::size_t longest, bool given_grid = false) {
  Bar bar{.methods = methods,
          .inputs = {"bf16", "fp32"},
          .data = {"normal"},
          .places = {"GPU"},
          .shortest = shortest,
          .longest = longest,
          .factor = 1 / times,
          .against = against};
  bar.threads = 0;
  bar.shape = shape;
  bar.given_grid = given_grid;
  return bar;
}

/// A bar on a GPU for many rows of at most 32 elements, in microseconds.
Bar short_rows(const std::string& methods, double microseconds) {
  Bar bar = at_most(1, "", methods, Shape::rows, 0, 32);
  bar.factor = microseconds;
  return bar;
}

const std::string itself = "itself";  ///< the same method on normal data, with one thread

const std::vector<std::string> all{"fp16", "bf16", "fp32", "fp64"}, narrow{"fp16", "bf16", "fp32"},
    halves{"fp16", "bf16"}, wide{"fp32", "fp64"}, fp32_alone{"fp32"}, fp64_alone{"fp64"},
    fp32_and_bf16{"fp32", "bf16"};
const std::vector<std::string> normal{"normal"}, binades{"60 binades"},
    awkward{"60 binades", "arbitrary bits"}, spread{"outliers", "log-normal", "60 binades"};
const std::vector<std::string> l2{"L2"}, dram{"DRAM"}, caches_and_dram{"L2", "DRAM"},
    beyond_l2{"other", "DRAM"}, few{"latency"}, gpu{"GPU"};

const std::vector<Bar> bars{
    // On a CPU.
    {"sum/tree/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 2.0, "std_reduce/*"},
    {"sum/pairwise/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 2.0, "std_reduce/*"},
    {"sum/tree/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 0.6, "eigen/*"},
    {"sum/pairwise/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 0.6, "eigen/*"},
    {"sum/tree/kahan/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.5, "std_reduce/*"},
    {"sum/tree/neumaier/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.5, "std_reduce/*"},
    {"sum/exact/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.0, "std_reduce/*"},
    {"sum/tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.2, "eigen/*"},
    {"sum/pairwise/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.2, "eigen/*"},
    {"sum/tree/kahan/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.95, "eigen/*"},
    {"sum/tree/neumaier/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.95, "eigen/*"},
    {"sum/exact/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.9, "eigen/*"},
    {"sum/tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.7, itself, 2, "read"},
    {"sum/exact/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.7, itself, 2, "read"},
    {"sum/tree/plain/fp32@cpu", halves, normal, dram, 0, any, 0.8, "read"},
    {"sum/pairwise/plain/fp32@cpu", halves, normal, dram, 0, any, 0.8, "read"},
    {"sum/exact/*@cpu", wide, binades, caches_and_dram, 0, any, 0.5, itself},
    {"sum/tree/plain/fp64@cpu", fp64_alone, normal, dram, 0, any, 1.0, "eigen/*"},
    {"sum/exact/fp64@cpu", fp64_alone, normal, dram, 0, any, 0.5, "sum/tree/plain/fp64@cpu"},
    {"sum/*@cpu", all, normal, few, 1, 64, 0.75, ""},
    // On a GPU.
    {"sum/pairwise/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(22), any, 0.99, "cub/*", 0},
    {"sum/tree/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(22), any, 0.97, "cub/*", 0},
    {"sum/pairwise/plain/*@cuda", halves, normal, gpu, two_to(22), two_to(26), 1.05, "cub/*", 0},
    {"sum/tree/plain/*@cuda", halves, normal, gpu, two_to(22), two_to(26), 1.03, "cub/*", 0},
    {"sum/pairwise/plain/*@cuda", halves, normal, gpu, two_to(27), any, 1.00, "cub/*", 0},
    {"sum/tree/plain/*@cuda", halves, normal, gpu, two_to(27), any, 0.98, "cub/*", 0},
    {"sum/tree/plain/fp64@cuda", fp64_alone, normal, gpu, two_to(22), any, 0.97, "cub/*", 0},
    {"sum/pairwise/plain/*@cuda", all, normal, gpu, two_to(14), two_to(20), 1.30, "cub/run_to_run/*", 0},
    {"sum/tree/plain/*@cuda", all, normal, gpu, two_to(14), two_to(20), 1.27, "cub/run_to_run/*", 0},
    {"sum/*/plain/*@cuda", all, normal, gpu, 0, two_to(13), 0.95, "cub/*", 0},
    {"sum/*/kahan/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "sum/tree/plain/fp32@cuda", 0},
    {"sum/*/neumaier/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "sum/tree/plain/fp32@cuda",
     0},
    {"sum/*/double_word/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97,
     "sum/tree/plain/fp32@cuda", 0},
    {"sum/exact/*@cuda", narrow, normal, gpu, two_to(28), any, 1 / 1.015, "sum/tree/plain/fp32@cuda", 0},
    {"sum/exact/*@cuda", narrow, normal, gpu, two_to(24), two_to(24), 0.90, "sum/tree/plain/fp32@cuda", 0},
    {"sum/exact/*@cuda", narrow, normal, gpu, 0, two_to(16), 5.0, "", 0},
    {"sum/exact/*@cuda", wide, normal, gpu, 0, any, 1.30, "cub/gpu_to_gpu/*", 0},
    {"sum/exact/*@cuda", fp64_alone, normal, gpu, two_to(26), any, 0.90, "sum/tree/plain/fp64@cuda", 0},
    {"sum/exact/fp32@cuda", fp32_alone, awkward, gpu, two_to(24), any, 0.80, itself, 0},
    {"sum/exact/bf16@cuda", {"bf16"}, awkward, gpu, two_to(24), any, 0.60, itself, 0},
    {"sum/exact/fp16@cuda", {"fp16"}, awkward, gpu, two_to(24), any, 0.95, itself, 0},
    // Batches on a CPU, and reductions of vectors.
    {"dot/*/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.0, "eigen/*"},
    {"norm/*/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.0, "eigen/*"},
    {"sum/tree/plain/fp32@cpu", fp32_alone, normal, beyond_l2, 0, any, 1.0, "eigen/*", 1, {}, Shape::rows},
    {"sum/tree/plain/fp64@cpu", fp64_alone, normal, beyond_l2, 0, any, 1.0, "eigen/*", 1, {}, Shape::rows},
    {"sum/pairwise/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.0, "eigen/*", 1, {}, Shape::rows},
    {"sum/exact/fp32@cpu", fp32_alone, normal, beyond_l2, 0, any, 0.7, "eigen/*", 1, {}, Shape::rows},
    {"sum/exact/fp64@cpu", fp64_alone, normal, beyond_l2, 0, any, 0.7, "eigen/*", 1, {}, Shape::rows},
    {"sum/tree/plain/fp32@cpu", fp32_alone, normal, beyond_l2, 0, any, 0.5, "eigen/*", 1, {}, Shape::columns},
    {"sum/tree/plain/fp64@cpu", fp64_alone, normal, beyond_l2, 0, any, 0.5, "eigen/*", 1, {}, Shape::columns},
    {"sum/exact/fp32@cpu", fp32_alone, normal, beyond_l2, 0, any, 0.35, "eigen/*", 1, {}, Shape::columns},
    {"sum/exact/fp64@cpu", fp64_alone, normal, beyond_l2, 0, any, 0.35, "eigen/*", 1, {}, Shape::columns},
    {"softmax/tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.0, "loop/*", 1, {}, Shape::rows},
    // On a GPU.
    on_awkward_data("sum/exact/*@cuda", Shape::rows, spread, 1 / 1.5),
    on_awkward_data("sum/exact/*@cuda", Shape::columns, spread, 1 / 1.5),
    on_awkward_data("sum/fixed_point/*@cuda", Shape::rows, awkward_data(), 1 / 1.2),
    on_awkward_data("sum/fixed_point/*@cuda", Shape::columns, awkward_data(), 1 / 1.2),
    {"sum/*/plain/fp32@cuda", fp32_and_bf16, normal, gpu, 0, any, 1.0, "cub/*", 0, {}, Shape::rows},
    {"sum/*/plain/fp32@cuda",
     fp32_and_bf16,
     normal,
     gpu,
     0,
     any,
     0.9,
     "read",
     0,
     {},
     Shape::rows,
     256 * megabyte},
    {"sum/*/plain/fp32@cuda",
     fp32_alone,
     normal,
     gpu,
     0,
     any,
     0.9,
     "read",
     0,
     {},
     Shape::columns,
     256 * megabyte},
    {"dot/*/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.97, "read", 0},
    {"dot/exact/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.85, "read", 0},
    {"norm/*/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.97, "read", 0},
    {"max/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.97, "read", 0},
    {"argmax/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.97, "read", 0},
    {"mean/*/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.97, "read", 0},
    {"moments/tree/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.97, "read", 0},
    {"softmax/tree/plain/fp32@cuda", fp32_and_bf16, normal, gpu, 0, 32768, 0.9, "copy", 0, {}, Shape::rows},
    {"softmax/tree/plain/fp32@cuda", fp32_and_bf16, normal, gpu, 32769, any, 0.6, "copy", 0, {}, Shape::rows},
    // What order-free methods may cost on a GPU.
    at_most(1.05, "sum/tree/plain/fp32@cuda", "sum/exact/fp32@cuda", Shape::rows, 1024, any),
    at_most(1.05, "mean/tree/plain/fp32@cuda", "mean/exact/fp32@cuda", Shape::rows, 1024, any),
    at_most(1.05, "dot/tree/plain/fp32@cuda", "dot/exact/fp32@cuda", Shape::rows, 1024, any),
    at_most(1.5, "moments/tree/fp32@cuda", "moments/exact/fp32@cuda", Shape::rows, 0, any),
    at_most(1.3, "softmax/tree/plain/fp32@cuda", "softmax/exact/fp32@cuda", Shape::rows, 0, any),
    at_most(1.1, "sum/tree/plain/fp32@cuda", "sum/exact/fp32@cuda", Shape::columns, 0, any),
    at_most(1.1, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::rows, 0, 16384),
    at_most(2.05, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::rows, 16385, any),
    at_most(2.05, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::columns, 0, any),
    at_most(2.05, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::vector, two_to(28), any),
    at_most(1.05, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::rows, 0, any, true),
    at_most(1.05, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::columns, 0, any, true),
    at_most(1.05, "sum/tree/plain/fp32@cuda", "sum/fixed_point/fp32@cuda", Shape::vector, two_to(28), any,
            true),
    at_most(1.7, "cumsum/prefix/plain/fp32@cuda", "cumsum/fixed_point/fp32@cuda", Shape::vector, two_to(24),
            any),
    at_most(1.3, "cumsum/prefix/plain/fp32@cuda", "cumsum/fixed_point/fp32@cuda", Shape::vector, two_to(24),
            any, true),
    short_rows("sum/tree/plain/fp32@cuda", 7),
    short_rows("sum/exact/fp32@cuda", 7),
    // 1.4 times what softmax takes.
    short_rows("mean/tree/plain/fp32@cuda", 7.5),
    short_rows("dot/tree/plain/fp32@cuda", 7.5),
    short_rows("moments/tree/fp32@cuda", 7.5),
    short_rows("norm/tree/fp32@cuda", 7.5),
    short_rows("max/fp32@cuda", 7.5),
    short_rows("argmax/fp32@cuda", 7.5),
    short_rows("prod/tree/fp32@cuda", 7.5),
    short_rows("logsumexp/tree/fp32@cuda", 7.5),
    // Scans on a GPU.
    {"cumsum/prefix/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(28), any, 0.85, "copy", 0},
    on_awkward_data("cumsum/exact/*@cuda", Shape::vector, awkward_data(), 1 / 4.0),
    on_awkward_data("cumsum/fixed_point/*@cuda", Shape::vector, awkward_data(), 1 / 1.2),
    // By key on a GPU. A grid that is found costs one more pass over the elements, half of what is read.
    by_key("fixed_point/fp32@cuda", 0, 1, two_to(6) - 1, 1 / 2.0, "read", true),
    by_key("fixed_point/fp32@cuda", 0, two_to(6), two_to(13), 1 / 1.35, "read", true),
    by_key("fixed_point/fp32@cuda", 0, two_to(14), two_to(14), 1 / 1.6, "read", true),
    by_key("fixed_point/fp32@cuda", 0, 1, two_to(6) - 1, 1 / 2.5, "read"),
    by_key("fixed_point/fp32@cuda", 0, two_to(6), two_to(13), 1 / 1.85, "read"),
    by_key("fixed_point/fp32@cuda", 0, two_to(14), two_to(14), 1 / 2.1, "read"),
    by_key("fixed_point/fp32@cuda", 0, two_to(15), any, 1.0, "cub/*"),
    by_key("exact/fp32@cuda", 0, two_to(4), two_to(14), 1 / 1.6, "read"),
    on_awkward_data("scatter_add/exact/*@cuda", Shape::vector, awkward_data(), 1 / 3.0, {"uniform"}),
    on_awkward_data("scatter_add/exact/*@cuda", Shape::columns, awkward_data(), 1 / 3.0, {"uniform"}),
    on_awkward_data("scatter_add/fixed_point/*@cuda", Shape::vector, awkward_data(), 1 / 1.5, {"uniform"}),
    on_awkward_data("scatter_add/fixed_point/*@cuda", Shape::columns, awkward_data(), 1 / 1.5, {"uniform"}),
    // By key on a CPU.
    by_key("fixed_point/fp32@cpu", 1, two_to(12), two_to(12), 0.8, "loop/*"),
    by_key("fixed_point/fp32@cpu", 1, two_to(20), two_to(20), 0.8, "loop/*"),
    by_key("fixed_point/fp32@cpu", 2, two_to(12), two_to(12), 1.6, itself),
    by_key("fixed_point/fp32@cpu", 2, two_to(20), two_to(20), 1.6, itself),
};

/// The fastest method that matches a glob; given this grid, if there is one.
const SpeedRow* best(const std::vector<SpeedRow>& rows, const Cell& cell, const std::string& glob,
                     std::optional<int> grid = {}) {
  const SpeedRow* found = nullptr;
  for (const SpeedRow& r : rows)
    if (same_but_for_grid(r.cell, cell) && r.grid == grid && matches(glob, r.method) &&
        (!found || r.seconds < found->seconds))
      found = &r;
  return found;
}

double ratio(const SpeedRow& slow, const SpeedRow& fast) {
  if (!same_but_for_grid(slow.cell, fast.cell) || slow.rounds.empty() ||
      slow.rounds.size() != fast.rounds.size())
    return slow.seconds / fast.seconds;
  return ratio_of_rounds(slow.rounds, fast.rounds).median;
}

bool concerns(const Bar& bar, const SpeedRow& row) {
  const Cell& cell = row.cell;
  const auto has = [](const std::vector<std::string>& list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
  };
  return matches(bar.methods, row.method) && has(bar.inputs, cell.input->name) && has(bar.data, cell.data) &&
         has(bar.places, cell.place()) && cell.n >= bar.shortest && cell.n <= bar.longest &&
         cell.threads == bar.threads && shape_of(cell) == bar.shape &&
         cell.input_bytes() >= bar.least_bytes && cell.by_key() == !bar.keys.empty() &&
         (!cell.by_key() || has(bar.keys, cell.keys)) && cell.bins >= bar.fewest && cell.bins <= bar.most &&
         row.grid.has_value() == bar.given_grid && !cell.in_graph;
}

std::optional<Verdict> judge(const SpeedRow& row, const Bar& bar, const std::vector<SpeedRow>& rows) {
  if (bar.against.empty()) return Verdict{"us", bar.factor, row.seconds * 1e6};
  Cell other = row.cell;
  other.data = "normal";
  if (bar.against == itself) other.threads = std::min(other.threads, 1);
  const SpeedRow* opponent =
      bar.against == itself ? best(rows, other, row.method, row.grid) : best(rows, other, bar.against);
  if (!opponent) return std::nullopt;
  double factor = bar.factor;
  if (const SpeedRow* ceiling = best(rows, row.cell, bar.ceiling))
    factor = std::min(factor, 0.95 * ratio(*opponent, *ceiling));  // runs differ by about 5 percent
  const std::string unlike = other.threads < row.cell.threads ? ", one thread"
                             : other.data != row.cell.data    ? ", normal"
                                                              : "";
  return Verdict{opponent->method + unlike, factor, ratio(*opponent, row)};
}

}  // namespace

std::vector<Verdict> verdicts(const SpeedRow& row, const std::vector<SpeedRow>& measured) {
  std::vector<Verdict> all;
  for (const Bar& bar : bars)
    if (concerns(bar, row))
      if (const auto verdict = judge(row, bar, measured)) all.push_back(*verdict);
  return all;
}

}  // namespace samesum::harness
