/// Reference implementations of the rolling methods: each window is reduced alone.
#include "samesum/backend/reference/methods.hpp"
#include "samesum/call/windows.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/operation/grid_reduction.hpp"

namespace samesum::reference {
namespace {

/// Writes the result of the elements of a window, as the reduction of these elements does.
template <class T, class F>
void reduce_window(RollingKind kind, const std::vector<T>& x, HostRun& work, F& out) {
  const Options& options = work.call.options;
  if (kind == RollingKind::min || kind == RollingKind::max) {
    using Key = KeyOf<F>;
    Extremum<F> state;
    for (const T element : x)
      state.merge({Key::of(convert<CarrierOf<F>>(convert<F>(element)), kind == RollingKind::min)});
    out = Key::number(state.key, kind == RollingKind::min);
  } else if (work.call.method->takes_grid) {
    GridSum sum;
    for (const T element : x) sum.add(element, *options.grid);
    const bool mean = kind == RollingKind::mean;
    if (!finish_on_grid<F>(sum, mean, x.size(), *options.grid, 0, &out)) work.overflowed = true;
  } else {
    const bool variance = kind == RollingKind::variance;
    ExactBatchState state;
    for (const T element : x) {
      state.terms.add(Term::element, element, T{});
      if (variance) state.squares.add(Term::square, element, T{});
    }
    F results[2];
    state.finish({Term::element, kind == RollingKind::mean, variance}, format_info<F>(), x.size(),
                 options.ddof, 0, results);
    out = results[variance];
  }
}

template <class T, class F> void roll_vectors(HostRun& work) {
  const Call& call = work.call;
  const Layout& l = call.layout;
  const RollingKind kind = rolling_kind(call.method->operation);
  const Windows windows{l.n, call.options};
  const auto* x = static_cast<const T*>(call.x.data);
  auto* out = static_cast<F*>(call.out.data);
  std::vector<T> elements;
  for (std::size_t o = 0; o < l.outer; ++o)
    for (std::size_t i = 0; i < l.inner; ++i)
      for (std::size_t k = 0; k < l.n; ++k) {
        elements.clear();
        for (std::size_t j = windows.first(k); j < windows.end(k); ++j) {
          const T element = x[l.first(o) + j * l.inner + i];
          const bool is_nan = convert<double>(element) != convert<double>(element);
          if (!(is_nan && windows.skips_nan)) elements.push_back(element);
        }
        F& result = out[o * call.out.row_stride + k * l.inner + i];
        if (windows.has_result(elements.size(), kind == RollingKind::sum))
          reduce_window(kind, elements, work, result);
        else
          result = from_bits<F>(Format<F>::canonical_nan);
      }
}

void roll(HostRun& work) {
  with_format(*work.call.x.format, [&]<class T>() {
    with_format(*work.call.method->format, [&]<class F>() { roll_vectors<T, F>(work); });
  });
}

}  // namespace

std::vector<Entry> rolling_methods() { return rolling_entries<HostRun, roll>("reference"); }

}  // namespace samesum::reference
