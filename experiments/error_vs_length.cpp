/// How wrong is each sum, and each result of another operation, for arrays of every length?
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "harness/dataset.hpp"
#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/sample.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

constexpr double probability_of_errors = 0.99;

double probable_bound(const Sample& s, const Measurement& m, double probability) {
  return m.method->bound(s.format(), s.truth().size(), m.value, s.truth().magnitudes_rounded_up(),
                         {.probability = probability});
}

/// Why roundings may not have mean 0, as the probable bound assumes; null if they may. Depends on the data
/// and the method, not on the result. "structure": see Elements. "stagnation": the elements have one sign,
/// and the longest path has so many additions that the average one adds at most a unit roundoff of the sum;
/// the additions near the end then lose the whole addend, whatever its last bits are.
Json marked(const Dataset& data, const Method& v, const Truth& truth) {
  if (data.elements == Elements::structured) return "structure";
  const double additions = static_cast<double>(v.height(truth.size()).total());
  const bool of_one_sign = abs(truth.value()) == truth.magnitudes();
  if (of_one_sign && additions * v.format->unit_roundoff >= 1) return "stagnation";
  return nullptr;
}

Json error_row(const Dataset& data, const Method& v, Sample& sample) {
  const Measurement m = sample.judged(v);
  Json row = result_json(m, sample.format(), sample.truth());
  if (const std::string which = compared_result(v); !which.empty()) row["result"] = which;
  if (v.operation != "sum") return row;
  row["probable_bound"] = number_or_null(probable_bound(sample, m, probability_of_errors));
  row["marked"] = marked(data, v, sample.truth());
  return row;
}

/// log2 of the longest array: --longest, or a default that limits the time.
struct Longest {
  std::optional<int> asked;
  bool full;

  int of(const Method& v) const {
    // The truth of an element with exponentials takes long.
    if (v.operation != "sum") {
      const bool slow = v.operation == "logsumexp" || v.has_result_per_element;
      return asked.value_or(slow ? (full ? 16 : 12) : (full ? 20 : 16));
    }
    return asked.value_or(!full ? 18 : runs_on_gpu(v) ? 30 : 26);
  }
  int of(const Part& part) const {
    int longest = 0;
    for (const Method* v : part.methods) longest = std::max(longest, of(*v));
    return longest;
  }
};

std::vector<std::size_t> lengths(int longest) {
  std::vector<std::size_t> all;
  for (int log2_n = 4; log2_n <= longest; log2_n += 2) all.push_back(std::size_t{1} << log2_n);
  return all;
}

/// Table of one operation on one data set in one format: one line per method, one column per length.
class Table {
 public:
  Table(const std::string& operation, const Dataset& data, const FormatInfo& format,
        const std::vector<std::size_t>& lengths)
      : title_{title_prefix(operation) + data.name + " in " + std::string{format.name}} {
    for (const std::size_t n : lengths) head_ += right(power_or_number(n), 6);
  }

  void add(const Method& v, const Json& row) {
    std::string& line = lines_[name_without_format(v)];
    const double ulps = row["error_ulps"].is_null() ? infinity : row["error_ulps"].get<double>();
    line += right(compact(ulps < 1e-99 ? 0 : ulps, 5), 6);  // of a result that is too small for the format
    condition_ = row["condition"];
  }

  void print(Study& study) const {
    study.print(title_ + (condition_.is_null() ? "" : ", condition number " + compact(condition_, 8)) +
                ": error in ulps");
    study.print(left("", width_) + head_);
    for (const auto& [name, line] : lines_) study.print(left(name, width_) + line);
    study.print("");
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::size_t width_ = 26;
  std::string title_, head_;
  nlohmann::ordered_map<std::string, std::string> lines_;
  Json condition_;  ///< of the longest array
};

/// Counts the errors that are within their bounds: rigorous ones per operation, probable ones per mark.
class Tally {
 public:
  void add(const Method& v, const Json& row) {
    const Json& error = row["absolute_error"];
    rigorous_[v.operation].add(error, row["bound"]);
    if (v.operation != "sum") return;
    const Json& mark = row["marked"];
    probable_[mark.is_null() ? "not marked" : "marked for " + mark.get<std::string>()].add(
        error, row["probable_bound"]);
  }

  void print(Study& study) const {
    print(study, "Errors within their rigorous bounds; largest error / bound", rigorous_);
    print(study,
          "Errors within their probable bounds, for probability " + compact(probability_of_errors, 4) +
              "; largest error / bound",
          probable_);
  }

 private:
  /// Errors that have a bound.
  struct Share {
    std::size_t within = 0, all = 0;
    double nearest = 0;  ///< the largest error / bound

    void add(const Json& error, const Json& bound) {
      if (bound.is_null()) return;
      const double share = error.is_null() ? std::numeric_limits<double>::infinity()
                           : error == 0    ? 0
                                           : error.get<double>() / bound.get<double>();
      within += share <= 1;
      ++all;
      nearest = std::max(nearest, share);
    }
  };
  using Shares = std::map<std::string, Share>;

  static void print(Study& study, const std::string& heading, const Shares& shares) {
    if (shares.empty()) return;
    study.print(heading);
    for (const auto& [name, share] : shares)
      study.print(left(name, 26) +
                  left(std::to_string(share.within) + " of " + std::to_string(share.all), 18) +
                  compact(share.nearest, 8, 2));
    study.print("");
  }

  Shares rigorous_, probable_;
};

void measure(Study& study, const Part& part, Longest longest, Tally& tally) {
  const std::vector<std::size_t> all_lengths = lengths(longest.of(part));
  const std::string& operation = part.methods.front()->operation;
  const bool takes_two = part.methods.front()->inputs == 2;
  Table table{operation, *part.data, *part.format, all_lengths};
  for (const std::size_t n : all_lengths) {
    std::optional<Sample> sample;
    for (const Method* v : part.methods) {
      if (n > std::size_t{1} << longest.of(*v)) continue;
      const Json key = with_operation({{"kind", "error"},
                                       {"data", part.data->name},
                                       {"seed", study.seed()},
                                       {"method", v->name},
                                       {"input_format", part.format->name},
                                       {"n", n}},
                                      *v);
      const Json row = study.row(key, [&] {
        const auto make = [&](std::uint64_t seed) { return part.data->make(*part.format, n, seed); };
        if (!sample)
          sample.emplace(make(study.seed()), operation,
                         takes_two ? std::optional{make(study.seed() + 1)} : std::nullopt);
        return error_row(*part.data, *v, *sample);
      });
      table.add(*v, row);
      if (!is_peer(*v)) tally.add(*v, row);
      if (const auto why = accusation(*v, row))
        study.fail(v->name + " on " + part.data->name + ", n = " + power_or_number(n) + ": " + *why);
    }
  }
  table.print(study);
}

/// Sums of all data sets; without --full, other operations on a few unless `data` names others.
std::vector<Part> parts_of(const std::vector<std::string>& operations, const std::string& data,
                           const std::string& filter, bool full) {
  std::vector<Part> all;
  for (const std::string& operation : operations) {
    const bool few = data.empty() && operation != "sum" && !full;
    std::ranges::copy(
        parts(datasets_matching(few ? operation == "prod" ? "near 1" : "uniform,normal,60 binades" : data),
              methods_in_own_format(filter, operation)),
        std::back_inserter(all));
  }
  return all;
}

// --- how often the probable bound holds ------------------------------------------------------------

constexpr double probabilities[] = {0.9, 0.99};

/// Whether the probable bound is below the rigorous bound. This does not depend on the elements.
bool theory_gains(const Method& v, std::size_t n) {
  const Number zero{v.format, 0};
  return v.bound(*v.format, n, zero, 1, {.probability = probabilities[0]}) < v.bound(*v.format, n, zero, 1);
}

/// One method on one data set: arrays of n elements, one per seed.
struct Cell {
  const Part* part;
  const Method* method;
  std::size_t n, seeds;
};

/// The cells whose data are random. Structured data may depend on the seed too, but the theory does not apply
/// to their roundings.
std::vector<Cell> cells(const std::vector<Part>& parts, Longest longest) {
  std::vector<Cell> all;
  for (const Part& part : parts)
    for (const std::size_t n : lengths(longest.of(part))) {
      if (part.data->elements != Elements::independent) continue;
      if (n != 1024 && n != 16384 && !(longest.full && n == 64)) continue;
      for (const Method* v : part.methods)
        if (!is_peer(*v) && v->operation == "sum" && theory_gains(*v, n))
          all.push_back({&part, v, n, longest.full ? std::size_t{1000} : std::size_t{100}});
    }
  return all;
}

/// Keeps the samples of the last cell: consecutive methods sum the same data.
class Samples {
 public:
  std::vector<Sample>& of(const Cell& c, std::uint64_t seed) {
    if (part_ != c.part || n_ != c.n) {
      samples_.clear();
      for (std::size_t i = 0; i < c.seeds; ++i)
        samples_.emplace_back(c.part->data->make(*c.part->format, c.n, seed + i));
      part_ = c.part, n_ = c.n;
    }
    return samples_;
  }

 private:
  const Part* part_ = nullptr;
  std::size_t n_ = 0;
  std::vector<Sample> samples_;
};

Json coverage(const Cell& c, double probability, std::vector<Sample>& samples) {
  std::size_t covered = 0, beyond = 0;
  std::vector<double> shares;  // only for sums with a finite bound: an infinite one covers every error
  for (Sample& sample : samples) {
    const Measurement m = sample.judged(*c.method);
    const double bound = probable_bound(sample, m, probability);
    beyond += !m.within_bound;
    if (!std::isfinite(bound)) continue;
    covered += sample.truth().within(bound, m.value);
    shares.push_back(m.error.absolute == 0 ? 0 : m.error.absolute / bound);
  }
  Json row = {{"seeds", c.seeds},
              {"covered", nullptr},
              {"beyond_bound", beyond},
              {"median_share", nullptr},
              {"marked", marked(*c.part->data, *c.method, samples[0].truth())}};
  if (shares.empty()) return row;
  const auto median = shares.begin() + std::ptrdiff_t(shares.size() / 2);
  std::ranges::nth_element(shares, median);
  row["covered"] = static_cast<double>(covered) / static_cast<double>(shares.size());
  row["median_share"] = number_or_null(*median);
  return row;
}

void measure(Study& study, const std::vector<Cell>& cells) {
  if (!cells.empty()) study.print("Share of errors within the probable bound at 0.9 and 0.99, seeds, marked");
  Samples samples;
  for (const Cell& c : cells) {
    std::string line = left(c.method->name + ", " + c.part->data->name + ", " + power_or_number(c.n), 52);
    Json mark;
    for (const double probability : probabilities) {
      const Json key = {
          {"kind", "coverage"},        {"data", c.part->data->name},           {"seed", study.seed()},
          {"method", c.method->name},  {"input_format", c.part->format->name}, {"n", c.n},
          {"probability", probability}};
      const Json row = study.row(key, [&] { return coverage(c, probability, samples.of(c, study.seed())); });
      line += right(row["covered"].is_null() ? "-" : compact(row["covered"], 6, 4), 7);
      mark = row["marked"];
      const std::string where =
          c.method->name + " on " + c.part->data->name + ", n = " + power_or_number(c.n);
      if (row["beyond_bound"] > 0)
        study.fail(where + ": " + row["beyond_bound"].dump() + " errors exceed their bound");
      if (!row["covered"].is_null() && row["covered"] < probability && mark.is_null())
        study.fail(where + ": the probable bound at " + compact(probability, 4) + " covers only " +
                   row["covered"].dump());
    }
    study.print(line + right(std::to_string(c.seeds), 6) +
                (mark.is_null() ? "" : "  " + mark.get<std::string>()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "error_vs_length",
      "How wrong is each result, for arrays of every length?",
      "Each method reduces generated data of n elements, each rounded once to the format. The error is the "
      "distance of its result from the exact result for these elements, in units in the last place (ulps) "
      "of the correctly rounded one. Exact sums come from integer buckets, one per exponent, which are "
      "merged into one wide integer; other rational results and the root of norm from integers; prod, "
      "logsumexp and softmax are computed with 400 bits. Of moments the variance is compared, of softmax "
      "the first element.\n\n"
      "The error is compared with the rigorous bound of the method's tree: Higham, Accuracy and "
      "Stability "
      "of Numerical Algorithms, 2002, eq. 4.6, for plain sums; Kahan 1965 and Neumaier 1974 for "
      "compensated "
      "sums. Data of a given condition number are generated by algorithm 6.1 of Ogita, Rump and Oishi "
      "2005. "
      "Exit code 1 if an error exceeds its bound, or if an exact method does not round correctly.\n\n"
      "Sums also have a probable bound. It holds with a probability of 0.99 if rounding errors have mean 0 "
      "whatever the earlier ones were: Higham and Mary 2019, theorem 3.1, with the weaker assumption of "
      "Connolly, Higham and Mary 2021; Hallman and Ipsen 2022 for trees. Equal or structured elements "
      "violate this "
      "assumption, and so do sums that stagnate: such rows are marked before anything is summed, "
      "according "
      "to how the data are generated. Rows of kind coverage count how often the bound holds, over arrays "
      "of "
      "many seeds with random elements. Exit code 1 if it holds less often than its probability in a row "
      "without a mark.",
      {"error", "coverage"},
      "  error_vs_length --filter 'tree/*/fp32,exact/fp32'\n"
      "  error_vs_length --operation dot --data normal\n"
      "  error_vs_length --filter 'serial/*@cpu' --data ones --longest 28\n"
      "  error_vs_length --data 'kappa*,sine' --json\n"
      "  error_vs_length --full --out build/study\n\nData:" +
          datasets_in_words()};
  std::string data;
  study.add_option(
      "--data", "GLOB,…", data,
      "Data sets (default: all, without --full a few\nfor other operations than sum; see below)");
  study.add_operations(rounded_operations());
  std::optional<int> asked;
  study.add_option("--longest", "E", asked, "At most 2^E elements (default 18; with --full\n26, on a GPU 30)",
                   {4, 30});
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Part> all = parts_of(s.operations(), data, s.filter(), s.full());
    const Longest longest{asked, s.full()};
    const std::vector<Cell> all_cells = cells(all, longest);
    for (const Part& part : all)
      for (const Method* v : part.methods) s.expect(lengths(longest.of(*v)).size());
    s.expect(all_cells.size() * std::size(probabilities));
    Tally tally;
    for (const Part& part : all) measure(s, part, longest, tally);
    tally.print(s);
    measure(s, all_cells);
  });
}
