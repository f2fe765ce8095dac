/// States of aggregate functions of databases: sums and statistics of groups of rows, one state a group.
#pragma once

#include <tuple>
#include <vector>

#include "samesum/accumulator/growing_sum.hpp"
#include "samesum/call/values.hpp"

namespace samesum {

/// A result of a state. `sum` and `mean` of AggregateProducts are those of x·y.
enum class AggregateResult : std::uint8_t {
  sum = 1,
  mean = 2,
  variance = 3,
  sum_of_y = 4,
  mean_of_y = 5,
  variance_of_y = 6,
  covariance = 7,
  correlation = 8,
  slope = 9,
  intercept = 10
};

/// T is what states add: an element of a format, or an integer of 64 bits.
template <class T>
concept Addable = Element<T> || std::is_same_v<T, std::int64_t>;

template <class State>
concept StateOfPairs = State::has_pairs;
template <class State>
concept StateOfElements = !State::has_pairs;

/// What all states have. State::sums() is a tuple of references to its sums.
///
/// A state is plain memory: all bytes 0, as State{} has them, is the state of no elements, and memcpy moves
/// it. Its bits of a result are those of the library's exact methods over the elements that remain, whatever
/// was added, merged and subtracted in which order; elements may be subtracted before they are added. Updates
/// never throw. One that returns another status than `ok` leaves the state with the value that it had.
template <class State> class Aggregate {
 public:
  /// Adds, or subtracts, the elements of another state, which may be this one.
  StateStatus merge(const State& other, const StateAllocator& memory = heap_allocator) noexcept {
    return merge(other, 1, memory);
  }
  StateStatus unmerge(const State& other, const StateAllocator& memory = heap_allocator) noexcept {
    return merge(other, -1, memory);
  }
  /// Adds, or subtracts, an element; for states of pairs, a pair.
  template <Addable T, StateOfElements S = State>
  StateStatus add(T x, const StateAllocator& memory = heap_allocator) noexcept {
    return self().template update<1>(x, memory);
  }
  template <Addable T, StateOfElements S = State>
  StateStatus subtract(T x, const StateAllocator& memory = heap_allocator) noexcept {
    return self().template update<-1>(x, memory);
  }
  template <Addable T, StateOfPairs S = State>
  StateStatus add(T x, T y, const StateAllocator& memory = heap_allocator) noexcept {
    return self().template update<1>(x, y, memory);
  }
  template <Addable T, StateOfPairs S = State>
  StateStatus subtract(T x, T y, const StateAllocator& memory = heap_allocator) noexcept {
    return self().template update<-1>(x, y, memory);
  }
  /// Adds element i of x, or the pair i of x and y, sign times. Without pairs, y is not read.
  template <int sign, class T>
  [[gnu::always_inline]] StateStatus update_from(const T* x, const T* y, std::size_t i,
                                                 const StateAllocator& memory) noexcept {
    if constexpr (State::has_pairs)
      return self().template update<sign>(x[i], y[i], memory);
    else
      return self().template update<sign>(x[i], memory);
  }
  /// Adds elements that lie in host memory, on the calling thread: those of x, or pairs of x and y, which
  /// have one format and one size. Complexity: linear.
  StateStatus add(const Values& x, const Values& y = {},
                  const StateAllocator& memory = heap_allocator) noexcept {
    return add_all(x, y, 1, memory);
  }
  StateStatus subtract(const Values& x, const Values& y = {},
                       const StateAllocator& memory = heap_allocator) noexcept {
    return add_all(x, y, -1, memory);
  }
  /// Adds integers, likewise.
  StateStatus add(std::span<const std::int64_t> x, std::span<const std::int64_t> y = {},
                  const StateAllocator& memory = heap_allocator) noexcept {
    return add_all(x, y, 1, memory);
  }
  StateStatus subtract(std::span<const std::int64_t> x, std::span<const std::int64_t> y = {},
                       const StateAllocator& memory = heap_allocator) noexcept {
    return add_all(x, y, -1, memory);
  }

  /// Adds element i of x, or the pair i of x and y, to *states[i], of which several may be the same; null
  /// leaves it out. Faster than adding them one by one, since the states are fetched ahead. `done` receives
  /// the number of elements that have been added or left out: all, if the status is `ok`.
  template <Addable T>
  static StateStatus add_each(std::span<State* const> states, std::span<const T> x, std::span<const T> y,
                              std::size_t& done, const StateAllocator& memory = heap_allocator) noexcept {
    constexpr std::size_t ahead = 64;  // memory takes as long as so many additions
    for (std::size_t i = 0; i < ahead && i < states.size(); ++i) fetch(states[i]);
    for (done = 0; done < states.size(); ++done) {
      if (done + ahead < states.size()) fetch(states[done + ahead]);
      State* const state = states[done];
      if (state == nullptr) continue;
      const StateStatus status = state->template update_from<1>(x.data(), y.data(), done, memory);
      if (status != StateStatus::ok) [[unlikely]]
        return status;
    }
    return StateStatus::ok;
  }

  /// Makes `copy`, whose bytes are overwritten, a state of the same elements.
  StateStatus copy_to(State& copy, const StateAllocator& memory = heap_allocator) const noexcept;
  /// Gives back the memory of the state, which is empty then. A state whose memory the caller frees
  /// otherwise, as a whole, needs no destruction.
  void destroy(const StateAllocator& memory = heap_allocator) noexcept;

  /// Number of elements, or of pairs: those that were added, less those that were subtracted.
  std::int64_t size() const;
  /// Returns a result, rounded once to a format (to nearest, ties to even).
  ///
  /// A sum has the special values of Exact::result, a mean those of mean/exact: the mean of no elements is
  /// NaN. All others are NaN if an element is NaN or infinite. A variance and a covariance have the divisor
  /// n - ddof, and are NaN unless it is positive; a correlation is NaN if x or y is constant, a line if x is.
  /// @throws std::invalid_argument if the state has no such result, or if more elements were subtracted
  ///   than added. @throws std::bad_alloc.
  Number result(AggregateResult which, const FormatInfo& format, std::uint64_t ddof = 1) const;

  /// Returns the state as bytes, with a version and a checksum. Equal counts and sums give equal bytes.
  /// @throws std::bad_alloc.
  std::vector<std::byte> serialise() const;
  /// Makes `state`, whose bytes are overwritten, the one that was serialised. It is written on success only.
  /// @throws std::invalid_argument if the bytes are damaged, or of another kind or version. std::bad_alloc.
  static StateStatus deserialise(std::span<const std::byte> bytes, State& state,
                                 const StateAllocator& memory = heap_allocator);
  /// Most bytes of a serialised state.
  static std::size_t most_serialised_bytes();

 protected:
  StateStatus merge(const State& other, int sign, const StateAllocator& memory) noexcept;

 private:
  State& self() { return static_cast<State&>(*this); }
  const State& self() const { return static_cast<const State&>(*this); }
  /// Fetches all cache lines of a state.
  static void fetch(const State* state) {
    constexpr std::size_t line = 64;
    const auto* const bytes = reinterpret_cast<const std::byte*>(state);
    for (std::size_t at = 0; at < sizeof(State); at += line) __builtin_prefetch(bytes + at, 1);
    __builtin_prefetch(bytes + sizeof(State) - 1, 1);
  }
  StateStatus add_all(const Values& x, const Values& y, int sign, const StateAllocator& memory) noexcept;
  StateStatus add_all(std::span<const std::int64_t> x, std::span<const std::int64_t> y, int sign,
                      const StateAllocator& memory) noexcept;
};

/// n and Σx.
struct AggregateSum : Aggregate<AggregateSum> {
  static constexpr std::string_view name = "aggregate_sum";  ///< in serialised states
  static constexpr bool has_pairs = false, counts_products = false;
  GrowingSum<ElementTerms> x;
  auto sums() { return std::tie(x); }
  auto sums() const { return std::tie(x); }

  /// Adds an element, sign times.
  template <int sign, class T>
  [[gnu::always_inline]] StateStatus update(T element, const StateAllocator& memory) noexcept {
    return update_at_once<sign>(element) ? StateStatus::ok : update_slowly(element, sign, memory);
  }
  /// Returns false, and does nothing, if that takes more than a few instructions.
  template <int sign, class T> [[gnu::always_inline]] bool update_at_once(T element) noexcept {
    if (!x.can_count<sign>() || x.is_grown()) return false;
    if (is_zero(element)) [[unlikely]]
      return x.count_at_once<sign>(), true;
    const ExactAddend a = ExactAddend::of(element);
    if (!a.is_common || !x.can_add(a.exponent, 64)) [[unlikely]]
      return false;
    x.add_at_once(a.negative != (sign < 0), a.magnitude, a.exponent);
    x.count_at_once<sign>();
    return true;
  }

 private:
  /// Whether an element is 0, but not -0.
  template <class T> static bool is_zero(T element) {
    if constexpr (std::is_integral_v<T>)
      return element == 0;
    else
      return to_bits(element) == 0;
  }
  /// Takes the element, rather than what has been made of it, which then stays in registers.
  template <class T>
  [[gnu::noinline]] StateStatus update_slowly(T element, int sign, const StateAllocator& memory) noexcept {
    return update_slowly(ExactAddend::of(element), TermCounts::of(element), sign, memory);
  }
  StateStatus update_slowly(const ExactAddend& a, const TermCounts& counts, int sign,
                            const StateAllocator& memory) noexcept;
};

/// n and Σxy, the dot product.
struct AggregateProducts : Aggregate<AggregateProducts> {
  static constexpr std::string_view name = "aggregate_products";
  static constexpr bool has_pairs = true, counts_products = true;
  GrowingSum<ProductTerms> xy;
  auto sums() { return std::tie(xy); }
  auto sums() const { return std::tie(xy); }

  template <int sign, class T> StateStatus update(T a, T b, const StateAllocator& memory) noexcept {
    if constexpr (std::is_integral_v<T>)
      if (a == 0 || b == 0) a = b = 0;  // no product of integers is -0
    return update(ExactAddend::of(a), ExactAddend::of(b), TermCounts::of(a), TermCounts::of(b), sign, memory);
  }

  /// Whether a product of finite elements is -0.
  template <class T> static bool is_minus_zero(T a, T b) {
    const BitsOf<T> sign = Format<T>::sign_bit, of_a = to_bits(a), of_b = to_bits(b);
    const bool is_zero = BitsOf<T>(of_a & ~sign) == 0 || BitsOf<T>(of_b & ~sign) == 0;
    return is_zero && ((of_a ^ of_b) & sign) != 0;
  }

 private:
  StateStatus update(const ExactAddend& a, const ExactAddend& b, const TermCounts& of_a,
                     const TermCounts& of_b, int sign, const StateAllocator& memory) noexcept;
};

/// n, Σx and Σx².
struct AggregateMoments : Aggregate<AggregateMoments> {
  static constexpr std::string_view name = "aggregate_moments";
  static constexpr bool has_pairs = false, counts_products = false;
  GrowingSum<ElementTerms> x;
  GrowingSum<ProductTerms> xx;
  auto sums() { return std::tie(x, xx); }
  auto sums() const { return std::tie(x, xx); }

  template <int sign, class T> StateStatus update(T element, const StateAllocator& memory) noexcept {
    return update(ExactAddend::of(element), TermCounts::of(element), sign, memory);
  }

 private:
  StateStatus update(const ExactAddend& a, const TermCounts& counts, int sign,
                     const StateAllocator& memory) noexcept;
};

/// n, Σx, Σy, Σx², Σxy and Σy².
struct AggregateComoments : Aggregate<AggregateComoments> {
  static constexpr std::string_view name = "aggregate_comoments";
  static constexpr bool has_pairs = true, counts_products = false;
  GrowingSum<ElementTerms> x, y;
  GrowingSum<ProductTerms> xx, xy, yy;
  auto sums() { return std::tie(x, y, xx, xy, yy); }
  auto sums() const { return std::tie(x, y, xx, xy, yy); }

  template <int sign, class T> StateStatus update(T a, T b, const StateAllocator& memory) noexcept {
    return update(ExactAddend::of(a), ExactAddend::of(b), TermCounts::of(a), TermCounts::of(b), sign, memory);
  }

 private:
  StateStatus update(const ExactAddend& a, const ExactAddend& b, const TermCounts& of_a,
                     const TermCounts& of_b, int sign, const StateAllocator& memory) noexcept;
};

static_assert(sizeof(AggregateSum) == 32 && sizeof(AggregateProducts) == 40 &&
              sizeof(AggregateMoments) == 72 && sizeof(AggregateComoments) == 184);

}  // namespace samesum
