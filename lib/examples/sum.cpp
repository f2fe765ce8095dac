// The exact sum, a faster sum by name, and a compensated sum with a bound on its error.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <vector>

int main() {
  std::vector<double> x{1e16, 1, 1, -1e16};
  double loop = 0;
  for (double element : x) loop += element;

  double exact = samesum::sum(x);                    // correctly rounded, whatever the order of x
  double tree = samesum::sum<"tree/plain/fp64">(x);  // in a fixed order: the same bits on every machine
  samesum::Estimate kahan = samesum::estimate("tree/kahan/fp64", x);  // a value and a rigorous bound

  std::printf("loop %g, exact %g, tree %g\n", loop, exact, tree);
  std::printf("kahan %g, off by at most %.2g\n", kahan.value.to_double(), kahan.bound);
}
