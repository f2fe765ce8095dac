#include "harness/names.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <sstream>

#include "harness/input.hpp"
#include "harness/peers.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

/// All promises, weakest first.
std::vector<Promise> promises() {
  std::vector<Promise> all;
  for (int i = 0; i <= static_cast<int>(Promise::order_free); ++i) all.push_back(static_cast<Promise>(i));
  return all;
}

}  // namespace

std::string format_names(const std::string& separator) {
  return listed(formats, separator, &FormatInfo::name);
}

std::string promise_names(const std::string& separator) { return listed(promises(), separator, name_of); }

std::string backend_names() { return listed(backends); }

std::string is_given(const std::string& text) { return text.empty() ? "is empty; give a value" : ""; }

std::string is_whole_number(const std::string& text) {
  const bool digits = text.find_first_not_of("0123456789") == text.npos && text.size() <= 18;
  return digits ? "" : "'" + text + "' is not a whole number of at most 18 digits";
}

std::string is_positive_number(const std::string& text) {
  const std::string problem = is_whole_number(text);
  return problem.empty() && text.find_first_not_of('0') == text.npos ? "'" + text + "' is not 1 or more"
                                                                     : problem;
}

Promise promise_named(const std::string& name) {
  for (const Promise promise : promises())
    if (name_of(promise) == name) return promise;
  throw UsageError{"--promise: unknown promise '" + name + "'; choose one of " + promise_names(", ")};
}

const FormatInfo* format_named(const std::string& name) {
  if (name.empty()) return nullptr;
  if (const FormatInfo* format = find_format(name)) return format;
  throw UsageError{"--format: unknown format '" + name + "'; choose one of " + format_names(", ")};
}

bool matches(std::string_view glob, std::string_view name) {
  // On a mismatch, the last star takes one character more. Earlier stars need not: there is no search.
  std::size_t g = 0, star = glob.npos, taken = 0;
  for (std::size_t i = 0; i < name.size();) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      taken = i;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[i])) {
      ++g, ++i;
    } else if (star != glob.npos) {
      g = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == glob.npos;
}

std::vector<std::string> globs_in(const std::string& list) {
  std::vector<std::string> globs;
  std::istringstream in{list};
  for (std::string glob; std::getline(in, glob, ',');) globs.push_back(glob);
  return globs;
}

namespace {

std::string without_backend(const Method& m) {
  return m.name.substr(0, m.name.size() - m.backend.size() - 1);
}

/// Compares the name with and without the "sum/" of a sum, or the operation that is given.
bool matches_name(const std::string& glob, const std::string& name, const std::string& operation = "sum") {
  return matches(glob, name) ||
         (name.starts_with(operation + "/") && matches(glob, name.substr(operation.size() + 1)));
}

}  // namespace

bool matches_method(const std::string& glob, const std::string& full_name, const std::string& operation) {
  return matches_name(
      glob, glob.find('@') == glob.npos ? full_name.substr(0, full_name.rfind('@')) : full_name, operation);
}

bool matches(const std::string& glob, const Method& m) { return matches_method(glob, m.name); }

std::string short_name(const Method& m) {
  const std::string name = m.backend == "cpu" ? without_backend(m) : m.name;
  return name.starts_with(m.operation + "/") ? name.substr(m.operation.size() + 1) : name;
}

std::string name_without_format(const Method& m) {
  std::string name = without_backend(m);
  name.resize(name.size() - m.format->name.size() - 1);
  if (name.starts_with("sum/")) name.erase(0, 4);
  return m.backend == "cpu" ? name : name + '@' + m.backend;
}

namespace {
std::string see_list_of(const std::string& operation) {
  return "; `samesum list '" + operation + "/*'` lists the methods of " + operation;
}

/// What is asked for: methods of an operation by an option, in a command that may have --operation.
struct Asked {
  std::string operation, option;
  bool can_choose;  ///< whether the command has --operation
};

/// The operation of which the glob selects methods; empty if there is none.
std::string operation_meant(const std::string& glob) {
  for (const Method& m : methods())
    if (matches(glob, m) || parse_name(glob).fields.operation == m.operation) return m.operation;
  return "";
}

std::string hint_for(const Asked& asked, const std::string& glob) {
  const std::string meant = operation_meant(glob);
  if (asked.can_choose && !meant.empty() && meant != asked.operation) return "; pass --operation " + meant;
  return see_list_of(asked.operation);
}

/// The method with this name. Messages name the option.
const Method& method_named(const Asked& asked, const std::string& name, const FormatInfo& input) {
  const std::string hint = hint_for(asked, name);
  const ParsedName parsed = parse_name(name);
  if (!parsed.fields.operation.empty() && parsed.fields.operation != asked.operation)
    throw UsageError{asked.option + ": '" + name + "' is not a " + asked.operation + hint};
  try {
    return find(name, {.operation = asked.operation, .format = input.name});
  } catch (const std::invalid_argument& e) {
    std::string why = e.what();
    if (why.starts_with("samesum: ")) why.erase(0, 9);
    // The first word may be meant as an operation.
    const bool perhaps = !parsed.wrong.empty() && name.substr(0, name.find_first_of("/@")) == parsed.wrong;
    throw UsageError{asked.option + ": " + why + (perhaps ? hint : "")};
  }
}
}  // namespace

const Method& method_named(const std::string& operation, const std::string& name, const FormatInfo& input,
                           const std::string& option) {
  return method_named({operation, option, false}, name, input);
}

const Method& sum_named(const std::string& name, const FormatInfo& input, const std::string& option) {
  return method_named("sum", name, input, option);
}

const Method& method_without_name(const std::string& operation, const FormatInfo& input) {
  return *default_method(operation, input);  // every operation has one for every format
}

std::vector<std::string> operations(bool by_key) {
  std::vector<std::string> all;
  for (const Method& m : methods())
    if (m.takes_keys == by_key && (all.empty() || all.back() != m.operation)) all.push_back(m.operation);
  return all;
}

std::vector<std::string> operations_to_choose_for() {
  std::vector<std::string> all = operations();
  std::erase_if(all, [](const std::string& name) {
    const Method& m = methods(name).front();
    return m.results > 1 || m.has_result_per_element;
  });
  return all;
}

void check_operation(const std::string& operation, const std::vector<std::string>& list,
                     const std::string& which) {
  if (std::ranges::find(list, operation) != list.end()) return;
  throw UsageError{"--operation: '" + printable(operation) + "' is not an operation" +
                   (methods(operation).empty() ? "" : ' ' + which) + "; choose one of " + listed(list)};
}

void check_before_reading(const FormatInfo* format, const std::function<void(const FormatInfo&)>& check) {
  if (format) return check(*format);
  std::exception_ptr first;
  std::string message;
  for (const FormatInfo& f : formats) try {
      return check(f);
    } catch (const std::exception& e) {
      if (first && message != e.what()) return;
      first = std::current_exception();
      message = e.what();
    }
  std::rethrow_exception(first);
}

namespace {

/// Visits the methods of samesum and of the peers for vectors.
template <class Visit> void for_each_method(const std::string& operation, Visit visit) {
  for (const Method& m : methods(operation)) visit(m);
  if (operation == "sum")
    for (const Method& m : peers()) visit(m);
  else
    for (const Method& m : peers_of_batches())
      if (m.operation == operation) visit(m);
}

/// Why no method of the operation matches the glob, or a hint.
std::string no_match(const Asked& asked, const std::string& glob) {
  if (!operation_meant(glob).empty()) return " matches no " + asked.operation + hint_for(asked, glob);
  const std::string reason = reason_for_no_match(glob);
  return " matches no method" + (reason.empty()
                                     ? "; try 'tree/*' or see `samesum list '" + asked.operation + "/*'`"
                                     : ": " + reason);
}

bool chosen_by_default(const Method& m) { return (m.backend == "cpu" || m.backend == "cuda") && !m.is_slow; }

/// Whether the text is the name of one method of samesum, not a glob.
bool is_name(const std::string& glob) {
  return glob.find_first_of("*?") == glob.npos && !glob.ends_with("@peer") &&
         (glob.find('/') != glob.npos || parse_name(glob).fields.accumulator == Exact::name);
}

std::vector<const Method*> matching_one(const Asked& asked, const std::string& glob,
                                        const FormatInfo& input) {
  // Throws the reason if it is not a method.
  if (is_name(glob)) return {&method_named(asked, glob, input)};
  const std::string& operation = asked.operation;
  const bool has_backend = glob.find('@') != glob.npos;
  std::vector<const Method*> found;
  for_each_method(operation, [&](const Method& m) {
    if ((has_backend || chosen_by_default(m)) && matches_method(glob, m.name, operation)) found.push_back(&m);
  });
  if (found.empty() && !has_backend)
    for_each_method(operation, [&](const Method& m) {
      if (matches_name(glob, m.name, operation)) found.push_back(&m);
    });
  if (found.empty()) throw UsageError{asked.option + ": '" + glob + "'" + no_match(asked, glob)};
  return found;
}

void append_once(std::vector<const Method*>& all, const Method* m) {
  if (std::ranges::find(all, m) == all.end()) all.push_back(m);
}

}  // namespace

std::vector<const Method*> methods_matching(const std::string& globs, const FormatInfo& input,
                                            const std::string& option,
                                            const std::optional<std::string>& operation) {
  const Asked asked{operation.value_or("sum"), option, operation.has_value()};
  std::vector<const Method*> all;
  for (const std::string& glob : globs_in(globs.empty() ? "," : globs))
    for (const Method* m : matching_one(asked, glob, input))
      if (m->accepts(input)) append_once(all, m);
  return all;
}

std::vector<const Method*> methods_in_own_format(const std::string& globs,
                                                 const std::optional<std::string>& operation) {
  const Asked asked{operation.value_or("sum"), "--filter", operation.has_value()};
  std::vector<const Method*> all;
  if (globs.empty())
    for (const FormatInfo& format : formats)
      for_each_method(asked.operation, [&](const Method& m) {
        if (m.format == &format && m.accepts(format) && (chosen_by_default(m) || is_peer(m)))
          all.push_back(&m);
      });
  for (const std::string& glob : globs_in(globs)) {
    bool found = false;
    std::exception_ptr refusal;  // for one format; another format may have the peer
    for (const FormatInfo& format : formats) try {
        for (const Method* m : matching_one(asked, glob, format)) {
          if (m->format != &format || !m->accepts(format)) continue;
          found = true;
          append_once(all, m);
        }
      } catch (const std::exception&) {
        refusal = std::current_exception();
      }
    if (!found && !refusal)
      throw UsageError{
          "--filter: '" + glob +
          "' takes no elements of its own format, in which the experiment measures; leave it out"};
    if (!found) std::rethrow_exception(refusal);
  }
  return all;
}

std::string reason_for_no_match(const std::string& glob) {
  for (const Absent& peer : absent_peers())
    if (glob.starts_with(peer.backend + "/")) return peer.reason;
  const std::size_t at = glob.find('@');
  const bool of_gpu = glob.starts_with("cub/") || glob.starts_with("cublas/") || glob.starts_with("thrust/");
  const std::string_view backend = of_gpu            ? "cuda"
                                   : at == glob.npos ? ""
                                                     : std::string_view{glob}.substr(at + 1);
  if (std::ranges::none_of(methods(), [&](const Method& m) { return matches(backend, m.backend); }))
    for (const Absent& a : absent())
      if (matches(backend, a.backend)) return a.reason;
  std::vector<std::string> reasons;
  for (const Unsupported& u : unsupported())
    if (matches_method(glob, u.name) && std::ranges::count(reasons, u.reason) == 0)
      reasons.push_back(u.reason);
  return listed(reasons, "; ");
}

void check_output(const std::string& option, const std::string& path,
                  const std::vector<std::string>& inputs) {
  if (path == "-") throw UsageError{option + ": '-' is not a file; name one"};
  check_writable(path);
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (std::filesystem::is_regular_file(path, ignored) &&
        std::filesystem::equivalent(path, file_of(input), ignored))
      throw UsageError{option + ": this file holds the elements; name another one"};
}

void check_threads(int threads) {
  if (threads < 0)
    throw UsageError{"--threads: " + std::to_string(threads) + " is negative; give 0 (automatic) or more"};
}

}  // namespace samesum::harness
