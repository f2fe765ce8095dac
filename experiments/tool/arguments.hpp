/// The arguments of the tool: each function adds commands, or options that several commands have. A command
/// that was parsed writes its report.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tool/commands.hpp"

namespace samesum::harness {

inline const std::string default_input = "(default: standard input unless it is a terminal)",
                         one_vector = "several files are one vector\n" + default_input;

void add_format(CLI::App* command, std::string& format);
CLI::Option* add_where(CLI::App* command, TableOptions& table);
/// Adds the options of tables, and returns them.
std::vector<CLI::Option*> add_table(CLI::App* command, TableOptions& table);
/// Adds files of elements with their options. `together` says what several files are.
void add_data(CLI::App* command, std::vector<std::string>& files, std::string& format, TableOptions& table,
              const std::string& together = one_vector);
void add_threads(CLI::App* command, int& threads);
/// Adds --operation; `which` says what it may name.
void add_operation(CLI::App* command, std::string& operation, const std::string& which);

/// Names standard input if no file is named. On several ranks, the launcher connects it.
void set_default_input(std::vector<std::string>& files, const Ranks* ranks = nullptr);

/// Adds `sum`, which the ranks of a run share; nullptr for one process.
void add_sum(CLI::App& app, Report& report, const Ranks* ranks);
/// Adds a command for each operation of the catalogue without keys but sum.
void add_reductions(CLI::App& app, Report& report);
/// Adds a command for each operation of the catalogue by key.
void add_reductions_by_key(CLI::App& app, Report& report);

void add_list(CLI::App& app, Report& report);
/// Adds the commands that compare, choose and measure methods, and the one that reports on results.
void add_study(CLI::App& app, Report& report);
/// Adds the command that completes those added before.
void add_completion(CLI::App& app, Report& report);

}  // namespace samesum::harness
