/// Which fused sum does one instruction of a matrix unit compute? The search behind models.hpp.
///
/// Compile with -DSAMESUM_INSTRUCTION=NAME, a type of models.hpp. The program searches the parameters of the
/// model that agree with the hardware on random data, and prints how far other values of each parameter, and
/// models from the literature, are from it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>

#include "tensor_cores/fit.hpp"
#include "tensor_cores/gpu.cuh"

namespace samesum::tensor_cores {
namespace {

using I = SAMESUM_INSTRUCTION;
constexpr bool is_integer = std::is_same_v<I::Result, std::int32_t>,
               is_fp64 = std::is_same_v<I::Result, double>;
constexpr int per_tile = I::rows * columns;
/// Fraction bits of the result; of no meaning where the model is no fused sum.
template <class R> constexpr int fraction_bits_of = Format<R>::precision - 1;
template <> constexpr int fraction_bits_of<std::int32_t> = 23;
template <> constexpr int fraction_bits_of<double> = 23;
constexpr int result_bits = fraction_bits_of<I::Result>;

/// Dot products of generated data with the hardware's results, sorted by class.
std::vector<DotProduct> sorted_sample(Strides strides, std::uint64_t seed, int tiles_per_class) {
  std::vector<DotProduct> dots = sample<I>(strides, seed, tiles_per_class * classes);
  std::stable_sort(dots.begin(), dots.end(),
                   [](const DotProduct& x, const DotProduct& y) { return x.kind < y.kind; });
  return dots;
}

std::vector<int> mismatches_of(const std::vector<FusedSum>& models, const DotProduct* dots, int n) {
  const DeviceArray<FusedSum> device{models};
  const DeviceArray<int> found{models.size()};
  evaluate<I><<<unsigned(models.size()), threads>>>(device.get(), dots, n, found.get());
  SAMESUM_CHECK(cudaDeviceSynchronize());
  return found.host();
}

void print_per_class(const char* name, const FusedSum& model, const DotProduct* dots, int per_class) {
  std::printf("%s: differs from the hardware on", name);
  for (int kind = 0; kind < classes; ++kind)
    std::printf(" %s %d", class_names[kind],
                mismatches_of({model}, dots + std::ptrdiff_t(kind) * per_class, per_class)[0]);
  std::printf(" of %d each: %s\n", per_class, describe(model).c_str());
}

/// Changes one parameter after the other as long as that lowers the number of mismatches.
FusedSum descend(FusedSum best, const DotProduct* dots, int n) {
  int least = mismatches_of({best}, dots, n)[0];
  for (int pass = 0; pass < 6; ++pass) {
    const int before = least;
    for (std::size_t a = 0; a < axes_of(best, I::n, result_bits).size(); ++a) {
      const std::vector<FusedSum> models = axes_of(best, I::n, result_bits)[a].models;
      const std::vector<int> found = mismatches_of(models, dots, n);
      const auto lowest = std::min_element(found.begin(), found.end());
      if (*lowest >= least) continue;
      least = *lowest;
      best = models[std::size_t(lowest - found.begin())];
    }
    if (least == before) break;
  }
  return best;
}

/// Prints the models that other starts lead to, what each value of a parameter costs, and what was published.
void print_alternatives(const std::vector<FusedSum>& found, const std::vector<int>& wrong, std::size_t best,
                        const FusedSum& start, const DotProduct* dots, int n, int per_class) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (i != best && std::memcmp(&found[i], &found[best], sizeof(FusedSum)) != 0)
      std::printf("other model: %d differ: %s\n", wrong[i], describe(found[i]).c_str());
  for (const Axis& axis : axes_of(found[best], I::n, result_bits)) {
    const std::vector<int> w = mismatches_of(axis.models, dots, n);
    std::printf("axis %s:", axis.name);
    const auto value = [&](std::size_t at) {
      const FusedSum& q = axis.models[at];
      const std::string_view name = axis.name;
      return name == "bits"          ? q.fraction_bits
             : name == "floor"       ? q.smallest_exponent
             : name == "element_min" ? q.element_min_exponent
             : name == "result_bits" ? q.result_fraction_bits
             : name == "group"       ? q.group * 100 + q.run
                                     : int(at);
    };
    for (std::size_t first = 0, last = 0; first < w.size(); first = ++last) {
      while (last + 1 < w.size() && w[last + 1] == w[first]) ++last;
      if (last == first)
        std::printf(" %d:%d", value(first), w[first]);
      else
        std::printf(" %d..%d:%d", value(first), value(last), w[first]);
    }
    std::printf("\n");
  }
  FusedSum published = start;
  published.fraction_bits = 25;
  published.smallest_exponent = -133;
  print_per_class("published, 25 bits", published, dots, per_class);
  published.fraction_bits = 13;
  published.result_fraction_bits = result_bits == 23 ? 13 : 10;
  print_per_class("published, 13 bits", published, dots, per_class);
  published = start;
  published.smallest_exponent = -21;
  print_per_class("published, 25 bits from 2^-21 on", published, dots, per_class);
  if (I::n != 32) return;
  published.smallest_exponent = -133;
  published.group = 16;
  published.run = 2;
  published.adds_last = true;
  print_per_class("two instructions of fp16, then an addition", published, dots, per_class);
}

/// Searches the best model; prints the best few, how much each parameter matters, and published models.
void fit(Strides strides) {
  constexpr int tiles_per_class = is_fp64 ? 64 : 32, per_class = tiles_per_class * per_tile,
                grid_per_class = 1024;
  const std::vector<DotProduct> dots = sorted_sample(strides, 17, tiles_per_class);
  FusedSum start;
  start.result_fraction_bits = result_bits;
  start.group = start.run = I::n;
  if (result_bits == 10) start.result = Cut::nearest_even, start.nan = 0x7fff;
  std::map<std::uint64_t, int> nans;
  for (const DotProduct& d : dots)
    if (is_nan<I>(d.hardware)) ++nans[d.hardware];
  std::printf("nan: %zu patterns", nans.size());
  int shown = 0, most = 0;
  for (const auto& [bits, count] : nans) {
    if (++shown <= 6) std::printf(" %llx (%d)", (unsigned long long)(bits), count);
    if (count > most) most = count, start.nan = std::uint32_t(bits);
  }
  std::printf("\n");
  const DeviceArray<DotProduct> device{dots};
  const int n = int(dots.size());
  std::vector<FusedSum> found{start};
  if constexpr (is_fp64) {
    found.push_back(start);
    found[1].is_reversed = true;
  } else if constexpr (!is_integer) {
    found.clear();
    std::vector<DotProduct> few;
    for (int kind = 0; kind < classes; ++kind)
      few.insert(few.end(), dots.begin() + kind * per_class,
                 dots.begin() + kind * per_class + grid_per_class);
    const DeviceArray<DotProduct> device_few{few};
    const std::vector<FusedSum> grid = grid_of(start, I::n, result_bits);
    const std::vector<int> wrong = mismatches_of(grid, device_few.get(), int(few.size()));
    std::vector<std::size_t> order(grid.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return wrong[x] < wrong[y]; });
    std::printf("grid: %zu models on %zu dot products\n", grid.size(), few.size());
    for (std::size_t i = 0; i < 6; ++i) {
      if (i < 4) std::printf("grid: %d differ: %s\n", wrong[order[i]], describe(grid[order[i]]).c_str());
      found.push_back(descend(grid[order[i]], device.get(), n));
      if (mismatches_of({found.back()}, device.get(), n)[0] == 0) break;
    }
  }
  std::vector<int> wrong = mismatches_of(found, device.get(), n);
  const std::size_t best = std::size_t(std::min_element(wrong.begin(), wrong.end()) - wrong.begin());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (i == best || is_fp64)
      print_per_class(i == best ? "best model" : "other model", found[i], device.get(), per_class);
  if (!is_integer && !is_fp64) print_alternatives(found, wrong, best, start, device.get(), n, per_class);
}

}  // namespace
}  // namespace samesum::tensor_cores

int main(int argc, char** argv) {
  using namespace samesum::tensor_cores;
  if (argc > 1) {
    std::printf("usage: %s\nFits a model of the sums of %s on random dot products.\n", argv[0],
                I::name.data());
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  try {
    std::printf("== %s\n", I::name.data());
    fit(working_strides<I>());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
