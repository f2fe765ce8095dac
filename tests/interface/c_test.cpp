/// The C interface has the methods, bits, bounds and messages of C++, and turns every error into a code.
#include <limits>
#include <new>
#include <stdexcept>

#include "interface/c_support.hpp"
#include "partial_support.hpp"
#include "samesum/interface/c_support.hpp"

namespace samesum::c_interface {
namespace {

using Bytes = std::vector<std::byte>;

// --- facts ------------------------------------------------------------------------------------------------

TEST(TheCInterface, HasTheVersionsOfTheHeaders) {
  EXPECT_EQ(samesum_abi_version(), SAMESUM_ABI_VERSION);
  EXPECT_EQ(std::string{samesum_version()}, std::to_string(SAMESUM_VERSION_MAJOR) + "." +
                                                std::to_string(SAMESUM_VERSION_MINOR) + "." +
                                                std::to_string(SAMESUM_VERSION_PATCH));
}

TEST(TheCInterface, NamesFormatsAndStatuses) {
  for (const FormatInfo& f : formats) {
    EXPECT_EQ(std::string{samesum_format_name(format_in_c(&f))}, f.name);
    EXPECT_EQ(samesum_format_bytes(format_in_c(&f)), f.bytes);
  }
  EXPECT_EQ(samesum_format_bytes(SAMESUM_INT64), 8u);
  EXPECT_STREQ(samesum_format_name(SAMESUM_INT64), "int64");
  for (const samesum_format other : {-1, int{SAMESUM_NONE}, 6}) {
    EXPECT_EQ(samesum_format_name(other), nullptr);
    EXPECT_EQ(samesum_format_bytes(other), 0u);
  }
  EXPECT_STREQ(samesum_status_name(SAMESUM_OUT_OF_MEMORY), "out of memory");
  EXPECT_STREQ(samesum_status_name(SAMESUM_INTERNAL_ERROR), "internal error");
  EXPECT_STREQ(samesum_status_name(SAMESUM_MPI_ERROR), "MPI error");
  for (const samesum_status other : {-1, 9}) EXPECT_STREQ(samesum_status_name(other), "unknown status");
}

TEST(TheCatalogueInC, HasTheMethodsAndFactsOfCpp) {
  ASSERT_EQ(samesum_method_count(), methods().size());
  ASSERT_GT(samesum_method_count(), 100u);
  EXPECT_EQ(samesum_method_at(samesum_method_count()), nullptr);
  for (std::size_t i = 0; i < samesum_method_count(); ++i) {
    const samesum_method* const m = samesum_method_at(i);
    const Method& expected = methods()[i];
    EXPECT_EQ(samesum_method_name(m), expected.name);
    EXPECT_EQ(found(expected.name), m);
    EXPECT_EQ(samesum_method_operation(m), expected.operation);
    EXPECT_EQ(samesum_method_summary(m), expected.summary);
    EXPECT_EQ(samesum_method_order(m), expected.order);
    EXPECT_EQ(samesum_method_accumulator(m), expected.accumulator);
    EXPECT_EQ(samesum_method_backend(m), expected.backend);
    EXPECT_EQ(samesum_method_promise(m), static_cast<int>(expected.promise));
    EXPECT_EQ(samesum_method_format(m), format_in_c(expected.format));
    EXPECT_EQ(samesum_method_inputs(m), expected.inputs);
    EXPECT_EQ(samesum_method_results(m), expected.results);
    EXPECT_EQ(samesum_method_returns_index(m), expected.returns_index);
    EXPECT_EQ(samesum_method_has_result_per_element(m), expected.has_result_per_element);
    EXPECT_EQ(samesum_method_is_scan(m), expected.is_scan());
    EXPECT_EQ(samesum_method_takes_window(m), expected.takes_window);
    EXPECT_EQ(samesum_method_takes_keys(m), expected.takes_keys);
    EXPECT_EQ(samesum_method_takes_grid(m), expected.takes_grid);
    EXPECT_EQ(samesum_method_can_combine(m), expected.can_combine);
    const samesum_layout rows = samesum_rows(2, 3, 3);
    for (const FormatInfo& f : formats) {
      EXPECT_EQ(samesum_method_accepts(m, format_in_c(&f), nullptr), expected.accepts(f)) << expected.name;
      EXPECT_EQ(samesum_method_accepts(m, format_in_c(&f), &rows), expected.accepts(f, Layout::rows(2, 3)));
      EXPECT_EQ(samesum_method_result_format(m, format_in_c(&f)), format_in_c(expected.result_format(f)));
    }
  }
}

TEST(TheCatalogueInC, FindsShortNames) {
  EXPECT_STREQ(samesum_method_name(found("kahan", SAMESUM_FP32)), "sum/tree/kahan/fp32@cpu");
  EXPECT_STREQ(samesum_method_name(found("max", SAMESUM_BF16)), "max/bf16@cpu");
  EXPECT_STREQ(samesum_method_name(found("tree/fp16", SAMESUM_FP64)), "sum/tree/plain/fp16@cpu");
}

TEST(AHandleOfNoMethod, HasNoFactsAndIsRefused) {
  const auto* inside =
      reinterpret_cast<const samesum_method*>(reinterpret_cast<const char*>(samesum_method_at(1)) + 8);
  const auto* outside = reinterpret_cast<const samesum_method*>(&inside);
  for (const samesum_method* m : {static_cast<const samesum_method*>(nullptr), inside, outside}) {
    EXPECT_EQ(samesum_method_name(m), nullptr);
    EXPECT_EQ(samesum_method_inputs(m), 0);
    EXPECT_EQ(samesum_method_format(m), SAMESUM_NONE);
    EXPECT_EQ(samesum_method_accepts(m, SAMESUM_FP32, nullptr), 0);
    samesum_call call = samesum_call_default();
    call.method = m;
    EXPECT_THAT(ask(samesum_run, static_cast<const samesum_call*>(&call)), IsInvalid("samesum_find"));
  }
}

// --- calls ------------------------------------------------------------------------------------------------

/// A call in C++ and the same one in C. `out` holds `held` before each.
void expect_the_same(Call call, const samesum_layout& layout, const Bytes& held) {
  Bytes expected = held, out = held;
  samesum_call in_c = samesum_call_default();
  in_c.method = found(call.method->name);
  in_c.x = values_in_c(call.x);
  in_c.y = values_in_c(call.y);
  in_c.keys = keys_in_c(call.keys);
  in_c.layout = layout;
  in_c.out = {out.data(), call.out.size, call.out.row_stride, format_in_c(call.out.format)};
  samesum_options options = samesum_options_default();
  options.ddof = call.options.ddof;
  options.threads = call.options.threads;
  options.exclusive = call.options.exclusive;
  options.combine = call.options.combine;
  options.has_grid = call.options.grid.has_value();
  options.grid = call.options.grid.value_or(0);
  options.skip_nan = call.options.skip_nan;
  options.window = call.options.window;
  options.has_min_periods = call.options.min_periods.has_value();
  options.min_periods = call.options.min_periods.value_or(0);
  options.centred = call.options.centred;
  in_c.options = &options;
  call.out.data = expected.data();
  std::string refusal;
  try {
    run(call);
  } catch (const std::invalid_argument& e) {
    refusal = e.what();
  }
  const Answer answer = ask(samesum_run, static_cast<const samesum_call*>(&in_c));
  EXPECT_EQ(answer.message, refusal) << call.method->name;
  EXPECT_EQ(answer.status, refusal.empty() ? SAMESUM_OK : SAMESUM_INVALID_ARGUMENT) << call.method->name;
  EXPECT_TRUE(out == expected) << call.method->name;
}

/// Layouts of C++ and the same ones of C, of at most 130 elements.
struct Layouts {
  std::vector<std::uint64_t> offsets{1, 40, 40, 90};
  std::vector<std::pair<Layout, samesum_layout>> all{
      {Layout::vector(130), samesum_layout{}},
      {Layout::vector(77), samesum_vector(77)},
      {Layout::rows(3, 40), samesum_rows(3, 40, 40)},
      {Layout::rows(3, 40, 43), samesum_rows(3, 40, 43)},
      {Layout::axis(2, 5, 13), samesum_axis(2, 5, 13)},
      {Layout::axis(0, 0, 0), samesum_axis(0, 0, 0)},
      {Layout::segments(offsets.data(), 3), samesum_segments(offsets.data(), 3)}};
};

TEST(EveryMethodInC, HasTheBitsAndTheMessagesOfCpp) {
  const Layouts layouts;
  std::size_t calls = 0;
  for (const Method& m : methods()) {
    if (m.backend != "cpu" || m.takes_keys) continue;
    for (const FormatInfo& f : formats) {
      const Array x{f, wide(130, 12, 1)}, y{f, wide(130, 12, 2)};
      for (const auto& [layout, in_c] : layouts.all) {
        const FormatInfo* const format = m.result_format(f);
        const std::size_t size =
            m.has_result_per_element ? 130 : layout.results() * static_cast<std::size_t>(m.results);
        expect_the_same({.method = &m,
                         .x = x.values(),
                         .y = m.inputs == 2 ? y.values() : Values{},
                         .layout = layout,
                         .out = {format, nullptr, size},
                         .options = testing_support::with_window(
                             m, {.threads = 2, .ddof = m.results == 2 ? 1.0 : 0, .exclusive = m.is_scan()})},
                        in_c, Bytes(size * 8, std::byte{0x5a}));
        ++calls;
      }
    }
  }
  EXPECT_GT(calls, 1000u);
}

TEST(EveryMethodByKeyInC, HasTheBitsOfCpp) {
  std::size_t calls = 0;
  const std::vector<std::int32_t> narrow{2, 0, 2, 1, 2, 0};
  const std::vector<std::uint32_t> unsigned_keys{narrow.begin(), narrow.end()};
  const std::vector<std::int64_t> wide_keys{narrow.begin(), narrow.end()};
  for (const Method& m : methods()) {
    if (m.backend != "cpu" || !m.takes_keys || !m.accepts(*m.format)) continue;
    const Array x{*m.format, wide(12, 12, 1)};
    for (const Keys& keys : {Keys{narrow}, Keys{unsigned_keys}, Keys{wide_keys}})
      for (const bool combine : {false, true})
        for (const std::size_t inner : {1, 2}) {
          if ((combine && !m.can_combine) || (inner > 1 && m.inputs == 0)) continue;
          const Values all = x.values();
          expect_the_same({.method = &m,
                           .x = m.inputs == 0 ? Values{} : Values{*all.format, all.data, 6 * inner},
                           .keys = keys,
                           .layout = Layout::axis(1, 6, inner),
                           .out = {m.result_format(*m.format), nullptr, 3 * inner},
                           .options = {.combine = combine}},
                          inner == 1 ? samesum_layout{} : samesum_axis(1, 6, inner),
                          Bytes(3 * inner * 8, std::byte{0x3c}));
          ++calls;
        }
  }
  EXPECT_GT(calls, 50u);
}

TEST(ACallInC, HasTheGridAndReportsItsOverflow) {
  const std::vector<float> x{1.0f, 0x1p-3f, 5.0f};
  float out = 0;
  samesum_call call = samesum_call_default();
  call.method = found("fixed_point/fp32");
  call.x = values_in_c(Values{x});
  call.out = {&out, 1, 0, SAMESUM_FP32};
  samesum_options options = samesum_options_default();
  options.has_grid = 1;
  call.options = &options;
  EXPECT_THAT(ask(samesum_run, static_cast<const samesum_call*>(&call)), IsOk());
  EXPECT_EQ(out, 6);
  options.grid = -61;
  EXPECT_THAT(ask(samesum_run, static_cast<const samesum_call*>(&call)),
              IsRefusal(static_cast<samesum_status>(SAMESUM_OVERFLOW), "overflows the grid"));
  EXPECT_NE(out, out);
}

TEST(ACallInC, NamesTheFirstBadKey) {
  const std::vector<float> x{1, 2};
  const std::vector<std::int32_t> keys{0, 7};
  float out[3] = {};
  samesum_call call = samesum_call_default();
  call.method = found("scatter_add/exact/fp32");
  call.x = values_in_c(Values{x});
  call.keys = keys_in_c(Keys{keys});
  call.out = {out, 3, 0, SAMESUM_FP32};
  EXPECT_THAT(ask(samesum_run, static_cast<const samesum_call*>(&call)), IsInvalid("7"));
}

// --- bounds -----------------------------------------------------------------------------------------------

TEST(EstimatesInC, AreThoseOfCpp) {
  const Array x{formats[2], wide(5000, 20, 1)}, y{formats[2], wide(5000, 20, 2)};
  const samesum_values in_x = values_in_c(x.values()), in_y = values_in_c(y.values());
  for (const Method& m : methods()) {
    if (m.backend != "cpu" || m.promise < Promise::everywhere || m.has_result_per_element || m.takes_keys ||
        m.returns_index || m.results != 1 || !m.accepts(formats[2]))
      continue;
    const Estimate e = estimate(m.name, x.values(), m.inputs == 2 ? y.values() : Values{});
    std::uint64_t bits = 0;
    double bound = -1, magnitudes = -1;
    EXPECT_THAT(ask(samesum_estimate, found(m.name), &in_x, m.inputs == 2 ? &in_y : nullptr,
                    static_cast<void*>(&bits), &bound, &magnitudes),
                IsOk());
    EXPECT_EQ((Number{m.format, bits}), e.value) << m.name;
    EXPECT_EQ(bound, e.bound) << m.name;
    EXPECT_EQ(magnitudes, e.magnitudes) << m.name;
  }
}

TEST(BoundsInC, AreThoseOfCpp) {
  double bound = -1;
  const auto bound_of = [&](const samesum_bound_query& q) {
    EXPECT_THAT(ask(samesum_bound, &q, &bound), IsOk());
    return bound;
  };
  const Method& kahan = find("kahan/fp32");
  const float sum = 3.5f;
  samesum_bound_query q = samesum_bound_query_default();
  q.method = found(kahan.name);
  q.result = &sum;
  q.n = 1000;
  q.input = SAMESUM_FP32;
  EXPECT_THAT(ask(samesum_bound, static_cast<const samesum_bound_query*>(&q), &bound),
              IsInvalid("magnitudes is missing, without which the bound is infinite; pass the sum of |x|"));
  q.has_magnitudes = 1;
  q.magnitudes = 70;
  EXPECT_EQ(bound_of(q), kahan.bound(formats[2], 1000, Number::of(sum), 70));
  const Method& plain = find("tree/plain/fp32");
  q.method = found(plain.name);
  q.probability = 0.9;
  EXPECT_EQ(bound_of(q), plain.bound(formats[2], 1000, Number::of(sum), 70, {.probability = 0.9}));
  EXPECT_LT(bound, plain.bound(formats[2], 1000, Number::of(sum), 70));

  const Method& moments = find("moments/tree/fp64");
  const double both[] = {0.5, 2};
  samesum_bound_query of_moments = samesum_bound_query_default();
  of_moments.method = found(moments.name);
  of_moments.result = both;
  of_moments.n = 100;
  of_moments.input = SAMESUM_FP64;
  of_moments.ddof = 1;
  for (const std::size_t i : {0, 1}) {
    of_moments.result_index = static_cast<std::int32_t>(i);
    EXPECT_EQ(bound_of(of_moments),
              moments.bound(formats[3], 100, {Number::of(0.5), Number::of(2.0)},
                            std::numeric_limits<double>::infinity(), {.result_index = i, .ddof = 1}));
  }
  of_moments.result_index = 2;
  EXPECT_THAT(ask(samesum_bound, static_cast<const samesum_bound_query*>(&of_moments), &bound),
              IsInvalid("result_index"));

  samesum_bound_query on_a_grid = samesum_bound_query_default();
  const Method& fixed = find("fixed_point/fp32");
  on_a_grid.method = found(fixed.name);
  on_a_grid.result = &sum;
  on_a_grid.n = 10;
  on_a_grid.input = SAMESUM_FP64;
  on_a_grid.has_grid = 1;
  on_a_grid.grid = -7;
  EXPECT_EQ(bound_of(on_a_grid), fixed.bound(formats[3], 10, Number::of(sum),
                                             std::numeric_limits<double>::infinity(), {.grid = -7}));

  samesum_bound_query of_index = samesum_bound_query_default();
  of_index.method = found("argmax/fp32");
  of_index.n = 10;
  of_index.input = SAMESUM_FP32;
  EXPECT_EQ(bound_of(of_index), find("argmax/fp32").bound(formats[2], 10, Number::of(0.0f)));
}

// --- partials ---------------------------------------------------------------------------------------------

/// A partial that is freed at the end.
struct PartialInC {
  samesum_partial* handle = nullptr;
  PartialInC() = default;
  PartialInC(const PartialInC&) = delete;
  PartialInC& operator=(const PartialInC&) = delete;
  ~PartialInC() { samesum_partial_destroy(handle); }
};

TEST(PartialsInC, FinishToTheBitsOfTheUndividedCall) {
  const std::size_t n = testing_support::is_sanitized ? 4500 : 9000, cut = 4321;
  std::size_t compared = 0;
  for (const Method* m : testing_support::methods_with_partials("cpu")) {
    const FormatInfo& f = *m->format;
    const Array x{f, wide(n, 12, 1)}, y{f, wide(n, 12, 2)};
    const auto part = [&](const Array& a, std::size_t first, std::size_t count) {
      return samesum_values{static_cast<const std::byte*>(a.values().data) + first * f.bytes, count,
                            format_in_c(&f)};
    };
    const int has_grid = m->takes_grid, grid = has_grid ? -20 : 0;
    PartialInC left, right, received, copy;
    ASSERT_THAT(ask(samesum_partial_create, found(m->name), std::uint64_t{0}, has_grid, grid, &left.handle),
                IsOk());
    ASSERT_THAT(
        ask(samesum_partial_create, found(m->name), std::uint64_t{cut}, has_grid, grid, &right.handle),
        IsOk());
    samesum_options options = samesum_options_default();
    options.threads = 2;
    for (const auto& [partial, first, count] :
         {std::tuple{left.handle, std::size_t{0}, cut}, {right.handle, cut, n - cut}}) {
      const samesum_values of_x = part(x, first, count), of_y = part(y, first, count);
      EXPECT_THAT(ask(samesum_partial_add, partial, &of_x, m->inputs == 2 ? &of_y : nullptr, &options),
                  IsOk());
    }
    std::size_t size = 0;
    EXPECT_THAT(ask(samesum_partial_serialise, static_cast<const samesum_partial*>(right.handle),
                    static_cast<void*>(nullptr), std::size_t{0}, &size),
                IsOk());
    Bytes bytes(size);
    EXPECT_THAT(ask(samesum_partial_serialise, static_cast<const samesum_partial*>(right.handle),
                    static_cast<void*>(bytes.data()), size - 1, &size),
                IsInvalid("has room for"));
    EXPECT_THAT(ask(samesum_partial_serialise, static_cast<const samesum_partial*>(right.handle),
                    static_cast<void*>(bytes.data()), size, &size),
                IsOk());
    EXPECT_THAT(ask(samesum_partial_deserialise, static_cast<const void*>(bytes.data()), size,
                    static_cast<const char*>(nullptr), &received.handle),
                IsOk());
    EXPECT_EQ(samesum_partial_begin(received.handle), cut);
    EXPECT_EQ(samesum_partial_end(received.handle), n);
    EXPECT_EQ(samesum_partial_method(received.handle), found(m->name));
    EXPECT_THAT(ask(samesum_partial_copy, static_cast<const samesum_partial*>(left.handle), &copy.handle),
                IsOk());
    EXPECT_THAT(ask(samesum_partial_merge, copy.handle, static_cast<const samesum_partial*>(received.handle)),
                IsOk());
    EXPECT_EQ(samesum_partial_end(left.handle), cut);

    std::uint64_t bits[2] = {}, expected[2] = {};
    const samesum_results out{bits, static_cast<std::size_t>(m->results), 0,
                              format_in_c(m->result_format(f))};
    EXPECT_THAT(ask(samesum_partial_finish, static_cast<const samesum_partial*>(copy.handle), &out, &options),
                IsOk());
    run({.method = m,
         .x = x.values(),
         .y = m->inputs == 2 ? y.values() : Values{},
         .layout = Layout::vector(n),
         .out = {m->result_format(f), expected, out.size},
         .options = testing_support::with_grid(*m)});
    EXPECT_EQ(bits[0], expected[0]) << m->name;
    EXPECT_EQ(bits[1], expected[1]) << m->name;
    ++compared;

    bytes[size / 2] ^= std::byte{1};
    samesum_partial* damaged = nullptr;
    EXPECT_THAT(
        ask(samesum_partial_deserialise, static_cast<const void*>(bytes.data()), size, "cpu", &damaged),
        IsInvalid("not a serialised state"));
    EXPECT_EQ(damaged, nullptr);
  }
  EXPECT_GT(compared, 50u);
}

TEST(PartialsInC, RefuseWhatCppRefuses) {
  PartialInC partial, next;
  EXPECT_THAT(
      ask(samesum_partial_create, found("softmax/online/fp32"), std::uint64_t{0}, 0, 0, &partial.handle),
      IsInvalid("a number per element"));
  EXPECT_THAT(ask(samesum_partial_create, found("fixed_point/fp32"), std::uint64_t{0}, 0, 0, &partial.handle),
              IsInvalid("needs a grid"));
  EXPECT_THAT(ask(samesum_partial_create, found("kahan/fp32"), std::uint64_t{1} << 63, 0, 0, &partial.handle),
              IsRefusal(static_cast<samesum_status>(SAMESUM_TOO_MANY_ELEMENTS), "2^63"));
  EXPECT_EQ(partial.handle, nullptr);
  ASSERT_THAT(ask(samesum_partial_create, found("kahan/fp32"), std::uint64_t{0}, 0, 0, &partial.handle),
              IsOk());
  ASSERT_THAT(ask(samesum_partial_create, found("kahan/fp32"), std::uint64_t{5}, 0, 0, &next.handle), IsOk());
  EXPECT_THAT(ask(samesum_partial_merge, partial.handle, static_cast<const samesum_partial*>(next.handle)),
              IsInvalid("merge neighbours"));
}

// --- errors -----------------------------------------------------------------------------------------------

template <class Exception> Answer thrown(const Exception& exception) {
  char message[100] = "";
  const samesum_status status = c::guarded(message, sizeof message, [&] { throw exception; });
  return {status, message};
}

TEST(AnException, BecomesACodeAndItsMessage) {
  const auto status = [](int code) { return static_cast<samesum_status>(code); };
  EXPECT_THAT(thrown(std::invalid_argument{"one"}), IsRefusal(status(SAMESUM_INVALID_ARGUMENT), "one"));
  EXPECT_THAT(thrown(std::bad_alloc{}), IsRefusal(status(SAMESUM_OUT_OF_MEMORY), "memory is exhausted"));
  EXPECT_THAT(thrown(std::overflow_error{"two"}), IsRefusal(status(SAMESUM_OVERFLOW), "two"));
  EXPECT_THAT(thrown(std::length_error{"three"}), IsRefusal(status(SAMESUM_TOO_MANY_ELEMENTS), "three"));
  EXPECT_THAT(thrown(c::Unavailable{"four"}), IsRefusal(status(SAMESUM_UNAVAILABLE), "four"));
  EXPECT_THAT(thrown(std::runtime_error{"five"}), IsRefusal(status(SAMESUM_INTERNAL_ERROR), "five"));
  EXPECT_THAT(thrown(7), IsRefusal(status(SAMESUM_INTERNAL_ERROR), "unknown"));
  char message[9] = "not yet";
  EXPECT_EQ(c::guarded(message, sizeof message, [] {}), SAMESUM_OK);
  EXPECT_STREQ(message, "");
}

TEST(AMessage, IsCutToItsBufferBetweenTwoCharacters) {
  const auto cut = [](const char* text, std::size_t bytes) {
    char buffer[16];
    std::memset(buffer, '#', sizeof buffer);
    c::write_message(text, buffer, bytes);
    for (std::size_t i = bytes; i < sizeof buffer; ++i) EXPECT_EQ(buffer[i], '#');
    return bytes == 0 ? std::string{} : std::string{buffer};
  };
  EXPECT_EQ(cut("four", 6), "four");
  EXPECT_EQ(cut("four", 5), "four");
  EXPECT_EQ(cut("four", 4), "fou");
  EXPECT_EQ(cut("four", 1), "");
  EXPECT_EQ(cut("four", 0), "");
  EXPECT_EQ(cut("aΣb", 5), "aΣb");
  EXPECT_EQ(cut("aΣb", 4), "aΣ");
  EXPECT_EQ(cut("aΣb", 3), "a");
  c::write_message("nowhere", nullptr, 100);
  EXPECT_EQ(samesum_find("no such method", SAMESUM_FP32, nullptr, nullptr, 100), SAMESUM_INVALID_ARGUMENT);
  char small[8];
  const samesum_method* method = nullptr;
  EXPECT_EQ(samesum_find("khan", SAMESUM_FP32, &method, small, sizeof small), SAMESUM_INVALID_ARGUMENT);
  EXPECT_STREQ(small, "samesum");
}

TEST(AnUnknownName, IsInvalidAndAMissingBackendUnavailable) {
  const samesum_method* method = nullptr;
  EXPECT_THAT(ask(samesum_find, "tree/khan", SAMESUM_FP32, &method), IsInvalid("khan"));
  EXPECT_THAT(ask(samesum_find, "exact", SAMESUM_NONE, &method), IsInvalid("no format"));
  EXPECT_THAT(ask(samesum_find, "exact", 17, &method), IsInvalid("input is 17"));
  EXPECT_THAT(ask(samesum_find, "exact@gpu", SAMESUM_FP32, &method), IsInvalid("gpu"));
  for (const Absent& a : absent())
    EXPECT_THAT(ask(samesum_find, ("exact@" + a.backend).c_str(), SAMESUM_FP32, &method),
                IsRefusal(static_cast<samesum_status>(SAMESUM_UNAVAILABLE), a.reason));
  EXPECT_EQ(method, nullptr);
}

TEST(CallsOnAGpuInC, AreRefusedWithoutOne) {
  const bool has_gpu = std::ranges::none_of(absent(), [](const Absent& a) { return a.backend == "cuda"; });
  if (has_gpu) GTEST_SKIP() << "there is a GPU";
  float x[4] = {1, 2, 3, 4}, out = 0;
  std::size_t bytes = 77;
  samesum_call call = samesum_call_default();
  call.method = found("exact/fp32@cpu");
  call.x = {x, 4, SAMESUM_FP32};
  call.out = {&out, 1, 0, SAMESUM_FP32};
  const samesum_call* const asked = &call;
  void* const none = nullptr;
  const Answer answers[] = {ask(samesum_workspace_size, asked, &bytes),
                            ask(samesum_enqueue, asked, static_cast<void*>(x), bytes, none,
                                static_cast<samesum_device_status*>(nullptr)),
                            ask(samesum_prepare, none, bytes, none)};
  for (const Answer& answer : answers)  // built without CUDA, or with CUDA for a machine without a GPU
    EXPECT_TRUE(answer.status == SAMESUM_UNAVAILABLE || answer.status == SAMESUM_INVALID_ARGUMENT)
        << ::testing::PrintToString(answer);
  EXPECT_EQ(bytes, 77u);
  EXPECT_EQ(out, 0);
}

/// A valid call of a sum, of which each test damages a part.
struct ValidCall {
  float x[4] = {1, 2, 3, 4}, out = 0;
  samesum_call call = samesum_call_default();
  samesum_options options = samesum_options_default();
  ValidCall() {
    call.options = &options;
    call.method = found("exact/fp32");
    call.x = {x, 4, SAMESUM_FP32};
    call.out = {&out, 1, 0, SAMESUM_FP32};
  }
  ValidCall(const ValidCall&) = delete;
  Answer run() const { return ask(samesum_run, &call); }
};

TEST(ADefaultCall, NeedsOnlyAMethodAnInputAndAPlaceForTheResult) {
  ValidCall valid;
  valid.call.options = nullptr;
  EXPECT_THAT(valid.run(), IsOk());
  EXPECT_EQ(valid.out, 10);
}

TEST(ACallWithFlags, ReducesTheElementsThatTakePart) {
  ValidCall valid;
  const std::uint8_t where[] = {1, 1, 0, 1};
  valid.x[0] = std::numeric_limits<float>::quiet_NaN();
  valid.options.where = where;
  valid.options.skip_nan = 1;
  EXPECT_THAT(valid.run(), IsOk());
  EXPECT_EQ(valid.out, 6);
}

TEST(ADamagedCall, IsRefusedAndWritesNothing) {
  const std::uint64_t offsets[] = {0, 4};
  const std::vector<std::pair<const char*, void (*)(samesum_call&, samesum_options&)>> damages{
      {"x.format is 6", [](samesum_call& c, samesum_options&) { c.x.format = 6; }},
      {"x.format is 5", [](samesum_call& c, samesum_options&) { c.x.format = SAMESUM_INT64; }},
      {"x.format is -1", [](samesum_call& c, samesum_options&) { c.x.format = -1; }},
      {"x has no format", [](samesum_call& c, samesum_options&) { c.x.format = SAMESUM_NONE; }},
      {"x is null", [](samesum_call& c, samesum_options&) { c.x.data = nullptr; }},
      {"x has", [](samesum_call& c, samesum_options&) { c.x.size = SIZE_MAX; }},
      {"y has no format", [](samesum_call& c, samesum_options&) { c.y.size = 1; }},
      {"leave out y", [](samesum_call& c, samesum_options&) { c.y = c.x; }},
      {"keys.format is 4", [](samesum_call& c, samesum_options&) { c.keys.format = 4; }},
      {"keys have no format", [](samesum_call& c, samesum_options&) { c.keys.size = 3; }},
      {"takes no keys", [](samesum_call& c, samesum_options&) { c.keys.format = SAMESUM_KEYS_INT64; }},
      {"layout.kind is 3", [](samesum_call& c, samesum_options&) { c.layout.kind = 3; }},
      {"SAMESUM_ALL", [](samesum_call& c, samesum_options&) { c.layout.n = 4; }},
      {"offsets is null", [](samesum_call& c, samesum_options&) { c.layout = samesum_segments(nullptr, 1); }},
      {"more elements", [](samesum_call& c, samesum_options&) { c.layout = samesum_vector(5); }},
      {"out.format is 0", [](samesum_call& c, samesum_options&) { c.out.format = SAMESUM_NONE; }},
      {"out holds", [](samesum_call& c, samesum_options&) { c.out.format = SAMESUM_INT64; }},
      {"out is null", [](samesum_call& c, samesum_options&) { c.out.data = nullptr; }},
      {"out has room", [](samesum_call& c, samesum_options&) { c.out.size = 2; }},
      {"out overlaps x", [](samesum_call& c, samesum_options&) { c.out.data = const_cast<void*>(c.x.data); }},
      {"threads is -1", [](samesum_call&, samesum_options& o) { o.threads = -1; }},
      {"options.exclusive is 2", [](samesum_call&, samesum_options& o) { o.exclusive = 2; }},
      {"only for scans", [](samesum_call&, samesum_options& o) { o.exclusive = 1; }},
      {"options.combine is -1", [](samesum_call&, samesum_options& o) { o.combine = -1; }},
      {"combine is only", [](samesum_call&, samesum_options& o) { o.combine = 1; }},
      {"options.has_grid is 9", [](samesum_call&, samesum_options& o) { o.has_grid = 9; }},
      {"grid is only", [](samesum_call&, samesum_options& o) { o.has_grid = 1; }},
      {"options.struct_size is 0", [](samesum_call&, samesum_options& o) { o.struct_size = 0; }},
      {"options.skip_nan is 3", [](samesum_call&, samesum_options& o) { o.skip_nan = 3; }},
      {"options.centred is 2", [](samesum_call&, samesum_options& o) { o.centred = 2; }},
      {"options.has_min_periods is 2", [](samesum_call&, samesum_options& o) { o.has_min_periods = 2; }},
      {"window is only for rolling", [](samesum_call&, samesum_options& o) { o.window = 2; }},
      {"call.struct_size is 0", [](samesum_call& c, samesum_options&) { c.struct_size = 0; }},
      {"method is NULL", [](samesum_call& c, samesum_options&) { c.method = nullptr; }}};
  for (const auto& [message, damage] : damages) {
    ValidCall valid;
    damage(valid.call, valid.options);
    EXPECT_THAT(valid.run(), IsInvalid(message));
    EXPECT_EQ(valid.out, 0) << message;
  }
  ValidCall valid;
  valid.call.layout = samesum_vector(4);
  valid.call.layout.offsets = offsets;
  EXPECT_THAT(valid.run(), IsInvalid("SAMESUM_SEGMENTS"));
}

// --- callers with another header ---------------------------------------------------------------------------

/// A structure as a later header has it: two more words behind the query of this one.
struct LaterQuery {
  samesum_bound_query query = samesum_bound_query_default();
  std::uint64_t more[2] = {};
  LaterQuery() {
    query.struct_size = sizeof(LaterQuery);
    query.method = found("argmax/fp32");
    query.input = SAMESUM_FP32;
    query.n = 10;
  }
  Answer bound() const {
    double bound = 0;
    return ask(samesum_bound, &query, &bound);
  }
};

TEST(ALaterStructure, WorksIfTheFieldsThatThisLibraryLacksAreZero) {
  LaterQuery later;
  EXPECT_THAT(later.bound(), IsOk());
  for (std::uint64_t& word : later.more) {
    word = std::uint64_t{1} << 56;
    EXPECT_THAT(later.bound(), IsInvalid("query has fields that samesum 0."));
    word = 0;
  }
}

TEST(AnEarlierStructure, HasZerosInTheFieldsThatItLacks) {
  struct Grown {
    std::size_t struct_size;
    std::uint64_t first, added;
  };
  const std::uint64_t memory[] = {16, 5, 77};  // 77 lies behind the structure of 16 bytes
  Grown given;
  std::memcpy(&given, memory, sizeof given);
  const Grown read = c::sized(&given, "x", "samesum_x", 16);
  EXPECT_EQ(read.first, 5u);
  EXPECT_EQ(read.added, 0u);
}

TEST(AStructureWithoutItsSize, IsRefusedWithTheRemedy) {
  const samesum_method* const sum = found("exact/fp32");
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(sum);
  // What precedes the fields of older programs: nothing, flags, an address, 1.0.
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, address,
        std::uint64_t{0x3ff0000000000000}, std::uint64_t{64}, std::uint64_t{4104},
        std::uint64_t{sizeof(samesum_call) - 8}, std::uint64_t{sizeof(samesum_call) + 1}}) {
    ValidCall valid;
    valid.call.struct_size = size;
    EXPECT_THAT(valid.run(), IsInvalid("call.struct_size is "));
    EXPECT_THAT(valid.run(), IsInvalid("set it to sizeof(samesum_call), as samesum_call_default() does"));
    EXPECT_EQ(valid.out, 0);
  }
  samesum_options options = samesum_options_default();
  options.struct_size = 64;
  PartialInC partial;
  ASSERT_THAT(ask(samesum_partial_create, sum, std::uint64_t{0}, 0, 0, &partial.handle), IsOk());
  const float x = 1;
  const samesum_values values{&x, 1, SAMESUM_FP32};
  const samesum_options* const old = &options;
  EXPECT_THAT(
      ask(samesum_partial_add, partial.handle, &values, static_cast<const samesum_values*>(nullptr), old),
      IsInvalid("options.struct_size is 64"));
  samesum_bound_query query = samesum_bound_query_default();
  query.struct_size = 0;
  double bound = 0;
  EXPECT_THAT(ask(samesum_bound, static_cast<const samesum_bound_query*>(&query), &bound),
              IsInvalid("query.struct_size is 0"));
  query = samesum_bound_query_default();
  query.reserved_32 = 1;
  EXPECT_THAT(ask(samesum_bound, static_cast<const samesum_bound_query*>(&query), &bound),
              IsInvalid("query.reserved_32 is not 0"));
}

TEST(NullArguments, AreRefused) {
  const samesum_method* const sum = found("exact/fp32");
  const samesum_values none{nullptr, 0, SAMESUM_FP32};
  const samesum_values* const no_values = nullptr;
  double bound = 0;
  samesum_bound_query query = samesum_bound_query_default();
  query.method = sum;
  query.input = SAMESUM_FP32;
  float value = 0;
  void *const no_memory = nullptr, *const memory = &value;
  samesum_partial* partial = nullptr;
  const samesum_partial* const no_partial = nullptr;
  std::size_t size = 0;
  const samesum_results out{&value, 1, 0, SAMESUM_FP32};
  PartialInC valid;
  ASSERT_THAT(ask(samesum_partial_create, sum, std::uint64_t{0}, 0, 0, &valid.handle), IsOk());
  const samesum_partial* const given = valid.handle;
  const std::vector<Answer> answers{
      ask(samesum_find, static_cast<const char*>(nullptr), SAMESUM_FP32,
          static_cast<const samesum_method**>(nullptr)),
      ask(samesum_find, "exact", SAMESUM_FP32, static_cast<const samesum_method**>(nullptr)),
      ask(samesum_run, static_cast<const samesum_call*>(nullptr)),
      ask(samesum_estimate, sum, no_values, no_values, memory, &bound, &bound),
      ask(samesum_estimate, sum, &none, no_values, no_memory, &bound, &bound),
      ask(samesum_estimate, sum, &none, no_values, memory, static_cast<double*>(nullptr), &bound),
      ask(samesum_bound, static_cast<const samesum_bound_query*>(nullptr), &bound),
      ask(samesum_bound, static_cast<const samesum_bound_query*>(&query), &bound),
      ask(samesum_bound, static_cast<const samesum_bound_query*>(&query), static_cast<double*>(nullptr)),
      ask(samesum_partial_create, static_cast<const samesum_method*>(nullptr), std::uint64_t{0}, 0, 0,
          &partial),
      ask(samesum_partial_create, sum, std::uint64_t{0}, 0, 0, static_cast<samesum_partial**>(nullptr)),
      ask(samesum_partial_copy, no_partial, &partial),
      ask(samesum_partial_copy, given, static_cast<samesum_partial**>(nullptr)),
      ask(samesum_partial_add, static_cast<samesum_partial*>(nullptr), &none, no_values,
          static_cast<const samesum_options*>(nullptr)),
      ask(samesum_partial_add, valid.handle, no_values, no_values,
          static_cast<const samesum_options*>(nullptr)),
      ask(samesum_partial_merge, static_cast<samesum_partial*>(nullptr), given),
      ask(samesum_partial_merge, valid.handle, no_partial),
      ask(samesum_partial_finish, no_partial, &out, static_cast<const samesum_options*>(nullptr)),
      ask(samesum_partial_finish, given, static_cast<const samesum_results*>(nullptr),
          static_cast<const samesum_options*>(nullptr)),
      ask(samesum_partial_serialise, no_partial, memory, std::size_t{4}, &size),
      ask(samesum_partial_serialise, given, memory, std::size_t{4}, static_cast<std::size_t*>(nullptr)),
      ask(samesum_partial_deserialise, static_cast<const void*>(nullptr), std::size_t{9}, "cpu", &partial),
      ask(samesum_partial_deserialise, static_cast<const void*>(memory), std::size_t{4}, "cpu",
          static_cast<samesum_partial**>(nullptr))};
  for (std::size_t i = 0; i < answers.size(); ++i)
    EXPECT_THAT(answers[i], IsInvalid(" is NULL")) << "answer " << i;
  EXPECT_EQ(partial, nullptr);
  samesum_options exclusive = samesum_options_default();
  exclusive.exclusive = 1;
  EXPECT_THAT(ask(samesum_partial_add, valid.handle, &none, no_values,
                  static_cast<const samesum_options*>(&exclusive)),
              IsInvalid("exclusive is only for scans"));
  samesum_partial_destroy(nullptr);
  EXPECT_EQ(samesum_partial_method(nullptr), nullptr);
  EXPECT_EQ(samesum_partial_begin(nullptr), 0u);
  EXPECT_EQ(samesum_partial_end(nullptr), 0u);
}

}  // namespace
}  // namespace samesum::c_interface
