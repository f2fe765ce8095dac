/// What a partial needs to know about the states of a method: how they merge, finish, and become bytes.
#pragma once

#include <bit>
#include <cstring>

#include "samesum/base/serial_form.hpp"
#include "samesum/operation/grid_reduction.hpp"
#include "samesum/order/orders.hpp"

namespace samesum {

/// The states of a method, as functions on their bytes. A node of the tree is `lanes` states.
struct PartialForm {
  /// Elements per leaf; `unbounded` for serial; 0 if the order is free, so that there is only one state.
  std::size_t leaf = 0;
  std::size_t lanes = 1;  ///< of a canonical order, whose leaf is one row; 1 for other orders
  /// Whether subtrees are merged from the first, largest one on, and not from the last.
  bool from_left = false;
  std::size_t state_bytes = 0;
  void (*merge)(std::byte* state, const std::byte* other) = nullptr;
  /// Writes the result of n elements; `state` is null if n = 0.
  void (*finish)(ReducerOptions options, const std::byte* state, std::uint64_t n, void* out) = nullptr;
  void (*write)(const std::byte* state, SerialWriter& out) = nullptr;
  /// Reads the state of `elements` elements from element `first` on. Returns false if no elements have it.
  bool (*read)(SerialReader& in, std::uint64_t first, std::uint64_t elements, std::byte* state) = nullptr;
  /// Adds n elements, numbers of the method's format, to the state of `count` elements in the order serial;
  /// null for other orders. y is null for one input.
  void (*extend)(std::byte* state, std::uint64_t count, const void* x, const void* y,
                 std::size_t n) = nullptr;
  /// Adds `first` to the index in the state; null if it has none.
  void (*move_index)(std::byte* state, std::uint64_t first) = nullptr;
  /// Whether the sum of n elements overflows the given grid; null if the method has no grid.
  bool (*overflows)(const std::byte* state, std::uint64_t n) = nullptr;
};

/// Returns the state with the differences between backends removed.
template <class State> State canonical(const State& state) {
  if constexpr (requires { state.canonical(); }) return state.canonical();
  return state;
}

/// A reducer and the one that may replace its results. A partial cannot read its elements again, so it keeps
/// the states of both.
template <class Reducer> struct WithReplacement {
  using Format = typename Reducer::Format;
  using Replacement = decltype(std::declval<const Reducer&>().replacement());
  struct State {
    typename Reducer::State replaced;
    typename Replacement::State replacing;
    State canonical() const { return {samesum::canonical(replaced), replacing}; }
  };
  Reducer reducer;
  Replacement replacement;

  void merge(State& state, const State& other) const {
    reducer.merge(state.replaced, other.replaced);
    replacement.merge(state.replacing, other.replacing);
  }
  void finish(const State& state, std::uint64_t n, std::size_t at, void* out) const {
    reducer.finish(state.replaced, n, at, out);
    replacement.finish(state.replacing, n, at, out);
  }
};

/// Whether the results of a reducer may be replaced by those of another.
template <class Operation, template <class> class A, class F> constexpr bool has_replacement() {
  constexpr auto reducer = Operation::template reducer<A, F>({});
  if constexpr (requires { reducer.replacement(); })
    return reducer.mean;
  else
    return false;
}

/// The reducer whose states a partial keeps.
template <class Operation, template <class> class A, class F>
constexpr auto partial_reducer(ReducerOptions options) {
  const auto reducer = Operation::template reducer<A, F>(options);
  if constexpr (has_replacement<Operation, A, F>())
    return WithReplacement<std::remove_const_t<decltype(reducer)>>{reducer, reducer.replacement()};
  else
    return reducer;
}

/// Visits the fields of a state: those that it names, or else the numbers that it consists of.
template <class Carrier, class State, class Visit> void visit_state(State& state, Visit visit) {
  if constexpr (requires { State::visit_fields(state, visit); }) {
    State::visit_fields(state, visit);
  } else {
    using Numbers = std::array<Carrier, sizeof(State) / sizeof(Carrier)>;
    auto numbers = std::bit_cast<Numbers>(state);
    for (Carrier& x : numbers) visit(x);
    if constexpr (!std::is_const_v<State>) state = std::bit_cast<State>(numbers);
  }
}

/// Puts a number as its bit pattern, any NaN as the canonical one.
template <class Field> void put_field(SerialWriter& out, Field x) {
  if constexpr (Formats::contains<Field>)
    out.put((to_bits(x) & ~Format<Field>::sign_bit) > Format<Field>::infinity ? Format<Field>::canonical_nan
                                                                              : to_bits(x));
  else
    out.put(static_cast<std::make_unsigned_t<Field>>(x));
}
template <class Field> void get_field(SerialReader& in, Field& x) {
  if constexpr (Formats::contains<Field>)
    x = from_bits<Field>(in.get<BitsOf<Field>>());
  else
    x = static_cast<Field>(in.get<std::make_unsigned_t<Field>>());
}

/// The functions of PartialForm for a method with an order or an accumulator.
template <class Operation, class Order, template <class> class A, class F> struct PartialFunctions {
  using Reducer = decltype(partial_reducer<Operation, A, F>({}));
  using State = typename Reducer::State;
  using Shape = typename Order::Shape;
  static constexpr bool is_serial = Operation::has_order && Shape::leaf == unbounded && Shape::lanes == 1;
  static constexpr bool is_canonical = Operation::has_order && Shape::leaf == unbounded && !is_serial;

  static_assert(alignof(State) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "samesum: states lie in allocated bytes");

  static State& at(std::byte* state) { return *reinterpret_cast<State*>(state); }
  static const State& at(const std::byte* state) { return *reinterpret_cast<const State*>(state); }

  static void merge(std::byte* state, const std::byte* other) {
    partial_reducer<Operation, A, F>({}).merge(at(state), at(other));
  }
  static void finish(ReducerOptions options, const std::byte* state, std::uint64_t n, void* out) {
    partial_reducer<Operation, A, F>(options).finish(state ? at(state) : State{}, n, 0, out);
  }
  static void write(const std::byte* state, SerialWriter& out) {
    const State same = canonical(at(state));
    visit_state<CarrierOf<F>>(same, [&out](auto field) { put_field(out, field); });
  }
  static bool read(SerialReader& in, std::uint64_t first, std::uint64_t elements, std::byte* state) {
    new (state) State{};
    visit_state<CarrierOf<F>>(at(state), [&in](auto& field) { get_field(in, field); });
    if constexpr (requires(State & s) { s.restored(first, elements); })
      return at(state).restored(first, elements);
    return true;
  }
  static void extend(std::byte* state, std::uint64_t count, const void* x, const void* y, std::size_t n) {
    const auto reducer = partial_reducer<Operation, A, F>({});
    const auto *of_x = static_cast<const F*>(x), *of_y = static_cast<const F*>(y);
    const auto item = [&](std::size_t i) {
      return reducer.item(
          InputElement<F>{Scalar<F>::of(of_x[i]), of_y ? Scalar<F>::of(of_y[i]) : Scalar<F>::zero(), 0, 0});
    };
    State sum = count > 0 ? at(state) : reducer.start(item(0));
    for (std::size_t i = count > 0 ? 0 : 1; i < n; ++i) reducer.add(sum, item(i), count + i);
    at(state) = sum;
  }
  static void move_index(std::byte* state, std::uint64_t first) { at(state).move_index(first); }

  static constexpr PartialForm form = [] {
    PartialForm f{0, 1, false, sizeof(State), merge, finish, write, read, nullptr, nullptr, nullptr};
    if (Operation::has_order) f.leaf = is_canonical ? Shape::lanes : Shape::leaf;
    if (is_canonical) f.lanes = Shape::lanes;
    f.from_left = Operation::has_order && requires { Shape::merges_from_left; };
    if constexpr (is_serial) f.extend = extend;
    if constexpr (requires(State s) { s.move_index(0); }) f.move_index = move_index;
    return f;
  }();
};

/// The functions of PartialForm for an exact method.
template <class Operation, class F> struct ExactPartialFunctions {
  static constexpr ExactKind kind = exact_kind<Operation>;

  static ExactDigits& at(std::byte* state) { return *reinterpret_cast<ExactDigits*>(state); }
  static const ExactDigits& at(const std::byte* state) {
    return *reinterpret_cast<const ExactDigits*>(state);
  }
  static void merge(std::byte* state, const std::byte* other) { at(state).merge(at(other)); }
  static void finish(ReducerOptions options, const std::byte* state, std::uint64_t n, void* out) {
    (state ? at(state) : ExactDigits{}).state().finish(kind, format_info<F>(), n, options.ddof, 0, out);
  }
  static void write(const std::byte* state, SerialWriter& out) { write_digits(at(state), kind, out); }
  static bool read(SerialReader& in, std::uint64_t, std::uint64_t, std::byte* state) {
    return read_digits(in, kind, *new (state) ExactDigits);
  }
  static constexpr PartialForm form{0,       1,       false,  sizeof(ExactDigits), merge, finish, write, read,
                                    nullptr, nullptr, nullptr};
};

/// The functions of PartialForm for a method on a grid, which must be given.
template <class Operation, class F> struct GridPartialFunctions {
  static constexpr ExactKind kind = exact_kind<Operation>;

  static GridSum& at(std::byte* state) { return *reinterpret_cast<GridSum*>(state); }
  static const GridSum& at(const std::byte* state) { return *reinterpret_cast<const GridSum*>(state); }

  static void merge(std::byte* state, const std::byte* other) { at(state).merge(at(other)); }
  static void finish(ReducerOptions options, const std::byte* state, std::uint64_t n, void* out) {
    finish_on_grid<F>(state ? at(state) : GridSum{}, kind.mean, n, options.grid, 0, out);
  }
  static bool overflows(const std::byte* state, std::uint64_t n) {
    return at(state).overflows(n, grid_word_bits<F>);
  }
  static void write(const std::byte* state, SerialWriter& out) {
    const GridSum& sum = at(state);
    for (const std::uint64_t word : sum.units.word) out.put(word);
    out.put(static_cast<std::uint8_t>(sum.flags));
    out.put(static_cast<std::uint8_t>(sum.bits));
  }
  /// No elements have a sum beyond that of as many terms of 2^bits units.
  static bool read(SerialReader& in, std::uint64_t, std::uint64_t elements, std::byte* state) {
    GridSum& sum = *new (state) GridSum;
    for (std::uint64_t& word : sum.units.word) word = in.get<std::uint64_t>();
    sum.flags = in.get<std::uint8_t>();
    sum.bits = in.get<std::uint8_t>();
    constexpr std::uint32_t special =
        Exact::seen_nan | Exact::seen_plus_infinity | Exact::seen_minus_infinity;
    const bool is_small =
        sum.bits > most_term_bits(elements) || sum.units.magnitude().wide() <= Wide{elements} << sum.bits;
    return (sum.flags & ~special) == 0 && sum.bits <= GridTerm::beyond && is_small;
  }
  static constexpr PartialForm form{0,     1,    false,   sizeof(GridSum), merge,    finish,
                                    write, read, nullptr, nullptr,         overflows};
};

}  // namespace samesum
