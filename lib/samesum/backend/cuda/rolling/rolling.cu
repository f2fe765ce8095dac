/// Rolling methods on a GPU: a thread merges the states of a window, of elements and of aligned groups of
/// them. Groups of one level are merged into those of the next, so that a window of w elements needs about
/// 14·log8(w) states, and no result depends on another one.
#include <algorithm>
#include <new>

#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/backend/cuda/rolling/states.cuh"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

/// The elements of a call, and where its results go.
struct RollingData {
  const void* x;
  std::size_t format, out_format;
  Layout layout;
  void* out;
  std::size_t row_stride;

  /// Element j of the vector (o, i).
  __device__ double element(std::size_t o, std::size_t j, std::size_t i) const {
    const std::size_t at = layout.first(o) + j * layout.stride + i;
    double x = 0;
    visit_format(format, [&]<class T>() { x = widen(static_cast<const T*>(this->x)[at]); });
    return x;
  }
};

/// Item `index` of a batch with n items for each vector; neighbouring threads have neighbouring items.
struct BatchItem {
  std::size_t o, k, i;
  __device__ BatchItem(std::size_t index, std::size_t n, std::size_t inner)
      : o{index / (n * inner)}, k{index / inner % n}, i{index % inner} {}
};

template <class State> constexpr int rolling_threads = State::is_long ? 32 : 128;
constexpr std::size_t fan_out = 8;  ///< groups of a level in one of the next
__device__ std::size_t rolling_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

/// The state of a thread. A long one is in shared memory, since the driver reserves local memory for as many
/// threads as fit a GPU: half a gigabyte for variances of fp64.
template <class State> class StateOfThread {
 public:
  struct Shared {
    alignas(State) unsigned char bytes[State::is_long ? sizeof(State) * rolling_threads<State> : 1];
  };
  __device__ State& in(Shared& shared) {
    if constexpr (State::is_long)
      return *new (shared.bytes + sizeof(State) * threadIdx.x) State;
    else
      return state_;
  }

 private:
  struct None {};
  [[no_unique_address]] std::conditional_t<State::is_long, None, State> state_;
};

/// The states of aligned groups. Level k has those of State::base·fan_out^k elements, all of which exist, for
/// each vector.
template <class State> struct Groups {
  static constexpr int most = 13;  ///< levels of windows of fewer than 2^39 elements
  State* level[most];
  std::size_t count[most];  ///< groups of a vector
  int levels = 0;

  /// Plans the groups that may lie in a window. Returns their number.
  std::size_t plan(std::size_t n, std::size_t window, std::size_t vectors, State* memory) {
    std::size_t all = 0;
    for (std::size_t size = State::base; levels < most && size <= std::min(n, window); size *= fan_out) {
      level[levels] = memory == nullptr ? nullptr : memory + all;
      count[levels] = n / size;
      all += count[levels++] * vectors;
    }
    return all;
  }
  __device__ const State& at(int k, std::size_t o, std::size_t j, std::size_t i, std::size_t inner) const {
    return level[k][(o * count[k] + j) * inner + i];
  }
};

/// Merges the elements from `first` up to `end` of the vector (o, i) into a fresh state.
template <class State>
__device__ void merge_window(State& state, const RollingTask& task, const RollingData& data,
                             const Groups<State>& groups, std::size_t o, std::size_t i, std::size_t first,
                             std::size_t end) {
  const std::size_t whole = groups.levels > 0 ? State::base : end + 1;  // no window has a group of end + 1
  for (; first < end && first % whole != 0; ++first) state.add(data.element(o, first, i), task);
  for (; first < end && end % whole != 0; --end) state.add(data.element(o, end - 1, i), task);
  first /= whole;
  end /= whole;
  for (int k = 0; first < end; ++k) {
    const auto group = [&](std::size_t j) -> const State& {
      return groups.at(k, o, j, i, data.layout.inner);
    };
    const bool is_last = k + 1 == groups.levels;
    for (; first < end && (is_last || first % fan_out != 0); ++first) state.merge(group(first));
    for (; first < end && end % fan_out != 0; --end) state.merge(group(end - 1));
    first /= fan_out;
    end /= fan_out;
  }
}

/// Finds the exponents of the finite elements other than 0.
__global__ void find_range(RollingData data, std::size_t n, ExponentRange* range) {
  ExponentRange seen;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t index = rolling_index(); index < n; index += step) {
    const BatchItem at{index, data.layout.n, data.layout.inner};
    seen.merge(ExponentRange::of<double>(to_bits(data.element(at.o, at.k, at.i))));
  }
  merge_of_warp(seen, range->above, range->below);
}

/// Merges the elements of each group of the first level.
template <class State>
__global__ void group_elements(RollingTask task, RollingData data, Groups<State> groups, std::size_t n) {
  const std::size_t index = rolling_index();
  if (index >= n || !State::computes(task)) return;
  const BatchItem at{index, groups.count[0], data.layout.inner};
  __shared__ typename StateOfThread<State>::Shared shared;
  StateOfThread<State> storage;
  State& state = storage.in(shared);
  for (std::size_t j = 0; j < State::base; ++j)
    state.add(data.element(at.o, at.k * State::base + j, at.i), task);
  groups.level[0][index] = state;
}

/// Merges the groups of level k - 1 into those of level k.
template <class State>
__global__ void group_groups(RollingTask task, std::size_t inner, Groups<State> groups, int k,
                             std::size_t n) {
  const std::size_t index = rolling_index();
  if (index >= n || !State::computes(task)) return;
  const BatchItem at{index, groups.count[k], inner};
  __shared__ typename StateOfThread<State>::Shared shared;
  StateOfThread<State> storage;
  State& state = storage.in(shared);
  for (std::size_t j = 0; j < fan_out; ++j)
    state.merge(groups.at(k - 1, at.o, at.k * fan_out + j, at.i, inner));
  groups.level[k][index] = state;
}

/// Writes the result of each window.
template <class State>
__global__ void roll_windows(RollingTask task, RollingData data, Groups<State> groups, std::size_t n) {
  const std::size_t index = rolling_index();
  if (index >= n || !State::computes(task)) return;
  const BatchItem at{index, data.layout.n, data.layout.inner};
  const std::size_t first = task.windows.first(at.k), end = task.windows.end(at.k);
  __shared__ typename StateOfThread<State>::Shared shared;
  StateOfThread<State> storage;
  State& state = storage.in(shared);
  merge_window(state, task, data, groups, at.o, at.i, first, end);
  const std::size_t count = end - first - state.skipped;
  const std::size_t to = at.o * data.row_stride + at.k * data.layout.inner + at.i;
  visit_format(data.out_format, [&]<class F>() {
    static_cast<BitsOf<F>*>(data.out)[to] = task.windows.has_result(count, task.kind == RollingKind::sum)
                                                ? state.template result<F>(task, count)
                                                : Format<F>::canonical_nan;
  });
}

/// Rolls the windows of a call in states of one type.
template <class State> class RollingPass {
 public:
  RollingPass(const Launch& work, void* memory)
      : work_{work},
        layout_{work.call.layout},
        bytes_{sizeof(State) * groups_.plan(layout_.n, work.call.options.window, layout_.results(),
                                            static_cast<State*>(memory))} {}
  std::size_t bytes() const { return bytes_; }

  cudaError_t enqueue(const RollingTask& task, const RollingData& data) const {
    const std::size_t vectors = layout_.results();
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < groups_.levels && error == cudaSuccess; ++k) {
      const std::size_t n = groups_.count[k] * vectors;
      error = k == 0 ? with_threads(n, group_elements<State>, task, data, groups_, n)
                     : with_threads(n, group_groups<State>, task, layout_.inner, groups_, k, n);
    }
    const std::size_t n = layout_.n * vectors;
    return error == cudaSuccess ? with_threads(n, roll_windows<State>, task, data, groups_, n) : error;
  }

 private:
  template <class Kernel, class... Argument>
  cudaError_t with_threads(std::size_t n, Kernel kernel, Argument... arguments) const {
    constexpr int threads = rolling_threads<State>;
    return launch(kernel, (n - 1) / threads + 1, threads, work_.stream, arguments...);
  }

  const Launch& work_;
  const Layout& layout_;
  Groups<State> groups_;
  std::size_t bytes_;
};

constexpr std::size_t range_bytes = 16;  ///< an ExponentRange, so that states behind it are aligned

/// Finds the range of the elements, if the states need it.
cudaError_t enqueue_range(const Launch& work, const RollingData& data, ExponentRange* range) {
  constexpr std::size_t most_blocks = 4096;
  constexpr int threads = 128;
  const std::size_t n = work.call.layout.n * work.call.layout.results();
  if (const cudaError_t error = cudaMemsetAsync(range, 0, sizeof *range, work.stream)) return error;
  return launch(find_range, std::min((n - 1) / threads + 1, most_blocks), threads, work.stream, data, n,
                range);
}

/// Rolls the windows of a call: in the type of state whose range has the elements, one of several.
template <class... State> cudaError_t roll_by(Launch& work, bool needs_range) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  const bool is_nothing = l.results() == 0 || l.n == 0;
  std::byte* const memory =
      work.workspace == nullptr ? nullptr : static_cast<std::byte*>(states(work.workspace));
  void* const of_groups = memory == nullptr ? nullptr : memory + range_bytes;
  std::size_t bytes = 0;
  if (!is_nothing) bytes = std::max({RollingPass<State>{work, nullptr}.bytes()...});
  cudaError_t error;
  if (!accept_workspace(work, is_nothing ? size_if_none_needed : header_bytes + range_bytes + bytes, error) ||
      is_nothing)
    return error;
  auto* const range = needs_range ? reinterpret_cast<ExponentRange*>(memory) : nullptr;
  const RollingData data{call.x.data, call.x.format->index, call.method->format->index,
                         l,           call.out.data,        call.out.row_stride};
  const RollingTask task{rolling_kind(call.method->operation),
                         {l.n, call.options},
                         whole(call.options.ddof),
                         GridOfDoubles{call.options.grid.value_or(0)},
                         range,
                         work.status};
  if (needs_range) error = enqueue_range(work, data, range);
  const auto enqueue = [&]<class One>() {
    if (error == cudaSuccess) error = RollingPass<One>{work, of_groups}.enqueue(task, data);
  };
  (enqueue.template operator()<State>(), ...);
  return error;
}

template <bool has_squares> using NarrowExact = RollingExact<3, has_squares, true>;
template <int words, bool has_squares> using AnyExact = RollingExact<words, has_squares, false>;

cudaError_t enqueue_rolling(Launch& work) {
  const Method& m = *work.call.method;
  const RollingKind kind = rolling_kind(m.operation);
  if (kind == RollingKind::min || kind == RollingKind::max) return roll_by<RollingExtremum>(work, false);
  if (m.takes_grid) return roll_by<RollingOnGrid>(work, false);
  // Words for all sums of fewer than 2^39 elements of fp32, and of fp64.
  constexpr int of_fp32 = 6, of_fp64 = 34;
  const bool is_double = work.call.x.format->index == Formats::index_of<fp64>();
  const auto exactly = [&]<bool squares>() {
    return is_double ? roll_by<NarrowExact<squares>, AnyExact<of_fp64, squares>>(work, true)
                     : roll_by<NarrowExact<squares>, AnyExact<of_fp32, squares>>(work, true);
  };
  return kind == RollingKind::variance ? exactly.template operator()<true>()
                                       : exactly.template operator()<false>();
}

void roll(Launch& work) { work.error = enqueue_rolling(work); }

}  // namespace

std::vector<Entry> rolling_methods() { return rolling_entries<Launch, roll>("cuda"); }

}  // namespace samesum::gpu
