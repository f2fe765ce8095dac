/// Definitions of integers.hpp: walks of the axes around the loops of integer_loops.hpp.
#include "samesum/backend/cpu/integers/integers.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>

#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {
namespace {

/// An axis, with the distance of neighbours in elements, in flags, and in results; or, if it is reduced, in
/// indices.
struct Axis {
  std::size_t n;
  std::ptrdiff_t stride, where, out;
};
using Axes = std::vector<Axis>;

/// The places of an element, of its flag, and of its result or index.
struct Place {
  std::ptrdiff_t x = 0, where = 0, out = 0;
  Place at(const Axis& axis, std::size_t i) const {
    const auto k = static_cast<std::ptrdiff_t>(i);
    return {x + k * axis.stride, where + k * axis.where, out + k * axis.out};
  }
};

/// Calls visit(place) for each place of the axes, which begin at `place`; the last axis changes fastest.
template <class Visit> void for_each_place(const Axes& axes, Place place, Visit visit, std::size_t from = 0) {
  if (from == axes.size()) return visit(place);
  for (std::size_t i = 0; i < axes[from].n; ++i)
    for_each_place(axes, place.at(axes[from], i), visit, from + 1);
}

std::size_t size_of(const Axes& axes) {
  std::size_t n = 1;
  for (const Axis& axis : axes) n *= axis.n;
  return n;
}

/// How far apart neighbours along an axis are. Repeated elements are farthest, so that others are read
/// together.
std::size_t distance(const Axis& axis) { return static_cast<std::size_t>(std::abs(axis.stride)) - 1; }

/// Sorts axes by distance, the largest first, and joins those that are one. There is at least one.
void simplify(Axes& axes) {
  std::ranges::stable_sort(axes, std::greater{}, distance);
  Axes joined;
  for (const Axis& a : axes) {
    const auto n = static_cast<std::ptrdiff_t>(a.n);
    if (!joined.empty() && joined.back().stride == n * a.stride && joined.back().where == n * a.where &&
        joined.back().out == n * a.out)
      joined.back() = {joined.back().n * a.n, a.stride, a.where, a.out};
    else
      joined.push_back(a);
  }
  if (joined.empty()) joined.push_back({1, 0, 0, 0});
  axes = std::move(joined);
}

/// Computation of a walk: the state of a result, how it takes in integers, and how it is written.
template <class T, class Sum> struct SumOf {
  using State = Int128;
  using Result = Sum;
  static constexpr bool needs_index = false;
  const IntegerLoops& loops;
  T stand_in = 0;
  State start() const { return {}; }
  bool is_final(const State&, std::ptrdiff_t) const { return false; }
  void take(State& state, const T* x, std::size_t n, std::ptrdiff_t, std::ptrdiff_t) const {
    state.add(loops.sum(x, n));
  }
  void take_columns(State* states, const IntegerRows& rows) const { loops.sum_columns(rows, states); }
  /// Returns whether the sum is beyond its type.
  template <class FirstOf> bool write(const State& sum, FirstOf, Result& out) const {
    out = static_cast<Result>(sum.word[0]);
    return sum != Int128::of(static_cast<Wide>(out));
  }
};

/// The largest integer that a value of the type, or of a boolean, can be; or the smallest.
template <class T> T limit(IntegerType type, bool smallest) {
  if (type == IntegerType::boolean) return smallest ? 0 : 1;
  return smallest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <class T> struct IntegerExtremum {
  using State = T;
  using Result = T;
  static constexpr bool needs_index = false;
  const IntegerLoops& loops;
  bool smallest;
  T stand_in, last;  ///< the limits: what every integer replaces, and what none does
  State start() const { return stand_in; }
  bool is_final(const State& state, std::ptrdiff_t) const { return state == last; }
  void take(State& state, const T* x, std::size_t n, std::ptrdiff_t, std::ptrdiff_t) const {
    loops.extremum[smallest](x, n, &state);
  }
  void take_columns(State* states, const IntegerRows& rows) const {
    loops.extremum_columns[smallest](rows, states);
  }
  /// Returns whether there is no extremum.
  template <class FirstOf> bool write(State state, FirstOf first_of, Result& out) const {
    out = state;
    return state == stand_in && first_of() < 0;
  }
};

template <class T> struct IndexOf {
  struct State {
    T best;
    std::ptrdiff_t index = std::numeric_limits<std::ptrdiff_t>::max();
  };
  using Result = std::int64_t;
  static constexpr bool needs_index = true;
  const IntegerLoops& loops;
  bool smallest;
  T stand_in, last;
  bool is_boolean = last == 1 || stand_in == 1;  ///< then the first elements often tell
  State start() const { return {stand_in}; }
  bool is_final(const State& state, std::ptrdiff_t next) const {
    return state.best == last && state.index < next;
  }
  void take(State& state, const T* x, std::size_t n, std::ptrdiff_t index, std::ptrdiff_t step) const {
    T best = stand_in;
    if (is_boolean && loops.find(x, n, &last) < n)
      best = last;
    else
      loops.extremum[smallest](x, n, &best);
    const bool is_better = smallest ? best < state.best : best > state.best;
    if (!is_better && (best != state.best || state.index < index)) return;
    const std::ptrdiff_t found = index + step * static_cast<std::ptrdiff_t>(loops.find(x, n, &best));
    if (is_better || found < state.index) state = {best, found};
  }
  /// Returns whether there is no extremum.
  template <class FirstOf> bool write(State state, FirstOf first_of, Result& out) const {
    // What stands in for others is first only if all that take part are equal to it.
    out = state.best == stand_in ? first_of() : state.index;
    return out < 0;
  }
};

/// Reduces an array of integers of type T.
template <class T, class Reduction> class Walk {
  using State = typename Reduction::State;
  using Result = typename Reduction::Result;

 public:
  Walk(const IntegerArray& array, Reduction reduction, void* out)
      : reduction_{reduction},
        x_{static_cast<const T*>(array.x)},
        where_{array.where},
        out_{static_cast<Result*>(out)} {
    std::ptrdiff_t results = 1, indices = 1;
    for (auto a = array.axes.rbegin(); a != array.axes.rend(); ++a) {
      std::ptrdiff_t& step = a->reduced ? indices : results;
      if (a->n != 1)
        (a->reduced ? reduced_ : kept_)
            .push_back({a->n, a->stride, where_ ? a->where_stride : 0,
                        a->reduced && !Reduction::needs_index ? 0 : step});
      step *= static_cast<std::ptrdiff_t>(a->n);
    }
    std::ranges::reverse(reduced_);
    for (Axis& a : kept_) turn(a);
    for (Axis& a : reduced_)
      if (!Reduction::needs_index) turn(a);
    by_index_ = reduced_;
    simplify(reduced_);
    simplify(kept_);
  }

  /// Returns whether a result is not valid.
  bool run() {
    if (size_of(kept_) == 0) return false;
    if (size_of(reduced_) == 0)
      for_each_place(kept_, origin_, [&](Place to) { write(reduction_.start(), to); });
    else if (distance(reduced_.back()) < distance(kept_.back()) && reduced_.back().n >= short_line)
      reduce_lines();
    else
      reduce_columns();
    return failed_;
  }

 private:
  static constexpr std::size_t short_line = 16;
  static constexpr std::size_t bytes = 16384,
                               room = bytes / sizeof(T);  ///< of a block, which fits into the cache
  static constexpr std::size_t most_columns = 1024, most_rows = std::size_t{1} << 31;

  /// Turns an axis around if its elements are in descending order.
  void turn(Axis& axis) {
    if (axis.stride >= 0 || axis.n == 0) return;
    origin_ = origin_.at(axis, axis.n - 1);
    axis = {axis.n, -axis.stride, -axis.where, -axis.out};
  }
  /// Whether elements along an axis are read where they are.
  bool is_direct(const Axis& axis) const { return axis.stride == 1 && !where_; }

  /// The index of the first element of a result that takes part; -1 if there is none.
  std::ptrdiff_t first_of(Place result) const {
    if (!where_) return size_of(by_index_) > 0 ? 0 : -1;
    std::ptrdiff_t first = -1, index = 0;
    for_each_place(by_index_, result, [&](Place p) {
      if (first < 0 && where_[p.where]) first = index;
      ++index;
    });
    return first;
  }
  void write(const State& state, Place to) {
    failed_ |= reduction_.write(
        state, [&] { return first_of(to); }, out_[to.out]);
  }

  /// Copies a block of rows and columns to `to`, where neighbours along the axes are `across` and `along`
  /// apart. Elements that take no part are replaced.
  void fill(T* to, Place from, const Axis& rows, std::size_t across, const Axis& columns,
            std::size_t along) const {
    for (std::size_t r = 0; r < rows.n; ++r, to += across) {
      const Place p = from.at(rows, r);
      const T* const x = x_ + p.x;
      if (where_ && along == 1 && columns.stride == 1 && columns.where == 1) {
        reduction_.loops.keep(x, where_ + p.where, columns.n, &reduction_.stand_in, to);
      } else {
        for (std::size_t c = 0; c < columns.n; ++c) {
          const auto k = static_cast<std::ptrdiff_t>(c);
          const bool takes = !where_ || where_[p.where + k * columns.where];
          to[c * along] = takes ? x[k * columns.stride] : reduction_.stand_in;
        }
      }
    }
  }

  static Axis part_of(Axis axis, std::size_t n) {
    axis.n = n;
    return axis;
  }

  /// Reduces contiguous elements of each result together, or a block of others that is copied.
  void reduce_lines() {
    const Axis line = reduced_.back();
    const Axes others{reduced_.begin(), reduced_.end() - 1};
    for_each_place(kept_, origin_, [&](Place to) {
      State state = reduction_.start();
      for_each_place(others, {to.x, to.where, 0}, [&](Place from) {
        for (std::size_t i = 0, n; i < line.n; i += n) {
          n = std::min(line.n - i, room);
          const Place first = from.at(line, i);
          if (reduction_.is_final(state, first.out)) break;
          const T* x = x_ + first.x;
          if (!is_direct(line)) {
            fill(block_.data(), first, {1, 0, 0, 0}, 0, part_of(line, n), 1);
            x = block_.data();
          }
          reduction_.take(state, x, n, first.out, line.out);
        }
      });
      write(state, to);
    });
  }

  /// Reduces neighbouring columns together.
  void reduce_columns() {
    const Axis columns = kept_.back(), rows = reduced_.back();
    const Axes outer{kept_.begin(), kept_.end() - 1}, others{reduced_.begin(), reduced_.end() - 1};
    const std::size_t together = Reduction::needs_index ? 128 / sizeof(T) : most_columns;
    std::vector<State> states(std::min(columns.n, together));
    for_each_place(outer, origin_, [&](Place first) {
      for (std::size_t c = 0, count; c < columns.n; c += count) {
        count = std::min(columns.n - c, together);
        const Place to = first.at(columns, c);
        std::fill_n(states.begin(), count, reduction_.start());
        for_each_place(others, {to.x, to.where, 0},
                       [&](Place from) { take_rows(states.data(), from, rows, part_of(columns, count)); });
        for (std::size_t k = 0; k < count; ++k) write(states[k], to.at(columns, k));
      }
    });
  }
  void take_rows(State* states, Place from, const Axis& rows, const Axis& columns) {
    const bool in_place = !Reduction::needs_index && is_direct(columns);
    const std::size_t most = in_place ? most_rows : room / columns.n;
    for (std::size_t r = 0, n; r < rows.n; r += n) {
      n = std::min(rows.n - r, most);
      const Place first = from.at(rows, r);
      if constexpr (Reduction::needs_index) {
        fill(block_.data(), first, part_of(rows, n), 1, columns, n);
        for (std::size_t c = 0; c < columns.n; ++c)
          reduction_.take(states[c], block_.data() + c * n, n, first.out, rows.out);
      } else if (in_place) {
        reduction_.take_columns(states, {x_ + first.x, rows.stride, n, columns.n});
      } else {
        fill(block_.data(), first, part_of(rows, n), columns.n, columns, 1);
        reduction_.take_columns(states,
                                {block_.data(), static_cast<std::ptrdiff_t>(columns.n), n, columns.n});
      }
    }
  }

  Reduction reduction_;
  const T* x_;
  const std::uint8_t* where_;
  Result* out_;
  Axes kept_, reduced_, by_index_;
  Place origin_;
  std::vector<T> block_ = std::vector<T>(room);
  bool failed_ = false;
};

// An IntegerType is the index of its type among IntegerTypes, of its name, and, if it is the last one,
// boolean.
static_assert([] {
  bool agree = integer_type_names.size() == IntegerTypes::size + 1 &&
               static_cast<std::size_t>(IntegerType::boolean) == IntegerTypes::size;
  IntegerTypes::for_each([&]<class T>() {
    const std::string_view name = integer_type_names[IntegerTypes::index_of<T>()],
                           width = sizeof(T) == 1   ? "8"
                                   : sizeof(T) == 2 ? "16"
                                   : sizeof(T) == 4 ? "32"
                                                    : "64";
    agree = agree && name.starts_with(std::is_signed_v<T> ? "int" : "uint") && name.ends_with(width);
  });
  return agree;
}());

/// Calls visit.operator()<T>(loops) for the type of an array.
template <class Visit> bool with_type(IntegerType type, Visit visit) {
  bool result = false;
  const auto index =
      type == IntegerType::boolean ? IntegerTypes::index_of<std::uint8_t>() : static_cast<std::size_t>(type);
  IntegerTypes::for_each([&]<class T>() {
    if (IntegerTypes::index_of<T>() == index)
      result = visit.template operator()<T>(kernels(Formats::index_of<fp64>()).integers[index]);
  });
  return result;
}

template <template <class> class Reduction> bool reduce(const IntegerArray& array, bool smallest, void* out) {
  return with_type(array.type, [&]<class T>(const IntegerLoops& loops) {
    const Reduction<T> reduction{loops, smallest, limit<T>(array.type, !smallest),
                                 limit<T>(array.type, smallest)};
    return Walk<T, Reduction<T>>{array, reduction, out}.run();
  });
}

}  // namespace

bool sum_integers(const IntegerArray& array, void* out) {
  return with_type(array.type, [&]<class T>(const IntegerLoops& loops) {
    if (std::is_signed_v<T> || array.type == IntegerType::boolean)
      return Walk<T, SumOf<T, std::int64_t>>{array, {loops}, out}.run();
    return Walk<T, SumOf<T, std::uint64_t>>{array, {loops}, out}.run();
  });
}

bool extrema_of_integers(const IntegerArray& array, bool smallest, void* out) {
  return reduce<IntegerExtremum>(array, smallest, out);
}

bool indices_of_extrema(const IntegerArray& array, bool smallest, std::int64_t* out) {
  return reduce<IndexOf>(array, smallest, out);
}

}  // namespace samesum::cpu
