#include <algorithm>
#include <map>

#include "harness/peers.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"
#include "tool/commands.hpp"

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

/// What is absent, and why.
std::string absences() {
  std::string text;
  for (const Absent& a : absent()) text += wrapped("no methods @" + a.backend + ": " + a.reason) + '\n';
  for (const Absent& a : absent_peers())
    text += wrapped("no methods " + a.backend + "/*@peer: " + a.reason) + '\n';
  return text;
}

/// Lists the peers, and what is absent.
std::string rest() {
  std::string text = "\nother libraries, which samesum compare --methods '*,*@peer' includes:\n";
  for (const Method& m : peers()) text += "  " + m.name + '\n';
  return text + '\n' + absences() +
         "\n`samesum list --unsupported`: " + std::to_string(unsupported().size()) +
         " combinations that are not methods, and why\n";
}

// --- the overview --------------------------------------------------------------------------------

using Words = std::vector<std::string>;
template <class A, class B> using Pairs = std::vector<std::pair<A, B>>;

/// The different values of each key. Keys and values keep their order.
template <class Key, class Value>
Pairs<Key, std::vector<Value>> values_by_key(const Pairs<Key, Value>& pairs) {
  Pairs<Key, std::vector<Value>> all;
  for (const auto& [key, value] : pairs) {
    auto found = std::ranges::find(all, key, &std::pair<Key, std::vector<Value>>::first);
    if (found == all.end()) found = all.insert(found, {key, {}});
    if (std::ranges::find(found->second, value) == found->second.end()) found->second.push_back(value);
  }
  return all;
}

/// The keys that have the same values, for each list of values.
template <class Key, class Value>
Pairs<std::vector<Value>, std::vector<Key>> keys_by_values(const Pairs<Key, Value>& pairs) {
  Pairs<std::vector<Value>, Key> swapped;
  for (const auto& [key, values] : values_by_key(pairs)) swapped.emplace_back(values, key);
  return values_by_key(swapped);
}

/// "tree", "(tree pairwise)".
std::string one_of(const Words& words) {
  return words.size() == 1 ? words.front() : '(' + listed(words, " ") + ')';
}

/// Orders and their accumulators in short: "tree/(plain kahan) pairwise/plain exact"; "-" if there is no
/// choice.
std::string in_short(const Pairs<std::string, std::string>& orders_and_accumulators) {
  Words all;
  for (const auto& [accumulators, orders] : keys_by_values(orders_and_accumulators))
    all.push_back(orders.front().empty()         ? listed(accumulators, " ")
                  : accumulators.front().empty() ? listed(orders, " ")
                                                 : one_of(orders) + '/' + one_of(accumulators));
  const std::string text = listed(all, " ");
  return text.empty() ? "-" : text;
}

/// Row of the overview. The last column is wrapped.
std::string row(const std::string& operation, const std::string& taken, const std::string& names) {
  const std::string columns = left(operation, 18) + ' ' + left(taken, 9) + ' ';
  const std::size_t width = columns.size();
  return wrapped(std::string(width - 1, '.') + ' ' + names, 80, width).replace(0, width, columns) + '\n';
}

/// The methods of an operation: a row for each list of formats.
std::string rows_of(const std::string& operation) {
  Pairs<std::pair<std::string, std::string>, std::string> all;
  for (const Method& m : methods(operation))
    all.push_back({{m.order, m.accumulator}, std::string{m.format->name}});
  std::string text;
  for (const auto& [names, orders_and_accumulators] : keys_by_values(all))
    text += row(text.empty() ? operation : "", names.size() == formats.size() ? "all" : listed(names, " "),
                in_short(orders_and_accumulators));
  return text;
}

std::string group_of(const Method& m) {
  return m.takes_keys               ? "reductions by key"
         : m.is_scan()              ? "scans"
         : m.takes_window           ? "rolling operations"
         : m.has_result_per_element ? "functions of rows"
                                    : "reductions";
}

/// A table of the operations, with the names of their methods in short.
std::string overview() {
  std::string text = row("operation", "formats", "methods"), group;
  for (const Words& some : {operations(), operations(true)})
    for (const std::string& operation : some) {
      const std::string its = group_of(methods(operation).front());
      if (its != group) text += '\n' + its + '\n';
      group = its;
      text += rows_of(operation);
    }
  Words libraries;
  for (const Method& m : peers()) {
    const std::string name = m.name.substr(0, m.name.rfind('/'));
    if (std::ranges::find(libraries, name) == libraries.end()) libraries.push_back(name);
  }
  return text +
         "\n(a b): a or b; -: no choice. A full name is\n"
         "operation/order/accumulator/format@backend, as in sum/tree/kahan/fp32@cpu,\n"
         "sum/exact/fp64@cpu and max/fp16@cpu\n"
         "formats: of the results; all: " +
         format_names(" ") + "\nbackends: " + backend_names() + '\n' +
         wrapped("other libraries, for samesum compare --methods '*,*@peer': " + listed(libraries, " ")) +
         '\n' + absences() +
         "\n`samesum list sum`: the methods of sum and their promises; also with a part of a\n"
         "  name or a pattern\n`samesum list --all`: all " +
         std::to_string(methods().size()) + " methods; --unsupported: what is no method, and why\n";
}

/// The entries that the text selects: those whose name matches it as a pattern; if there are none and it has
/// no * and ?, those of the operation, or else those whose name contains it. An empty text selects all.
template <class Entry>
std::vector<const Entry*> selected(const std::string& text, std::span<const Entry> all) {
  const auto those = [&](auto is_selected) {
    std::vector<const Entry*> some;
    for (const Entry& e : all)
      if (is_selected(e.name)) some.push_back(&e);
    return some;
  };
  auto found = those([&](const std::string& name) { return text.empty() || matches_method(text, name); });
  if (!found.empty() || text.find_first_of("*?") != text.npos) return found;
  found = those([&](const std::string& name) { return name.starts_with(text + '/'); });
  if (!found.empty()) return found;
  return those([&](const std::string& name) { return name.find(text) != name.npos; });
}

/// Lists the combinations that are not methods, grouped by reason; empty if none is selected.
std::string unsupported_table(const std::string& which) {
  std::map<std::string, std::string> names;  // by reason
  for (const Unsupported* u : selected(which, unsupported())) names[u->reason] += "  " + u->name + '\n';
  std::string text;
  for (const auto& [reason, some] : names)
    text += (text.empty() ? "" : "\n") + wrapped("not supported: " + reason) + '\n' + some;
  return text;
}

/// Why the text selects no method, or a hint.
std::string no_match(const std::string& which) {
  if (const std::string reason = reason_for_no_match(which); !reason.empty()) return ": " + reason;
  if (which.find_first_of("*?") == which.npos) try {
      find(which, {.operation = "sum", .format = "fp64"});
    } catch (const std::invalid_argument& e) {
      const std::string why = e.what();
      if (const std::size_t colon = why.find("': "); colon != why.npos) return why.substr(colon + 1);
    }
  return "; `samesum list` shows operations, orders and accumulators";
}

}  // namespace

Report list_command(const ListOptions& options) {
  const std::string& which = options.which;
  if (options.unsupported) {
    const std::string text = unsupported_table(which);
    if (text.empty()) throw UsageError{"METHODS: '" + which + "' matches no unsupported combination"};
    return {text, {}};
  }
  const std::vector<const Method*> chosen = selected(which, methods());
  if (chosen.empty()) throw UsageError{"METHODS: '" + which + "' matches no method" + no_match(which)};
  if (options.json) return {as_json(chosen), {}};
  if (!which.empty()) return {table(chosen), {}};
  return {options.all ? table(chosen) + rest() : overview(), {}};
}

}  // namespace samesum::harness
