/// Updates, results and bytes of the states of aggregate functions.
#include "samesum/operation/aggregates.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "samesum/accumulator/dyadic.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/base/serial_form.hpp"
#include "samesum/operation/statistics.hpp"

namespace samesum {
namespace {

template <class Sum> struct TermsOf;
template <class T> struct TermsOf<GrowingSum<T>> { using Terms = T; };
template <class Sum> using TermsIn = typename TermsOf<std::remove_cvref_t<Sum>>::Terms;

/// Whether a sum has the counts of its terms. Sums of products have those of the sums of their factors,
/// unless there are none.
template <class State, class Sum>
constexpr bool is_counted = State::counts_products || std::is_same_v<TermsIn<Sum>, ElementTerms>;

/// A number of up to two words, and how it is added.
class ShortTerm {
 public:
  ShortTerm(bool negative, Wide magnitude, int exponent) : magnitude_{magnitude} {
    words_[0] = static_cast<std::uint64_t>(magnitude);
    words_[1] = static_cast<std::uint64_t>(magnitude >> 64);
    const std::size_t first = words_[0] == 0, end = words_[1] != 0 ? 2 : words_[0] != 0;
    term_ = {
        negative, {words_ + first, first < end ? end - first : 0}, exponent + 64 * static_cast<int>(first)};
    exponent_ = exponent;
  }
  explicit ShortTerm(const ExactAddend& a) : ShortTerm{a.negative, a.magnitude, a.exponent} {}
  /// The product of two elements; zero if one of them is not finite.
  ShortTerm(const ExactAddend& a, const ExactAddend& b)
      : ShortTerm{a.negative != b.negative, Wide{a.magnitude} * b.magnitude, a.exponent + b.exponent} {}
  ShortTerm(const ShortTerm&) = delete;

  const WideTerm& term() const { return term_; }
  template <class Terms> bool can_add_to(const GrowingSum<Terms>& sum) const {
    return magnitude_ == 0 ? !sum.is_grown() : sum.can_add(exponent_, 128 - leading_zeros(magnitude_));
  }
  template <class Terms> void add_at_once_to(GrowingSum<Terms>& sum, int sign) const {
    if (magnitude_ != 0) sum.add_at_once(term_.negative != (sign < 0), magnitude_, exponent_);
  }

 private:
  std::uint64_t words_[2];
  Wide magnitude_;
  int exponent_;
  WideTerm term_;
};

/// A term that is added to a sum.
template <class Terms> struct TermAddition {
  GrowingSum<Terms>& sum;
  TermCounts counts;
  const ShortTerm& term;
};
/// Adds all terms, or none.
template <class... Terms>
StateStatus take(int sign, const StateAllocator& memory, const TermAddition<Terms>&... steps) {
  StateStatus status = StateStatus::ok;
  const auto make_room = [&](const auto& step) {
    status = step.sum.make_room(step.counts, step.term.term(), sign, memory);
    return status == StateStatus::ok;
  };
  if ((make_room(steps) && ...)) (steps.sum.add(steps.counts, steps.term.term(), sign), ...);
  return status;
}
constexpr TermCounts uncounted{};

/// The counts of a product. Those of numbers other than 0 are numbers other than 0.
TermCounts counts_of_product(const ExactAddend& a, const ExactAddend& b, const TermCounts& of_a,
                             const TermCounts& of_b) {
  TermCounts product{.elements = 1};
  const bool is_negative = a.negative != b.negative, has_zero = (a.magnitude == 0 && !of_a.has_specials()) ||
                                                                (b.magnitude == 0 && !of_b.has_specials());
  if (!of_a.has_specials() && !of_b.has_specials())
    product.minus_zeros = has_zero && is_negative;
  else if (has_zero || of_a.nan != 0 || of_b.nan != 0)
    product.nan = 1;
  else
    (is_negative ? product.minus_infinity : product.plus_infinity) = 1;
  return product;
}

template <class Terms> bool can_count(const GrowingSum<Terms>& sum, int sign) {
  return sign > 0 ? sum.template can_count<1>() : sum.template can_count<-1>();
}
template <class Terms> void count_at_once(GrowingSum<Terms>& sum, int sign) {
  sign > 0 ? sum.template count_at_once<1>() : sum.template count_at_once<-1>();
}
/// Whether an element can be counted, and added, at once.
bool can_take(const GrowingSum<ElementTerms>& sum, const ExactAddend& a, const ShortTerm& term, int sign) {
  return a.is_common && can_count(sum, sign) && term.can_add_to(sum);
}
void take_at_once(GrowingSum<ElementTerms>& sum, const ShortTerm& term, int sign) {
  term.add_at_once_to(sum, sign);
  count_at_once(sum, sign);
}

}  // namespace

// --- single elements ---------------------------------------------------------------------------------------

StateStatus AggregateSum::update_slowly(const ExactAddend& a, const TermCounts& counts, int sign,
                                        const StateAllocator& memory) noexcept {
  const ShortTerm term{a};
  return take(sign, memory, TermAddition<ElementTerms>{x, counts, term});
}

StateStatus AggregateProducts::update(const ExactAddend& a, const ExactAddend& b, const TermCounts& of_a,
                                      const TermCounts& of_b, int sign,
                                      const StateAllocator& memory) noexcept {
  const ShortTerm product{a, b};
  if (a.magnitude != 0 && b.magnitude != 0 && can_count(xy, sign) && product.can_add_to(xy)) {
    product.add_at_once_to(xy, sign);
    count_at_once(xy, sign);
    return StateStatus::ok;
  }
  return take(sign, memory, TermAddition<ProductTerms>{xy, counts_of_product(a, b, of_a, of_b), product});
}

StateStatus AggregateMoments::update(const ExactAddend& a, const TermCounts& counts, int sign,
                                     const StateAllocator& memory) noexcept {
  const ShortTerm term{a}, square{a, a};
  if (can_take(x, a, term, sign) && square.can_add_to(xx)) {
    take_at_once(x, term, sign);
    square.add_at_once_to(xx, sign);
    return StateStatus::ok;
  }
  return take(sign, memory, TermAddition<ElementTerms>{x, counts, term},
              TermAddition<ProductTerms>{xx, uncounted, square});
}

StateStatus AggregateComoments::update(const ExactAddend& a, const ExactAddend& b, const TermCounts& of_a,
                                       const TermCounts& of_b, int sign,
                                       const StateAllocator& memory) noexcept {
  const ShortTerm of_x{a}, of_y{b}, of_xx{a, a}, of_xy{a, b}, of_yy{b, b};
  if (can_take(x, a, of_x, sign) && can_take(y, b, of_y, sign) && of_xx.can_add_to(xx) &&
      of_xy.can_add_to(xy) && of_yy.can_add_to(yy)) {
    take_at_once(x, of_x, sign);
    take_at_once(y, of_y, sign);
    of_xx.add_at_once_to(xx, sign);
    of_xy.add_at_once_to(xy, sign);
    of_yy.add_at_once_to(yy, sign);
    return StateStatus::ok;
  }
  return take(sign, memory, TermAddition<ElementTerms>{x, of_a, of_x},
              TermAddition<ElementTerms>{y, of_b, of_y}, TermAddition<ProductTerms>{xx, uncounted, of_xx},
              TermAddition<ProductTerms>{xy, uncounted, of_xy},
              TermAddition<ProductTerms>{yy, uncounted, of_yy});
}

// --- whole states ------------------------------------------------------------------------------------------

namespace {

/// Calls visit(mine, other) for each sum of a state and the same one of another, until one returns false.
template <class State, class Other, class Visit> bool zip(State& state, Other& other, Visit visit) {
  return std::apply(
      [&](auto&... mine) {
        return std::apply([&](auto&... others) { return (visit(mine, others) && ...); }, other.sums());
      },
      state.sums());
}
template <class State, class Visit> void for_each_sum(State& state, Visit visit) {
  std::apply([&](auto&... sum) { (visit(sum), ...); }, state.sums());
}

}  // namespace

template <class State>
StateStatus Aggregate<State>::merge(const State& other, int sign, const StateAllocator& memory) noexcept {
  State& state = self();
  StateStatus status = StateStatus::ok;
  if (zip(state, other, [&](auto& mine, const auto& its) {
        status = mine.make_room(its, sign, memory);
        return status == StateStatus::ok;
      }))
    zip(state, other, [&](auto& mine, const auto& its) {
      mine.add(its, sign);
      return true;
    });
  return status;
}

template <class State>
StateStatus Aggregate<State>::copy_to(State& copy, const StateAllocator& memory) const noexcept {
  State made{};
  const StateStatus status = made.merge(self(), 1, memory);
  if (status == StateStatus::ok)
    copy = made;
  else
    made.destroy(memory);
  return status;
}

template <class State> void Aggregate<State>::destroy(const StateAllocator& memory) noexcept {
  for_each_sum(self(), [&](auto& sum) { sum.destroy(memory); });
}

template <class State> std::int64_t Aggregate<State>::size() const {
  return std::get<0>(self().sums()).counts().elements;
}

// --- results -----------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void refuse_subtracted() {
  throw std::invalid_argument(
      "samesum: more elements were subtracted from the state than added; add what was subtracted");
}

template <class Terms> bool is_zero(const GrowingSum<Terms>& sum) {
  return sum.with_sum([](const auto& integer, int) { return integer.is_zero(); });
}

/// Throws if no elements have these counts and this sum.
template <class Terms> void check(const GrowingSum<Terms>& sum) {
  const TermCounts counts = sum.counts();
  const std::int64_t numbers = counts.elements - counts.minus_zeros - counts.specials();
  if (std::min({numbers, counts.minus_zeros, counts.nan, counts.plus_infinity, counts.minus_infinity}) < 0 ||
      (numbers == 0 && !is_zero(sum)))
    refuse_subtracted();
}

std::uint32_t special_flags(const TermCounts& counts) {
  std::uint32_t flags = 0;
  if (counts.nan > 0) flags |= SumFlags::seen_nan;
  if (counts.plus_infinity > 0) flags |= SumFlags::seen_plus_infinity;
  if (counts.minus_infinity > 0) flags |= SumFlags::seen_minus_infinity;
  return flags;
}

/// Returns the sum over a divisor, rounded once.
template <class Terms>
Number quotient(const GrowingSum<Terms>& sum, std::uint64_t divisor, const FormatInfo& format) {
  check(sum);
  if (divisor == 0) return {&format, format.canonical_nan};
  const TermCounts counts = sum.counts();
  if (counts.has_specials())
    return with_format(format, [&]<class F>() {
      return Number{&format, special_bits<F>(special_flags(counts))};
    });
  if (counts.elements > 0 && counts.elements == counts.minus_zeros) return {&format, format.sign_bit};
  const LeadingBits leading = sum.with_sum([divisor](const auto& integer, int exponent) {
    return divisor == 1 ? integer.leading(exponent) : leading_quotient(integer, divisor, 1, exponent);
  });
  return with_format(format, [&]<class F>() { return Number{&format, leading.rounded<F>()}; });
}

/// The value of a sum, without special values.
template <class Terms> Dyadic value_of(const GrowingSum<Terms>& sum) {
  const TermOfSum<Terms> all{sum};
  return {all.term().negative, all.term().words, all.term().exponent / 64};
}

/// A sum with its flags. Sums of products have no counts, and no flags.
template <class Terms> SumOfProducts exact_sum_of(const GrowingSum<Terms>& sum) {
  return {value_of(sum), special_flags(sum.counts())};
}

/// The exact sums of n values of one variable, and their moment n·Σx² - (Σx)².
struct Variable {
  Variable(const GrowingSum<ElementTerms>& of, const GrowingSum<ProductTerms>& of_squares)
      : total{total_of(static_cast<std::uint64_t>(of.counts().elements))},
        sum{exact_sum_of(of)},
        squares{exact_sum_of(of_squares)},
        moment{moment_of(total, sum, sum, squares)} {
    check(of);
    const TermCounts counts = of.counts();
    const bool has_numbers = counts.elements > counts.minus_zeros + counts.specials(),
               is_possible = has_numbers ? moment.is_zero() || moment.is_positive() : squares.is_zero();
    if (are_finite(sum) && !is_possible) refuse_subtracted();
  }

  SumOfProducts total, sum, squares;
  Dyadic moment;
};

/// Returns a moment over n·(n - ddof).
Number divided(const Dyadic& moment, const SumOfProducts& total, std::uint64_t ddof,
               const FormatInfo& format) {
  return covariance_of(format, moment, divisor_of(total.value, Dyadic{ddof}, total.value));
}

[[noreturn]] void refuse_result(std::string_view name) {
  throw std::invalid_argument("samesum: an " + std::string{name} +
                              " has no such result; ask for another one, or use another kind of state");
}

Number variance(const Variable& v, std::uint64_t ddof, const FormatInfo& format) {
  if (!are_finite(v.sum)) return {&format, format.canonical_nan};
  return divided(v.moment, v.total, ddof, format);
}

/// Returns a result of two variables and the sum of their products.
Number joint(AggregateResult which, const Variable& x, const Variable& y, const SumOfProducts& products,
             std::uint64_t ddof, const FormatInfo& format) {
  if (!are_finite(x.sum, y.sum)) return {&format, format.canonical_nan};
  const Dyadic moment = moment_of(x.total, x.sum, y.sum, products);
  switch (which) {
    case AggregateResult::covariance:
      return divided(moment, x.total, ddof, format);
    case AggregateResult::correlation:
      return correlation_of(format, moment, x.moment, y.moment);
    case AggregateResult::slope:
    case AggregateResult::intercept: {
      const Line line = line_of(format, x.total, x.sum, y.sum, products, x.squares);
      return which == AggregateResult::slope ? line.slope : line.intercept;
    }
    default:
      refuse_result(AggregateComoments::name);
  }
}

template <class Terms> Number sum_or_mean(const GrowingSum<Terms>& sum, bool mean, const FormatInfo& format) {
  return quotient(sum, mean ? static_cast<std::uint64_t>(sum.counts().elements) : 1, format);
}

}  // namespace

template <class State>
Number Aggregate<State>::result(AggregateResult which, const FormatInfo& format, std::uint64_t ddof) const {
  const FloatingPointEnvironment environment;
  const State& state = self();
  if (which == AggregateResult::sum || which == AggregateResult::mean)
    return sum_or_mean(std::get<0>(state.sums()), which == AggregateResult::mean, format);
  if constexpr (requires { state.xx; })
    if (which == AggregateResult::variance) return variance(Variable{state.x, state.xx}, ddof, format);
  if constexpr (requires { state.yy; }) {
    if (which == AggregateResult::sum_of_y || which == AggregateResult::mean_of_y)
      return sum_or_mean(state.y, which == AggregateResult::mean_of_y, format);
    if (which == AggregateResult::variance_of_y) return variance(Variable{state.y, state.yy}, ddof, format);
    return joint(which, Variable{state.x, state.xx}, Variable{state.y, state.yy}, exact_sum_of(state.xy),
                 ddof, format);
  }
  refuse_result(State::name);
}

// --- bytes -------------------------------------------------------------------------------------------------

namespace {

/// Writes the sign of a sum, the place of its first word that is not 0 and the number of words up to the
/// last, then these words.
template <class Terms> void write(const GrowingSum<Terms>& sum, SerialWriter& out) {
  const TermOfSum<Terms> all{sum};
  const WideTerm& term = all.term();
  const bool has_words = !term.words.empty();
  out.put(std::uint8_t{has_words && term.negative});
  out.put(static_cast<std::uint8_t>(has_words ? (term.exponent - Terms::block_lowest) / 64 : 0));
  out.put(static_cast<std::uint8_t>(term.words.size()));
  for (const std::uint64_t word : term.words) out.put(word);
}

/// Reads what `write` wrote, and adds it, with counts, to an empty sum.
template <class Terms>
StateStatus read(SerialReader& in, const TermCounts& counts, GrowingSum<Terms>& sum,
                 const StateAllocator& memory) {
  const auto negative = in.get<std::uint8_t>(), first = in.get<std::uint8_t>(), size = in.get<std::uint8_t>();
  if (negative > 1 || first + size > Terms::block_words || (size == 0 && (negative != 0 || first != 0)))
    SerialReader::refuse("the words of its sum are out of place");
  std::uint64_t words[Terms::block_words];
  for (int i = 0; i < size; ++i) words[i] = in.get<std::uint64_t>();
  if (size > 0 && (words[0] == 0 || words[size - 1] == 0)) SerialReader::refuse("its sum has words of 0");
  const WideTerm term{negative != 0, {words, size}, Terms::block_lowest + 64 * first};
  const StateStatus status = sum.make_room(counts, term, 1, memory);
  if (status == StateStatus::too_many)
    SerialReader::refuse("it has 2^62 elements or more, or the sum of as many");
  if (status == StateStatus::ok) sum.add(counts, term, 1);
  return status;
}

/// Destroys a state that has not been read to its end.
template <class State> struct Unread {
  State& state;
  const StateAllocator& memory;
  bool done = false;
  ~Unread() {
    if (!done) state.destroy(memory);
  }
};

}  // namespace

template <class State> std::vector<std::byte> Aggregate<State>::serialise() const {
  SerialWriter out{State::name};
  for_each_sum(self(), [&]<class Sum>(const Sum& sum) {
    TermCounts counts = sum.counts();
    if (is_counted<State, Sum>)
      counts.with(counts, [&](std::int64_t& n, std::int64_t) { out.put(static_cast<std::uint64_t>(n)); });
    write(sum, out);
  });
  out.put_checksum();
  return out.bytes();
}

template <class State>
StateStatus Aggregate<State>::deserialise(std::span<const std::byte> bytes, State& state,
                                          const StateAllocator& memory) {
  SerialReader in{bytes, State::name};
  in.check_checksum();
  State made{};
  Unread<State> unread{made, memory};
  StateStatus status = StateStatus::ok;
  for_each_sum(made, [&]<class Sum>(Sum& sum) {
    if (status != StateStatus::ok) return;
    TermCounts counts;
    if (is_counted<State, Sum>)
      counts.with(counts, [&](std::int64_t& n, std::int64_t) {
        n = static_cast<std::int64_t>(in.get<std::uint64_t>());
      });
    if (!counts.are_valid()) SerialReader::refuse("it has 2^62 elements or more");
    status = read(in, counts, sum, memory);
  });
  if (status != StateStatus::ok) return status;
  in.finish();
  state = made;
  unread.done = true;
  return status;
}

template <class State> std::size_t Aggregate<State>::most_serialised_bytes() {
  constexpr std::size_t word = sizeof(std::uint64_t);
  std::size_t bytes = serial_magic.size() + 2 + State::name.size() + sizeof(std::uint32_t);
  const State none{};
  for_each_sum(none, [&]<class Sum>(const Sum&) {
    bytes += (is_counted<State, Sum> ? 5 * word : 0) + 3 + Sum::block_words * word;
  });
  return bytes;
}

template class Aggregate<AggregateSum>;
template class Aggregate<AggregateProducts>;
template class Aggregate<AggregateMoments>;
template class Aggregate<AggregateComoments>;

}  // namespace samesum
