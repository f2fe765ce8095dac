/// Access to the floating-point control registers of x86-64 and AArch64.
#include "samesum/base/environment.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#error "samesum: unsupported processor; add code that saves and sets its floating-point control register"
#endif

namespace samesum {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t standard = 0x1f80;  // MXCSR: all exceptions masked, nearest, neither FTZ nor DAZ
std::uint64_t control_register() { return _mm_getcsr(); }
void set_control_register(std::uint64_t value) { _mm_setcsr(static_cast<std::uint32_t>(value)); }
#else
constexpr std::uint64_t standard = 0;  // nearest, no flush to zero, default NaN off; no flag is set
/// FPCR in the lower half, FPSR, which holds the sticky flags, in the upper half.
std::uint64_t control_register() {
  std::uint64_t control, status;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("mrs %0, fpsr" : "=r"(status));
  return control | status << 32;
}
void set_control_register(std::uint64_t value) {
  asm volatile("msr fpcr, %0" ::"r"(value & 0xffffffff) : "memory");
  asm volatile("msr fpsr, %0" ::"r"(value >> 32) : "memory");
}
#endif

}  // namespace

FloatingPointEnvironment::FloatingPointEnvironment() : saved_{control_register()} {
  set_control_register(standard);
}
FloatingPointEnvironment::~FloatingPointEnvironment() { set_control_register(saved_); }

void in_standard_environment(const std::function<void()>& work) {
  const FloatingPointEnvironment environment;
  work();
}

}  // namespace samesum
