#include "harness/commands.hpp"

#include <algorithm>
#include <exception>
#include <sstream>

#include "harness/peers.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

/// From the weakest to the strongest.
std::vector<Promise> promises() {
  std::vector<Promise> all;
  for (int i = 0; i <= static_cast<int>(Promise::order_free); ++i) all.push_back(static_cast<Promise>(i));
  return all;
}

}  // namespace

std::string format_names(const std::string& separator) {
  return listed(formats, separator, &FormatInfo::name);
}

std::string promise_names() { return listed(promises(), ", ", name_of); }

std::string backend_names() { return listed(backends); }

std::string is_whole_number(const std::string& text) {
  const bool digits = text.find_first_not_of("0123456789") == text.npos && text.size() <= 18;
  return digits ? "" : "'" + text + "' is no whole number of at most 18 digits";
}

Promise promise_named(const std::string& name) {
  for (const Promise promise : promises())
    if (name_of(promise) == name) return promise;
  throw UsageError{"--promise: there is no promise '" + name + "'; choose one of " + promise_names()};
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

namespace {

/// Everything that has a name: the registry, and the peers.
template <class Visit> void for_each_method(Visit visit) {
  for (const Variant& v : variants()) visit(v);
  for (const Variant& v : peers()) visit(v);
}

/// Why peers that the glob may have meant are not here.
std::string absence(const std::string& glob) {
  for (const Absent& peer : absent_peers())
    if (glob.starts_with(peer.backend + "/")) return ": " + peer.reason;
  return "; try 'tree/*' or see `samesum list`";
}

bool chosen_by_default(const Variant& v) { return (v.backend == "cpu" || v.backend == "cuda") && !v.slow; }

std::vector<const Variant*> matching_one(const std::string& option, const std::string& glob,
                                         const FormatInfo& input) {
  const std::string completed = complete_method(glob, input);
  const bool has_backend = completed.find('@') != std::string::npos;
  std::vector<const Variant*> found;
  for_each_method([&](const Variant& v) {
    const std::string recipe = v.name.substr(0, v.name.find('@'));
    if (has_backend ? matches(completed, v.name) : chosen_by_default(v) && matches(completed, recipe))
      found.push_back(&v);
  });
  const bool full_name =
      completed.find('/') != std::string::npos && completed.find_first_of("*?") == std::string::npos;
  if (full_name && (found.empty() || !has_backend) && !completed.ends_with("@peer"))
    return {&find(completed)};  // which knows the reason, or the nearest names, where there is none
  if (found.empty() && !has_backend)
    for_each_method([&](const Variant& v) {
      if (matches(completed, v.name)) found.push_back(&v);
    });
  if (found.empty()) throw UsageError{option + ": '" + glob + "' matches no method" + absence(glob)};
  return found;
}

/// Each glob of a list with commas between them; an empty list has one, which is empty.
void for_each_glob(const std::string& globs, auto visit) {
  std::istringstream in{globs.empty() ? "," : globs};
  for (std::string glob; std::getline(in, glob, ',');) visit(glob);
}

void append_once(std::vector<const Variant*>& all, const Variant* v) {
  if (std::ranges::find(all, v) == all.end()) all.push_back(v);
}

}  // namespace

std::vector<const Variant*> variants_matching(const std::string& globs, const FormatInfo& input,
                                              const std::string& option) {
  std::vector<const Variant*> all;
  for_each_glob(globs, [&](const std::string& glob) {
    for (const Variant* v : matching_one(option, glob, input))
      if (takes(*v, input)) append_once(all, v);
  });
  return all;
}

std::vector<const Variant*> variants_in_own_format(const std::string& globs) {
  std::vector<const Variant*> all;
  if (globs.empty()) {
    for (const FormatInfo& format : formats)
      for_each_method([&](const Variant& v) {
        if (v.format == &format && takes(v, format) && (chosen_by_default(v) || is_peer(v)))
          all.push_back(&v);
      });
    return all;
  }
  for_each_glob(globs, [&](const std::string& glob) {
    bool found = false;
    std::exception_ptr refusal;  // of one format: a peer may exist for another
    for (const FormatInfo& format : formats) try {
        for (const Variant* v : matching_one("--filter", glob, format)) {
          if (v->format != &format || !takes(*v, format)) continue;
          found = true;
          append_once(all, v);
        }
      } catch (const std::exception&) {
        refusal = std::current_exception();
      }
    if (!found) std::rethrow_exception(refusal);
  });
  return all;
}

void check_threads(int threads) {
  if (threads < 0)
    throw UsageError{"--threads: " + std::to_string(threads) + " is negative; give 0 (automatic) or more"};
}

}  // namespace samesum::harness
