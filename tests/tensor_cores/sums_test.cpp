/// Tests of sums by matrix units: the definition, its bound, and the places of elements in the kernels.
#include "tensor_cores/sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "harness/dataset.hpp"
#include "harness/random.hpp"
#include "harness/truth.hpp"

namespace samesum::tensor_cores {
namespace {

template <class T> std::vector<T> data(const char* name, std::size_t n, std::uint64_t seed = 1) {
  const harness::Column column = harness::datasets_matching(name).front()->make(format_info<T>(), n, seed);
  const auto x = column.values().template as<T>();
  return {x.begin(), x.end()};
}

template <class T> float model_sum(const std::vector<T>& x) {
  return sum_by_unit_model(std::span<const T>{x});
}

/// What the kernel that adds the sums of pieces makes of them.
std::vector<float> added(std::vector<float> sums, std::size_t outer, std::size_t inner) {
  while (sums.size() > outer * inner) {
    const SumWork work{outer, sums.size() / outer / inner, inner};
    std::vector<float> parts;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const SumWork::Sums s = work.sums(i);
      parts.push_back(add_two_levels(s.n, [&](std::size_t k) { return sums.at(s.first + k * s.stride); }));
    }
    sums = parts;
  }
  return sums;
}

/// One instruction in integers: all terms in units of 2^(e - 25), e the largest exponent.
float instruction_in_integers(float c, const std::vector<double>& x, int min_exponent) {
  const auto exponent = [](double v, int least) {
    return std::max(v == 0 ? -10000 : std::ilogb(v), v == 0 ? -10000 : least);
  };
  int e = std::max(-133, exponent(c, -126));
  for (const double v : x) e = std::max(e, exponent(v, min_exponent));
  std::int64_t sum = std::int64_t(std::ldexp(double(c), 25 - e));
  for (const double v : x) sum += std::int64_t(std::ldexp(v, 25 - e));
  std::uint64_t magnitude = std::uint64_t(std::abs(sum));
  const int dropped = std::max(0, int(std::bit_width(magnitude)) - 24);
  magnitude = magnitude >> dropped << dropped;
  return float(std::ldexp(sum < 0 ? -double(magnitude) : double(magnitude), e - 25));
}

template <class T> float sum_in_integers(const std::vector<T>& x) {
  std::vector<float> sums;
  for (std::size_t begin = 0; begin < x.size(); begin += 128) {
    float sum = 0;
    for (std::size_t step = begin; step < begin + 128; step += 32)
      for (std::size_t half = 0; half < 2; ++half) {
        std::vector<double> chosen;
        for (std::size_t four = step + 4 * half; four < step + 32; four += 8)
          for (std::size_t i = four; i < four + 4 && i < x.size(); ++i) chosen.push_back(double(x[i]));
        sum = instruction_in_integers(sum, chosen, Format<T>::min_exponent);
      }
    sums.push_back(sum);
  }
  for (; sums.size() > 1; sums.resize((sums.size() + 7) / 8))
    for (std::size_t k = 0; k < sums.size(); ++k) {
      if (k % 8 == 0)
        sums[k / 8] = sums[k];
      else
        sums[k / 8] += sums[k];
    }
  return sums.empty() ? 0 : sums[0];
}

template <class T> void expect_integers() {
  for (const char* name : {"normal", "uniform", "60 binades"})
    for (const std::size_t n : {0, 1, 4, 5, 16, 31, 32, 100, 128, 129, 1000, 1024, 1025, 9000}) {
      const std::vector<T> x = data<T>(name, n);
      EXPECT_EQ(to_bits(model_sum(x)), to_bits(sum_in_integers(x))) << name << ' ' << n;
    }
}

TEST(SumsByUnits, AreThoseOfIntegers) {
  expect_integers<fp16>();
  expect_integers<bf16>();
  std::vector<bf16> small(300);  // subnormal numbers, and the smallest normal ones
  for (std::size_t i = 0; i < small.size(); ++i) small[i].bits = std::uint16_t(i | (i % 3 == 0 ? 0x8000 : 0));
  EXPECT_EQ(to_bits(model_sum(small)), to_bits(sum_in_integers(small)));
}

/// 2^11, and 127 elements just below 2^-14, which are lost beside it.
std::vector<fp16> one_large_element(std::size_t place) {
  std::vector<fp16> x(of_tile);
  for (fp16& e : x) e.bits = 0x3ff;
  x[place] = fp16{0x1p11f};
  return x;
}

TEST(SumsByUnits, DependOnTheOrderOfInstructionsButNotOfTheElementsOfOne) {
  std::vector<fp16> x = data<fp16>("60 binades", of_tile);
  const float sum = model_sum(x);
  std::swap(x[0], x[27]);
  std::swap(x[9], x[2]);
  EXPECT_EQ(to_bits(model_sum(x)), to_bits(sum));
  EXPECT_EQ(model_sum(one_large_element(0)), 0x1p11f);
  EXPECT_EQ(model_sum(one_large_element(27)), 0x1p11f);
  EXPECT_GT(model_sum(one_large_element(127)), 0x1p11f);
}

/// |result - sum| / sum of |x|.
template <class T> double relative_error(const std::vector<T>& x) {
  const harness::Truth truth{Values{x}};
  return truth.error_of(Number::of(model_sum(x))).absolute / truth.magnitudes_rounded_up();
}

template <class T> void expect_bound() {
  for (const harness::Dataset& d : harness::datasets()) {
    if (!d.fits(format_info<T>())) continue;
    for (const std::size_t n : {3, 17, 100, 1000, 20000}) {
      const harness::Column column = d.make(format_info<T>(), n, 3);
      const harness::Truth truth{column.values()};
      const float sum = sum_by_unit_model(column.values().template as<T>());
      EXPECT_TRUE(!std::isfinite(sum) ||
                  truth.within(unit_sum_bound(n) * truth.magnitudes_rounded_up(), Number::of(sum)))
          << d.name << ' ' << n;
    }
  }
}

TEST(SumsByUnits, KeepTheirBoundOnAllData) {
  expect_bound<fp16>();
  expect_bound<bf16>();
}

TEST(SumsByUnits, ComeWithinAFactorOfTwoOfTheirBound) {
  const double error = relative_error(one_large_element(0));
  EXPECT_GT(error, unit_sum_bound(of_tile) / 2);
  EXPECT_LT(error, unit_sum_bound(of_tile));
}

TEST(SumsByUnits, StagnateInOneLongChainButNotInTheirOrder) {
  const std::vector<bf16> ones(of_instruction, bf16{1.0f}), larger(of_instruction, bf16{1.5f});
  const auto added_to = [](float c, const std::vector<bf16>& x) {
    return to_bits(add_by_unit(c, std::span<const bf16>{x}));
  };
  EXPECT_EQ(added_to(0x1p25f, ones), 0x4c000004u);
  EXPECT_EQ(added_to(0x1p25f, larger), 0x4c000004u);  // each 1.5 is cut to 1
  EXPECT_EQ(added_to(0x1p26f - 16, ones), 0x4c800000u);
  EXPECT_EQ(added_to(0x1p26f, ones), 0x4c800000u);  // each 1 is cut to 0
  EXPECT_EQ(added_to(-0x1p26f, larger), 0xcc800000u);
  EXPECT_EQ(model_sum(std::vector<bf16>(std::size_t{1} << 16, bf16{1.0f})), 0x1p16f);
  std::vector<float> tiles(std::size_t{1} << 21, float{of_tile});  // of 2^28 ones
  EXPECT_EQ(added(tiles, 1, 1).at(0), 0x1p28f);
}

TEST(SumsByUnits, CutEachElementAndEachSumTowardsZero) {
  std::vector<fp16> x(of_tile, fp16{0x1.554p-4f});
  x[0] = fp16{0x1p14f};
  // In units of 2^-11, an element is 170.625; the sum keeps multiples of 4: 637 of the first 15, 680 of
  // each 16.
  EXPECT_EQ(to_bits(model_sum(x)), 0x46800000u + 637 + 7 * 680);
}

TEST(SumsByUnits, OfSpecialValuesAreThoseOfTheUnit) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(model_sum(std::vector<fp16>{fp16{1.0f}, fp16{infinity}}), infinity);
  std::vector<fp16> both(1000, fp16{infinity});
  both[999] = fp16{-infinity};
  EXPECT_EQ(to_bits(model_sum(both)), 0x7fffffffu);
  EXPECT_EQ(to_bits(model_sum(std::vector<bf16>(200, bf16{-0.0f}))), 0u);
}

TEST(BoundsOfSumsByUnits, GrowWithTheChainOfATileAndTheAdditionsOfTiles) {
  EXPECT_NEAR(unit_sum_bound(4) * 0x1p24, 10, 1e-3);
  EXPECT_NEAR(unit_sum_bound(32) * 0x1p24, 20, 1e-3);
  EXPECT_NEAR(unit_sum_bound(128) * 0x1p24, 80, 1e-3);
  EXPECT_NEAR(unit_sum_bound(1024) * 0x1p24, 87, 1e-3);
  EXPECT_NEAR(unit_sum_bound(std::size_t{1} << 26) * 0x1p24, 80 + 6 * 7 + 1, 1e-3);
}

/// The result of each row, as the kernels compute it; elements are checked to be read once, by the right
/// instruction.
std::vector<float> sums_of_rows(const std::vector<bf16>& x, std::size_t outer, std::size_t n, int tiles,
                                int warps) {
  const RowWork work{outer, n, tiles, warps};
  std::vector<int> reads(outer * n);
  std::vector<float> sums(work.all_pieces(), -1);
  for (std::size_t block = 0; block < work.blocks; ++block) {
    std::vector<float> of_slots;
    for (int i = 0; i < 16 * warps; ++i) {
      const Slot slot = work.slot(block, i);
      float total = 0;
      for (int tile = 0; tile < work.tiles; ++tile) {
        const std::size_t first = slot.begin + std::size_t(tile) * of_tile;
        for (int step = 0; step < steps_of_tile; ++step)
          for (int thread = 0; thread < 4; ++thread)
            for (std::size_t k = 0; k < 8; ++k) {
              const std::size_t at = first + element_in_row(step, thread) + k;
              if (at >= slot.end) continue;
              ++reads[slot.row * n + at];
              EXPECT_EQ(instruction_of(at % of_tile), 2 * step + int(k / 4));
            }
        if (first < slot.end)
          total += tile_sum_by_unit(
              std::span<const bf16>{x}.subspan(slot.row * n + first, std::min(of_tile, slot.end - first)));
      }
      of_slots.push_back(total);
    }
    for (int i = 0; i < work.pieces_of_block; ++i)
      if (const std::size_t piece = block * std::size_t(work.pieces_of_block) + std::size_t(i);
          piece < sums.size())
        sums[piece] = add_two_levels(std::size_t(work.slots()), [&](std::size_t k) {
          return of_slots[std::size_t(i * work.slots()) + k];
        });
  }
  EXPECT_EQ(reads, std::vector<int>(outer * n, 1));
  return sums;
}

TEST(KernelsOfSumsByUnits, AddEachElementOfARowOnceInTheOrderOfTheDefinition) {
  struct Case {
    std::size_t outer, n;
  };
  for (const Case c : {Case{3, 0},
                       {1, 1},
                       {40, 7},
                       {130, 32},
                       {65, 100},
                       {33, 128},
                       {5, 129},
                       {17, 1024},
                       {9, 1025},
                       {5, 2100},
                       {3, 8192},
                       {2, 8193},
                       {3, 20000},
                       {2, 66000},
                       {1, 140001},
                       {1, 530000}}) {
    const std::vector<bf16> x = data<bf16>("normal", c.outer * c.n);
    std::vector<float> expected;
    for (std::size_t row = 0; row < c.outer; ++row)
      expected.push_back(sum_by_unit_model(std::span<const bf16>{x}.subspan(row * c.n, c.n)));
    for (const int tiles : {1, 8})
      for (const int warps : {4, 8})
        EXPECT_EQ(added(sums_of_rows(x, c.outer, c.n, tiles, warps), c.outer, 1), expected)
            << c.outer << " x " << c.n << ", " << tiles << " tiles, " << warps << " warps";
  }
}

TEST(KernelsOfSumsByUnits, AddEachElementOfAColumnOnceInTheOrderOfTheDefinition) {
  struct Case {
    std::size_t outer, n, inner;
  };
  for (const Case c :
       {Case{2, 0, 3}, {1, 1, 2}, {3, 5, 70}, {1, 100, 64}, {2, 129, 130}, {1, 1025, 9}, {1, 70000, 2}}) {
    const ColumnWork work{c.outer, c.n, c.inner};
    const std::vector<bf16> x = data<bf16>("normal", c.outer * c.n * c.inner);
    std::vector<int> reads(x.size());
    std::vector<float> sums(c.outer * work.pieces * c.inner, -1), expected;
    for (std::uint32_t block = 0; block < work.blocks; ++block) {
      const ColumnWork::Place place = work.place(block);
      std::map<std::size_t, std::vector<float>> tiles;  // of each column
      for (std::size_t tile = 0; tile < arity; ++tile) {
        const std::size_t first = (place.piece * arity + tile) * of_tile;
        for (std::size_t lane = 0; lane < 32; ++lane)
          for (std::size_t column = place.first_column + lane / 4 * 8, q = 0; q < 8; ++q, ++column) {
            if (column >= c.inner) continue;
            for (int instruction = 0; instruction < instructions_of_tile; ++instruction)
              for (int r = 0; r < 4; ++r) {
                const std::size_t at = element_in_column(instruction, int(lane % 4), r);
                EXPECT_EQ(instruction_of(at), instruction);
                if (first + at < c.n) ++reads[(place.array * c.n + first + at) * c.inner + column];
              }
            if (lane % 4 != 0) continue;
            std::vector<bf16> elements;
            for (std::size_t row = first; row < std::min(c.n, first + of_tile); ++row)
              elements.push_back(x[(place.array * c.n + row) * c.inner + column]);
            tiles[column].push_back(tile_sum_by_unit(std::span<const bf16>{elements}));
          }
      }
      for (const auto& tile : tiles)
        sums[(place.array * work.pieces + place.piece) * c.inner + tile.first] =
            add_two_levels(arity, [&](std::size_t k) { return tile.second[k]; });
    }
    EXPECT_EQ(reads, std::vector<int>(x.size(), 1));
    for (std::size_t i = 0; i < c.outer * c.inner; ++i) {
      std::vector<bf16> column;
      for (std::size_t k = 0; k < c.n; ++k)
        column.push_back(x[(i / c.inner * c.n + k) * c.inner + i % c.inner]);
      expected.push_back(model_sum(column));
    }
    EXPECT_EQ(added(sums, c.outer, c.inner), expected) << c.outer << " x " << c.n << " x " << c.inner;
  }
}

}  // namespace
}  // namespace samesum::tensor_cores
