/// Results and their provenance as JSON. results.schema.json describes every object.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "harness/provenance.hpp"
#include "harness/recommend.hpp"

namespace samesum::harness {

/// Version of the schema, in the header of a study and in comparisons. Version 1 had one object per file.
inline constexpr int schema_version = 2;

/// Output that cannot be written. what() is one line that names the file.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The transfer of the data to a GPU, once, before its methods are timed.
struct Transfer {
  double seconds, gigabytes_per_second;
};

/// Results of `samesum compare` on one data set.
struct Comparison {
  std::string operation;
  std::vector<std::string> files;  ///< names of the data
  Inputs inputs;
  const Truth* truth;
  MeasureOptions options;
  std::optional<Transfer> transfer;       ///< empty if no GPU took part
  std::vector<Measurement> measurements;  ///< sorted by merit
  Recommendation recommendation;

  /// Broken promises and bounds, one line each. Those of peers do not count.
  std::vector<std::string> failures() const;
};

/// The header of an experiment's results file.
Json study_json(const std::string& experiment, const std::string& question, bool full, std::uint64_t seed,
                const std::string& filter);

/// Converts a number to JSON, which has neither infinities nor NaN: these become null.
Json number_or_null(double x);

/// All bits of a digest, as text for a row.
std::string hexadecimal_digest(std::uint64_t digest);

/// One result without repeats and times: the object of `samesum sum --json`.
Json result_json(const Measurement& m, const FormatInfo& input, const Truth& truth);

/// The check that a result violates, as a message: its bound, or correct rounding for an exact method. Empty
/// if it passes, and for peers.
std::optional<std::string> accusation(const Method& v, const Json& result);

/// The measurements as flat objects: the rows of a table.
std::vector<Json> rows(const Comparison& c);

/// Properties of data before they are reduced. The digest depends on the elements and on their order.
Json data_json(const std::vector<std::string>& files, const Inputs& inputs, const Truth& truth);

/// A comparison with its provenance: a row of a results file.
Json comparison_json(const Comparison& c);

/// The object on one line, with the line end. Invalid UTF-8 is replaced.
std::string json_line(const Json& object);

/// Formats objects with the same keys as comma-separated values, with a header; null is an empty field.
std::string csv(const std::vector<Json>& rows);

/// Throws OutputError if write_file could not write the file. Called before hours of work.
void check_writable(const std::string& path);

/// Writes the whole text or nothing: to a temporary file in the same folder, which is then renamed. Throws
/// OutputError.
void write_file(const std::string& path, const std::string& text);

}  // namespace samesum::harness
