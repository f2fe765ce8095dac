/// Loops over a whole leaf or a part of one: moments of rows, and products of columns.
#include "operation/reduction_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum::cpu {
namespace {

using namespace testing_support;

/// Compares a method with its reference, with every instruction set.
void expect_bits_of_reference(const Method& m, const Array& x, const Layout& layout) {
  const InstructionSet before = instruction_set();
  const Bits expected = reduce_all(reference_of(m), x.values(), {}, layout);
  for (const InstructionSet set : instruction_sets) {
    if (!is_supported(set)) continue;
    force(set);
    EXPECT_EQ(reduce_all(m, x.values(), {}, layout, {.threads = 1}), expected)
        << m.name << ", " << layout.outer << " x " << layout.n << " x " << layout.inner << ", "
        << name_of(set);
  }
  force(before);
}

TEST(MomentsOfRows, OfEveryLengthHaveTheBitsOfTheirReference) {
  std::vector<std::size_t> lengths{383, 384, 385, 511, 640, 4095, 4096, 4097};
  for (std::size_t n = 1; n < 260; n += is_sanitized ? 13 : 1) lengths.push_back(n);
  for (const FormatInfo& format : formats)
    for (const std::size_t n : lengths) {
      std::vector<double> x = wide(3 * n, 12, n);
      if (n % 3 == 0) x[n / 2] = INFINITY;  // of the first row
      if (n % 5 == 0) x[n - 1] = -0.0;
      expect_bits_of_reference(find("moments/tree/" + std::string{format.name} + "@cpu"), {format, x, n % 2},
                               Layout::rows(3, n));
    }
}

TEST(ProductsOfColumns, HaveTheBitsOfTheirReference) {
  for (const char* format : {"fp32", "fp64"})
    for (const std::size_t columns : {16, 17, 33, 130})
      for (const std::size_t n : {1, 2, 3, 63, 127, 128, 129, 300, 4097}) {
        if (n > 300 && columns != 17) continue;
        std::vector<double> x = wide(n * columns, 4, n);
        x[0] = 0;  // the columns 0, 3, 5 and 7 have numbers that are not normal
        x[n / 2 * columns + 3] = INFINITY;
        x[(n - 1) * columns + 5] = NAN;
        x[(n - 1) * columns + 7] = 0x1p-1074;
        const Method& m = find(std::string{"prod/tree/"} + format + "@cpu");
        expect_bits_of_reference(m, {*m.format, x, 1}, Layout::axis(1, n, columns));
      }
}

}  // namespace
}  // namespace samesum::cpu
