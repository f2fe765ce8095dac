/// The matrix unit of this machine, one instruction at a time. Builds without CUDA, or for other
/// architectures than that of Hopper, have none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor_cores/shape.hpp"

namespace samesum::tensor_cores {

struct Unit {
  std::string_view instruction;
  /// Executes given dot products.
  std::function<void(std::vector<DotProduct>&)> execute;
  /// Compares the model with the hardware on the generated dot products of one launch: counts per class.
  std::function<std::vector<Counts>(std::uint64_t seed)> compare;
  /// Executes the generated dot products of the first tiles.
  std::function<std::vector<DotProduct>(std::uint64_t seed, int tiles)> sample;
  /// Distinct opcodes of matrix units and conversions in the machine code of `compare`; empty if unknown.
  std::vector<std::string> opcodes;
};

/// All instructions of models.hpp. Throws std::runtime_error with the reason if this machine has none of
/// them.
const std::vector<Unit>& units();

}  // namespace samesum::tensor_cores
