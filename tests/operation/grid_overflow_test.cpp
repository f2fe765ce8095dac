/// Sums that overflow a given grid are NaN, all others are written, and the call says so.
#include "operation/by_key_support.hpp"
#include "operation/rolling_support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

/// The results of a call as bits, and whether it reported that a sum overflows the grid.
struct Outcome {
  Bits bits;
  bool overflows = false;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  for (const std::uint64_t bits : o.bits) out << std::hex << bits << " ";
  return out << std::dec << (o.overflows ? "(overflows)" : "");
}

Outcome outcome(const Method& m, const Array& x, const Layout& layout, const Options& options,
                const std::vector<std::int32_t>& keys = {}, std::size_t bins = 0) {
  const Values values = x.values();
  const std::size_t size = m.takes_keys               ? bins * layout.inner
                           : m.has_result_per_element ? values.size
                                                      : layout.results();
  return with_format(*m.format, [&]<class F>() {
    std::vector<F> out(size, from_bits<F>(BitsOf<F>(0x5a5a)));
    Call call{.method = &m, .x = values, .layout = layout, .out = std::span{out}, .options = options};
    if (m.inputs == 2) call.y = values;
    if (m.takes_keys) call.keys = keys;
    Outcome o;
    try {
      run(call);
    } catch (const std::overflow_error&) {
      o.overflows = true;
    }
    for (const F result : out) o.bits.push_back(to_bits(result));
    return o;
  });
}

/// Six elements, of which sums and terms are just inside or outside of what a word on the grid 1 holds.
std::vector<std::vector<double>> elements_beside_the_grid() {
  std::vector<std::vector<double>> all;
  for (const int exponent : {60, 61, 62, 63, 123, 124, 125, 126}) {
    const double b = std::ldexp(1, exponent);
    for (const std::vector<double>& x : {std::vector<double>{b, b, 1, INFINITY, -b, 1},
                                         {b, 1, 1, b, -b, NAN},
                                         {1, 1, b, -INFINITY, b, b},
                                         {b, b, INFINITY, b, -b, -INFINITY},
                                         {b, 1, 1, 1, 1, 1},
                                         {-b, -b, -b, b, b, b}})
      all.push_back(x);
  }
  return all;
}

/// Expects each method on a grid to write and to report what its reference does, for all layouts, scans,
/// windows and keys, with flags and without. Only one of `step` calls is made.
void expect_outcomes_of_the_reference(std::string_view backend, int step) {
  int calls = 0;
  const std::vector<std::int32_t> keys{0, 0, 1, 0, 3, 1};
  const std::uint8_t flags[][6] = {
      {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 0}, {1, 0, 1, 1, 0, 1}, {0, 1, 1, 1, 1, 1}};
  for (const Method& m : methods()) {
    if (m.backend != backend || !m.takes_grid) continue;
    for (const FormatInfo& input : formats) {
      if (!m.accepts(input) || input.bytes < 4 || m.format->bytes < 4) continue;
      for (const std::vector<double>& elements : elements_beside_the_grid()) {
        const Array x{input, elements};
        for (const Layout& layout : {Layout::vector(6), Layout::rows(2, 3), Layout::axis(1, 3, 2)}) {
          if (!m.accepts(input, layout) || (m.takes_keys && layout.outer > 1)) continue;
          const std::vector<std::int32_t> some{keys.begin(),
                                               keys.begin() + static_cast<std::ptrdiff_t>(layout.n)};
          const auto expect_same = [&](Options options, const char* what) {
            if (calls++ % step != 0) return;
            options.grid = 0;
            EXPECT_EQ(outcome(m, x, layout, options, some, 5),
                      outcome(reference_of(m), x, layout, options, some, 5))
                << m.name << " of " << input.name << ", 6 elements from " << elements[0] << " " << elements[1]
                << " " << elements[2] << " on, " << layout.outer << " x " << layout.n << " x " << layout.inner
                << what;
          };
          if (m.takes_window) {
            expect_same({.window = 3, .min_periods = 1}, ", windows");
            continue;
          }
          expect_same({}, "");
          expect_same({.skip_nan = true}, ", without NaN");
          if (m.is_scan()) expect_same({.exclusive = true}, ", exclusive");
          if (m.takes_keys && by_key::can_combine(m)) expect_same({.combine = true}, ", combined");
          for (const auto& where : flags) {
            expect_same({.where = Mask{where, 6}}, ", some elements");
            if (m.is_scan()) expect_same({.exclusive = true, .where = Mask{where, 6}}, ", some, exclusive");
          }
        }
      }
    }
  }
}

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
