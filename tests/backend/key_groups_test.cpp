/// Groups of equal keys: their numbers and first keys are those of a map, whatever the range of the keys, the
/// type of the numbers and the threads.
#include "samesum/backend/cpu/by_key/key_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <type_traits>

#include "support.hpp"

namespace samesum::cpu {
namespace {

using testing_support::is_sanitized;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

const std::vector<int> thread_counts = is_sanitized ? std::vector{0, 3} : std::vector{0, 1, 3};

/// Arrays of keys that share a table, or not; with few and many different ones; sorted and not.
std::vector<std::vector<std::int64_t>> key_arrays() {
  std::vector<std::vector<std::int64_t>> all{
      {}, {7}, {-7, -7}, {most, least, most}, {least, 0, -1, 0, least}};
  std::mt19937_64 random{1};
  const auto add = [&](std::size_t n, std::uint64_t count, std::int64_t step) {
    std::vector<std::int64_t> keys(n);
    for (std::int64_t& key : keys)
      key = (static_cast<std::int64_t>(random() % count) - static_cast<std::int64_t>(count / 2)) * step;
    all.push_back(keys);
  };
  for (const std::int64_t step : {1, 2, 1 << 20, 1 << 30}) {
    for (const std::uint64_t count : {1, 50, 3000}) add(2500, count, step);
    if (!is_sanitized) add(20'000, 10'000, step);
  }
  add(140'000, 30'000, 1);  // enough keys for threads without a request
  if (!is_sanitized) {
    add(140'000, 30'000, 1 << 30);
    all.push_back(all.back());
    std::ranges::sort(all.back());
  }
  std::vector<std::int64_t> of_any_size(10'000);  // every digit differs
  for (std::int64_t& key : of_any_size) key = static_cast<std::int64_t>(random());
  all.push_back(of_any_size);
  std::vector<std::int64_t> high_digits(2000);  // whose low bits are equal
  for (std::size_t k = 0; k < high_digits.size(); ++k)
    high_digits[k] = static_cast<std::int64_t>(k % 1024 << 54);
  all.push_back(high_digits);
  return all;
}

template <class Number> struct Expected {
  std::vector<Number> numbers;
  std::vector<std::int64_t> first;
};

template <class Number> Expected<Number> by_map(const std::vector<std::int64_t>& keys, bool sorted) {
  struct Group {
    std::int64_t first;
    std::size_t number;
  };
  std::map<std::int64_t, Group> groups;
  std::vector<Group*> of_keys;
  Expected<Number> expected;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto [found, is_new] =
        groups.try_emplace(keys[i], Group{static_cast<std::int64_t>(i), groups.size()});
    of_keys.push_back(&found->second);
    if (is_new) expected.first.push_back(static_cast<std::int64_t>(i));
  }
  std::size_t rank = 0;
  if (sorted)
    for (auto& [key, group] : groups) {
      expected.first[rank] = group.first;
      group.number = rank++;
    }
  for (const Group* group : of_keys) expected.numbers.push_back(static_cast<Number>(group->number));
  return expected;
}

template <class Number> class KeyGroups : public testing::Test {};
using Numbers = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(KeyGroups, Numbers);

TYPED_TEST(KeyGroups, AreNumberedInOrderOnAnyNumberOfThreads) {
  for (const std::vector<std::int64_t>& keys : key_arrays())
    for (const bool sorted : {true, false}) {
      const auto expected = by_map<TypeParam>(keys, sorted);
      for (const int threads : thread_counts) {
        std::vector<TypeParam> numbers(keys.size(), -1);
        const auto first = number_groups(std::span{keys}, sorted, threads, numbers.data());
        ASSERT_EQ(first, expected.first) << keys.size() << " keys, " << threads << " threads";
        ASSERT_EQ(numbers, expected.numbers) << keys.size() << " keys, " << threads << " threads";
      }
    }
}

TYPED_TEST(KeyGroups, HaveTheirKeysInOrderOnAnyNumberOfThreads) {
  for (const std::vector<std::int64_t>& keys : key_arrays()) {
    const auto [numbers, first] = by_map<TypeParam>(keys, true);
    std::vector<std::int64_t> sorted(keys.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::ranges::stable_sort(sorted, {}, [&](std::int64_t i) { return keys[static_cast<std::size_t>(i)]; });
    const std::size_t groups = first.size() + 2;  // the last two have no keys
    std::vector<std::uint64_t> expected_offsets(groups + 1);
    for (const TypeParam number : numbers) ++expected_offsets[static_cast<std::size_t>(number) + 1];
    std::partial_sum(expected_offsets.begin(), expected_offsets.end(), expected_offsets.begin());
    for (const int threads : thread_counts) {
      std::vector<std::int64_t> indices(keys.size(), -1);
      std::vector<std::uint64_t> offsets(groups + 1, ~std::uint64_t{0});
      sort_by_group(std::span<const TypeParam>{numbers}, groups, threads, indices.data(), offsets.data());
      ASSERT_EQ(indices, sorted);
      ASSERT_EQ(offsets, expected_offsets);
    }
  }
}

}  // namespace
}  // namespace samesum::cpu
