/// Sums of neighbouring columns on grids on a CPU: blocks that are summed exactly and blocks that are rounded
/// have the bits of the definition.
#include "operation/reduction_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"

namespace samesum::cpu {
namespace {

using namespace testing_support;

std::vector<const Method*> sums_on_a_grid() {
  std::vector<const Method*> chosen;
  for (const Method* m : reductions_of("cpu"))
    if (m->accumulator == "fixed_point" && (m->operation == "sum" || m->operation == "dot"))
      chosen.push_back(m);
  return chosen;
}

/// Data of columns: element(row, column) for each.
std::vector<Dataset> data(std::size_t rows, std::size_t columns) {
  const std::vector<double> u = uniform(rows * columns, 29);
  const auto of = [&](auto element) {
    std::vector<double> x;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) x.push_back(element(r, c, u[r * columns + c]));
    return x;
  };
  return {{"uniform", u},
          {"60 binades", wide(rows * columns, 60, 4)},
          {"blocks of small elements",
           of([](std::size_t r, std::size_t, double e) { return std::ldexp(e, r / 64 % 2 ? -50 : 0); })},
          {"a large element in the last row of a column",
           of([=](std::size_t r, std::size_t c, double e) { return c == 3 && r + 1 == rows ? 0x1p80 : e; })},
          {"infinities and NaN in the last rows", of([=](std::size_t r, std::size_t c, double e) {
             return r + 2 < rows || c % 4 != 0 ? e : c % 8 == 0 ? NAN : r % 2 ? INFINITY : -INFINITY;
           })},
          {"zeros, ties and equal elements", of([](std::size_t r, std::size_t c, double) {
             return c % 3 == 0 ? -0.0 : c % 3 == 1 ? 1.25 : std::ldexp(r % 2 ? 1.5 : -0.5, -30);
           })},
          {"subnormal elements",
           of([](std::size_t, std::size_t c, double e) { return std::ldexp(e, c % 2 ? -1070 : -146); })}};
}

TEST(ColumnsOnAGrid, HaveTheBitsOfTheirReferenceWithEveryInstructionSet) {
  const InstructionSet before = instruction_set();
  std::size_t k = 0;
  constexpr std::pair<std::size_t, std::size_t> shapes[] = {{1, 9}, {65, 40}, {300, 8}, {2200, 9}};
  for (const auto& [rows, columns] : shapes) {
    if (is_sanitized && rows > 300) continue;
    const Layout layout = Layout::axis(1, rows, columns);
    for (const Dataset& d : data(rows, columns))
      for (const FormatInfo& input : formats) {
        const Array x{input, d.x}, y{input, {d.x.rbegin(), d.x.rend()}, 1};
        for (const Method* m : sums_on_a_grid()) {
          if (m->format != &input && m->format != &format_info<fp32>()) continue;
          for (const std::optional<int> grid : {std::optional<int>{}, {-30}, {-70}, {2}}) {
            if (is_sanitized && k++ % 3 != 0) continue;  // methods take the grids in turn
            const auto bits = [&](const Method& of) -> Bits {
              try {
                return reduce_all(of, x.values(), y.values(), layout, {.threads = 1, .grid = grid});
              } catch (const std::overflow_error&) {
                return {};
              }
            };
            const Bits expected = bits(reference_of(*m));
            for (const InstructionSet set : instruction_sets) {
              if (!is_supported(set)) continue;
              force(set);
              ASSERT_EQ(bits(*m), expected)
                  << m->name << " of " << d.name << " in " << input.name << ", " << rows << " x " << columns
                  << ", grid " << grid.value_or(9999) << ", " << name_of(set);
            }
            force(before);
          }
        }
      }
  }
}

}  // namespace
}  // namespace samesum::cpu
