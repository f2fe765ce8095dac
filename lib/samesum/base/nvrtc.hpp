/// What states.cuh needs of the standard library, for NVRTC, which has no headers of it. Inside namespace
/// samesum, `std` means these. Nothing is declared in the global namespace std, so that programs may bring
/// one.
#pragma once

#if !defined(__CUDACC_RTC_INT128__)
#error "samesum: NVRTC compiles this header with the options -std=c++20 -default-device -device-int128"
#endif
#pragma nv_diag_suppress 1097  // attributes of GCC

namespace samesum::std {

using size_t = decltype(sizeof 0);
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;
using string_view = const char*;

template <class T, class U> inline constexpr bool is_same_v = false;
template <class T> inline constexpr bool is_same_v<T, T> = true;

template <bool condition, class T, class U> struct conditional { using type = T; };
template <class T, class U> struct conditional<false, T, U> { using type = U; };
template <bool condition, class T, class U> using conditional_t = typename conditional<condition, T, U>::type;

template <class To, class From> constexpr To bit_cast(const From& x) { return __builtin_bit_cast(To, x); }
constexpr bool is_constant_evaluated() { return __builtin_is_constant_evaluated(); }
/// At compile time alone: leading_zeros has an instruction.
constexpr int countl_zero(uint64_t x) {
  int zeros = 64;
  for (; x != 0; x >>= 1) --zeros;
  return zeros;
}

template <class T, size_t count> struct array {
  T element[count];
  constexpr size_t size() const { return count; }
  constexpr T& operator[](size_t i) { return element[i]; }
  constexpr const T& operator[](size_t i) const { return element[i]; }
  constexpr T* begin() { return element; }
  constexpr T* end() { return element + count; }
};

using ::fabs;
using ::fma;

}  // namespace samesum::std
