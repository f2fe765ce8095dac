/// Aggregate states of the C interface have the bits of Exact, of Partial and of the methods, whatever was
/// added and subtracted in which order.
#include <algorithm>
#include <limits>
#include <map>

#include "cases.hpp"
#include "interface/c_support.hpp"
#include "samesum/base/serial_form.hpp"

namespace samesum::c_interface {
namespace {

using Bytes = std::vector<std::byte>;

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

Values part(const Values& all, std::size_t first, std::size_t count) {
  return {*all.format, static_cast<const std::byte*>(all.data) + first * all.format->bytes, count};
}

TEST(AStateOfAnExactSum, HasTheResultsAndBytesOfExact) {
  for (const testing::Case& c : testing::cases()) {
    const Array array = c.array();
    const Values x = array.values();
    const Exact expected = accumulate(x);
    State state{"exact/fp64"}, tail{"sum/exact/fp16"};
    EXPECT_TRUE(samesum_state_is_empty(state));
    ASSERT_THAT(state.add(part(x, 0, x.size / 3)), IsOk());
    ASSERT_THAT(tail.add(part(x, x.size / 3, x.size - x.size / 3)), IsOk());
    ASSERT_THAT(state.merge(tail), IsOk());
    EXPECT_EQ(samesum_state_is_empty(state), x.size == 0) << c;
    for (const FormatInfo& f : formats)
      EXPECT_EQ(state.result(f), expected.result(f)) << c << " in " << f.name;
    EXPECT_EQ(state.result(*c.format), c.expected()) << c;
    EXPECT_TRUE(state.serialise() == expected.serialise()) << c;
    State received{"exact/fp64"};
    EXPECT_THAT(received.deserialise(state.serialise()), IsOk());
    EXPECT_TRUE(received.serialise() == expected.serialise()) << c;
  }
}

TEST(AStateOfAnExactSum, TakesSingleElements) {
  State state{"exact/fp64"};
  Exact expected;
  for (const double x : wide(200, 300, 3)) {
    EXPECT_EQ(samesum_state_add_fp64(state, x), SAMESUM_OK);
    EXPECT_EQ(samesum_state_add_fp32(state, static_cast<float>(-x)), SAMESUM_OK);
    expected.add(x);
    expected.add(static_cast<float>(-x));
  }
  EXPECT_TRUE(state.serialise() == expected.serialise());
}

TEST(AStateOnAGrid, HasTheBitsOfTheMethodAndTheBytesOfAPartial) {
  for (const FormatInfo& f : formats)
    for (const FormatInfo& input : formats)
      for (const testing_support::Dataset& data : testing_support::datasets(700)) {
        const Method& m = find("fixed_point", {.format = f.name});
        const Array array{input, data.x};
        const Values x = array.values();
        State left{"fixed_point/" + std::string{f.name}, on_grid(-20)},
            right{"fixed_point/" + std::string{f.name}, on_grid(-20)};
        ASSERT_THAT(right.add(part(x, 100, 600)), IsOk());
        ASSERT_THAT(left.add(part(x, 0, 100)), IsOk());
        ASSERT_THAT(right.merge(left), IsOk());
        EXPECT_EQ(right.result(f), m(x, {.grid = -20})) << m.name << ", " << data.name;
        Partial partial{m, 0, -20};
        partial.add(x);
        EXPECT_TRUE(right.serialise() == partial.serialise()) << m.name << ", " << data.name;
        State received{"fixed_point/" + std::string{f.name}, on_grid(-20)};
        EXPECT_THAT(received.deserialise(partial.serialise()), IsOk());
        EXPECT_EQ(received.result(f), m(x, {.grid = -20}));
        EXPECT_EQ(received.mean(f, 700), find("mean/fixed_point", {.format = f.name})(x, {.grid = -20}));
      }
}

TEST(AStateOnAGrid, TakesSingleElements) {
  State one_by_one{"fixed_point/fp64", on_grid(-30)}, at_once{"fixed_point/fp64", on_grid(-30)};
  const std::vector<double> x = wide(300, 40, 3);
  for (const double element : x) EXPECT_EQ(samesum_state_add_fp64(one_by_one, element), SAMESUM_OK);
  EXPECT_THAT(at_once.add(x), IsOk());
  EXPECT_TRUE(one_by_one.serialise() == at_once.serialise());
  for (const double element : {infinity, not_a_number}) {
    EXPECT_EQ(samesum_state_add_fp32(one_by_one, static_cast<float>(element)), SAMESUM_OK);
    EXPECT_THAT(at_once.add(std::vector<double>{element}), IsOk());
    EXPECT_TRUE(one_by_one.serialise() == at_once.serialise());
    EXPECT_EQ(one_by_one.result(formats[3]), at_once.result(formats[3]));
  }
}

TEST(AStateOnAGrid, ReportsOverflowWhereTheMethodDoes) {
  // 2^62 units of 2^-10 are 2^52; two terms of fp32 may have 2^125 units, and their sum 2^62.
  for (const char* name : {"fixed_point/fp32", "fixed_point/fp64"})
    for (const double x : {0x1p50, 0x1p51, 0x1p52, 0x1p115, 0x1p116}) {
      const std::vector<double> data{x, x};
      bool overflows = false;
      try {
        find(name)(data, {.grid = -10});
      } catch (const std::overflow_error&) {
        overflows = true;
      }
      State state{name, on_grid(-10)};
      EXPECT_THAT(state.add(data), IsOk());
      double out = 0;
      const Answer answer =
          ask(samesum_state_finish, std::as_const(state).get(), SAMESUM_FP64, static_cast<void*>(&out));
      EXPECT_EQ(answer.status, overflows ? SAMESUM_OVERFLOW : SAMESUM_OK) << name << ", " << x;
      EXPECT_EQ(out != out, overflows);
      if (!overflows) {
        EXPECT_EQ(out, 2 * x);
      }
    }
}

TEST(TheMeanOfAState, IsThatOfTheMethod) {
  for (const FormatInfo& f : formats)
    for (const testing_support::Dataset& data : testing_support::datasets(77)) {
      const Array x{f, data.x};
      State exact{"exact/fp64"}, other{"exact/fp64", subtractable};
      EXPECT_THAT(exact.add(x.values()), IsOk());
      EXPECT_THAT(other.add(x.values()), IsOk());
      const Number mean = find("mean/exact", {.format = f.name})(x.values());
      EXPECT_EQ(exact.mean(f, 77), mean) << data.name;
      EXPECT_EQ(other.mean(f, 77), mean) << data.name;
      EXPECT_EQ(exact.mean(f, 0), (Number{&f, f.canonical_nan}));
    }
  for (const std::vector<double>& special :
       {std::vector<double>{infinity, 1}, {infinity, -infinity}, {not_a_number, 2}}) {
    State exact{"exact/fp64"};
    EXPECT_THAT(exact.add(special), IsOk());
    EXPECT_EQ(exact.mean(formats[3], 2), find("mean/exact/fp64")(special));
  }
}

// --- subtraction ------------------------------------------------------------------------------------------

/// Elements by their bits, which tell -0 from +0 and NaN from NaN.
class Multiset {
 public:
  void change(double x, int by) { count_[std::bit_cast<std::uint64_t>(x)] += by; }
  bool can_lose(double x) const {
    const auto at = count_.find(std::bit_cast<std::uint64_t>(x));
    return at != count_.end() && at->second > 0;
  }
  Exact sum() const {
    Exact sum;
    for (const auto& [bits, n] : count_)
      for (int i = 0; i < n; ++i) sum.add(std::bit_cast<double>(bits));
    return sum;
  }
  std::vector<double> elements() const {
    std::vector<double> all;
    for (const auto& [bits, n] : count_)
      all.insert(all.end(), static_cast<std::size_t>(n), std::bit_cast<double>(bits));
    return all;
  }

 private:
  std::map<std::uint64_t, int> count_;
};

void expect_sum(const State& state, const Multiset& remaining) {
  const Exact expected = remaining.sum();
  for (const FormatInfo& f : formats) ASSERT_EQ(state.result(f), expected.result(f));
  ASSERT_EQ(samesum_state_is_empty(state), expected.empty());
}

/// Few different elements, so that many of them cancel and recur; all of them are numbers of fp32.
const std::vector<double>& recurring() {
  static const std::vector<double> all{
      0.0,      -0.0,           -0.0, -0.0,         1,        -1,       0x1p-149, -0x1p-149, 0x1p127,
      -0x1p127, 0x1.fffffep127, 3,    not_a_number, infinity, -infinity};
  return all;
}

TEST(ASubtractableState, HasTheBitsOfTheRemainingElementsAfterEachStep) {
  std::mt19937_64 random{1};
  State state{"exact/fp64", subtractable};
  Multiset remaining;
  for (int step = 0; step < 4000; ++step) {
    const double x = recurring()[random() % recurring().size()];
    // In some stretches more is subtracted than added, so that the state becomes empty again and again.
    const bool subtracts = random() % 8 < (step / 100 % 2 ? 6u : 3u) && remaining.can_lose(x);
    const bool as_fp32 = random() % 2;
    if (subtracts)
      EXPECT_EQ(as_fp32 ? samesum_state_subtract_fp32(state, static_cast<float>(x))
                        : samesum_state_subtract_fp64(state, x),
                SAMESUM_OK);
    else
      EXPECT_EQ(
          as_fp32 ? samesum_state_add_fp32(state, static_cast<float>(x)) : samesum_state_add_fp64(state, x),
          SAMESUM_OK);
    remaining.change(x, subtracts ? -1 : 1);
    expect_sum(state, remaining);
    if (HasFatalFailure()) return;
  }
}

TEST(ASubtractableState, SlidesOverAWindowOfAnyFormat) {
  for (const FormatInfo& f : formats) {
    std::vector<double> data = wide(3000, 30, 4);
    data[500] = not_a_number;
    data[900] = infinity;
    data[1700] = -infinity;
    std::fill(data.begin() + 2000, data.begin() + 2400, -0.0);
    const Array array{f, data};
    const Values x = array.values();
    for (const std::size_t window : {1, 10, 100, 256}) {
      State state{"exact/fp64", subtractable};
      EXPECT_THAT(state.add(part(x, 0, window)), IsOk());
      for (std::size_t first = 0; first + 2 * window < x.size; first += window) {
        ASSERT_EQ(state.result(f), accumulate(part(x, first, window)).result(f))
            << f.name << " from " << first;
        EXPECT_THAT(state.add(part(x, first + window, window)), IsOk());
        EXPECT_THAT(state.subtract(part(x, first, window)), IsOk());
      }
    }
  }
}

TEST(SubtractableStates, MergeAndUnmergeInAnyOrder) {
  std::mt19937_64 random{2};
  for (int round = 0; round < 60; ++round) {
    std::vector<State> parts;
    std::vector<std::vector<double>> elements(6);
    for (std::vector<double>& part : elements) {
      parts.emplace_back("exact/fp64", subtractable);
      for (std::size_t i = random() % 50; i > 0; --i)
        part.push_back(recurring()[random() % recurring().size()]);
      EXPECT_THAT(parts.back().add(part), IsOk());
    }
    // Each part is added once or twice, and taken out at most as often, in random order: also before it is
    // added.
    std::vector<std::pair<std::size_t, bool>> steps;
    Multiset remaining;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const int in = 1 + static_cast<int>(random() % 2), out = static_cast<int>(random() % 3) % (in + 1);
      for (int i = 0; i < in; ++i) steps.emplace_back(k, true);
      for (int i = 0; i < out; ++i) steps.emplace_back(k, false);
      for (const double x : elements[k]) remaining.change(x, in - out);
    }
    std::ranges::shuffle(steps, random);
    State total{"exact/fp64", subtractable}, again{"exact/fp64", subtractable};
    for (const auto& [k, adds] : steps)
      EXPECT_THAT(adds ? total.merge(parts[k]) : total.unmerge(parts[k]), IsOk());
    expect_sum(total, remaining);
    EXPECT_THAT(again.add(remaining.elements()), IsOk());
    EXPECT_TRUE(total.serialise() == again.serialise()) << "equal elements, other bytes";
    EXPECT_THAT(total.unmerge(total), IsOk());
    EXPECT_TRUE(samesum_state_is_empty(total));
    EXPECT_EQ(total.result(formats[3]), Number::of(0.0));
  }
}

TEST(ASubtractableState, WithMoreSubtractedThanAddedIsRefusedUntilThatIsAdded) {
  double out = 7;
  for (const double x : {1.0, -0.0, 0.0, not_a_number, infinity, -infinity}) {
    State state{"exact/fp64", subtractable};
    EXPECT_EQ(samesum_state_subtract_fp64(state, x), SAMESUM_OK);
    EXPECT_THAT(ask(samesum_state_finish, std::as_const(state).get(), SAMESUM_FP64, static_cast<void*>(&out)),
                IsInvalid("subtracted from the state than added"))
        << x;
    EXPECT_EQ(samesum_state_add_fp64(state, x), SAMESUM_OK);
    EXPECT_EQ(state.result(formats[3]), Number::of(0.0));
    // Another element was added than was subtracted: the counts agree, and the digits do not.
    EXPECT_EQ(samesum_state_subtract_fp64(state, 2), SAMESUM_OK);
    EXPECT_EQ(samesum_state_add_fp64(state, infinity), SAMESUM_OK);
    EXPECT_THAT(ask(samesum_state_finish, std::as_const(state).get(), SAMESUM_FP64, static_cast<void*>(&out)),
                IsInvalid("subtracted from the state than added"));
  }
  EXPECT_EQ(out, 7);
}

TEST(OnlySubtractableStates, Subtract) {
  const std::vector<float> x{1};
  State exact{"exact/fp32"}, grid{"fixed_point/fp32", on_grid(-9)};
  for (State* state : {&exact, &grid}) {
    EXPECT_THAT(state->subtract(x), IsInvalid("not subtractable"));
    EXPECT_THAT(state->unmerge(*state), IsInvalid("not subtractable"));
    EXPECT_EQ(samesum_state_subtract_fp32(*state, 1), SAMESUM_INVALID_ARGUMENT);
    EXPECT_EQ(samesum_state_subtract_fp64(*state, 1), SAMESUM_INVALID_ARGUMENT);
  }
}

// --- memory and bytes -------------------------------------------------------------------------------------

std::vector<State> one_of_each_kind() {
  std::vector<State> all;
  all.emplace_back("exact/fp64");
  all.emplace_back("exact/fp64", subtractable);
  all.emplace_back("fixed_point/fp32", on_grid(-20));
  for (State& state : all) EXPECT_THAT(state.add(wide(100, 12, 5)), IsOk());
  return all;
}

TEST(AState, HasTheSizesOfTheDocumentation) {
  const std::vector<State> all = one_of_each_kind();
  // Those in lib/guides/c_and_fortran.md.
  constexpr std::size_t bytes[] = {560, 600, 40}, serialised[] = {284, 340, 66};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(samesum_state_bytes(&all[i].kind()), bytes[i]);
    EXPECT_EQ(samesum_state_serialised_bytes(&all[i].kind()), serialised[i]);
  }
}

TEST(AState, MovesByMemcpyAndIsCopied) {
  for (State& state : one_of_each_kind()) {
    const Bytes before = state.serialise();
    State moved = state, copied = state;
    std::memset(moved.memory(), 0xee, moved.bytes());
    std::memcpy(moved.memory(), state.memory(), state.bytes());
    EXPECT_TRUE(moved.serialise() == before);
    std::memset(copied.memory(), 0xee, copied.bytes());
    samesum_state* handle = nullptr;
    EXPECT_THAT(ask(samesum_state_copy, std::as_const(state).get(), copied.memory(), copied.bytes(), &handle),
                IsOk());
    EXPECT_EQ(handle, copied.get());
    EXPECT_EQ(samesum_state_add_fp64(state, 1), SAMESUM_OK);
    EXPECT_TRUE(copied.serialise() == before);
    EXPECT_FALSE(state.serialise() == before);
  }
}

TEST(AState, OfOneKindDoesNotMergeWithAnother) {
  std::vector<State> all = one_of_each_kind();
  all.emplace_back("fixed_point/fp32", on_grid(-21));
  all.emplace_back("fixed_point/fp64", on_grid(-20));
  for (State& a : all)
    for (State& b : all) {
      if (&a == &b) continue;
      EXPECT_THAT(a.merge(b), IsInvalid("differ in their kind"));
      EXPECT_THAT(a.deserialise(b.serialise()), IsInvalid("not a serialised state"));
    }
}

TEST(Memory, ThatIsNoStateIsRefused) {
  for (State& state : one_of_each_kind()) {
    const State other = state;
    const std::vector<float> x{1};
    samesum_state_destroy(state);
    EXPECT_THAT(state.add(x), IsInvalid("no state"));
    EXPECT_EQ(samesum_state_add_fp64(state, 1), SAMESUM_INVALID_ARGUMENT);
    EXPECT_EQ(samesum_state_add_fp32(state, 1), SAMESUM_INVALID_ARGUMENT);
    EXPECT_EQ(samesum_state_subtract_fp32(state, 1), SAMESUM_INVALID_ARGUMENT);
    EXPECT_THAT(state.merge(other), IsInvalid("no state"));
    EXPECT_TRUE(samesum_state_is_empty(state));
    samesum_state_destroy(state);
  }
  samesum_state_destroy(nullptr);
  EXPECT_TRUE(samesum_state_is_empty(nullptr));
}

TEST(Memory, ThatIsTooSmallOrMisalignedIsRefused) {
  for (State& state : one_of_each_kind()) {
    std::vector<std::uint64_t> memory(state.bytes() / 8 + 1);
    const samesum_state_kind* const kind = &state.kind();
    samesum_state* none = nullptr;
    void* const off = reinterpret_cast<char*>(memory.data()) + 4;
    EXPECT_EQ(samesum_state_alignment(kind), 8u);
    EXPECT_THAT(ask(samesum_state_init, kind, static_cast<void*>(memory.data()), state.bytes() - 1, &none),
                IsInvalid("needs"));
    EXPECT_THAT(ask(samesum_state_init, kind, off, state.bytes(), &none), IsInvalid("aligned"));
    EXPECT_THAT(ask(samesum_state_init, kind, static_cast<void*>(nullptr), state.bytes(), &none),
                IsInvalid("NULL"));
    EXPECT_THAT(ask(samesum_state_copy, std::as_const(state).get(), off, state.bytes(), &none),
                IsInvalid("aligned"));
    EXPECT_EQ(samesum_state_add_fp64(static_cast<samesum_state*>(off), 1), SAMESUM_INVALID_ARGUMENT);
    EXPECT_EQ(none, nullptr);
  }
  const samesum_state_kind zero{};
  for (const samesum_state_kind* kind : {static_cast<const samesum_state_kind*>(nullptr), &zero}) {
    EXPECT_EQ(samesum_state_bytes(kind), 0u);
    EXPECT_EQ(samesum_state_alignment(kind), 0u);
    EXPECT_EQ(samesum_state_serialised_bytes(kind), 0u);
    std::uint64_t memory[100];
    EXPECT_THAT(ask(samesum_state_init, kind, static_cast<void*>(memory), sizeof memory,
                    static_cast<samesum_state**>(nullptr)),
                IsInvalid("no kind"));
  }
}

TEST(AStateOfAnotherMethod, IsRefused) {
  samesum_state_kind kind{};
  const auto kind_of = [&](const char* name,
                           samesum_state_options options = samesum_state_options_default()) {
    return ask(samesum_state_kind_find, name, SAMESUM_FP32,
               static_cast<const samesum_state_options*>(&options), &kind);
  };
  EXPECT_THAT(kind_of("kahan"), IsInvalid("use a partial"));
  EXPECT_THAT(kind_of("dot/exact"), IsInvalid("use a partial"));
  EXPECT_THAT(kind_of("fixed_point"), IsInvalid("needs a grid"));
  EXPECT_THAT(kind_of("fixed_point", on_grid(100'000)), IsInvalid("must be an exponent"));
  EXPECT_THAT(kind_of("exact", on_grid(3)), IsInvalid("grid is only"));
  EXPECT_THAT(kind_of("fixed_point", {sizeof(samesum_state_options), 1, 1, 0, 0}),
              IsInvalid("subtractable is only"));
  EXPECT_THAT(kind_of("exact", {sizeof(samesum_state_options), 2, 0, 0, 0}), IsInvalid("pass 0 or 1"));
  EXPECT_THAT(kind_of("exact", {sizeof(samesum_state_options), 0, 0, 0, 1}), IsInvalid("reserved_32"));
  EXPECT_THAT(kind_of("exact", {}),
              IsInvalid("options.struct_size is 0; set it to sizeof(samesum_state_options)"));
  EXPECT_THAT(kind_of("no/such/name"), IsInvalid("no method"));
  EXPECT_EQ(samesum_state_bytes(&kind), 0u);
}

TEST(NullArgumentsOfStates, AreRefused) {
  State state{"exact/fp64"};
  const samesum_state* const given = state;
  const samesum_state* const none = nullptr;
  const samesum_values* const no_values = nullptr;
  samesum_state_kind kind{};
  std::size_t size = 0;
  char bytes[1000] = {};
  void* const memory = bytes;
  const std::vector<Answer> answers{
      ask(samesum_state_kind_find, static_cast<const char*>(nullptr), SAMESUM_FP32,
          static_cast<const samesum_state_options*>(nullptr), &kind),
      ask(samesum_state_kind_find, "exact", SAMESUM_FP32, static_cast<const samesum_state_options*>(nullptr),
          static_cast<samesum_state_kind*>(nullptr)),
      ask(samesum_state_add, state.get(), no_values),
      ask(samesum_state_finish, given, SAMESUM_FP64, static_cast<void*>(nullptr)),
      ask(samesum_state_serialise, given, static_cast<void*>(nullptr), std::size_t{1000}, &size),
      ask(samesum_state_serialise, given, memory, std::size_t{1000}, static_cast<std::size_t*>(nullptr)),
      ask(samesum_state_deserialise, &state.kind(), static_cast<const void*>(nullptr), std::size_t{9},
          state.memory(), state.bytes(), static_cast<samesum_state**>(nullptr)),
      ask(samesum_state_deserialise, &state.kind(), static_cast<const void*>(bytes), std::size_t{9},
          static_cast<void*>(nullptr), state.bytes(), static_cast<samesum_state**>(nullptr))};
  for (std::size_t i = 0; i < answers.size(); ++i)
    EXPECT_THAT(answers[i], IsInvalid(" is NULL")) << "answer " << i;
  const std::vector<Answer> without_state{
      ask(samesum_state_add, static_cast<samesum_state*>(nullptr), no_values),
      ask(samesum_state_subtract, static_cast<samesum_state*>(nullptr), no_values),
      ask(samesum_state_merge, static_cast<samesum_state*>(nullptr), given),
      ask(samesum_state_merge, state.get(), none),
      ask(samesum_state_unmerge, static_cast<samesum_state*>(nullptr), given),
      ask(samesum_state_copy, none, memory, std::size_t{1000}, static_cast<samesum_state**>(nullptr)),
      ask(samesum_state_finish, none, SAMESUM_FP64, memory),
      ask(samesum_state_finish_mean, none, std::uint64_t{1}, SAMESUM_FP64, memory),
      ask(samesum_state_serialise, none, memory, std::size_t{1000}, &size)};
  for (std::size_t i = 0; i < without_state.size(); ++i)
    EXPECT_THAT(without_state[i], IsInvalid("is no state")) << "answer " << i;
  EXPECT_THAT(ask(samesum_state_finish, given, SAMESUM_INT64, memory), IsInvalid("format is 5"));
}

TEST(BytesOfAState, WithImpossibleCountsOrSumsAreRefusedAsDamagedThoughTheirChecksumIsRight) {
  State state{"exact/fp64", subtractable};
  const auto forged = [](std::array<std::uint64_t, 5> counts, std::uint32_t highest_digit) {
    SerialWriter out{"exact_subtractable"};
    for (const std::uint64_t count : counts) out.put(count);
    for (int digit = 1; digit < Exact::digit_count; ++digit) out.put(std::uint32_t{0});
    out.put(highest_digit);
    out.put_checksum();
    return out.bytes();
  };
  EXPECT_THAT(state.deserialise(forged({2, 1, 0, 0, 0}, 0)), IsOk());
  for (const std::uint64_t count :
       {std::uint64_t{1} << 62, std::uint64_t{1} << 63, 0 - (std::uint64_t{1} << 62)})
    for (std::size_t i = 0; i < 5; ++i) {
      std::array<std::uint64_t, 5> counts{2, 1, 0, 0, 0};
      counts[i] = count;
      EXPECT_THAT(state.deserialise(forged(counts, 0)), IsInvalid("it counts 2^62 or more elements"));
    }
  EXPECT_THAT(state.deserialise(forged({2, 1, 0, 0, 0}, 1u << 30)),
              IsInvalid("beyond that of 2^63 elements"));
}

TEST(BytesOfAState, ThatAreDamagedAreRefusedAndChangeNothing) {
  for (State& state : one_of_each_kind()) {
    const Bytes bytes = state.serialise();
    EXPECT_EQ(bytes.size(), samesum_state_serialised_bytes(&state.kind()));
    State other = state;
    EXPECT_EQ(samesum_state_add_fp64(other, 1), SAMESUM_OK);
    const Bytes before = other.serialise();
    for (std::size_t n = 0; n < bytes.size(); ++n)
      EXPECT_THAT(other.deserialise(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n))),
                  IsInvalid("samesum"));
    Bytes longer = bytes;
    longer.push_back({});
    EXPECT_THAT(other.deserialise(longer), IsInvalid("samesum"));
    // Exact has no checksum: damage of its digits gives the bytes of another sum, or none that are canonical.
    const bool has_checksum = bytes.size() != 284;
    for (std::size_t i = 0; i < (has_checksum ? bytes.size() : 11); ++i) {
      Bytes damaged = bytes;
      damaged[i] ^= std::byte{0x20};
      EXPECT_THAT(other.deserialise(damaged), IsInvalid("samesum")) << "byte " << i;
    }
    EXPECT_TRUE(other.serialise() == before);
    EXPECT_THAT(other.deserialise(bytes), IsOk());
    EXPECT_TRUE(other.serialise() == bytes);
    std::size_t size = 0;
    Bytes small(bytes.size() - 1);
    EXPECT_THAT(ask(samesum_state_serialise, std::as_const(state).get(), static_cast<void*>(small.data()),
                    small.size(), &size),
                IsInvalid("has room for"));
    EXPECT_EQ(size, bytes.size());
  }
}

TEST(AStateThatIsMergedWithItself, IsRefusedBeforeItsElementsAreTooMany) {
  for (State& state : one_of_each_kind()) {
    Answer answer{SAMESUM_OK, {}};
    int doublings = 0;
    while (answer.status == SAMESUM_OK && doublings < 2000) {
      ++doublings;
      answer = state.merge(state);
    }
    EXPECT_THAT(answer, IsRefusal(static_cast<samesum_status>(SAMESUM_TOO_MANY_ELEMENTS), "fewer than 2^63"));
    EXPECT_GT(doublings, 50);
  }
}

TEST(Elements, ThatWouldBeTooManyAreRefusedBeforeAnyIsAdded) {
  // 2^61 + 2^60 + … + 1 elements, one fewer than too many.
  State state{"exact/fp64", subtractable}, power{"exact/fp64", subtractable};
  EXPECT_THAT(power.add(std::vector<float>{1}), IsOk());
  for (int k = 0; k <= 61; ++k) {
    ASSERT_THAT(state.merge(power), IsOk());
    if (k < 61) {
      ASSERT_THAT(power.merge(power), IsOk());
    }
  }
  const Bytes full = state.serialise();
  const std::vector<float> many(10'000, 1);
  EXPECT_THAT(state.add(many), IsRefusal(static_cast<samesum_status>(SAMESUM_TOO_MANY_ELEMENTS), "fewer"));
  EXPECT_TRUE(state.serialise() == full);
  EXPECT_THAT(state.unmerge(power), IsOk());
  EXPECT_THAT(state.add(many), IsOk());
}

}  // namespace
}  // namespace samesum::c_interface
