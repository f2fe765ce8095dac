// Methods by name, at compile time and at run time.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <vector>

int main() {
  std::vector<float> x;
  for (int i = 1; i <= 1000000; ++i) x.push_back(1.0f / static_cast<float>(i));

  // At compile time: a name that is no sum does not compile.
  float kahan = samesum::sum<"pairwise/kahan/fp32">(x);

  // At run time: bind once, run many times. The number of threads changes the time, never the bits.
  const samesum::Method& tree = samesum::find("tree/plain/bf16@cpu");
  samesum::Job job = tree.bind(x, {.threads = 4});
  samesum::Number rough = job();

  // A value and a rigorous bound on its error, from one pass over the data.
  samesum::Estimate estimate = samesum::estimate("tree/plain/fp32", x);

  std::printf("exact     %.9g\n", samesum::sum(x));
  std::printf("kahan     %.9g\n", kahan);
  std::printf("bf16      %.9g\n", rough.to_double());
  std::printf("estimate  %.9g, off by at most %.1g\n", estimate.value.to_double(), estimate.bound);
}
