/// Options that several commands have.
#include "tool/arguments.hpp"

#include <unistd.h>

#include "harness/input.hpp"

namespace samesum::harness {

void add_format(CLI::App* command, std::string& format) {
  command->add_option("--format", format, "Round the elements to F first\n(" + format_names(", ") + ")")
      ->type_name("F");
}

namespace {

CLI::Option* add_skip_missing(CLI::App* command, TableOptions& table) {
  return command->add_flag(
      "--skip-missing", table.skip_missing,
      "Leave out missing elements: in a table empty, NA,\nN/A, #N/A, NaN or null, in other files NaN");
}

}  // namespace

CLI::Option* add_where(CLI::App* command, TableOptions& table) {
  const auto wrong = [](const std::string& text) {
    return parse_condition(text) ? ""
                                 : "'" + text +
                                       "' is not a condition; write a column, one of < <= "
                                       "> >= == !=, and a number: 'price > 0'";
  };
  return command
      ->add_option(
          "--where", table.where,
          "Read only the records of a table that meet a\ncondition, such as 'price >= 10' or '2 != 0'")
      ->check(wrong, "")
      ->type_name("'COLUMN OP NUMBER'");
}

std::vector<CLI::Option*> add_table(CLI::App* command, TableOptions& table) {
  return {
      command->add_option("--column", table.column, column_help)->check(is_given, "")->type_name("NAME|N"),
      command->add_flag("--header", table.header, header_help), add_skip_missing(command, table),
      add_where(command, table)};
}

void add_data(CLI::App* command, std::vector<std::string>& files, std::string& format, TableOptions& table,
              const std::string& together) {
  command
      ->add_option("file", files,
                   known_extensions() + ",\nalso with .gz; " + extensions_without_gzip() +
                       ";\n- for text, .npy or .npz; x.npz:y is member y;\n" + together)
      ->type_name("FILE");
  add_format(command, format);
  add_table(command, table);
}

void add_threads(CLI::App* command, int& threads) {
  command->add_option("--threads", threads, "Number of threads; 0 (default): automatic")->type_name("N");
}

void add_operation(CLI::App* command, std::string& operation, const std::string& which) {
  command->add_option("--operation", operation, "What the methods compute (default sum);\n" + which)
      ->type_name("NAME");
}

void set_default_input(std::vector<std::string>& files, const Ranks* ranks) {
  if (!files.empty()) return;
  if (!ranks && isatty(STDIN_FILENO))
    throw UsageError{"FILE is missing; name one, pipe data to standard input, or give - to type them"};
  files = {"-"};
}

}  // namespace samesum::harness
