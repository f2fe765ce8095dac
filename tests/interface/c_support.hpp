/// Support for the tests of the C interface: calls with their message, and values of C++ as those of C.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "samesum/samesum.h"
#include "support.hpp"

namespace samesum::c_interface {

using testing_support::Array;
using testing_support::uniform;
using testing_support::wide;

/// What a function returned, and its message.
struct Answer {
  samesum_status status;
  std::string message;
};
inline void PrintTo(const Answer& a, std::ostream* out) {
  *out << samesum_status_name(a.status) << ": " << a.message;
}

/// Calls a function that takes a buffer for a message.
template <class Function, class... Arguments> Answer ask(Function* function, Arguments... arguments) {
  char message[1000] = "no message was written";
  const samesum_status status = function(arguments..., message, sizeof message);
  return {status, message};
}

MATCHER(IsOk, "") { return arg.status == SAMESUM_OK && arg.message.empty(); }
MATCHER_P2(IsRefusal, status, part, "") {
  return arg.status == status && arg.message.find(part) != std::string::npos;
}
/// Is SAMESUM_INVALID_ARGUMENT with a message that contains `part`.
inline auto IsInvalid(const char* part) {
  return IsRefusal(static_cast<samesum_status>(SAMESUM_INVALID_ARGUMENT), part);
}

inline samesum_format format_in_c(const FormatInfo* format) {
  return format ? static_cast<samesum_format>(format->index) + SAMESUM_FP16 : SAMESUM_INT64;
}
inline samesum_values values_in_c(const Values& v) {
  return v.is_given() ? samesum_values{v.data, v.size, format_in_c(v.format)} : samesum_values{};
}
inline samesum_keys keys_in_c(const Keys& k) {
  return k.is_given()
             ? samesum_keys{k.data, k.size, static_cast<samesum_key_format>(k.format) + SAMESUM_KEYS_INT32}
             : samesum_keys{};
}

inline const samesum_method* found(const std::string& name, samesum_format input = SAMESUM_NONE) {
  const samesum_method* method = nullptr;
  EXPECT_THAT(ask(samesum_find, name.c_str(), input, &method), IsOk()) << name;
  return method;
}

/// A state in memory of its own.
class State {
 public:
  explicit State(const std::string& name, samesum_state_options options = samesum_state_options_default()) {
    EXPECT_THAT(ask(samesum_state_kind_find, name.c_str(), SAMESUM_NONE, &options, &kind_), IsOk()) << name;
    memory_.resize(samesum_state_bytes(&kind_) / 8);
    EXPECT_THAT(
        ask(samesum_state_init, &kind_, memory_.data(), bytes(), static_cast<samesum_state**>(nullptr)),
        IsOk());
  }
  operator samesum_state*() { return reinterpret_cast<samesum_state*>(memory_.data()); }
  operator const samesum_state*() const { return reinterpret_cast<const samesum_state*>(memory_.data()); }
  samesum_state* get() { return *this; }
  const samesum_state* get() const { return *this; }
  const samesum_state_kind& kind() const { return kind_; }
  std::size_t bytes() const { return 8 * memory_.size(); }
  void* memory() { return memory_.data(); }

  Answer add(const Values& x) {
    const samesum_values values = values_in_c(x);
    return ask(samesum_state_add, get(), &values);
  }
  Answer subtract(const Values& x) {
    const samesum_values values = values_in_c(x);
    return ask(samesum_state_subtract, get(), &values);
  }
  Answer merge(const State& other) { return ask(samesum_state_merge, get(), other.get()); }
  Answer unmerge(const State& other) { return ask(samesum_state_unmerge, get(), other.get()); }
  Number result(const FormatInfo& format) const {
    std::uint64_t bits = 0;
    EXPECT_THAT(ask(samesum_state_finish, get(), format_in_c(&format), static_cast<void*>(&bits)), IsOk());
    return {&format, bits};
  }
  Number mean(const FormatInfo& format, std::uint64_t n) const {
    std::uint64_t bits = 0;
    EXPECT_THAT(ask(samesum_state_finish_mean, get(), n, format_in_c(&format), static_cast<void*>(&bits)),
                IsOk());
    return {&format, bits};
  }
  std::vector<std::byte> serialise() const {
    std::vector<std::byte> bytes(samesum_state_serialised_bytes(&kind_));
    std::size_t size = 0;
    EXPECT_THAT(ask(samesum_state_serialise, get(), static_cast<void*>(bytes.data()), bytes.size(), &size),
                IsOk());
    bytes.resize(size);
    return bytes;
  }
  Answer deserialise(const std::vector<std::byte>& bytes) {
    return ask(samesum_state_deserialise, &kind_, static_cast<const void*>(bytes.data()), bytes.size(),
               memory(), this->bytes(), static_cast<samesum_state**>(nullptr));
  }

 private:
  samesum_state_kind kind_{};
  std::vector<std::uint64_t> memory_;
};

inline constexpr samesum_state_options subtractable{sizeof(samesum_state_options), 1, 0, 0, 0};
inline samesum_state_options on_grid(int grid) { return {sizeof(samesum_state_options), 0, 1, grid, 0}; }

}  // namespace samesum::c_interface
