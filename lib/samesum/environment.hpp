#pragma once

#include <cstdint>

namespace samesum {

/// Round to nearest, no flush to zero, no traps, for the lifetime of the object and on this thread; then the
/// caller's environment again, sticky flags included. Arithmetic under it belongs in a function that the
/// compiler cannot see into from here (another translation unit, a function pointer), lest it be moved
/// across.
class FloatingPointEnvironment {
 public:
  FloatingPointEnvironment();
  ~FloatingPointEnvironment();
  FloatingPointEnvironment(const FloatingPointEnvironment&) = delete;
  FloatingPointEnvironment& operator=(const FloatingPointEnvironment&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace samesum
