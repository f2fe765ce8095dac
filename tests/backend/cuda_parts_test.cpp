/// Vectors of several ranks that are reduced element by element: on one GPU their contributions are the rows
/// of a matrix, which is reduced along its first axis.
#include "backend/cuda_support.hpp"

namespace samesum {
namespace {

/// Contributions of the ranks to each element.
struct PartsCase {
  const char* name;
  std::vector<double> (*make)(std::size_t n, const FormatInfo& format);
};

const PartsCase parts_cases[] = {
    {"uniform", [](std::size_t n, const FormatInfo&) { return uniform(n, 31); }},
    {"of 60 binades", [](std::size_t n, const FormatInfo&) { return wide(n, 60, 32); }},
    {"of all binades",
     [](std::size_t n, const FormatInfo& f) {
       std::vector<double> x = wide(n, 40, 33);
       for (std::size_t i = 0; i < n; ++i)
         x[i] *= i % 7 < 3 ? f.smallest_subnormal * 16 : f.max_finite * 0x1p-45;
       return x;
     }},
    {"that cancel",
     [](std::size_t n, const FormatInfo&) {
       std::vector<double> x = wide(n, 30, 34);
       for (std::size_t i = 1; i < n; i += 3) x[i] = -x[i - 1];
       return x;
     }},
    {"of ties and their neighbours",
     [](std::size_t n, const FormatInfo& f) {
       std::mt19937_64 random{35};
       std::vector<double> x(n);
       const double u = f.unit_roundoff;
       const double some[] = {1, -1, u, -u, u * u, -u * u, u * u * u, 0, 1 + 2 * u, 2 * u, 0x1p-60, -0x1p-70};
       for (double& e : x) e = some[random() % std::size(some)];
       return x;
     }},
    {"with special values",
     [](std::size_t n, const FormatInfo& f) {
       std::mt19937_64 random{36};
       std::vector<double> x = uniform(n, 37);
       const double inf = std::numeric_limits<double>::infinity();
       const double special[] = {0.0, inf, -inf, inf - inf, f.max_finite, -f.max_finite};
       for (double& e : x) {
         e = random() % 2 ? -0.0 : e;
         if (random() % 64 == 0) e = special[random() % std::size(special)];
       }
       return x;
     }},
};

class SumsOfParts : public ::testing::TestWithParam<std::size_t> {};

/// The truth is the sum of each column by itself, as an exact state of the CPU.
TEST_P(SumsOfParts, EqualTheTruthToTheBit) {
  SAMESUM_NEEDS_GPU();
  const std::size_t parts = GetParam();
  for (const PartsCase& c : parts_cases)
    for (const FormatInfo& input : formats)
      for (const std::size_t n : {64 * parts + 64, 64 * parts + 69}) {  // aligned columns, and others
        const Array x{input, c.make(parts * n, input)};
        const OnGpu on_gpu{x.values(), n % 2};
        std::vector<Exact> truth(n);
        with_format(input, [&]<class T>() {
          const std::span<const T> all = x.values().as<T>();
          std::vector<T> column(parts);
          for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t p = 0; p < parts; ++p) column[p] = all[p * n + i];
            truth[i] = accumulate(column);
          }
        });
        for (const FormatInfo& format : formats) {
          const Method &m = gpu::find("exact", {.format = format.name, .backend = "cuda"}),
                       &mean = gpu::find("mean/exact", {.format = format.name, .backend = "cuda"});
          const std::shared_ptr<std::byte> out = device_memory(n * format.bytes);
          std::vector<std::byte> sums(n * format.bytes), means(sums.size()), expected_means(sums.size());
          gpu::reduce(m, on_gpu.values(), Layout::axis(1, parts, n), {&format, out.get(), n});
          succeed(cudaMemcpy(sums.data(), out.get(), sums.size(), cudaMemcpyDeviceToHost));
          gpu::reduce(mean, on_gpu.values(), Layout::axis(1, parts, n), {&format, out.get(), n});
          succeed(cudaMemcpy(means.data(), out.get(), sums.size(), cudaMemcpyDeviceToHost));
          reduce(find_on("cpu", mean), x.values(), Layout::axis(1, parts, n),
                 {&format, expected_means.data(), n});
          ASSERT_EQ(means, expected_means)
              << "means of " << parts << " parts " << c.name << ", " << input.name << " to " << format.name;
          with_format(format, [&]<class F>() {
            for (std::size_t i = 0; i < n; ++i) {
              F sum;
              std::memcpy(&sum, &sums[i * sizeof sum], sizeof sum);
              ASSERT_EQ(to_bits(sum), to_bits(truth[i].result<F>()))
                  << parts << " parts " << c.name << ", " << input.name << " to " << format.name
                  << ", element " << i << " of " << n;
            }
          });
        }
      }
}

/// Every method that reduces columns, on columns of few elements.
TEST_P(SumsOfParts, HaveTheBitsOfTheCpuInEveryMethod) {
  SAMESUM_NEEDS_GPU();
  const std::size_t parts = GetParam(), n = 64 * parts + 130;
  const Layout layout = Layout::axis(1, parts, n);
  for (const Method* m : with_batches_on_gpu()) {
    const Method& on_gpu = find_on("cuda", *m);
    const Array x{*m->format, wide(parts * n, 20, 38)}, y{*m->format, wide(parts * n, 20, 39)};
    const Options options = with_grid(*m, {.ddof = double(m->results == 2)});
    std::vector<std::byte> expected(n * m->result_bytes()), results(expected.size());
    const auto run = [&](const Method& method, std::vector<std::byte>& to) {
      const Results out{m->result_format(*m->format), to.data(), n * static_cast<std::size_t>(m->results)};
      if (m->inputs == 2)
        reduce(method, x.values(), y.values(), layout, out, options);
      else
        reduce(method, x.values(), layout, out, options);
    };
    run(*m, expected);
    run(on_gpu, results);
    EXPECT_EQ(results, expected) << on_gpu.name << ", " << parts << " parts";
  }
}

INSTANTIATE_TEST_SUITE_P(OfRanks, SumsOfParts, ::testing::Values(1, 2, 3, 8, 64));

/// The columns of several matrices, and rows of results that no vector store covers.
TEST(ExactColumns, OfSeveralMatricesHaveTheBitsOfTheCpu) {
  SAMESUM_NEEDS_GPU();
  for (const std::size_t inner : {2u, 3u, 4u, 5u, 7u, 8u, 130u})
    for (const char* name : {"exact/fp32", "sum_of_magnitudes/exact/fp32", "mean/exact/fp32"}) {
      const Layout layout{200, 3, inner, 5 * inner + 1, inner + 1, nullptr};
      const Array x{format_info<fp32>(), wide(200 * (5 * inner + 1), 40, 40)};
      std::vector<float> expected(200 * inner), results(200 * inner);
      reduce(find(name), x.values(), layout, std::span{expected});
      reduce(gpu::find(name), x.values(), layout, std::span{results});
      EXPECT_EQ(results, expected) << name << ", " << inner << " columns";
    }
}

}  // namespace
}  // namespace samesum
