/// States for loops and kernels of the caller have the bits of the library, for any order, partition and
/// number of threads. cuda_states_test.cu runs them on a GPU.
#include "samesum/states.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "states_support.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

/// The bits of the library's sum; none if it overflows its grid.
template <class T>
std::optional<BitsOf<T>> library_sum(const std::string& accumulator, const std::vector<T>& x,
                                     std::optional<int> grid = {}) {
  const Method& m = find("sum/" + accumulator + "/" + std::string{Format<T>::name} + "@cpu");
  try {
    return static_cast<BitsOf<T>>(m(Values{x}, {.grid = grid}).bits);
  } catch (const std::overflow_error&) {
    return {};
  }
}

/// Adds x to states in several ways: in turn, backwards, in parts that are merged, and by threads that share
/// a state. add(state, x, atomically) adds an element. Visits each state, with a description.
template <class State, class T, class Add, class Visit>
void for_each_way(const std::vector<T>& x, Add add, Visit visit) {
  State in_turn{}, backwards{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    add(in_turn, x[i], false);
    add(backwards, x[x.size() - 1 - i], true);
  }
  visit(in_turn, "in turn");
  visit(backwards, "backwards, atomically");

  std::vector<State> parts(7, State{});
  for (std::size_t i = 0; i < x.size(); ++i) add(parts[i * i % parts.size()], x[i], i % 2 == 0);
  State merged{}, merged_atomically{};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    merged.merge(parts[p]);
    merged_atomically.atomic_merge(parts[parts.size() - 1 - p]);
  }
  visit(merged, "in parts");
  visit(merged_atomically, "in parts, merged atomically");

  if (x.size() < 10) return;  // too few elements for threads to overlap
  State shared{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < x.size(); i += 3) add(shared, x[i], true);
    });
  for (std::thread& thread : threads) thread.join();
  visit(shared, "by three threads");
}

template <class T> class StatesOf : public ::testing::Test {};
using EveryFormat = ::testing::Types<fp16, bf16, fp32, fp64>;
TYPED_TEST_SUITE(StatesOf, EveryFormat);

TYPED_TEST(StatesOf, ExactSumsHaveTheBitsOfTheLibraryInEveryOrderAndByThreads) {
  using T = TypeParam;
  for (const std::size_t n : {0, 1, 2, 37, 1000})
    for (const auto& [name, x] : state_datasets<T>(n)) {
      Exact expected;
      expected.add(std::span<const T>{x});
      EXPECT_EQ(library_sum<T>("exact", x), to_bits(expected.result<T>())) << name;
      for_each_way<ExactState<T>>(
          x, [](auto& state, T e, bool atomically) { atomically ? state.atomic_add(e) : state.add(e); },
          [&, &name = name](const ExactState<T>& state, const char* way) {
            Formats::for_each([&]<class F>() {
              EXPECT_EQ(to_bits(state.template finish<F>()), to_bits(expected.result<F>()))
                  << name << ", n = " << n << ", " << way << ", as " << Format<F>::name;
            });
            EXPECT_EQ(state.exact().serialise(), expected.serialise())
                << name << ", n = " << n << ", " << way;
            ExactState<fp64> all{};
            all.merge(state);
            EXPECT_EQ(all.exact().serialise(), expected.serialise()) << name << ", n = " << n << ", " << way;
          });
    }
}

TYPED_TEST(StatesOf, SumsOnAGridHaveTheBitsAndTheOverflowsOfTheLibraryByThreads) {
  using T = TypeParam;
  int overflows = 0;
  for (const std::size_t n : {0, 1, 2, 37, 1000})
    for (const auto& [name, x] : state_datasets<T>(n))
      for (const int grid : {-140, -70, -61, -36, -3, 0, 9}) {
        const auto expected = library_sum<T>("fixed_point", x, grid);
        overflows += !expected;
        for_each_way<FixedPointState>(
            x,
            [=](auto& state, T e, bool atomically) {
              atomically ? state.atomic_add(e, grid) : state.add(e, grid);
            },
            [&, &name = name](const FixedPointState& state, const char* way) {
              EXPECT_EQ(state.overflows<T>(n), !expected) << name << ", n = " << n << ", " << way;
              EXPECT_EQ(to_bits(state.finish<T>(grid, n)), expected.value_or(Format<T>::canonical_nan))
                  << name << ", n = " << n << ", " << way << ", grid " << grid;
            });
      }
  EXPECT_GT(overflows, 10);
}

/// A window that holds all elements, or one that holds few of them.
template <int words, class T>
void expect_window(const std::string& name, const std::vector<T>& x, const ExponentWindow& window) {
  ASSERT_GE(WindowState<words>::most_terms(window), x.size());
  const bool held = std::ranges::all_of(x, [&](T e) { return window.holds(e); });
  const BitsOf<T> exact = *library_sum<T>("exact", x);
  ExactState<T> beside{};
  for (const T e : x)
    if (!window.holds(e)) beside.add(e);
  for_each_way<WindowState<words>>(
      x,
      [&](auto& state, T e, bool atomically) {
        EXPECT_EQ(atomically ? state.atomic_add(e, window) : state.add(e, window), window.holds(e));
      },
      [&](const WindowState<words>& state, const char* way) {
        EXPECT_EQ(state.fell_outside(), !held) << name << ", " << way;
        const bool is_special = (state.flags & SumFlags::special_flags) != 0;
        EXPECT_EQ(to_bits(state.template finish<T>(window)),
                  held || is_special ? exact : Format<T>::canonical_nan)
            << name << ", " << way << ", " << words << " words";
        // What the window holds, and what it does not, is everything.
        for (const bool atomically : {false, true}) {
          ExactState<T> grown = beside;
          atomically ? grown.atomic_merge(state, window) : grown.merge(state, window);
          EXPECT_EQ(to_bits(grown.template finish<T>()), exact) << name << ", " << way;
        }
      });
}

TYPED_TEST(StatesOf, SumsInAWindowAreExactOrSayWhatIsMissingByThreads) {
  using T = TypeParam;
  for (const std::size_t n : {0, 1, 2, 37, 1000})
    for (const auto& [name, x] : state_datasets<T>(n)) {
      expect_window<1, T>(name, x, {-30, 20});
      expect_window<2, T>(name, x, {-80, 30});
      expect_window<2, T>(name, x, {-6, 3});
      expect_window<2, T>(name, x, {Format<T>::min_quantum, Format<T>::min_quantum + 60});
      expect_window<3, T>(name, x, {Format<T>::max_exponent - 150, Format<T>::max_exponent + 1});
      expect_window<3, T>(name, x, {-100, 40});
    }
}

TYPED_TEST(StatesOf, SpecialElementsHaveTheResultsOfTheLibrary) {
  using T = TypeParam;
  const T infinity = from_bits<T>(Format<T>::infinity),
          minus_infinity = from_bits<T>(BitsOf<T>(Format<T>::infinity | Format<T>::sign_bit)),
          nan = from_bits<T>(BitsOf<T>(Format<T>::infinity | Format<T>::sign_bit | 1)),
          minus_zero = from_bits<T>(Format<T>::sign_bit), zero{}, one = convert<T>(1.0),
          smallest = from_bits<T>(BitsOf<T>{1}), largest = from_bits<T>(BitsOf<T>(Format<T>::infinity - 1)),
          minus_smallest = from_bits<T>(BitsOf<T>(Format<T>::sign_bit | 1));
  const ExponentWindow all{Format<T>::min_quantum, Format<T>::min_quantum + 120}, none{-2, -1};
  for (const std::vector<T>& x : std::vector<std::vector<T>>{{},
                                                             {minus_zero},
                                                             {minus_zero, minus_zero},
                                                             {minus_zero, zero},
                                                             {nan},
                                                             {one, nan, one},
                                                             {infinity, one},
                                                             {minus_infinity, minus_zero},
                                                             {infinity, minus_infinity},
                                                             {largest, largest},
                                                             {largest, largest, minus_infinity},
                                                             {smallest, minus_zero},
                                                             {minus_smallest, minus_smallest},
                                                             {smallest, minus_smallest}}) {
    const BitsOf<T> exact = *library_sum<T>("exact", x);
    ExactState<T> state{};
    WindowState<2> window{}, outside{};
    FixedPointState fixed_point{};
    const int grid = Format<T>::min_quantum;
    for (const T e : x) {
      state.add(e);
      window.add(e, all);
      outside.add(e, none);
      fixed_point.add(e, grid);
    }
    const auto in_turn = ::testing::PrintToString(x.size()) + " elements, the first with bits " +
                         std::to_string(x.empty() ? 0 : to_bits(x[0]));
    EXPECT_EQ(to_bits(state.template finish<T>()), exact) << in_turn;
    if (!window.fell_outside()) {
      EXPECT_EQ(to_bits(window.template finish<T>(all)), exact) << in_turn;
    }
    const bool is_special = (outside.flags & SumFlags::special_flags) != 0;
    EXPECT_EQ(to_bits(outside.template finish<T>(none)),
              is_special || !outside.fell_outside() ? exact : Format<T>::canonical_nan)
        << in_turn;
    EXPECT_EQ(to_bits(fixed_point.template finish<T>(grid, x.size())),
              library_sum<T>("fixed_point", x, grid).value_or(Format<T>::canonical_nan))
        << in_turn;
  }
}

// Every digit passes on what exceeds it many times, in the range of threads.
TYPED_TEST(StatesOf, ManyOfTheLargestElementsCarryByThreads) {
  using T = TypeParam;
  const auto bits = BitsOf<T>(Format<T>::infinity - 1);
  const T largest = from_bits<T>(bits), opposite = from_bits<T>(BitsOf<T>(bits | Format<T>::sign_bit)),
          odd = from_bits<T>(BitsOf<T>{Format<T>::sign_bit | 0x7f});
  const int n = is_sanitized ? 3000 : 30'000;
  ExactState<T> state{}, alone{};
  Exact expected;
  const auto elements = [&](int t, auto add) {
    for (int i = 0; i < n; ++i) {
      add(largest);
      add(t < 2 ? odd : from_bits<T>(BitsOf<T>(i + 1)));
      if (i % 3 == t) add(opposite);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] { elements(t, [&](T x) { state.atomic_add(x); }); });
    elements(t, [&](T x) {
      alone.add(x);
      expected.add(x);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(state.exact().serialise(), expected.serialise());
  EXPECT_EQ(alone.exact().serialise(), expected.serialise());
  constexpr std::int64_t most = std::int64_t{1} << (DigitCarry::bits - 1);
  for (int i = 0; i + 1 < state.digit_count; ++i) {
    EXPECT_LE(-most, state.digits[i]) << i;
    EXPECT_LT(state.digits[i], most) << i;
    EXPECT_EQ(state.digits[i], alone.digits[i]) << i;  // the digits do not depend on the order either
  }
}

TYPED_TEST(StatesOf, AnExactStateHoldsTheSumOf2To63OfTheLargestElements) {
  using T = TypeParam;
  const T largest = from_bits<T>(BitsOf<T>(Format<T>::infinity | Format<T>::sign_bit) - 1);
  ExactState<T> state{};
  Exact expected;
  state.add(largest);
  expected.add(largest);
  for (int i = 0; i < 63; ++i) {
    state.merge(ExactState<T>{state});
    expected.merge(Exact{expected});
  }
  EXPECT_EQ(state.exact().serialise(), expected.serialise());
  EXPECT_EQ(state.template finish<fp64>(), expected.result<fp64>());
}

TEST(AWindow, MayBeFull) {
  // 2^23 elements just below 2^20 in units of 2^-20: the integer of 64 bits has room for one more binade.
  constexpr ExponentWindow window{-20, 20};
  using State = WindowState<1>;
  EXPECT_EQ(State::most_terms(window), std::uint64_t{1} << 23);
  for (const float element : {0x1.fffffep19f, -0x1.fffffep19f}) {
    State state{};
    EXPECT_TRUE(state.add(element, window));
    for (int i = 0; i < 23; ++i) state.merge(State{state});
    EXPECT_EQ(state.finish<float>(window), element * 0x1p23f);
    EXPECT_FALSE(state.fell_outside());
  }
  EXPECT_FALSE(window.holds(0x1p20f));
  EXPECT_FALSE(window.holds(-0x1p20));
  EXPECT_TRUE(window.holds(0x1p-20f));
  EXPECT_FALSE(window.holds(0x1p-21f));
  EXPECT_FALSE(window.holds(1 + 0x1p-21));
  EXPECT_FALSE(window.holds(0x1p-1074));
  EXPECT_EQ(WindowState<2>::most_terms({-60, 3}), ~std::uint64_t{0});
  EXPECT_EQ(WindowState<2>::most_terms({-60, 67}), 1u);
  EXPECT_EQ(WindowState<2>::most_terms({-60, 68}), 0u);
}

TEST(AnUpperHalfOfADigit, TellsTheCarryOfTheWholeDigit) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 100'000; ++i) {
    const auto digit = static_cast<std::int64_t>(random()) >> (2 + i % 60);
    EXPECT_EQ(DigitCarry::of_upper(static_cast<std::int32_t>(digit >> 32)), DigitCarry::of(digit)) << digit;
  }
}

// What a GPU does in shared memory, by threads of a CPU.
TEST(AWordThatThreadsAddToInHalves, CarriesAsOftenAsAWholeWord) {
  const int count = 3, n = is_sanitized ? 3000 : 50'000;
  std::uint64_t word = 0, expected_word = 0;
  std::int64_t digit = 0, expected_digit = 0, wraps = 0, expected_wraps = 0, carries = 0,
               expected_carries = 0;
  const auto elements = [&](int t, auto add) {
    std::mt19937_64 random{static_cast<std::uint64_t>(t)};
    for (int i = 0; i < n; ++i) {
      const std::uint64_t bits = random();
      add(i % 5 == 0   ? bits | 0xffff'ffff'0000'0000
          : i % 7 == 0 ? bits & 0xffff'ffff
                       : bits,
          static_cast<std::int64_t>(bits) >> (22 + i % 40));
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    elements(t, [&](std::uint64_t x, std::int64_t part) {
      expected_wraps += Alone::add(expected_word, x);
      expected_carries += Alone::add(expected_digit, part).carry;
    });
    threads.emplace_back([&, t] {
      std::int64_t own_wraps = 0, own_carries = 0;
      elements(t, [&](std::uint64_t x, std::int64_t part) {
        own_wraps += AtomicallyInHalves::add(word, x);
        own_carries += AtomicallyInHalves::add(digit, part).carry;
      });
      std::atomic_ref{wraps} += own_wraps;
      std::atomic_ref{carries} += own_carries;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word, expected_word);
  EXPECT_EQ(wraps, expected_wraps);
  EXPECT_EQ(digit, expected_digit);
  EXPECT_EQ(carries, expected_carries);
  EXPECT_NE(carries, 0);
}

TEST(AState, IsPlainMemoryOfWhichZerosAreEmpty) {
  const auto check = []<class State>(std::size_t bytes) {
    static_assert(std::is_trivially_copyable_v<State> && std::is_trivially_default_constructible_v<State>);
    EXPECT_EQ(sizeof(State), bytes);
    State cleared;
    std::memset(&cleared, 0, sizeof cleared);
    State empty{};
    EXPECT_EQ(std::memcmp(&cleared, &empty, sizeof empty), 0);
  };
  check.operator()<FixedPointState>(24);
  check.operator()<WindowState<1>>(16);
  check.operator()<WindowState<2>>(24);
  check.operator()<WindowState<3>>(32);
  check.operator()<ExactState<fp16>>(48);
  check.operator()<ExactState<bf16>>(96);
  check.operator()<ExactState<fp32>>(104);
  check.operator()<ExactState<fp64>>(552);
}

TEST(AFixedPointState, MissesNoOverflowIfItIsGivenMoreElements) {
  FixedPointState state{};
  for (int i = 0; i < 3; ++i) state.add(0x1p63f, 0);
  EXPECT_TRUE(state.overflows<fp32>(3));
  EXPECT_FALSE(state.overflows<fp64>(3));
  EXPECT_EQ(state.finish<fp64>(0, 3), 3 * 0x1p63);
  state.add(0x1p123f, 0);
  EXPECT_FALSE(state.overflows<fp64>(4));
  EXPECT_TRUE(state.overflows<fp64>(16));
  state.add(0x1p127f, 0);
  EXPECT_TRUE(state.overflows<fp64>(5));
}

// The two examples of cuda_states_test.cu, by threads on a CPU.
TEST(ParticlesOnAMesh, HaveTheSameChargesForAnyNumberOfThreads) {
  const Particles particles{20'000, 1};
  const auto expected = charges_by_key(particles);
  for (const int threads : {1, 2, 5}) {
    std::vector<WindowState<2>> mesh(Mesh::cells, WindowState<2>{});
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        for (std::size_t p = static_cast<std::size_t>(t); p < particles.size();
             p += static_cast<std::size_t>(threads))
          particles.deposit(
              p, [&](std::uint32_t cell, float charge) { mesh[cell].atomic_add(charge, Mesh::window); });
      });
    for (std::thread& thread : running) thread.join();
    for (std::size_t c = 0; c < Mesh::cells; ++c)
      ASSERT_EQ(to_bits(mesh[c].finish<float>(Mesh::window)), to_bits(expected[c]))
          << "cell " << c << ", " << threads << " threads";
  }
}

}  // namespace
}  // namespace samesum
