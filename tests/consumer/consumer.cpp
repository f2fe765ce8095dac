#include <cstdio>
#include <samesum/samesum.hpp>
#include <vector>

int main() {
  const std::vector<double> x{1e100, 1, -1e100, 1e-100, 1e50, -1, -1e50};
  std::printf("%g\n", samesum::sum(x));
}
