#include "harness/reduction_bars.hpp"

#include <algorithm>

#include "harness/commands.hpp"

namespace samesum::harness {
namespace {

enum class Shape { vector, rows, columns };

Shape shape_of(const ReductionCell& cell) {
  return cell.inner > 1 ? Shape::columns : cell.outer > 1 ? Shape::rows : Shape::vector;
}

/// A method is held to `factor` times the speed of the fastest one that `against` names.
struct Bar {
  std::string methods;  ///< a glob
  Shape shape;
  std::vector<std::string> inputs;
  std::size_t least_bytes;        ///< of input
  std::size_t shortest, longest;  ///< n
  double factor;
  std::string against;  ///< a glob
  int threads;
};

constexpr std::size_t any = SIZE_MAX, dram_bytes = two_to(28);
constexpr std::size_t megabyte = 1'000'000;
constexpr int gpu = 0, one_thread = 1;
const std::vector<std::string> fp32_alone{"fp32"}, fp32_and_bf16{"fp32", "bf16"};

const std::vector<Bar> bars{
    // On a CPU, from DRAM.
    {"dot/*/plain/fp32@cpu", Shape::vector, fp32_alone, dram_bytes, 0, any, 1.0, "eigen/*", one_thread},
    {"norm/*/fp32@cpu", Shape::vector, fp32_alone, dram_bytes, 0, any, 1.0, "eigen/*", one_thread},
    {"sum/*/plain/fp32@cpu", Shape::rows, fp32_alone, dram_bytes, 0, any, 1.0, "eigen/*", one_thread},
    {"softmax/tree/plain/fp32@cpu", Shape::rows, fp32_alone, dram_bytes, 0, any, 1.0, "loop/*", one_thread},
    // On a GPU.
    {"sum/*/plain/fp32@cuda", Shape::rows, fp32_and_bf16, 0, 0, any, 1.0, "cub/*", gpu},
    {"sum/*/plain/fp32@cuda", Shape::rows, fp32_and_bf16, 256 * megabyte, 0, any, 0.9, "read", gpu},
    {"sum/*/plain/fp32@cuda", Shape::columns, fp32_alone, 256 * megabyte, 0, any, 0.9, "read", gpu},
    {"dot/*/plain/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.97, "read", gpu},
    {"dot/exact/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.85, "read", gpu},
    {"norm/*/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.97, "read", gpu},
    {"max/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.97, "read", gpu},
    {"argmax/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.97, "read", gpu},
    {"mean/*/plain/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.97, "read", gpu},
    {"moments/tree/fp32@cuda", Shape::vector, fp32_alone, 0, two_to(28), any, 0.97, "read", gpu},
    {"softmax/tree/plain/fp32@cuda", Shape::rows, fp32_and_bf16, 0, 0, 32768, 0.9, "copy", gpu},
    {"softmax/tree/plain/fp32@cuda", Shape::rows, fp32_and_bf16, 0, 32769, any, 0.6, "copy", gpu},
};

bool concerns(const Bar& bar, const ReductionCell& cell, const std::string& method) {
  return matches(bar.methods, method) && bar.shape == shape_of(cell) && bar.threads == cell.threads &&
         std::ranges::count(bar.inputs, cell.input->name) > 0 &&
         cell.elements() * cell.input->bytes >= bar.least_bytes && cell.n >= bar.shortest &&
         cell.n <= bar.longest;
}

}  // namespace

std::vector<Verdict> reduction_verdicts(const ReductionCell& cell, const Speed& method,
                                        const std::vector<Speed>& measured) {
  std::vector<Verdict> all;
  for (const Bar& bar : bars) {
    if (!concerns(bar, cell, method.method)) continue;
    const Speed* fastest = nullptr;
    for (const Speed& s : measured)
      if (matches(bar.against, s.method) && (!fastest || s.seconds < fastest->seconds)) fastest = &s;
    if (fastest)
      all.push_back({fastest->method, bar.factor, ratio_of_rounds(fastest->rounds, method.rounds)});
  }
  return all;
}

}  // namespace samesum::harness
