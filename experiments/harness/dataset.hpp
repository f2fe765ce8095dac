/// Made data whose condition is known: every set has a name and a seed, and the same bits on every machine.
///
/// Numbers come from the integers of SplitMix64 by comparisons and by additions, multiplications and
/// divisions in a fixed order: nothing of libm, whose last bits differ, and no std::*_distribution.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/input.hpp"
#include "samesum/catalogue/method.hpp"

namespace samesum::harness {

/// How elements come about: drawn at random, none depending on another, or else equal, sorted, in a pattern,
/// or made to cancel. Of structured ones no theory tells that their roundings have mean 0.
enum class Elements { independent, structured };

struct Dataset {
  std::string name;     ///< "normal", "kappa 1e8"
  std::string meaning;  ///< in words
  Elements elements;
  int max_exponent;  ///< the least that a format must have for the data to make sense in it
  std::function<void(std::span<double> x, const FormatInfo& format, std::uint64_t seed)> fill;

  bool fits(const FormatInfo& format) const { return format.max_exponent >= max_exponent; }

  /// n elements, each rounded once to the format.
  Column make(const FormatInfo& format, std::size_t n, std::uint64_t seed) const;
};

/// The list of data sets that experiments and tests walk.
std::span<const Dataset> datasets();

/// For --help, a line each: the name and what it means.
std::string datasets_in_words();

/// Those whose names match one of the globs, which are separated by commas; all of them for an empty text.
/// Throws UsageError where a glob matches nothing.
std::vector<const Dataset*> datasets_matching(const std::string& globs);

/// One data set in one format, for the methods that sum it in that format.
struct Part {
  const Dataset* data;
  const FormatInfo* format;
  std::vector<const Method*> methods;
};

/// All combinations that make sense, data sets before formats. Throws UsageError where there is none.
std::vector<Part> parts(const std::vector<const Dataset*>& data, const std::vector<const Method*>& methods);

/// Data of a prescribed condition number of at most 1e30: GenDot of Ogita, Rump and Oishi (2005), algorithm
/// 6.1, each product of which becomes two elements that are exactly as large. From 64 elements on the
/// condition is within a factor of 3 of what is asked for; fewer elements of few bits cannot cancel that far.
void generate_sum(std::span<double> x, const FormatInfo& format, double condition, std::uint64_t seed);

/// Data of any condition from 1 on whose sum the format has room for below elements as large as it holds: in
/// fp16 some n·10^12. The same algorithm in terms of sums: half of the elements are random, and each of the
/// others is what brings the exact sum to some smaller number. The elements are as small as they may be where
/// their Σ|x| would overflow otherwise. Of 64 elements or more the condition is within a factor of 3 of what
/// is asked for; where the range is exhausted it is less, so measure it.
void generate_sum_of_any_condition(std::span<double> x, const FormatInfo& format, double condition,
                                   std::uint64_t seed);

/// sin(πt/2) for 0 <= t <= 1, by its Taylor series, within some units in the last place.
double sine_of_quarter(double t);

/// n elements of a format, each rounded once to it.
Column column_of(const FormatInfo& format, std::span<const double> x);

}  // namespace samesum::harness
