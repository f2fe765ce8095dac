/// How many digits of each result are correct, for data of every condition?
#include <algorithm>
#include <cmath>

#include "harness/dataset.hpp"
#include "harness/names.hpp"
#include "harness/sample.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

/// How data are generated for an operation.
struct Generator {
  const char* operation;
  const char* data;
  void (*fill)(std::span<double> x, std::span<double> y, const FormatInfo& format, double condition,
               std::uint64_t seed);
};

/// Left out: operations whose condition number does not depend on the data, such as 1 for norm or n for prod,
/// and softmax. Its elements depend on differences from the largest element only, while its condition number
/// is that of the elements: a common offset makes it large without any effect on the errors, since the offset
/// cancels exactly. Without an offset, it is at most about 100 in fp32 before the result underflows.
constexpr Generator generators[] = {
    {"sum", "gensum",
     [](auto x, auto, auto& f, double c, auto seed) { generate_sum_of_any_condition(x, f, c, seed); }},
    {"mean", "gensum",
     [](auto x, auto, auto& f, double c, auto seed) { generate_sum_of_any_condition(x, f, c, seed); }},
    {"dot", "gendot", generate_dot},
    {"moments", "offset", [](auto x, auto, auto&, double c, auto seed) { generate_offset(x, c, seed); }},
    {"logsumexp", "logarithm",
     [](auto x, auto, auto&, double c, auto seed) { generate_logarithm(x, c, seed); }}};

/// Data in one format whose condition is near the given one.
Sample sample_of(const Generator& g, const FormatInfo& format, std::size_t n, double condition,
                 std::uint64_t seed) {
  std::vector<double> x(n), y(n);
  g.fill(x, y, format, condition, seed);
  return Sample{column_of(format, x), g.operation,
                g.operation == std::string{"dot"} ? std::optional{column_of(format, y)} : std::nullopt};
}

/// Whether the condition of the sample is within a factor of 3 of the given one.
bool has(const Sample& sample, double condition) {
  const double found = sample.truth().condition();
  return condition / 3 <= found && found <= condition * 3;
}

/// The decimal digits of a format, and the correct decimal digits of a result.
double digits_of(const FormatInfo& format) { return format.precision * std::log10(2.0); }
double right_digits(const Measurement& m) {
  const double all = digits_of(*m.method->format);
  if (m.error.relative == 0) return all;
  return std::isfinite(m.error.relative) ? std::min(all, std::max(0.0, -std::log10(m.error.relative))) : 0;
}

double power_of_ten(int exponent) { return std::stod("1e" + std::to_string(exponent)); }

/// Table of one format: one line per method, one column for each fourth power of ten, and the condition from
/// which on no digit is correct.
class Table {
 public:
  void add_column(int exponent) {
    if (exponent % step == 0) head_ += right("e" + std::to_string(exponent), 4);
  }

  void add(const Method& v, int exponent, double digits) {
    Line& line = lines_[name_without_format(v)];
    if (exponent % step == 0) line.text += right(compact(digits, 3, 2), 4);
    line.last = exponent;
    if (digits >= 1) line.right = exponent;
  }

  void print(Study& study, const Generator& g, const FormatInfo& format) const {
    study.print(title_prefix(g.operation) + std::string{format.name} + ": correct decimal digits (of " +
                compact(digits_of(format), 4) + ") per condition number; where none is left");
    study.print(left("", width_) + head_);
    for (const auto& [name, line] : lines_)
      study.print(left(name, width_) + line.text +
                  (line.right == line.last ? "" : "  1e" + std::to_string(line.right + 1)));
    study.print("");
  }

 private:
  static constexpr int step = 4, width_ = 21;
  struct Line {
    std::string text;
    int last = 0;    ///< the largest exponent of a condition
    int right = -1;  ///< the largest one with a correct digit
  };
  std::string head_;
  nlohmann::ordered_map<std::string, Line> lines_;
};

struct Task {
  const Generator* generator;
  const FormatInfo* format;
  std::vector<const Method*> methods;
};

constexpr int most = 40;  // largest decimal exponent of a condition

/// Whether the range of the format, from its largest number to its smallest, has room for all conditions of
/// sums. In other formats the conditions may end early; those of variance and logsumexp end where elements
/// of the format are no longer distinct enough.
bool has_room_for_all(const Generator& g, const FormatInfo& format) {
  if (g.data != std::string{"gensum"} && g.data != std::string{"gendot"}) return false;
  return (format.max_exponent - format.min_quantum) * std::log10(2.0) >= most;
}

void measure(Study& study, const Task& task, std::size_t n) {
  Table table;
  for (int exponent = 0; exponent <= most; ++exponent) {
    const double target = power_of_ten(exponent);
    Sample sample = sample_of(*task.generator, *task.format, n, target, study.seed());
    if (!has(sample, target)) {
      if (!has_room_for_all(*task.generator, *task.format)) break;
      study.fail("the data of " + std::string{task.generator->operation} + " in " +
                 std::string{task.format->name} + " generated for condition number " + compact(target, 6) +
                 " have condition number " + compact(sample.truth().condition(), 6));
      continue;
    }
    table.add_column(exponent);
    for (const Method* v : task.methods) {
      const Json key = with_operation({{"kind", "condition"},
                                       {"data", task.generator->data},
                                       {"seed", study.seed()},
                                       {"method", v->name},
                                       {"input_format", task.format->name},
                                       {"n", n},
                                       {"target_condition", target}},
                                      *v);
      const Json row = study.row(key, [&] {
        const Measurement m = sample.judged(*v);
        Json found = result_json(m, *task.format, sample.truth());
        found["digits"] = right_digits(m);
        if (const std::string which = compared_result(*v); !which.empty()) found["result"] = which;
        return found;
      });
      table.add(*v, exponent, row["digits"]);
      if (const auto why = accusation(*v, row))
        study.fail(v->name + " at condition number " + compact(target, 6) + ": " + *why);
    }
  }
  table.print(study, *task.generator, *task.format);
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "error_vs_condition",
      "How many digits of each result are right, for data of every condition?",
      "Each method sums data whose condition number, sum of |x| over |sum of x|, is 1, 10, 100 … 10^40, as "
      "far as the range of the format allows. Half of the elements are random, each of the others brings "
      "the exact sum to a smaller number (Ogita, Rump and Oishi 2005, algorithm 6.1, in terms of sums), and "
      "all are shuffled. The condition number of the generated data is measured; it is within a factor of 3 "
      "of the target. Correct digits are -log10 of the error relative to the exact result.\n\n"
      "The condition number of another operation f is the sum of |x df/dx| over |f| (Higham 2002, section "
      "1.6), with one of the vectors of a dot product fixed; for variance it is the normwise one of the "
      "standard deviation (Chan and Lewis 1979), half of that of variance. Data of dot come from algorithm "
      "6.1 itself, those of variance are normal numbers far "
      "from 0, and those of logsumexp lie near -log n, so that the result is small. Both end where the "
      "elements of a format are too coarse. The condition number of norm is 1 and that of prod n, whatever "
      "the data. That of softmax is large only for elements far from 0, and then says nothing about its "
      "errors: the offset cancels exactly when the largest element is subtracted. error_vs_length has "
      "these operations.\n\n"
      "A sum may have no correct digit if its first-order bound, about u times the condition number for "
      "plain "
      "sums and u^2 times the condition number for compensated sums, exceeds 1 (Higham, Accuracy and "
      "Stability of Numerical Algorithms, 2002, section 4.2; u is the unit roundoff of the format). The last "
      "column of the table is the first power of ten "
      "from which on no digit is correct. Exit code 1 if an error exceeds its bound, if an exact method does "
      "not "
      "round correctly, or if data miss their condition number in a format whose range has room for "
      "all of them.",
      {"condition"},
      "  error_vs_condition\n"
      "  error_vs_condition --filter 'tree/*,exact'\n"
      "  error_vs_condition --operation dot\n"
      "  error_vs_condition --full --out build/study"};
  std::vector<std::string> others;
  for (const Generator& g : std::span{generators}.subspan(1)) others.push_back(g.operation);
  study.add_operations(others);
  return study.run(argc, argv, [&](Study& s) {
    const std::size_t n = s.full() ? 16384 : 1024;
    std::vector<Task> tasks;
    for (const std::string& operation : s.operations()) {
      const std::vector<const Method*> methods = methods_in_own_format(s.filter(), operation);
      for (const FormatInfo& format : formats) {
        Task task{std::ranges::find(generators, operation, &Generator::operation), &format, {}};
        std::ranges::copy_if(methods, std::back_inserter(task.methods),
                             [&](const Method* v) { return v->format == &format; });
        if (task.methods.empty()) continue;
        s.expect(task.methods.size() * (most + 1));  // at most
        tasks.push_back(task);
      }
    }
    for (const Task& task : tasks) measure(s, task, n);
  });
}
