/// Names and globs in the arguments of programs: formats, operations, methods and files for results.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/catalogue/catalogue.hpp"

namespace samesum::harness {

/// A wrong argument. what() is one line that names the argument and the remedy.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The operations of the catalogue, in its order: those without keys, or those by key.
std::vector<std::string> operations(bool by_key = false);

/// The operations with one number or index as their result, which a tolerance can refer to.
std::vector<std::string> operations_to_choose_for();

/// The names of all formats.
std::string format_names(const std::string& separator);

/// The names of all promises, weakest first.
std::string promise_names(const std::string& separator);
std::string backend_names();

/// Validator of an option for CLI11: returns an error message, or "" for a whole number of at most 18 digits.
/// CLI11 alone would read -1 as 2^64 - 1, and a number with more digits as the largest one.
std::string is_whole_number(const std::string& text);
/// Validator of an option for CLI11, as is_whole_number, that also refuses 0.
std::string is_positive_number(const std::string& text);

/// Validator of an option for CLI11: returns an error message, or "" for a text that is not empty.
std::string is_given(const std::string& text);

// What --help says of the options of TableOptions.
inline constexpr char column_help[] =
    "Column of a table: its name in the first line, or\nits number, counted from 1";
inline constexpr char by_help[] =
    "Column of the keys, which may be any text: its\nname in the first line, or its number";
inline constexpr char header_help[] = "The first line of a table holds names of columns";

/// Throws UsageError if there is no promise with this name.
Promise promise_named(const std::string& name);

/// Returns nullptr for an empty name, which stands for the format of the file. Throws UsageError for an
/// unknown name.
const FormatInfo* format_named(const std::string& name);

/// Whether the glob matches the whole name. * stands for any text, ? for any character.
bool matches(std::string_view glob, std::string_view name);

/// Splits a list of globs at its commas.
std::vector<std::string> globs_in(const std::string& list);

/// Whether the glob matches the full name of a method. A glob without "@" is compared with the name without
/// the backend. The name of the operation, a sum by default, may be left out.
bool matches_method(const std::string& glob, const std::string& full_name,
                    const std::string& operation = "sum");
bool matches(const std::string& glob, const Method& method);

/// The reason why a glob matches no method, for example that its backend is absent; empty if none is known.
std::string reason_for_no_match(const std::string& glob);

/// Name in a table of one operation: "tree/kahan/fp32" for mean/tree/kahan/fp32@cpu, "exact/fp32@cuda".
std::string short_name(const Method& method);

/// Name in a table of one format: "tree/kahan" for sum/tree/kahan/fp32@cpu, "eigen@peer" for eigen/fp32@peer.
std::string name_without_format(const Method& method);

/// The method of the operation with this name. A name without a format stands for the format of the input.
/// Throws UsageError if the name is that of another operation, and what `find` throws.
const Method& method_named(const std::string& operation, const std::string& name, const FormatInfo& input,
                           const std::string& option);
const Method& sum_named(const std::string& name, const FormatInfo& input, const std::string& option);

/// The library's default method of an operation. Throws UsageError if it has none for such elements.
const Method& method_without_name(const std::string& operation, const FormatInfo& input);

/// Throws UsageError, which names --operation, unless the operation is in the list, whose meaning is `which`.
void check_operation(const std::string& operation, const std::vector<std::string>& list,
                     const std::string& which);

/// Checks names before a file is read. If the format is not known yet, calls `check` with each format, and
/// throws only if it throws the same message for all: another message may depend on the format of the file.
void check_before_reading(const FormatInfo* format, const std::function<void(const FormatInfo&)>& check);

/// The methods of an operation that match one of the globs, including those of peers for vectors. Without an
/// operation, sums, for a command that has no --operation.
///
/// A glob without "@" excludes the backend "reference" and inherently slow methods; if it then matches
/// nothing, it is compared with full names. A name without * and ? stands for one method: without "@", the
/// one on the CPU; without a format, the one in the format of the input. Peers that do not take this input
/// are left out, so the result may be empty. Throws UsageError if a glob matches nothing for any input, and
/// what `method_named` throws.
std::vector<const Method*> methods_matching(const std::string& globs, const FormatInfo& input,
                                            const std::string& option = "--methods",
                                            const std::optional<std::string>& operation = {});

/// The methods of an operation that match one of the globs, for an experiment in which each reduces elements
/// of its own format. A name without a format stands for all four. An empty list stands for the peers and for
/// all methods on the CPU and on the GPU except inherently slow ones.
std::vector<const Method*> methods_in_own_format(const std::string& globs,
                                                 const std::optional<std::string>& operation = {});

/// Throws OutputError if the file of an option cannot be written, and UsageError if it is "-", or one of the
/// files with the elements. Called before hours of work.
void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& inputs);

/// Throws UsageError if the number is negative.
void check_threads(int threads);

}  // namespace samesum::harness
