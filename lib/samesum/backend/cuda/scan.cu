/// Scans on a GPU in one format, and reductions in the order prefix.
#include "samesum/backend/cuda/exact_scan.cuh"
#include "samesum/backend/cuda/launch.hpp"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::gpu {
namespace {

template <int rows> ScanPlan plan_scan(const Layout& l, std::size_t elements) {
  constexpr std::size_t leaf = PrefixTree::leaf, of_warp = rows * PrefixTree::lanes;
  const auto log2 = [](std::size_t n) { return static_cast<int>(ceil_log2(n)); };
  ScanPlan plan{};
  if (l.offsets) {
    plan.log2_warps = log2(leaf / of_warp);
    plan.blocks = elements / leaf + l.outer;
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

/// Launches the kernel. prepare() runs before, and owns the first `own_bytes` of the states of the workspace.
template <int rows, class Reducer, class Prepare>
cudaError_t launch_tiles(const Reducer& reducer, const ScanDestination& out, std::size_t own_bytes,
                         Prepare prepare, Launch& call) {
  using State = typename Reducer::State;
  static_assert(sizeof(State) % 4 == 0 && std::is_trivially_copyable_v<State>);
  const Layout& l = call.layout;
  const bool is_nothing = l.results() == 0 || (out.every && l.n == 0);
  ScanPlan plan{};
  if (!is_nothing) plan = plan_scan<rows>(l, call.size);
  const bool waits = l.offsets ? call.size > PrefixTree::leaf : plan.blocks_per_result > 1;
  const std::size_t published = waits ? plan.place_levels() * sizeof(Published<State>) : 0,
                    bytes = own_bytes + published;
  cudaError_t error;
  if (!accept_workspace(call, bytes > 0 ? header_bytes + bytes : size_if_none_needed, error) || is_nothing)
    return error;
  error = prepare();
  void* const at = waits ? static_cast<std::byte*>(states(call.workspace)) + own_bytes : nullptr;
  if (waits && error == cudaSuccess) error = cudaMemsetAsync(at, 0, published, call.stream);
  if (error != cudaSuccess) return error;
  return launch(scan_tiles<Reducer, rows>, plan.blocks, plan.warps() * warp, call.stream, reducer,
                ScanInput{call.x, call.input->index}, l, plan, static_cast<Published<State>*>(at), out);
}

/// Whether more than one warp shares a tile although one could hold it: if there are too few tiles to occupy
/// the GPU otherwise, or if rows are much shorter than a tile.
bool prefers_few_rows(const Launch& call) {
  if (call.scan != ScanSchedule::automatic) return call.scan == ScanSchedule::few_rows;
  constexpr std::size_t leaf = PrefixTree::leaf, tiles_that_fit_at_once = 640;
  const Layout& l = call.layout;
  if (l.offsets) return call.size / tiles_that_fit_at_once < leaf;
  return l.n <= leaf / 2 || l.results() * PrefixTree::leaves(l.n) < tiles_that_fit_at_once;
}

template <class Reducer, class Prepare>
cudaError_t scan(const Reducer& reducer, bool every, Launch& call, std::size_t own_bytes, Prepare prepare) {
  const ScanDestination out{call.out, call.out_stride, every, call.options.exclusive, call.as_state};
  return prefers_few_rows(call) ? launch_tiles<few_rows>(reducer, out, own_bytes, prepare, call)
                                : launch_tiles<many_rows<Reducer>()>(reducer, out, own_bytes, prepare, call);
}

template <class Reducer> cudaError_t scan_by_threads(const Reducer& reducer, Launch& call) {
  const Layout& l = call.layout;
  cudaError_t error;
  if (!accept_workspace(call, size_if_none_needed, error) || l.results() == 0) return error;
  return launch(scan_in_turn<Reducer>, (l.results() - 1) / warp + 1, warp, call.stream, reducer,
                ScanInput{call.x, call.input->index}, l,
                ScanDestination{call.out, call.out_stride, true, call.options.exclusive, false});
}

template <class Operation, class Order, template <class> class A> cudaError_t run(Launch& call) {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  const auto reducer = scan_reducer<Operation, A, F>();
  if constexpr (std::is_same_v<Order, Serial>)
    return scan_by_threads(reducer, call);
  else
    return scan(reducer, is_scan<Operation>, call, 0, [] { return cudaSuccess; });
}

/// Scans elements that format C holds.
template <class C> cudaError_t scan_held(Launch& call) {
  constexpr std::size_t sampled_elements = 1 << 13;
  const Layout& l = call.layout;
  const std::size_t tiles = PrefixTree::leaves(l.n), of_digits = tiles > 1 ? l.results() * tiles : 0,
                    step = l.results() * l.n / sampled_elements;
  using Windows = ExactScan::Windows;
  auto* const windows = call.workspace == nullptr ? nullptr : static_cast<Windows*>(states(call.workspace));
  auto* const digits = reinterpret_cast<TileDigits*>(windows + 1);
  const ExactScan exact{windows, step >= 16, static_cast<int>(ceil_log2(std::max<std::size_t>(l.n, 1))),
                        Format<C>::min_quantum};
  const auto attempt = [&](bool sampled) {
    const WindowReducer<C, Formats::at<SAMESUM_FORMAT_INDEX>> reducer{exact, sampled};
    return scan(reducer, true, call, sizeof(Windows) + of_digits * sizeof(TileDigits), [&] {
      const bool is_first = sampled || !exact.samples;
      const cudaError_t error =
          is_first ? cudaMemsetAsync(windows, 0, sizeof(Windows), call.stream) : cudaSuccess;
      return error != cudaSuccess ? error : find_exact_window(call, exact, sampled ? step : 1);
    });
  };
  cudaError_t error = exact.samples ? attempt(true) : cudaSuccess;
  if (error == cudaSuccess) error = attempt(false);
  if (error != cudaSuccess || call.workspace == nullptr || l.results() == 0 || l.n == 0) return error;
  return scan_with_digits(call, exact, digits, SAMESUM_FORMAT_INDEX);
}
cudaError_t scan_exactly(Launch& call) {
  return call.input->bytes == 8 ? scan_held<fp64>(call) : scan_held<fp32>(call);
}

}  // namespace

template <> std::vector<Entry> scans<SAMESUM_FORMAT_INDEX>() {
  using F = Formats::at<SAMESUM_FORMAT_INDEX>;
  std::vector<Entry> all;
  for_each_method<F, "cuda">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (is_scanned<Operation, Order>) {
      Entry e = describe<Operation, Order, A, F>("cuda");
      Formats::for_each([&]<class T>() {
        if constexpr (std::is_same_v<Operation, Sum> || can_read<T, F>)
          e.code.run[Formats::index_of<T>()] = run_launch<run<Operation, Order, A>>;
      });
      e.code.run_vector = e.code.run;
      e.facts.is_slow = std::is_same_v<Order, Serial>;
      all.push_back(e);
    }
  });
  for_each_order_free<Exactly>([&]<class Operation>() {
    if constexpr (is_scan<Operation>) {
      Entry e = describe_order_free<Operation, Exactly, F>("cuda");
      e.code.run.fill(run_launch<scan_exactly>);
      e.code.run_vector = e.code.run;
      all.push_back(e);
    }
  });
  return all;
}

}  // namespace samesum::gpu
