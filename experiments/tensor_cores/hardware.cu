/// The kernels of one part of the instructions: the build compiles SAMESUM_PARTS parts at the same time.
#include <algorithm>
#include <fstream>
#include <typeinfo>

#include "tensor_cores/gpu.cuh"
#include "tensor_cores/hardware.hpp"

namespace samesum::tensor_cores {

std::vector<Unit>& registered_units();

namespace {

/// A launch of `compare`: enough blocks to fill a GPU, and tiles of all classes in each.
constexpr int blocks = 132 * 12, tiles_per_block = 24;

/// What the machine code of an instruction executes. The build lists opcodes in the file SAMESUM_OPCODES, a
/// line each, below the name of their kernel.
std::vector<std::string> opcodes_of(const std::string& type) {
  std::vector<std::string> found;
  std::ifstream file{SAMESUM_OPCODES};
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find("Function : ") != std::string::npos)
      here = line.find("7compareINS0_" + type) != std::string::npos;
    else if (here && std::find(found.begin(), found.end(), line) == found.end())
      found.push_back(line);
  }
  return found;
}

template <class I> Unit unit_of() {
  std::string type = typeid(I).name();  // N7samesum12tensor_cores7MmaFp16E
  type = type.substr(type.find("tensor_cores") + 12);
  return {I::name,
          [](std::vector<DotProduct>& dots) {
            const DeviceArray<DotProduct> device{dots};
            execute_given<I><<<unsigned(dots.size()), threads>>>(working_strides<I>(), device.get());
            SAMESUM_CHECK(cudaDeviceSynchronize());
            dots = device.host();
          },
          [](std::uint64_t seed) {
            const DeviceArray<Counts> counts{std::size_t(classes) + 1};
            compare<I><<<blocks, threads>>>(model_of<I>, working_strides<I>(), seed, 0, classes,
                                            tiles_per_block, counts.get(), nullptr);
            SAMESUM_CHECK(cudaDeviceSynchronize());
            return counts.host();
          },
          [](std::uint64_t seed, int tiles) { return sample<I>(working_strides<I>(), seed, tiles); },
          opcodes_of(type)};
}

const bool registered = [] {
  std::vector<Unit>& all = registered_units();
  Instructions::for_each([&]<class I>() {
    if constexpr (Instructions::index_of<I>() % SAMESUM_PARTS == SAMESUM_PART) all.push_back(unit_of<I>());
  });
  return true;
}();

}  // namespace
}  // namespace samesum::tensor_cores
