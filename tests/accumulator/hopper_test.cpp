/// Tests of the method hopper: its bits are those of the definition in accumulator/hopper.hpp, and no other
/// model has them. tests/tensor_cores compares the definition with integers, and with its bound.
#include "samesum/accumulator/hopper.hpp"

#include "support.hpp"

namespace samesum::hopper {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

template <class T> std::vector<T> converted(const std::vector<double>& x) {
  std::vector<T> all;
  for (const double e : x) all.push_back(convert<T>(e));
  return all;
}

template <class T> struct Named {
  std::string name;
  std::vector<T> x;
};

template <class T> std::vector<Named<T>> awkward_elements(std::size_t n) {
  std::mt19937_64 random{n};
  std::vector<T> any(n), subnormal(n);
  for (T& e : any) e.bits = static_cast<std::uint16_t>(random());
  for (T& e : subnormal) e.bits = static_cast<std::uint16_t>(random() & (Format<T>::sign_bit | 0x4ff));
  std::vector<double> cancelling = wide(n, 20, 3), infinite = uniform(n, 4), both, nan = uniform(n, 5);
  for (std::size_t i = 1; i < n; i += 2) cancelling[i] = -cancelling[i - 1] * (i % 3 ? 1 : 1 + 0x1p-7);
  if (n > 0) infinite[n / 2] = -INFINITY, nan[n - 1] = NAN;
  both = infinite;
  if (n > 0) both[n - 1] = INFINITY;
  return {{"20 binades", converted<T>(wide(n, 20, 1))},
          {"60 binades", converted<T>(wide(n, 60, 2))},
          {"any bits", any},
          {"subnormal numbers and some above", subnormal},
          {"cancellation", converted<T>(cancelling)},
          {"-0", std::vector<T>(n, convert<T>(-0.0))},
          {"an infinity", converted<T>(infinite)},
          {"both infinities", converted<T>(both)},
          {"a NaN", converted<T>(nan)}};
}

constexpr std::size_t lengths[] = {0, 1, 4, 5, 16, 127, 128, 129, 1025};

template <class T> std::uint32_t by_definition(const std::vector<T>& x) {
  return to_bits(sum_by_unit_model(std::span<const T>{x}));
}

template <class T> void expect_definition(const Method& m) {
  for (const std::size_t n : lengths)
    for (const auto& [name, x] : awkward_elements<T>(n)) {
      const std::string what = m.name + " of " + std::to_string(n) + ", " + name;
      for (const int threads : {1, 3})
        EXPECT_EQ(m(Values{x}, {.threads = threads}).bits, by_definition(x)) << what;
      // Three rows one element apart, and three columns: the elements, reversed, and without the first one.
      std::vector<T> reversed{x.rbegin(), x.rend()}, shorter{x};
      if (n > 0) shorter[0] = T{};
      std::vector<T> rows(3 * (n + 1)), columns;
      const std::vector<T>* const all[] = {&x, &reversed, &shorter};
      for (std::size_t k = 0; k < 3; ++k)
        std::ranges::copy(*all[k], rows.begin() + std::ptrdiff_t(k * (n + 1)));
      for (std::size_t i = 0; i < n; ++i)
        for (const std::vector<T>* column : all) columns.push_back((*column)[i]);
      std::vector<float> of_rows(3, -1), of_columns(3, -1);
      reduce(m, Values{rows}, Layout::rows(3, n, n + 1), std::span{of_rows}, {.threads = 2});
      reduce(m, Values{columns}, Layout::axis(1, n, 3), std::span{of_columns}, {.threads = 2});
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(to_bits(of_rows[k]), by_definition(*all[k])) << what << ", row " << k;
        EXPECT_EQ(to_bits(of_columns[k]), by_definition(*all[k])) << what << ", column " << k;
      }
    }
}

TEST(TheMethodHopper, HasTheBitsOfTheDefinitionOnAwkwardDataInEveryLayout) {
  for (const char* name : {"hopper/fp32@cpu", "hopper/fp32@reference"}) {
    expect_definition<fp16>(find(name));
    expect_definition<bf16>(find(name));
  }
}

/// The number of vectors for which the method has other bits than this model.
template <class T> int differences(const FusedSum& model) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<T> x = converted<T>(wide(129, 20, seed));
    count += find("hopper/fp32")(Values{x}).bits != to_bits(sum_by_unit_model(std::span<const T>{x}, model));
  }
  return count;
}

template <class T> void expect_wrong_models_to_differ() {
  const auto with = [](auto change) {
    FusedSum model = UnitInput<T>::model;
    change(model);
    return differences<T>(model);
  };
  EXPECT_EQ(with([](FusedSum&) {}), 0);
  EXPECT_GT(with([](FusedSum& p) { p.fraction_bits = 24; }), 0);
  EXPECT_GT(with([](FusedSum& p) { p.fraction_bits = 26; }), 0);
  EXPECT_GT(with([](FusedSum& p) { p.alignment = Cut::nearest_even; }), 0);
  EXPECT_GT(with([](FusedSum& p) { p.alignment = Cut::down; }), 0);
  EXPECT_GT(with([](FusedSum& p) { p.result = Cut::nearest_even; }), 0);
  EXPECT_GT(with([](FusedSum& p) { p.group = p.run = 8; }), 0);
}

TEST(TheMethodHopper, DiffersFromModelsWithOtherBitsRoundingOrGroups) {
  expect_wrong_models_to_differ<fp16>();
  expect_wrong_models_to_differ<bf16>();
}

TEST(TheMethodHopper, HasTheBoundThatIsProved) {
  const Method& m = find("hopper/fp32");
  for (const std::size_t n : lengths)
    for (const FormatInfo& input : formats) {
      const double bound = m.bound(input, n, Number::of(1000.0f), 50), proved = 50 * unit_sum_bound(n);
      if (n > 0 && !m.accepts(input)) {
        EXPECT_EQ(bound, unbounded_error) << "the proof is for fp16 and bf16";
      } else {
        EXPECT_GE(bound, proved);
        EXPECT_LE(bound, proved * (1 + 0x1p-40));
      }
    }
  EXPECT_EQ(m.bound(format_info<bf16>(), 100, Number::of(1.0f), 0x1p128), unbounded_error);
}

TEST(TheMethodHopper, RefusesWhatItsModelDoesNotCover) {
  const std::vector<float> single{1, 2};
  const Method& m = find("hopper/fp32");
  const std::string remedy =
      "samesum: sum/hopper/fp32@cpu: the method does not accept elements of fp32; convert them to one of "
      "fp16, "
      "bf16";
  EXPECT_EQ(refusal_by([&] { m(Values{single}); }), remedy);
  EXPECT_EQ(refusal_by([&] { m.bind(Values{single}); }), remedy);
  EXPECT_EQ(refusal_by([&] { estimate("hopper/fp32", Values{single}); }), remedy);
  EXPECT_THAT(refusal_by([&] { Partial{m}; }), HasSubstr("reduce the whole vector in one call"));
}

TEST(TheMethodHopper, CompilesByItsName) {
  const std::vector<bf16> x(300, bf16{1.5f});
  EXPECT_EQ(reduce<"hopper/fp32">(Values{x}), 450);
}

}  // namespace
}  // namespace samesum::hopper
