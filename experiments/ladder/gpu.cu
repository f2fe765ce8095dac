/// The ladder on a GPU: the list of kernels with their properties.
#include <algorithm>

#include "harness/cuda.cuh"
#include "ladder/01_interleaved.cuh"
#include "ladder/02_modulo.cuh"
#include "ladder/03_strided_index.cuh"
#include "ladder/04_sequential.cuh"
#include "ladder/05_shared.cuh"
#include "ladder/06_segmented.cuh"
#include "ladder/07_coarsened.cuh"
#include "ladder/08_shuffled.cuh"
#include "ladder/09_vectors.cuh"
#include "ladder/ceilings.cuh"
#include "ladder/coalescing.cuh"
#include "ladder/divergence.cuh"
#include "ladder/readings.hpp"
#include "ladder/sliding_window.cuh"
#include "ladder/softmax.cuh"
#include "ladder/vector_addition.cuh"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::ladder {
namespace {

using harness::check;

constexpr std::size_t rounded_up_quotient(std::size_t n, std::size_t by) { return (n + by - 1) / by; }

unsigned blocks_of(std::size_t n, std::size_t by) {
  return static_cast<unsigned>(rounded_up_quotient(n, by));
}

// --- sums -------------------------------------------------------------------------------------------

/// Launches one block of 1024 threads, which sums a copy of the input.
auto one_block(void (*kernel)(const float*, float*, int, float*)) {
  return [=](const Task& t) { kernel<<<1, 1024>>>(t.x, t.scratch, static_cast<int>(t.n), t.out); };
}

/// Launches blocks that each sum `elements` elements and add the result to *out.
template <std::size_t elements>
auto many_blocks(void (*kernel)(const float*, std::size_t, float*), int threads) {
  return [=](const Task& t) {
    check(cudaMemsetAsync(t.out, 0, sizeof(float)), "cudaMemsetAsync");
    kernel<<<blocks_of(t.n, elements), threads>>>(t.x, t.n, t.out);
  };
}
template <std::size_t elements> double blocks(std::size_t n) {
  return static_cast<double>(rounded_up_quotient(n, elements));
}
/// Additions on the longest path: `within` in a block, then one per block to *out, which is 0 at first.
template <std::size_t elements, int within> double additions(std::size_t n) {
  return within + blocks<elements>(n);
}

template <int factor> Kernel coarsened_by() {
  constexpr std::size_t elements = std::size_t{2} * factor * threads_of_block;
  return {.method = "coarsened/fp32@cuda",
          .lesson =
              "each thread first adds 2N elements (N is the coarsening factor), then the block combines its "
              "threads' sums",
          .run = many_blocks<elements>(coarsened<factor>, threads_of_block),
          .setting = factor,
          .additions = additions<elements, 2 * factor - 1 + 8>,
          .atomics = blocks<elements>};
}

/// A method of the library, with its own workspace.
auto library(const std::string& name) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const std::shared_ptr<std::byte> workspace = harness::prepared_workspace(bytes);
  return [&m = find(name), workspace](const Task& t) {
    gpu::Launch launch{.call = normalised({.method = &m,
                                           .x = {format_info<fp32>(), t.x, t.n},
                                           .layout = Layout::vector(t.n),
                                           .out = {&format_info<fp32>(), t.out, 1}}),
                       .workspace = workspace.get(),
                       .bytes = bytes};
    harness::start(launch);
  };
}

std::vector<Kernel> sums() {
  constexpr std::size_t coarse = 32 * threads_of_block;  // elements per block with a factor of 16
  return {
      {.method = "interleaved/fp32@cuda",
       .lesson = "one block, neighbours first: in each step fewer threads of a warp add, and the others wait",
       .run = one_block(interleaved),
       .promise = Promise::everywhere,
       .most = most_of_block,
       .additions = levels,
       .reading = read_by_doubling},
      {.method = "modulo/fp32@cuda",
       .lesson =
           "one thread per element: half of them never add, and a remainder costs more than an addition",
       .run = one_block(modulo),
       .promise = Promise::everywhere,
       .most = most_of_block,
       .additions = levels,
       .reading = read_by_doubling},
      {.method = "strided_index/fp32@cuda",
       .lesson = "the same tree with consecutive threads active: no divergence, but scattered reads",
       .run = one_block(strided_index),
       .promise = Promise::everywhere,
       .most = most_of_block,
       .additions = levels,
       .reading = read_by_doubling},
      {.method = "sequential/fp32@cuda",
       .lesson = "upper half onto lower half: active threads are consecutive, and so are their elements",
       .run = one_block(sequential),
       .promise = Promise::everywhere,
       .most = most_of_block,
       .additions = levels_of_halves,
       .reading = read_by_halves},
      {.method = "shared/fp32@cuda",
       .lesson = "shared memory holds what a block reads again; global memory is read once",
       .run = [](const Task& t) { shared<<<1, 1024>>>(t.x, t.n, t.out); },
       .promise = Promise::everywhere,
       .most = most_of_block,
       .additions = levels_of_halves,
       .reading = read_by_halves},
      {.method = "segmented/fp32@cuda",
       .lesson = "many blocks, each with one atomic addition: handles any length and uses the whole GPU, but "
                 "the order of additions is not fixed",
       .run = many_blocks<2048>(segmented, 1024),
       .additions = additions<2048, 11>,
       .atomics = blocks<2048>},
      coarsened_by<1>(),
      coarsened_by<2>(),
      coarsened_by<4>(),
      coarsened_by<8>(),
      coarsened_by<16>(),
      coarsened_by<32>(),
      {.method = "shuffled/fp32@cuda",
       .lesson = "a warp exchanges registers: no shared memory, and one barrier per block",
       .run = many_blocks<coarse>(shuffled, threads_of_block),
       .setting = 16,
       .additions = additions<coarse, 31 + 5 + 5>,
       .atomics = blocks<coarse>},
      {.method = "vectors/fp32@cuda",
       .lesson = "loads of 16 bytes, eight of them in flight per thread, keep the memory busy",
       .run = many_blocks<coarse>(vectors, threads_of_block),
       .setting = 16,
       .additions = additions<coarse, 2 + 8 + 1 + 5 + 5>,
       .atomics = blocks<coarse>},
      {.method = "sum/tree/plain/fp32@cuda",
       .lesson = "samesum's tree: as fast, in an order that depends on n alone, so the same bits everywhere",
       .run = library("sum/tree/plain/fp32@cuda"),
       .promise = Promise::everywhere,
       .additions = height_of_tree,
       .reading = read_by_tree},
      {.method = "sum/exact/fp32@cuda",
       .lesson = "samesum's exact sum: rounded once, for any order of the elements",
       .run = library("sum/exact/fp32@cuda"),
       .promise = Promise::order_free,
       .reading = read_exactly},
  };
}

// --- demonstrations ---------------------------------------------------------------------------------

constexpr std::size_t length = std::size_t{1} << 26;

double occupancy(const void* kernel, int threads) {
  int blocks = 0, room = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0),
        "cudaOccupancyMaxActiveBlocks");
  check(gpu::look_up(cudaDevAttrMaxThreadsPerMultiProcessor, room), "cudaDeviceGetAttribute");
  return static_cast<double>(blocks * threads) / room;
}

void demonstrate_coalescing(std::vector<Kernel>& all) {
  for (const int stride : {1, 2, 4, 8, 16, 32})
    all.push_back(
        {.method = "strided_reads/fp32@cuda",
         .lesson = "the reads of a warp should be contiguous: memory is read in sectors of 32 bytes",
         .run =
             [=](const Task& t) {
               const dim3 grid{blocks_of(t.n / static_cast<std::size_t>(stride), 256),
                               static_cast<unsigned>(stride)};
               strided_reads<<<grid, 256>>>(t.x, t.n, t.out);
             },
         .setting = stride,
         .bytes = 8,
         .operations = 0,
         .demonstration = "coalescing",
         .length = length,
         .multiple = static_cast<std::size_t>(stride),
         .expected = expect_strided});
}

void demonstrate_occupancy(std::vector<Kernel>& all) {
  int grid = 0, suggested = 0;
  check(cudaOccupancyMaxPotentialBlockSize(&grid, &suggested, add_vectors),
        "cudaOccupancyMaxPotentialBlockSize");
  for (const int threads : {32, 64, 128, 256, 512, 768, 1024})
    all.push_back({.method = "add_vectors/fp32@cuda",
                   .lesson = "with small blocks, a multiprocessor runs fewer threads than it has room for",
                   .run =
                       [=](const Task& t) {
                         add_vectors<<<blocks_of(t.n, static_cast<std::size_t>(threads)), threads>>>(
                             t.x, t.y, t.n, t.out);
                       },
                   .setting = threads,
                   .bytes = 12,
                   .demonstration = "occupancy",
                   .length = length,
                   .expected = expect_sum_of_two,
                   .occupancy = occupancy(reinterpret_cast<const void*>(add_vectors), threads),
                   .suggested = threads == suggested});
}

void demonstrate_divergence(std::vector<Kernel>& all) {
  constexpr int steps = 64;
  const auto add = [&](const char* method, const char* lesson, auto kernel, const float* Task::*x,
                       auto expected) {
    all.push_back(
        {.method = method,
         .lesson = lesson,
         .run = [=](const Task& t) { kernel<<<blocks_of(t.n, 256), 256>>>(t.*x, t.n, steps, t.out); },
         .setting = steps,
         .bytes = 8,
         .operations = 2 * steps,
         .demonstration = "divergence",
         .length = length,
         .expected = expected});
  };
  add("branching_at_random/fp32@cuda", "if the threads of a warp disagree, it executes both branches",
      branching, &Task::x, expect_steps);
  add("branching_by_warp/fp32@cuda",
      "the same branch, on elements in an order in which the threads of a warp agree", branching, &Task::y,
      expect_steps_of_partitioned);
  add("branch_free/fp32@cuda", "selects coefficients instead of branching", branch_free, &Task::x,
      expect_steps);
}

template <int factor> void coarsen(std::vector<Kernel>& all) {
  all.push_back({.method = "add_several/fp32@cuda",
                 .lesson = "several elements per thread: more loads in flight, and fewer blocks to launch",
                 .run =
                     [](const Task& t) {
                       add_several<factor><<<blocks_of(t.n, 256 * factor), 256>>>(t.x, t.y, t.n, t.out);
                     },
                 .setting = factor,
                 .bytes = 12,
                 .demonstration = "coarsening",
                 .length = length,
                 .expected = expect_sum_of_two});
}

void demonstrate_privatisation(std::vector<Kernel>& all) {
  const auto add = [&](const char* method, const char* lesson, auto kernel, double bytes) {
    all.push_back({.method = method,
                   .lesson = lesson,
                   .run = [=](const Task& t) { kernel<<<blocks_of(t.n, 256), 256>>>(t.x, t.n, t.out); },
                   .setting = 2 * window_radius + 1,
                   .bytes = bytes,
                   .operations = 2 * window_radius + 1,
                   .demonstration = "privatisation",
                   .length = length,
                   .expected = expect_window});
  };
  constexpr int width = 2 * window_radius + 1;
  add("window_in_memory/fp32@cuda", "a sum that lies in memory is loaded and stored for every addition",
      window_in_memory, 12 * width + 4);
  add("window_in_register/fp32@cuda", "a private sum stays in a register", window_in_register, 4 * width + 4);
  add("window_in_tile/fp32@cuda",
      "a private sum, and elements that neighbouring threads share stay in shared memory",
      window_in_tile<256>, 8);
}

void demonstrate_softmax(std::vector<Kernel>& all) {
  constexpr int columns = 32768;
  const auto add = [&](const char* method, const char* lesson, auto kernel, double bytes, double operations) {
    all.push_back({.method = method,
                   .lesson = lesson,
                   .run =
                       [=](const Task& t) {
                         kernel<<<blocks_of(t.n, columns), softmax_threads>>>(t.x, columns, t.out);
                       },
                   .setting = columns,
                   .bytes = bytes,
                   .operations = operations,
                   .demonstration = "softmax",
                   .length = std::size_t{4096} * columns,
                   .multiple = columns,
                   .expected = expect_softmax,
                   .tolerance = softmax_tolerance(columns / softmax_threads + 9)});
  };
  add("three_passes/fp32@cuda", "maximum, sum and result: each row is read three times", three_passes, 16, 6);
  add("online/fp32@cuda", "maximum and sum in one pass: each row is read twice", online, 12, 5);
}

template <bool fused> Kernel counting(const char* method, const char* lesson) {
  constexpr int steps = 4096;
  return {.method = method,
          .lesson = lesson,
          .run = [](const Task& t) { count_up<fused><<<blocks_of(t.n, 256), 256>>>(t.n, steps, 1, t.out); },
          .setting = steps,
          .bytes = 4,
          .operations = double{chains} * steps * (fused ? 2 : 1),
          .demonstration = "ceilings",
          .length = std::size_t{1} << 20,
          .expected = expect_count};
}

}  // namespace

/// Marks the start of a kernel. The reader of profiles finds it by its name.
__global__ void begin_of_kernel() {}

/// Reads in the stream of the place, whose events would not wait for another stream.
Kernel gpu_read(const std::shared_ptr<const harness::Place>& place) {
  return {.method = "read/fp32@cuda",
          .lesson = "all elements are read and nothing is added: no sum can be faster",
          .run = [place](const Task& t) { place->read_all(t.x, t.n * sizeof(float), 1); },
          .operations = 0,
          .demonstration = "ceilings",
          .length = std::size_t{1} << 28};
}

std::vector<Kernel> gpu_kernels(const std::shared_ptr<const harness::Place>& place) {
  std::vector<Kernel> all = sums();
  demonstrate_coalescing(all);
  demonstrate_occupancy(all);
  demonstrate_divergence(all);
  coarsen<1>(all);
  coarsen<2>(all);
  coarsen<4>(all);
  coarsen<8>(all);
  demonstrate_privatisation(all);
  demonstrate_softmax(all);
  all.push_back(gpu_read(place));
  all.push_back(counting<false>("add/fp32@cuda", "additions in registers only: no kernel can add faster"));
  all.push_back(
      counting<true>("multiply_and_add/fp32@cuda", "fused multiply-adds: two operations per instruction"));
  return all;
}

void gpu_mark() {
  begin_of_kernel<<<1, 1>>>();
  check(cudaGetLastError(), "begin_of_kernel");
}

}  // namespace samesum::ladder
