/// How fast is each reduction, of vectors, rows and columns, compared with other libraries and memory?
#include <algorithm>

#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/speed_table.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

// --- what is measured ------------------------------------------------------------------------------

struct Choice {
  bool full;
  std::string filter;
  int longest;  ///< log2 of elements
};

struct Shape {
  std::size_t outer, n, inner = 1;
};

const std::vector<std::string> of_vectors{"dot", "norm", "max", "argmax", "mean", "moments"};

/// Shapes that occur in common models, from short rows to rows over a vocabulary.
std::vector<Shape> many_rows() {
  return {{49152, 32}, {49152, 512}, {49152, 1024}, {49152, 4096}, {8192, 32768}, {4096, 131072}};
}

Cell cell_of(const std::string& operation, std::string_view format, Shape s, int threads) {
  return {.input = find_format(format),
          .n = s.n,
          .threads = threads,
          .operation = operation,
          .outer = s.outer,
          .inner = s.inner};
}

std::vector<Cell> cpu_cells(const Choice& choice) {
  std::vector<Cell> cells;
  const auto add = [&](const std::string& operation, std::string_view format, Shape s, int threads = 1) {
    cells.push_back(cell_of(operation, format, s, threads));
  };
  std::vector<Shape> rows{{1024, 256}, {65536, 1024}};
  std::vector<Shape> columns{{1, 512, 512}, {1, 4096, 4096}};
  if (choice.full) {
    columns.insert(columns.end(), {{1, 4096, 16384}, {1, 16384, 4096}});
    std::ranges::move(many_rows(), std::back_inserter(rows));
    rows.back().outer /= 4;  // many machines lack memory for 2 GiB of fp32 and as much output of softmax
  }
  for (const Shape& s : rows)
    for (const char* operation : {"sum", "softmax"}) {
      add(operation, "fp32", s);
      if (choice.full) add(operation, "bf16", s);
      if (choice.full) add(operation, "fp64", s);
      if (choice.full && s.outer == 65536) add(operation, "fp32", s, 2);
    }
  for (const Shape& s : columns) add("sum", "fp32", s);
  // Those on which python_speed compares with NumPy.
  for (const Shape& s :
       {Shape{100'000, 32}, Shape{10'000, 1024}, Shape{1, 1024, 10'000}, Shape{1, 100'000, 32}})
    for (const char* format : {"fp32", "fp64"}) add("sum", format, s);
  for (const std::string& operation : of_vectors) {
    // By default, only operations with targets are measured on the longest vectors.
    const bool all = choice.full || operation == "dot" || operation == "norm";
    const std::size_t longest = two_to(all ? 26 : 24);
    for (const std::size_t n : {two_to(18), longest}) {
      add(operation, "fp32", {1, n});
      if (choice.full) add(operation, "fp64", {1, n});
      if (choice.full && n == longest) add(operation, "fp32", {1, n}, 2);
    }
  }
  for (const std::size_t n : {two_to(18), two_to(24)}) add("sum_of_magnitudes", "fp32", {1, n});
  // Of the cells above, those that are also measured on awkward data.
  for (std::size_t place = 0; place < (choice.full ? 2 : 1); ++place) {
    append_awkward_data(cells, cell_of("sum", "fp32", rows[place], 1));
    append_awkward_data(cells, cell_of("sum", "fp32", columns[place], 1));
  }
  append_awkward_data(cells, cell_of("dot", "fp32", {1, two_to(18)}, 1));
  return cells;
}

std::vector<Cell> gpu_cells(const Choice& choice) {
  std::vector<Cell> cells;
  const auto add = [&](const std::string& operation, std::string_view format, Shape s) {
    cells.push_back(cell_of(operation, format, s, 0));
  };
  std::vector<std::string> formats_of_rows{"fp32", "bf16"}, formats_of_vectors{"fp32"};
  if (choice.full) {
    formats_of_rows.insert(formats_of_rows.end(), {"fp16", "fp64"});
    formats_of_vectors.insert(formats_of_vectors.end(), {"bf16", "fp64"});
  }
  for (const char* operation : {"sum", "softmax"})
    for (const std::string& format : formats_of_rows)
      for (const Shape& s : many_rows()) add(operation, format, s);
  for (const char* format : {"fp32", "bf16"}) {
    for (const char* operation : {"mean", "dot"})
      for (const Shape& s : {Shape{49152, 1024}, Shape{49152, 4096}, Shape{4096, 131072}})
        add(operation, format, s);
    add("moments", format, {49152, 1024});
    for (const char* operation : {"mean", "dot", "moments", "norm", "max", "argmax", "prod", "logsumexp"})
      add(operation, format, {49152, 32});
  }
  for (const Shape& s : {Shape{1, 4096, 131072}, Shape{1, 131072, 4096}}) {
    for (const std::string& format : formats_of_vectors) add("sum", format, s);
    for (const char* operation : {"max", "moments"}) add(operation, "fp32", s);
  }
  add("sum", "fp32", {1, two_to(28)});
  for (const std::string& operation : of_vectors)
    for (const std::string& format : formats_of_vectors) add(operation, format, {1, two_to(28)});
  std::vector<Shape> awkward{{49152, 1024}, {1, 4096, 131072}};
  if (choice.full) awkward.insert(awkward.end(), {{49152, 32}, {4096, 131072}, {1, 131072, 4096}});
  for (const Shape& s : awkward) append_awkward_data(cells, cell_of("sum", "fp32", s, 0));
  if (choice.full) append_awkward_data(cells, cell_of("sum", "bf16", {49152, 1024}, 0));
  return cells;
}

/// Whether the cell, which is for normal data, is also measured on awkward data.
bool has_data_axis(const std::vector<Cell>& cells, const Cell& normal) {
  return std::ranges::any_of(cells, [&](Cell cell) {
    const bool is_awkward = cell.data != "normal";
    cell.data = "normal";
    return is_awkward && cell == normal;
  });
}

/// Whether a method is measured by default: results in the format of the input, for 16-bit inputs in fp32, by
/// plain and exact sums, on a grid if awkward data are measured, too, and with --full by all accumulators.
/// Softmax has all its denominators. Methods that take seconds are left out.
bool is_default(const Method& m, const Cell& cell, bool on_grid, bool full) {
  if (m.is_slow && cell.elements() > two_to(24)) return false;
  if (m.has_result_per_element) return m.format->name == (cell.input->bytes == 8 ? "fp64" : "fp32");
  const bool usual = m.accumulator.empty() || m.accumulator == "plain" || m.accumulator == "exact" ||
                     (on_grid && m.accumulator == "fixed_point");
  return m.format->name == (cell.input->bytes == 2 ? "fp32" : cell.input->name) && (usual || full);
}

/// The cells for which a method of samesum is chosen.
std::vector<SpeedTask> tasks(const Choice& choice) {
  std::vector<Cell> cells = cpu_cells(choice);
  if (absent().empty()) std::ranges::move(gpu_cells(choice), std::back_inserter(cells));
  add_cells_in_graphs(cells);
  const std::vector<std::string> globs = globs_in(choice.filter);
  std::vector<bool> found(globs.size());
  std::vector<SpeedTask> all;
  for (const Cell& cell : cells) {
    SpeedTask task{cell, {}};
    const bool is_awkward = cell.data != "normal",
               is_sum_on_gpu = cell.threads == 0 && cell.operation == "sum",
               on_grid = is_awkward || has_data_axis(cells, cell) || is_sum_on_gpu;
    if (is_sum_on_gpu && !is_awkward) task.cell.grid = grid_for_normal_data;
    for (const Method& m : methods(cell.operation)) {
      if (m.backend == "reference" || !fits(m, cell) || (is_awkward && !may_depend_on_data(m))) continue;
      bool wanted = globs.empty() && is_default(m, cell, on_grid, choice.full);
      for (std::size_t i = 0; i < globs.size(); ++i)
        if (matches(globs[i], m)) wanted = found[i] = true;
      if (wanted) task.methods.push_back(&m);
    }
    if (task.methods.empty() || cell.elements() > two_to(choice.longest)) continue;
    if (cell.data == "normal") append_peers(task);
    all.push_back(task);
  }
  for (std::size_t i = 0; i < globs.size(); ++i)
    if (!found[i])
      throw UsageError{"--filter: '" + globs[i] +
                       "' matches no method; names are like dot/tree/plain/fp32@cpu or max/fp32@cuda"};
  if (all.empty()) throw UsageError{"--filter and --longest leave nothing to measure on this machine"};
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "speed_of_reductions",
      "How fast is each reduction, of vectors, rows and columns?",
      "An array has outer x n x inner elements in C order, and its middle axis is reduced: a vector if "
      "outer and inner are 1, rows if inner is 1, columns otherwise. The data are normal; exact and "
      "fixed_point are also measured on data that may take them longer: one outlier, a log-normal "
      "distribution, 60 "
      "binades and arbitrary bits; on a GPU, fixed_point sums also on a given grid, 2^-30, and calls on up "
      "to "
      "8 MiB also as a replayed CUDA graph of 20 calls, which leaves out the launches. All methods of a "
      "cell take turns, after warming up, so that a change of the machine's clock affects all alike. A time "
      "is the median of 5 rounds (--full: 11), which have random orders; +- in the table is half of high - "
      "low. Before the timing, the bits of the first and the last result are compared with those of "
      "the reference implementation (for vectors of more than 2^18 elements, on their first 2^18); on a GPU "
      "with those of the CPU. Peers promise no bits: all their results are compared with those in wider "
      "arithmetic, within 4u (sqrt(n) max|s_k| + sum|x|) for sums, where s_k are the partial sums. No method "
      "is "
      "compared with a peer whose results are wrong, and a peer that does not compute the whole call is "
      "listed with the reason.\n\n"
      "GB/s counts the input, for softmax also the output. The ceiling, read or copy, moves the same bytes "
      "and does nothing else, as McCalpin's STREAM 1995. Arrays in DRAM have 256 MiB or more.\n\n"
      "The lines below a method are its targets: speeds that it should reach, as multiples of the speed of "
      "another method or in microseconds. A missed target is not a failure. Peers and the ceiling are "
      "measured "
      "too, whatever --filter selects.",
      {"reduction", "declined"},
      "  speed_of_reductions\n"
      "  speed_of_reductions --filter 'dot/*@cpu,norm/*@cpu' --longest 20\n"
      "  speed_of_reductions --full --out build/study"};
  int longest = 40;
  study.add_option("--longest", "E", longest, "Arrays of at most 2^E elements", {0, 40});
  study.add_processes();
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<SpeedTask> all = tasks({s.full(), s.filter(), longest});
    for (const SpeedTask& task : all) s.expect(rows_of(task));
    if (const std::string gpu = gpu_description(); !gpu.empty()) s.print(gpu + "\n");
    measure_speeds(s, all);
  });
}
