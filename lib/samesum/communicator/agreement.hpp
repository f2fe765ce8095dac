/// What ranks tell each other about a call, whatever connects them.
///
/// A rank that throws while others wait for its messages would hang the job. So a call has two parts. First
/// each rank does everything that may fail on it alone: it checks its arguments, and allocates all that the
/// messages need. Its report says how that went, and the ranks agree on their reports before the first of
/// them sends data. A step behind the first messages that may fail, such as a reduction, ends with a report,
/// too.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "samesum/call/call.hpp"
#include "samesum/version.hpp"

namespace samesum {

/// What a rank tells the others: what it calls, or why it fails. A rank without memory must still be able to
/// tell, so a report owns none. Longer texts are cut.
struct Report {
  std::uint64_t call = 0;  ///< hash of the whole description
  bool failed = false;
  std::array<char, 1000> text{};  ///< the description, or the error without the prefix of messages

  static Report of_call(std::string_view description) {
    Report report;
    report.call = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : description)
      report.call = (report.call ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    report.put(description);
    return report;
  }
  static Report of_error(std::string_view message) {
    constexpr std::string_view prefix = "samesum: ";
    if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
    Report report;
    report.failed = true;
    report.put(message);
    return report;
  }

 private:
  void put(std::string_view from) { std::ranges::copy(from.substr(0, text.size() - 1), text.begin()); }
};

/// Runs prepare(), which returns a description of the call, and reports that or its exception.
template <class Prepare> Report report_of(const Prepare& prepare) try {
  return Report::of_call(prepare());
} catch (const std::bad_alloc&) {
  return Report::of_error("the data do not fit into memory");
} catch (const std::exception& e) {
  return Report::of_error(*e.what() ? e.what() : "unknown error");
} catch (...) {
  return Report::of_error("an exception that is no std::exception");
}

/// The message of all ranks if one of them fails.
inline std::string message_of_failure(std::size_t rank, const Report& report) {
  return "samesum: rank " + std::to_string(rank) + ": " + report.text.data();
}
/// The message of all ranks if one of them calls something else than rank 0.
inline std::string message_of_difference(const Report& first, std::size_t rank, const Report& other) {
  return std::string{"samesum: rank 0 calls "} + first.text.data() + ", but rank " + std::to_string(rank) +
         " calls " + other.text.data() + "; make the same call on all ranks";
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
