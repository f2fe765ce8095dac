/// Measures sums by matrix units: errors, bits, and times in turns with tree.
#include <functional>
#include <set>

#include "harness/bench.hpp"
#include "harness/cuda.cuh"
#include "harness/dataset.hpp"
#include "harness/median.hpp"
#include "harness/text.hpp"
#include "harness/timed_row.hpp"
#include "harness/truth.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "tensor_cores/sums.cuh"
#include "tensor_cores/sums_study.hpp"

namespace samesum::tensor_cores {
namespace {

using namespace samesum::harness;

/// Without --full, the longest vector is shorter and fewer elements are compared, since one core of the CPU
/// computes what they are compared with.
constexpr std::size_t longest(bool full) { return std::size_t{1} << (full ? 26 : 24); }
constexpr std::size_t compared_elements(bool full) { return std::size_t{1} << (full ? 22 : 20); }

std::vector<UnitShape> shapes(bool full) {
  return {{49152, 32},
          {65536, 100},
          {49152, 1024},
          {8192, 4096},
          {1, 65536, 1024},
          {1, 4096, 16384},
          {1, std::size_t{1} << 20},
          {1, longest(full)}};
}
constexpr const char* data_names[] = {"normal", "uniform", "log-normal", "60 binades"};

/// All divisions of the work: the default, small and large slots and blocks, and few blocks.
constexpr UnitLaunch launches[] = {{}, {1, 4, 0}, {8, 8, 0}, {8, 4, 7}, {1, 8, 100}};

struct Task {
  const FormatInfo* format;
  const Dataset* data;
  UnitShape shape;
};

/// All combinations in which the format holds the data.
std::vector<Task> tasks(bool full) {
  std::vector<Task> all;
  for (const FormatInfo* format : {&format_info<fp16>(), &format_info<bf16>()})
    for (const char* name : data_names)
      if (const Dataset* data = datasets_matching(name).front(); data->fits(*format))
        for (const UnitShape& shape : shapes(full)) all.push_back({format, data, shape});
  return all;
}

/// Results that are compared: all, or some from the first to the last, 16 at least.
std::vector<std::size_t> compared_results(const UnitShape& s, bool full) {
  const std::size_t results = s.results(), most = std::max(compared_elements(full) / s.n, std::size_t{16});
  if (results <= most) {
    std::vector<std::size_t> all(results);
    for (std::size_t i = 0; i < results; ++i) all[i] = i;
    return all;
  }
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(i * (results - 1) / (most - 1));
  return some;
}

/// An array of generated elements on the GPU, which repeats a block of 2^20 elements if it is longer.
template <class T> class Array {
 public:
  Array(const Task& task, std::uint64_t seed, const Place& place)
      : shape_{task.shape}, place_{place}, bytes_{task.shape.results() * task.shape.n * sizeof(T)} {
    const std::span<const std::byte> block = speed_block(*task.format, *task.data, seed, bytes_ / sizeof(T));
    block_ = {reinterpret_cast<const T*>(block.data()), block.size() / sizeof(T)};
    for (std::size_t done = 0; done < bytes_; done += block.size())
      place.copy(x_.get() + done, block.data(), std::min(bytes_ - done, block.size()));
    check(gpu::enqueue(tree_, nullptr, tree_bytes_), "the size of the workspace");
    tree_workspace_ = prepared_workspace(tree_bytes_);
  }

  /// Enqueues the sums by matrix units.
  void sum(UnitLaunch launch, cudaStream_t stream) const {
    check(
        enqueue_unit_sums(reinterpret_cast<const T*>(x_.get()), shape_, reinterpret_cast<float*>(out_.get()),
                          reinterpret_cast<float*>(workspace_.get()), launch, stream),
        "sums by matrix units");
  }
  /// Enqueues the sums of the library in fp32, in the order `tree`.
  void tree(cudaStream_t stream) const {
    std::size_t bytes = tree_bytes_;
    check(gpu::enqueue(tree_, tree_workspace_.get(), bytes, stream), tree_.method->name);
  }
  /// The results of what `enqueue` enqueues.
  std::vector<float> results(const std::function<void(cudaStream_t)>& enqueue) const {
    std::vector<float> found(shape_.results(), std::numeric_limits<float>::quiet_NaN());
    place_.copy(out_.get(), found.data(), found.size() * sizeof(float));  // makes missing results wrong
    enqueue(nullptr);
    place_.finish("sums");
    place_.copy(found.data(), out_.get(), found.size() * sizeof(float));
    return found;
  }
  /// The elements of result r.
  std::vector<T> elements(std::size_t r) const {
    const UnitShape& s = shape_;
    std::vector<T> x(s.n);
    for (std::size_t i = 0; i < s.n; ++i)
      x[i] = block_[((r / s.inner * s.n + i) * s.inner + r % s.inner) % block_.size()];
    return x;
  }

 private:
  Layout layout() const {
    return shape_.inner == 1 ? Layout::rows(shape_.outer, shape_.n)
                             : Layout::axis(shape_.outer, shape_.n, shape_.inner);
  }

  UnitShape shape_;
  const Place& place_;
  std::size_t bytes_;
  std::span<const T> block_;
  std::shared_ptr<std::byte> x_ = device_memory(bytes_),
                             out_ = device_memory(shape_.results() * sizeof(float)),
                             workspace_ = device_memory(unit_workspace(shape_) * sizeof(float));
  Call tree_{.method = &find("sum/tree/plain/fp32@cuda"),
             .x = {format_info<T>(), x_.get(), bytes_ / sizeof(T)},
             .layout = layout(),
             .out = {&format_info<float>(), out_.get(), shape_.results()}};
  std::size_t tree_bytes_ = 0;
  std::shared_ptr<std::byte> tree_workspace_;
};

/// Records 20 runs in a graph, which is replayed in the default stream.
Turn in_graph(const std::string& name, const std::function<void(cudaStream_t)>& enqueue) {
  const Stream stream;
  enqueue(stream);  // loads the kernels, which cannot be done while a graph records
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < calls_in_graph; ++i) enqueue(stream);
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check(error, "cudaGraphInstantiate");
  const std::shared_ptr<CUgraphExec_st> replayed{
      made, [](cudaGraphExec_t g) { static_cast<void>(cudaGraphExecDestroy(g)); }};
  return {
      .name = name,
      .verified = std::nullopt,
      .run = [replayed](std::size_t) { check(cudaGraphLaunch(replayed.get(), nullptr), "cudaGraphLaunch"); },
      .calls = calls_in_graph};
}

/// The fields that do not depend on time.
template <class T> Json facts(const Array<T>& array, const UnitShape& shape, bool full) {
  std::set<std::vector<std::uint32_t>> distinct_bits;
  std::vector<float> results;
  for (const UnitLaunch& launch : launches) {
    const std::vector<float> found = array.results([&](cudaStream_t stream) { array.sum(launch, stream); });
    std::vector<std::uint32_t> bits;
    for (const float x : found) bits.push_back(to_bits(x));
    distinct_bits.insert(std::move(bits));
    if (results.empty()) results = found;
  }
  const std::vector<float> of_tree = array.results([&](cudaStream_t stream) { array.tree(stream); });
  const double bound = unit_sum_bound(shape.n);
  double error = 0, tree_error = 0;
  bool is_verified = true, is_within_bound = true;
  const std::vector<std::size_t> compared = compared_results(shape, full);
  for (const std::size_t r : compared) {
    const std::vector<T> x = array.elements(r);
    const Truth truth{Values{x}};
    const double magnitudes = truth.magnitudes_rounded_up();
    const auto relative = [&](float result) {
      return magnitudes > 0 ? truth.error_of(Number::of(result)).absolute / magnitudes : 0;
    };
    error = std::max(error, relative(results[r]));
    tree_error = std::max(tree_error, relative(of_tree[r]));
    is_within_bound = is_within_bound && truth.within(bound * magnitudes, Number::of(results[r]));
    is_verified = is_verified && to_bits(results[r]) == to_bits(sum_by_unit_model(std::span<const T>{x}));
  }
  return {
      {"compared", compared.size()},     {"error", error},          {"bound", bound},
      {"within_bound", is_within_bound}, {"verified", is_verified}, {"distinct_bits", distinct_bits.size()},
      {"tree_error", tree_error}};
}

/// Adds the rounds of a process, and to a new row its facts.
template <class T> void measure(Json& row, const Task& task, const Study& study) {
  const std::unique_ptr<Place> place = gpu_place();
  const Array<T> array{task, study.seed(), *place};
  if (!row.contains("error")) row.update(facts(array, task.shape, study.full()));
  const std::vector<Turn> turns{in_graph("matrix unit", [&](cudaStream_t stream) { array.sum({}, stream); }),
                                in_graph("tree", [&](cudaStream_t stream) { array.tree(stream); })};
  const std::vector<Speed> speeds = place->in_turns(turns, {.repeats = study.repeats(21)});
  add_rounds(row, speeds[0].rounds);
  add_rounds(row, speeds[1].rounds, "tree_rounds");
}

void derive_tree_times(Json& row) {
  const Interval time = median_interval(rounds_of(row, "tree_rounds"));
  row["tree_seconds"] = time.median;
  row["tree_low"] = time.low;
  row["tree_high"] = time.high;
}

std::string in_words(const UnitShape& s) {
  const std::string rows = std::to_string(s.outer) + " x " + std::to_string(s.n);
  if (s.inner > 1) return "columns " + std::to_string(s.n) + " x " + std::to_string(s.inner);
  return s.outer > 1 ? "rows " + rows : "vector " + power_or_number(s.n);
}

}  // namespace

std::size_t rows_of_sums(bool full) { return tasks(full).size(); }

void study_sums(Study& study) {
  study.print(left("sums by matrix units", 42) + right("error", 10) + right("bound", 10) +
              right("of tree", 10) + right("time", 9) + right("of tree", 9));
  for (const Task& task : tasks(study.full())) {
    const UnitShape& s = task.shape;
    const Json key = {{"kind", "unit_sum"},
                      {"input_format", task.format->name},
                      {"data", task.data->name},
                      {"outer", s.outer},
                      {"n", s.n},
                      {"inner", s.inner},
                      {"seed", study.seed()}};
    const Json row =
        study
            .rows_in_turns(
                {key},
                [&](std::vector<Json>& rows) {
                  const bool is_fp16 = task.format == &format_info<fp16>();
                  is_fp16 ? measure<fp16>(rows[0], task, study) : measure<bf16>(rows[0], task, study);
                },
                [](std::vector<Json>& rows) { derive_tree_times(rows[0]); })
            .front();
    const std::string name = std::string{task.format->name} + ", " + task.data->name + ", " + in_words(s);
    study.print(left(name, 42) + right(compact(row["error"], 9), 10) + right(compact(row["bound"], 9), 10) +
                right(compact(row["tree_error"], 9), 10) + right(duration(row["seconds"]), 9) +
                right(duration(row["tree_seconds"]), 9));
    if (row["within_bound"] == Json(false)) study.fail(name + ": an error exceeds its bound");
    if (row["verified"] == Json(false)) study.fail(name + ": the bits are not those of the definition");
    if (row["distinct_bits"] != Json(1)) study.fail(name + ": launches have different bits");
  }
  study.print("");
}

}  // namespace samesum::tensor_cores
