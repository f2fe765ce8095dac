/// How wrong is each sum, for arrays of every length?
#include <CLI/CLI.hpp>
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

/// The elements and their exact sum.
class Sample {
 public:
  Sample(const Dataset& data, const FormatInfo& format, std::size_t n, std::uint64_t seed)
      : column_{data.make(format, n, seed)}, truth_{column_.values()} {}

  Json result(const Variant& v) {
    if (v.move && !on_gpu_) on_gpu_ = v.place(column_.values());
    const Number value = v(v.move ? on_gpu_->values : column_.values());
    return result_json(judge(v, column_.values(), truth_, value), *column_.format, truth_);
  }

 private:
  Column column_;
  Truth truth_;
  std::optional<Placed> on_gpu_;
};

std::vector<std::size_t> lengths(bool full) {
  std::vector<std::size_t> all;
  for (int log2_n = 4; log2_n <= (full ? 26 : 18); log2_n += 2) all.push_back(std::size_t{1} << log2_n);
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
      "exceeds its bound, or an exact sum is not correctly rounded.",
      {"error"},
      "  error_vs_length --filter 'tree/*/fp32,exact/fp32'\n"
      "  error_vs_length --data 'kappa*,sine' --json\n"
      "  error_vs_length --full --out build/study\n\nData:" +
          datasets_in_words()};
  std::string data;
  study.app().add_option("--data", data, "Which (default: all; see below)")->type_name("GLOB,…");
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Part> all = parts(datasets_matching(data), variants_in_own_format(s.filter()));
    const std::vector<std::size_t> all_lengths = lengths(s.full());
    for (const Part& part : all) s.expect(part.methods.size() * all_lengths.size());
    for (const Part& part : all) measure(s, part, all_lengths);
  });
}
