#pragma once

#include <cstdint>
#include <functional>

namespace samesum {

/// Round to nearest, no flush to zero, no traps, for the lifetime of the object and on this thread; then the
/// caller's environment again, sticky flags included. Arithmetic under it belongs in a function that the
/// compiler cannot see into from here (another translation unit, a function pointer), lest it be moved
/// across.
///
/// Every function of the library that computes holds one. Accumulators, packs, reducers and the formulae of
/// bounds are the pieces that these functions are made of: they compute in the environment in which they are
/// called.
class FloatingPointEnvironment {
 public:
  FloatingPointEnvironment();
  ~FloatingPointEnvironment();
  FloatingPointEnvironment(const FloatingPointEnvironment&) = delete;
  FloatingPointEnvironment& operator=(const FloatingPointEnvironment&) = delete;

 private:
  std::uint64_t saved_;
};

/// Runs work() in that environment. For templates: the compiler moves no arithmetic of `work` across the
/// call.
void in_standard_environment(const std::function<void()>& work);

}  // namespace samesum
