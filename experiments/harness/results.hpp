/// Results as JSON, with where they come from; results.schema.json describes every object.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "harness/recommend.hpp"

namespace samesum::harness {

using Json = nlohmann::ordered_json;  ///< keeps the order in which keys are set

/// Of a study, which begins a file, and of comparisons. 1 had an object a file.
inline constexpr int schema_version = 2;

/// Output that cannot be written: what() is one line that names the file.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The data on their way to a GPU: once, before its methods are timed.
struct Transfer {
  double seconds, gigabytes_per_second;
};

/// Everything that `samesum compare` found on one data set.
struct Comparison {
  std::string data;  ///< its name
  Values values;
  const Truth* truth;
  MeasureOptions options;
  std::optional<Transfer> transfer;       ///< where a GPU took part
  std::vector<Measurement> measurements;  ///< sorted by merit
  Recommendation recommendation;

  /// The promises and bounds that were broken, a line each. What peers break is shown, and is no failure.
  std::vector<std::string> failures() const;
};

/// What the numbers were measured on and with.
Json provenance();

/// The first line of an experiment's file.
Json study_json(const std::string& experiment, const std::string& question, bool full, std::uint64_t seed,
                const std::string& filter);

/// JSON has neither infinities nor NaN.
Json number_or_null(double x);

/// All bits, as a row has them.
std::string hexadecimal_digest(std::uint64_t digest);

/// One result, without what only repeated and timed runs can tell: the object of `samesum sum --json`.
Json result_json(const Measurement& m, const FormatInfo& input, const Truth& truth);

/// What such a result, measured now or earlier, says against a method of ours.
std::optional<std::string> accusation(const Method& v, const Json& result);

/// The measurements as objects without objects in them: the rows of a table.
std::vector<Json> rows(const Comparison& c);

/// What is known of data before they are summed. Other elements have another digest, in another order too.
Json data_json(const std::string& name, Values x, const Truth& truth);

/// Everything about one data set with its origin. As a line it is one of a results file.
Json comparison_json(const Comparison& c);

/// The object on one line, the line's end included. Text that is not UTF-8 is mended.
std::string json_line(const Json& object);

/// Objects with the same keys as lines of comma-separated values; null is an empty field.
std::string csv(const std::vector<Json>& rows);

/// Refuses early what write_file would refuse after hours of work.
void check_writable(const std::string& path);

/// Writes all of the text or nothing: under a temporary name first, beside the final one.
void write_file(const std::string& path, const std::string& text);

}  // namespace samesum::harness
