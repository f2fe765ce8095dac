#include <stdexcept>

#include "harness/gpu_speed.hpp"
#include "samesum/registry.hpp"

namespace samesum::harness {

struct GpuBench::Memory {};

std::string gpu_description() { return {}; }

GpuBench::GpuBench(const FormatInfo& format, GpuData, std::size_t) : format_{format} {
  throw std::runtime_error{absent()[0].reason};
}
GpuBench::~GpuBench() = default;
std::vector<GpuSpeed> GpuBench::measure(const std::vector<const Variant*>&, std::size_t, GpuSpeedOptions) {
  return {};
}

}  // namespace samesum::harness
