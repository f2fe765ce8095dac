#include "harness/dataset.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstring>
#include <sstream>

#include "harness/names.hpp"
#include "harness/random.hpp"
#include "harness/text.hpp"
#include "samesum/accumulator/exact.hpp"

namespace samesum::harness {
namespace {

using X = std::span<double>;

// --- distributions by comparisons alone ----------------------------------------------------------

/// Returns true with probability exp(-x · kept), 0 <= x <= 1: if a run x > u_1 > u_2 > … of uniform numbers,
/// each of which is kept with probability `kept`, has an even length (von Neumann 1951; Karney's algorithms H
/// and B).
bool exponential(Random& random, double x, double kept = 1) {
  bool even = true;
  for (double u; (u = random.uniform()) < x && (kept == 1 || random.uniform() < kept); x = u) even = !even;
  return even;
}

/// Whether `chance` returns true `times` times in a row.
bool always(int times, auto&& chance) {
  for (int i = 0; i < times; ++i)
    if (!chance()) return false;
  return true;
}

/// A number from the standard normal distribution: Karney (2016), algorithm N, k + x with weight exp(-k²/2)
/// exp(-x(2k + x)/2).
double normal(Random& random) {
  const auto half = [&] { return exponential(random, 0.5); };
  for (;;) {
    int k = 0;
    while (half()) ++k;
    if (!always(k * (k - 1), half)) continue;
    const double x = random.uniform();
    const double kept = (2 * k + x) / (2 * k + 2);
    if (always(k + 1, [&] { return exponential(random, x, kept); })) return random.with_sign(k + x);
  }
}

/// A significand m in [1, 2) whose logarithm is uniform: its density is proportional to 1/m.
double log_uniform_significand(Random& random) {
  for (;;)
    if (const double m = 1 + random.uniform(52); random.uniform() * m < 1) return m;
}

/// e^x = 2^k·e^r, where |r| is at most about ln 2 / 2, by the Taylor series of e^r, with an error of a few
/// units in the last place.
double exponential(double x) {
  constexpr double log_2 = 0x1.62e42fefa39efp-1, rest_of_log_2 = 0x1.abc9e3b39803fp-56;
  const int k = static_cast<int>(x / log_2 + (x < 0 ? -0.5 : 0.5));
  const double r = (x - k * log_2) - k * rest_of_log_2;
  double sum = 1;
  for (int i = 16; i > 0; --i) sum = 1 + sum * r / i;
  return sum * power_of_two(k);
}

// --- the data sets -------------------------------------------------------------------------------

void uniform(X x, const FormatInfo& format, std::uint64_t seed) {
  Random random{seed};
  for (double& e : x) e = random.uniform(format.precision);
}

void symmetric(X x, const FormatInfo& format, std::uint64_t seed) {
  Random random{seed};
  for (double& e : x) e = random.symmetric(format.precision);
}

/// Keeps the first 2^20 numbers of the last seed, since experiments round the same ones to each format.
void normal(X x, const FormatInfo&, std::uint64_t seed) {
  thread_local std::uint64_t seed_of_kept = 0;
  thread_local Random random{seed_of_kept};
  thread_local std::vector<double> kept;
  if (seed != seed_of_kept) {
    seed_of_kept = seed;
    random = Random{seed};
    kept.clear();
  }
  const std::size_t n = std::min(x.size(), std::size_t{1} << 20);
  while (kept.size() < n) kept.push_back(normal(random));
  std::ranges::copy_n(kept.begin(), static_cast<std::ptrdiff_t>(n), x.begin());
  Random more = random;  // n < x.size() only if the first 2^20 are kept
  for (double& e : x.subspan(n)) e = normal(more);
}

void log_normal(X x, const FormatInfo&, std::uint64_t seed) {
  Random random{seed};
  for (double& e : x) e = exponential(3 * normal(random));
}

void one_outlier(X x, const FormatInfo& format, std::uint64_t seed) {
  if (x.empty()) return;
  normal(x, format, seed);
  Random random{~seed};
  const std::size_t place = random.below(x.size());
  x[place] = random.with_sign(log_uniform_significand(random) * power_of_two(14));
}

/// In fp16, the large elements are 2^12 times as large, so that they are finite.
void outliers(X x, const FormatInfo& format, std::uint64_t seed) {
  if (x.empty()) return;
  normal(x, format, seed);
  constexpr std::size_t apart = (std::size_t{1} << 16) + 1;  // a prime: no multiple of the length of a row
  const double times = power_of_two(std::min(14, format.max_exponent - 3));
  for (std::size_t i = Random{~seed}.below(std::min(x.size(), apart)); i < x.size(); i += apart)
    x[i] *= times;
}

void around_1000(X x, const FormatInfo& format, std::uint64_t seed) {
  normal(x, format, seed);
  for (double& e : x) e = 1000 + e / 1000;
}

/// All numbers are below 1, so that long sums do not overflow. fp16 has only 24 binades there.
void sixty_binades(X x, const FormatInfo& format, std::uint64_t seed) {
  Random random{seed};
  const auto binades = static_cast<std::size_t>(std::min(60, -format.min_quantum));
  for (double& e : x) {
    const int exponent = -1 - static_cast<int>(random.below(binades));
    e = random.with_sign(log_uniform_significand(random) * power_of_two(exponent));
  }
}

void near_one(X x, const FormatInfo&, std::uint64_t seed) {
  Random random{seed};
  for (double& e : x) e = 1 + random.symmetric() * power_of_two(-6);
}

void arbitrary_bits(X x, const FormatInfo& format, std::uint64_t seed) {
  Random random{seed};
  with_format(format, [&]<class F>() {
    for (double& e : x) {
      auto bits = static_cast<BitsOf<F>>(random.bits());
      if ((bits & Format<F>::infinity) == Format<F>::infinity)  // not finite: clears one bit of the exponent
        bits ^= BitsOf<F>(BitsOf<F>{1} << (Format<F>::precision - 1));
      e = convert<double>(from_bits<F>(bits));
    }
  });
}

void ones(X x, const FormatInfo&, std::uint64_t) { std::ranges::fill(x, 1.0); }

void harmonic(X x, const FormatInfo&, std::uint64_t) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 / static_cast<double>(i + 1);
}

void alternating(X x, const FormatInfo& format, std::uint64_t seed) {
  harmonic(x, format, seed);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = -x[i];
}

/// Element n - i is the negative of element i, so the sum is 0.
void sine(X x, const FormatInfo&, std::uint64_t) {
  const std::size_t n = x.size();
  for (std::size_t i = 0; 2 * i <= n && i < n; ++i) {
    const std::size_t quarters = std::min(4 * i, 2 * n - 4 * i);  // multiplied by n
    x[i] = sine_of_quarter(static_cast<double>(quarters) / static_cast<double>(n));
    if (0 < i && 2 * i < n) x[n - i] = -x[i];
  }
}

/// Each small element is less than half a unit in the last place of the big one.
void one_big(X x, const FormatInfo& format, std::uint64_t seed) {
  if (x.empty()) return;
  uniform(x, format, seed);
  x[Random{~seed}.below(x.size())] = power_of_two(format.precision + 1);
}

/// N - 1 - 1 … - 1 = 1 with N elements: κ = 2N - 1. N is the largest number up to n that the format
/// represents; the other elements are zeros. If N would overflow, all elements are scaled by a power of two.
void cancelling_ones(X x, const FormatInfo& format, std::uint64_t) {
  if (x.empty()) return;
  const int width = static_cast<int>(std::bit_width(x.size()));
  const int dropped = std::max(0, width - format.precision);
  const std::size_t n = x.size() >> dropped << dropped;
  const double unit = power_of_two(std::min(0, format.max_exponent - width));
  x[0] = static_cast<double>(n) * unit;
  std::ranges::fill(x.subspan(1, n - 1), -unit);
  std::ranges::fill(x.subspan(n), 0.0);
}

void ascending(X x, const FormatInfo& format, std::uint64_t seed) {
  uniform(x, format, seed);
  std::ranges::sort(x);
}

void descending(X x, const FormatInfo& format, std::uint64_t seed) {
  ascending(x, format, seed);
  std::ranges::reverse(x);
}

// --- sums of a prescribed condition --------------------------------------------------------------

using Wide = boost::multiprecision::int256_t;

/// The leading 64 bits of x · 2^exponent, as a double.
double leading(const Wide& x, int exponent) {
  if (x == 0) return 0;
  const Wide magnitude = abs(x);
  const int shift = std::max(0, static_cast<int>(msb(magnitude)) - 63);
  const auto head = static_cast<double>(static_cast<std::uint64_t>(magnitude >> shift));
  return std::copysign(head * power_of_two(shift + exponent), x < 0 ? -1.0 : 1.0);
}

int bit_width(__int128 x) {
  const auto high = static_cast<std::uint64_t>(x >> 64), low = static_cast<std::uint64_t>(x);
  return static_cast<int>(high > 0 ? 64 + std::bit_width(high) : std::bit_width(low));
}

/// significand · 2^exponent · quantum, with at most `precision` bits.
struct Factor {
  std::int64_t significand;
  int exponent;
};

/// The elements made from the products of a dot product, two per product, and their exact sum.
class Products {
 public:
  Products(X x, int precision) : x_{x}, precision_{precision} {}

  std::size_t left() const { return (x_.size() - size_) / 2; }
  double sum() const { return leading(sum_, 2 * quantum()); }
  double magnitudes() const { return magnitudes_; }

  /// Draws a factor in ±[1/2, 1) · 2^exponent.
  Factor factor(Random& random, int exponent) const {
    const auto half = std::int64_t{1} << (precision_ - 2);
    const auto significand = half + static_cast<std::int64_t>(random.bits(precision_ - 2));
    return {random.bits(1) ? -significand : significand, exponent};
  }

  /// The factor that is nearest to x.
  Factor nearest(double x) const {
    int exponent = 0;
    while (std::abs(x) >= power_of_two(exponent + 1)) ++exponent;
    const double scaled = x * power_of_two(-exponent - quantum());
    return {static_cast<std::int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5)), exponent};
  }

  double value(Factor f) const {
    return static_cast<double>(f.significand) * power_of_two(f.exponent + quantum());
  }

  /// Appends the product as two elements: its leading bits and the rest.
  void append(Factor a, Factor b) {
    const __int128 product = static_cast<__int128>(a.significand) * b.significand;
    const __int128 magnitude = product < 0 ? -product : product;
    const int dropped = std::max(0, bit_width(magnitude) - precision_);
    const __int128 half = dropped == 0 ? 0 : static_cast<__int128>(1) << (dropped - 1);
    const __int128 high = (magnitude + half) >> dropped << dropped;
    const int exponent = a.exponent + b.exponent;
    for (const __int128 part : {high, magnitude - high}) {
      const double element =
          static_cast<double>(product < 0 ? -part : part) * power_of_two(exponent + 2 * quantum());
      x_[size_++] = element;
      magnitudes_ += std::abs(element);
    }
    sum_ += Wide{product} << exponent;
  }

 private:
  int quantum() const { return 1 - precision_; }

  X x_;
  int precision_;
  std::size_t size_ = 0;
  Wide sum_ = 0;  // in squares of the quantum
  double magnitudes_ = 0;
};

void shuffle(X x, Random& random) {
  for (std::size_t i = x.size(); i > 1; --i) std::swap(x[i - 1], x[random.below(i)]);
}

}  // namespace

double sine_of_quarter(double t) {
  const double z = t * 0x1.921fb54442d18p+0, square = z * z;
  double sum = 1;
  for (int k = 23; k > 1; k -= 2) sum = 1 - sum * square / (k * (k - 1));
  return z * sum;
}

void generate_sum(X x, const FormatInfo& format, double condition, std::uint64_t seed) {
  Random random{seed};
  std::ranges::fill(x, 0.0);
  Products products{x, format.precision};
  const double half = 0.5 * static_cast<double>(std::bit_cast<std::uint64_t>(condition) >> 52) - 511.5;
  const auto exponent_at = [&](double part) { return static_cast<int>(part * half + 0.5); };

  // Half of the products are random; few products need more than half of them to cancel.
  const std::size_t count = products.left();
  const auto steps = static_cast<std::size_t>(2 * half) / static_cast<std::size_t>(format.precision) + 4;
  const std::size_t cancelling =
      std::min(std::max(count / 2, steps), count - std::min<std::size_t>(count, 1));
  for (bool first = true; products.left() > cancelling; first = false) {
    const int exponent = exponent_at(first ? 1 : random.uniform());
    const Factor a = products.factor(random, exponent);
    products.append(a, products.factor(random, exponent));
  }
  // The others bring the sum to about 2^exponent, for decreasing exponents, and finally to the target.
  const double largest = power_of_two(format.max_exponent);
  while (const std::size_t left = products.left()) {
    const int exponent = exponent_at(static_cast<double>(left - 1) /
                                     static_cast<double>(std::max<std::size_t>(cancelling, 2) - 1));
    const double target =
        left > 3 ? random.symmetric() * power_of_two(exponent) : products.magnitudes() / condition;
    const Factor a = products.factor(random, exponent);
    const double step = std::clamp(target - products.sum(), -largest, largest);
    products.append(a, products.nearest(step / products.value(a)));
  }
  shuffle(x, random);
}

namespace {

double rounded_to(const FormatInfo& format, double x) {
  const double in_range = std::clamp(x, -format.max_finite, format.max_finite);
  return with_format(format, [&]<class F>() { return convert<double>(convert<F>(in_range)); });
}

/// The exact sum of terms, and the sum of their magnitudes.
class Terms {
 public:
  /// Adds the term high + low.
  void add(double high, double low = 0) {
    sum_.add(high);
    sum_.add(low);
    magnitudes_ += std::abs(high);
  }
  double distance_to(double target) const { return target - sum_.result<double>(); }
  double magnitudes() const { return magnitudes_; }

 private:
  Exact sum_;
  double magnitudes_ = 0;
};

}  // namespace

void generate_sum_of_any_condition(X x, const FormatInfo& format, double condition, std::uint64_t seed) {
  const std::size_t n = x.size();
  const int binades = std::ilogb(condition);
  const int never_overflows = format.max_exponent - 1 - static_cast<int>(ceil_log2(n));
  const int reaches = binades + format.min_quantum + 2;
  const int top =
      std::min(std::max(std::min(binades / 2, never_overflows), reaches), format.max_exponent - 1);
  const int low = std::max(top - binades, format.min_quantum);
  Random random{seed};
  Terms terms;
  std::size_t size = 0;
  const auto left = [&] { return n - size; };
  const auto append = [&](double wanted) {
    x[size] = rounded_to(format, wanted);
    terms.add(x[size++]);
  };
  const auto some = [&](int exponent) {
    const double m = log_uniform_significand(random) * power_of_two(exponent);
    return condition > 1 ? random.with_sign(m) : m;
  };
  while (left() > n / 2)
    append(some(size == 0 || top < reaches
                    ? top
                    : low + static_cast<int>(random.below(static_cast<std::size_t>(top - low + 1)))));
  for (constexpr std::size_t last = 8; condition > 1 && left() > last;) {
    const double way = static_cast<double>(left() - last) / static_cast<double>(n - n / 2);
    append(terms.distance_to(some(low + static_cast<int>(way * (top - low)))));
  }
  while (left() > 0) append(terms.distance_to(terms.magnitudes() / condition));
  shuffle(x, random);
}

void generate_dot(X x, X y, const FormatInfo& format, double condition, std::uint64_t seed) {
  const std::size_t n = x.size();
  const int binades = std::ilogb(condition);
  const int largest = format.max_exponent - 1 - static_cast<int>(ceil_log2(n));
  const int top = std::min((binades + 1) / 2, largest), low = top - binades;
  Random random{seed};
  Terms products;
  const auto number = [&](int exponent) { return log_uniform_significand(random) * power_of_two(exponent); };
  const auto exponent_at = [&](double part) { return low + static_cast<int>(part * (top - low)); };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t left = n - i;
    const bool is_random = left > n / 2, is_last = left <= 8 && !is_random;
    const int exponent = is_random ? (i == 0 ? top : exponent_at(random.uniform()))
                         : is_last ? low
                                   : exponent_at(static_cast<double>(left) / static_cast<double>(n - n / 2));
    // One factor of a product of about 2^exponent, and the other.
    const double a = random.with_sign(rounded_to(format, number(exponent / 2)));
    double b;
    if (condition == 1)
      b = std::copysign(number(exponent - exponent / 2), a);
    else if (is_random)
      b = random.with_sign(number(exponent - exponent / 2));
    else  // brings the sum to a smaller number
      b = products.distance_to(is_last ? products.magnitudes() / condition
                                       : random.with_sign(number(exponent))) /
          a;
    x[i] = a, y[i] = rounded_to(format, b);
    const double product = x[i] * y[i];
    products.add(product, std::fma(x[i], y[i], -product));
  }
  // One permutation for both vectors.
  Random first{seed + 1}, second{seed + 1};
  shuffle(x, first);
  shuffle(y, second);
}

void generate_offset(X x, double condition, std::uint64_t seed) {
  normal(x, format_info<fp64>(), seed);
  const double offset = std::sqrt(condition * condition - 1);
  for (double& e : x) e += offset;
}

void generate_logarithm(X x, double condition, std::uint64_t seed) {
  constexpr double log_2 = 0x1.62e42fefa39efp-1;
  const double log_n = log_2 * std::ilogb(static_cast<double>(x.size())), h = log_n / (condition + 1);
  Random random{seed};
  for (double& e : x) e = (0.5 + random.uniform()) * h - log_n;
}

namespace {

Dataset of_condition(const char* name, double condition, int max_exponent) {
  return {std::string{"kappa "} + name, std::string{"a sum of condition number "} + name,
          Elements::structured, max_exponent, [=](X x, const FormatInfo& format, std::uint64_t seed) {
            generate_sum(x, format, condition, seed);
          }};
}

}  // namespace

Column Dataset::make(const FormatInfo& format, std::size_t n, std::uint64_t seed) const {
  std::vector<double> x(n);
  fill(x, format, seed);
  return column_of(format, x);
}

Column column_of(const FormatInfo& format, std::span<const double> x) {
  Column column{&format, std::vector<std::byte>(x.size() * format.bytes)};
  with_format(format, [&]<class F>() {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const F element = convert<F>(x[i]);
      std::memcpy(column.bytes.data() + i * sizeof(F), &element, sizeof(F));
    }
  });
  return column;
}

std::span<const Dataset> datasets() {
  using enum Elements;
  static const std::vector<Dataset> all{
      {"uniform", "uniform in [0, 1)", independent, 0, uniform},
      {"uniform +-1", "uniform in (-1, 1)", independent, 0, symmetric},
      {"normal", "the standard normal distribution", independent, 0,
       [](X x, auto& f, auto seed) { normal(x, f, seed); }},
      {"one outlier", "normal, but for one element of magnitude 2^14 to 2^15", independent, 0, one_outlier},
      {"outliers", "normal, but each 65537th element times 2^14 (2^12 in fp16)", independent, 0, outliers},
      {"around 1000", "normal with mean 1000 and standard deviation 0.001", independent, 9, around_1000},
      {"log-normal", "e^(3z), where z is normal", independent, 40, log_normal},
      {"60 binades", "either sign, log-uniform over 60 binades (24 in fp16)", independent, 0, sixty_binades},
      {"arbitrary bits", "all finite bit patterns, equally likely", independent, 0, arbitrary_bits},
      {"near 1", "uniform within 2^-6 of 1: long products stay in range", independent, 0, near_one},
      {"ones", "all elements are 1", structured, 0, ones},
      {"1/i", "the harmonic series", structured, 0, harmonic},
      {"(-1)^i/i", "the alternating harmonic series", structured, 0, alternating},
      {"sine", "one period of a sine: the sum is 0", structured, 0, sine},
      {"one big", "one element 2/u, the others uniform in [0, 1)", structured, 0, one_big},
      {"N then -1", "N and then N - 1 times -1: the condition number is 2N - 1", structured, 0,
       cancelling_ones},
      {"ascending", "uniform in [0, 1), sorted", structured, 0, ascending},
      {"descending", "uniform in [0, 1), sorted in descending order", structured, 0, descending},
      of_condition("1e4", 1e4, 15),
      of_condition("1e8", 1e8, 127),
      of_condition("1e16", 1e16, 127),
  };
  return all;
}

std::string datasets_in_words() {
  std::string text;
  for (const Dataset& data : datasets()) text += "\n  " + left(data.name, 15) + data.meaning;
  return text;
}

std::vector<const Dataset*> datasets_matching(const std::string& globs) {
  std::vector<const Dataset*> chosen;
  for (const std::string& glob : globs_in(globs.empty() ? "*" : globs)) {
    bool found = false;
    for (const Dataset& data : datasets()) {
      if (!matches(glob, data.name)) continue;
      found = true;
      if (std::ranges::find(chosen, &data) == chosen.end()) chosen.push_back(&data);
    }
    if (!found) throw UsageError{"--data: '" + glob + "' matches no data; see --help for their names"};
  }
  return chosen;
}

std::vector<Part> parts(const std::vector<const Dataset*>& data, const std::vector<const Method*>& methods) {
  std::vector<Part> all;
  for (const Dataset* d : data)
    for (const FormatInfo& format : formats) {
      Part part{d, &format, {}};
      for (const Method* v : methods)
        if (v->format == &format && d->fits(format)) part.methods.push_back(v);
      if (!part.methods.empty()) all.push_back(part);
    }
  if (all.empty())
    throw UsageError{"--filter, --data: none of the methods has a format that holds these data"};
  return all;
}

}  // namespace samesum::harness
