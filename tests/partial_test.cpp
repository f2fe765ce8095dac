#include <cstdlib>
#include <numeric>
#include <optional>

#include "partial_support.hpp"
#include "samesum/base/serial_form.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

class EveryPartial : public ::testing::TestWithParam<const Method*> {
 protected:
  const Method& m = *GetParam();
  std::mt19937_64 random{std::hash<std::string>{}(m.name)};
};
INSTANTIATE_TEST_SUITE_P(Cpu, EveryPartial,
                         ::testing::ValuesIn(without_fp16_if_sanitized(methods_with_partials("cpu"))),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Reference, EveryPartial, ::testing::ValuesIn(methods_with_partials("reference")),
                         test_name);

/// Lengths around lanes and leaves, and of several leaves.
std::size_t random_length(std::mt19937_64& random) {
  const std::size_t most[] = {20, 300, 4200, 9000, 40000};
  return below(random, most[std::min<std::size_t>(below(random, 16), 4)]);
}

TEST_P(EveryPartial, HasTheBitsOfTheUndividedCallHoweverItIsCutAndMerged) {
  SAMESUM_SANITIZED_IN_FP32(m);
  // 10^5 cuts over all methods take minutes.
  const int rounds = m.backend == "reference"            ? 2
                     : std::getenv("SAMESUM_LONG_TESTS") ? 500
                     : is_sanitized                      ? 4
                                                         : 20;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t n = round % 4 == 3 ? random_length(random) : below(random, 600),
                      parts = 1 + below(random, round % 4 == 2 ? 257 : 9);
    const Inputs in = random_inputs(random, m, n);
    std::vector<Partial> all =
        random_parts(random, in, parts, [this](std::size_t) -> const Method& { return m; });
    for (Partial& part : all)
      if (random() % 4 == 0) part = Partial::deserialise(part.serialise(), m);
    const Partial whole = merged(random, std::move(all));
    const Options options{.ddof = static_cast<double>(m.results == 2 && round % 2)};
    ASSERT_EQ(finished(whole, options), undivided(m, in, options))
        << "n = " << n << ", " << parts << " parts, " << in.x.values().format->name << ", round " << round;
    Partial at_once = partial_of(find_on("cpu", m));
    add(at_once, in, 0, n);
    ASSERT_TRUE(whole.serialise() == at_once.serialise()) << "n = " << n << ", " << parts << " parts";
  }
}

/// A hundred thousand ranks, simulated: neighbours are merged across their boundaries in random order.
TEST(APartial, HasTheBitsOfTheUndividedCallAfterAHundredThousandRandomMerges) {
  const std::size_t parts = is_sanitized ? 2000 : 100'000;
  for (const char* name :
       {"sum/tree/kahan/fp32", "sum/pairwise/plain/fp32", "sum/prefix/double_word/fp32",
        "sum/canonical16/plain/fp32", "sum/serial/plain/fp32", "sum/exact/fp64", "sum/fixed_point/fp64",
        "dot/tree/kahan/fp32", "moments/tree/fp32", "argmax/fp16"}) {
    const Method& m = find(name);
    std::mt19937_64 random{std::hash<std::string_view>{}(name)};
    std::vector<std::size_t> cuts{0};
    for (std::size_t k = 0; k < parts; ++k) cuts.push_back(cuts.back() + below(random, 7));
    const std::size_t n = cuts.back();
    const Inputs in{{*m.format, wide(n, 20, random())}, {*m.format, wide(m.inputs == 2 ? n : 0, 20, 1)}, n};
    std::vector<std::optional<Partial>> all;
    for (std::size_t k = 0; k < parts; ++k) {
      all.emplace_back(partial_of(m, cuts[k]));
      add(*all.back(), in, cuts[k], cuts[k + 1] - cuts[k], {.threads = 1});
    }
    // first(k) is the first part of those that are merged with part k.
    std::vector<std::size_t> boundaries(parts - 1), left(parts);
    std::iota(boundaries.begin(), boundaries.end(), std::size_t{1});
    std::iota(left.begin(), left.end(), std::size_t{0});
    std::shuffle(boundaries.begin(), boundaries.end(), random);
    const auto first = [&](std::size_t k) {
      while (left[k] != k) k = left[k] = left[left[k]];
      return k;
    };
    for (const std::size_t boundary : boundaries) {
      left[boundary] = first(boundary - 1);
      all[left[boundary]]->merge(*all[boundary]);
      all[boundary].reset();
    }
    EXPECT_EQ(finished(*all.front()), undivided(m, in)) << name;
  }
}

TEST(APartial, HoldsFewStates) {
  SAMESUM_UNSANITIZED("it tests sizes");
  std::mt19937_64 random{3};
  const std::size_t n = 100'000, begin = 12'345;
  for (const Method* m : methods_with_partials("cpu")) {
    if (m->order == "serial") continue;  // keeps its elements
    Partial part = partial_of(*m, begin);
    add(part, random_inputs(random, *m, n), 0, n);
    const Shape shape = shape_of(*m);
    const std::size_t lanes = shape.leaf == unbounded && !m->order.empty() ? shape.lanes : 1;
    const std::size_t leaf = m->order.empty() ? 1 : lanes > 1 ? lanes : shape.leaf;
    const std::size_t subtrees = m->order.empty() ? 1 : 2 * ceil_log2(n / leaf) + 2;
    const std::size_t state = m->accumulator == "exact" ? 2 * 136 * 4 + 1 : 32;
    const std::size_t kept = 2 * (leaf - 1) * m->format->bytes * static_cast<std::size_t>(m->inputs);
    EXPECT_LE(part.serialise().size(), 100 + subtrees * lanes * state + kept) << m->name;
  }
}

std::vector<const Method*> methods_without_partials() {
  std::vector<const Method*> all;
  for (const Method& m : methods())
    if (m.backend == "cpu" && !has_partials(m)) all.push_back(&m);
  return all;
}

TEST(APartial, ExistsOnlyForDeterministicMethodsWithOneResult) {
  for (const Method* m : methods_without_partials()) {
    EXPECT_THROW(Partial{*m}, std::invalid_argument) << m->name;
  }
  EXPECT_FALSE(methods_without_partials().empty());
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no exception";
}

TEST(APartial, NamesWhatIsWrong) {
  const std::vector<float> x(10, 1.0f);
  Partial first{"tree/plain/fp32"}, gap{"tree/plain/fp32", 11}, other{"tree/kahan/fp32", 10};
  first.add(x);
  EXPECT_THAT(message_of([&] { first.merge(gap); }),
              HasSubstr("ends before element 10, but the other begins at element 11"));
  EXPECT_THAT(message_of([&] { first.merge(other); }), HasSubstr("partial of sum/tree/kahan/fp32"));
  EXPECT_THAT(message_of([&] { static_cast<void>(gap.finish()); }), HasSubstr("begins at element 11"));
  EXPECT_THAT(message_of([&] { first.add(x, x); }), HasSubstr("one input"));
  EXPECT_THAT(message_of([&] { first.add(x, Options{.threads = -1}); }), HasSubstr("threads"));
  for (const auto& [option, name] : {std::pair{Options{.exclusive = true}, "exclusive"},
                                     {Options{.combine = true}, "combine"},
                                     {Options{.window = 3}, "window"},
                                     {Options{.centred = true}, "centred"},
                                     {Options{.min_periods = 1}, "min_periods"}})
    for (const bool skip_nan : {false, true}) {
      Options options = option;
      options.skip_nan = skip_nan;
      const auto is_refused = HasSubstr(std::string{name} + " is only for");
      EXPECT_THAT(message_of([&] { first.add(x, options); }), is_refused);
      EXPECT_THAT(message_of([&] { static_cast<void>(find("tree/plain/fp32")(x, options)); }), is_refused);
      EXPECT_THAT(message_of([&] { find("tree/plain/fp32").bind(x, options)(); }), is_refused);
      if (!skip_nan) {
        EXPECT_THAT(message_of([&] { accumulate(x, options); }), is_refused);
      }
    }
  EXPECT_THAT(message_of([&] { Partial{"softmax/tree/plain/fp32"}; }), HasSubstr("number per element"));
  EXPECT_THAT(message_of([&] { Partial{"atomic/plain/fp32"}; }), HasSubstr("run to run"));
  EXPECT_THAT(message_of([&] { Partial("tree/plain/fp32", std::uint64_t{1} << 63); }), HasSubstr("2^63"));
  Partial last("argmax/fp32", (std::uint64_t{1} << 63) - 10);
  EXPECT_THAT(message_of([&] { last.add(x); }), HasSubstr("2^63"));
  EXPECT_THAT(message_of([&] { static_cast<void>(Partial{"argmax/fp32"}.finish()); }), HasSubstr("index"));
  EXPECT_THAT(message_of([&] { static_cast<void>(Partial{"moments/tree/fp32"}.finish()); }),
              HasSubstr("two numbers"));
  EXPECT_THAT(message_of([&] { Partial{"fixed_point/fp32"}; }), HasSubstr("needs a grid"));
  EXPECT_THAT(message_of([&] { Partial("tree/plain/fp32", 0, 3); }),
              HasSubstr("only for the accumulator fixed_point"));
  EXPECT_THAT(message_of([&] { Partial("fixed_point/fp32", 0, 9999); }), HasSubstr("grid is 9999"));
  Partial coarse("fixed_point/fp32", 0, 5), fine("fixed_point/fp32", 0, -90);
  EXPECT_THAT(message_of([&] { coarse.merge(fine); }),
              HasSubstr("its grid is 5, but that of the other is -90"));
  EXPECT_THAT(message_of([&] { coarse.add(x, {.grid = 6}); }), HasSubstr("set when it is created"));
  fine.add(x);
  EXPECT_THAT(message_of([&] { static_cast<void>(fine.finish()); }),
              HasSubstr("overflows the grid 2^-90; give a larger"));
  EXPECT_EQ(first.finish(), find("tree/plain/fp32")(x)) << "errors left it unchanged";
}

TEST(APartial, CountsIndicesFromTheBeginningOfTheVector) {
  const std::vector<double> x{1, 3, 2}, y{0, 3, 4};
  Partial all{"argmax/fp64"}, rest{"argmax/fp64", 3};
  all.add(x);
  rest.add(y);
  std::int64_t index = -1;
  all.finish(std::span{&index, 1});
  EXPECT_EQ(index, 1);
  all.merge(rest);
  all.finish(std::span{&index, 1});
  EXPECT_EQ(index, 5);
}

TEST(APartial, CanBeFinishedAndGoOn) {
  const std::vector<float> x = [] {
    std::vector<float> of;
    for (const double e : wide(9000, 10, 1)) of.push_back(static_cast<float>(e));
    return of;
  }();
  const Method& m = find("tree/kahan/fp32");
  Partial partial{m};
  for (std::size_t n = 0; n < x.size(); n += 1000) {
    partial.add(std::span{x}.subspan(n, 1000));
    EXPECT_EQ(partial.finish(), m(std::span{x}.first(n + 1000))) << n;
  }
}

TEST(APartial, IsRefusedIfItsBytesAreDamaged) {
  const Method& m = find("tree/kahan/fp32");
  Partial partial{m, 4000};
  partial.add(Array{format_info<fp32>(), wide(10'000, 20, 3)}.values());
  const std::vector<std::byte> bytes = partial.serialise();
  for (std::size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 997)
    EXPECT_THROW(Partial::deserialise(std::span{bytes}.first(size)), std::invalid_argument) << size;
  for (std::size_t at = 0; at < bytes.size(); at += at < 200 ? 1 : 31) {
    auto wrong = bytes;
    wrong[at] ^= std::byte{4};
    EXPECT_THROW(Partial::deserialise(wrong), std::invalid_argument) << at;
  }
  auto damaged = bytes, future = bytes, longer = bytes;
  damaged[100] ^= std::byte{1};
  future[4] = std::byte{9};
  longer.push_back(std::byte{0});
  const auto restored = [](const std::vector<std::byte>& from) {
    return [&from] { Partial::deserialise(from); };
  };
  EXPECT_THAT(message_of(restored(damaged)), HasSubstr("checksum"));
  EXPECT_THAT(message_of(restored(future)), HasSubstr("version 9"));
  EXPECT_THAT(message_of(restored(longer)), HasSubstr("checksum"));
  EXPECT_THAT(message_of(restored(Exact{}.serialise())), HasSubstr("checksum"));
  EXPECT_THAT(message_of([&] { Exact::deserialise(bytes); }), HasSubstr("not exact"));
  EXPECT_THAT(message_of([&] { Partial::deserialise(bytes, find("tree/plain/fp32")); }),
              HasSubstr("holds a partial of sum/tree/kahan/fp32, not of sum/tree/plain/fp32"));
  EXPECT_THAT(message_of([&] { Partial::deserialise(bytes, "gpu"); }), HasSubstr("no method"));
}

/// Replaces the checksum, so that the fields behind it are read.
void sign(std::vector<std::byte>& bytes) {
  if (bytes.size() < 4) return;
  const std::uint32_t sum = crc32(std::span{bytes}.first(bytes.size() - 4));
  for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(sum >> (8 * i));
}

/// Replaces the bytes from `at` on by a number, and the checksum.
std::vector<std::byte> forged(std::vector<std::byte> bytes, std::size_t at, std::uint64_t number) {
  for (std::size_t i = 0; i < sizeof number; ++i) bytes[at + i] = static_cast<std::byte>(number >> (8 * i));
  sign(bytes);
  return bytes;
}

TEST(APartial, IsRefusedIfItsFieldsAreImpossible) {
  const std::size_t header = 6;  // and the name; then come begin, end, elements and states
  const std::string serial = "sum/serial/plain/fp32", argmax = "argmax/fp32", prod = "prod/tree/fp32";
  const auto bytes_of = [](const std::string& name, std::uint64_t begin, std::size_t n) {
    Partial partial{name, begin};
    partial.add(std::vector<float>(n, 2.0f));
    return partial.serialise();
  };
  const auto refused = [](const std::vector<std::byte>& bytes) {
    EXPECT_THROW(Partial::deserialise(bytes), std::invalid_argument);
  };
  refused(forged(bytes_of(serial, 1, 0), header + serial.size() + 8, 1 + (std::uint64_t{1} << 62)));
  refused(forged(bytes_of(argmax, 0, 10), header + argmax.size() + 20, 10));
  refused(forged(bytes_of(prod, 0, 4096), header + prod.size() + 20, std::uint64_t{1} << 63));
  EXPECT_NO_THROW(Partial::deserialise(forged(bytes_of(argmax, 0, 10), header + argmax.size() + 20, 9)));
}

TEST(APartial, ThatWasMovedFromHasNoElements) {
  const std::vector<float> x(5000, 0.5f);
  for (const char* name : {"tree/plain/fp32", "exact/fp32", "serial/plain/fp32", "canonical16/plain/fp32"}) {
    Partial from{name}, to{name};
    from.add(x);
    to = std::move(from);
    EXPECT_EQ(from.size(), 0u);
    EXPECT_EQ(from.finish(), Number::of(0.0f));
    from.add(x);
    EXPECT_EQ(from.finish(), to.finish());
  }
}

TEST(APartial, IsRestoredFromForgedBytesOnlyIfTheyAreValid) {
  std::mt19937_64 random{5};
  const std::vector<const Method*> all = methods_with_partials("cpu");
  int taken = 0, refused = 0;
  const int rounds = is_sanitized ? 3000 : 30'000;
  for (int round = 0; round < rounds; ++round) {
    const Method& m = *all[below(random, all.size())];
    const std::size_t n = below(random, random() % 8 ? 40 : 300);
    Partial part = partial_of(m, random() % 2 ? 0 : below(random, 5000));
    add(part, random_inputs(random, m, n), 0, n);
    std::vector<std::byte> bytes = part.serialise();
    const std::size_t header = m.name.find('@') + 6;
    for (std::size_t i = 1 + below(random, 3); i > 0; --i) {
      if (random() % 16 == 0) bytes.resize(below(random, bytes.size() + 20));
      if (bytes.size() > header)
        bytes[random() % 8 ? header + below(random, bytes.size() - header) : below(random, bytes.size())] ^=
            static_cast<std::byte>(1 << random() % 8);
    }
    sign(bytes);
    try {
      Partial copy = Partial::deserialise(bytes);
      ASSERT_EQ(copy.serialise(), bytes) << m.name;
      if (copy.begin() == 0) finished(copy);
      Partial next{copy.method(), copy.end(), copy.grid()};
      if (copy.method().name == m.name) add(next, random_inputs(random, m, 5), 0, 5);
      copy.merge(next);
      ++taken;
    } catch (const std::invalid_argument&) {
      ++refused;
    } catch (const std::length_error&) {
      ++refused;
    }
  }
  EXPECT_GT(taken, rounds / 10);
  EXPECT_GT(refused, rounds / 10);
}

}  // namespace
}  // namespace samesum
