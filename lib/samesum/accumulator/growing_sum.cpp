/// What GrowingSum does when a term misses its window, and merging.
#include "samesum/accumulator/growing_sum.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace samesum {
namespace {

/// Adds a term to an integer in units of 2^lowest, whose words hold it. Its bits below the unit are 0.
template <int count> void add_words(WideInteger<count>& sum, int lowest, const WideTerm& term, bool negate) {
  int shift = term.exponent - lowest;
  for (const std::uint64_t word : term.words) {
    if (word != 0) {
      if (shift >= 0)
        sum.add(term.negative != negate, word, shift);
      else
        sum.add(term.negative != negate, word >> -shift, 0);
    }
    shift += 64;
  }
}

}  // namespace

int WideTerm::lowest() const { return exponent + std::countr_zero(words.front()); }
int WideTerm::end() const {
  return exponent + 64 * static_cast<int>(words.size()) - leading_zeros(words.back());
}

template <class Terms> TermOfSum<Terms>::TermOfSum(const WideInteger<Terms::block_words>& sum, int lowest) {
  const Magnitude<Terms::block_words> magnitude{sum};
  int first = 0, end = Terms::block_words;
  while (end > 0 && magnitude[end - 1] == 0) --end;
  while (first < end && magnitude[first] == 0) ++first;
  for (int i = first; i < end; ++i) words_[i - first] = magnitude[i];
  term_ = {magnitude.is_negative(), {words_, static_cast<std::size_t>(end - first)}, lowest + 64 * first};
}

template <class Terms> TermCounts GrowingSum<Terms>::counts() const {
  if (is_grown()) return block()->counts;
  return {.elements = static_cast<std::int64_t>(tag_) >> (64 - count_bits),
          .minus_zeros = field(1 + place_bits, zero_bits)};
}

/// Whether a tag holds the counts.
template <class Terms> bool GrowingSum<Terms>::fit(const TermCounts& counts) {
  const auto fits = [](std::int64_t count, int bits) {
    const std::int64_t end = std::int64_t{1} << (bits - 1);
    return -end <= count && count < end;
  };
  return fits(counts.elements, count_bits) && fits(counts.minus_zeros, zero_bits) && !counts.has_specials();
}

template <class Terms> void GrowingSum<Terms>::set_tag(const TermCounts& counts, int lowest) {
  const auto place = [](std::int64_t number, int first, int bits) {
    return static_cast<std::uint64_t>(number) << (64 - bits) >> (64 - bits - first);
  };
  tag_ = place(lowest - Terms::default_lowest, 1, place_bits) |
         place(counts.minus_zeros, 1 + place_bits, zero_bits) |
         place(counts.elements, 64 - count_bits, count_bits);
}

template <class Terms> auto GrowingSum<Terms>::wide() const -> WideInteger<block_words> {
  if (is_grown()) return block()->sum;
  const WideInteger<words> magnitude = sum_.magnitude();
  WideInteger<block_words> all{};
  add_words(all, Terms::block_lowest, {sum_.is_negative(), magnitude.word, lowest()}, false);
  return all;
}

/// Whether the window, as it is, or the block holds the sum of its own and of a term.
template <class Terms> bool GrowingSum<Terms>::has_room_for(const WideTerm& term) const {
  if (term.words.empty()) return true;
  return with_sum([&]<int count>(const WideInteger<count>& sum, int lowest) {
    return has_room(sum) && term.lowest() >= lowest && term.end() <= lowest + 64 * count - 2;
  });
}

/// Moves the window to where it has room for a term, which is not 0. Returns false, and leaves it, if it is
/// too short.
template <class Terms> bool GrowingSum<Terms>::move_window(const WideTerm& term) {
  const TermOfSum<Terms> all{*this};
  int first = term.lowest(), end = term.end();
  if (!sum_.is_zero()) {
    first = std::min(first, all.term().lowest());
    end = std::max(end, all.term().end());
  }
  const int spare = 64 * words - 2 - (end - first);
  if (spare < margin) return false;
  const int moved = first - spare / 2;
  set_tag(counts(), moved);
  sum_.clear();
  add_words(sum_, moved, all.term(), false);
  return true;
}

template <class Terms> bool GrowingSum<Terms>::grow(const StateAllocator& memory) {
  void* const room = memory.allocate(memory.context, sizeof(Block));
  if (room == nullptr) return false;
  const Block* const grown = new (room) Block{counts(), wide()};
  sum_.clear();
  tag_ = reinterpret_cast<std::uintptr_t>(grown) + 1;
  return true;
}

template <class Terms>
StateStatus GrowingSum<Terms>::make_room(const TermCounts& more, const WideTerm& term, int sign,
                                         const StateAllocator& memory) noexcept {
  TermCounts all = counts();
  all.add(more, sign);
  if (!all.are_valid()) return StateStatus::too_many;
  if (!is_grown() && (!fit(all) || (!has_room_for(term) && !move_window(term))) && !grow(memory))
    return StateStatus::out_of_memory;
  return has_room_for(term) ? StateStatus::ok : StateStatus::too_many;
}

template <class Terms>
void GrowingSum<Terms>::add(const TermCounts& more, const WideTerm& term, int sign) noexcept {
  if (is_grown()) {
    block()->counts.add(more, sign);
    return add_words(block()->sum, Terms::block_lowest, term, sign < 0);
  }
  TermCounts all = counts();
  all.add(more, sign);
  add_words(sum_, lowest(), term, sign < 0);
  set_tag(all, lowest());
}

template <class Terms>
StateStatus GrowingSum<Terms>::make_room(const GrowingSum& other, int sign,
                                         const StateAllocator& memory) noexcept {
  const TermCounts more = other.counts();
  if (has_same_window(other) && has_room(sum_)) return make_room(more, {}, sign, memory);
  return make_room(more, TermOfSum<Terms>{other}.term(), sign, memory);
}
template <class Terms> void GrowingSum<Terms>::add(const GrowingSum& other, int sign) noexcept {
  const TermCounts more = other.counts();
  if (!has_same_window(other)) return add(more, TermOfSum<Terms>{other}.term(), sign);
  sum_.add(other.sum_.negated_if(sign < 0));
  add(more, {}, sign);
}

template <class Terms> void GrowingSum<Terms>::destroy(const StateAllocator& memory) noexcept {
  if (is_grown()) memory.release(memory.context, block(), sizeof(Block));
  sum_.clear();
  tag_ = 0;
}

template class GrowingSum<ElementTerms>;
template class GrowingSum<ProductTerms>;
template class TermOfSum<ElementTerms>;
template class TermOfSum<ProductTerms>;

}  // namespace samesum
