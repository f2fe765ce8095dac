/// Elements that take no part in a call are as if absent: each result has the bits of the same call on its
/// elements that take part, packed in their order.
#include <cmath>
#include <map>

#include "operation/by_key_support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

/// Flags of n elements, of which about two thirds take part; none of the first few.
const std::vector<std::uint8_t>& flags_of(std::size_t n) {
  static std::map<std::size_t, std::vector<std::uint8_t>> made;
  std::vector<std::uint8_t>& flags = made[n];
  if (!flags.empty()) return flags;
  std::mt19937_64 random{n};
  flags.resize(n);
  for (std::size_t i = 7; i < n; ++i) flags[i] = static_cast<std::uint8_t>(random() % 3);
  return flags;
}

/// Packed elements of one result, and their places in it.
struct Packed {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> places;
  Values values(const FormatInfo& format) const { return {format, bytes.data(), places.size()}; }
};

Packed packed(const Values& x, const std::vector<std::uint8_t>& flags, std::size_t first, std::size_t n,
              std::size_t stride) {
  Packed all{std::vector<std::byte>(n * x.format->bytes), {}};
  all.places.reserve(n);
  with_format(*x.format, [&]<class F>() {
    const auto* const data = static_cast<const F*>(x.data);
    std::byte* out = all.bytes.data();
    for (std::size_t k = 0, i = first; k < n; ++k, i += stride)
      if (flags[i]) {
        all.places.push_back(k);
        std::memcpy(out, data + i, sizeof(F));
        out += sizeof(F);
      }
  });
  return all;
}

/// The elements with NaN, or another number, in place of those that take no part.
std::vector<std::byte> with_others(const Values& x, const std::vector<std::uint8_t>& flags, bool nan) {
  const auto* const data = static_cast<const std::byte*>(x.data);
  std::vector<std::byte> all{data, data + x.size * x.format->bytes};
  with_format(*x.format, [&]<class F>() {
    const F other = convert<F>(nan ? NAN : -3.0);
    for (std::size_t i = 0; i < x.size; ++i)
      if (!flags[i]) std::memcpy(&all[i * sizeof(F)], &other, sizeof(F));
  });
  return all;
}

/// The bits that a selection of a batch shall have.
Bits expected(const Method& m, const Values& x, const Values& y, const Layout& layout,
              const std::vector<std::uint8_t>& flags, Options options) {
  Bits all;
  for (std::size_t o = 0; o < layout.outer; ++o)
    for (std::size_t i = 0; i < layout.inner; ++i) {
      const std::size_t first = layout.first(o) + i, n = layout.length(o);
      const Packed of_x = packed(x, flags, first, n, layout.stride),
                   of_y = packed(y, flags, first, n, layout.stride);
      Bits one = reduce_all(on_host(m), of_x.values(*x.format), of_y.values(*x.format),
                            Layout::vector(of_x.places.size()), options);
      if (m.returns_index && static_cast<std::int64_t>(one[0]) >= 0) one[0] = of_x.places[one[0]];
      all.insert(all.end(), one.begin(), one.end());
    }
  return all;
}

class EverySelection : public MethodTest {
 protected:
  std::size_t number_ = 0;  ///< of batches compared

  /// Compares the selections by flags, by NaN and, in a third of the batches, by both with the packed
  /// elements.
  void check(const BatchData& data, Options options = {}) {
    const std::vector<std::uint8_t>& flags = flags_of(data.batch.elements);
    const Values x = data.x.values(), y = data.y.values();
    const Bits wanted = expected(m, x, y, data.batch.layout, flags, options);
    const std::vector<std::byte> nans = with_others(x, flags, true), others = with_others(x, flags, false);
    Options by_flags = options, by_nan = options, by_both = options;
    by_flags.where = by_both.where = flags;
    by_nan.skip_nan = by_both.skip_nan = true;
    by_flags.threads = by_nan.threads = 3;
    const auto selected = [&](const std::vector<std::byte>& bytes, const Options& how) {
      return reduce_all(m, {*x.format, bytes.data(), x.size}, y, data.batch.layout, how);
    };
    ASSERT_EQ(selected(others, by_flags), wanted) << data.batch.name << ", by flags";
    ASSERT_EQ(selected(nans, by_nan), wanted) << data.batch.name << ", by NaN";
    if (number_ % 3 == 0) {
      ASSERT_EQ(selected(nans, by_both), wanted) << data.batch.name << ", by both";
    }
    ++number_;
  }
};
INSTANTIATE_TEST_SUITE_P(Cpu, EverySelection,
                         ::testing::ValuesIn(without_fp16_if_sanitized(reductions_of("cpu"))), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EverySelection, ::testing::ValuesIn(or_absent(reductions_of("cuda"))),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Reference, EverySelection, ::testing::ValuesIn([] {
                           std::vector<const Method*> few;    // of the rest the CPU's code is the same
                           if (leaves_out_tests) return few;  // other tests access the same memory
                           for (const Method* m : reductions_of("reference"))
                             if (m->format->index == format_info<fp32>().index) few.push_back(m);
                           return few;
                         }()),
                         test_name);

TEST_P(EverySelection, HasTheBitsOfThePackedElements) {
  SAMESUM_SANITIZED_IN_FP32(m);
  std::size_t k = 0;
  for (const BatchData& data : batch_data(input_of(m))) {
    if (is_sanitized && ++k % 4 != 0) continue;
    if (!m.accepts(input_of(m), data.batch.layout)) continue;
    check(data);
    if (m.takes_grid) check(data, {.grid = -40});
  }
}

TEST_P(EverySelection, OfPortionsHasTheBitsOfThePackedElements) {
  if (!has_partials(m)) return;
  constexpr std::size_t n = 9000, cut = 4103;
  const Array x{input_of(m), wide(n, 12, 1)}, y{input_of(m), wide(n, 12, 2)};
  const std::vector<std::uint8_t>& flags = flags_of(n);
  const std::optional<int> grid = m.takes_grid ? std::optional{-40} : std::nullopt;
  const auto finished = [&](const Partial& partial) {
    const auto numbers = static_cast<std::size_t>(m.results);
    std::vector<std::byte> out(m.result_bytes());
    partial.finish({m.result_format(*m.format), out.data(), numbers});
    return out;
  };
  const auto part = [&](const Array& a, std::size_t first, std::size_t count) {
    return Values{input_of(m), static_cast<const std::byte*>(a.values().data) + first * input_of(m).bytes,
                  count};
  };
  Partial selected{m, 0, grid}, whole{m, 0, grid};
  for (const auto& [first, count] : {std::pair{std::size_t{0}, cut}, {cut, n - cut}})
    selected.add(part(x, first, count), m.inputs == 2 ? part(y, first, count) : Values{},
                 {.where = {flags.data() + first, count}});
  const Packed of_x = packed(x.values(), flags, 0, n, 1), of_y = packed(y.values(), flags, 0, n, 1);
  whole.add(of_x.values(input_of(m)), m.inputs == 2 ? of_y.values(input_of(m)) : Values{});
  EXPECT_EQ(selected.size(), of_x.places.size());
  EXPECT_EQ(finished(selected), finished(whole));
}

// --- scans and reductions by key ---------------------------------------------------------------------------

std::vector<const Method*> selecting_scans_of(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == backend && m.is_scan()) chosen.push_back(&m);
  return chosen;
}

using EverySelectingScan = MethodTest;
INSTANTIATE_TEST_SUITE_P(Cpu, EverySelectingScan, ::testing::ValuesIn(selecting_scans_of("cpu")), test_name);
INSTANTIATE_TEST_SUITE_P(Cuda, EverySelectingScan, ::testing::ValuesIn(or_absent(selecting_scans_of("cuda"))),
                         test_name);

TEST_P(EverySelectingScan, RepeatsTheResultOfTheElementsBefore) {
  for (const Layout& l : {Layout::vector(1), Layout::vector(5000), Layout::vector(70'000),
                          Layout::rows(9, 40), Layout::axis(2, 50, 7)})
    for (const bool exclusive : {false, true})
      with_format(*m.format, [&]<class F>() {
        const std::size_t n = l.outer * l.n * l.inner;
        if (is_sanitized && n > 5000) return;
        const Array x{*m.format, wide(n, 6, 5)};
        const std::vector<std::uint8_t>& flags = flags_of(n);
        std::vector<F> out(n);
        reduce(m, x.values(), l, std::span{out}, {.exclusive = exclusive, .where = flags});
        for (std::size_t r = 0; r < l.results(); ++r) {
          const std::size_t first = r / l.inner * l.n * l.inner + r % l.inner;
          const Packed one = packed(x.values(), flags, first, l.n, l.inner);
          std::vector<F> all(one.places.size() + 1);
          const std::span of_packed{all};
          reduce(m, x.values(), Layout::vector(1), of_packed.first(1), {.exclusive = true});
          reduce(m, one.values(*m.format), Layout::vector(one.places.size()), of_packed.subspan(1));
          for (std::size_t k = 0, before = 0; k < l.n; ++k) {
            const std::size_t after = before + (flags[first + k * l.inner] != 0);
            ASSERT_EQ(to_bits(out[first + k * l.inner]), to_bits(all[exclusive ? before : after]))
                << n << ", " << k;
            before = after;
          }
        }
        std::vector<F> in_place(x.values().as<F>().begin(), x.values().as<F>().end());
        reduce(m, std::span<const F>{in_place}, l, std::span{in_place},
               {.exclusive = exclusive, .where = flags});
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(to_bits(in_place[i]), to_bits(out[i])) << "in place";
      });
}

SAMESUM_ON_BACKENDS(ASelectionByKey, "cpu", "cuda");

/// Keys below `bins`, and bad ones of rows of which no element takes part.
std::vector<std::int32_t> keys_of(const std::vector<std::uint8_t>& flags, std::size_t inner,
                                  std::size_t bins) {
  std::vector<std::int32_t> keys(flags.size() / inner, -5);
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) keys[i / inner] = static_cast<std::int32_t>(i / inner * (i / inner) % bins);
  return keys;
}

TEST_P(ASelectionByKey, ReadsNoKeyOfAnElementThatTakesNoPart) {
  for (const Method* by_key : by_key::methods_by_key(backend)) {
    const Method& m = *by_key;
    if (m.inputs == 0) continue;
    for (const std::size_t inner : {1, 3})
      with_format(*m.format, [&]<class F>() {
        constexpr std::size_t n = 500, bins = 6;
        const Array x{*m.format, wide(n * inner, 6, 5)};
        const std::vector<std::uint8_t>& flags = flags_of(n * inner);
        const std::vector<std::int32_t> keys = keys_of(flags, inner, bins);
        std::vector<F> out(bins * inner), one(bins);
        reduce(m, x.values(), Keys{keys}, Layout::axis(1, n, inner), std::span{out}, {.where = flags});
        if (m.accumulator == "fixed_point") return;  // one grid for all keys and elements
        for (std::size_t i = 0; i < inner; ++i) {
          const Packed column = packed(x.values(), flags, i, n, inner);
          std::vector<std::int32_t> of_column;
          for (const std::size_t k : column.places) of_column.push_back(keys[k]);
          reduce(m, column.values(*m.format), Keys{of_column}, Layout::vector(of_column.size()),
                 std::span{one});
          for (std::size_t key = 0; key < bins; ++key)
            EXPECT_EQ(to_bits(out[key * inner + i]), to_bits(one[key])) << m.name << ", column " << i;
        }
      });
  }
}

TEST_P(ASelectionByKey, HasTheBitsOfItsReferenceAlsoIfItIsCombinedAndSkipsNan) {
  constexpr std::size_t n = 500, bins = 6;
  for (const Method* m : by_key::methods_by_key(backend))
    for (const std::size_t inner : {1, 3}) {
      if (inner > 1 && m->inputs == 0) continue;
      std::vector<double> elements = wide(n * inner, 12, 1);
      for (std::size_t i = 1; i < elements.size(); i += 5) elements[i] = NAN;
      const Array x{*m->format, elements};
      const std::vector<std::uint8_t>& flags = flags_of(n * inner);
      const std::vector<std::int32_t> keys = keys_of(flags, inner, bins);
      for (const bool combine : {false, true}) {
        if (combine && !m->can_combine) continue;
        const Options options{.combine = combine, .where = flags, .skip_nan = m->inputs > 0};
        const auto results = [&](const Method& by) {
          std::vector<std::byte> out(bins * inner * 8);  // +0, to be combined
          reduce(by, m->inputs > 0 ? x.values() : Values{*m->format, nullptr, 0}, Keys{keys},
                 Layout::axis(1, n, inner), Results{m->result_format(*m->format), out.data(), bins * inner},
                 options);
          return out;
        };
        EXPECT_EQ(results(*m), results(reference_of(*m))) << m->name << ", inner " << inner;
      }
    }
}

TEST(Selection, OfKeysCountsThoseWhoseFlagIsSet) {
  const std::vector<std::int64_t> keys{1, 1, -9, 0, 1};
  const bool where[]{true, false, false, true, true};
  for (const std::string& backend : present_backends()) {
    std::vector<std::int64_t> counts(2);
    reduce(find("scatter_count/fp64@" + backend), Values{format_info<fp64>(), nullptr, 0}, Keys{keys},
           Layout::vector(5), std::span{counts}, {.where = std::span{where}});
    EXPECT_EQ(counts, (std::vector<std::int64_t>{1, 2})) << backend;
  }
}

TEST(Selection, OfNothingHasTheResultForNoElements) {
  const std::vector<double> x{NAN, NAN};
  const std::vector<std::uint8_t> none{0, 0};
  for (const Options& options : {Options{.where = none}, Options{.skip_nan = true}}) {
    EXPECT_EQ(to_bits(sum(x, options)), to_bits(0.0));
    EXPECT_TRUE(std::isnan(mean(x, options)));
    EXPECT_TRUE(std::isnan(moments(x, options).variance));
    EXPECT_EQ(samesum::min(x, options), INFINITY);
    EXPECT_EQ(argmin(x, options), -1);
  }
  EXPECT_EQ(sum(std::vector<double>{}, {.skip_nan = true}), 0);
}

// The words of an exact sum do not tell -0 from the -0 that stands in for others.
TEST(Selection, OfMinusZerosIsMinusZero) {
  for (const std::string& backend : present_backends()) {
    const Method& m = find("sum/exact/fp64@" + backend);
    for (const std::size_t n : {3, 40'000}) {
      std::vector<double> x(n, -0.0);
      x[1] = NAN;
      EXPECT_EQ(m(x, {.skip_nan = true}).bits, to_bits(-0.0)) << backend;
      x[2] = 0.0;
      EXPECT_EQ(m(x, {.skip_nan = true}).bits, to_bits(0.0)) << backend;
    }
  }
}

TEST(Selection, OfNothingIsPlusZeroAtEveryLength) {
  for (const std::string& backend : present_backends())
    for (const FormatInfo& format : formats)
      for (const std::size_t n : {1, 8, 64, 2056, 32'768, 32'769, 32'776, 32'777, 131'077}) {
        const Array x{format, std::vector<double>(n, NAN)};
        EXPECT_EQ(find("sum/exact/fp64@" + backend)(x.values(), {.skip_nan = true}).bits, 0u)
            << format.name << ", " << n << ", " << backend;
      }
}

TEST(Selection, OfBoundCallsIsThatOfCalls) {
  const std::vector<double> x{1, NAN, 2};
  for (const std::string& backend : present_backends())
    EXPECT_EQ(find("sum/exact/fp64@" + backend).bind(x, {.skip_nan = true})().to_double(), 3) << backend;
}

std::string refusal_of(const Method& m, Values x, Options options) {
  try {
    std::vector<double> out(x.size);
    if (m.has_result_per_element)
      reduce(m, x, Layout::vector(x.size), std::span{out}, options);
    else
      m(x, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(Selection, IsRefusedWithTheRemedy) {
  const std::vector<double> x{1, 2, 3};
  const std::vector<std::uint8_t> flags{1, 0};
  EXPECT_THAT(refusal_of(find("sum/exact/fp64"), x, {.where = flags}),
              HasSubstr("where has 2 flags; pass 3, one for each element of x"));
  EXPECT_THAT(refusal_of(find("sum/exact/fp64"), x, {.where = {nullptr, 3}}), HasSubstr("where is null"));
  EXPECT_THAT(refusal_of(find("softmax/tree/plain/fp64"), x, {.skip_nan = true}),
              HasSubstr("where and skip_nan are for reductions and scans"));
  EXPECT_THROW(accumulate(x, {.skip_nan = true}), std::invalid_argument);
  EXPECT_THROW(Partial{"sum/exact/fp64"}.finish({.where = flags}), std::invalid_argument);
}

}  // namespace
}  // namespace samesum
