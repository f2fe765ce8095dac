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

Json method_json(const Method& m) {
  return {{"name", m.name},
          {"operation", m.operation},
          {"order", m.order.empty() ? Json(nullptr) : Json(m.order)},
          {"accumulator", m.accumulator},
          {"format", m.format->name},
          {"backend", m.backend},
          {"promise", name_of(m.promise)},
          {"height", m.height(sample_size).total()},
          {"height_formula", m.height_formula},
          {"state_bytes", m.state_bytes},
          {"operations_per_element", m.operations_per_element}};
}

std::string as_json(const std::vector<const Method*>& chosen) {
  Json list = {{"methods", Json::array()}, {"unsupported", Json::array()}, {"absent", Json::array()}};
  for (const Method* m : chosen) list["methods"].push_back(method_json(*m));
  for (const Unsupported& u : unsupported())
    list["unsupported"].push_back({{"name", u.name}, {"reason", u.reason}});
  for (const Absent& a : absent()) list["absent"].push_back({{"backend", a.backend}, {"reason", a.reason}});
  return json_line(list);
}

std::string row(const std::string& name, const std::string& promise, const std::string& height,
                const std::string& bytes, const std::string& operations) {
  return left(name, 49) + ' ' + left(promise, 10) + ' ' + right(height, 8) + ' ' + right(bytes, 5) + ' ' +
         right(operations, 4) + '\n';
}

std::string table(const std::vector<const Method*>& chosen) {
  std::string text = row("method", "promise", "height", "bytes", "ops");
  for (const Method* m : chosen)
    text += row(m->name, std::string{name_of(m->promise)}, std::to_string(m->height(sample_size).total()),
                std::to_string(m->state_bytes),
                m->operations_per_element == 0 ? "-" : std::to_string(m->operations_per_element));
  return text +
         "\npromise: guarantee about the bits, none < run_to_run < everywhere < order_free\n"
         "height: additions on the longest path for n = 2^20; bytes: size of a state\n"
         "ops: operations per element, or - if they depend on the elements\n";
}

/// Lists the peers, and what is unsupported or absent.
std::string rest() {
  std::string text = "\npeers, which samesum compare --methods '*,*@peer' includes:\n";
  for (const Method& m : peers()) text += "  " + m.name + '\n';
  std::map<std::string, std::string> refused;  // by reason
  for (const Unsupported& u : unsupported()) refused[u.reason] += "  " + u.name + '\n';
  for (const auto& [reason, names] : refused) text += "\nnot supported, because " + reason + ":\n" + names;
  for (const Absent& a : absent()) text += "\nno methods @" + a.backend + ", because\n" + a.reason + '\n';
  for (const Absent& a : absent_peers())
    text += "\nno methods " + a.backend + "/*@peer, because\n" + a.reason + '\n';
  return text;
}

}  // namespace

Report list_command(const std::string& glob, bool json) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (glob.empty() || matches(glob, m)) chosen.push_back(&m);
  if (chosen.empty()) throw UsageError{"GLOB: '" + glob + "' matches no method; try 'dot/*' or '*@cpu'"};
  return {json ? as_json(chosen) : table(chosen) + (glob.empty() ? rest() : ""), {}};
}

}  // namespace samesum::harness
