/// Calls without results to write return at once, however many vectors their layouts count. Results for no
/// elements are written.
#include <chrono>

#include "operation/by_key_support.hpp"

namespace samesum {
namespace {
namespace nothing_to_write {

using namespace testing_support;

constexpr std::size_t many = std::size_t{1} << 40;

/// Layouts of which no result is written: without results, and without elements if there is one for each.
std::vector<Layout> layouts_without_results(const Method& m) {
  std::vector<Layout> all{Layout::rows(0, many),    Layout::axis(many, 5, 0), Layout::axis(0, many, 3),
                          Layout::axis(many, 0, 0), Layout::axis(0, 3, many), {many, 1, 0, 7, 0}};
  if (m.has_result_per_element)
    all.insert(all.end(), {Layout::vector(0), Layout::rows(many, 0), Layout::rows(many, 0, 5),
                           Layout::axis(many, 0, 3), Layout::axis(3, 0, many)});
  return all;
}

/// Expects call() to return within a second.
template <class Call> void expect_at_once(const Method& m, const char* what, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{1}) << m.name << what;
}

SAMESUM_ON_BACKENDS(ACallWithoutResultsToWrite, "reference", "cpu", "cuda");
SAMESUM_ON_BACKENDS(ACallByKeyWithoutResultsToWrite, "reference", "cpu", "cuda");
SAMESUM_ON_BACKENDS(ACallWithoutElements, "reference", "cpu", "cuda");

TEST_P(ACallWithoutResultsToWrite, ReturnsAtOnce) {
  method("exact/fp32")(std::vector<float>{1});  // the first call on a GPU takes long
  for (const Method& m : methods()) {
    if (m.takes_keys || m.backend != backend) continue;
    const FormatInfo& input = input_of(m);
    const Values x{input, nullptr, 0};
    const Results out{m.result_format(input), nullptr, 0};
    for (const Layout& layout : layouts_without_results(m)) {
      // Softmax takes rows, and some methods of a GPU take single vectors only.
      if (!m.accepts(input, layout) || (m.keeps_format && layout.inner != 1)) continue;
      for (const int threads : {1, 4})
        expect_at_once(m, ", a layout without results", [&] {
          m.inputs == 2 ? reduce(m, x, x, layout, out, {.threads = threads})
                        : reduce(m, x, layout, out, with_window(m, {.threads = threads}));
        });
    }
  }
}

TEST_P(ACallByKeyWithoutResultsToWrite, ReturnsAtOnceAndLeavesOutAsItIs) {
  method("exact/fp32")(std::vector<float>{1});  // the first call on a GPU takes long
  for (const Method& m : methods()) {
    if (!m.takes_keys || m.backend != backend) continue;
    const FormatInfo& input = input_of(m);
    const Values x{input, nullptr, 0};
    const Keys none{KeyFormat::int32, nullptr, 0};
    expect_at_once(m, ", no results", [&] {
      reduce(m, x, none, Layout::axis(1, 0, 1), Results{m.result_format(input), nullptr, 0});
    });
    for (const std::size_t columns : {std::size_t{1} << 32, std::size_t{1} << 62})
      expect_at_once(m, ", no results of rows of many columns", [&] {
        if (m.inputs > 0)
          reduce(m, x, none, Layout::axis(1, 0, columns), Results{m.result_format(input), nullptr, 0});
      });
    if (!by_key::can_combine(m)) continue;
    // Most of these results do not exist.
    std::array<std::uint64_t, 4> held{1, 2, 3, 4};
    const auto before = held;
    expect_at_once(m, ", nothing to combine", [&] {
      reduce(m, x, none, Layout::axis(1, 0, 1), Results{m.result_format(input), held.data(), many},
             {.combine = true});
    });
    EXPECT_EQ(held, before) << m.name;
  }
}

TEST_P(ACallWithoutElements, WritesTheResultForNoElements) {
  const std::uint64_t offsets[] = {0, 0, 0, 0};
  for (const Method& m : methods()) {
    if (!reduces_vectors(m) || m.backend != backend) continue;
    const Values x{input_of(m), nullptr, 0};
    const Method& single = m.promise < Promise::everywhere ? m : reference_of(m);  // arrival order has none
    const Bits of_one = reduce_all(single, x, x, Layout::vector(0));
    for (const Layout& layout : {Layout::vector(0), Layout::rows(3, 0), Layout::rows(3, 0, 8),
                                 Layout::axis(2, 0, 3), Layout::segments(offsets, 3)}) {
      if (!m.accepts(input_of(m), layout)) continue;
      Bits expected;
      for (std::size_t i = 0; i < layout.results(); ++i)
        expected.insert(expected.end(), of_one.begin(), of_one.end());
      EXPECT_EQ(reduce_all(m, x, x, layout), expected) << m.name << ", " << layout.results() << " results";
    }
  }
  for (const Method& m : methods()) {
    if (!m.takes_keys || m.backend != backend) continue;
    for (const std::size_t inner : {std::size_t{1}, m.inputs == 0 ? 1 : std::size_t{40}}) {
      const by_key::Case c{"", {}, 5, inner, {}};
      const Bits found = by_key::reduced(m, c, input_of(m), KeyFormat::int64);
      EXPECT_EQ(found, Bits(5 * inner, found[0])) << m.name;
      if (m.promise < Promise::everywhere) continue;
      EXPECT_EQ(found, by_key::reduced(reference_of(m), c, input_of(m), KeyFormat::int64)) << m.name;
    }
  }
}

}  // namespace nothing_to_write
}  // namespace
}  // namespace samesum
