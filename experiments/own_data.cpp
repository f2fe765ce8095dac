/// How large is the error of each method on the user's own data?

#include "harness/input.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"
#include "tool/commands.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

struct Settings {
  std::string operation;
  const FormatInfo* format;
  TableOptions table;
  std::string methods;
  MeasureOptions measure;
};

/// The key has a digest of the elements, so that a file that changed is measured again.
void measure(Study& study, const std::vector<std::string>& files, const Settings& settings) {
  const std::vector<InputArray> arrays =
      read_inputs(settings.operation, files, settings.format, settings.table);
  const Inputs inputs = inputs_of(arrays);
  const Truth truth = truth_of(settings.operation, inputs);
  const std::vector<std::string> names = names_of(files, settings.table);
  const Json key = {{"kind", "comparison"},
                    {"schema", schema_version},
                    {"operation", settings.operation},
                    {"data", data_json(names, inputs, truth)},
                    {"threads", settings.measure.threads},
                    {"repeats", settings.measure.repeats}};
  const Json row = study.row(key, [&] {
    return comparison_json(
        compare(names, inputs, truth, settings.methods, settings.measure, "--filter", settings.operation));
  });
  for (const Json& failure : row["failures"]) study.fail(listed(names) + ": " + failure.get<std::string>());
  study.print(as_text(comparison_of(row, inputs, truth), true));
  for (const std::string& note : notes_on(arrays)) study.print(note);
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "own_data",
      "How large is the error of each method on my own data?",
      "Each file is read as `samesum compare` reads it. Every method sums it several times after a warm-up "
      "run, and its results are compared with the exact sum, which is computed in integers: a bucket for "
      "each exponent, all merged once. Times are medians; distinct bit patterns are counted over all runs. "
      "Bounds are rigorous (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 4.2; the "
      "accumulators in lib/samesum have the proofs).\n\n"
      "If a file cannot be read, a message names it, the others are measured, and the exit code is 2. "
      "`samesum report DIR` makes a report from DIR/own_data.jsonl, if Python has the packages jsonschema "
      "and "
      "plotly.",
      {"comparison"},
      "  own_data *.npy --out results\n"
      "  own_data a.npy b.npy --operation dot\n"
      "  own_data a.f32 b.csv --filter '*,*@peer'\n"
      "  own_data weights.f32 --format bf16 --full"};
  std::vector<std::string> files;
  std::string format, operation = "sum";
  TableOptions table;
  int threads = 0;
  study.add_files(files, known_extensions() + ",\nalso with .gz; " + extensions_without_gzip());
  study.add_option("--format", "F", format, "Round the elements to F first\n(" + format_names(", ") + ")");
  study.add_option(
      "--operation", "NAME", operation,
      "What the methods compute (default sum), as for\nsamesum compare; dot takes the files in pairs");
  study.add_option("--column", "NAME|N", table.column, column_help);
  study.add_flag("--header", table.header, header_help);
  study.add_option("--threads", "N", threads, "Number of threads; 0 (default): automatic", Study::any);
  return study.run(argc, argv, [&](Study& s) {
    check_threads(threads);
    const Settings settings{
        operation,
        format_named(format),
        table,
        s.filter().empty() ? "*" : s.filter(),
        {.repeats = s.full() ? 20 : 5, .threads = threads, .patience = s.full() ? 60.0 : 2.0}};
    check_operation(operation, Truth::operations(), "with an exact result to compare with");
    check_before_reading(settings.format, [&](const FormatInfo& f) {
      methods_matching(settings.methods, f, "--filter", operation);
    });
    const std::size_t together = operation == "dot" ? 2 : 1;
    if (files.size() % together != 0)
      throw UsageError{"dot takes files in pairs, not " + std::to_string(files.size())};
    s.expect(files.size() / together);
    for (std::size_t i = 0; i < files.size(); i += together) try {
        measure(s, {files.begin() + std::ptrdiff_t(i), files.begin() + std::ptrdiff_t(i + together)},
                settings);
      } catch (const InputError& e) {
        s.pass_over(e.what());
      } catch (const UsageError& e) {  // no method takes elements of this format
        s.pass_over(files[i] + ": " + e.what());
      }
  });
}
