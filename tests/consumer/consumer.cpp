// What users compile: every function that the umbrella header defines, and methods of each kind. This program
// itself computes nothing in floating point, so neither contraction nor -march=native may change what it
// prints, and its object file has no arithmetic instruction.
#include <cstdint>
#include <cstdio>
#include <samesum/samesum.hpp>
#include <stdexcept>
#include <vector>

namespace {

/// Numbers of many magnitudes and both signs, by integers alone.
template <class T> std::vector<T> numbers(std::size_t n) {
  std::vector<T> x;
  for (std::uint64_t i = 1; i <= n; ++i) {
    const std::uint64_t bits = (i * 0x9e3779b97f4a7c15 >> 12) | (0x3fe + i % 5) << 52 | i << 63;
    x.push_back(samesum::convert<T>(samesum::from_bits<double>(bits)));
  }
  return x;
}

void print(const char* what, samesum::Number x) {
  std::printf("%s %s %016llx\n", what, std::string{x.format->name}.c_str(),
              static_cast<unsigned long long>(x.bits));
}

}  // namespace

int main() {
  const std::vector<double> few{1e100, 1, -1e100, 1e-100, 1e50, -1, -1e50};
  std::printf("\n%g\n", samesum::sum(few));
  std::printf("%d %g\n", SAMESUM_VERSION, samesum::Number::of(samesum::fp16{1.0 / 3}).to_double());

  const auto x = numbers<float>(10'000), y = numbers<float>(10'000);
  const auto half = numbers<samesum::bf16>(10'000);
  const auto wide = numbers<double>(10'000);
  print("sum", samesum::Number::of(samesum::sum<"tree/kahan/fp32">(x)));
  print("sum", samesum::Number::of(samesum::sum<"pairwise/plain/bf16">(half)));
  print("sum", samesum::Number::of(samesum::sum<"serial/double_word/fp64">(wide)));
  print("sum", samesum::Number::of(samesum::sum<"canonical16/neumaier/fp16">(x)));
  for (const char* name : {"dot/tree/kahan/fp32", "dot/exact/fp64"}) print(name, samesum::reduce(name, x, y));
  for (const char* name : {"mean/tree/plain/fp64", "norm/tree/fp32", "squared_norm/tree/plain/fp32",
                           "logsumexp/tree/fp32", "max/fp32"})
    print(name, samesum::reduce(name, x));
  std::printf("argmin %d\n", static_cast<int>(samesum::reduce_to_index("argmin/fp32", x)));

  std::vector<float> rows(200), probabilities(10'000);
  samesum::reduce(samesum::find("moments/tree/fp32"), x, samesum::Layout::rows(100, 100), std::span{rows});
  samesum::reduce(samesum::find("softmax/tree/plain/fp32"), x, samesum::Layout::rows(100, 100),
                  std::span{probabilities});
  print("moments", samesum::Number::of(samesum::sum(rows)));
  print("softmax", samesum::Number::of(samesum::sum(probabilities)));

  samesum::Exact state = samesum::accumulate(half);
  state.add(std::span<const double>{wide});
  state.merge(samesum::Exact::deserialise(samesum::accumulate(x).serialise()));
  print("exact", state.result(samesum::format_info<double>()));
  const samesum::Estimate estimate = samesum::estimate("pairwise/neumaier/fp32", x);
  print("estimate", estimate.value);
  print("bound", samesum::Number::of(estimate.bound));
  const samesum::Choice choice = samesum::choose({.length = 1000, .input = "fp32", .ulps = 0.5});
  std::printf("chosen within half a unit in the last place: %d\n", choice.best.ulps <= 0.5);

  // Exceptions keep their types across the boundary of a shared library.
  try {
    samesum::find("no/such/name");
  } catch (const std::invalid_argument&) {
    std::printf("invalid_argument\n");
  }
  try {
    samesum::reduce("fixed_point/fp32", x, {.grid = -140});
  } catch (const std::overflow_error&) {
    std::printf("overflow_error\n");
  }
}
