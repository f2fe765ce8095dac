/// The ladder on a CPU: counterparts of the kernels of the GPU.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "harness/repeat.hpp"
#include "ladder/rates.hpp"
#include "ladder/readings.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::ladder {
namespace {

// --- sums -------------------------------------------------------------------------------------------

/// The usual loop: each addition waits for the previous one.
float loop(const float* x, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

/// `count` partial sums side by side. At the end, the upper half is added to the lower half until one is
/// left. `count` must be a power of two.
template <std::size_t count> float accumulators(const float* x, std::size_t n) {
  float sum[count] = {};
  std::size_t i = 0;
  for (; i + count <= n; i += count)
    for (std::size_t k = 0; k < count; ++k) sum[k] += x[i + k];
  for (std::size_t k = 0; i < n; ++i, ++k) sum[k] += x[i];
  for (std::size_t half = count / 2; half > 0; half /= 2)
    for (std::size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
  return sum[0];
}
template <std::size_t count> double additions_of_accumulators(std::size_t n) {
  return static_cast<double>((n + count - 1) / count) + levels(count);
}

constexpr std::size_t side_by_side = 16, block = 4096, task_of_thread = std::size_t{1} << 16;

std::size_t parts(std::size_t n, std::size_t of) { return (n + of - 1) / of; }

/// Sums blocks and adds their sums from left to right.
float blocks(const float* x, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; i += block) sum += accumulators<side_by_side>(x + i, std::min(block, n - i));
  return sum;
}
double additions_of_blocks(std::size_t n) {
  return additions_of_accumulators<side_by_side>(block) + static_cast<double>(parts(n, block));
}

/// Several threads sum blocks and add the results to one atomic number in the order in which they finish.
float threads(const float* x, std::size_t n) {
  std::atomic<float> sum{0};
  const std::size_t tasks = parts(n, task_of_thread);
  cpu::for_each_task(tasks == 1 ? 1 : harness::several_threads(), tasks, [&](std::size_t k) {
    const std::size_t i = k * task_of_thread;
    sum.fetch_add(accumulators<side_by_side>(x + i, std::min(task_of_thread, n - i)),
                  std::memory_order_relaxed);
  });
  return sum;
}
double additions_of_threads(std::size_t n) {
  return additions_of_accumulators<side_by_side>(task_of_thread) +
         static_cast<double>(parts(n, task_of_thread));
}

std::function<void(const Task&)> to_out(float (*sum)(const float*, std::size_t)) {
  return [=](const Task& t) { *t.out = sum(t.x, t.n); };
}

template <std::size_t count> Kernel accumulators_of() {
  return {.method = "accumulators/fp32@cpu",
          .lesson = "several partial sums side by side: they are independent, and fit into a vector",
          .run = to_out(accumulators<count>),
          .setting = static_cast<int>(count),
          .promise = Promise::everywhere,
          .additions = additions_of_accumulators<count>};
}

/// A method of the library, which chooses the number of threads.
std::function<void(const Task&)> library(const std::string& name) {
  const Method& v = find(name);
  return [&v](const Task& t) { *t.out = v(Values{format_info<fp32>(), t.x, t.n}).as<fp32>(); };
}

std::vector<Kernel> sums() {
  return {
      {.method = "loop/fp32@cpu",
       .lesson = "the usual loop: each addition waits for the previous one",
       .run = to_out(loop),
       .promise = Promise::everywhere,
       .additions = in_turn,
       .reading = read_in_turn},
      accumulators_of<2>(),
      accumulators_of<4>(),
      accumulators_of<8>(),
      accumulators_of<16>(),
      accumulators_of<32>(),
      {.method = "blocks/fp32@cpu",
       .lesson =
           "sums of blocks are added: fewer additions between an element and the result, so a smaller error",
       .run = to_out(blocks),
       .promise = Promise::everywhere,
       .additions = additions_of_blocks},
      {.method = "threads/fp32@cpu",
       .lesson = "several threads, one atomic addition per block: as fast as memory, but the order of "
                 "additions is not fixed",
       .run = to_out(threads),
       .additions = additions_of_threads},
      {.method = "sum/tree/plain/fp32@cpu",
       .lesson = "samesum's tree: several threads too, but in an order that depends on n alone",
       .run = library("sum/tree/plain/fp32@cpu"),
       .promise = Promise::everywhere,
       .additions = height_of_tree,
       .reading = read_by_tree},
      {.method = "sum/exact/fp32@cpu",
       .lesson = "samesum's exact sum: rounded once, for any order of the elements",
       .run = library("sum/exact/fp32@cpu"),
       .promise = Promise::order_free,
       .reading = read_exactly}};
}

// --- demonstrations ---------------------------------------------------------------------------------

constexpr std::size_t length = std::size_t{1} << 22;

void strided_reads(const Task& t, std::size_t stride) {
  const std::size_t rows = t.n / stride;
  for (std::size_t c = 0; c < stride; ++c)
    for (std::size_t r = 0; r < rows; ++r) t.out[c * rows + r] = t.x[r * stride + c];
}

/// `steps` is a run-time argument, so that the compiler cannot turn the branch into a selection.
void branching(const float* x, std::size_t n, int steps, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    float v = x[i];
    if (v < 0.5f)
      for (int k = 0; k < steps; ++k) v = v * step_below.a + step_below.b;
    else
      for (int k = 0; k < steps; ++k) v = v * step_above.a + step_above.b;
    out[i] = v;
  }
}

/// Looks the coefficients up: the comparison, 0 or 1, is the index in a table.
void branch_free(const float* x, std::size_t n, int steps, float* out) {
  static constexpr Step table[] = {step_above, step_below};
  for (std::size_t i = 0; i < n; ++i) {
    float v = x[i];
    const Step step = table[v < 0.5f];
    for (int k = 0; k < steps; ++k) v = v * step.a + step.b;
    out[i] = v;
  }
}

template <std::size_t factor> void add_several(const Task& t) {
  std::size_t i = 0;
  for (; i + factor <= t.n; i += factor)
    for (std::size_t k = 0; k < factor; ++k) t.out[i + k] = t.x[i + k] + t.y[i + k];
  for (; i < t.n; ++i) t.out[i] = t.x[i] + t.y[i];
}

std::size_t window_begin(std::size_t i) { return i < window_radius ? 0 : i - window_radius; }
std::size_t window_end(std::size_t i, std::size_t n) { return std::min(i + window_radius + 1, n); }

/// Accumulates in memory. out[i] is volatile, as if other threads could read it.
void window_in_memory(const float* x, std::size_t n, volatile float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = -0.0f;
    for (std::size_t k = window_begin(i); k < window_end(i, n); ++k) out[i] = out[i] + x[k];
  }
}

void window_in_register(const float* x, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    float sum = -0.0f;
    for (std::size_t k = window_begin(i); k < window_end(i, n); ++k) sum += x[k];
    out[i] = sum;
  }
}

void three_passes(const float* x, std::size_t columns, float* out) {
  float most = x[0], sum = 0;
  for (std::size_t i = 1; i < columns; ++i) most = std::max(most, x[i]);
  for (std::size_t i = 0; i < columns; ++i) sum += std::exp(x[i] - most);
  for (std::size_t i = 0; i < columns; ++i) out[i] = std::exp(x[i] - most) / sum;
}

/// Milakov and Gimelshein 2018: when the maximum grows, the sum so far is rescaled.
void online(const float* x, std::size_t columns, float* out) {
  float most = x[0], sum = 1;
  for (std::size_t i = 1; i < columns; ++i) {
    if (x[i] > most) {
      sum = sum * std::exp(most - x[i]) + 1;
      most = x[i];
    } else {
      sum += std::exp(x[i] - most);
    }
  }
  for (std::size_t i = 0; i < columns; ++i) out[i] = std::exp(x[i] - most) / sum;
}

/// The fields that all demonstrations set.
Kernel demonstration(const char* what, const char* method, const char* lesson, int setting, double bytes,
                     double operations, std::function<void(const Task&)> run,
                     void (*expected)(const Task&, int)) {
  return {.method = method,
          .lesson = lesson,
          .run = std::move(run),
          .setting = setting,
          .bytes = bytes,
          .operations = operations,
          .demonstration = what,
          .length = length,
          .expected = expected};
}

template <std::size_t factor> Kernel coarsening() {
  return demonstration("coarsening", "add_several/fp32@cpu",
                       "a loop that adds several elements per iteration has more loads in flight", factor, 12,
                       1, add_several<factor>, expect_sum_of_two);
}

Kernel softmax(const char* method, const char* lesson, double bytes, double operations,
               void (*of_row)(const float*, std::size_t, float*)) {
  constexpr int columns = 32768;
  Kernel k = demonstration(
      "softmax", method, lesson, columns, bytes, operations,
      [=](const Task& t) {
        for (std::size_t i = 0; i < t.n; i += columns) of_row(t.x + i, columns, t.out + i);
      },
      expect_softmax);
  k.length = std::size_t{32} * columns;
  k.multiple = columns;
  k.tolerance = softmax_tolerance(columns);
  return k;
}

Kernel counting(const char* method, const char* lesson, int operations, void (*count)(float*, int, float)) {
  constexpr int steps = 1 << 16;
  Kernel k = demonstration(
      "ceilings", method, lesson, steps, 4, double{chains} * steps * operations,
      [=](const Task& t) {
        cpu::for_each_task(harness::several_threads(), t.n / rates::outputs,
                           [&](std::size_t i) { count(t.out + i * rates::outputs, steps, 1); });
      },
      expect_count);
  k.length = std::size_t{64} * rates::outputs;
  k.multiple = rates::outputs;
  return k;
}

}  // namespace

Kernel cpu_read() {
  Kernel k = demonstration(
      "ceilings", "read/fp32@cpu", "all elements are read and nothing is added: no sum can be faster", 1, 4,
      0,
      [place = std::shared_ptr{harness::cpu_place()}](const Task& t) {
        place->read_all(t.x, t.n * sizeof(float), t.n <= task_of_thread ? 1 : harness::several_threads());
      },
      nullptr);
  k.length = std::size_t{1} << 26;
  return k;
}

std::vector<Kernel> cpu_kernels() {
  std::vector<Kernel> all = sums();
  for (const int stride : {1, 2, 4, 8, 16, 32}) {
    all.push_back(demonstration(
        "coalescing", "strided_reads/fp32@cpu",
        "consecutive reads should be contiguous: memory is read in cache lines", stride, 8, 0,
        [=](const Task& t) { strided_reads(t, static_cast<std::size_t>(stride)); }, expect_strided));
    all.back().length = 4 * length;
    all.back().multiple = static_cast<std::size_t>(stride);
  }
  constexpr int steps = 8;
  const auto branches = [&](const char* method, const char* lesson, auto run, const float* Task::*x,
                            auto expected) {
    all.push_back(demonstration(
        "divergence", method, lesson, steps, 8, 2 * steps,
        [=](const Task& t) { run(t.*x, t.n, steps, t.out); }, expected));
  };
  branches("branching_at_random/fp32@cpu", "a mispredicted branch discards the work after it", branching,
           &Task::x, expect_steps);
  branches("branching_in_order/fp32@cpu",
           "the same branch, on elements in an order in which it is predictable", branching, &Task::y,
           expect_steps_of_partitioned);
  branches("branch_free/fp32@cpu", "a table lookup instead of a branch", branch_free, &Task::x, expect_steps);
  all.push_back(coarsening<1>());
  all.push_back(coarsening<2>());
  all.push_back(coarsening<4>());
  all.push_back(coarsening<8>());
  constexpr int width = 2 * window_radius + 1;
  const auto window = [&](const char* method, const char* lesson, double bytes, auto run) {
    all.push_back(demonstration(
        "privatisation", method, lesson, width, bytes, width, [=](const Task& t) { run(t.x, t.n, t.out); },
        expect_window));
  };
  window("window_in_memory/fp32@cpu", "a sum that lies in memory is loaded and stored for every addition",
         12 * width + 4, window_in_memory);
  window("window_in_register/fp32@cpu", "a private sum stays in a register", 4 * width + 4,
         window_in_register);
  all.push_back(softmax("three_passes/fp32@cpu", "maximum, sum and result: each row is read three times", 16,
                        6, three_passes));
  all.push_back(
      softmax("online/fp32@cpu", "maximum and sum in one pass: each row is read twice", 12, 5, online));
  all.push_back(cpu_read());
  all.push_back(
      counting("add/fp32@cpu", "additions in registers only: no kernel can add faster", 1, rates::add));
  all.push_back(counting("multiply_and_add/fp32@cpu",
                         "multiplications and additions, fused if the processor can", 2,
                         rates::multiply_and_add));
  return all;
}

}  // namespace samesum::ladder
