/// How wrong is each sum, for arrays of every length?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <optional>

#include "harness/commands.hpp"
#include "harness/dataset.hpp"
#include "harness/peers.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

constexpr double probability_of_errors = 0.99;

/// The elements and their exact sum.
class Sample {
 public:
  Sample(const Dataset& data, const FormatInfo& format, std::size_t n, std::uint64_t seed)
      : column_{data.make(format, n, seed)}, truth_{column_.values()} {}

  Json result(const Variant& v) {
    const Measurement m = judged(v);
    Json row = result_json(m, *column_.format, truth_);
    row["probable_bound"] = number_or_null(probable_bound(m, probability_of_errors));
    return row;
  }

  Measurement judged(const Variant& v) {
    if (v.move && !on_gpu_) on_gpu_ = v.place(column_.values());
    return judge(v, column_.values(), truth_, v(v.move ? on_gpu_->values : column_.values()));
  }

  double probable_bound(const Measurement& m, double probability) const {
    return m.variant->probable_bound(*column_.format, truth_.size(), truth_.magnitudes_rounded_up(), m.value,
                                     probability);
  }

  const Truth& truth() const { return truth_; }

 private:
  Column column_;
  Truth truth_;
  std::optional<Placed> on_gpu_;
};

std::vector<std::size_t> lengths(int longest) {
  std::vector<std::size_t> all;
  for (int log2_n = 4; log2_n <= longest; log2_n += 2) all.push_back(std::size_t{1} << log2_n);
  return all;
}

/// What a row, measured now or earlier, says against a method of ours.
std::string accusation(const Variant& v, const Json& row) {
  if (is_peer(v)) return "";
  if (!row["within_bound"]) return "the error " + row["absolute_error"].dump() + " exceeds its bound";
  if (v.accumulator == "exact" && row["bits"] != row["truth_bits"]) return "is not correctly rounded";
  return "";
}

/// Of one data set in one format: a line a method, a column a length.
class Table {
 public:
  Table(const Dataset& data, const FormatInfo& format, const std::vector<std::size_t>& lengths)
      : title_{data.name + " in " + std::string{format.name}} {
    for (const std::size_t n : lengths) head_ += right(power_or_number(n), 6);
  }

  void add(const Variant& v, const Json& row) {
    std::string& line = lines_[name_without_format(v)];
    line += right(compact(row["error_ulps"].is_null() ? infinity : row["error_ulps"].get<double>(), 5), 6);
    condition_ = row["condition"];
  }

  void print(Study& study) const {
    study.print(title_ + (condition_.is_null() ? "" : ", kappa " + compact(condition_, 8)) +
                ": error in units in the last place");
    study.print(left("", width_) + head_);
    for (const auto& [name, line] : lines_) study.print(left(name, width_) + line);
    study.print("");
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::size_t width_ = 26;
  std::string title_, head_;
  nlohmann::ordered_map<std::string, std::string> lines_;
  Json condition_;  ///< at the greatest length
};

void measure(Study& study, const Part& part, const std::vector<std::size_t>& lengths) {
  Table table{*part.data, *part.format, lengths};
  for (const std::size_t n : lengths) {
    std::optional<Sample> sample;
    for (const Variant* v : part.methods) {
      const Json key = {{"kind", "error"},   {"data", part.data->name},           {"seed", study.seed()},
                        {"method", v->name}, {"input_format", part.format->name}, {"n", n}};
      const Json row = study.row(key, [&] {
        if (!sample) sample.emplace(*part.data, *part.format, n, study.seed());
        return sample->result(*v);
      });
      table.add(*v, row);
      if (const std::string why = accusation(*v, row); !why.empty())
        study.fail(v->name + " on " + part.data->name + ", n = " + power_or_number(n) + ": " + why);
    }
  }
  table.print(study);
}

// --- how often the probable bound holds ------------------------------------------------------------

/// Random in sign twice, and of one sign.
const std::set<std::string> covered_data{"normal", "uniform +-1", "uniform"};

/// What is asked of one method on one data set: arrays of so many seeds.
struct Cell {
  const Part* part;
  const Variant* method;
  std::size_t n, seeds;
};

std::vector<Cell> cells(const std::vector<Part>& parts, const std::vector<std::size_t>& lengths, bool full) {
  std::vector<Cell> all;
  for (const Part& part : parts)
    for (const std::size_t n : lengths) {
      if (!covered_data.contains(part.data->name)) continue;
      if (n != 1024 && n != 16384 && !(full && n == 64)) continue;
      for (const Variant* v : part.methods)
        if (!is_peer(*v) &&
            (v->accumulator == "plain" || v->accumulator == "neumaier"))  // the others have none
          all.push_back({&part, v, n, full ? std::size_t{1000} : std::size_t{100}});
    }
  return all;
}

/// Elements of one sign, and so many additions on the longest path that what they add is on average at most a
/// unit roundoff of the sum: then those near the end drop it whole, whatever its last bits are.
bool stagnates(const Cell& c, const Truth& truth) {
  const double additions = static_cast<double>(c.method->height(c.n).total());
  return abs(truth.sum()) == truth.magnitudes() && additions * c.method->format->unit_roundoff >= 1;
}

/// Samples of the data that was asked for last: many methods in a row sum the same.
class Samples {
 public:
  std::vector<Sample>& of(const Cell& c, std::uint64_t seed) {
    if (part_ != c.part || n_ != c.n) {
      samples_.clear();
      for (std::size_t i = 0; i < c.seeds; ++i)
        samples_.emplace_back(*c.part->data, *c.part->format, c.n, seed + i);
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
  std::vector<double> shares;
  for (Sample& sample : samples) {
    const Measurement m = sample.judged(*c.method);
    const double bound = sample.probable_bound(m, probability);
    covered += sample.truth().within(bound, m.value);
    beyond += !m.within_bound;
    shares.push_back(m.error.absolute == 0 ? 0 : m.error.absolute / bound);
  }
  std::ranges::nth_element(shares, shares.begin() + std::ptrdiff_t(shares.size() / 2));
  const bool any = std::isfinite(samples[0].probable_bound(samples[0].judged(*c.method), probability));
  return {{"seeds", c.seeds},
          {"covered", static_cast<double>(covered) / static_cast<double>(c.seeds)},
          {"beyond_bound", beyond},
          {"median_share", any ? number_or_null(shares[shares.size() / 2]) : Json(nullptr)},
          {"stagnating", stagnates(c, samples[0].truth())}};
}

constexpr double probabilities[] = {0.9, 0.99};

void measure(Study& study, const std::vector<Cell>& cells) {
  if (!cells.empty())
    study.print("Share of errors within the probable bound at 0.9 and 0.99, seeds, stagnating");
  Samples samples;
  for (const Cell& c : cells) {
    std::string line = left(c.method->name + ", " + c.part->data->name + ", " + power_or_number(c.n), 52);
    bool stagnating = false;
    for (const double probability : probabilities) {
      const Json key = {
          {"kind", "coverage"},        {"data", c.part->data->name},           {"seed", study.seed()},
          {"method", c.method->name},  {"input_format", c.part->format->name}, {"n", c.n},
          {"probability", probability}};
      const Json row = study.row(key, [&] { return coverage(c, probability, samples.of(c, study.seed())); });
      line += right(compact(row["covered"], 6, 4), 7);
      stagnating = row["stagnating"];
      const std::string where =
          c.method->name + " on " + c.part->data->name + ", n = " + power_or_number(c.n);
      if (row["beyond_bound"] > 0)
        study.fail(where + ": " + row["beyond_bound"].dump() + " errors exceed their bound");
      if (row["covered"] < probability && !stagnating)
        study.fail(where + ": the probable bound at " + compact(probability, 4) + " covers only " +
                   row["covered"].dump());
    }
    study.print(line + right(std::to_string(c.seeds), 6) + (stagnating ? "  yes" : ""));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "error_vs_length",
      "How wrong is each sum, for arrays of every length?",
      "Each method sums made data of n elements, each rounded once to the format. The error is the "
      "distance of its result from the exact sum of these elements (integer buckets an exponent, "
      "folded into one wide integer), in units in the last place of the correctly rounded sum.\n\n"
      "It is held against the rigorous bound of its tree: Higham, Accuracy and Stability of Numerical "
      "Algorithms, 2002, eq. 4.6, for plain sums; Kahan 1965 and Neumaier 1974 for compensated ones, "
      "Ogita, Rump and Oishi 2005, alg. 6.1 for data of a given condition. Exit code 1 if an error "
      "exceeds its bound, or an exact sum is not correctly rounded.\n\n"
      "Beside it stands a bound that holds with a probability of 0.99 if roundings have mean 0: Higham "
      "and Mary 2019, theorem 3.1; Hallman and Ipsen 2022 for trees. Rows of kind coverage count how "
      "often it holds, over arrays of many seeds, of random signs and of one sign. Where a sum "
      "stagnates it need not hold. Exit code 1 if it holds less often than its probability elsewhere.",
      {"error", "coverage"},
      "  error_vs_length --filter 'tree/*/fp32,exact/fp32'\n"
      "  error_vs_length --filter 'serial/*@cpu' --data ones --longest 28\n"
      "  error_vs_length --data 'kappa*,sine' --json\n"
      "  error_vs_length --full --out build/study\n\nData:" +
          datasets_in_words()};
  std::string data;
  study.app().add_option("--data", data, "Which (default: all; see below)")->type_name("GLOB,…");
  std::optional<int> longest;
  study.app()
      .add_option("--longest", longest, "Up to 2^E elements (default 18; --full: 26)")
      ->type_name("E")
      ->check(CLI::Range(4, 30), "");
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Part> all = parts(datasets_matching(data), variants_in_own_format(s.filter()));
    const std::vector<std::size_t> all_lengths = lengths(longest.value_or(s.full() ? 26 : 18));
    const std::vector<Cell> all_cells = cells(all, all_lengths, s.full());
    for (const Part& part : all) s.expect(part.methods.size() * all_lengths.size());
    s.expect(all_cells.size() * std::size(probabilities));
    for (const Part& part : all) measure(s, part, all_lengths);
    measure(s, all_cells);
  });
}
