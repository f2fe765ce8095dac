/// Random numbers with the same bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samesum/format/format.hpp"

namespace samesum::harness {

/// SplitMix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_{seed} {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t bits(int count) { return bits() >> (64 - count); }

  /// A multiple of 2^-precision in [0, 1).
  double uniform(int precision = 53) {
    return static_cast<double>(bits(precision)) * power_of_two(-precision);
  }

  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(bits()) * n) >> 64);
  }
  double with_sign(double x) { return bits(1) ? -x : x; }
  double symmetric(int precision = 53) { return with_sign(uniform(precision)); }

 private:
  std::uint64_t state_;
};

}  // namespace samesum::harness
