/// Rolling methods on a CPU: a state moves along each vector. All elements are read as doubles, which hold
/// those of every format.
#include "samesum/backend/cpu/rolling/exact_sum.hpp"
#include "samesum/backend/cpu/rolling/extremum.hpp"
#include "samesum/backend/cpu/rolling/grid_sum.hpp"
#include "samesum/backend/cpu/rolling/variance.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum::cpu {
namespace {

/// The elements of a vector in memory.
struct VectorOfElements {
  const FormatInfo* format;
  const std::byte* first;
  std::size_t stride;

  /// Returns n elements from element j on, in `place` unless they are contiguous doubles.
  const double* read(std::size_t j, std::size_t n, double* place) const {
    const std::byte* const from = first + j * stride * format->bytes;
    if (format->index == Formats::index_of<fp64>() && stride == 1)
      return reinterpret_cast<const double*>(from);
    std::byte gathered[moves_at_once * sizeof(fp64)];
    if (stride != 1)
      with_format(*format, [&]<class T>() {
        const T* x = reinterpret_cast<const T*>(from);
        for (std::size_t k = 0; k < n; ++k) std::memcpy(gathered + k * sizeof(T), x + k * stride, sizeof(T));
      });
    loops_of_doubles().write_terms[format->index](Term::element, stride == 1 ? from : gathered, nullptr, n,
                                                  place, nullptr);
    return place;
  }
};

/// Moves the windows of a vector: keeps count of the elements that are not numbers, which take no part in the
/// arithmetic, and of -0.
template <class State> class RollingVector {
  using F = typename State::Format;

 public:
  RollingVector(const RollingTask& task, const VectorOfElements& x)
      : task_{task}, windows_{task.windows}, x_{x}, state_{task} {}

  /// Moves to the window before window i.
  void begin(std::size_t i) {
    others_ = {};
    visit(first_before(i), last_before(i), [&](const double* x, std::size_t n) {
      for (std::size_t k = 0; k < n; ++k) count(x[k], 1);
    });
    begin_state(i, {});
  }
  /// The number of moves to make at once from window i on, at most moves_at_once.
  std::size_t next_moves(std::size_t i) const {
    if constexpr (may_begin_again)
      return state_.next_moves(place(i));
    else
      return moves_at_once;
  }
  /// Moves to windows i … i + n - 1, n <= moves_at_once, and writes their results.
  void move(std::size_t i, std::size_t n, F* out) {
    for (const std::size_t end = i + n; i < end;) {
      const Others before = others_;
      n = std::min(end - i, next_moves(i));
      if (!move_once(i, n, out)) {
        others_ = before;
        continue;
      }
      i += n;
      out += n;
    }
  }

 private:
  /// Whether a window may have to begin again, with all its elements.
  static constexpr bool may_begin_again = requires { &State::begin; };

  /// Elements in the window that take no part in the arithmetic of sums.
  struct Others {
    std::uint64_t nans = 0, plus = 0, minus = 0, minus_zeros = 0;  ///< `plus`, `minus`: infinities
    bool none() const { return (nans | plus | minus | minus_zeros) == 0; }
  };

  void count(double x, std::uint64_t by) {
    const std::uint64_t bits = to_bits(x), magnitude = bits & ~Format<fp64>::sign_bit;
    if (magnitude > Format<fp64>::infinity)
      others_.nans += by;
    else if (magnitude == Format<fp64>::infinity)
      (bits == magnitude ? others_.plus : others_.minus) += by;
    else if (bits == Format<fp64>::sign_bit)
      others_.minus_zeros += by;
  }
  /// Replaces elements that take no part in the arithmetic.
  void clean(const double* x, std::size_t n, double* to) const {
    if constexpr (requires { State::replacement(true); }) {
      const double none = State::replacement(task_.kind == RollingKind::min);
      for (std::size_t k = 0; k < n; ++k) to[k] = windows_.skips_nan && x[k] != x[k] ? none : x[k];
    } else {
      for (std::size_t k = 0; k < n; ++k) to[k] = std::isfinite(x[k]) ? x[k] + 0.0 : 0.0;  // +0, not -0
    }
  }

  /// The elements before the moves to window i: from first_before(i) up to but not including last_before(i).
  std::size_t first_before(std::size_t i) const {
    return i + windows_.ahead > windows_.size ? i + windows_.ahead - windows_.size : 0;
  }
  std::size_t last_before(std::size_t i) const { return std::min(windows_.n, i + windows_.ahead); }
  /// The place of window i: the number of elements that have entered before, and of those that might have.
  /// Elements that are in all windows count once only.
  std::size_t place(std::size_t i) const { return i + std::min(windows_.n, windows_.ahead); }
  /// Calls use(x, n) with the elements from element j on, up to but not including `end`.
  template <class Use> void visit(std::size_t j, std::size_t end, Use use) const {
    double room[moves_at_once];
    for (; j < end; j += moves_at_once) {
      const std::size_t n = std::min(moves_at_once, end - j);
      use(x_.read(j, n, room), n);
    }
  }

  /// Moves the state to the window before window i. Some of the moves that follow may be known.
  void begin_state(std::size_t i, const Moves& next) {
    if constexpr (may_begin_again) {
      Beginning from{first_before(i), 0, 0};
      const auto see = [&](const double* x, std::size_t count) {
        for (std::size_t k = 0; k < count; ++k)
          if (std::isfinite(x[k])) from.largest = std::max(from.largest, std::abs(x[k]));
      };
      visit(from.place, last_before(i), see);
      see(next.entering, next.n);
      if (next.is_full) from.centre = next.leaving[0];
      do {
        state_.begin(from);
      } while (!enter(i));
    } else {
      enter(i);
    }
  }
  /// Adds the elements before the moves to window i, and zeros after the last element.
  bool enter(std::size_t i) {
    const std::size_t first = first_before(i), end = may_begin_again ? place(i) : last_before(i);
    if (first == end) return true;
    double room[moves_at_once], none[moves_at_once] = {};
    for (std::size_t j = first, n; j < end; j += n) {
      n = moves_at_once;
      if constexpr (may_begin_again) n = state_.next_moves(j);
      n = std::min(n, end - j);
      const std::size_t from = std::min(j, windows_.n), elements = std::min(n, windows_.n - from);
      clean(x_.read(from, elements, room), elements, room);
      std::fill(room + elements, room + n, 0.0);
      const Moves moves{room, none, n, task_.counts, true};
      if constexpr (may_begin_again) {
        if (!state_.enter(moves)) return false;
      } else {
        state_.move(moves, nullptr);
      }
    }
    return true;
  }
  /// Makes moves of the state. Returns false, and begins again, if that is necessary.
  bool move_state(std::size_t i, const Moves& m, F* out) {
    if constexpr (may_begin_again) {
      const auto visit_window = [&](std::size_t k, auto add) {
        visit(windows_.first(i + k), windows_.end(i + k), [&](const double* x, std::size_t n) {
          double room[moves_at_once];
          clean(x, n, room);
          add(room, n);
        });
      };
      if (state_.move(m, out, visit_window)) return true;
      begin_state(i, m);
      return false;
    } else {
      state_.move(m, out);
      return true;
    }
  }

  bool move_once(std::size_t i, std::size_t n, F* out) {
    const std::size_t in = i + windows_.ahead, from = std::min(in, windows_.n),
                      ins = std::min(n, windows_.n - from);
    std::size_t leaves = n;
    if constexpr (may_begin_again) leaves = state_.leaving(place(i), n);
    const double* const x = x_.read(from, ins, entering_);
    if (ins == n && in >= windows_.size && others_.none() && !loops_of_doubles().has_special(x, n))
      return move_state(i, {x, x_.read(in - windows_.size, leaves, leaving_), n, task_.counts, true}, out);
    return move_with_care(i, n, leaves, x, ins, out);
  }
  bool move_with_care(std::size_t i, std::size_t n, std::size_t leaves, const double* x, std::size_t ins,
                      F* out) {
    const std::size_t in = i + windows_.ahead,
                      none_leave = std::min(leaves, windows_.size > in ? windows_.size - in : 0),
                      end = std::max(none_leave, std::min(leaves, windows_.n + windows_.size - in));
    if (none_leave < end) {
      const double* const old =
          x_.read(in + none_leave - windows_.size, end - none_leave, leaving_ + none_leave);
      if (old != leaving_ + none_leave) std::copy_n(old, end - none_leave, leaving_ + none_leave);
    }
    std::uint64_t counts[moves_at_once];
    F instead[moves_at_once];
    bool is_other[moves_at_once];
    for (std::size_t k = 0; k < n; ++k) {
      if (k < ins) count(x[k], 1);
      if (k >= none_leave && k < end) count(leaving_[k], ~std::uint64_t{0});
      counts[k] = windows_.end(i + k) - windows_.first(i + k) - (windows_.skips_nan ? others_.nans : 0);
      is_other[k] = other_result(counts[k], instead[k]);
    }
    clean(x, ins, entering_);
    if constexpr (requires { State::replacement(true); })
      std::fill(entering_ + ins, entering_ + n, State::replacement(task_.kind == RollingKind::min));
    else
      std::fill(entering_ + ins, entering_ + n, 0.0);
    clean(leaving_ + none_leave, end - none_leave, leaving_ + none_leave);
    std::fill_n(leaving_, none_leave, 0.0);
    std::fill(leaving_ + end, leaving_ + leaves, 0.0);
    if (!move_state(i, {entering_, leaving_, n, counts, false}, out)) return false;
    // NaN stays: the finite elements of the window overflow the grid.
    for (std::size_t k = 0; k < n; ++k)
      if (is_other[k] && !is_nan_bits<F>(to_bits(out[k]))) out[k] = instead[k];
    return true;
  }
  /// Returns whether the state does not tell the result for the window, which has `count` elements.
  bool other_result(std::size_t count, F& result) const {
    constexpr bool adds = !requires { State::replacement(true); };
    if (!windows_.has_result(count, task_.kind == RollingKind::sum)) {
      result = from_bits<F>(Format<F>::canonical_nan);
      return true;
    }
    if (!adds || others_.none()) return false;
    if (const std::uint32_t flags = special_flags_of_window(); flags != 0) {
      result = from_bits<F>(task_.kind == RollingKind::variance ? Format<F>::canonical_nan
                                                                : special_bits<F>(flags));
      return true;
    }
    result = from_bits<F>(Format<F>::sign_bit);
    return State::has_minus_zero && count > 0 && others_.minus_zeros == count;
  }
  std::uint32_t special_flags_of_window() const {
    std::uint32_t flags = 0;
    if (others_.nans != 0 && !windows_.skips_nan) flags |= SumFlags::seen_nan;
    if (others_.plus != 0) flags |= SumFlags::seen_plus_infinity;
    if (others_.minus != 0) flags |= SumFlags::seen_minus_infinity;
    return flags;
  }

  const RollingTask& task_;
  const Windows& windows_;
  VectorOfElements x_;
  State state_;
  Others others_;
  double entering_[moves_at_once], leaving_[moves_at_once];
};

/// Computes the results of a call. A task is a part of the windows of one vector, or of some neighbouring
/// columns.
template <class State> void roll_vectors(const RollingTask& task, const Call& call) {
  using F = typename State::Format;
  constexpr std::size_t least_part = 1 << 16, most_columns = 16, most_places = 1 << 20;
  const Layout& l = call.layout;
  if (l.results() == 0) return;
  // Neighbouring columns share cache lines.
  const std::size_t width = std::clamp<std::size_t>(most_places / task.windows.size, 1,
                                                    std::min<std::size_t>(l.inner, most_columns)),
                    strips = (l.inner - 1) / width + 1, elements = l.results() * l.n;
  const auto threads =
      static_cast<std::size_t>(thread_count(call.options.threads, elements, elements / least_part + 1));
  // A part begins by adding the elements of its first window.
  const std::size_t wanted = threads == 1 ? l.n : elements / width / (4 * threads) + 1,
                    part = std::min(l.n, std::max({least_part, wanted, task.windows.size})),
                    parts = (l.n - 1) / part + 1, tasks = l.outer * strips * parts;
  for_each_task(static_cast<int>(threads), tasks, [&](std::size_t t) {
    const std::size_t begin = t % parts * part, end = std::min(l.n, begin + part), strip = t / parts % strips,
                      o = t / parts / strips, first = strip * width, count = std::min(width, l.inner - first);
    std::vector<RollingVector<State>> vectors;
    vectors.reserve(count);
    for (std::size_t c = 0; c < count; ++c) {
      const std::size_t place = l.first(o) + first + c;
      vectors.emplace_back(
          task, VectorOfElements{call.x.format,
                                 static_cast<const std::byte*>(call.x.data) + place * call.x.format->bytes,
                                 l.stride});
      vectors.back().begin(begin);
    }
    F* const out = static_cast<F*>(call.out.data) + o * call.out.row_stride + first;
    F results[moves_at_once];
    for (std::size_t i = begin, n; i < end; i += n) {
      n = std::min(vectors.front().next_moves(i), end - i);
      for (std::size_t c = 0; c < count; ++c) {
        if (l.inner == 1) {
          vectors[c].move(i, n, out + i);
          continue;
        }
        vectors[c].move(i, n, results);
        for (std::size_t k = 0; k < n; ++k) out[(i + k) * l.inner + c] = results[k];
      }
    }
  });
}

void roll(HostRun& work) {
  const Call& call = work.call;
  std::atomic<bool> overflowed = false;
  RollingTask task{rolling_kind(call.method->operation),
                   {call.layout.n, call.options},
                   whole(call.options.ddof),
                   call.options.grid.value_or(0),
                   &overflowed};
  std::ranges::fill(task.counts, task.windows.size);
  with_format(*call.method->format, [&]<class F>() {
    if (task.kind == RollingKind::min || task.kind == RollingKind::max)
      roll_vectors<RollingExtremum<F>>(task, call);
    else if (call.method->takes_grid)
      roll_vectors<RollingGridSum<F>>(task, call);
    else if (task.kind == RollingKind::variance)
      roll_vectors<RollingVariance<F>>(task, call);
    else
      roll_vectors<RollingExactSum<F>>(task, call);
  });
  work.overflowed = overflowed;
}

}  // namespace

std::vector<Entry> rolling_methods() { return rolling_entries<HostRun, roll>("cpu"); }

}  // namespace samesum::cpu
