/// What happens to sums whose accumulator has only 16 bits?
#include <algorithm>
#include <optional>
#include <sstream>

#include "harness/dataset.hpp"
#include "harness/names.hpp"
#include "harness/sample.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

using Values64 = std::vector<double>;

/// The result of a plain sum from left to right according to a publication.
struct Published {
  std::string format;
  double value;
};

struct Case {
  std::string name, meaning;
  std::vector<std::string> formats;  ///< of the elements
  std::function<Values64(std::uint64_t seed)> make;
  std::vector<Published> published;
};

constexpr std::size_t many = 100'000;

Values64 named(const std::string& data, std::size_t n, std::uint64_t seed) {
  Values64 x(n);
  datasets_matching(data).front()->fill(x, format_info<fp64>(), seed);
  return x;
}

Values64 scaled(Values64 x, double factor) {
  for (double& e : x) e *= factor;
  return x;
}

/// exp(-t), t >= 0, to about 13 digits by Taylor's series and squaring: the same bits on every machine.
double exp_of_minus(double t) {
  constexpr int squarings = 6;
  const double z = -t * power_of_two(-squarings);
  double sum = 1;
  for (int k = 12; k > 0; --k) sum = 1 + z * sum / k;
  for (int i = 0; i < squarings; ++i) sum *= sum;
  return sum;
}

/// exp(x - max x) of 32768 normal logits with standard deviation 3. Softmax divides by their sum.
Values64 softmax_terms(std::uint64_t seed) {
  Values64 x = scaled(named("normal", 32768, seed), 3);
  const double largest = *std::ranges::max_element(x);
  for (double& e : x) e = exp_of_minus(largest - e);
  return x;
}

/// Normal values with mean 2^-13 and standard deviation 2^-10, as of gradients with a weak common direction.
Values64 gradients(std::uint64_t seed) {
  Values64 x = scaled(named("normal", many, seed), 0x1p-10);
  for (double& e : x) e += 0x1p-13;
  return x;
}

Values64 lecture_numbers(bool reversed) {
  Values64 x(10, 1e-20);
  x.insert(x.end(), {1e20, -1e20});
  if (reversed) std::ranges::reverse(x);
  return x;
}

const std::vector<std::string> sixteen{"fp16", "bf16"};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"ones", "100000 times 1", sixteen, [](auto) { return Values64(many, 1.0); }, {}},
      {"0.1", "100000 times 0.1", sixteen, [](auto) { return Values64(many, 0.1); }, {}},
      {"harmonic", "1/i for i up to 100000", sixteen, [](auto s) { return named("1/i", many, s); }, {}},
      {"softmax", "exp(x - max x) of 32768 normal logits", sixteen, softmax_terms, {}},
      {"gradients", "100000 normal values, mean 1/8 of the deviation", sixteen, gradients, {}},
      {"overflow",
       "4 times 32000, 4 times -32000",
       {"fp16"},
       [](auto) { return Values64{32000, 32000, 32000, 32000, -32000, -32000, -32000, -32000}; },
       {}},
      {"beyond 65504",
       "2 times 40000",
       {"fp16"},
       [](auto) {
         return Values64{40000, 40000};
       },
       {}},
      {"nondeterminism forward",
       "10 times 1e-20, then 1e20, -1e20",
       {"fp64"},
       [](auto) { return lecture_numbers(false); },
       {{"fp64", 0.0}}},
      {"nondeterminism reversed",
       "the same in reverse order",
       {"fp64"},
       [](auto) { return lecture_numbers(true); },
       {{"fp64", 9.999999999999997e-20}}},
      {"accuracy",
       "1000 + 1e-3",
       {"fp32", "fp16"},
       [](auto) {
         return Values64{1000, 1e-3};
       },
       {{"fp32", 1000.0009765625}, {"fp16", 1000.0}}},
  };
  return all;
}

std::string cases_in_words() {
  std::string text;
  for (const Case& c : cases()) text += "\n  " + left(c.name, 25) + c.meaning;
  return text;
}

std::vector<const Case*> cases_matching(const std::string& globs) {
  std::vector<const Case*> chosen;
  for (const std::string& glob : globs_in(globs.empty() ? "*" : globs)) {
    const std::size_t before = chosen.size();
    for (const Case& c : cases())
      if (matches(glob, c.name)) chosen.push_back(&c);
    if (chosen.size() == before)
      throw UsageError{"--data: '" + glob + "' matches no data; see --help for their names"};
  }
  return chosen;
}

/// Whether a method is measured by default: all accumulators in the format of the elements, and, as the
/// remedy for 16 bits, plain and exact sums in fp32.
bool is_default(const Method& v, const FormatInfo& input) {
  if (v.is_slow || v.promise < Promise::everywhere || v.backend == "reference") return false;
  if (v.format == &input) return true;
  return input.bytes == 2 && v.format->name == "fp32" &&
         (v.accumulator == "plain" || v.accumulator == "exact");
}

std::vector<const Method*> methods_for(const FormatInfo& input, const std::string& filter) {
  if (!filter.empty()) return methods_matching(filter, input, "--filter");
  std::vector<const Method*> chosen;
  for (const Method& v : methods("sum"))
    if (is_default(v, input)) chosen.push_back(&v);
  return chosen;
}

/// The published result, for the method that the publication uses: a loop in the format of the elements.
std::optional<double> published(const Case& c, const FormatInfo& input, const Method& v) {
  if (v.order != "serial" || v.accumulator != "plain" || v.format != &input) return std::nullopt;
  for (const Published& p : c.published)
    if (p.format == input.name) return p.value;
  return std::nullopt;
}

void measure(Study& study, const Case& c, const FormatInfo& input,
             const std::vector<const Method*>& methods) {
  std::optional<Sample> sample;
  std::string head = c.name + " in " + std::string{input.name};
  for (const Method* v : methods) {
    const Json key = {{"kind", "story"},
                      {"case", c.name},
                      {"seed", study.seed()},
                      {"method", v->name},
                      {"input_format", input.name}};
    const Json row = study.row(key, [&] {
      if (!sample) sample.emplace(column_of(input, c.make(study.seed())));
      const Measurement m = sample->judged(*v);
      Json found = result_json(m, input, sample->truth());
      const std::optional<double> said = published(c, input, *v);
      found["published"] = said ? Json(*said) : Json(nullptr);
      found["reproduces"] = said ? Json(m.value.to_double() == *said) : Json(nullptr);
      return found;
    });
    if (!head.empty()) {
      study.print(left(head, 46) + right("value", 22) + right("rel.err", 9));
      head.clear();
    }
    const bool finite = !row["value"].is_null();
    study.print(left("  " + v->name, 46) + right(finite ? row["value"].dump() : "not finite", 22) +
                right(row["relative_error"].is_null() ? "-" : compact(row["relative_error"], 7, 2), 9) +
                (row["reproduces"] == Json(true) ? " ok" : ""));
    const std::string where = v->name + " on " + c.name + ": ";
    if (const auto why = accusation(*v, row)) study.fail(where + *why);
    if (row["reproduces"] == Json(false))
      study.fail(where + "gave " + row["value"].dump() + ", but " + row["published"].dump() +
                 " was published");
  }
  study.print("");
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "accumulator_formats",
      "What happens to sums whose accumulator has only 16 bits?",
      "Sums that occur in practice are computed with every accumulator in the format of the elements, and "
      "for 16-bit elements also in fp32. Errors are relative to the exact sum of the elements after they "
      "are rounded to their format. A running sum stagnates if the elements are at most half a unit in its "
      "last place: a sum of ones stops at 256 in bf16, and at 2048 in fp16 (Higham, Accuracy and Stability "
      "of Numerical Algorithms, 2002, chapter 4; Kahan 1965 and Neumaier 1974 for the remedies).\n\n"
      "The cases include the two programs of the GPU MODE lecture on reductions (lecture 9, 2024) with "
      "their published outputs; serial/plain is their loop. Exit code 1 if an output is not reproduced, or "
      "if an error exceeds its bound.",
      {"story"},
      "  accumulator_formats\n"
      "  accumulator_formats --data 'ones,softmax' --filter 'serial/*/bf16,exact'\n"
      "  accumulator_formats --data 'nondeterminism*,accuracy' --json\n\nData:" +
          cases_in_words()};
  std::string data;
  study.add_option("--data", "GLOB,…", data, "Cases (default: all; see below)");
  return study.run(argc, argv, [&](Study& s) {
    struct Task {
      const Case* what;
      const FormatInfo* input;
      std::vector<const Method*> methods;
    };
    std::vector<Task> tasks;
    for (const Case* c : cases_matching(data))
      for (const std::string& name : c->formats) {
        const FormatInfo* input = find_format(name);
        Task task{c, input, methods_for(*input, s.filter())};
        s.expect(task.methods.size());
        if (!task.methods.empty()) tasks.push_back(std::move(task));
      }
    for (const Task& t : tasks) measure(s, *t.what, *t.input, t.methods);
  });
}
