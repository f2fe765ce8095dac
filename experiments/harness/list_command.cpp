#include <algorithm>
#include <map>

#include "harness/commands.hpp"
#include "harness/peers.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

/// Heights depend on n. The list shows them for this number of elements.
constexpr std::size_t sample_size = std::size_t{1} << 20;

/// The formats of elements that a vector may have.
std::vector<std::string> input_formats(const Method& m) {
  std::vector<std::string> all;
  for (const FormatInfo& f : formats)
    if (m.accepts(f, Layout::vector(1))) all.emplace_back(f.name);
  return all;
}

Json method_json(const Method& m) {
  return {{"name", m.name},
          {"operation", m.operation},
          {"summary", m.summary},
          {"order", m.order.empty() ? Json(nullptr) : Json(m.order)},
          {"accumulator", m.accumulator},
          {"format", m.format->name},
          {"backend", m.backend},
          {"input_formats", input_formats(m)},
          {"promise", name_of(m.promise)},
          {"height", m.height(sample_size).total()},
          {"height_formula", m.height_formula},
          {"state_bytes", m.state_bytes},
          {"operations_per_element", m.operations_per_element}};
}

std::string as_json(const std::vector<const Method*>& chosen) {
  Json list = {{"kind", "catalogue"},
               {"methods", Json::array()},
               {"unsupported", Json::array()},
               {"absent", Json::array()}};
  for (const Method* m : chosen) list["methods"].push_back(method_json(*m));
  for (const Unsupported& u : unsupported())
    list["unsupported"].push_back({{"name", u.name}, {"reason", u.reason}});
  for (const Absent& a : absent()) list["absent"].push_back({{"backend", a.backend}, {"reason", a.reason}});
  return json_line(list);
}

/// "all", "not fp64", "fp32 fp64".
std::string formats_taken(const Method& m) {
  const std::vector<std::string> taken = input_formats(m);
  if (taken.size() == formats.size()) return "all";
  if (taken.size() + 1 < formats.size()) return listed(taken, " ");
  const auto& missing = *std::ranges::find_if(
      formats, [&](const FormatInfo& f) { return std::ranges::find(taken, f.name) == taken.end(); });
  return "not " + std::string{missing.name};
}

std::string row(const std::string& name, const std::string& promise, const std::string& height,
                const std::string& takes) {
  return left(name, 48) + ' ' + left(promise, 10) + ' ' + right(height, 8) + "  " + takes + '\n';
}

/// A table of all methods, by operation.
std::string table(const std::vector<const Method*>& chosen) {
  const auto any = [&](auto field, const char* value) {
    return std::ranges::any_of(chosen, [&](const Method* m) { return m->*field == value; });
  };
  std::string text = row("method", "promise", "height", "takes"), operation;
  for (const Method* m : chosen) {
    if (m->operation != operation) {
      operation = m->operation;
      text += '\n' + operation + ": " + std::string{m->summary} + '\n';
    }
    text += row(m->name, std::string{name_of(m->promise)}, std::to_string(m->height(sample_size).total()),
                formats_taken(*m));
  }
  return text +
         "\npromise: guarantee about the bits, none < run_to_run < everywhere < order_free\n"
         "height: most additions between an element and the result, for n = 2^20\n" +
         (any(&Method::accumulator, "exact") ? "  (0 for exact methods, which round once, at the end)\n"
                                             : "") +
         (any(&Method::operation, "softmax") || any(&Method::operation, "log_softmax")
              ? "  (for softmax that of the order tree, whatever the denominator)\n"
              : "") +
         "takes: formats of the elements; the last part of a name is that of the result\n";
}

/// Lists the peers, and what is absent.
std::string rest() {
  std::string text = "\nother libraries, which samesum compare --methods '*,*@peer' includes:\n";
  for (const Method& m : peers()) text += "  " + m.name + '\n';
  for (const Absent& a : absent())
    text += '\n' + wrapped("no methods @" + a.backend + ": " + a.reason) + '\n';
  for (const Absent& a : absent_peers())
    text += '\n' + wrapped("no methods " + a.backend + "/*@peer: " + a.reason) + '\n';
  return text + "\n`samesum list --unsupported`: " + std::to_string(unsupported().size()) +
         " combinations that are not methods, and why\n";
}

/// Lists the combinations that are not methods, grouped by reason; empty if none matches.
std::string unsupported_table(const std::string& glob) {
  std::map<std::string, std::string> names;  // by reason
  for (const Unsupported& u : unsupported())
    if (glob.empty() || matches_method(glob, u.name)) names[u.reason] += "  " + u.name + '\n';
  std::string text;
  for (const auto& [reason, some] : names)
    text += (text.empty() ? "" : "\n") + wrapped("not supported: " + reason) + '\n' + some;
  return text;
}

/// Why the glob matches no method, or a hint.
std::string no_match(const std::string& glob) {
  if (const std::string reason = reason_for_no_match(glob); !reason.empty()) return ": " + reason;
  const bool is_beginning =
      std::ranges::any_of(methods(), [&](const Method& m) { return matches(glob + "/*", m); });
  return "; try '" + (is_beginning ? glob + "/*'" : "dot/*' or '*@cpu'");
}

}  // namespace

Report list_command(const ListOptions& options) {
  const std::string& glob = options.glob;
  if (options.unsupported) {
    const std::string text = unsupported_table(glob);
    if (text.empty()) throw UsageError{"GLOB: '" + glob + "' matches no unsupported combination"};
    return {text, {}};
  }
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (glob.empty() || matches(glob, m)) chosen.push_back(&m);
  if (chosen.empty()) throw UsageError{"GLOB: '" + glob + "' matches no method" + no_match(glob)};
  return {options.json ? as_json(chosen) : table(chosen) + (glob.empty() ? rest() : ""), {}};
}

}  // namespace samesum::harness
