/// Scans on a GPU in one format, and reductions in the order prefix.
#include "samesum/backend/cuda/device/launch.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/backend/cuda/scan/exact_columns.cuh"
#include "samesum/backend/cuda/scan/grid_scan.cuh"
#include "samesum/backend/cuda/scan/scan.cuh"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

template <int rows> ScanPlan plan_scan(const Layout& l, std::size_t elements) {
  constexpr std::size_t leaf = PrefixTree::leaf, of_warp = rows * PrefixTree::lanes;
  const auto log2 = [](std::size_t n) { return static_cast<int>(ceil_log2(n)); };
  ScanPlan plan{};
  if (l.offsets) {
    plan.log2_warps = log2(leaf / of_warp);
    plan.blocks = count_slots(l, elements, leaf);
    return plan;
  }
  const std::size_t tiles = std::max<std::size_t>(PrefixTree::leaves(l.n), 1),
                    warps_of_tile = std::max<std::size_t>((std::min(l.n, leaf) + of_warp - 1) / of_warp, 1);
  plan.log2_warps = log2(warps_of_tile);
  plan.log2_tiles = std::max(log2(scan_warps<rows>) - plan.log2_warps, 0);
  plan.one_tile = tiles == 1;
  if (plan.one_tile) {
    plan.blocks_per_result = 1;
    plan.blocks = ((l.results() - 1) >> plan.log2_tiles) + 1;
  } else {
    plan.log2_tiles = std::min(plan.log2_tiles, log2(tiles));
    plan.blocks_per_result = ((tiles - 1) >> plan.log2_tiles) + 1;
    plan.blocks = l.results() * plan.blocks_per_result;
  }
  return plan;
}

/// `every`: whether there is a result for each element.
ScanDestination destination_of(const Launch& work, bool every) {
  return {work.call.out.data, work.call.out.row_stride, every, work.call.options.exclusive, work.as_state};
}

/// Enqueues a scan after set_up(), which uses the first bytes of the states of the workspace.
template <int rows, class Reducer, class SetUp>
cudaError_t launch_tiles(const Reducer& reducer, const ScanDestination& out, Launch& work,
                         std::size_t bytes_of_set_up, SetUp set_up) {
  using State = typename Reducer::State;
  static_assert(sizeof(State) % 4 == 0 && std::is_trivially_copyable_v<State>);
  const Layout& l = work.call.layout;
  const bool is_nothing = l.results() == 0 || (out.every && l.n == 0);
  ScanPlan plan{};
  if (!is_nothing) plan = plan_scan<rows>(l, work.call.x.size);
  const bool waits = l.offsets ? work.call.x.size > PrefixTree::leaf : plan.blocks_per_result > 1;
  const std::size_t published = waits ? plan.place_levels() * sizeof(Published<State>) : 0,
                    bytes = bytes_of_set_up + published;
  cudaError_t error;
  if (!accept_workspace(work, bytes > 0 ? header_bytes + bytes : size_if_none_needed, error) || is_nothing)
    return error;
  error = set_up();
  void* const at = waits ? static_cast<std::byte*>(states(work.workspace)) + bytes_of_set_up : nullptr;
  if (waits && error == cudaSuccess) error = cudaMemsetAsync(at, 0, published, work.stream);
  if (error != cudaSuccess) return error;
  std::size_t blocks = plan.blocks;
  if constexpr (is_fallback<Reducer>) {
    error = resident_blocks(scan_tiles<Reducer, rows>, plan.warps() * warp, blocks);
    if (error != cudaSuccess) return error;
    blocks = std::min(blocks, plan.blocks);
  }
  return launch(scan_tiles<Reducer, rows>, blocks, plan.warps() * warp, work.stream, reducer,
                ScanInput{work.call.x}, l, plan, static_cast<Published<State>*>(at), out);
}

/// Whether more than one warp shares a tile although one could hold it: if there are too few tiles to occupy
/// the GPU otherwise, or if rows are much shorter than a tile.
bool prefers_few_rows(const Launch& work) {
  if (work.scan != ScanSchedule::automatic) return work.scan == ScanSchedule::few_rows;
  constexpr std::size_t leaf = PrefixTree::leaf, tiles_that_fit_at_once = 640;
  const Layout& l = work.call.layout;
  if (l.offsets) return work.call.x.size / tiles_that_fit_at_once < leaf;
  return l.n <= leaf / 2 || l.results() * PrefixTree::leaves(l.n) < tiles_that_fit_at_once;
}

/// Whether threads scan columns: if the loads of neighbouring threads share sectors of memory, and if there
/// are enough elements for several kernels.
bool prefers_columns(const Launch& work) {
  constexpr std::size_t fewest_columns = 8, fewest_elements = std::size_t{1} << 18;
  constexpr std::size_t most_tiles = std::size_t{1} << log2_most_tiles;
  const Layout& l = work.call.layout;
  if (l.offsets || PrefixTree::leaves(l.n) > most_tiles) return false;
  if (work.scan != ScanSchedule::automatic) return work.scan == ScanSchedule::columns;
  return l.inner >= fewest_columns && l.results() * l.n >= fewest_elements;
}

/// Enqueues a scan of columns after set_up(), as launch_tiles.
template <class Reducer, class SetUp>
cudaError_t scan_columns(const Reducer& reducer, Launch& work, std::size_t bytes_of_set_up, SetUp set_up) {
  using State = typename Reducer::State;
  const Layout& l = work.call.layout;
  const bool is_nothing = l.results() * l.n == 0;
  const std::size_t before = (bytes_of_set_up + 15) / 16 * 16,
                    states = l.n > PrefixTree::lanes ? l.results() * ColumnRows<State>::rows_of(l.n) : 0,
                    bytes = before + states * sizeof(State);
  cudaError_t error;
  if (!accept_workspace(work, bytes > 0 ? header_bytes + bytes : size_if_none_needed, error) || is_nothing)
    return error;
  error = set_up();
  if (error != cudaSuccess) return error;
  void* const at = static_cast<std::byte*>(samesum::gpu::states(work.workspace)) + before;
  return launch_columns(reducer, ScanInput{work.call.x}, l, static_cast<State*>(at),
                        destination_of(work, true), work.stream);
}

template <class Reducer, class SetUp>
cudaError_t scan(const Reducer& reducer, bool every, Launch& work, std::size_t bytes_of_set_up,
                 SetUp set_up) {
  if constexpr (!is_order_free<typename Reducer::State>)
    if (every && prefers_columns(work)) return scan_columns(reducer, work, bytes_of_set_up, set_up);
  const ScanDestination out = destination_of(work, every);
  return prefers_few_rows(work)
             ? launch_tiles<few_rows>(reducer, out, work, bytes_of_set_up, set_up)
             : launch_tiles<many_rows<Reducer>()>(reducer, out, work, bytes_of_set_up, set_up);
}
template <class Reducer> cudaError_t scan(const Reducer& reducer, bool every, Launch& work) {
  return scan(reducer, every, work, 0, [] { return cudaSuccess; });
}

template <class Reducer> cudaError_t scan_by_threads(const Reducer& reducer, Launch& work) {
  const Layout& l = work.call.layout;
  cudaError_t error;
  if (!accept_workspace(work, size_if_none_needed, error) || l.results() == 0) return error;
  return launch(scan_in_turn<Reducer>, (l.results() - 1) / warp + 1, warp, work.stream, reducer,
                ScanInput{work.call.x}, l, destination_of(work, true));
}

template <class Operation, class Order, template <class> class A> cudaError_t run(Launch& work) {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  const auto reducer = scan_reducer<Operation, A, F>();
  if constexpr (std::is_same_v<Order, Serial>)
    return scan_by_threads(reducer, work);
  else
    return scan(reducer, is_scan<Operation>, work);
}

/// Segments of a call: short ones if long ones would not occupy the GPU.
template <class C, class Sum> ScanSegments<Sum> plan_segments(const Layout& l, bool few) {
  ScanSegments<Sum> s{};
  s.length = static_cast<std::size_t>(few ? few_rows : segment_rows<C>) * PrefixTree::lanes;
  const std::size_t segments = (l.n - 1) / s.length + 1;
  s.in_group = 1 << std::min(static_cast<int>(ceil_log2(segments)), 4);
  s.of_result = (segments - 1) / static_cast<std::size_t>(s.in_group) + 1;
  s.groups = l.results() * s.of_result;
  return s;
}

/// The parts of a workspace, one behind the other. For a size query, the pointers must not be used.
class Parts {
 public:
  explicit Parts(void* workspace) : first_{reinterpret_cast<std::uintptr_t>(workspace) + header_bytes} {}
  template <class T> T* add(std::size_t count) {
    T* const at = reinterpret_cast<T*>(first_ + bytes_);
    bytes_ = (bytes_ + count * sizeof(T) + 15) / 16 * 16;
    return at;
  }
  /// Room for the sums of the segments and groups, if a result has several.
  template <class Sum> void add_sums(ScanSegments<Sum>& s, std::size_t results, bool has_common) {
    if (s.count() > results) s.sum = add<Sum>(s.count());
    if (s.groups > results) s.group = add<Sum>(s.groups);
    if (s.sum != nullptr && has_common) s.is_common = add<bool>(s.count());
  }
  template <class Sum> ColumnSums<Sum> add_parts(const Layout& l) {
    auto s = ColumnSums<Sum>::of(l.n);
    if (s.parts > 1) s.part = add<Sum>(l.results() * s.parts);
    if (s.groups() > 1) s.group = add<Sum>(l.results() * s.groups());
    return s;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::uintptr_t first_;
  std::size_t bytes_ = 0;
};

/// An exact scan of segments.
template <class C, class F> class SegmentScan {
 public:
  static constexpr int common_bits = 49;  ///< such that a warp may add the elements of a segment
  static_assert(common_bits + ceil_log2(std::size_t{segment_rows<C>} * PrefixTree::lanes) <= common_sum_bits);
  SegmentScan(const Launch& work, bool has_wide, Parts& parts) : work_{work}, has_wide_{has_wide} {
    const Layout& l = work.call.layout;
    narrow_ = plan_segments<C, WindowSum>(l, prefers_few_rows(work));
    parts.add_sums(narrow_, l.results(), true);
    if (!has_wide) return;
    wide_ = plan_segments<C, WidestSum>(l, true);
    parts.add_sums(wide_, l.results(), false);
  }
  cudaError_t operator()(const ExactScan& exact, std::size_t step, const ScanDestination& out) const {
    cudaError_t error = sum_exact_segments(work_, exact, narrow_, wide_, step);
    const auto enqueue = [&](auto kernel, const auto& segments) {
      if (error == cudaSuccess)
        error = launch(kernel, (segments.count() - 1) / segment_warps + 1, segment_warps * warp, work_.stream,
                       ScanInput{work_.call.x}, work_.call.layout, exact, segments, out);
    };
    enqueue(narrow_.length == few_rows * PrefixTree::lanes ? scan_segments<C, F, few_rows>
                                                           : scan_segments<C, F, segment_rows<C>>,
            narrow_);
    if (has_wide_) enqueue(scan_wide_segments<C, F>, wide_);
    return error;
  }

 private:
  const Launch& work_;
  bool has_wide_;
  ScanSegments<WindowSum> narrow_{};
  ScanSegments<WidestSum> wide_{};
};

/// An exact scan of columns, or of short rows.
template <class C, class F> class ColumnScan {
 public:
  static constexpr int common_bits = 55;  ///< such that a thread may add the elements of a load
  static_assert(common_bits + ceil_log2(std::size_t{PartElements<C>::at_once}) <= common_sum_bits);
  ColumnScan(const Launch& work, bool has_wide, Parts& parts) : work_{work}, has_wide_{has_wide} {
    if (has_wide) wide_ = parts.add_parts<WidestSum>(work.call.layout);
    narrow_ = has_wide ? wide_.with<WindowSum>() : parts.add_parts<WindowSum>(work.call.layout);
  }
  cudaError_t operator()(const ExactScan& exact, std::size_t step, const ScanDestination& out) const {
    const Layout& l = work_.call.layout;
    cudaError_t error = sum_exact_parts(work_, exact, narrow_, wide_, step);
    const auto enqueue = [&](auto kernel, const auto& sums) {
      if (error == cudaSuccess)
        error = launch(kernel, (l.results() * sums.parts - 1) / scan_column_threads + 1, scan_column_threads,
                       work_.stream, ScanInput{work_.call.x}, l, exact, sums, out);
    };
    enqueue(scan_parts<C, F>, narrow_);
    if (has_wide_) enqueue(scan_wide_parts<C, F>, wide_);
    return error;
  }

 private:
  const Launch& work_;
  bool has_wide_;
  ColumnSums<WindowSum> narrow_{};
  ColumnSums<WidestSum> wide_{};
};

/// Scans elements that format C holds.
template <class C, class Scan> cudaError_t scan_with(Launch& work) {
  constexpr std::size_t sampled_elements = 1 << 13, fewest_for_wide = 1 << 13;
  const Layout& l = work.call.layout;
  const std::size_t elements = l.results() * l.n, step = elements / sampled_elements;
  cudaError_t error;
  if (elements == 0) {
    accept_workspace(work, size_if_none_needed, error);
    return error;
  }
  Parts parts{work.workspace};
  const ExactScan exact{parts.add<ExactScan::Windows>(1),
                        step >= 16,
                        elements >= fewest_for_wide,
                        static_cast<int>(ceil_log2(l.n)),
                        static_cast<int>(ceil_log2(std::max<std::size_t>(step, 1))),
                        least_unit<C>,
                        Scan::common_bits};
  const Scan scan{work, exact.has_wide, parts};
  const TileList tiles{l};
  auto* const digits = parts.add<TileDigits>(tiles.of_result > 1 ? tiles.count : 0);
  if (!accept_workspace(work, header_bytes + parts.bytes(), error)) return error;
  const ScanDestination out = destination_of(work, true);
  error = scan(exact, step, out);
  return error == cudaSuccess ? scan_with_digits(work, exact, digits, out, SAMESUM_FORMAT_INDEX) : error;
}
/// Whether each thread scans a row: a warp would have few elements to share, and threads are many, the more
/// the longer each takes.
bool prefers_threads_for_rows(const Launch& work) {
  constexpr std::size_t rows_per_element = 512;
  const Layout& l = work.call.layout;
  return work.scan == ScanSchedule::automatic && !l.offsets && l.n <= ColumnSums<WindowSum>::length &&
         l.results() >= rows_per_element * l.n;
}
template <class C> cudaError_t scan_exactly_in(Launch& work) {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  return prefers_columns(work) || prefers_threads_for_rows(work) ? scan_with<C, ColumnScan<C, F>>(work)
                                                                 : scan_with<C, SegmentScan<C, F>>(work);
}
cudaError_t scan_exactly(Launch& work) {
  return work.call.x.format->bytes == 8 ? scan_exactly_in<fp64>(work) : scan_exactly_in<fp32>(work);
}

cudaError_t find_largest_exponents(const Launch& work, std::int32_t* exponents, void* workspace,
                                   std::size_t& bytes) {
  return with_kernel_format(*work.call.x.format, [&]<class T>() {
    return find_largest_exponents_of<Formats::index_of<T>()>(work, exponents, workspace, bytes);
  });
}

/// Whether results may overwrite elements, which then cannot be read again.
bool is_in_place(const Call& call) {
  const auto x = reinterpret_cast<std::uintptr_t>(call.x.data),
             out = reinterpret_cast<std::uintptr_t>(call.out.data);
  return out < x + call.x.size * call.x.format->bytes && x < out + call.out.size * call.out.format->bytes;
}

/// Scans on grids that `source` gives after set_up(), which uses the first bytes of the states of the
/// workspace.
template <class SetUp>
cudaError_t scan_on_grids(Launch& work, const GridSource& source, std::size_t bytes_of_set_up, SetUp set_up) {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  GridScanState* common = nullptr;
  if (work.workspace != nullptr)
    common =
        reinterpret_cast<GridScanState*>(static_cast<std::byte*>(states(work.workspace)) + bytes_of_set_up);
  const std::size_t bytes = bytes_of_set_up + sizeof *common;
  const auto start = [&](bool missed) {
    if (const cudaError_t error = set_up()) return error;
    const cudaError_t error = cudaMemsetAsync(common, 0, sizeof *common, work.stream);
    if (error != cudaSuccess || !missed) return error;
    return cudaMemsetAsync(&common->missed, 1, sizeof common->missed, work.stream);
  };
  const GridScanReducer<F> any{source, work.status, common, {}};
  const auto scan_any = [&](auto set_up) {
    return launch_tiles<few_rows>(any, destination_of(work, true), work, bytes, set_up);
  };
  if constexpr (grid_word_bits<F> <= 62)
    if (work.call.x.format->bytes <= 4 && (work.workspace == nullptr || !is_in_place(work.call))) {
      const cudaError_t error =
          scan(ShortGridScanReducer<F>{source, common}, true, work, bytes, [&] { return start(false); });
      const std::size_t of_short = work.bytes;
      if (error != cudaSuccess) return error;
      const cudaError_t after = scan_any([] { return cudaSuccess; });
      if (work.workspace == nullptr) work.bytes = std::max(work.bytes, of_short);
      return after;
    }
  return scan_any([&] { return start(true); });
}

cudaError_t scan_on_grid(Launch& work) {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  GridSource source{work.call.options.grid.value_or(0), nullptr, grid_word_bits<F>,
                    work.call.x.format->min_quantum};
  if (work.call.options.grid) return scan_on_grids(work, source, 0, [] { return cudaSuccess; });
  // The exponents of the results lie behind the states of the pass that finds them.
  std::size_t of_pass = 0;
  if (const cudaError_t error = find_largest_exponents(work, nullptr, nullptr, of_pass)) return error;
  const auto aligned = [](std::size_t bytes) { return (bytes + 15) / 16 * 16; };
  const std::size_t at = aligned(std::max(of_pass, header_bytes) - header_bytes),
                    end = at + aligned(work.call.layout.results() * sizeof(std::int32_t));
  std::int32_t* exponents = nullptr;
  if (work.workspace != nullptr)
    exponents = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(states(work.workspace)) + at);
  source.exponents = exponents;
  return scan_on_grids(work, source, end, [&] {
    std::size_t bytes = work.bytes;
    return find_largest_exponents(work, exponents, work.workspace, bytes);
  });
}

}  // namespace

template <> std::vector<Entry> scans<SAMESUM_FORMAT_INDEX>() {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  std::vector<Entry> all;
  for_each_method<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (is_scanned<Operation, Order>) {
      Entry e = describe<Operation, Order, A, F>("cuda");
      KernelFormats::for_each([&]<class T>() {
        if constexpr (std::is_same_v<Operation, Sum> || can_read<T, F>)
          e.code.device.any[Formats::index_of<T>()] = run_launch<run<Operation, Order, A>>;
      });
      e.facts.is_slow = std::is_same_v<Order, Serial>;
      all.push_back(e);
    }
  });
  for_each_order_free([&]<class Operation, class Accumulator>() {
    if constexpr (is_scan<Operation>) {
      Entry e = describe_order_free<Operation, Accumulator, F>("cuda");
      e.code.device.any.fill(run_launch < Accumulator::takes_grid ? scan_on_grid : scan_exactly >);
      all.push_back(e);
    }
  });
  return all;
}

}  // namespace samesum::gpu
