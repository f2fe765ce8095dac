/// The schema that results must fit.
#pragma once

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>

#include "harness/results.hpp"
#include "shell.hpp"

namespace samesum::harness {

/// As much of JSON Schema as results.schema.json uses.
class Schema {
 public:
  explicit Schema(Json root)
      : root_(std::move(root))  // braces would make an array of it
  {}

  /// The place of the first thing that is wrong, or "".
  std::string problem(const Json& x, const std::string& definition) const {
    return check(x, root_.at("$defs").at(definition), definition);
  }

 private:
  std::string check(const Json& x, const Json& schema, const std::string& place) const {
    if (schema.contains("$ref")) {
      const std::string name = schema["$ref"].get<std::string>().substr(std::string{"#/$defs/"}.size());
      if (const std::string inner = check(x, root_.at("$defs").at(name), place); !inner.empty()) return inner;
    }
    if (schema.contains("type") && !has_type(x, schema["type"])) return place + ": type";
    if (schema.contains("const") && x != schema["const"]) return place + ": const";
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), x) == schema["enum"].end())
      return place + ": enum";
    if (schema.contains("minimum") && x.is_number() && x < schema["minimum"]) return place + ": minimum";
    if (schema.contains("pattern") &&
        !std::regex_search(x.get<std::string>(), std::regex{schema["pattern"].get<std::string>()}))
      return place + ": pattern";
    return check_members(x, schema, place);
  }

  std::string check_members(const Json& x, const Json& schema, const std::string& place) const {
    for (const Json& key : schema.value("required", Json::array()))
      if (!x.contains(key.get<std::string>())) return place + ": no " + key.get<std::string>();
    if (x.is_object())
      for (const auto& [key, value] : x.items()) {
        const Json* known = property(schema, key);
        if (known == nullptr && is_closed(schema)) return place + ": unknown " + key;
        if (known == nullptr) continue;
        if (const std::string inner = check(value, *known, place + "." + key); !inner.empty()) return inner;
      }
    if (x.is_array() && schema.contains("items"))
      for (const Json& item : x)
        if (const std::string inner = check(item, schema["items"], place + "[]"); !inner.empty())
          return inner;
    return "";
  }

  static bool is_closed(const Json& schema) {
    return schema.contains("additionalProperties") || schema.contains("unevaluatedProperties");
  }

  const Json* property(const Json& schema, const std::string& key) const {
    if (schema.contains("properties") && schema["properties"].contains(key))
      return &schema["properties"][key];
    if (!schema.contains("$ref")) return nullptr;
    return property(root_.at("$defs").at(schema["$ref"].get<std::string>().substr(8)), key);
  }

  static bool has_type(const Json& x, const Json& type) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(), [&](const Json& one) { return has_type(x, one); });
    return (type == "object" && x.is_object()) || (type == "array" && x.is_array()) ||
           (type == "string" && x.is_string()) || (type == "number" && x.is_number()) ||
           (type == "integer" && x.is_number_integer()) || (type == "boolean" && x.is_boolean()) ||
           (type == "null" && x.is_null());
  }

  Json root_;
};

inline Schema schema() {
  return Schema{Json::parse(testing_support::read(std::filesystem::path{SAMESUM_SOURCE_DIR} /
                                                  "experiments/harness/results.schema.json"))};
}

}  // namespace samesum::harness
