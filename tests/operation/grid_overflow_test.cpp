/// Sums that overflow a given grid are NaN, all others are written, and the call says so.
#include "operation/grid_overflow.hpp"

namespace samesum {
namespace {

using namespace testing_support;

class EveryMethodOnAGrid : public BackendTest {};
SAMESUM_ON_BACKENDS(EveryMethodOnAGrid, "cpu", "cuda");

TEST_P(EveryMethodOnAGrid, WritesAndReportsWhatItsReferenceDoes) {
  expect_outcomes_of_the_reference(backend, backend == "cpu" ? 1 : is_sanitized ? 97 : 5);
}

/// Bits of numbers in a format.
template <class F> Bits bits_of(std::initializer_list<double> numbers) {
  Bits bits;
  for (const double number : numbers) bits.push_back(to_bits(convert<F>(number)));
  return bits;
}

class OnEachBackend : public BackendTest {};
SAMESUM_ON_BACKENDS(OnEachBackend, "reference", "cpu", "cuda");

TEST_P(OnEachBackend, ASumByKeyThatOverflowsIsNaNAndTheOthersAreWritten) {
  const Array x{format_info<fp64>(), {0x1p62, 0x1p62, 1}};
  EXPECT_EQ(outcome(method("scatter_add/fixed_point/fp32"), x, Layout::vector(3), {.grid = 0}, {0, 0, 1}, 3),
            (Outcome{bits_of<fp32>({NAN, 1, 0}), true}));
  EXPECT_EQ(outcome(method("scatter_mean/fixed_point/fp32"), x, Layout::vector(3), {.grid = 0}, {0, 0, 1}, 3),
            (Outcome{bits_of<fp32>({NAN, 1, NAN}), true}));
}

TEST_P(OnEachBackend, InfinitiesDoNotHideASumThatOverflows) {
  const Array x{format_info<fp64>(), {0x1p62, 0x1p62, INFINITY}};
  const auto expect = [&](const char* name, Bits bits, const Options& options = {}) {
    EXPECT_EQ(outcome(method(name), x, Layout::vector(3), options, {0, 0, 0}, 1), (Outcome{bits, true}))
        << name;
  };
  expect("sum/fixed_point/fp32", bits_of<fp32>({NAN}), {.grid = 0});
  expect("scatter_add/fixed_point/fp32", bits_of<fp32>({NAN}), {.grid = 0});
  expect("cumsum/fixed_point/fp32", bits_of<fp32>({0x1p62, NAN, NAN}), {.grid = 0});
  expect("rolling_sum/fixed_point/fp32", bits_of<fp32>({0x1p62, NAN, NAN}),
         {.grid = 0, .window = 3, .min_periods = 1});
}

TEST_P(OnEachBackend, AnExclusiveScanDoesNotReportTheOverflowOfAnElementThatNoResultContains) {
  const Method& m = method("cumsum/fixed_point/fp32");
  const std::uint8_t all[] = {1, 1}, first[] = {1, 0};
  const Array one{format_info<fp64>(), {0x1p63}}, two{format_info<fp64>(), {0x1p63, 1}};
  const auto exclusive = [](Mask where, bool skip_nan = false) {
    return Options{.exclusive = true, .grid = 0, .where = where, .skip_nan = skip_nan};
  };
  for (const Options& options : {exclusive({}), exclusive(Mask{all, 1}), exclusive({}, true)})
    EXPECT_EQ(outcome(m, one, Layout::vector(1), options), (Outcome{bits_of<fp32>({0}), false}));
  EXPECT_EQ(outcome(m, two, Layout::vector(2), exclusive(Mask{all, 2})),
            (Outcome{bits_of<fp32>({0, NAN}), true}));
  EXPECT_EQ(outcome(m, two, Layout::vector(2), exclusive(Mask{first, 2})),
            (Outcome{bits_of<fp32>({0, NAN}), true}));
}

// A result by key has at most one element of each row, so the grid has room for as many terms as there are
// rows.
TEST_P(OnEachBackend, FlagsByKeyCountRowsAndNotElements) {
  const std::uint8_t where[] = {1, 1};
  const Layout row = Layout::axis(1, 1, 2);
  const Array narrow{format_info<fp32>(), {0x1p61, 1}}, wide{format_info<fp64>(), {0x1p126, 1}};
  for (const Options& options : {Options{}, Options{.where = Mask{where, 2}}, Options{.skip_nan = true}}) {
    EXPECT_EQ(outcome(method("scatter_add/fixed_point/fp32"), narrow, row, options, {0}, 1),
              (Outcome{bits_of<fp32>({0x1p61, 1}), false}));
    Options given = options;
    given.grid = 0;
    EXPECT_EQ(outcome(method("scatter_add/fixed_point/fp64"), wide, row, given, {0}, 1),
              (Outcome{bits_of<fp64>({0x1p126, 1}), false}));
  }
}

}  // namespace
}  // namespace samesum
