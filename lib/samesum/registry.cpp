#include "samesum/registry.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "samesum/backend/cpu/exact.hpp"
#include "samesum/bound.hpp"
#include "samesum/environment.hpp"
#include "samesum/nearest.hpp"
#include "samesum/number_text.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/recipe.hpp"
#include "samesum/samesum.hpp"

namespace samesum {

namespace {
/// What a sum may lose, and what each addition to a shared cell may lose beside it, which takes part in the
/// roundings of later additions. It counts as one more element, added without a rounding: by a factor of
/// (1+u)^h < e while γ_h is finite, of 1 + (n-1)u where that bound is the smaller one, and `probable_gamma`
/// is at most 1.
double with_arrivals(const Variant& v, std::size_t n, double lost) {
  if (v.lost_per_arrival == 0) return lost;
  const double factor = 3 + static_cast<double>(n) * v.format->unit_roundoff;
  return rounded_up(lost + factor * v.lost_per_arrival * static_cast<double>(v.height(n).merges + 1));
}

/// With certainty where `probability` is 1.
SumBound bounds(const Variant& v, const FormatInfo& input, std::size_t n, double magnitudes, Number result,
                double probability) {
  if (!(probability > 0 && probability <= 1))
    throw std::invalid_argument("samesum: probability is " + three_digits(probability) +
                                "; it must be more than 0 and at most 1");
  samesum::check(v.name, input);
  samesum::check(v.name, "result", result, *v.format);
  magnitudes = checked_magnitudes(v.name, "magnitudes", magnitudes);
  if (n == 0) return {0, 0};
  if (!v.accumulator_bound) return {exact_bound(result), exact_bound(result)};
  SumBound all = sum_bound(v.accumulator_bound, input, *v.format, n, v.height(n), magnitudes, result);
  if (probability < 1) {
    const SumBound probable = probable_sum_bound(v.accumulator_probable_bound, input, *v.format, n,
                                                 v.height(n), magnitudes, result, 1 - probability);
    all = {std::min(all.prior, probable.prior), std::min(all.bound, probable.bound)};
  }
  return {with_arrivals(v, n, all.prior), with_arrivals(v, n, all.bound)};
}
}  // namespace

double Variant::bound(const FormatInfo& input, std::size_t n, double magnitudes, Number result) const {
  const FloatingPointEnvironment environment;
  return bounds(*this, input, n, magnitudes, result, 1).bound;
}

double Variant::probable_bound(const FormatInfo& input, std::size_t n, double magnitudes, Number result,
                               double probability) const {
  const FloatingPointEnvironment environment;
  return bounds(*this, input, n, magnitudes, result, probability).bound;
}

double prior_bound(const Variant& v, const FormatInfo& input, std::size_t n, double magnitudes, Number result,
                   double probability) {
  const FloatingPointEnvironment environment;
  return bounds(v, input, n, magnitudes, result, probability).prior;
}

void check(const Options& options) {
  if (options.threads < 0)
    throw std::invalid_argument("samesum: threads is " + std::to_string(options.threads) +
                                "; it must be 0 (automatic) or more");
}

Number Variant::operator()(Values x, Options options) const {
  const FloatingPointEnvironment environment;
  check(options);
  check("x", x);
  if (start) return bind(x)();
  return {format, run[x.format->index](x.data, x.size, options.threads)};
}

Placed Variant::place(Values x) const {
  const FloatingPointEnvironment environment;
  check("x", x);
  return move ? move(x) : Placed{x, nullptr};
}

Job Variant::bind(Values x, Options options) const {
  const FloatingPointEnvironment environment;
  check(options);
  check("x", x);
  if (start) return start(*this, place(x));
  return [this, x, options] { return (*this)(x, options); };
}

namespace {

/// All backends, each with a table for each format. One that is absent has an empty table.
std::vector<Variant> all_tables() {
  const FloatingPointEnvironment environment;  // also for the driver of a GPU, which begins here
  std::vector<Variant> all;
  const auto append = [&all](std::vector<Variant> more) { std::ranges::move(more, std::back_inserter(all)); };
  [&]<std::size_t... shard>(std::index_sequence<shard...>) {
    (append(reference::table<shard>()), ...);
    (append(cpu::table<shard>()), ...);
    (append(gpu::table<shard>()), ...);
  }
  (std::make_index_sequence<Formats::size>{});
  // Tables come one format at a time; readers want all formats of a recipe together.
  std::ranges::stable_sort(all, {}, [](const Variant& v) { return std::pair{v.backend, v.order.empty()}; });
  return all;
}

std::vector<Unsupported> all_unsupported() {
  std::vector<Unsupported> all;
  for_each_order_and_accumulator([&]<class Order, template <class> class A>() {
    for (const FormatInfo& format : formats)
      for (const std::string_view backend : backends)
        if (const std::string_view reason = refusal<Order, A>(backend); !reason.empty())
          all.push_back(
              {recipe_name(Order::name, A<Scalar<fp64>>::name, format.name).append("@").append(backend),
               std::string{reason}});
  });
  return all;
}

}  // namespace

Exact accumulate(Values x, Options options) {
  check(options);
  check("x", x);
  const FloatingPointEnvironment environment;
  return cpu::sum_exact(x, options.threads);
}

Estimate estimate(Values x, std::string_view name) {
  check("x", x);
  const FloatingPointEnvironment environment;
  const Variant& asked = find(name);
  if (asked.promise < Promise::everywhere)
    throw std::invalid_argument("samesum: no estimate for '" + asked.name +
                                "': its tree differs from run to run");
  const Variant& reading =
      find(recipe_name(asked.order, asked.accumulator, asked.format->name) + "@reference");
  const Watched seen = reading.watch[x.format->index](x.data, x.size);
  const Number value{asked.format, seen.bits};
  const auto at_least = [n = static_cast<double>(x.size)](double sum) {  // summed in double, one by one
    return rounded_up(sum * (1 + n * 0x1p-52));
  };
  const double magnitudes = at_least(seen.magnitudes);
  double bound = asked.bound(*x.format, x.size, magnitudes, value);
  if (asked.accumulator == Plain<Scalar<fp64>>::name && std::isfinite(value.to_double())) {
    // Each addition that rounds is off by at most u times what it returned, and these errors simply add up.
    bound = std::min(bound, rounded_up(asked.format->unit_roundoff * at_least(seen.partials) +
                                       narrowing_bound(*x.format, *asked.format, x.size, magnitudes)));
  }
  return {value, bound, magnitudes};
}

std::span<const Variant> variants() {
  static const std::vector<Variant> table = all_tables();
  return table;
}

std::span<const Unsupported> unsupported() {
  static const std::vector<Unsupported> table = all_unsupported();
  return table;
}

std::span<const Absent> absent() {
  const FloatingPointEnvironment environment;
  static const std::vector<Absent> table =
      gpu::absence().empty() ? std::vector<Absent>{} : std::vector<Absent>{{"cuda", gpu::absence()}};
  return table;
}

const Variant& find(std::string_view name) {
  std::string full{name};
  if (name.find('@') == name.npos) full += "@cpu";
  if (const auto found = std::ranges::find(variants(), full, &Variant::name); found != variants().end())
    return *found;
  if (const auto refused = std::ranges::find(unsupported(), full, &Unsupported::name);
      refused != unsupported().end())
    throw std::invalid_argument("samesum: no variant '" + full + "': " + refused->reason);
  for (const Absent& a : absent())
    if (full.ends_with("@" + a.backend))
      throw std::invalid_argument("samesum: no variant '" + full.substr(0, 80) + "' here: " + a.reason);
  throw std::invalid_argument("samesum: no variant '" + std::string{name.substr(0, 80)} +
                              "'; the nearest are " + nearest(full, variants()));
}

}  // namespace samesum
