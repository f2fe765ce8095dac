#include "harness/schema.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <utility>

#include "harness/text.hpp"
#include "samesum_results_schema.hpp"  // generated from results.schema.json

namespace samesum::harness {
namespace {

bool is_of(const Json& x, const std::string& type) {
  return (type == "object" && x.is_object()) || (type == "array" && x.is_array()) ||
         (type == "string" && x.is_string()) || (type == "number" && x.is_number()) ||
         (type == "integer" && x.is_number_integer()) || (type == "boolean" && x.is_boolean()) ||
         (type == "null" && x.is_null());
}

/// A type is a name or a list of names.
bool has_type(const Json& x, const Json& type) {
  if (!type.is_array()) return is_of(x, type);
  return std::ranges::any_of(type, [&](const Json& one) { return is_of(x, one); });
}

std::string type_in_words(const Json& type) {
  return type.is_array() ? listed(type, " or ", [](const Json& one) { return one.get<std::string>(); })
                         : type.get<std::string>();
}

bool is_closed(const Json& schema) {
  return schema.contains("additionalProperties") || schema.contains("unevaluatedProperties");
}

/// The name in "#/$defs/name".
std::string name_referred(const Json& schema) {
  return schema["$ref"].get<std::string>().substr(std::string{"#/$defs/"}.size());
}

/// Caches compiled patterns: compiling one takes longer than checking a row.
const std::regex& compiled(const std::string& pattern) {
  static std::map<std::string, std::regex> all;
  const auto known = all.find(pattern);
  return known != all.end() ? known->second : all.emplace(pattern, pattern).first->second;
}

/// The first keyword of the schema that the value itself violates, without its members.
std::string own_problem(const Json& x, const Json& schema) {
  if (schema.contains("type") && !has_type(x, schema["type"]))
    return "is not of type " + type_in_words(schema["type"]);
  if (schema.contains("const") && x != schema["const"]) return "is not " + schema["const"].dump();
  if (schema.contains("enum") && std::ranges::count(schema["enum"], x) == 0)
    return "is not one of " + schema["enum"].dump();
  if (schema.contains("minimum") && x.is_number() && x < schema["minimum"])
    return "is less than " + schema["minimum"].dump();
  if (schema.contains("minItems") && x.is_array() && x.size() < schema["minItems"])
    return "has fewer than " + schema["minItems"].dump() + " items";
  if (schema.contains("pattern") && x.is_string() &&
      !std::regex_search(x.get<std::string>(), compiled(schema["pattern"])))
    return "does not match " + schema["pattern"].get<std::string>();
  return "";
}

}  // namespace

Schema::Schema(Json root) : root_(std::move(root)) {}  // braces would construct an array

std::string Schema::problem(const Json& x, const std::string& name) const {
  return check(x, definition(name), name);
}

std::string Schema::meaning(const std::string& name) const { return meaning_of(definition(name)); }

std::vector<Schema::Column> Schema::columns(const std::string& name) const {
  std::vector<Column> all;
  const Json& schema = definition(name);
  const Json required = schema.value("required", Json::array());
  const Json properties = schema.value("properties", Json::object());  // a copy that outlives the loop
  if (schema.contains("$ref")) all = columns(name_referred(schema));
  for (const auto& [key, value] : properties.items())
    if (key != "kind") all.push_back({key, meaning_of(value), std::ranges::count(required, Json(key)) > 0});
  return all;
}

bool Schema::is_required(const std::string& name, const std::string& field) const {
  const Json& schema = definition(name);
  return (schema.contains("required") && std::ranges::count(schema["required"], Json(field)) > 0) ||
         (schema.contains("$ref") && is_required(name_referred(schema), field));
}

const Json& Schema::definition(const std::string& name) const { return root_.at("$defs").at(name); }

const Json* Schema::referred(const Json& schema) const {
  return schema.contains("$ref") ? &definition(name_referred(schema)) : nullptr;
}

const Json* Schema::property(const Json& schema, const std::string& key) const {
  if (schema.contains("properties") && schema["properties"].contains(key)) return &schema["properties"][key];
  const Json* base = referred(schema);
  return base == nullptr ? nullptr : property(*base, key);
}

/// The description of the schema, or of the definition that it refers to.
std::string Schema::meaning_of(const Json& schema) const {
  if (schema.contains("description")) return schema["description"];
  const Json* base = referred(schema);
  return base == nullptr ? "" : meaning_of(*base);
}

std::string Schema::check(const Json& x, const Json& schema, const std::string& place) const {
  if (const Json* base = referred(schema))
    if (const std::string inner = check(x, *base, place); !inner.empty()) return inner;
  if (const std::string own = own_problem(x, schema); !own.empty()) return place + ": " + own;
  return check_members(x, schema, place);
}

std::string Schema::check_members(const Json& x, const Json& schema, const std::string& place) const {
  if (x.is_object()) {  // a null that the type allows has no members
    if (schema.contains("required"))
      for (const Json& key : schema["required"])
        if (!x.contains(key.get<std::string>())) return place + ": lacks the field " + key.get<std::string>();
    for (const auto& [key, value] : x.items()) {
      const Json* known = property(schema, key);
      if (known == nullptr && is_closed(schema)) return place + ": has the unknown field " + key;
      if (known == nullptr) continue;
      if (const std::string inner = check(value, *known, place + '.' + key); !inner.empty()) return inner;
    }
  }
  if (x.is_array() && schema.contains("items"))
    for (const Json& item : x)
      if (const std::string inner = check(item, schema["items"], place + "[]"); !inner.empty()) return inner;
  return "";
}

const Schema& schema() {
  static const Schema ours{Json::parse(results_schema)};
  return ours;
}

}  // namespace samesum::harness
