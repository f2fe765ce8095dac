/// The standard floating-point environment, and the means to run code in it.
#pragma once

#include <cstdint>
#include <functional>

namespace samesum {

/// Sets the standard environment on this thread (round to nearest, no flush to zero, no traps), and restores
/// the caller's, sticky flags included, when the object is destroyed.
///
/// The arithmetic must be in a function that the compiler cannot inline here (another translation unit, a
/// function pointer); otherwise the compiler may move it out of the object's lifetime. Every library function
/// that computes holds such an object. Accumulators, packs, reducers and bound formulas do not: they compute
/// in the environment of their caller.
class FloatingPointEnvironment {
 public:
  FloatingPointEnvironment();
  ~FloatingPointEnvironment();
  FloatingPointEnvironment(const FloatingPointEnvironment&) = delete;
  FloatingPointEnvironment& operator=(const FloatingPointEnvironment&) = delete;

 private:
  std::uint64_t saved_;
};

/// Runs work() in the standard environment. For templates: the compiler cannot move arithmetic of `work` out
/// of this call.
void in_standard_environment(const std::function<void()>& work);

}  // namespace samesum
