// A norm whose squares overflow, with a bound on its error, and a dot product whose partial sums overflow.
#include <cstdio>
#include <samesum/samesum.hpp>
#include <vector>

int main() {
  std::vector<double> x{1e200, 3, 4e-200, 1e200}, y{1e200, 1, 1e200, -1e200};
  const samesum::Method& norm = samesum::find("norm/tree/fp64");
  const samesum::Number length = norm(x);
  const double bound = norm.bound(*length.format, x.size(), length);
  std::printf("norm       %g, off by at most %.0g\n", length.to_double(), bound);
  std::printf("dot        %g\n", samesum::reduce("dot/tree/plain/fp64", x, y).to_double());
  std::printf("exact dot  %g\n", samesum::reduce("dot/exact/fp64", x, y).to_double());
}
