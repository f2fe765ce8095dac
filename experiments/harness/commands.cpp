#include "harness/commands.hpp"

#include "samesum/samesum.hpp"

namespace samesum::harness {

std::string format_names(const std::string& separator) {
  std::string all;
  for (const FormatInfo& format : formats) all.append(all.empty() ? "" : separator).append(format.name);
  return all;
}

const FormatInfo* format_named(const std::string& name) {
  if (name.empty()) return nullptr;
  if (const FormatInfo* format = find_format(name)) return format;
  throw UsageError{"--format: there is no format '" + name + "'; choose one of " + format_names(", ")};
}

std::string complete_method(const std::string& name, const FormatInfo& input) {
  const std::string recipe = name.substr(0, name.find('@'));
  if (recipe != "exact") return name;
  return recipe + "/" + std::string{input.name} + name.substr(recipe.size());
}

bool matches(std::string_view glob, std::string_view name) {
  // On a mismatch the last star takes one character more: earlier stars never need to, so this is no search.
  std::size_t g = 0, star = glob.npos, taken = 0;
  for (std::size_t i = 0; i < name.size();) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      taken = i;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[i])) {
      ++g, ++i;
    } else if (star != glob.npos) {
      g = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == glob.npos;
}

std::vector<const Variant*> variants_matching(const std::string& glob, const FormatInfo& input) {
  const std::string completed = complete_method(glob, input);
  const bool full_name =
      completed.find('/') != std::string::npos && completed.find_first_of("*?") == std::string::npos;
  if (full_name)
    return {&find(completed)};  // which knows the reason, or the nearest names, where there is none
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
