/// The choice of a method: checks of the requirements, bounds relative to the sum, costs, and reasons.
#include "samesum/catalogue/choose.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "samesum/base/environment.hpp"
#include "samesum/base/text.hpp"
#include "samesum/bound/bound.hpp"
#include "samesum/catalogue/describe.hpp"

namespace samesum {
namespace {

[[noreturn]] void refuse_requirement(const std::string& argument, const std::string& trouble) {
  throw std::invalid_argument("samesum: choose: " + argument + " " + trouble);
}

// --- requirements --------------------------------------------------------------------------------

void check_tolerance(const Requirements& required) {
  if (required.relative_error && required.ulps)
    refuse_requirement("relative_error and ulps", "are both given; give one of them");
  if (!required.relative_error && !required.ulps)
    refuse_requirement("relative_error or ulps",
                       "is missing; give one of them, or infinity to accept any error");
  for (const auto& [name, x] :
       {std::pair{"relative_error", required.relative_error}, {"ulps", required.ulps}})
    if (x && !(*x >= 0)) refuse_requirement(name, "is " + three_digits(*x) + "; it must be 0 or more");
}

void check_backend(std::string_view backend) {
  if (backend.empty() || std::ranges::count(methods(), backend, &Method::backend) > 0) return;
  for (const Absent& a : absent())
    if (a.backend == backend)
      refuse_requirement("backend", quoted(backend) + " is not available: " + a.reason);
  refuse_requirement(
      "backend", "is " + quoted(backend) + "; it must be one of " + listed(backends) + ", or empty for any");
}

double magnitudes_of(const Requirements& required) {
  return required.magnitudes.value_or(static_cast<double>(required.length));
}

void check_operation(std::string_view operation) {
  const std::span<const Method> all = methods(operation);
  if (all.empty())
    refuse_requirement("operation", "is " + quoted(operation) + "; `samesum list` prints all operations");
  if (all.front().takes_keys)
    refuse_requirement("operation", "is " + quoted(operation) + ", which has a result to bound for each key");
  if (all.front().results != 1 || all.front().has_result_per_element)
    refuse_requirement("operation",
                       "is " + quoted(operation) +
                           ", which has more than one result to bound; use an operation with one result");
}

/// The terms that an operation adds; empty for an operation with a state of its own.
using AddedTerms = std::optional<ExactKind>;

/// Whether `magnitudes` is the Σ|x| of the elements.
bool adds_elements(const AddedTerms& terms) { return terms && !is_product(terms->term); }
void check(const Requirements& required) {
  check_operation(required.operation);
  if (required.length == 0) refuse_requirement("length", "is 0; it must be 1 or more");
  if (!find_format(required.input))
    refuse_requirement("input", "is " + quoted(required.input) + "; it must be one of " +
                                    listed(formats, ", ", &FormatInfo::name));
  if (static_cast<std::size_t>(required.promise) >= promise_count)
    refuse_requirement("promise",
                       "is not a value of Promise; use none, run_to_run, everywhere or order_free");
  check_tolerance(required);
  if (!(required.probability > 0 && required.probability <= 1))
    refuse_requirement("probability",
                       "is " + three_digits(required.probability) + "; it must be above 0 and at most 1");
  check_backend(required.backend);
  if (!(required.condition >= 1 && std::isfinite(required.condition)))
    refuse_requirement("condition",
                       "is " + three_digits(required.condition) + "; it must be finite and at least 1");
  if (required.magnitudes && !(*required.magnitudes > 0 && std::isfinite(*required.magnitudes)))
    refuse_requirement("magnitudes",
                       "is " + three_digits(*required.magnitudes) + "; it must be finite and above 0");
  const FormatInfo& input = *find_format(required.input);
  const double magnitudes = magnitudes_of(required);
  const bool of_elements = adds_elements(Code::of(methods(required.operation).front()).adds);
  if (of_elements && magnitudes > rounded_up(static_cast<double>(required.length) * input.max_finite))
    refuse_requirement("magnitudes",
                       "is " + three_digits(magnitudes) + ", but " + std::to_string(required.length) +
                           " elements of " + std::string{input.name} + " have at most " +
                           three_digits(static_cast<double>(required.length) * input.max_finite));
  if (of_elements && magnitudes < input.smallest_subnormal)
    refuse_requirement("magnitudes", "is " + three_digits(magnitudes) + ", but one element of " +
                                         std::string{input.name} + " has at least " +
                                         three_digits(input.smallest_subnormal) + " unless it is 0");
  if (magnitudes / required.condition == 0)
    refuse_requirement("condition", "is " + three_digits(required.condition) + ", but with magnitudes of " +
                                        three_digits(magnitudes) +
                                        " the sum might be 0, which has no relative error");
}

// --- bounds relative to the sum ------------------------------------------------------------------

struct RelativeBound {
  double error, ulps;  ///< ulps: units in the last place of the input's format
};

/// Returns the least number of the format that is at least x, for x >= 0.
Number at_least(const FormatInfo& format, double x) {
  return with_format(format, [&]<class F>() {
    const F nearest = convert<F>(x);
    return Number{&format, to_bits(nearest) + std::uint64_t{convert<double>(nearest) < x}};
  });
}

constexpr double least_double = std::numeric_limits<double>::denorm_min();

/// Returns x/d, rounded down if it is subnormal, for x >= 0 and d >= 1.
double quotient_below(double x, double d) { return d == 1 ? x : std::max(x / d - least_double, 0.0); }

/// Bounds an exact result: half a unit in its last place; its binade begins at |result| / 2 or above.
/// `largest` is the largest result of better conditioned data.
RelativeBound bound_of_exact(const Method& m, const FormatInfo& input, double largest, double result) {
  if (largest > m.format->max_finite) return {unbounded_error, unbounded_error};
  const ExactKind& kind = *Code::of(m).adds;
  // η/2 is 0 for fp64. Sums of doubles lose nothing to underflow; their products and means do.
  const bool underflows = kind.mean || quantum_of_terms(kind.term, input) < m.format->min_quantum;
  const double half = std::max(m.format->smallest_subnormal / 2, underflows ? least_double : 0);
  const double normal = m.format->unit_roundoff, subnormal = rounded_up(half / result);
  return {std::max(normal, subnormal), std::max(normal / 2, subnormal) / input.unit_roundoff};
}

/// Returns the bound for data with those magnitudes and a true result of that size, relative to the size.
double bound_at(const Method& m, const FormatInfo& input, const Requirements& required, double magnitudes,
                double size) {
  Number result = at_least(*m.format, size);
  if (m.returns_index) return m.bound(input, required.length, result);
  // Each step is at most u times the one before. One or two suffice; if none does, there is no bound.
  for (int step = 0; step < 16; ++step) {
    const double bound = prior_bound(m, input, required.length, magnitudes, result, required.probability);
    const Number next = at_least(*m.format, rounded_up(size + bound));
    if (next.to_double() <= result.to_double()) return rounded_up(bound / size);
    result = next;
  }
  return unbounded_error;
}

RelativeBound relative_bound(const Method& m, const Requirements& required) {
  const FormatInfo& input = *find_format(required.input);
  const double magnitudes = magnitudes_of(required);
  const AddedTerms& terms = Code::of(m).adds;
  const double largest =
      terms && terms->mean ? quotient_below(magnitudes, static_cast<double>(required.length)) : magnitudes;
  // At most 2^-52 above the exact value, which rounded_up covers.
  const double size =
      depends_on_condition(m.operation) ? quotient_below(largest, required.condition) : largest;
  if (size == 0) return {unbounded_error, unbounded_error};  // the result might be 0
  if (m.accumulator == Exact::name) return bound_of_exact(m, input, largest, size);
  // Better conditioned data have a larger sum, which may overflow. If it does not, their bound is smaller.
  const double error =
      std::max(bound_at(m, input, required, magnitudes, size),
               std::isfinite(bound_at(m, input, required, magnitudes, largest)) ? 0 : unbounded_error);
  return {error, error / input.unit_roundoff};
}

// --- costs ---------------------------------------------------------------------------------------

/// Seconds for each length.
using Curve = std::map<double, double>;

Curve curve_of(const Method& v, const Requirements& required, std::span<const Cost> costs) {
  Curve curve;
  for (const Cost& c : costs)
    if (c.method == v.name && c.input == required.input) curve[static_cast<double>(c.n)] = c.seconds;
  return curve;
}

std::optional<double> seconds_of(const Curve& curve, double n) {
  if (curve.empty()) return std::nullopt;
  const auto above = curve.lower_bound(n);
  if (above == curve.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == curve.end()) return below->second * (n / below->first);
  const double share = std::log(n / below->first) / std::log(above->first / below->first);
  return below->second * std::pow(above->second / below->second, share);
}

void check(std::span<const Cost> costs) {
  for (const Cost& c : costs)
    if (c.n == 0 || !(c.seconds > 0 && std::isfinite(c.seconds)))
      refuse_requirement("costs", "have " + three_digits(c.seconds) + " seconds for " + std::to_string(c.n) +
                                      " elements by " + quoted(c.method) +
                                      "; both must be finite and above 0");
}

// --- the choice ----------------------------------------------------------------------------------

enum class Verdict { fulfils, too_inexact, promises_too_little };

struct Assessed {
  Verdict verdict;
  bool meets;  ///< whether the bound is within the tolerance, whatever the promise
  Candidate candidate;
  std::uint64_t height;  ///< height of the tree
};

double in_unit_of(const Requirements& required, const Candidate& c) {
  return required.ulps ? c.ulps : c.bound;
}

Assessed judge(const Method& v, const Requirements& required, std::span<const Cost> costs) {
  const auto [error, ulps] = relative_bound(v, required);
  const Candidate c{&v, error, ulps,
                    seconds_of(curve_of(v, required, costs), static_cast<double>(required.length)), ""};
  const bool meets = in_unit_of(required, c) <= (required.ulps ? *required.ulps : *required.relative_error);
  const Verdict verdict = v.promise < required.promise ? Verdict::promises_too_little
                          : meets                      ? Verdict::fulfils
                                                       : Verdict::too_inexact;
  return {verdict, meets, c, v.height(required.length).total()};
}

/// Sort key: cheapest first. Methods without a known cost come last: fewest operations first, then lowest
/// tree, with slow methods at the end.
auto sort_key(const Assessed& j) {
  const auto& [v, bound, ulps, seconds, reason] = j.candidate;
  return std::tuple{j.verdict, !seconds, seconds.value_or(0), v->is_slow, v->operations_per_element,
                    j.height};
}

std::string tolerance_of(const Requirements& required) {
  return required.ulps ? three_digits(*required.ulps) + " ulps of " + std::string{required.input}
                       : three_digits(*required.relative_error);
}

std::string reason_against(const Assessed& j, const Candidate& best, const Requirements& required) {
  const Candidate& c = j.candidate;
  if (j.verdict == Verdict::promises_too_little)
    return "only promises " + std::string{name_of(c.method->promise)};
  if (j.verdict == Verdict::too_inexact)
    return std::isfinite(c.bound) ? "bound above " + (required.ulps ? three_digits(*required.ulps) + " ulps"
                                                                    : three_digits(*required.relative_error))
                                  : "no finite bound";
  if (!c.seconds) return "cost not known";
  const double ratio = *c.seconds / *best.seconds;
  return ratio < 2 ? three_digits(100 * (ratio - 1)) + "% longer" : three_digits(ratio) + " times as long";
}

/// Returns the reason for the choice. `fit` methods fulfil the requirements; the cost of `known` of them is
/// known.
std::string reason_for(const Candidate& best, std::size_t fit, std::size_t known,
                       const Requirements& required) {
  const std::string facts = "bound at most " + tolerance_of(required) + ", promise " +
                            std::string{name_of(best.method->promise)} + ". ";
  if (fit == 1) return facts + "No other method qualifies";
  const std::string all = std::to_string(fit) + " methods qualify; ";
  if (known == 0) return facts + all + "no cost is known, and this one has the fewest operations";
  if (known == 1) return facts + all + "only the cost of this one is known";
  return facts + all + (known == fit ? "" : "of the " + std::to_string(known) + " with a known cost, ") +
         "this is the fastest";
}

std::string bound_of(const Candidate& c, const Requirements& required) {
  return three_digits(in_unit_of(required, c)) + (required.ulps ? " ulps" : "");
}

/// Throws NoSuitableMethod. The message names the method with the smallest bound among those that promise
/// enough, and the strongest promise for which the tolerance is met.
[[noreturn]] void give_up(const std::vector<Assessed>& all, const Requirements& required) {
  const auto exacter = [&](const Assessed& a, const Assessed& b) {
    return std::tuple{a.verdict, in_unit_of(required, a.candidate)} <
           std::tuple{b.verdict, in_unit_of(required, b.candidate)};
  };
  const Assessed& nearest = *std::ranges::min_element(all, exacter);
  std::string message =
      "samesum: choose: no method" + (required.backend.empty() ? "" : " @" + std::string{required.backend}) +
      " with promise " + std::string{name_of(required.promise)} + " has a bound of at most " +
      tolerance_of(required) + (required.ulps ? "; " : " relative to the result; ") +
      (nearest.verdict == Verdict::promises_too_little ? "with any promise, " : "") + "the smallest is " +
      bound_of(nearest.candidate, required) + ", of " + nearest.candidate.method->name;
  const Candidate* would_do = nullptr;
  for (const auto& [verdict, meets, c, height] : all)
    if (meets && (!would_do || c.method->promise > would_do->method->promise)) would_do = &c;
  if (would_do)
    message += "; with promise " + std::string{name_of(would_do->method->promise)} + ", " +
               would_do->method->name + " has a bound of " + bound_of(*would_do, required);
  throw NoSuitableMethod(message);
}

}  // namespace

bool depends_on_condition(std::string_view operation) {
  const std::span<const Method> all = methods(operation);
  if (all.empty()) return false;
  const AddedTerms& terms = Code::of(all.front()).adds;
  return terms && (terms->term == Term::element || terms->term == Term::product);
}

Choice choose(const Requirements& required, std::span<const Cost> costs) {
  const FloatingPointEnvironment environment;
  check(required);
  check(costs);
  std::vector<Assessed> all;
  for (const Method& v : methods(required.operation))
    if ((required.backend.empty() ? v.backend != "reference" : v.backend == required.backend) &&
        v.accepts(*find_format(required.input)))
      all.push_back(judge(v, required, costs));
  std::ranges::stable_sort(all, {}, sort_key);
  if (all.front().verdict != Verdict::fulfils) give_up(all, required);
  Choice choice{all.front().candidate, {}};
  const auto fit =
      std::ranges::partition_point(all, [](const Assessed& j) { return j.verdict == Verdict::fulfils; });
  const auto known = std::ranges::count_if(all.begin(), fit,
                                           [](const Assessed& j) { return j.candidate.seconds.has_value(); });
  choice.best.reason = reason_for(choice.best, static_cast<std::size_t>(fit - all.begin()),
                                  static_cast<std::size_t>(known), required);
  for (std::size_t i = 1; i < all.size(); ++i) {
    choice.others.push_back(all[i].candidate);
    choice.others.back().reason = reason_against(all[i], choice.best, required);
  }
  return choice;
}

}  // namespace samesum
