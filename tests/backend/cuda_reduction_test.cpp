/// Reductions on the GPU: addresses, graphs, workspaces, statuses, and lengths for which there are other
/// kernels.
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cfenv>

#include "backend/cuda_support.hpp"
#include "operation/reduction_support.hpp"

namespace samesum {
namespace {

class EveryGpuReduction : public MethodTest {
 protected:
  const Method& cpu = m;
  const Method& on_gpu() const { return find_on("cuda", cpu); }
};

class EveryExactGpuReduction : public EveryGpuReduction {};

std::vector<const Method*> tested(bool exact_alone) {
  std::vector<const Method*> all;
  for (const Method* r : with_batches_on_gpu())
    if (!exact_alone || r->accumulator == "exact") all.push_back(r);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Cuda, EveryGpuReduction, ::testing::ValuesIn(or_absent(tested(false))), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EveryExactGpuReduction, ::testing::ValuesIn(or_absent(tested(true))),
                         test_name);

TEST(GpuReductions, MatchThoseOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  for (const Method& cpu : methods()) {
    if (cpu.backend != "cpu" || cpu.promise < Promise::everywhere) continue;
    const auto refused = std::ranges::find_if(unsupported(), [&](const Unsupported& u) {
      const NameFields f = parse_name(u.name).fields;
      return f.operation == cpu.operation && f.order == cpu.order && f.accumulator == cpu.accumulator &&
             f.format == cpu.format->name && f.backend == "cuda";
    });
    if (refused != unsupported().end()) continue;
    for (const FormatInfo& input : formats)
      EXPECT_EQ(find_on("cuda", cpu).accepts(input), cpu.accepts(input)) << cpu.name << ", " << input.name;
  }
}

TEST(GpuReductions, RefuseBatchesOfSumsWithoutAKernelForThem) {
  SAMESUM_NEEDS_GPU();
  const Array four{format_info<fp32>(), {1, 2, 3, 4}};
  const OnGpu x{four.values()};
  const auto out = device_memory(8);
  const Results results{std::span{reinterpret_cast<float*>(out.get()), 2}};
  const Method& serial = gpu::find("serial/plain/fp32");
  EXPECT_TRUE(serial.accepts(format_info<fp32>()));
  EXPECT_FALSE(serial.accepts(format_info<fp32>(), Layout::rows(2, 2)));
  std::size_t bytes = 0;
  EXPECT_EQ(gpu::reduce(serial, nullptr, bytes, x.values(), Layout::rows(2, 2), results),
            cudaErrorInvalidValue);
  EXPECT_THROW(gpu::reduce(serial, x.values(), Layout::rows(2, 2), results), std::invalid_argument);
}

/// A workspace that is prepared once serves methods of every kind, one after the other.
TEST(GpuReductions, LeaveTheirWorkspacePrepared) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t rows = 3, columns = 70'000, n = rows * columns;
  const Array host{format_info<fp32>(), wide(n, 12, 7)};
  const OnGpu x{host.values()};
  constexpr std::size_t most = std::size_t{64} << 20;
  const auto workspace = device_memory(most), out = device_memory(n * sizeof(double));
  Caller caller;
  succeed(gpu::prepare(workspace.get(), most, caller.stream()));
  for (int round = 0; round < 2; ++round)
    for (const Method& m : methods()) {
      if (m.backend != "cuda" || m.promise < Promise::everywhere || m.is_slow || m.takes_keys ||
          !m.accepts(format_info<fp32>()))
        continue;
      for (const Layout& layout : {Layout::vector(n), Layout::rows(rows, columns)}) {
        if (!m.accepts(format_info<fp32>(), layout)) continue;
        const FormatInfo* format = m.result_format(format_info<fp32>());
        const std::size_t numbers =
            m.has_result_per_element ? n : layout.results() * static_cast<std::size_t>(m.results);
        const Results there{format, out.get(), numbers};
        std::size_t bytes = most;
        succeed(m.inputs == 2 ? gpu::reduce(m, workspace.get(), bytes, x.values(), x.values(), layout, there,
                                            caller.stream())
                              : gpu::reduce(m, workspace.get(), bytes, x.values(), layout, there,
                                            caller.stream(), with_window(m)));
        const std::size_t size = numbers * (format ? format->bytes : sizeof(std::int64_t));
        std::vector<std::byte> found(size), expected(size);
        succeed(cudaMemcpyAsync(found.data(), out.get(), size, cudaMemcpyDeviceToHost, caller.stream()));
        succeed(cudaStreamSynchronize(caller.stream()));
        const Results here{format, expected.data(), numbers};
        if (m.inputs == 2)
          reduce(find_on("cpu", m), host.values(), host.values(), layout, here);
        else
          reduce(find_on("cpu", m), host.values(), layout, here, with_window(m));
        ASSERT_EQ(found, expected) << m.name << ", " << layout.outer << " rows";
      }
    }
}

TEST_P(EveryGpuReduction, CanBeCapturedInAGraphAndReplayed) {
  constexpr std::size_t rows = 7, columns = 9000, n = rows * columns;
  const Method& m = on_gpu();
  const Array y{*cpu.format, uniform(n, 3)};
  const OnGpu x_there{y.values()}, y_there{y.values()};
  const std::vector<std::uint64_t> offsets{0, 5, 5, 9000, 40'000, n};
  const auto offsets_there = device_memory(offsets.size() * sizeof offsets[0]);
  succeed(cudaMemcpy(offsets_there.get(), offsets.data(), offsets.size() * sizeof offsets[0],
                     cudaMemcpyHostToDevice));
  for (const Layout& layout : {Layout::vector(n), Layout::rows(rows, columns), Layout::axis(1, columns, rows),
                               Layout::segments(offsets.data(), offsets.size() - 1)}) {
    const std::size_t numbers = layout.results() * static_cast<std::size_t>(m.results),
                      bytes_of_out = numbers * m.result_bytes() / static_cast<std::size_t>(m.results);
    const auto out = device_memory(bytes_of_out);
    const Results there{m.result_format(*cpu.format), out.get(), numbers};
    Layout on_device = layout;
    if (layout.offsets) on_device.offsets = reinterpret_cast<const std::uint64_t*>(offsets_there.get());
    std::size_t bytes = 0;
    Caller caller;
    const auto run = [&](void* workspace) {
      return m.inputs == 2
                 ? gpu::reduce(m, workspace, bytes, x_there.values(), y_there.values(), on_device, there,
                               caller.stream())
                 : gpu::reduce(m, workspace, bytes, x_there.values(), on_device, there, caller.stream());
    };
    succeed(run(nullptr));
    const auto workspace = device_memory(bytes);
    succeed(gpu::prepare(workspace.get(), bytes, caller.stream()));
    succeed(run(workspace.get()));
    const Graph graph{caller.stream(), [&] { succeed(run(workspace.get())); }};
    for (const unsigned seed : {5, 6}) {
      const Array x{*cpu.format, wide(n, 12, seed)};
      x_there.fill(x.values());
      succeed(cudaMemsetAsync(out.get(), 0x5a, bytes_of_out, caller.stream()));
      graph.replay();
      std::vector<std::byte> found(bytes_of_out), expected(bytes_of_out);
      succeed(
          cudaMemcpyAsync(found.data(), out.get(), bytes_of_out, cudaMemcpyDeviceToHost, caller.stream()));
      succeed(cudaStreamSynchronize(caller.stream()));
      const Results here{m.result_format(*cpu.format), expected.data(), numbers};
      if (m.inputs == 2)
        reduce(cpu, x.values(), y.values(), layout, here);
      else
        reduce(cpu, x.values(), layout, here);
      EXPECT_EQ(found, expected) << layout.outer << " x " << layout.n << " x " << layout.inner;
    }
  }
}

TEST(GpuMeansOfHalves, OfManyRowsAndOfALongVectorHaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  SAMESUM_UNSANITIZED("it takes long");
  constexpr std::size_t n = 3'000'003;
  std::vector<double> x = uniform(n, 5);
  for (std::size_t i = 0; i < n; ++i) x[i] = i / 7000 % 3 ? 20'000 * (2 + x[i]) : x[i];
  const Array array{format_info<fp16>(), x};
  for (const Method* r : half_means("cpu"))
    for (const Layout& layout : {Layout::vector(n), Layout::rows(n / 5, 5), Layout::rows(3000, 1000),
                                 Layout::axis(1, 300, 10'000), Layout::axis(3, 100'000, 10)}) {
      const Method& on_gpu = find_on("cuda", *r);
      EXPECT_EQ(reduce_all(on_gpu, array.values(), array.values(), layout),
                reduce_all(*r, array.values(), array.values(), layout))
          << r->name << ", " << layout.outer << " x " << layout.n;
    }
}

TEST(GpuReductions, RefuseLayoutsThatOverflow) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t huge = std::size_t{1} << 63;
  const Array six{format_info<fp32>(), std::vector<double>(6, 1.0)};
  const OnGpu x{six.values()};
  for (const char* name : {"sum/exact/fp32@cuda", "sum/tree/plain/fp32@cuda", "moments/tree/fp32@cuda"}) {
    const Method& r = find(name);
    const OnGpu out{six.values()};
    for (const Layout& layout :
         {Layout::rows(2, 3, static_cast<std::size_t>(-3)), Layout::rows(3, 2, huge),
          Layout{1, 3, 1, 0, huge}, Layout{huge, 1, 1, 0, 1}, Layout{huge + 1, 1, 2, 0, 2}})
      for (const std::size_t numbers :
           {std::size_t{0}, layout.results() * static_cast<std::size_t>(r.results)}) {
        if (numbers > 6) continue;
        std::size_t bytes = 0;
        const std::span<float> to{static_cast<float*>(const_cast<void*>(out.values().data)), numbers};
        EXPECT_EQ(gpu::reduce(r, nullptr, bytes, x.values(), layout, to), cudaErrorInvalidValue) << name;
        EXPECT_THROW(gpu::reduce(r, x.values(), layout, to), std::invalid_argument) << name;
      }
  }
}

TEST(GpuReductions, DoNotDependOnTheCallersEnvironmentAndDoNotChangeIt) {
  SAMESUM_NEEDS_GPU();
  std::vector<double> data = wide(5000, 30, 4);
  for (std::size_t i = 0; i < data.size(); i += 3) data[i] *= Format<fp32>::smallest_subnormal;
  const Array array{format_info<fp32>(), data};
  const OnGpu x{array.values()}, out{array.values()};
  auto* results = static_cast<float*>(const_cast<void*>(out.values().data));
  const auto run = [&](const Method& r) {
    gpu::reduce(r, x.values(), Layout::rows(50, 100),
                std::span{results, 50 * static_cast<std::size_t>(r.results)}, nullptr, nullptr, {.ddof = 1});
  };
  // Runs in the default environment: CUDA's own functions compute in floating point and would trap.
  const auto bits_of = [&](const Method& r) {
    std::vector<std::uint32_t> bits(100);
    succeed(
        cudaMemcpy(bits.data(), results, 200 * static_cast<std::size_t>(r.results), cudaMemcpyDeviceToHost));
    return bits;
  };
  for (const char* name : {"moments/tree/fp32@cuda", "norm/tree/fp32@cuda", "moments/exact/fp32@cuda"}) {
    const Method& r = find(name);
    run(r);
    const auto expected = bits_of(r);
    for (const int rounding : {FE_UPWARD, FE_TOWARDZERO}) {
      std::fenv_t saved;
      std::fegetenv(&saved);
      std::fesetround(rounding);
      std::feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
#if defined(__x86_64__)
      _mm_setcsr((_mm_getcsr() | 0x8040) & ~0x1f80u);  // FTZ, DAZ, and all traps
      const unsigned before = _mm_getcsr();
      run(r);
      const unsigned after = _mm_getcsr();
#else
      const int before = std::fetestexcept(FE_ALL_EXCEPT);
      run(r);
      const int after = std::fetestexcept(FE_ALL_EXCEPT);
#endif
      std::fesetenv(&saved);
      EXPECT_EQ(before, after) << name;
      EXPECT_EQ(bits_of(r), expected) << name;
    }
  }
}

TEST_P(EveryGpuReduction, HasTheSameBitsAtEveryAddressAndStride) {
  constexpr std::size_t rows = 5, columns = 1000;
  const std::vector<double> data = wide(rows * columns, 12, 3);
  const Array x{*cpu.format, data};
  const Bits expected = reduce_all(cpu, x.values(), x.values(), Layout::rows(rows, columns));
  for (const std::size_t stride : {1000, 1001, 1002, 1004, 1024})
    for (const std::size_t offset : {0, 1, 2, 4, 8}) {
      std::vector<double> apart(offset + rows * stride, -3.0);
      for (std::size_t i = 0; i < data.size(); ++i)
        apart[offset + i / columns * stride + i % columns] = data[i];
      const Array strided{*cpu.format, apart};
      const OnGpu there{strided.values()};
      const Values v{*cpu.format,
                     static_cast<const std::byte*>(there.values().data) + offset * cpu.format->bytes,
                     rows * stride};
      EXPECT_EQ(reduce_all(on_gpu(), v, v, Layout::rows(rows, columns, stride)), expected)
          << offset << ", " << stride;
    }
}

TEST_P(EveryGpuReduction, HasTheBitsOfTheCpuForLongVectorsAndManyRows) {
  SAMESUM_UNSANITIZED("it takes long");
  for (const auto& [name, layout, n] : {std::tuple{"a vector", Layout::vector(3'000'003), 3'000'003u},
                                        {"rows", Layout::rows(30, 100'000), 3'000'000u},
                                        {"rows of two leaves", Layout::rows(1'050, 4'100), 4'305'000u},
                                        {"many short rows", Layout::rows(4'099, 150), 614'850u},
                                        {"columns", Layout::axis(1, 10'000, 300), 3'000'000u},
                                        {"many short columns", Layout::axis(1, 200, 16'500), 3'300'000u}}) {
    const Array x{*cpu.format, wide(n, 12, 5)}, y{*cpu.format, uniform(n, 6)};
    EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), layout),
              reduce_all(cpu, x.values(), y.values(), layout))
        << name;
  }
}

// Few threads share a short segment; a warp reduces the leaves of several longer ones.
TEST_P(EveryGpuReduction, HasTheBitsOfTheCpuForShortSegmentsAmongLongOnes) {
  for (const std::size_t mean : {1, 6, 30, 60, 200}) {
    const std::vector<std::uint64_t> offsets = uneven_segments(mean);
    const Array x{*cpu.format, wide(offsets.back() + 3, 12, mean)},
        y{*cpu.format, uniform(offsets.back() + 3, 6)};
    const Layout layout = Layout::segments(offsets.data(), offsets.size() - 1);
    EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), layout),
              reduce_all(cpu, x.values(), y.values(), layout))
        << "mean length " << mean;
  }
}

TEST(GpuReductions, HaveTheBitsOfTheCpuForMoreThanAThousandTiles) {
  SAMESUM_NEEDS_GPU();
  SAMESUM_UNSANITIZED("it takes long");
  constexpr std::size_t n = (std::size_t{1} << 24) + 5000;
  for (const FormatInfo* format : {&format_info<fp32>(), &format_info<fp64>()}) {
    const Array x{*format, wide(n, 12, 5)}, y{*format, uniform(n, 6)};
    for (const Method* r : with_batches_on_gpu()) {
      // One method for each kind of state.
      const bool tree = r->order == "tree" && (r->accumulator.empty() || r->accumulator == "double_word");
      if (r->format != format || !(tree || r->returns_index) ||
          (r->accumulator != "" && r->operation != "dot"))
        continue;
      const Method& on_gpu = find_on("cuda", *r);
      EXPECT_EQ(reduce_all(on_gpu, x.values(), y.values(), Layout::vector(n)),
                reduce_all(*r, x.values(), y.values(), Layout::vector(n)))
          << r->name;
    }
  }
}

TEST(GpuReductions, HaveTheBitsOfTheCpuIfAWarpReducesSeveralLeaves) {
  SAMESUM_NEEDS_GPU();
  SAMESUM_UNSANITIZED("it takes long");
  constexpr std::size_t leaf = 4096;
  const std::vector<double> data = wide(70'001, 12, 40);
  const std::vector<float> some(data.begin(), data.end());
  for (const Layout& layout : {Layout::vector(32768 * leaf + 1005), Layout::rows(2100, 9 * leaf + 7),
                               Layout::rows(2100, 12 * leaf), Layout::rows(2100, 20 * leaf + 513)}) {
    std::vector<float> x(layout.outer * layout.n);
    for (std::size_t i = 0; i < x.size(); i += some.size())
      std::copy_n(some.begin(), std::min(some.size(), x.size() - i), x.begin() + static_cast<long>(i));
    for (const char* name :
         {"sum/tree/plain/fp32@", "norm/pairwise/fp32@", "moments/tree/fp32@", "argmax/fp32@"})
      EXPECT_EQ(reduce_all(find(std::string{name} + "cuda"), Values{x}, Values{x}, layout),
                reduce_all(find(std::string{name} + "cpu"), Values{x}, Values{x}, layout))
          << name << ", " << layout.outer << " of " << layout.n;
  }
}

TEST(GpuReductions, HaveTheBitsOfTheCpuForAnyNumberOfThreadsPerColumn) {
  SAMESUM_NEEDS_GPU();
  // Lengths: a few lanes, all lanes, some rows of lanes, and two leaves. The more columns, the fewer threads
  // share one.
  for (const std::size_t n : {3, 100, 128, 300, 4200})
    for (const std::size_t columns : {3, 500, 1500, 5000, 20'000, 40'000, 70'000}) {
      if (n * columns > (is_sanitized ? 200'000u : 10'000'000u)) continue;
      const std::vector<double> data = wide(n * columns, 12, 7);
      const std::vector<float> x(data.begin(), data.end()), y(data.rbegin(), data.rend());
      for (const Layout& layout : {Layout::axis(1, n, columns), Layout::axis(columns / 3, n, 3)})
        for (const char* name :
             {"sum/tree/plain/fp32@", "sum/pairwise/plain/fp32@", "sum/tree/kahan/fp32@",
              "dot/tree/double_word/fp32@", "moments/tree/fp32@", "argmax/fp32@", "sum/tree/kahan/fp64@"})
          EXPECT_EQ(reduce_all(find(std::string{name} + "cuda"), Values{x}, Values{y}, layout),
                    reduce_all(find(std::string{name} + "cpu"), Values{x}, Values{y}, layout))
              << name << ", " << layout.outer << " x " << n << " x " << layout.inner;
    }
}

/// Returns doubles that are hard to add exactly, many of them beyond the range of the narrower formats.
std::vector<Dataset> awkward(std::size_t n) {
  const std::vector<double> u = uniform(n, 21);
  const auto of = [n](auto element) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = element(i);
    return x;
  };
  std::vector<double> late(n, 0x1p-200), special = wide(n, 40, 22), minus_zeros(n, -0.0);
  late.back() = 0x1p500;
  special[n / 2] = 0x1p1023;
  std::vector<double> with_infinity = special, with_both = special, with_nan = special;
  with_infinity[n / 3] = -INFINITY;
  with_both[n / 3] = -INFINITY;
  with_both[n / 4] = INFINITY;
  with_nan[n / 3] = NAN;
  minus_zeros[n / 2] = 0x1p-1074;
  return {{"all exponents", wide(n, 2040, 23)},
          {"300 binades", wide(n, 300, 24)},
          {"60 binades", wide(n, 60, 25)},
          {"products that overflow, and cancel", of([&](std::size_t i) {
             return (i % 4 < 2 ? 0x1p1000 : 1.0) * (i % 2 != 0 ? -1 : 1) * (1 + u[i / 4]);
           })},
          {"products that underflow", of([&](std::size_t i) { return u[i] * 0x1p-530; })},
          {"squares of less than half of the smallest number",
           of([&](std::size_t i) { return u[i] * 0x1p-600; })},
          {"subnormal numbers", of([&](std::size_t i) { return u[i] * 0x1p-1040; })},
          {"large numbers", of([&](std::size_t i) { return u[i] * 0x1p1023; })},
          {"integers beside doubles that cancel them", of([&](std::size_t i) {
             return i % 3 == 0 ? 0x1p-500 : i % 3 == 1 ? -0x1p-500 : u[i] * 0x1p-480;
           })},
          {"growing", of([&](std::size_t i) { return std::ldexp(u[i], static_cast<int>(i % 2000) - 1000); })},
          {"falling", of([&](std::size_t i) { return std::ldexp(u[i], 1000 - static_cast<int>(i % 2000)); })},
          {"1e8 and a little", of([&](std::size_t i) { return 1e8 + u[i]; })},
          {"equal", std::vector<double>(n, 0.1)},
          {"one large at the end", late},
          {"zeros among numbers", of([&](std::size_t i) {
             return i % 2 != 0 ? u[i] : i % 4 != 0 ? 0.0 : -0.0;
           })},
          {"one large", special},
          {"an infinity", with_infinity},
          {"two infinities", with_both},
          {"NaN", with_nan},
          {"-0", std::vector<double>(n, -0.0)},
          {"-0 and the smallest number", minus_zeros}};
}

TEST(GpuReductions, RefuseImpossibleArrays) {
  const float number = 1;
  FormatInfo strange = format_info<fp32>();
  strange.index = 17;
  for (const Values& x : {Values{strange, &number, 1}, Values{format_info<fp32>(), nullptr, 3},
                          Values{format_info<fp32>(), &number, std::size_t{1} << 63}})
    EXPECT_THROW(gpu::count_distinct(x), std::invalid_argument);
  alignas(gpu::ExactState) static std::byte state[sizeof(gpu::ExactState)];
  float out = 0;
  EXPECT_EQ(gpu::round(reinterpret_cast<const gpu::ExactState*>(state), strange, &out),
            cudaErrorInvalidValue);
}

TEST_P(EveryExactGpuReduction, HasTheBitsOfTheCpuOnAwkwardData) {
  for (const std::size_t n : {1, 2, 5, 1000, 70'001}) {
    if (is_sanitized && n > 1000) continue;
    for (const Dataset& d : awkward(n))
      for (const FormatInfo& input : formats) {
        const Array x{input, d.x};
        std::vector<double> reversed{d.x.rbegin(), d.x.rend()};
        for (double& e : reversed) e = std::fmin(std::fabs(e), 0x1p1022);  // finite
        const Array y{input, reversed};
        for (const double ddof : {0.0, 1.0, 5.0}) {
          if (ddof > 0 && cpu.operation != "moments") continue;
          EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), Layout::vector(n), {.ddof = ddof}),
                    reduce_all(cpu, x.values(), y.values(), Layout::vector(n), {.ddof = ddof}))
              << d.name << " of " << input.name << ", n = " << n << ", ddof = " << ddof;
        }
      }
  }
}

TEST_P(EveryExactGpuReduction, HasTheBitsOfTheCpuInSegmentsAndColumns) {
  const std::vector<std::uint64_t> offsets{1, 1, 2, 4, 4, 9, 3009, 3010, 3010, 4000};
  const FormatInfo& input = format_info<fp64>();
  const Array x{input, wide(4000, 1800, 31)}, y{input, wide(4000, 1800, 32)};
  for (const auto& [name, layout] :
       {std::pair{"segments", Layout::segments(offsets.data(), offsets.size() - 1)},
        {"columns", Layout::axis(4, 100, 10)},
        {"columns of one", Layout::axis(1, 1, 4000)},
        {"none", Layout::axis(3, 0, 7)}})
    for (const double ddof : {0.0, 1.0, 2.0})
      EXPECT_EQ(reduce_all(on_gpu(), x.values(), y.values(), layout, {.ddof = ddof}),
                reduce_all(cpu, x.values(), y.values(), layout, {.ddof = ddof}))
          << name << ", ddof = " << ddof;
}

TEST_P(EveryExactGpuReduction, CarriesWithinLongRows) {
  SAMESUM_UNSANITIZED("it takes long");
  constexpr std::size_t n = 2'300'007;  // one block per row; its threads empty their words twice
  for (const int binades : {8, 500}) {
    const Array x{*cpu.format, wide(2 * n, binades, 33)};
    EXPECT_EQ(reduce_all(on_gpu(), x.values(), x.values(), Layout::rows(2, n)),
              reduce_all(cpu, x.values(), x.values(), Layout::rows(2, n)))
        << binades;
  }
}

TEST(GpuReductions, RefuseAnExactVarianceWithAFractionalDdof) {
  SAMESUM_NEEDS_GPU();
  const Array x{format_info<fp32>(), {1, 2, 3}};
  const OnGpu there{x.values()};
  const auto out = device_memory(8);
  const Results results{std::span{reinterpret_cast<float*>(out.get()), 2}};
  const Method& r = find("moments/exact/fp32@cuda");
  EXPECT_THROW(gpu::reduce(r, there.values(), Layout::vector(3), results, nullptr, nullptr, {.ddof = 0.5}),
               std::invalid_argument);
  EXPECT_THROW(reduce(r, x.values(), Layout::vector(3), results, {.ddof = 0.5}), std::invalid_argument);
  std::size_t bytes = 0;
  EXPECT_EQ(
      gpu::reduce(r, nullptr, bytes, there.values(), Layout::vector(3), results, nullptr, {.ddof = 0.5}),
      cudaErrorInvalidValue);
}

TEST(GpuReductions, CountDifferentNumbersAsTheCpuDoes) {
  SAMESUM_NEEDS_GPU();
  for (const FormatInfo& format : formats) {
    std::vector<double> data = wide(is_sanitized ? 1000 : 100'000, 8, 3);
    data.insert(data.end(), {0.0, -0.0, NAN, INFINITY, -INFINITY, data[0], data[1]});
    const Array x{format, data};
    EXPECT_EQ(gpu::count_distinct(OnGpu{x.values()}.values()), count_distinct(x.values())) << format.name;
  }
  EXPECT_EQ(gpu::count_distinct(Values{format_info<fp32>(), nullptr, 0}), 0u);
}

TEST(GpuReductions, RunInAStreamFromDeviceMemoryInTwoPhases) {
  SAMESUM_NEEDS_GPU();
  const Array x{format_info<fp32>(), wide(100'000, 12, 7)};
  const OnGpu there{x.values()};
  const Method& r = find("norm/tree/fp32@cuda");
  const auto out = device_memory(100 * sizeof(float));
  const Results results{std::span{reinterpret_cast<float*>(out.get()), 100}};
  std::size_t bytes = 0;
  succeed(gpu::reduce(r, nullptr, bytes, there.values(), Layout::rows(100, 1000), results));
  const auto workspace = device_memory(bytes);
  succeed(gpu::reduce(r, workspace.get(), bytes, there.values(), Layout::rows(100, 1000), results,
                      the_caller().stream()));
  succeed(cudaStreamSynchronize(the_caller().stream()));
  std::vector<float> host(100), expected(100);
  succeed(cudaMemcpy(host.data(), out.get(), 400, cudaMemcpyDeviceToHost));
  reduce(find("norm/tree/fp32"), x.values(), Layout::rows(100, 1000), std::span{expected});
  EXPECT_EQ(host, expected);
  gpu::reduce(r, there.values(), Layout::rows(100, 1000), results);
  succeed(cudaDeviceSynchronize());
  const Results short_of{std::span{reinterpret_cast<float*>(out.get()), 99}};
  EXPECT_EQ(gpu::reduce(r, workspace.get(), bytes, there.values(), Layout::rows(100, 1000), short_of),
            cudaErrorInvalidValue);
  EXPECT_THROW(gpu::reduce(r, there.values(), Layout::rows(100, 1000), short_of), std::invalid_argument);
  EXPECT_THROW(gpu::reduce(find("norm/tree/fp32"), there.values(), Layout::rows(100, 1000), results),
               std::invalid_argument);
}

/// Long vectors and a few long rows are reduced by the kernel of exact sums.
TEST(GpuReductions, OfLongExactRowsHaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  constexpr std::size_t n = (std::size_t{1} << 22) + 5, stride = n + 1;
  std::vector<double> finite = wide(3 * stride, 9, 5), special = finite;
  special[7] = -std::numeric_limits<double>::infinity();
  special[stride + 1] = std::numeric_limits<double>::quiet_NaN();
  std::fill_n(special.begin() + 2 * stride, n, -0.0);
  for (const FormatInfo& format : formats) {
    if (is_sanitized && format.bytes != 4) continue;
    for (const Array& x : {Array{format, finite}, Array{format, special}})
      for (const char* name : {"mean/exact", "sum/exact"})
        for (const Layout& layout : {Layout::vector(n), Layout::rows(3, n, stride)}) {
          const Method& cpu = find(name, {.format = format.name});
          EXPECT_EQ(reduce_all(find_on("cuda", cpu), x.values(), x.values(), layout),
                    reduce_all(cpu, x.values(), x.values(), layout))
              << cpu.name << ", " << layout.outer;
        }
  }
}

}  // namespace
}  // namespace samesum
