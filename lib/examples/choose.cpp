// The cheapest method for a tolerance.
#include <cstdio>
#include <samesum/samesum.hpp>

int main() {
  // 100000 floats of either sign, whose sum must be right to one part in ten thousand.
  const samesum::Choice choice = samesum::choose(
      {.length = 100000, .input = "fp32", .relative_error = 1e-4, .backend = "cpu", .condition = 100});
  const samesum::Candidate& best = choice.best;
  std::printf("%s, off by at most %.1g of the sum\n", best.method->name.c_str(), best.bound);
}
