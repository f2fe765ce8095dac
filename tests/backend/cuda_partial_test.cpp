#include "cuda_support.hpp"
#include "partial_support.hpp"

namespace samesum {
namespace {

/// The inputs in host and in device memory.
struct PlacedInputs {
  Inputs host;
  OnGpu x{host.x.values()}, y{host.y.values()};
  Values part(const OnGpu& from, std::size_t begin, std::size_t count) const {
    const Values all = from.values();
    return {*all.format, static_cast<const std::byte*>(all.data) + begin * all.format->bytes, count};
  }
};

/// Feeds a partial from device memory in the stream, from device memory, or from host memory.
void add_from(std::size_t place, Partial& partial, const PlacedInputs& in, std::size_t begin,
              std::size_t count) {
  const bool two = partial.method().inputs == 2;
  const Values x = in.part(in.x, begin, count), y = in.part(in.y, two ? begin : 0, two ? count : 0);
  const cudaStream_t stream = the_caller().stream();
  if (place == 0)
    two ? gpu::add(partial, x, y, stream) : gpu::add(partial, x, stream);
  else if (place == 1)
    two ? partial.add(x, y) : partial.add(x);
  else
    add(partial, in.host, begin, count);
}

using EveryGpuPartial = MethodTest;
INSTANTIATE_TEST_SUITE_P(Cuda, EveryGpuPartial, ::testing::ValuesIn(or_absent(methods_with_partials("cuda"))),
                         test_name);

TEST_P(EveryGpuPartial, HasTheBitsOfTheUndividedCallBesidePartsOfTheCpu) {
  const Method &on_gpu = *GetParam(), &on_cpu = find_on("cpu", on_gpu);
  std::mt19937_64 random{std::hash<std::string>{}(on_gpu.name)};
  for (int round = 0; round < (is_sanitized ? 3 : 12); ++round) {
    const std::size_t most = on_gpu.is_slow   ? 3000
                             : round % 4 == 3 ? 300'000
                             : round % 4 == 2 ? 20
                                              : 20'000,
                      n = below(random, is_sanitized ? std::min<std::size_t>(most, 20'000) : most),
                      parts = 1 + below(random, round % 3 == 0 ? 40 : 5);
    // The GPU accepts at least its own format.
    const PlacedInputs in{random_inputs(random, on_gpu, n)};
    std::vector<std::size_t> cuts{0, n};
    for (std::size_t k = 1; k < parts; ++k) cuts.push_back(below(random, n + 1));
    std::ranges::sort(cuts);
    std::vector<Partial> all;
    for (std::size_t k = 0; k < parts; ++k) {
      const bool here = random() % 4 == 0;
      Partial part = partial_of(here ? on_cpu : on_gpu, cuts[k]);
      while (part.end() < cuts[k + 1]) {
        const std::size_t left = cuts[k + 1] - static_cast<std::size_t>(part.end());
        add_from(here ? 2 : below(random, 3), part, in, static_cast<std::size_t>(part.end()),
                 random() % 2 ? left : 1 + below(random, left));
      }
      all.push_back(std::move(part));
    }
    const Partial whole = merged(random, std::move(all));
    const Options options{.ddof = static_cast<double>(on_gpu.results == 2 && round % 2)};
    ASSERT_EQ(finished(whole, options), undivided(on_cpu, in.host, options)) << "n = " << n << ", " << parts;
    Partial at_once = partial_of(on_cpu);
    add(at_once, in.host, 0, n);
    ASSERT_TRUE(whole.serialise() == at_once.serialise()) << "n = " << n << ", " << parts << " parts";
  }
}

TEST(AGpuPartial, OfManyElementsHasTheBitsOfTheUndividedCall) {
  SAMESUM_NEEDS_GPU();
  const std::size_t n = is_sanitized ? 100'000 : 20'000'000;
  const PlacedInputs in{{{format_info<fp32>(), wide(n, 20, 1)}, {format_info<fp32>(), wide(n, 20, 2)}, n}};
  for (const char* name :
       {"sum/tree/kahan/fp32", "sum/pairwise/plain/fp64", "mean/exact/fp32", "dot/exact/fp64",
        "sum/fixed_point/fp32", "mean/fixed_point/fp64", "dot/tree/double_word/fp32", "moments/exact/fp32",
        "argmax/fp32", "norm/tree/fp32", "mean/tree/plain/fp32"}) {
    const Method& m = gpu::find(name);
    Partial partial = partial_of(m);
    for (const std::size_t portion : {std::size_t{1}, n / 3, n / 2, n - 1 - n / 3 - n / 2})
      add_from(0, partial, in, static_cast<std::size_t>(partial.end()), portion);
    EXPECT_EQ(finished(partial), undivided(find_on("cpu", m), in.host)) << name;
  }
}

TEST(AGpuPartial, RefusesMethodsOfOtherBackends) {
  SAMESUM_NEEDS_GPU();
  Partial partial{"tree/plain/fp32"};
  EXPECT_THROW(gpu::add(partial, {formats[2], nullptr, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace samesum
