/// Exact sums in a few words, which grow out of them by memory of the caller: for states of databases, of
/// which there are millions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "samesum/window/sum_flags.hpp"
#include "samesum/window/wide_integer.hpp"

namespace samesum {

/// Memory for states that grow. A function of a state that needs memory takes the allocator; the state does
/// not keep it. All functions of a state, and of those that are merged with it, take allocators that release
/// each other's memory.
struct StateAllocator {
  /// Returns memory of that size, aligned to 8 bytes at least; null if there is none.
  void* (*allocate)(void* context, std::size_t bytes);
  /// Takes back memory of that size.
  void (*release)(void* context, void* memory, std::size_t bytes);
  void* context;  ///< passed on to both
};
/// malloc and free.
inline constexpr StateAllocator heap_allocator{[](void*, std::size_t bytes) { return std::malloc(bytes); },
                                               [](void*, void* memory, std::size_t) { std::free(memory); },
                                               nullptr};

/// What became of an update. Unless it is `ok`, the state has the value that it had. `too_many` are 2^62
/// elements or more, or the sum of as many.
enum class [[nodiscard]] StateStatus{ok, out_of_memory, too_many};

/// How many terms of each kind have been added, less those that have been subtracted.
struct TermCounts {
  std::int64_t elements = 0, minus_zeros = 0, nan = 0, plus_infinity = 0, minus_infinity = 0;

  /// Visits each count and the same one of `other`.
  template <class Other, class Visit> void with(Other& other, Visit visit) {
    visit(elements, other.elements);
    visit(minus_zeros, other.minus_zeros);
    visit(nan, other.nan);
    visit(plus_infinity, other.plus_infinity);
    visit(minus_infinity, other.minus_infinity);
  }
  /// Adds the counts of `other`, sign times.
  void add(const TermCounts& other, std::int64_t sign) {
    with(other, [sign](std::int64_t& mine, std::int64_t more) { mine += sign * more; });
  }
  /// Whether no sum of two such counts overflows.
  bool are_valid() const {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    bool valid = true;
    TermCounts all = *this;
    all.with(all, [&](std::int64_t& count, std::int64_t) { valid = valid && -most < count && count < most; });
    return valid;
  }
  std::int64_t specials() const { return nan + plus_infinity + minus_infinity; }
  bool has_specials() const { return (nan | plus_infinity | minus_infinity) != 0; }

  /// The counts of one term.
  template <class T> static TermCounts of(T x) {
    TermCounts one{.elements = 1};
    if constexpr (!std::is_integral_v<T>) {
      const std::uint32_t flags = special_flags_of(x);
      one.minus_zeros = to_bits(x) == Format<T>::sign_bit;
      one.nan = flags == SumFlags::seen_nan;
      one.plus_infinity = flags == SumFlags::seen_plus_infinity;
      one.minus_infinity = flags == SumFlags::seen_minus_infinity;
    }
    return one;
  }
};

/// One element as an integer times a power of two.
struct ExactAddend {
  bool negative, is_common;  ///< whether it is finite, and not -0
  std::uint64_t magnitude;   ///< 0 unless it is finite
  int exponent;

  template <class T> [[gnu::always_inline]] static ExactAddend of(T x) {
    if constexpr (std::is_integral_v<T>) {
      const auto bits = static_cast<std::uint64_t>(x);
      return {x < 0, true, x < 0 ? 0 - bits : bits, 0};
    } else {
      const BitsOf<T> bits = to_bits(x);
      const Decomposed d = decompose<T>(bits);
      const bool is_finite = BitsOf<T>(bits & ~Format<T>::sign_bit) < Format<T>::infinity;
      return {d.negative, is_finite && bits != Format<T>::sign_bit, is_finite ? d.significand : 0,
              d.exponent};
    }
  }
};

/// ±Σ words[i] · 2^(exponent + 64 i). It does not own the words; neither the first nor the last is 0.
struct WideTerm {
  bool negative = false;
  std::span<const std::uint64_t> words = {};  ///< none for zero
  int exponent = 0;

  /// The exponent of the lowest bit that is 1, and 1 more than that of the highest. The number is not 0.
  int lowest() const;
  int end() const;
};

/// Sums of elements of any formats and of integers of 64 bits. Windows are where they need not move for data
/// near 1. Those of most elements then begin in the first word: a branch on it is predicted.
struct ElementTerms {
  static constexpr int words = 3, default_lowest = -96, block_words = 34, block_lowest = -64 * 17;
};
/// Sums of products of two of them.
struct ProductTerms {
  static constexpr int words = 4, default_lowest = -160, block_words = 68, block_lowest = -64 * 34;
};

/// An exact sum of terms, and how many of each kind there are. All bytes 0 is the empty sum. It may be moved
/// by memcpy.
///
/// While the bits of terms and of sums lie in a window of few exponents, the sum is an integer of `words`
/// words, in units of 2^lowest(). If a term misses the window, this moves, by as much as leaves the same room
/// above and below what it holds. If there is no such window, the sum moves to a block of memory, which holds
/// the sum of any 2^62 terms.
///
/// No overflow. The sum S of a window of W bits has |S| < 2^(W-1). A term is added only if S is in
/// [-2^(W-2), 2^(W-2)) and the term is a multiple of the unit below 2^(W-2), so |S + term| < 2^(W-1) again.
///
/// What fits. If all terms are multiples of 2^a, and all terms and partial sums are below 2^b in magnitude,
/// with b - a <= W - 2 - margin, no block is needed: the lowest and the highest bit of S and a term lie
/// between a and b, so a window has room for both. For n doubles that span E powers of two, b - a is at most
/// E + 53 + log2 n. The counts of a window are below 2^32, those of -0 below 2^16; NaN and infinities are
/// counted in a block.
template <class Terms> class GrowingSum {
 public:
  static constexpr int words = Terms::words, block_words = Terms::block_words, margin = 8;

  /// Bytes of the block of a sum that has grown.
  static constexpr std::size_t block_bytes = sizeof(TermCounts) + 8 * block_words;
  bool is_grown() const { return (tag_ & 1) != 0; }
  TermCounts counts() const;

  /// Calls visit(sum, exponent), where the value is sum·2^exponent, with a WideInteger.
  template <class Visit> decltype(auto) with_sum(const Visit& visit) const {
    if (is_grown()) return visit(block()->sum, Terms::block_lowest);
    return visit(sum_, lowest());
  }
  /// The sum in units of 2^Terms::block_lowest.
  WideInteger<block_words> wide() const;

  /// Whether a number of `bits` bits, times 2^exponent, can be added at once.
  bool can_add(int exponent, int bits) const {
    return !is_grown() && has_room(sum_) &&
           static_cast<unsigned>(exponent - lowest()) <= static_cast<unsigned>(64 * words - 2 - bits);
  }
  /// Whether one element more can be counted at once.
  template <int sign> bool can_count() const {
    std::int64_t tag;
    return !__builtin_add_overflow(static_cast<std::int64_t>(tag_), sign * one_element, &tag);
  }
  /// Counts an element, sign times.
  template <int sign> void count_at_once() { tag_ += static_cast<std::uint64_t>(sign * one_element); }
  /// Adds a number for which can_add() holds.
  void add_at_once(bool negative, Wide magnitude, int exponent) {
    sum_.add_through(negative, magnitude, exponent - lowest());
  }
  /// Adds a number for which can_add() holds with 64 bits: in two words, and what they carry into the third,
  /// by half as many instructions.
  [[gnu::always_inline]] void add_at_once(bool negative, std::uint64_t magnitude,
                                          int exponent) requires(words == 3) {
    const auto shift = static_cast<unsigned>(exponent - lowest());
    const std::uint64_t mask = 0 - std::uint64_t{negative}, low = magnitude << shift % 64,
                        high = std::rotl(magnitude, static_cast<int>(shift % 64)) ^ low;
    std::uint64_t* const word = sum_.word + shift / 64;
    std::uint64_t first, second;
    std::uint64_t carry = add_with_carry(word[0], low ^ mask, negative, first);
    carry = add_with_carry(word[1], high ^ mask, carry, second);
    // Does not read what has just been written, which may be in the third word.
    const std::uint64_t last = sum_.word[2] + mask + carry;
    word[0] = first;
    word[1] = second;
    sum_.word[2] = shift / 64 != 0 ? second : last;
  }

  /// Makes room for a term and for counts, so that add() can follow. The value does not change.
  StateStatus make_room(const TermCounts& more, const WideTerm& term, int sign,
                        const StateAllocator& memory) noexcept;
  /// Adds a term and counts, sign times. make_room() has returned ok for them.
  void add(const TermCounts& more, const WideTerm& term, int sign) noexcept;

  /// Makes room for, and adds, the terms of another sum, which may be this one.
  StateStatus make_room(const GrowingSum& other, int sign, const StateAllocator& memory) noexcept;
  void add(const GrowingSum& other, int sign) noexcept;

  /// Gives back the block. The sum is empty then.
  void destroy(const StateAllocator& memory) noexcept;

 private:
  struct Block {
    TermCounts counts;
    WideInteger<block_words> sum;
  };
  static_assert(sizeof(Block) == block_bytes);
  // The tag of a window: bit 0 is 0, then come the place of the window, the number of -0 and that of all
  // elements, as signed numbers. The tag of a block is its address + 1.
  static constexpr int place_bits = 13, zero_bits = 17, count_bits = 33;
  static_assert(1 + place_bits + zero_bits + count_bits == 64);
  static constexpr std::int64_t one_element = std::int64_t{1} << (1 + place_bits + zero_bits);

  /// The signed number of the tag's bits from `first` on.
  int field(int first, int bits) const {
    return static_cast<int>(static_cast<std::int64_t>(tag_ << (64 - first - bits)) >> (64 - bits));
  }
  int lowest() const { return Terms::default_lowest + field(1, place_bits); }
  /// Whether a sum of so many words is at most half of what they hold.
  template <int count> static bool has_room(const WideInteger<count>& sum) {
    return (sum.word[count - 1] + (std::uint64_t{1} << 62)) >> 63 == 0;
  }
  /// Writes a + b + carry to `sum`, and returns the carry.
  static std::uint64_t add_with_carry(std::uint64_t a, std::uint64_t b, std::uint64_t carry,
                                      std::uint64_t& sum) {
#if defined(__x86_64__) && !defined(__CUDACC__)
    unsigned long long all;
    carry = __builtin_ia32_addcarryx_u64(static_cast<unsigned char>(carry), a, b, &all);
    sum = all;
    return carry;
#else
    const Wide all = Wide{a} + b + carry;
    sum = static_cast<std::uint64_t>(all);
    return static_cast<std::uint64_t>(all >> 64);
#endif
  }
  static bool fit(const TermCounts& counts);
  void set_tag(const TermCounts& counts, int lowest);
  Block* block() const { return reinterpret_cast<Block*>(tag_ - 1); }
  bool has_room_for(const WideTerm& term) const;
  bool has_same_window(const GrowingSum& other) const {
    return !is_grown() && !other.is_grown() && lowest() == other.lowest() && has_room(other.sum_);
  }
  bool move_window(const WideTerm& term);
  bool grow(const StateAllocator& memory);

  WideInteger<words> sum_{};
  std::uint64_t tag_ = 0;
};

extern template class GrowingSum<ElementTerms>;
extern template class GrowingSum<ProductTerms>;

/// A sum as a term.
template <class Terms> class TermOfSum {
 public:
  explicit TermOfSum(const GrowingSum<Terms>& sum) : TermOfSum{sum.wide(), Terms::block_lowest} {}
  /// An integer in units of 2^lowest.
  TermOfSum(const WideInteger<Terms::block_words>& sum, int lowest);
  TermOfSum(const TermOfSum&) = delete;
  const WideTerm& term() const { return term_; }

 private:
  std::uint64_t words_[Terms::block_words];
  WideTerm term_;
};
extern template class TermOfSum<ElementTerms>;
extern template class TermOfSum<ProductTerms>;

}  // namespace samesum
