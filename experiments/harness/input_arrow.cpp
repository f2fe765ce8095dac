/// Parquet and Arrow files, which a Python package reads and writes as a table of text.
#include "harness/input_program.hpp"
#include "samesum_arrow_as_csv.hpp"

namespace samesum::harness {

namespace {

std::string first_line(Bytes& file) {
  std::string line;
  for (std::byte b; file.read({&b, 1}) == 1 && b != std::byte{'\n'};) line += static_cast<char>(b);
  return line;
}

std::unique_ptr<ElementReader> open_arrow(Source source, const std::string& kind) {
  TableOptions& table = source.table;
  const std::string condition = table.where.empty() ? "" : parse_condition(table.where).value().column;
  source.bytes =
      std::make_unique<ProgramBytes>(std::vector<std::string>{"python3", "-c", arrow_as_csv, source.name,
                                                              kind, table.column, table.by, condition},
                                     source.name);
  const FormatInfo* const narrow = find_format(first_line(*source.bytes));
  if (!source.format && !table.by_is_number) source.format = narrow;
  source.has_lines = false;
  table.header = true;
  return open_table(std::move(source), ",");
}

}  // namespace

std::unique_ptr<ElementReader> open_parquet(Source source) {
  return open_arrow(std::move(source), "parquet");
}
std::unique_ptr<ElementReader> open_feather(Source source) { return open_arrow(std::move(source), "arrow"); }

}  // namespace samesum::harness
