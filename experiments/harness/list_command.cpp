#include <map>

#include "harness/commands.hpp"
#include "harness/peers.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

/// Heights depend on n; a list shows them for a million elements.
constexpr std::size_t sample_size = std::size_t{1} << 20;

Json variant_json(const Variant& v) {
  return {{"name", v.name},
          {"order", v.order.empty() ? Json(nullptr) : Json(v.order)},
          {"accumulator", v.accumulator},
          {"format", v.format->name},
          {"backend", v.backend},
          {"promise", name_of(v.promise)},
          {"height", v.height(sample_size).total()},
          {"height_formula", v.height_formula},
          {"state_bytes", v.state_bytes},
          {"operations_per_element", v.operations_per_element}};
}

std::string as_json() {
  Json list = {{"variants", Json::array()}, {"unsupported", Json::array()}, {"absent", Json::array()}};
  for (const Variant& v : variants()) list["variants"].push_back(variant_json(v));
  for (const Unsupported& u : unsupported())
    list["unsupported"].push_back({{"name", u.name}, {"reason", u.reason}});
  for (const Absent& a : absent()) list["absent"].push_back({{"backend", a.backend}, {"reason", a.reason}});
  return json_line(list);
}

std::string row(const std::string& name, const std::string& promise, const std::string& height,
                const std::string& bytes, const std::string& operations) {
  return left(name, 36) + ' ' + left(promise, 10) + ' ' + right(height, 11) + ' ' + right(bytes, 7) + ' ' +
         right(operations, 10) + '\n';
}

std::string as_text() {
  std::string text = row("method", "promise", "height@2^20", "bytes", "operations");
  for (const Variant& v : variants())
    text += row(v.name, std::string{name_of(v.promise)}, std::to_string(v.height(sample_size).total()),
                std::to_string(v.state_bytes), std::to_string(v.operations_per_element));
  text += "\nheight: additions on the longest path; bytes of a state; operations an element\n";
  text += "\npeers, which 'samesum compare --methods *@peer' puts beside:\n";
  for (const Variant& v : peers()) text += "  " + v.name + '\n';
  std::map<std::string, std::string> refused;  // by reason
  for (const Unsupported& u : unsupported()) refused[u.reason] += "  " + u.name + '\n';
  for (const auto& [reason, names] : refused) text += "\nnot supported, because " + reason + ":\n" + names;
  for (const Absent& a : absent()) text += "\nno methods @" + a.backend + ", because\n" + a.reason + '\n';
  for (const Absent& a : absent_peers())
    text += "\nno methods " + a.backend + "/*@peer, because\n" + a.reason + '\n';
  return text;
}

}  // namespace

Report list_command(bool json) { return {json ? as_json() : as_text(), {}}; }

}  // namespace samesum::harness
