#include "harness/commands.hpp"

#include "samesum/samesum.hpp"

namespace samesum::harness {

const FormatInfo* format_named(const std::string& name) {
  if (name.empty()) return nullptr;
  if (const FormatInfo* format = find_format(name)) return format;
  std::string known;
  for (const FormatInfo& format : formats) known += (known.empty() ? "" : ", ") + std::string{format.name};
  throw UsageError{"--format: there is no format '" + name + "'; choose one of " + known};
}

std::string complete_method(const std::string& name, const FormatInfo& input) {
  const std::string recipe = name.substr(0, name.find('@'));
  if (recipe != "exact") return name;
  return recipe + "/" + std::string{input.name} + name.substr(recipe.size());
}

bool matches(std::string_view glob, std::string_view name) {
  if (glob.empty()) return name.empty();
  if (glob[0] == '*')
    return matches(glob.substr(1), name) || (!name.empty() && matches(glob, name.substr(1)));
  return !name.empty() && (glob[0] == '?' || glob[0] == name[0]) && matches(glob.substr(1), name.substr(1));
}

std::vector<const Variant*> variants_matching(const std::string& glob, const FormatInfo& input) {
  const std::string completed = complete_method(glob, input);
  std::vector<std::string> readings{completed};
  if (completed.find('@') == std::string::npos) readings.insert(readings.begin(), completed + "@cpu");
  for (const std::string& reading : readings) {
    std::vector<const Variant*> found;
    for (const Variant& variant : variants())
      if (matches(reading, variant.name)) found.push_back(&variant);
    if (!found.empty()) return found;
  }
  throw UsageError{"--methods: '" + glob + "' matches no method; try 'tree/*' or see `samesum list`"};
}

void check_threads(int threads) {
  if (threads < 0)
    throw UsageError{"--threads: " + std::to_string(threads) + " is negative; give 0 (automatic) or more"};
}

}  // namespace samesum::harness
