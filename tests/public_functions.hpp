/// Lists the functions that a public header declares, by parsing its text.
#pragma once

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace samesum::testing_support {

/// Returns the text without comments, string literals and preprocessor lines.
inline std::string code_of_text(const std::string& text) {
  std::string code;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto skip_to = [&](const char* end) { i = std::min(text.find(end, i + 1), text.size()); };
    if (text.compare(i, 2, "//") == 0)
      skip_to("\n");
    else if (text.compare(i, 2, "/*") == 0)
      skip_to("*/"), ++i;
    else if (text[i] == '#' && (code.empty() || code.back() == '\n'))
      while (i < text.size() && (text[i] != '\n' || text[i - 1] == '\\')) ++i;
    else if (text[i] == '"')
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\';
    else
      code += text[i];
    if (i < text.size() && text[i] == '\n') code += '\n';
  }
  return code;
}

/// Returns the name before the first parenthesis of a declaration; empty if it declares no function.
inline std::string declared_function(const std::string& statement) {
  std::istringstream words{statement};
  for (std::string word; words >> word;)
    for (const char* other : {"using", "typedef", "friend", "static_assert", "catch", "concept"})
      if (word.substr(0, word.find('(')) == other) return {};
  int angles = 0;
  for (std::size_t i = 0; i < statement.size(); ++i) {
    if (statement[i] == '<') ++angles;
    if (statement[i] == '>' && angles > 0) --angles;
    if (statement[i] == '=' && angles == 0 && statement.find("operator") > i) return {};  // a variable
    if (statement[i] != '(' || angles > 0) continue;
    if (i >= 8 && statement.compare(i - 8, 8, "decltype") == 0) {
      i = std::min(statement.find(')', i), statement.size() - 1);
      continue;
    }
    if (const std::size_t at = statement.rfind("operator", i); at != std::string::npos) {
      std::string name = statement.substr(at, i - at);
      if (name == "operator" && statement.compare(i, 2, "()") == 0) name += "()";
      return name;
    }
    std::size_t end = i, begin;
    while (end > 0 && std::isspace(static_cast<unsigned char>(statement[end - 1]))) --end;
    begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(statement[begin - 1])) ||
                         statement[begin - 1] == '_' || statement[begin - 1] == '~'))
      --begin;
    return statement.substr(begin, end - begin);
  }
  return {};
}

/// Returns the functions of a header ("find", "Method::bound", …), without constructors, destructors and the
/// contents of namespace `detail`.
inline std::set<std::string> functions_of(const std::filesystem::path& header) {
  std::ifstream file{header};
  const std::string code = code_of_text({std::istreambuf_iterator<char>{file}, {}});
  struct Scope {
    std::string type;  ///< empty for a namespace
    bool is_public, is_known;
  };
  std::vector<Scope> scopes{{"", true, true}};
  std::set<std::string> found;
  std::string statement;
  const auto note = [&] {
    const Scope& scope = scopes.back();
    const std::string name = declared_function(statement);
    const bool is_gone =
        statement.find("= delete") != std::string::npos || statement.find("= default") != std::string::npos;
    if (!name.empty() && scope.is_public && !is_gone && name != scope.type && name[0] != '~')
      found.insert(scope.type.empty() ? name : scope.type + "::" + name);
    return !name.empty();
  };
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == ';') {
      note();
      statement.clear();
    } else if (c == '}') {
      if (scopes.size() > 1) scopes.pop_back();
      statement.clear();
    } else if (c == ':' && (statement.ends_with("public") || statement.ends_with("private"))) {
      scopes.back().is_public = statement.ends_with("public");
      statement.clear();
    } else if (c == '{') {
      std::istringstream words{statement.substr(std::min(statement.size(), statement.rfind('>') + 1))};
      std::string kind, name;
      words >> kind >> name;
      if (kind == "inline") kind = name, words >> name;
      const bool of_type = (kind == "struct" || kind == "class") && scopes.back().is_known;
      if (kind == "namespace" && scopes.back().is_known) {
        const bool hidden = name.empty() || name.find("detail") != std::string::npos;
        scopes.push_back({"", !hidden, !hidden});
      } else if (of_type) {
        scopes.push_back({name, kind == "struct" && scopes.back().is_public, true});
      } else {  // skips a body or an initialiser
        note();
        for (int depth = 1; depth > 0 && ++i < code.size();) depth += (code[i] == '{') - (code[i] == '}');
      }
      statement.clear();
    } else {
      statement += c == '\n' ? ' ' : c;
      if (statement == " ") statement.clear();
    }
  }
  return found;
}

}  // namespace samesum::testing_support
