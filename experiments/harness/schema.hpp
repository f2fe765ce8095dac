/// The schema of results. It is compiled into the program.
#pragma once

#include <string>
#include <vector>

#include "harness/results.hpp"

namespace samesum::harness {

/// A JSON Schema with the keywords that results.schema.json uses.
class Schema {
 public:
  explicit Schema(Json root);

  /// The place and the kind of the first mismatch between the object and a definition, such as "error.n: is
  /// not of type integer"; "" if the object fits.
  std::string problem(const Json& x, const std::string& definition) const;

  /// A property of a definition, with its description.
  struct Column {
    std::string name, meaning;
    bool required;
  };
  /// The description of a definition.
  std::string meaning(const std::string& definition) const;
  std::vector<Column> columns(const std::string& definition) const;
  /// Whether every object of a definition has the field.
  bool is_required(const std::string& definition, const std::string& field) const;

 private:
  const Json& definition(const std::string& name) const;
  const Json* referred(const Json& schema) const;
  const Json* property(const Json& schema, const std::string& key) const;
  std::string meaning_of(const Json& schema) const;
  std::string check(const Json& x, const Json& schema, const std::string& place) const;
  std::string check_members(const Json& x, const Json& schema, const std::string& place) const;

  Json root_;
};

/// The schema in results.schema.json when the program was built.
const Schema& schema();

}  // namespace samesum::harness
