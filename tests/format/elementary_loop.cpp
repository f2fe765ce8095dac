#include "format/elementary_loop.hpp"

#include "format/elementary_digest.hpp"

namespace samesum::testing_support {
namespace {

#if defined(__AVX512F__)
constexpr int bytes = 64;
#elif defined(__AVX__)
constexpr int bytes = 32;
#else
constexpr int bytes = 16;
#endif

template <class F, int W, bool is_exp> void loop(const F* x, F* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += W) {
    const auto pack = Pack<F, W>::load(x + i);
    const auto result = is_exp ? exp_of_nonpositive(pack) : log(pack);
    __builtin_memcpy(y + i, &result, sizeof result);
  }
}
template <class F> constexpr LoopsInFormat<F> loops() {
  constexpr int width = bytes / int{sizeof(F)};
  return {loop<F, width, true>, loop<F, width, false>, loop<F, 1, true>,
          loop<F, 1, false>,    loop<F, 32, true>,     loop<F, 32, false>};
}

double largest_error(const float* y, const double* reference, std::size_t n) {
  // The larger of two positive doubles has the larger bits.
  std::uint64_t largest = 0;
  constexpr std::uint64_t fraction_bits = 52, ulps = std::uint64_t{23} << fraction_bits;
  constexpr auto smallest_normal = __builtin_bit_cast(std::uint64_t, 0x1p-126);
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = __builtin_bit_cast(std::uint64_t, reference[i]) & 0x7ff0000000000000u;
    const auto ulp = __builtin_bit_cast(double, (bits > smallest_normal ? bits : smallest_normal) - ulps);
    const double error = __builtin_fabs(y[i] - reference[i]) / ulp;
    const auto error_bits = __builtin_bit_cast(std::uint64_t, error);
    largest = largest > error_bits ? largest : error_bits;
  }
  return __builtin_bit_cast(double, largest);
}

std::uint64_t digest(std::uint32_t first, const float* y, std::size_t n) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += share(first + static_cast<std::uint32_t>(i), y[i]);
  return sum;
}

}  // namespace

template <> ElementaryLoops elementary_loops<cpu::InstructionSet::SAMESUM_INSTRUCTION_SET>() {
  return {loops<float>(), loops<double>(), largest_error, digest};
}

}  // namespace samesum::testing_support
