/// Floating-point environments of a caller, and a textual form of the bits that a call returns.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <bit>
#include <cfenv>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/call/values.hpp"

namespace samesum::testing_support {

inline constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x40, all_flags = 0x3f;

struct Environment {
  int rounding;
  bool traps;
  unsigned register_bits;  ///< to set in MXCSR: FTZ, DAZ, exception flags
};

inline std::string name_of(const Environment& e) {
  std::string name = e.rounding == FE_UPWARD      ? "upward"
                     : e.rounding == FE_DOWNWARD  ? "downward"
                     : e.rounding == FE_TONEAREST ? "to nearest"
                                                  : "toward zero";
  if (e.register_bits & flush_to_zero) name += ", flush to zero";
  if (e.register_bits & denormals_are_zero) name += ", denormals are zero";
  if (e.register_bits & all_flags) name += ", flags set";
  if (e.traps) name += ", traps";
  return name;
}

/// The part of the floating-point environment that a caller can observe.
struct Visible {
  int rounding, flags, traps;
  unsigned control_register;
  static Visible now() {
    Visible v{std::fegetround(), std::fetestexcept(FE_ALL_EXCEPT), fegetexcept(), 0};
#if defined(__x86_64__)
    v.control_register = _mm_getcsr();
#endif
    return v;
  }
  friend bool operator==(const Visible&, const Visible&) = default;
};

/// Calls f in environment e and restores the previous one. Returns whether f left e unchanged.
inline bool call_in(const Environment& e, const std::function<void()>& f) {
  struct Saved {
    std::fenv_t environment;
    Saved() { std::fegetenv(&environment); }
    ~Saved() { std::fesetenv(&environment); }
  } saved;
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(e.rounding);
  if (e.traps) feenableexcept(FE_ALL_EXCEPT);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | e.register_bits);
#endif
  const Visible before = Visible::now();
  f();
  return Visible::now() == before;
}

/// Returns every rounding mode, with and without traps.
inline std::vector<Environment> all_environments() {
  std::vector<Environment> all;
  for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    for (const bool traps : {false, true}) all.push_back({rounding, traps, 0});
  return all;
}

/// Control-register bits to combine with each rounding mode.
inline constexpr unsigned register_bits[] = {flush_to_zero | denormals_are_zero, 0u, flush_to_zero,
                                             denormals_are_zero, all_flags};

/// Collects the bits of everything that a call returns, as text. Uses integer operations only, so that the
/// environment cannot affect the text.
class Text {
 public:
  Text& operator<<(std::uint64_t x) {
    char digits[17];
    for (int i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[x >> (60 - 4 * i) & 15];
    digits[16] = ' ';
    text_.append(digits, sizeof digits);
    return *this;
  }
  Text& operator<<(double x) { return *this << std::bit_cast<std::uint64_t>(x); }
  Text& operator<<(float x) { return *this << std::uint64_t{std::bit_cast<std::uint32_t>(x)}; }
  Text& operator<<(fp16 x) { return *this << std::uint64_t{x.bits}; }
  Text& operator<<(bf16 x) { return *this << std::uint64_t{x.bits}; }
  Text& operator<<(const Number& x) { return *this << x.bits; }
  Text& operator<<(std::string_view x) {
    text_.append(x).append(" ");
    return *this;
  }
  Text& operator<<(const char* x) { return *this << std::string_view{x}; }
  template <class T> Text& operator<<(const std::vector<T>& all) {
    for (const T& x : all) *this << x;
    return *this;
  }
  Text& operator<<(const std::vector<std::byte>& all) {
    return *this << std::string_view{reinterpret_cast<const char*>(all.data()), all.size()};
  }
  /// Appends the message of the exception that f throws.
  void refusal(const std::function<void()>& f) {
    try {
      f();
      *this << "nothing was thrown";
    } catch (const std::exception& e) {
      *this << e.what();
    }
  }
  const std::string& str() const { return text_; }
  std::uint64_t hash() const { return std::hash<std::string>{}(text_); }

 private:
  std::string text_;
};

}  // namespace samesum::testing_support
