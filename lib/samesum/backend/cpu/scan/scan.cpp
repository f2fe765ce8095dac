/// Scans on a CPU in one format, and reductions in the order prefix.
#include "samesum/backend/cpu/scan/scan.hpp"

#include "samesum/backend/cpu/scan/exact_column.hpp"
#include "samesum/backend/cpu/scan/grid_column.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::cpu {
namespace {

using F = Formats::at<SAMESUM_FORMAT_INDEX>;

/// The index of an accumulator whose tiles have loops; nullopt for other reducers.
template <class Reducer> std::optional<std::size_t> index_of_loops(const Reducer&) { return {}; }
template <template <class> class A> std::optional<std::size_t> index_of_loops(const ElementSum<A, F>&) {
  return Accumulators::index_of<A>();
}

template <class Reducer> ColumnSetup<Reducer> setup_of(const Reducer& reducer, const Call& call) {
  const Kernels& loops = kernels(SAMESUM_FORMAT_INDEX);
  const auto at = index_of_loops(reducer);
  return {reducer,
          loops.write_terms[call.x.format->index],
          std::is_same_v<F, CarrierOf<F>> && call.x.format->index == SAMESUM_FORMAT_INDEX,
          at ? loops.scan_tile[*at] : nullptr,
          at ? loops.scan_columns[*at] : nullptr,
          call.options.exclusive};
}

/// Fewer neighbouring columns are scanned one by one.
constexpr std::size_t least_columns = 8;

constexpr auto nothing = [](const auto&, std::size_t, std::size_t) {};

/// Scans the columns of a call. `in_turn` says whether adding all elements in turn gives the same bits. Not
/// inlined, so that all element formats share one copy of the code.
template <class Order, bool in_turn, class Reducer>
[[gnu::noinline]] void scan(const Reducer& reducer, const Call& call) {
  const ColumnSetup<Reducer> setup = setup_of(reducer, call);
  const ColumnsOfCall<F> all{call};
  if constexpr (std::is_same_v<Order, Prefix>) {
    const PrefixColumn<Reducer> fresh{setup};
    if (const int threads = threads_per_column(all); threads > 1) {
      for (std::size_t o = 0; o < call.layout.outer; ++o)
        pass_parts(all, fresh, setup.reducer, o, true, threads);
      return;
    }
    if (setup.scan_columns && !all.are_contiguous() && all.layout.inner >= least_columns)
      return scan_columns(all, setup);
    if constexpr (!in_turn) return pass_columns(all, fresh, true, nothing);
  }
  if constexpr (in_turn) pass_columns(all, SerialColumn<Reducer>{setup}, true, nothing);
}

/// Reduces the columns of a call in the order prefix. `as_state` converts a state to the form of PartialForm.
template <class Reducer, class AsState>
[[gnu::noinline]] void reduce(const Reducer& reducer, const HostRun& work, AsState as_state) {
  const Call& call = work.call;
  const ColumnSetup<Reducer> setup = setup_of(reducer, call);
  const ColumnsOfCall<F> all{call};
  const PrefixColumn<Reducer> fresh{setup};
  const auto write = [&](const typename Reducer::State& state, std::size_t n, std::size_t at) {
    if (work.as_state)
      as_state(state, call.out.data);
    else
      reducer.finish(state, n, at, call.out.data);
  };
  const int threads = threads_per_column(all);
  if (threads == 1)
    return pass_columns(all, fresh, false,
                        [&](const PrefixColumn<Reducer>& column, std::size_t n, std::size_t at) {
                          write(column.state(), n, at);
                        });
  for (std::size_t o = 0; o < call.layout.outer; ++o)
    write(pass_parts(all, fresh, setup.reducer, o, false, threads), call.layout.n, o);
}

template <class Operation, class Order, template <class> class A> void run(HostRun& work) {
  const auto reducer = scan_reducer<Operation, A, F>();
  if constexpr (is_scan<Operation>)
    if constexpr (Operation::has_order)
      scan<Order, std::is_same_v<Order, Serial>>(reducer, work.call);
    else
      scan<Prefix, true>(reducer, work.call);
  else
    reduce(reducer, work, [](const auto& state, void* out) {
      using State = typename decltype(Operation::template reducer<A, F>({}))::State;
      *static_cast<State*>(out) = {state};
    });
}

/// Scans a column of more than one part, whose states may be merged in any order, on several threads. All
/// parts are read to find their states, sum(elements), and again to write the results. restart(column,
/// before, count) lets a column go on after `count` elements with the state `before`.
template <class T, class State, class Column, class Sum, class Restart>
void scan_parts(const ColumnsOfCall<F>& all, const Column& fresh, std::size_t o, int threads, Sum sum,
                Restart restart) {
  const std::size_t parts = (all.layout.n - 1) / part + 1;
  std::vector<State> before(parts);  // first the state of part k - 1, then of all parts before k
  for_each_task(threads, parts - 1, [&](std::size_t k) {
    const auto* x = reinterpret_cast<const T*>(all.element(o, k * part, 0));
    before[k + 1] = sum(Values{std::span<const T>{x, part}});
  });
  for (std::size_t k = 1; k < parts; ++k) before[k].merge(before[k - 1]);
  for_each_task(threads, parts, [&](std::size_t k) {
    Column column = fresh;
    restart(column, before[k], k * part);
    pass_part(all, o, k, true, column);
  });
}

template <class T> void scan_exactly(HostRun& work) {
  const Call& call = work.call;
  const ColumnsOfCall<F> all{call};
  const ExactColumn<T, F> fresh{call.options.exclusive, call.layout.n};
  const int threads = threads_per_column(all);
  if (threads == 1) return pass_columns(all, fresh, true, nothing);
  for (std::size_t o = 0; o < call.layout.outer; ++o)
    scan_parts<T, Exact>(
        all, fresh, o, threads, [](Values x) { return sum_exact(x, 1); },
        [](ExactColumn<T, F>& column, const Exact& before, std::size_t) { column.restart(before); });
}

template <class T> void scan_on_grid(HostRun& work) {
  const Call& call = work.call;
  const ColumnsOfCall<F> all{call};
  const std::vector<int> grids = grids_of_results(call);
  std::atomic<bool> overflowed = false;
  const GridColumn<T, F> fresh{call.options.exclusive, grids, overflowed};
  if (const int threads = threads_per_column(all); threads == 1)
    pass_columns(all, fresh, true, nothing);
  else
    for (std::size_t o = 0; o < call.layout.outer; ++o)
      scan_parts<T, GridSum>(
          all, fresh, o, threads, [&](Values x) { return sum_on_grid(x, grids[o]); },
          [o](GridColumn<T, F>& column, const GridSum& before, std::size_t count) {
            column.restart(o, before, count);
          });
  work.overflowed = overflowed;
}

}  // namespace

template <> std::vector<Entry> scans<SAMESUM_FORMAT_INDEX>() {
  std::vector<Entry> all;
  for_each_method<F, "cpu">([&]<class Operation, class Order, template <class> class A>() {
    if constexpr (is_scanned<Operation, Order>) {
      static constexpr Entry entry = [] {
        Entry e = describe<Operation, Order, A, F>("cpu");
        Formats::for_each([&]<class T>() {
          if constexpr (std::is_same_v<Operation, Sum> || can_read<T, F>)
            e.code.host.any[Formats::index_of<T>()] = run<Operation, Order, A>;
        });
        return e;
      }();
      append(all, entry);
    }
  });
  for_each_order_free([&]<class Operation, class Accumulator>() {
    if constexpr (is_scan<Operation>) {
      Entry e = describe_order_free<Operation, Accumulator, F>("cpu");
      Formats::for_each([&]<class T>() {
        e.code.host.any[Formats::index_of<T>()] = Accumulator::takes_grid ? scan_on_grid<T> : scan_exactly<T>;
      });
      append(all, e);
    }
  });
  return all;
}

}  // namespace samesum::cpu
