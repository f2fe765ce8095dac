/// How fast is each reduction, of vectors, rows and columns, compared with other libraries and memory?
#include <algorithm>

#include "harness/axes.hpp"
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

// Operations on long vectors.
const std::vector<std::string> all_of_vectors{"dot", "norm", "max", "argmax", "mean", "moments"};

// Operations that are exact on any data, at a price that may depend on the format, the shape and the data.
const std::vector<std::string> exact_operations{"sum", "mean",         "sum_of_magnitudes",
                                                "dot", "squared_norm", "moments"},
    some_exact_operations{"sum", "dot", "moments"};

/// Shapes that occur in common models, from short rows to rows over a vocabulary.
std::vector<Shape> many_rows(std::size_t longest_rows) {
  return {{49152, 32}, {49152, 512}, {49152, 1024}, {49152, 4096}, {8192, 32768}, {longest_rows, 131072}};
}

/// What is measured on a CPU.
std::vector<Axes> cpu_axes() {
  const std::vector<Shape> of_a_mebi{
      {32768, 32}, {10240, 100},       {3400, 300},         {1024, 1024},       {256, 4096},
      {32, 32768}, columns(256, 4096), columns(1024, 1024), columns(16384, 64), a_vector(two_to(20))},
      some_of_a_mebi{{10240, 100}, columns(1024, 1024), a_vector(two_to(20))},
      rows{{1024, 256}, {65536, 1024}}, of_columns{columns(512, 512), columns(4096, 4096)},
      more_columns{columns(4096, 16384), columns(16384, 4096)}, short_one{a_vector(two_to(18))},
      middling{a_vector(two_to(24))}, long_one{a_vector(two_to(26))},
      of_python_speed{{100'000, 32}, {10'000, 1024}, columns(1024, 10'000), columns(100'000, 32)};
  const std::vector<std::string> sum{"sum"}, sum_and_softmax{"sum", "softmax"}, fp32{"fp32"}, fp64{"fp64"},
      wide{"fp64", "fp32"}, others{"bf16", "fp64"}, normal{"normal"};
  return {
      {exact_operations, {"fp64", "fp32", "bf16", "fp16"}, of_a_mebi, all_data(), Mode::full},
      {some_exact_operations, fp64, some_of_a_mebi, {"normal", "60 binades"}},
      {sum, fp32, rows},
      {{"softmax"}, fp32, {rows.front()}},
      {{"softmax"}, fp32, {rows.back()}, normal, Mode::full},
      // A quarter of the longest rows: many machines lack memory for 2 GiB of fp32 and as much output of
      // softmax.
      {sum_and_softmax, {"fp32", "bf16", "fp64"}, many_rows(1024), normal, Mode::full},
      {sum_and_softmax, others, rows, normal, Mode::full},
      {sum_and_softmax, fp32, {rows.back()}, normal, Mode::full, 2},
      {sum, fp32, of_columns},
      {sum, fp32, more_columns, normal, Mode::full},
      {sum, wide, of_python_speed},
      {all_of_vectors, fp32, short_one},
      {all_of_vectors, fp32, middling},
      {all_of_vectors, fp32, long_one, normal, Mode::full},
      {all_of_vectors, fp64, {a_vector(two_to(18)), a_vector(two_to(26))}, normal, Mode::full},
      {all_of_vectors, fp32, long_one, normal, Mode::full, 2},
      {{"sum_of_magnitudes"}, fp32, {a_vector(two_to(18)), a_vector(two_to(24))}},
      // Cells above, on all data.
      {sum, fp32, {rows.front(), of_columns.front()}, all_data()},
      {{"dot"}, fp32, short_one, all_data()},
      {sum, fp32, {rows.back(), of_columns.back()}, all_data(), Mode::full},
  };
}

/// What is measured on a GPU.
std::vector<Axes> gpu_axes() {
  const std::vector<Shape> of_exact_columns{columns(4096, 16384), columns(65536, 1024), columns(1048576, 64)},
      of_columns{columns(4096, 131072), columns(131072, 4096)}, long_vector{a_vector(two_to(28))};
  std::vector<Shape> of_exact{{49152, 32},  {65536, 100},  {49152, 300},        {49152, 1024},
                              {8192, 4096}, {2048, 32768}, a_vector(two_to(26))};
  of_exact.insert(of_exact.end(), of_exact_columns.begin(), of_exact_columns.end());
  const std::vector<std::string> sum{"sum"}, fp32{"fp32"}, fp64{"fp64"}, narrow{"fp32", "bf16"},
      wide{"fp64", "fp32"}, normal{"normal"};
  std::vector<Axes> all{
      {exact_operations, {"fp64", "fp32", "bf16", "fp16"}, of_exact, all_data(), Mode::full},
      {some_exact_operations,
       wide,
       {{49152, 32}, {65536, 100}, {49152, 1024}, columns(65536, 1024), a_vector(two_to(26))},
       {"normal", "outliers", "60 binades"}},
      {{"sum", "squared_norm", "moments"}, fp64, of_exact_columns},
      {{"sum", "softmax"}, narrow, many_rows(4096)},
      {{"sum", "softmax"}, {"fp16", "fp64"}, many_rows(4096), normal, Mode::full},
      {{"mean", "dot"}, narrow, {{49152, 1024}, {49152, 4096}, {4096, 131072}}},
      {{"moments"}, narrow, {{49152, 1024}}},
      {{"mean", "dot", "moments", "norm", "max", "argmax", "prod", "logsumexp"}, narrow, {{49152, 32}}},
      {{"sum", "max", "moments"}, fp32, of_columns},
      {sum, {"bf16", "fp64"}, of_columns, normal, Mode::full},
      {sum, fp32, long_vector},
      {all_of_vectors, fp32, long_vector},
      {all_of_vectors, {"bf16", "fp64"}, long_vector, normal, Mode::full},
      // Cells above, on all data.
      {sum, fp32, {{49152, 1024}, columns(4096, 131072)}, all_data()},
      {sum, fp32, {{49152, 32}, {4096, 131072}, columns(131072, 4096)}, all_data(), Mode::full},
  };
  for (Axes& axes : all) axes.threads = 0;
  return all;
}

/// Whether the cell, which is for normal data, is also measured on awkward data.
bool has_data_axis(const std::vector<Cell>& cells, const Cell& normal) {
  return std::ranges::any_of(cells, [&](const Cell& cell) {
    if (cell.data == "normal" || cell.n != normal.n || cell.operation != normal.operation) return false;
    Cell same = cell;
    same.data = "normal";
    return same == normal;
  });
}

/// Whether a method is measured by default: results in the format of the input, for 16-bit inputs in fp32, by
/// plain and exact sums, on a grid if awkward data are measured, too, and with --full by all accumulators.
/// Softmax has all its denominators. Methods that take seconds are left out, and without --full the slower
/// orders of long arrays on a CPU, which would take a third of the run.
bool is_default(const Method& m, const Cell& cell, bool on_grid, bool full) {
  if (m.is_slow && cell.elements() > two_to(24)) return false;
  if (m.has_result_per_element) return m.format->name == (cell.input->bytes == 8 ? "fp64" : "fp32");
  const bool is_fast = m.order.empty() || m.order == "tree" || m.order == "pairwise";
  if (!full && !is_fast && !cell.on_gpu() && cell.elements() > two_to(22)) return false;
  const bool usual = m.accumulator.empty() || m.accumulator == "plain" || m.accumulator == "exact" ||
                     (on_grid && m.accumulator == "fixed_point");
  return m.format->name == (cell.input->bytes == 2 ? "fp32" : cell.input->name) && (usual || full);
}

/// The cells for which a method of samesum is chosen.
std::vector<SpeedTask> tasks(const Choice& choice) {
  std::vector<Axes> axes = cpu_axes();
  if (absent().empty()) std::ranges::move(gpu_axes(), std::back_inserter(axes));
  std::vector<Cell> cells = cells_of(axes, choice.full);
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
      "fixed_point are also measured on data that may take them longer: " +
          listed(awkward_data()) + ". The axes operation (" + listed(exact_operations) +
          "), format, shape and data multiply; without --full, a part of their cells is measured. On a "
          "GPU, fixed_point sums are also measured on a given grid, 2^-30, and calls on up to " +
          std::to_string(most_bytes_in_graph / 1'000'000) +
          " MB also as a replayed CUDA graph of 20 calls, which leaves out the launches. All methods of a "
          "cell take turns, after warming up, so that a change of the machine's clock affects all alike. A "
          "time is the median of 5 rounds (--full: 11), which have random orders; +- in the table is half "
          "of high - low. Before the timing, the bits of the first and the last result are compared with "
          "those of the reference implementation (for vectors of more than 2^18 elements, on their first "
          "2^18); on a GPU with those of the CPU (on 2^22). Peers promise no bits: all their results, on a "
          "GPU those of up to 2^24 elements, are compared with those in wider arithmetic, within 4u "
          "(sqrt(n) max|s_k| + sum|x|) for sums, where s_k are the partial sums. No method is compared "
          "with a peer whose results are wrong, and a peer that does not compute the whole call is listed "
          "with the reason.\n\n"
          "GB/s counts the input, for softmax also the output. The ceiling, read or copy, moves the same "
          "bytes and does nothing else, as McCalpin's STREAM 1995. Arrays in DRAM have 256 MiB or more.\n\n"
          "The lines below a method are its targets: speeds that it should reach, as multiples of the "
          "speed of another method or in microseconds. A missed target is not a failure. Peers and the "
          "ceiling are measured too, whatever --filter selects.",
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
