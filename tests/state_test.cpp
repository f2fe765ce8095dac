#include <algorithm>

#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;

std::vector<std::string> state_names() {
  std::vector<std::string> names;
  for (const Method& m : methods("sum"))
    if (m.order == "serial" && m.backend == "cpu")
      names.push_back(m.accumulator + "/" + std::string{m.format->name});
  return names;
}

TEST(AState, OfElementsAddedAtOnceIsTheSerialSum) {
  for (const std::string& name : state_names()) {
    const Array x{format_info<fp32>(), wide(1000, 20, 1)};
    State state{name};
    state.add(x.values());
    EXPECT_EQ(state.result(), find("serial/" + name)(x.values())) << name;
    EXPECT_EQ(state.count(), 1000u);
  }
}

TEST(AState, IsRestoredFromItsBytes) {
  for (const std::string& name : state_names()) {
    for (const std::vector<double>& x :
         {std::vector<double>{}, std::vector<double>{-0.0}, wide(77, 20, 2), {1, 1e300, -1e300 * 1e300}}) {
      State state{name};
      state.add(Array{format_info<fp64>(), x}.values());
      const State copy = State::deserialise(state.serialise());
      EXPECT_EQ(copy.result(), state.result()) << name;
      EXPECT_EQ(copy.serialise(), state.serialise()) << name;
      EXPECT_EQ(copy.empty(), x.empty());
    }
  }
}

TEST(AState, MergesAfterSerialisationAsBefore) {
  for (const std::string& name : state_names()) {
    State a{name}, b{name};
    a.add(Array{format_info<fp64>(), wide(100, 20, 3)}.values());
    b.add(Array{format_info<fp64>(), wide(50, 20, 4)}.values());
    State here = a, there = State::deserialise(a.serialise());
    here.merge(b);
    there.merge(State::deserialise(b.serialise()));
    EXPECT_EQ(here.result(), there.result()) << name;
    EXPECT_EQ(here.bound(1e9), there.bound(1e9)) << name;
  }
}

TEST(AState, IsNotChangedByAnEmptyOne) {
  for (const std::string& name : state_names()) {
    State state{name};
    state.add(Array{format_info<fp64>(), {1, 1e-3, -0.25}}.values());
    const auto before = state.serialise();
    state.merge(State{name});
    state.add(Values{std::span<const double>{}});
    EXPECT_EQ(state.serialise(), before) << name;
    State empty{name};
    empty.merge(state);
    EXPECT_EQ(empty.serialise(), before) << name;
  }
}

TEST(AState, TracksItsHeight) {
  // Each call adds one element and merges; the bound counts all ten merges.
  State state{"plain/fp32"};
  for (int i = 0; i < 11; ++i) state.add(std::vector<float>{1});
  EXPECT_GE(state.bound(11), 10 * 0x1p-24 * 11);
  EXPECT_LT(state.bound(11), 11 * 0x1p-24 * 11);
}

TEST(AState, RefusesOtherStatesAndDamagedBytes) {
  EXPECT_THROW(State{"kahan"}, std::invalid_argument);
  EXPECT_THROW(State{"exact/fp32"}, std::invalid_argument);
  State kahan{"kahan/fp32"};
  EXPECT_THROW(kahan.merge(State{"plain/fp32"}), std::invalid_argument);
  kahan.add(Array{format_info<fp32>(), {1, 2, 3}}.values());
  const auto bytes = kahan.serialise();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(State::deserialise(std::span{bytes}.first(size)), std::invalid_argument) << size;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THROW(State::deserialise(longer), std::invalid_argument);
  auto wrong = bytes;
  wrong[4] = std::byte{9};
  EXPECT_THROW(State::deserialise(wrong), std::invalid_argument);  // a future version
  EXPECT_THROW(State::deserialise(Exact{}.serialise()), std::invalid_argument);
  const std::size_t height = 4 + 1 + 1 + kahan.name().size() + 8;
  for (const std::size_t at : {height, height + 7, height + 8, height + 15, height + 16}) {
    auto impossible = bytes;
    impossible[at] = std::byte{255};
    EXPECT_THROW(State::deserialise(impossible), std::invalid_argument)
        << "an impossible height in byte " << at;
  }
  auto too_precise = bytes;
  too_precise[height + 17] = std::byte{1};  // the last bit of a double that must hold an fp32
  EXPECT_THROW(State::deserialise(too_precise), std::invalid_argument);
  auto emptied = bytes;
  std::fill_n(emptied.begin() + static_cast<std::ptrdiff_t>(height) - 8, 24, std::byte{0});
  EXPECT_THROW(State::deserialise(emptied), std::invalid_argument) << "an empty state with a sum";
}

TEST(AState, IsRestoredFromDamagedBytesOnlyIfTheyAreValid) {
  std::mt19937_64 random{4};
  int taken = 0, refused = 0;
  const std::vector<std::string> names = state_names();
  for (int round = 0; round < 50'000; ++round) {
    State state{names[random() % names.size()]};
    state.add(Array{format_info<fp64>(), wide(random() % 9, 20, random())}.values());
    std::vector<std::byte> bytes = state.serialise();
    for (std::size_t i = 1 + random() % 3; i > 0; --i) {
      if (bytes.empty() || random() % 16 == 0) bytes.resize(random() % 60);
      if (!bytes.empty()) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    }
    try {
      const State copy = State::deserialise(bytes);
      ASSERT_EQ(copy.serialise(), bytes);
      copy.bound(1);
      ++taken;
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace samesum
