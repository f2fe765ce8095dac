/// What ranks tell each other before a call, whatever connects them: descriptions of calls, and errors as
/// text.
#pragma once

#include <array>
#include <charconv>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include "samesum/catalogue/method.hpp"
#include "samesum/version.hpp"

namespace samesum {

/// Returns the message of the exception that work() throws; empty if it throws none.
inline std::string message_of(const std::function<void()>& work) try {
  work();
  return {};
} catch (const std::bad_alloc&) {
  return "the data do not fit into memory";
} catch (const std::exception& e) {
  return *e.what() ? e.what() : "unknown error";
} catch (...) {
  return "an exception that is no std::exception";
}

/// Returns the text without the prefix of the library's messages.
inline std::string_view without_prefix(std::string_view message) {
  constexpr std::string_view prefix = "samesum: ";
  return message.substr(message.starts_with(prefix) ? prefix.size() : 0);
}

/// Describes a call of a function with a method of any backend, by this version of the library.
inline std::string description_of_call(std::string_view function, const Method& method,
                                       const Options& options) {
  std::string text = std::string{function} + " with " + std::string{method.name, 0, method.name.find('@')};
  if (options.grid) text += ", grid " + std::to_string(*options.grid);
  if (options.ddof != 0) {
    std::array<char, 32> shortest;
    text += ", ddof ";
    text.append(shortest.data(),
                std::to_chars(shortest.data(), shortest.data() + shortest.size(), options.ddof).ptr);
  }
  return text + ", samesum " + std::to_string(SAMESUM_VERSION_MAJOR) + "." +
         std::to_string(SAMESUM_VERSION_MINOR) + "." + std::to_string(SAMESUM_VERSION_PATCH);
}

}  // namespace samesum
