/// Which fused sum does one instruction of a matrix unit compute?
///
/// Compile with -DSAMESUM_INSTRUCTION=NAME, a type of instructions.cuh. The program prints probes made of
/// powers of two; searches the parameters of the model that agree with the hardware on random data; and
/// compares the best model with the hardware on as many random dot products as fit in the given time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <sstream>

#include "tensor_cores/fit.hpp"
#include "tensor_cores/gpu.cuh"
#include "tensor_cores/probes.hpp"

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

/// Compares the model with the hardware on tiles of generated data; returns the counts per class.
std::vector<Counts> compare_on(const FusedSum& model, Strides strides, std::uint64_t seed, int first_kind,
                               int kinds, int blocks, int tiles, DeviceArray<Dot>* cases,
                               DeviceArray<int>* n_cases, int most) {
  const DeviceArray<Counts> counts{std::size_t(classes) + 1};
  compare<I><<<unsigned(blocks), threads>>>(model, strides, seed, first_kind, kinds, tiles, counts.get(),
                                            cases ? cases->get() : nullptr, n_cases->get(), most, nullptr);
  SAMESUM_CHECK(cudaDeviceSynchronize());
  return counts.host();
}

/// Strides of descriptors with which dot products of small integers are right; exits if there are none.
Strides working_strides() {
  for (const Strides s : {Strides{128, 256}, Strides{256, 128}}) {
    DeviceArray<int> none{std::size_t(classes) + 1};
    FusedSum model;
    model.group = model.run = is_fp64 || is_integer ? 16 : I::n;
    model.result_fraction_bits = result_bits;
    const Counts c = compare_on(model, s, 1, int(Class::integers), 1, 64, 4, nullptr, &none,
                                0)[std::size_t(Class::integers)];
    std::printf("layout: leading %d stride %d: %llu of %llu dot products of small integers differ\n",
                s.leading, s.stride, c.mismatches + c.other_nans, c.dots);
    if (c.mismatches + c.other_nans == 0) return s;
  }
  std::printf("layout: no descriptor works\n");
  std::exit(1);
}

/// Dot products of generated data with the hardware's results, sorted by class.
std::vector<Dot> sample(Strides strides, std::uint64_t seed, int tiles_per_class) {
  const int tiles = tiles_per_class * classes;
  const DeviceArray<Dot> all{std::size_t(tiles) * per_tile};
  const DeviceArray<Counts> counts{std::size_t(classes) + 1};
  compare<I><<<unsigned(tiles), threads>>>(FusedSum{}, strides, seed, 0, classes, 1, counts.get(), nullptr,
                                           nullptr, 0, all.get());
  SAMESUM_CHECK(cudaDeviceSynchronize());
  std::vector<Dot> dots = all.host();
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& x, const Dot& y) { return x.kind < y.kind; });
  return dots;
}

std::vector<int> mismatches_of(const std::vector<FusedSum>& models, const Dot* dots, int n) {
  const DeviceArray<FusedSum> device{models};
  const DeviceArray<int> found{models.size()};
  evaluate<I><<<unsigned(models.size()), threads>>>(device.get(), dots, n, found.get());
  SAMESUM_CHECK(cudaDeviceSynchronize());
  return found.host();
}

void print_per_class(const char* name, const FusedSum& model, const Dot* dots, int per_class) {
  std::printf("%s: differs from the hardware on", name);
  for (int kind = 0; kind < classes; ++kind)
    std::printf(" %s %d", class_names[kind],
                mismatches_of({model}, dots + std::ptrdiff_t(kind) * per_class, per_class)[0]);
  std::printf(" of %d each: %s\n", per_class, describe(model).c_str());
}

/// Changes one parameter after the other as long as that lowers the number of mismatches.
FusedSum descend(FusedSum best, const Dot* dots, int n) {
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
                        const FusedSum& start, const Dot* dots, int n, int per_class) {
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
FusedSum fit(Strides strides) {
  constexpr int tiles_per_class = is_fp64 ? 64 : 32, per_class = tiles_per_class * per_tile,
                grid_per_class = 1024;
  const std::vector<Dot> dots = sample(strides, 17, tiles_per_class);
  FusedSum start;
  start.result_fraction_bits = result_bits;
  start.group = start.run = I::n;
  if (result_bits == 10) start.result = Cut::nearest_even, start.nan = 0x7fff;
  std::map<std::uint64_t, int> nans;
  for (const Dot& d : dots)
    if (is_nan<I>(d.hardware)) ++nans[d.hardware];
  std::printf("nan: %zu patterns", nans.size());
  int shown = 0, most = 0;
  for (const auto& [bits, count] : nans) {
    if (++shown <= 6) std::printf(" %llx (%d)", (unsigned long long)(bits), count);
    if (count > most) most = count, start.nan = std::uint32_t(bits);
  }
  std::printf("\n");
  const DeviceArray<Dot> device{dots};
  const int n = int(dots.size());
  std::vector<FusedSum> found{start};
  if constexpr (is_fp64) {
    found.push_back(start);
    found[1].is_reversed = true;
  } else if constexpr (!is_integer) {
    found.clear();
    std::vector<Dot> few;
    for (int kind = 0; kind < classes; ++kind)
      few.insert(few.end(), dots.begin() + kind * per_class,
                 dots.begin() + kind * per_class + grid_per_class);
    const DeviceArray<Dot> device_few{few};
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
  return found[best];
}

/// Executes given dot products.
void execute_on_hardware(Strides strides, std::vector<Dot>& dots) {
  const DeviceArray<Dot> device{dots};
  execute_given<I><<<unsigned(dots.size()), threads>>>(strides, device.get());
  SAMESUM_CHECK(cudaDeviceSynchronize());
  dots = device.host();
}

/// Prints the lines of the probes in which a model differs from the hardware.
void print_differences(const std::string& hardware, const FusedSum& model) {
  std::istringstream theirs{hardware}, ours{probe_results<I>([&](std::vector<Dot>&dots) {
    for (Dot& d : dots) d.hardware = predicted<I>(d.a, d.b, d.c, model);
  })};
  int differences = 0;
  for (std::string x, y; std::getline(theirs, x) && std::getline(ours, y);)
    if (x != y) {
      ++differences;
      std::printf("model's %s\n", y.c_str());
    }
  std::printf("probes: the best model differs in %d lines\n", differences);
}

/// Compares the model with the hardware for the given seconds, and prints counts and the first mismatches in
/// full.
void count(const FusedSum& model, Strides strides, double seconds) {
  constexpr int most = 4, blocks = 132 * 12, tiles = 24;
  std::vector<Counts> total(classes);
  DeviceArray<Dot> stored{std::size_t(most * classes)};
  DeviceArray<int> n_cases{std::size_t(classes) + 1};
  const auto began = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  for (std::uint64_t launch = 0; launch == 0 || elapsed() < seconds; ++launch) {
    const std::vector<Counts> c =
        compare_on(model, strides, hash(2026, launch), 0, classes, blocks, tiles, &stored, &n_cases, most);
    for (std::size_t kind = 0; kind < std::size_t(classes); ++kind) {
      total[kind].dots += c[kind].dots;
      total[kind].mismatches += c[kind].mismatches;
      total[kind].other_nans += c[kind].other_nans;
    }
  }
  Counts all;
  for (std::size_t kind = 0; kind < std::size_t(classes); ++kind) {
    std::printf("count: %-12s %llu dot products, %llu mismatches, %llu NaN with other bits\n",
                class_names[kind], total[kind].dots, total[kind].mismatches, total[kind].other_nans);
    all.dots += total[kind].dots;
    all.mismatches += total[kind].mismatches;
    all.other_nans += total[kind].other_nans;
  }
  std::printf("count: total        %llu dot products, %llu mismatches, %llu NaN with other bits in %.2f s\n",
              all.dots, all.mismatches, all.other_nans, elapsed());
  const std::vector<int> n = n_cases.host();
  const std::vector<Dot> found = stored.host();
  for (int i = 0; i < most * classes; ++i) {
    if (i % most >= n[std::size_t(i / most)]) continue;
    const Dot& d = found[std::size_t(i)];
    std::printf("case: %s hardware %llx model %llx c %llx a", class_names[d.kind],
                (unsigned long long)(d.hardware), (unsigned long long)(d.model), (unsigned long long)(d.c));
    for (const std::uint32_t w : d.a) std::printf(" %08x", w);
    std::printf(" b");
    for (const std::uint32_t w : d.b) std::printf(" %08x", w);
    std::printf("\n");
  }
}

int run(double seconds) {
  cudaDeviceProp properties;
  SAMESUM_CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("== %s on %s, sm_%d%d\n", I::name, properties.name, properties.major, properties.minor);
  const Strides strides = working_strides();
  const std::string probes =
      probe_results<I>([&](std::vector<Dot>& dots) { execute_on_hardware(strides, dots); });
  std::printf("%s", probes.c_str());
  std::fflush(stdout);
  const FusedSum best = fit(strides);
  print_differences(probes, best);
  std::fflush(stdout);
  count(best, strides, seconds);
  return 0;
}

}  // namespace
}  // namespace samesum::tensor_cores

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "--help") == 0)) {
    std::printf(
        "usage: %s [SECONDS]\nProbes an instruction of a matrix unit, fits a model of its sums, and "
        "compares\n"
        "both on random dot products for SECONDS (2).\n",
        argv[0]);
    return argc > 2 ? 2 : 0;
  }
  return samesum::tensor_cores::run(argc == 2 ? std::atof(argv[1]) : 2);
}
