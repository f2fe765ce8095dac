/// Aggregate states that grow have the bits of the library's exact methods, for arrays of all sizes, need no
/// memory for ordinary data, and are unchanged if memory runs out. aggregates.py compares random sequences of
/// all operations with exact fractions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "cases.hpp"
#include "interface/c_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"
#include "samesum/states.hpp"

namespace samesum::c_interface {
namespace {

using Bytes = std::vector<std::byte>;

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();
constexpr samesum_aggregate_kind kinds[] = {SAMESUM_AGGREGATE_SUM, SAMESUM_AGGREGATE_PRODUCTS,
                                            SAMESUM_AGGREGATE_MOMENTS, SAMESUM_AGGREGATE_COMOMENTS};

/// Memory of which an allocation can fail, and that knows what has not been released.
class CountedMemory {
 public:
  CountedMemory() = default;
  CountedMemory(const CountedMemory&) = delete;
  ~CountedMemory() { EXPECT_TRUE(held_.empty()) << held_.size() << " blocks were not released"; }
  operator const samesum_allocator*() const { return get(); }
  const samesum_allocator* get() const { return &allocator_; }

  int allocations = 0;
  int failing = -1;  ///< the allocation that fails
  std::size_t bytes() const {
    std::size_t all = 0;
    for (const auto& [address, block] : held_) all += block.size();
    return all;
  }

 private:
  static CountedMemory& of(void* context) { return *static_cast<CountedMemory*>(context); }
  const samesum_allocator allocator_{[](void* context, std::size_t bytes) -> void* {
                                       CountedMemory& memory = of(context);
                                       if (memory.allocations++ == memory.failing) return nullptr;
                                       Bytes block(bytes);
                                       void* const address = block.data();
                                       memory.held_.emplace(address, std::move(block));
                                       return address;
                                     },
                                     [](void* context, void* address, std::size_t bytes) {
                                       auto& held = of(context).held_;
                                       const auto block = held.find(address);
                                       ASSERT_TRUE(block != held.end());
                                       EXPECT_EQ(block->second.size(), bytes);
                                       held.erase(block);
                                     },
                                     this};
  std::map<void*, Bytes> held_;
};

/// A state in memory of its own.
class Aggregate {
 public:
  explicit Aggregate(samesum_aggregate_kind kind, const samesum_allocator* memory = nullptr)
      : kind_{kind}, memory_{memory}, room_(samesum_aggregate_bytes(kind) / 8) {}
  ~Aggregate() { samesum_aggregate_destroy(kind_, get(), memory_); }
  Aggregate(const Aggregate&) = delete;

  samesum_aggregate* get() { return reinterpret_cast<samesum_aggregate*>(room_.data()); }
  const samesum_aggregate* get() const { return reinterpret_cast<const samesum_aggregate*>(room_.data()); }
  Answer add(const Values& x, const Values& y = {}) {
    const samesum_values a = values_in_c(x), b = values_in_c(y);
    return ask(samesum_aggregate_add, kind_, get(), &a, &b, memory_);
  }
  Answer subtract(const Values& x, const Values& y = {}) {
    const samesum_values a = values_in_c(x), b = values_in_c(y);
    return ask(samesum_aggregate_subtract, kind_, get(), &a, &b, memory_);
  }
  Answer merge(const Aggregate& other) {
    return ask(samesum_aggregate_merge, kind_, get(), other.get(), memory_);
  }
  Answer unmerge(const Aggregate& other) {
    return ask(samesum_aggregate_unmerge, kind_, get(), other.get(), memory_);
  }
  Number result(samesum_aggregate_result which, const FormatInfo& format, std::uint64_t ddof = 1) const {
    std::uint64_t bits = 0;
    EXPECT_THAT(ask(samesum_aggregate_finish, kind_, get(), which, ddof, format_in_c(&format),
                    static_cast<void*>(&bits)),
                IsOk());
    return {&format, bits};
  }
  Bytes bytes() const {
    Bytes bytes(samesum_aggregate_serialised_bytes(kind_));
    std::size_t size = 0;
    EXPECT_THAT(
        ask(samesum_aggregate_serialise, kind_, get(), static_cast<void*>(bytes.data()), bytes.size(), &size),
        IsOk());
    bytes.resize(size);
    return bytes;
  }
  Answer deserialise(const Bytes& bytes) {
    return ask(samesum_aggregate_deserialise, kind_, static_cast<const void*>(bytes.data()), bytes.size(),
               get(), memory_);
  }
  std::int64_t size() const { return samesum_aggregate_size(kind_, get()); }
  samesum_aggregate_kind kind() const { return kind_; }

 private:
  samesum_aggregate_kind kind_;
  const samesum_allocator* memory_;
  std::vector<std::uint64_t> room_;
};

/// Elements of x as doubles of a format.
Number method(const std::string& name, const FormatInfo& format, const Values& x) {
  return find(name + "/exact", {.format = format.name})(x);
}

TEST(AStateThatGrows, HasTheBitsOfSumMeanMomentsAndDot) {
  for (const testing::Case& c : testing::cases()) {
    const Array array = c.array();
    const Values x = array.values();
    Aggregate sum{SAMESUM_AGGREGATE_SUM}, moments{SAMESUM_AGGREGATE_MOMENTS},
        products{SAMESUM_AGGREGATE_PRODUCTS}, pairs{SAMESUM_AGGREGATE_COMOMENTS};
    ASSERT_THAT(sum.add(x), IsOk());
    ASSERT_THAT(moments.add(x), IsOk());
    ASSERT_THAT(products.add(x, x), IsOk());
    ASSERT_THAT(pairs.add(x, x), IsOk());
    for (const FormatInfo& f : formats) {
      const Number expected = method("sum", f, x), mean = method("mean", f, x);
      EXPECT_EQ(sum.result(SAMESUM_RESULT_SUM, f), expected) << c << " in " << f.name;
      EXPECT_EQ(sum.result(SAMESUM_RESULT_MEAN, f), mean) << c << " in " << f.name;
      for (const samesum_aggregate_result which : {SAMESUM_RESULT_SUM, SAMESUM_RESULT_SUM_OF_Y})
        EXPECT_EQ(pairs.result(which, f), expected) << c << " in " << f.name;
      const Method& dot = find("dot/exact", {.format = f.name});
      EXPECT_EQ(products.result(SAMESUM_RESULT_SUM, f), dot(x, x)) << c << " in " << f.name;
      for (const std::uint64_t ddof : {0, 1, 2}) {
        std::uint64_t two[2] = {};
        const Method& both = find("moments/exact", {.format = f.name});
        run({.method = &both,
             .x = x,
             .layout = Layout::vector(x.size),
             .out = {&f, two, 2},
             .options = {.ddof = static_cast<double>(ddof)}});
        std::uint64_t variance = 0;
        std::memcpy(&variance, reinterpret_cast<const std::byte*>(two) + f.bytes, f.bytes);
        EXPECT_EQ(moments.result(SAMESUM_RESULT_VARIANCE, f, ddof), (Number{&f, variance}))
            << c << " in " << f.name;
        EXPECT_EQ(pairs.result(SAMESUM_RESULT_VARIANCE_OF_Y, f, ddof), (Number{&f, variance}));
        EXPECT_EQ(pairs.result(SAMESUM_RESULT_COVARIANCE, f, ddof), (Number{&f, variance}));
      }
      EXPECT_EQ(moments.result(SAMESUM_RESULT_MEAN, f), mean) << c << " in " << f.name;
      EXPECT_EQ(pairs.result(SAMESUM_RESULT_MEAN_OF_Y, f), mean) << c << " in " << f.name;
    }
  }
}

/// Datasets that take each path of the states: small and large, narrow, wide, with special values.
std::vector<std::vector<double>> datasets() {
  std::vector<std::vector<double>> all;
  for (const std::size_t n : {0, 1, 95, 96, 300, 2049, 5000}) {
    all.push_back(uniform(n, 1));
    all.push_back(wide(n, 20, 2));
    all.push_back(wide(n, n < 3000 ? 900 : 300, 3));
  }
  for (const double special : {nan, inf, -0.0}) {
    all.push_back(uniform(3000, 4));
    all.back()[2500] = all.back()[7] = special;
  }
  all.emplace_back(100, -0.0);
  return all;
}

TEST(AStateThatGrows, TakesArraysAsItTakesTheirElements) {
  for (const samesum_aggregate_kind kind : kinds)
    for (const FormatInfo& f : formats)
      for (const std::vector<double>& data : datasets()) {
        std::vector<double> reversed{data.rbegin(), data.rend()};
        const Array x{f, data}, y{f, reversed};
        Aggregate at_once{kind}, one_by_one{kind}, nothing{kind};
        ASSERT_THAT(at_once.add(x.values(), y.values()), IsOk());
        with_format(f, [&]<class T>() {
          for (std::size_t i = 0; i < data.size(); ++i)
            ASSERT_EQ(
                samesum_aggregate_add_fp64(kind, one_by_one.get(), convert<double>(x.values().as<T>()[i]),
                                           convert<double>(y.values().as<T>()[i]), nullptr),
                SAMESUM_OK);
        });
        EXPECT_TRUE(at_once.bytes() == one_by_one.bytes()) << kind << ", " << f.name << ", " << data.size();
        ASSERT_THAT(at_once.subtract(x.values(), y.values()), IsOk());
        EXPECT_TRUE(at_once.bytes() == nothing.bytes()) << kind << ", " << f.name << ", " << data.size();
      }
}

TEST(AStateThatGrows, TakesLargeArraysAsItTakesTheirPartsInEveryInstructionSet) {
  const std::size_t n = 9000, part = 90;  // parts are added one by one
  std::vector<std::vector<double>> all{uniform(n, 1), wide(n, 700, 2), std::vector<double>(n, -0.0)};
  for (const double special : {nan, -0.0}) {
    all.push_back(uniform(n, 4));
    all.back()[n / 2] = all.back()[n - 1] = special;
  }
  const cpu::InstructionSet before = cpu::instruction_set();
  for (const cpu::InstructionSet set : cpu::instruction_sets) {
    if (!cpu::is_supported(set)) continue;
    cpu::force(set);
    for (const std::vector<double>& data : all)
      for (const FormatInfo& f : formats) {
        const Array x{f, data};
        Aggregate at_once{SAMESUM_AGGREGATE_SUM}, in_parts{SAMESUM_AGGREGATE_SUM};
        ASSERT_THAT(at_once.add(x.values()), IsOk());
        for (std::size_t i = 0; i < n; i += part)
          ASSERT_THAT(in_parts.add({f, static_cast<const std::byte*>(x.values().data) + i * f.bytes, part}),
                      IsOk());
        EXPECT_TRUE(at_once.bytes() == in_parts.bytes()) << f.name << ", " << cpu::name_of(set);
        EXPECT_EQ(at_once.result(SAMESUM_RESULT_SUM, f), method("sum", f, x.values())) << f.name;
      }
  }
  cpu::force(before);
}

TEST(AStateThatGrows, AddsIntegersExactly) {
  std::mt19937_64 random{1};
  std::vector<std::int64_t> x(3000), y(3000);
  for (std::int64_t& v : x) v = static_cast<std::int64_t>(random());
  for (std::int64_t& v : y) v = static_cast<std::int64_t>(random() >> 60) - 8;
  x[0] = x[1] = std::numeric_limits<std::int64_t>::min();
  const samesum_values a{x.data(), x.size(), SAMESUM_INT64}, b{y.data(), y.size(), SAMESUM_INT64};
  for (const samesum_aggregate_kind kind : kinds) {
    Aggregate at_once{kind}, one_by_one{kind};
    ASSERT_THAT(ask(samesum_aggregate_add, kind, at_once.get(), &a, &b, nullptr), IsOk());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(samesum_aggregate_add_int64(kind, one_by_one.get(), x[i], y[i], nullptr), SAMESUM_OK);
    EXPECT_TRUE(at_once.bytes() == one_by_one.bytes()) << kind;
  }
  Aggregate sum{SAMESUM_AGGREGATE_SUM};
  for (const std::int64_t v : {std::int64_t{9007199254740993}, std::int64_t{-9007199254740992}})
    ASSERT_EQ(samesum_aggregate_add_int64(SAMESUM_AGGREGATE_SUM, sum.get(), v, 0, nullptr), SAMESUM_OK);
  EXPECT_EQ(sum.result(SAMESUM_RESULT_SUM, format_info<fp64>()).to_double(), 1);
}

TEST(AStateThatGrows, OfOrdinaryDataNeedsNoMemory) {
  CountedMemory memory;
  EXPECT_EQ(samesum_aggregate_bytes(SAMESUM_AGGREGATE_SUM), 32u);
  std::mt19937_64 random{2};
  std::normal_distribution<double> normal;
  std::vector<double> gaussian(20'000), log_normal(gaussian), many_binades(gaussian), tiny(gaussian);
  for (std::size_t i = 0; i < gaussian.size(); ++i) {
    gaussian[i] = normal(random);
    log_normal[i] = std::exp(normal(random));
    many_binades[i] = std::ldexp(normal(random), static_cast<int>(random() % 60) - 30);
    tiny[i] = std::ldexp(normal(random), -900);
  }
  log_normal[3] = 1e9;  // an outlier
  for (const auto* data : {&gaussian, &log_normal, &many_binades, &tiny})
    for (const samesum_aggregate_kind kind : kinds) {
      if (kind != SAMESUM_AGGREGATE_SUM && data == &many_binades) continue;  // squares span 120
      Aggregate state{kind, memory}, other{kind, memory};
      for (const double x : *data)
        ASSERT_EQ(samesum_aggregate_add_fp64(kind, state.get(), x, x, memory), SAMESUM_OK);
      ASSERT_THAT(other.add(*data, *data), IsOk());
      ASSERT_THAT(state.merge(other), IsOk());
      EXPECT_EQ(memory.allocations, 0) << kind << ", " << data->front();
    }
  Aggregate state{SAMESUM_AGGREGATE_SUM, memory};
  ASSERT_THAT(state.add(std::vector<double>{1e300, 1}), IsOk());
  EXPECT_EQ(memory.allocations, 1);
  EXPECT_EQ(memory.bytes(), 312u);
}

TEST(AStateThatGrows, OfElementsThatFitByItsProofNeedsNoMemory) {
  // Multiples of 2^a, and sums below 2^(a + 182): all bits between are in use at one time or another.
  CountedMemory memory;
  for (const int a : {-1074, -600, 0, 700}) {
    Aggregate state{SAMESUM_AGGREGATE_SUM, memory};
    const int end = std::min(a + 181, 1023);
    for (int round = 0; round < 3; ++round)
      for (const int exponent : {a, end - 1, a + 60, a + 1, end - 2}) {
        const double x = std::ldexp(1.0, exponent);
        ASSERT_EQ(samesum_aggregate_add_fp64(SAMESUM_AGGREGATE_SUM, state.get(), x, 0, memory), SAMESUM_OK);
        if (round == 2 || exponent <= a + 60) continue;
        ASSERT_EQ(samesum_aggregate_subtract_fp64(SAMESUM_AGGREGATE_SUM, state.get(), x, 0, memory),
                  SAMESUM_OK);
      }
    EXPECT_EQ(memory.allocations, 0) << a;
  }
}

TEST(AStateThatGrows, ThatSlidesBackHasItsBytes) {
  const std::vector<double> x{1, 1e16, 0.1, -0.0, inf, 1e-310, 1e300, nan, -3, 1e16};
  for (const samesum_aggregate_kind kind : kinds) {
    std::vector<Bytes> before;
    Aggregate state{kind};
    for (std::size_t i = 0; i < x.size(); ++i) {
      before.push_back(state.bytes());
      ASSERT_EQ(samesum_aggregate_add_fp64(kind, state.get(), x[i], x[i], nullptr), SAMESUM_OK);
    }
    for (std::size_t i = x.size(); i-- > 0;) {
      ASSERT_EQ(samesum_aggregate_subtract_fp64(kind, state.get(), x[i], x[i], nullptr), SAMESUM_OK);
      EXPECT_TRUE(state.bytes() == before[i]) << kind << ", " << i;
    }
  }
}

TEST(AStateThatGrows, KeepsItsValueIfAnAllocationFails) {
  const std::vector<double> far{1e300, 1e-300, 1}, special{nan, 1, -2};
  for (const samesum_aggregate_kind kind : kinds)
    for (const std::vector<double>* data : {&far, &special}) {
      CountedMemory memory;
      Aggregate wide{kind, memory};
      ASSERT_THAT(wide.add(*data, *data), IsOk());
      const Bytes bytes = wide.bytes();
      int failures = 0;
      // Each update, with each of its allocations failing once.
      const auto expect_unchanged = [&](const auto& update) {
        for (int k = 0;; ++k) {
          Aggregate state{kind, memory};
          ASSERT_THAT(state.add(std::vector<double>{1, 2}, std::vector<double>{3, 4}), IsOk());
          const Bytes before = state.bytes();
          memory.failing = memory.allocations + k;
          const samesum_status status = update(state);
          memory.failing = -1;
          if (status == SAMESUM_OK) return;
          EXPECT_EQ(status, SAMESUM_OUT_OF_MEMORY);
          EXPECT_TRUE(state.bytes() == before) << kind << ", allocation " << k;
          ++failures;
        }
      };
      expect_unchanged([&](Aggregate& s) { return s.add(*data, *data).status; });
      expect_unchanged([&](Aggregate& s) { return s.subtract(*data, *data).status; });
      expect_unchanged([&](Aggregate& s) { return s.merge(wide).status; });
      expect_unchanged([&](Aggregate& s) { return s.unmerge(wide).status; });
      expect_unchanged([&](Aggregate& s) {
        return samesum_aggregate_add_fp64(kind, s.get(), data->front(), data->front(), memory);
      });
      expect_unchanged([&](Aggregate& s) { return s.deserialise(bytes).status; });
      expect_unchanged([&](Aggregate&) {
        Aggregate copy{kind, memory};
        return ask(samesum_aggregate_copy, kind, std::as_const(wide).get(), copy.get(), memory.get()).status;
      });
      EXPECT_GE(failures, kind == SAMESUM_AGGREGATE_COMOMENTS ? 10 : 5);
    }
}

TEST(StatesThatGrow, TakeAnElementEach) {
  std::mt19937_64 random{3};
  for (const samesum_aggregate_kind kind : kinds) {
    const std::size_t bytes = samesum_aggregate_bytes(kind), n = 5000, groups = 100;
    std::vector<std::uint64_t> room(groups * bytes / 8);
    std::vector<samesum_aggregate*> states(n);
    std::vector<float> x(n), y(n);
    std::vector<std::vector<float>> xs(groups), ys(groups);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t group = random() % (groups + 1);
      x[i] = static_cast<float>(random()) * (i % 50 == 0 ? 1e-30f : 1e-19f);
      y[i] = static_cast<float>(i);
      if (group == groups) continue;  // left out
      states[i] = reinterpret_cast<samesum_aggregate*>(room.data() + group * bytes / 8);
      xs[group].push_back(x[i]);
      ys[group].push_back(y[i]);
    }
    const samesum_values a{x.data(), n, SAMESUM_FP32}, b{y.data(), n, SAMESUM_FP32};
    std::size_t done = 0;
    ASSERT_THAT(ask(samesum_aggregate_add_each, kind, states.data(), &a, &b, nullptr, &done), IsOk());
    EXPECT_EQ(done, n);
    for (std::size_t group = 0; group < groups; ++group) {
      auto* const state = reinterpret_cast<samesum_aggregate*>(room.data() + group * bytes / 8);
      Aggregate expected{kind}, copy{kind};
      ASSERT_THAT(expected.add(xs[group], ys[group]), IsOk());
      ASSERT_THAT(ask(samesum_aggregate_copy, kind, std::as_const(state), copy.get(), nullptr), IsOk());
      EXPECT_TRUE(copy.bytes() == expected.bytes()) << kind << ", " << group;
      samesum_aggregate_destroy(kind, state, nullptr);
    }
    EXPECT_TRUE(std::ranges::all_of(room, [](std::uint64_t word) { return word == 0; }));
  }
}

TEST(StatesThatGrow, SayHowManyElementsTheyTookWhenMemoryRanOut) {
  CountedMemory memory;
  Aggregate state{SAMESUM_AGGREGATE_SUM, memory};
  const std::vector<samesum_aggregate*> states(5, state.get());
  const std::vector<double> x{1, 2, 3, 1e300, 4};
  const samesum_values values = values_in_c(x);
  std::size_t done = 0;
  memory.failing = 0;
  EXPECT_THAT(ask(samesum_aggregate_add_each, SAMESUM_AGGREGATE_SUM, states.data(), &values, nullptr,
                  memory.get(), &done),
              IsRefusal(SAMESUM_OUT_OF_MEMORY, "memory"));
  EXPECT_EQ(done, 3u);
  EXPECT_EQ(state.size(), 3);
  EXPECT_EQ(state.result(SAMESUM_RESULT_SUM, format_info<fp64>()).to_double(), 6);
}

TEST(TheBytesOfAStateThatGrows, DependOnItsElementsAlone) {
  const std::vector<double> far{1e300, 1e-300};
  const std::vector<double> x = wide(100, 30, 5);
  for (const samesum_aggregate_kind kind : kinds) {
    Aggregate narrow{kind}, grown{kind}, moved{kind};
    ASSERT_THAT(narrow.add(x, x), IsOk());
    ASSERT_THAT(grown.add(far, far), IsOk());
    ASSERT_THAT(grown.add(x, x), IsOk());
    ASSERT_THAT(grown.subtract(far, far), IsOk());
    ASSERT_THAT(moved.add(std::vector<double>{0x1p-300}, std::vector<double>{0x1p-300}), IsOk());
    ASSERT_THAT(moved.subtract(std::vector<double>{0x1p-300}, std::vector<double>{0x1p-300}), IsOk());
    ASSERT_THAT(moved.merge(narrow), IsOk());
    EXPECT_TRUE(grown.bytes() == narrow.bytes()) << kind;
    EXPECT_TRUE(moved.bytes() == narrow.bytes()) << kind;
  }
}

TEST(TheBytesOfAStateThatGrows, AreRefusedIfOneBitIsWrong) {
  for (const samesum_aggregate_kind kind : kinds) {
    Aggregate state{kind}, received{kind};
    ASSERT_THAT(state.add(std::vector<double>{1, -0.0, 1e300, inf}, std::vector<double>{3, 4, 5, 6}), IsOk());
    Bytes bytes = state.bytes();
    ASSERT_THAT(received.deserialise(bytes), IsOk());
    EXPECT_TRUE(received.bytes() == bytes);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
      EXPECT_THAT(received.deserialise(bytes), IsInvalid("not a serialised state"));
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
    bytes.pop_back();
    EXPECT_THAT(received.deserialise(bytes), IsInvalid("checksum"));
    EXPECT_THAT(received.deserialise(Aggregate{kinds[kind % 4]}.bytes()), IsInvalid("it holds aggregate_"));
    EXPECT_EQ(received.size(), 4);
  }
}

TEST(AStateThatGrows, RefusesMoreElementsThanItCounts) {
  for (const samesum_aggregate_kind kind : kinds) {
    Aggregate state{kind};
    const std::vector<double> largest{std::numeric_limits<double>::max()};
    ASSERT_THAT(state.add(largest, largest), IsOk());
    Answer answer{};
    int doublings = 0;
    Bytes before;
    for (; doublings < 100 && answer.status == SAMESUM_OK; ++doublings) {
      before = state.bytes();
      answer = state.merge(state);
    }
    EXPECT_EQ(doublings, 62);
    EXPECT_THAT(answer, IsRefusal(SAMESUM_TOO_MANY_ELEMENTS, "fewer than 2^62"));
    EXPECT_TRUE(state.bytes() == before);
    // A sum can grow without them.
    Aggregate difference{kind};
    ASSERT_THAT(difference.add(largest, largest), IsOk());
    const std::vector<double> one{1};
    ASSERT_THAT(difference.subtract(one, one), IsOk());
    answer = {};
    for (doublings = 0; doublings < 200 && answer.status == SAMESUM_OK; ++doublings)
      answer = difference.merge(difference);
    EXPECT_LT(doublings, 200);
    EXPECT_EQ(answer.status, SAMESUM_TOO_MANY_ELEMENTS);
  }
}

TEST(AStateThatGrows, RefusesResultsOfMoreSubtractedThanAdded) {
  const std::vector<double> one{1}, two{2}, minus_zero{-0.0}, not_a_number{nan};
  for (const samesum_aggregate_kind kind : kinds)
    for (const auto& [added, subtracted] : {std::pair{one, two}, {one, minus_zero}, {one, not_a_number}}) {
      Aggregate state{kind};
      ASSERT_THAT(state.add(added, added), IsOk());
      ASSERT_THAT(state.subtract(subtracted, subtracted), IsOk());
      double out = 7;
      EXPECT_THAT(ask(samesum_aggregate_finish, kind, std::as_const(state).get(), SAMESUM_RESULT_SUM,
                      std::uint64_t{1}, SAMESUM_FP64, static_cast<void*>(&out)),
                  IsInvalid("more elements were subtracted"));
      EXPECT_EQ(out, 7);
      ASSERT_THAT(state.add(subtracted, subtracted), IsOk());
      EXPECT_EQ(state.result(SAMESUM_RESULT_SUM, format_info<fp64>()).to_double(), 1);
    }
}

TEST(AStateThatGrows, NamesTheArgumentThatIsWrong) {
  Aggregate state{SAMESUM_AGGREGATE_COMOMENTS};
  samesum_aggregate* const s = state.get();
  const std::vector<double> x{1, 2};
  const std::vector<float> floats{1, 2};
  const samesum_values two = values_in_c(x), one{x.data(), 1, SAMESUM_FP64}, other = values_in_c(floats),
                       none{nullptr, 2, SAMESUM_INT64};
  const auto add = [](samesum_aggregate_kind kind, samesum_aggregate* to, const samesum_values* a,
                      const samesum_values* b) {
    return ask(samesum_aggregate_add, kind, to, a, b, nullptr);
  };
  EXPECT_THAT(add(0, s, &two, &two), IsInvalid("kind is 0"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_SUM, nullptr, &two, nullptr), IsInvalid("state is NULL"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_SUM, s, nullptr, nullptr), IsInvalid("x is NULL"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_COMOMENTS, s, &two, nullptr), IsInvalid("y is NULL"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_COMOMENTS, s, &two, &one), IsInvalid("differ in size"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_COMOMENTS, s, &two, &other), IsInvalid("format"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_SUM, s, &none, nullptr), IsInvalid("x.data"));
  EXPECT_THAT(add(SAMESUM_AGGREGATE_SUM, reinterpret_cast<samesum_aggregate*>(reinterpret_cast<char*>(s) + 4),
                  &two, nullptr),
              IsInvalid("aligned"));
  double out = 0;
  const auto finish = [&](samesum_aggregate_kind kind, samesum_aggregate_result which) {
    return ask(samesum_aggregate_finish, kind, std::as_const(state).get(), which, std::uint64_t{1},
               SAMESUM_FP64, static_cast<void*>(&out));
  };
  EXPECT_THAT(finish(SAMESUM_AGGREGATE_SUM, SAMESUM_RESULT_VARIANCE), IsInvalid("no such result"));
  EXPECT_THAT(finish(SAMESUM_AGGREGATE_COMOMENTS, 11), IsInvalid("which is 11"));
  EXPECT_EQ(samesum_aggregate_bytes(5), 0u);
  EXPECT_EQ(samesum_aggregate_add_fp64(5, s, 1, 1, nullptr), SAMESUM_INVALID_ARGUMENT);
  EXPECT_EQ(samesum_aggregate_add_fp64(SAMESUM_AGGREGATE_SUM, nullptr, 1, 1, nullptr),
            SAMESUM_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace samesum::c_interface
