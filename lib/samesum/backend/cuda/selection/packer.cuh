/// Packs the elements that take part in a call. Each has a bit; CUB counts those before each word of bits, so
/// that the place of an element is one count and the bits before it in its word.
#pragma once

#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>

#include "samesum/backend/cuda/device/pair.cuh"
#include "samesum/backend/cuda/device/placing.hpp"

namespace samesum::gpu {
namespace {

/// The elements of a call in the order of its results, and which of them take part.
struct OrderedElements {
  const void *x, *y;          ///< null if there is no such input
  std::size_t format;         ///< format index of both
  const std::uint8_t* where;  ///< null if all may take part
  bool skip_nan;
  Layout layout;          ///< offsets are in device memory
  bool in_order;          ///< whether elements follow each other in the inputs
  std::uint32_t* bits;    ///< whether each element takes part, and one or two words of zeros behind
  std::uint64_t* counts;  ///< for each word of bits, how many elements before it take part

  static constexpr int of_word = 32;
  /// Number of the first element of result r.
  __device__ std::uint64_t first(std::uint64_t r) const {
    return layout.offsets ? layout.offsets[r] - layout.offsets[0] : r * layout.n;
  }
  /// Place of an element in the inputs.
  __device__ std::uint64_t place(std::uint64_t i) const {
    if (layout.offsets) return layout.offsets[0] + i;
    if (in_order) return i;
    const std::uint64_t r = i / layout.n;
    return layout.first(r / layout.inner) + r % layout.inner + i % layout.n * layout.stride;
  }
  __device__ bool is_nan(const void* input, std::uint64_t at) const {
    bool nan = false;
    visit_format(format, [&]<class F>() { nan = is_nan_bits<F>(to_bits(static_cast<const F*>(input)[at])); });
    return nan;
  }
  /// Finds out whether element i takes part.
  __device__ bool is_chosen(std::uint64_t i) const {
    const std::uint64_t at = place(i);
    if (where && where[at] == 0) return false;
    return !(skip_nan && (is_nan(x, at) || (y && is_nan(y, at))));
  }
  __device__ bool takes_part(std::uint64_t i) const { return bits[i / of_word] >> i % of_word & 1; }
  /// How many elements before element i take part; i may be the number of elements.
  __device__ std::uint64_t before(std::uint64_t i) const {
    const std::uint32_t below = (std::uint32_t{1} << i % of_word) - 1;
    return counts[i / of_word] + static_cast<std::uint64_t>(__popc(bits[i / of_word] & below));
  }
};

/// The number of bits of a word.
struct BitCount {
  __device__ std::uint64_t operator()(std::uint32_t word) const {
    return static_cast<std::uint64_t>(__popc(word));
  }
};

/// Keys, and the number of the results of each, for elements in rows.
struct KeysOfRows {
  KeyFormat format;
  const void* data;
  std::uint64_t bins, inner;

  /// The key that a packed element has alone: rows of several elements become pairs of their own.
  __device__ std::int64_t of(std::uint64_t i) const {
    const std::uint64_t key = key_at(format, data, i / inner);
    return key < bins ? static_cast<std::int64_t>(key * inner + i % inner) : -1;
  }
};

constexpr int select_threads = 256;
std::size_t select_blocks(std::size_t n) { return (n + select_threads - 1) / select_threads; }
__device__ std::uint64_t select_index() { return std::uint64_t{blockIdx.x} * select_threads + threadIdx.x; }

/// Elements of each thread of the kernels that read all: `select_threads` apart, so that loads are coalesced
/// and several are in flight.
constexpr int select_items = 8;
std::size_t select_item_blocks(std::size_t n) {
  return (n + select_items * select_threads - 1) / (select_items * select_threads);
}
/// Calls visit(i, k) for the elements i of this thread, some of which may not exist; k < select_items.
template <class Visit> __device__ __forceinline__ void for_each_item(Visit visit) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * (select_items * select_threads) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < select_items; ++k) visit(first + static_cast<std::uint64_t>(k) * select_threads, k);
}

/// Writes the bits of n elements, and 0 for those of the words behind.
__global__ void __launch_bounds__(select_threads) choose_elements(OrderedElements e, std::uint64_t n) {
  bool chosen[select_items];
  for_each_item([&](std::uint64_t i, int k) { chosen[k] = i < n && e.is_chosen(i); });
  for_each_item([&](std::uint64_t i, int k) {
    const std::uint32_t word = __ballot_sync(0xffffffffu, chosen[k]);
    if (threadIdx.x % e.of_word == 0 && i / e.of_word <= n / e.of_word + 1) e.bits[i / e.of_word] = word;
  });
}

/// Packs an input. If `row` is not 0, the elements of each result are packed into a row of that length.
template <class F>
__global__ void __launch_bounds__(select_threads)
    pack_elements(OrderedElements e, std::uint64_t n, const void* input, std::uint64_t row, F* out) {
  F x[select_items];
  for_each_item([&](std::uint64_t i, int k) {
    if (i < n && e.takes_part(i)) x[k] = static_cast<const F*>(input)[e.place(i)];
  });
  for_each_item([&](std::uint64_t i, int k) {
    if (i >= n || !e.takes_part(i)) return;
    const std::uint64_t r = row == 0 ? 0 : i / e.layout.n;
    out[r * row + e.before(i) - (row == 0 ? 0 : e.before(e.first(r)))] = x[k];
  });
}

__global__ void pack_keys(OrderedElements e, std::uint64_t n, KeysOfRows keys, std::int64_t* out) {
  const std::uint64_t i = select_index();
  if (i < n && e.takes_part(i)) out[e.before(i)] = keys.of(i);
}

/// Counts the rows of `inner` elements of which any takes part.
__global__ void count_rows(OrderedElements e, std::uint64_t rows, std::uint64_t inner,
                           unsigned long long* counter) {
  const std::uint64_t r = select_index();
  const int taken = __syncthreads_count(r < rows && e.before((r + 1) * inner) != e.before(r * inner));
  if (threadIdx.x == 0 && taken > 0) atomicAdd(counter, static_cast<unsigned long long>(taken));
}

/// Writes the offsets of the results in the packed elements.
__global__ void write_offsets(OrderedElements e, std::uint64_t results, std::uint64_t* offsets) {
  const std::uint64_t r = select_index();
  if (r <= results) offsets[r] = e.before(e.first(r));
}

/// Writes for each result whether its last element takes part.
__global__ void flag_last(OrderedElements e, std::uint64_t results, std::uint8_t* flags) {
  const std::uint64_t r = select_index();
  if (r < results) flags[r] = e.takes_part(e.first(r + 1) - 1);
}

/// Replaces the index of a packed element of each result by its place among all elements of the result.
__global__ void restore_indices(OrderedElements e, std::uint64_t results, std::int64_t* index) {
  const std::uint64_t r = select_index();
  if (r >= results || index[r] < 0) return;
  const std::uint64_t wanted = e.before(e.first(r)) + static_cast<std::uint64_t>(index[r]);
  std::uint64_t low = e.first(r), high = e.first(r + 1) - 1;  // the last element with `wanted` before it
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    if (e.before(middle) <= wanted)
      low = middle;
    else
      high = middle - 1;
  }
  index[r] = static_cast<std::int64_t>(low - e.first(r));
}

/// Writes the result of a scan for each element. Result k of a row of `row` results is that of the first k
/// elements that take part.
template <class F>
__global__ void spread_results(OrderedElements e, std::uint64_t n, bool exclusive, const F* of_first,
                               std::uint64_t row, F* out) {
  const std::uint64_t i = select_index();
  if (i >= n) return;
  const Layout& l = e.layout;
  const std::uint64_t r = i / l.n, o = r / l.inner;
  out[(o * l.n + i % l.n) * l.inner + r % l.inner] =
      of_first[r * row + e.before(exclusive ? i : i + 1) - e.before(r * l.n)];
}

template <class T> T* of_type(const Memory& memory) { return static_cast<T*>(memory.get()); }

void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream),
        with_size("cudaMemcpyAsync", bytes));
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/// Packs the elements of a call that take part. Its data are copied to the device if they are in host memory.
class Packer {
 public:
  Packer(const Call& call, const Layout& layout, cudaStream_t stream)
      : stream_{stream}, x_{placed(call.x)}, y_{placed(call.y)}, layout_{layout} {
    const Mask& where = call.options.where;
    const std::uint8_t* flags = where.data;
    const int holder = where.size > 0 ? device_of(where.data) : -1;
    if (holder >= 0 && holder != device_for(call))
      throw std::invalid_argument("samesum: where is on GPU " + std::to_string(holder) +
                                  ", but x is on GPU " + std::to_string(device_for(call)) +
                                  "; copy one of them");
    if (where.size > 0 && holder < 0) {
      flags_ = copied(where.data, where.size);
      flags = of_type<std::uint8_t>(flags_);
    }
    count_ = layout.n * layout.results();
    if (layout.offsets) {
      const std::size_t bytes = (layout.outer + 1) * sizeof(std::uint64_t);
      count_ = layout.offsets[layout.outer] - layout.offsets[0];
      offsets_ = copied(layout.offsets, bytes);
      layout_.offsets = of_type<std::uint64_t>(offsets_);
    }
    words_ = count_ / OrderedElements::of_word + 2;
    elements_ = {x_.values.size > 0 ? x_.values.data : nullptr,
                 y_.values.size > 0 ? y_.values.data : nullptr,
                 call.x.format->index,
                 flags,
                 call.options.skip_nan,
                 layout_,
                 !layout_.offsets && layout_.inner == 1 && layout_.stride == 1 &&
                     (layout_.outer <= 1 || layout_.outer_stride == layout_.n),
                 nullptr,
                 nullptr};
    count();
  }

  const OrderedElements& elements() const { return elements_; }
  /// Number of all elements, and of those that take part.
  std::size_t all() const { return count_; }
  std::size_t taken() const { return taken_; }

  /// The elements of x, or of y, that take part. With `row`, those of each result in a row of that length,
  /// followed by +0.
  Placed x(std::size_t row = 0) const { return pack(x_.values, row); }
  Placed y() const { return pack(y_.values, 0); }
  Memory keys(const KeysOfRows& keys) const {
    const Memory to = device_memory(taken_ * sizeof(std::int64_t));
    enqueue_for(count_, "pack_keys", pack_keys, elements_, count_, keys, of_type<std::int64_t>(to));
    return to;
  }
  Memory offsets() const {
    const std::size_t results = layout_.results();
    const Memory to = device_memory((results + 1) * sizeof(std::uint64_t));
    enqueue_for(results + 1, "write_offsets", write_offsets, elements_, results, of_type<std::uint64_t>(to));
    return to;
  }

  /// Number of rows of `inner` elements of which any takes part.
  std::size_t taken_rows(std::size_t inner) const {
    if (inner == 1) return taken_;
    const Memory counter = device_memory(sizeof(unsigned long long));
    check(cudaMemsetAsync(counter.get(), 0, sizeof(unsigned long long), stream_), "cudaMemsetAsync");
    enqueue_for(count_ / inner, "count_rows", count_rows, elements_, count_ / inner, inner,
                of_type<unsigned long long>(counter));
    unsigned long long rows = 0;
    copy_to_host(&rows, counter.get(), sizeof rows, stream_);
    return rows;
  }

  /// Launches a kernel with a thread for each of n items.
  template <class Kernel, class... Argument>
  void enqueue_for(std::size_t n, const char* name, Kernel kernel, Argument... arguments) const {
    if (n > 0) check(launch(kernel, select_blocks(n), select_threads, stream_, arguments...), name);
  }

 private:
  /// Finds those that take part, counts them, and waits for their number.
  void count() {
    std::size_t of_scan = 0;
    const auto scan = [&](void* memory) {
      check(cub::DeviceScan::ExclusiveSum(memory, of_scan,
                                          thrust::make_transform_iterator(elements_.bits, BitCount{}),
                                          elements_.counts, static_cast<std::int64_t>(words_), stream_),
            "cub::DeviceScan");
    };
    scan(nullptr);
    constexpr std::size_t alignment = 256;
    const std::size_t of_words = words_ * (sizeof *elements_.counts + sizeof *elements_.bits),
                      before_scan = (of_words + alignment - 1) / alignment * alignment;
    words_memory_ = device_memory(before_scan + of_scan);
    elements_.counts = of_type<std::uint64_t>(words_memory_);
    elements_.bits = reinterpret_cast<std::uint32_t*>(elements_.counts + words_);
    check(launch(choose_elements, select_item_blocks(words_ * OrderedElements::of_word), select_threads,
                 stream_, elements_, count_),
          "choose_elements");
    scan(of_type<std::byte>(words_memory_) + before_scan);
    copy_to_host(&taken_, elements_.counts + words_ - 1, sizeof taken_, stream_);
  }

  Placed pack(const Values& from, std::size_t row) const {
    if (!from.is_given()) return {from, nullptr};
    const std::size_t size = row == 0 ? taken_ : row * layout_.results(), bytes = size * from.format->bytes;
    const Memory to = device_memory(bytes);
    if (row != 0) check(cudaMemsetAsync(to.get(), 0, bytes, stream_), "cudaMemsetAsync");
    with_kernel_format(*from.format, [&]<class F>() {
      if (from.size > 0 && count_ > 0)
        check(launch(pack_elements<F>, select_item_blocks(count_), select_threads, stream_, elements_, count_,
                     from.data, row, of_type<F>(to)),
              "pack_elements");
    });
    return {{*from.format, to.get(), size}, to};
  }

  cudaStream_t stream_;
  Placed x_, y_;
  Memory flags_, offsets_, words_memory_;
  std::size_t words_ = 0;  ///< of bits
  Layout layout_;
  OrderedElements elements_{};
  std::uint64_t count_ = 0, taken_ = 0;
};

}  // namespace
}  // namespace samesum::gpu
