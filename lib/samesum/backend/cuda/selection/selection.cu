/// Calls in which only some elements take part: the method runs on the packed elements, and its results, or
/// the indices of elements, go to their places.
#include <vector>

#include "samesum/backend/cuda/selection/packer.cuh"
#include "samesum/backend/cuda/selection/selection.hpp"
#include "samesum/catalogue/selection.hpp"

namespace samesum::gpu {
namespace {

/// A call in which only some elements take part, on the current device.
class SelectedCall {
 public:
  explicit SelectedCall(HostRun& work) : work_{work}, call_{work.call}, stream_{new_stream()} {
    call_.options = of_all_elements(call_.options);
  }

  void run() {
    if (call_.keys.is_given()) return reduce_by_key();
    if (call_.layout.results() == 0) return;
    call_.method->has_result_per_element ? scan() : reduce();
  }

 private:
  /// Runs a call on packed elements, with results in device memory.
  void run_packed(const Call& packed) {
    Launch launch{.call = packed, .stream = stream_.get()};
    if (packed.layout.offsets) launch.longest_segment = call_.layout.n;
    run_there(launch, work_);
  }
  void fetch_results(const Memory& out) const {
    fetch(host_layout_of(work_.call), work_.call.out.data, out.get(), nullptr, stream_.get());
  }

  void reduce() {
    const Packer packer{work_.call, call_.layout, stream_.get()};
    const std::size_t results = call_.layout.results();
    const Placed x = packer.x(), y = packer.y();
    const Memory offsets = packer.offsets(), out = device_memory(results * call_.method->result_bytes());
    Call packed = call_;
    packed.x = x.values;
    packed.y = y.values;
    packed.layout = results == 1 ? Layout::vector(packer.taken())
                                 : Layout::segments(of_type<std::uint64_t>(offsets), results);
    packed.out.data = out.get();
    run_packed(packed);
    if (call_.method->returns_index)
      packer.enqueue_for(results, "restore_indices", restore_indices, packer.elements(), results,
                         of_type<std::int64_t>(out));
    fetch_results(out);
  }

  /// Scans rows of packed elements. A result does not depend on the elements behind it, except on a grid.
  void scan() {
    const Packer packer{work_.call, call_.layout, stream_.get()};
    const std::size_t results = call_.layout.results(), row = call_.layout.n + 1,
                      bytes = call_.out.format->bytes;
    const Placed x = packer.x(row);
    const Memory of_first = device_memory(results * row * bytes), out = device_memory(packer.all() * bytes);
    if (call_.method->takes_grid) {
      scan_each(packer, x.values, of_first);
    } else {
      Call packed = call_;
      packed.options.exclusive = true;
      packed.x = x.values;
      packed.layout = Layout::rows(results, row);
      packed.out = {call_.out.format, of_first.get(), results * row, row};
      run_packed(packed);
    }
    with_kernel_format(*call_.out.format, [&]<class F>() {
      packer.enqueue_for(packer.all(), "spread_results", spread_results<F>, packer.elements(), packer.all(),
                         call_.options.exclusive, of_type<const F>(of_first), row, of_type<F>(out));
    });
    fetch_results(out);
  }
  /// Scans the packed elements of each row alone, by a method whose result for no elements is +0. If the last
  /// element of a row takes part, no exclusive result contains it: then its sum must not overflow a given
  /// grid.
  void scan_each(const Packer& packer, const Values& x, const Memory& of_first) {
    const std::size_t results = call_.layout.results(), row = call_.layout.n + 1,
                      bytes = call_.out.format->bytes;
    check(cudaMemsetAsync(of_first.get(), 0, results * row * bytes, stream_.get()), "cudaMemsetAsync");
    std::vector<std::uint64_t> offsets(results + 1);
    const Memory from = packer.offsets();
    copy_to_host(offsets.data(), from.get(), offsets.size() * sizeof(std::uint64_t), stream_.get());
    std::vector<std::uint8_t> takes_last(call_.options.exclusive && call_.options.grid ? results : 0);
    if (!takes_last.empty()) {
      const Memory flags = device_memory(results);
      packer.enqueue_for(results, "flag_last", flag_last, packer.elements(), results,
                         of_type<std::uint8_t>(flags));
      copy_to_host(takes_last.data(), flags.get(), results, stream_.get());
    }
    for (std::size_t r = 0; r < results; ++r) {
      const std::size_t n = offsets[r + 1] - offsets[r];
      if (n == 0) continue;
      Call packed = call_;
      packed.options.exclusive = !takes_last.empty() && takes_last[r] != 0;
      packed.x = {*x.format, static_cast<const std::byte*>(x.data) + r * row * x.format->bytes, n};
      packed.layout = Layout::vector(n);
      const std::size_t place = r * row + !packed.options.exclusive;  // the result of no elements comes first
      packed.out = {call_.out.format, of_type<std::byte>(of_first) + place * bytes, n, n};
      run_packed(packed);
    }
  }

  void reduce_by_key() {
    const std::size_t inner = call_.layout.inner;
    Keys keys = call_.keys;
    Memory copy;
    if (keys.size > 0 && device_of(keys.data) < 0) {
      copy = copied(keys.data, keys.size * bytes_of(keys.format));
      keys.data = copy.get();
    }
    const Packer packer{work_.call, Layout::vector(keys.size * inner), stream_.get()};
    const Memory of_packed = packer.keys({keys.format, keys.data, bins(call_), inner});
    const Placed x = packer.x();
    const std::size_t bytes = call_.out.size * call_.method->result_bytes();
    const Memory out = call_.options.combine ? copied(call_.out.data, bytes) : device_memory(bytes);
    Call packed = call_;
    packed.keys = {KeyFormat::int64, of_packed.get(), packer.taken()};
    if (call_.x.size > 0) packed.x = x.values;
    packed.layout = Layout::vector(packer.taken());
    packed.most_terms = packer.taken_rows(inner);
    packed.out.data = out.get();
    run_packed(packed);
    if (work_.first_bad_key != no_bad_key) {
      work_.first_bad_key = place_of(packer, work_.first_bad_key) / inner;
      work_.bad_key = fetched_key(call_.keys, work_.first_bad_key);
    } else if (bytes > 0)
      copy_to_host(call_.out.data, out.get(), bytes, stream_.get());
  }
  /// The place of an element of a vector that is number `index` of those that take part.
  std::size_t place_of(const Packer& packer, std::size_t index) const {
    auto place = static_cast<std::int64_t>(index);
    const Memory there = copied(&place, sizeof place);
    packer.enqueue_for(1, "restore_indices", restore_indices, packer.elements(), 1,
                       of_type<std::int64_t>(there));
    copy_to_host(&place, there.get(), sizeof place, stream_.get());
    return static_cast<std::size_t>(place);
  }

  HostRun& work_;
  Call call_;
  std::shared_ptr<CUstream_st> stream_;
};

}  // namespace

void run_selected(HostRun& work) {
  const OnDevice scope{device_for(work.call)};
  SelectedCall{work}.run();
}

PackedInputs packed(const Values& x, const Values& y, const Options& options) {
  const Call call{.method = nullptr,
                  .x = x,
                  .y = y,
                  .layout = Layout::vector(x.size),
                  .out = {nullptr, nullptr, 0},
                  .options = options};
  const OnDevice scope{device_for(call)};
  const auto stream = new_stream();
  const Packer packer{call, call.layout, stream.get()};
  PackedInputs both{packer.x(), packer.y()};
  check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  return both;
}

}  // namespace samesum::gpu
