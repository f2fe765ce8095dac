/// States of aggregate functions take in arrays by the loops of exact sums.
#include "samesum/operation/aggregates.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "samesum/accumulator/canonical_digits.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/base/environment.hpp"

namespace samesum {
namespace {

/// Fewer elements are added one by one, and more in blocks; those of a sum, from `many` on, at once.
constexpr std::size_t few = 96, block = 2048, many = 2 * block;

/// Memory for a state that grows, on the stack. It suffices for every state.
class StackMemory {
 public:
  StateAllocator allocator() {
    return {[](void* memory, std::size_t bytes) { return static_cast<StackMemory*>(memory)->take(bytes); },
            [](void*, void*, std::size_t) {}, this};
  }

 private:
  void* take(std::size_t bytes) {
    used_ += bytes;
    return room_ + used_ - bytes;
  }

  alignas(8)
      std::byte room_[2 * GrowingSum<ElementTerms>::block_bytes + 3 * GrowingSum<ProductTerms>::block_bytes];
  std::size_t used_ = 0;
};

using SumInWords = std::optional<std::array<double, 3>>;

/// The sum of arrays, which is then merged with a state.
template <class State> class Chunk {
 public:
  void add(const Values& x, const Values& y) {
    with_format(*x.format, [&]<class T>() {
      add(static_cast<const T*>(x.data), static_cast<const T*>(y.data), x.size);
    });
  }
  void add(std::span<const std::int64_t> x, std::span<const std::int64_t> y) {
    add(x.data(), y.data(), x.size());
  }
  StateStatus merge_to(State& state, int sign, const StateAllocator& memory) const {
    return sign > 0 ? state.merge(sum_, memory) : state.unmerge(sum_, memory);
  }

 private:
  template <class T> void add(const T* x, const T* y, std::size_t n) {
    if (n < few) return add_one_by_one(x, y, n);
    if constexpr (std::is_same_v<State, AggregateSum> && Element<T>)
      if (n >= many && add_sum(std::span{x, n})) return;
    for (std::size_t i = 0; i < n; i += block)
      add_block(x + i, State::has_pairs ? y + i : nullptr, std::min(n - i, block));
  }
  template <class T> void add_one_by_one(const T* x, const T* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) (void)sum_.template update_from<1>(x, y, i, memory_);
  }

  /// Adds a sum of n elements in words.
  template <class Terms>
  void add_words(GrowingSum<Terms>& sum, const TermCounts& counts, const SumInWords& words) {
    add_term(sum, counts, {});
    for (const double word : *words) {
      const ExactAddend a = ExactAddend::of(word);
      if (a.magnitude == 0) continue;
      if (sum.can_add(a.exponent, 64))
        sum.add_at_once(a.negative, Wide{a.magnitude}, a.exponent);
      else
        add_term(sum, {}, {a.negative, {&a.magnitude, 1}, a.exponent});
    }
  }
  /// Adds a term to the sum of the arrays, whose memory suffices.
  template <class Terms>
  void add_term(GrowingSum<Terms>& sum, const TermCounts& counts, const WideTerm& term) {
    if (sum.make_room(counts, term, 1, memory_) == StateStatus::ok) sum.add(counts, term, 1);
  }

  template <class T> void add_block(const T* x, const T* y, std::size_t n) {
    const Values first{format_info<T>(), x, n}, second{format_info<T>(), y, n};
    if constexpr (std::is_same_v<State, AggregateSum>) {
      if (!add_sum(first)) add_one_by_one(x, y, n);
    } else if constexpr (std::is_same_v<State, AggregateProducts>) {
      const SumInWords words = cpu::sum_in_words(first, second);
      if (!words) return add_one_by_one(x, y, n);
      TermCounts counts;
      for (std::size_t i = 0; i < n; ++i) counts.minus_zeros += AggregateProducts::is_minus_zero(x[i], y[i]);
      counts.elements = static_cast<std::int64_t>(n);
      add_words(sum_.xy, counts, words);
    } else {
      const SumInWords of_x = cpu::sum_in_words(first, {}), of_xx = cpu::sum_in_words(first, first);
      if constexpr (!State::has_pairs) {
        if (!of_x || !of_xx) return add_one_by_one(x, y, n);
      } else {
        const SumInWords of_y = cpu::sum_in_words(second, {}), of_xy = cpu::sum_in_words(first, second),
                         of_yy = cpu::sum_in_words(second, second);
        if (!of_x || !of_xx || !of_y || !of_xy || !of_yy) return add_one_by_one(x, y, n);
        add_words(sum_.y, counts_of(second), of_y);
        add_words(sum_.xy, {}, of_xy);
        add_words(sum_.yy, {}, of_yy);
      }
      add_words(sum_.x, counts_of(first), of_x);
      add_words(sum_.xx, {}, of_xx);
    }
  }
  /// The counts of finite elements.
  static TermCounts counts_of(const Values& x) {
    return {.elements = static_cast<std::int64_t>(x.size),
            .minus_zeros = static_cast<std::int64_t>(cpu::count_minus_zeros(x))};
  }
  /// Adds elements. Returns false, and adds nothing, if one of them is not finite.
  bool add_sum(const Values& x) {
    if (x.size <= block)
      if (const SumInWords words = cpu::sum_in_words(x, {}))
        return add_words(sum_.x, counts_of(x), words), true;
    const auto [sum, others] = cpu::sum_counting(x);
    if (sum.is_special()) return false;
    const TermCounts counts{.elements = static_cast<std::int64_t>(x.size),
                            .minus_zeros = static_cast<std::int64_t>(x.size - others)};
    const auto digits = canonical_digits(sum);
    WideInteger<ElementTerms::block_words> all;
    static_assert(2 * all.words == Exact::digit_count);
    for (std::size_t i = 0; i < all.words; ++i) all.word[i] = word_of_digits(digits, i);
    add_term(sum_.x, counts, TermOfSum<ElementTerms>{all, Exact::lowest_exponent}.term());
    return true;
  }
  /// Adds integers.
  void add_block(const std::int64_t* x, const std::int64_t* y, std::size_t n) {
    if constexpr (std::is_same_v<State, AggregateSum>) {
      Int128 sum = Int128::of(std::int64_t{0});
      for (std::size_t i = 0; i < n; ++i) sum.add(Int128::of(x[i]));
      const Int128 magnitude = sum.magnitude();
      for (int w = 0; w < 2; ++w)
        if (magnitude.word[w] != 0)
          add_term(sum_.x, {}, {sum.is_negative(), {&magnitude.word[w], 1}, 64 * w});
      add_term(sum_.x, {.elements = static_cast<std::int64_t>(n)}, {});
    } else {
      add_one_by_one(x, y, n);
    }
  }

  StackMemory room_;
  const StateAllocator memory_ = room_.allocator();
  State sum_{};
};

/// Merges the sum of arrays.
template <class State, class Array>
StateStatus take(State& state, const Array& x, const Array& y, int sign, const StateAllocator& memory) {
  try {
    const FloatingPointEnvironment environment;
    Chunk<State> chunk;
    chunk.add(x, y);
    return chunk.merge_to(state, sign, memory);
  } catch (const std::bad_alloc&) {
    return StateStatus::out_of_memory;
  }
}

}  // namespace

template <class State>
StateStatus Aggregate<State>::add_all(const Values& x, const Values& y, int sign,
                                      const StateAllocator& memory) noexcept {
  return take(self(), x, y, sign, memory);
}
template <class State>
StateStatus Aggregate<State>::add_all(std::span<const std::int64_t> x, std::span<const std::int64_t> y,
                                      int sign, const StateAllocator& memory) noexcept {
  return take(self(), x, y, sign, memory);
}

#define SAMESUM_AGGREGATE(State)                                                    \
  template StateStatus Aggregate<State>::add_all(const Values&, const Values&, int, \
                                                 const StateAllocator&) noexcept;   \
  template StateStatus Aggregate<State>::add_all(                                   \
      std::span<const std::int64_t>, std::span<const std::int64_t>, int, const StateAllocator&) noexcept;
SAMESUM_AGGREGATE(AggregateSum)
SAMESUM_AGGREGATE(AggregateProducts)
SAMESUM_AGGREGATE(AggregateMoments)
SAMESUM_AGGREGATE(AggregateComoments)
#undef SAMESUM_AGGREGATE

}  // namespace samesum
