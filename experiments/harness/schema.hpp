/// The schema that results must fit. It is part of the program, so that it is there wherever the program is.
#pragma once

#include <string>
#include <vector>

#include "harness/results.hpp"

namespace samesum::harness {

/// As much of JSON Schema as results.schema.json uses.
class Schema {
 public:
  explicit Schema(Json root);

  /// Where in the object the first thing is wrong and what, or "": "error.n: is no integer".
  std::string problem(const Json& x, const std::string& definition) const;

  /// What a definition is for, and what is to know about each of its properties.
  struct Column {
    std::string name, meaning;
    bool required;
  };
  std::string meaning(const std::string& definition) const;
  std::vector<Column> columns(const std::string& definition) const;

 private:
  const Json& definition(const std::string& name) const;
  const Json* referred(const Json& schema) const;
  const Json* property(const Json& schema, const std::string& key) const;
  std::string meaning_of(const Json& schema) const;
  std::string check(const Json& x, const Json& schema, const std::string& place) const;
  std::string check_members(const Json& x, const Json& schema, const std::string& place) const;

  Json root_;
};

/// That of results.schema.json when the program was built.
const Schema& schema();

}  // namespace samesum::harness
