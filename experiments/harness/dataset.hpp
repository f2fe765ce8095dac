/// Generated data sets of known condition, with the same bits on every machine.
///
/// Numbers come from the integers of SplitMix64 by comparisons, and by additions, multiplications and
/// divisions in a fixed order. The code uses neither libm, whose last bits differ between machines, nor
/// std::*_distribution.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/input.hpp"
#include "samesum/call/call.hpp"

namespace samesum::harness {

/// How elements are generated: independent random numbers, or structured (equal, sorted, in a pattern, or
/// made to cancel). For structured elements, no theory implies that roundings have mean 0.
enum class Elements { independent, structured };

struct Dataset {
  std::string name;     ///< "normal", "kappa 1e8"
  std::string meaning;  ///< description for --help
  Elements elements;
  int max_exponent;  ///< the smallest max_exponent of a format that can represent the data
  std::function<void(std::span<double> x, const FormatInfo& format, std::uint64_t seed)> fill;

  bool fits(const FormatInfo& format) const { return format.max_exponent >= max_exponent; }

  /// n elements, each rounded once to the format.
  Column make(const FormatInfo& format, std::size_t n, std::uint64_t seed) const;
};

/// The list of all data sets.
std::span<const Dataset> datasets();

/// Names and meanings for --help, one line each.
std::string datasets_in_words();

/// The data sets whose names match one of the globs, which are separated by commas; all of them for an empty
/// text. Throws UsageError if a glob matches nothing.
std::vector<const Dataset*> datasets_matching(const std::string& globs);

/// One data set in one format, with the methods that sum in this format.
struct Part {
  const Dataset* data;
  const FormatInfo* format;
  std::vector<const Method*> methods;
};

/// All combinations of data sets and formats that have a method, sorted by data set, then by format. Throws
/// UsageError if there is none.
std::vector<Part> parts(const std::vector<const Dataset*>& data, const std::vector<const Method*>& methods);

/// Generates data of a prescribed condition number, which may be at most 1e30: GenDot of Ogita, Rump and
/// Oishi (2005), algorithm 6.1, with each product split exactly into two elements. For 64 elements or more,
/// the condition is within a factor of 3 of the prescribed one; fewer elements of few bits cannot cancel so
/// far.
void generate_sum(std::span<double> x, const FormatInfo& format, double condition, std::uint64_t seed);

/// Generates data of any condition number from 1 on, as far as the range of the format allows: in fp16 up to
/// about n·10^12. The algorithm is that of generate_sum in terms of sums: half of the elements are random,
/// and each of the others brings the exact sum to a smaller number. If Σ|x| would overflow, the elements are
/// as small as possible. For 64 elements or more, the condition is within a factor of 3 of the prescribed
/// one, or less if the range is exhausted: measure it.
void generate_sum_of_any_condition(std::span<double> x, const FormatInfo& format, double condition,
                                   std::uint64_t seed);

/// Generates two vectors whose dot product has any condition number from 1 on, as far as the range of the
/// format allows: algorithm 6.1 of Ogita, Rump and Oishi (2005).
void generate_dot(std::span<double> x, std::span<double> y, const FormatInfo& format, double condition,
                  std::uint64_t seed);

/// Generates data whose variance has a condition number from 1 on, as far as the precision of the format
/// allows: normal numbers plus √(condition² - 1).
void generate_offset(std::span<double> x, double condition, std::uint64_t seed);

/// Generates data whose logsumexp has a condition number from 1 on, as far as the precision of the format
/// allows: uniform in [1/2, 3/2)·h - ln n, so that the result is about h = (ln n) / (condition + 1). n is a
/// power of two.
void generate_logarithm(std::span<double> x, double condition, std::uint64_t seed);

/// sin(πt/2) for 0 <= t <= 1 by its Taylor series, with an error of a few units in the last place.
double sine_of_quarter(double t);

/// The elements of x, each rounded once to a format.
Column column_of(const FormatInfo& format, std::span<const double> x);

}  // namespace samesum::harness
