/// Sums and extrema of integers: those of a plain loop over 128 bits, for every type, instruction set, order
/// of axes and mask.
#include "samesum/backend/cpu/integers/integers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {
namespace {

/// What is expected of one result.
struct OneResult {
  Int128 sum{};
  std::ptrdiff_t smallest = -1, largest = -1;  ///< the first indices; -1 if no element takes part
};

/// A matrix, one of whose axes is reduced.
template <class T> struct IntegerMatrix {
  std::vector<T> x;
  std::vector<std::uint8_t> where;
  std::size_t rows, columns;
  bool by_rows, selects, turned;  ///< `turned`: the axes are read backwards
  bool repeats;                   ///< whether all rows are the same one in memory
  bool has_booleans = false;

  std::size_t results() const { return by_rows ? rows : columns; }
  std::size_t place(std::size_t result, std::size_t k) const {
    const std::size_t row = by_rows ? result : k, at = (repeats ? 0 : row * columns) + (by_rows ? k : result);
    return turned ? x.size() - 1 - at : at;
  }
  IntegerArray array() const {
    const std::ptrdiff_t c = repeats ? 0 : static_cast<std::ptrdiff_t>(columns);
    const std::ptrdiff_t sign = turned ? -1 : 1;
    const std::size_t first = turned ? x.size() - 1 : 0;
    return {has_booleans ? IntegerType::boolean : static_cast<IntegerType>(IntegerTypes::index_of<T>()),
            x.data() + first,
            selects ? where.data() + first : nullptr,
            {{rows, sign * c, sign * c, !by_rows}, {columns, sign, sign, by_rows}}};
  }
  OneResult expected(std::size_t result) const {
    OneResult all;
    for (std::size_t k = 0; k < (by_rows ? columns : rows); ++k) {
      const std::size_t at = place(result, k);
      if (selects && !where[at]) continue;
      all.sum.add(Int128::of(static_cast<Wide>(x[at])));
      const auto is_better = [&](std::ptrdiff_t best, auto better) {
        return best < 0 || better(x[at], x[place(result, static_cast<std::size_t>(best))]);
      };
      if (is_better(all.smallest, std::less{})) all.smallest = static_cast<std::ptrdiff_t>(k);
      if (is_better(all.largest, std::greater{})) all.largest = static_cast<std::ptrdiff_t>(k);
    }
    return all;
  }
};

template <class T> void expect_exact(const IntegerMatrix<T>& m) {
  using Sum = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  bool is_absent[2] = {}, are_indices_absent[2] = {}, expected_absence = false;
  std::vector<Sum> sums(m.results());
  std::vector<T> extrema[2]{std::vector<T>(m.results()), std::vector<T>(m.results())};
  std::vector<std::int64_t> indices[2]{std::vector<std::int64_t>(m.results()),
                                       std::vector<std::int64_t>(m.results())};
  const bool overflows = sum_integers(m.array(), sums.data());
  bool expected_overflow = false;
  for (const bool smallest : {false, true}) {
    is_absent[smallest] = extrema_of_integers(m.array(), smallest, extrema[smallest].data());
    are_indices_absent[smallest] = indices_of_extrema(m.array(), smallest, indices[smallest].data());
  }
  for (std::size_t r = 0; r < m.results(); ++r) {
    const OneResult right = m.expected(r);
    ASSERT_EQ(static_cast<std::uint64_t>(sums[r]), right.sum.word[0]) << r;
    expected_overflow |= right.sum != Int128::of(static_cast<Wide>(sums[r]));
    expected_absence |= right.largest < 0;
    for (const bool smallest : {false, true}) {
      const std::ptrdiff_t index = smallest ? right.smallest : right.largest;
      ASSERT_EQ(indices[smallest][r], index) << r;
      if (index >= 0) {
        ASSERT_EQ(extrema[smallest][r], m.x[m.place(r, static_cast<std::size_t>(index))]) << r;
      }
    }
  }
  EXPECT_EQ(overflows, expected_overflow);
  for (const bool smallest : {false, true}) {
    EXPECT_EQ(is_absent[smallest], expected_absence);
    EXPECT_EQ(are_indices_absent[smallest], expected_absence);
  }
}

TEST(Integers, HaveTheSumsAndExtremaOfAPlainLoopWithEveryInstructionSet) {
  const InstructionSet before = instruction_set();
  std::mt19937_64 random{1};
  for (const InstructionSet set : instruction_sets) {
    if (!is_supported(set)) continue;
    force(set);
    IntegerTypes::for_each([&]<class T>() {
      for (const auto& [rows, columns] :
           {std::pair<std::size_t, std::size_t>{300, 5}, {5, 700}, {65, 130}, {1, 1}})
        for (int k = 0; k < 32; ++k) {
          IntegerMatrix<T> m{std::vector<T>(rows * columns),
                             {},
                             rows,
                             columns,
                             (k & 1) != 0,
                             (k & 2) != 0,
                             (k & 4) != 0,
                             (k & 16) != 0};
          for (T& x : m.x) {
            x = static_cast<T>(random());
            // Numbers at both limits have sums beyond 64 bits, and repeat the extrema.
            if (k & 8) x = random() % 4 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
          }
          m.where.resize(m.x.size());
          for (std::uint8_t& flag : m.where) flag = static_cast<std::uint8_t>(random() % 3);
          expect_exact(m);
          if constexpr (std::is_same_v<T, std::uint8_t>) {
            m.has_booleans = true;
            for (T& x : m.x) x &= 1;
            expect_exact(m);
          }
        }
    });
  }
  force(before);
}

TEST(Integers, OfNoElementsHaveTheSumZeroAndNoExtremum) {
  const std::int32_t x[] = {7, 8};
  const std::uint8_t where[] = {1, 0};
  const IntegerArray none{IntegerType::int32, x, nullptr, {{2, 1, 1, false}, {0, 1, 1, true}}},
      one{IntegerType::int32, x, where, {{2, 1, 1, false}}};
  std::int64_t sums[2] = {1, 1};
  std::int32_t largest[2];
  EXPECT_FALSE(sum_integers(none, sums));
  EXPECT_EQ(sums[0], 0);
  EXPECT_EQ(sums[1], 0);
  EXPECT_TRUE(extrema_of_integers(none, false, largest));
  EXPECT_TRUE(indices_of_extrema(one, false, sums));
  EXPECT_EQ(sums[0], 0);
  EXPECT_EQ(sums[1], -1);
}

TEST(Integers, AreSummedInMoreThan64BitsOverManyRepetitions) {
  // An axis along which all elements are one.
  const std::int8_t x = -128;
  const IntegerArray many{IntegerType::int8, &x, nullptr, {{70000, 0, 0, true}, {3, 0, 0, true}}};
  std::int64_t sum;
  EXPECT_FALSE(sum_integers(many, &sum));
  EXPECT_EQ(sum, -128 * 210000);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const IntegerArray two{IntegerType::int64, &least, nullptr, {{2, 0, 0, true}}};
  EXPECT_TRUE(sum_integers(two, &sum));
}

}  // namespace
}  // namespace samesum::cpu
