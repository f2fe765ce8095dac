/// The word that a misspelt one may mean, at run time and at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "samesum/catalogue/parse_name.hpp"

namespace samesum::detail {

/// Number of insertions, deletions, substitutions and swaps of neighbours between two words (optimal string
/// alignment). Longer words are cut.
constexpr std::size_t distance(std::string_view a, std::string_view b) {
  constexpr std::size_t most = 40;
  a = a.substr(0, most);
  b = b.substr(0, most);
  std::array<std::array<std::size_t, most + 1>, most + 1> d{};
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j - 1] + (a[i - 1] != b[j - 1]), d[i - 1][j] + 1, d[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// Whether a word at this distance may be meant.
constexpr bool is_near(std::size_t distance, std::string_view word) { return distance <= word.size() / 2; }

/// Returns the word of any field of a name that is nearest to an unknown one; empty if none is near.
constexpr std::string_view near_word(std::string_view unknown) {
  if (unknown.empty()) return {};
  std::string_view nearest;
  std::size_t least = unknown.size() + 1;
  const auto compare = [&](std::string_view word) {
    if (const std::size_t far = distance(unknown, word); far < least) least = far, nearest = word;
  };
  Orders::for_each([&]<class Order>() { compare(Order::name); });
  for (const std::string_view word : accumulator_names) compare(word);
  for (const std::string_view word : accumulators_without_order) compare(word);
  for (const OperationFacts& facts : operation_facts) compare(facts.name);
  for (const FormatInfo& format : formats) compare(format.name);
  for (const std::string_view word : backends) compare(word);
  return is_near(least, unknown) ? nearest : std::string_view{};
}

/// A word as a type, whose letters every compiler prints.
template <char... letters> struct DidYouMean {};

/// What the first unknown word of a name may mean; without letters if it has none, or none is near.
template <Name name> struct Suggestion {
  static constexpr std::string_view word = near_word(parse_name(name.view()).wrong);
  template <std::size_t... i> static DidYouMean<word[i]...> spelled(std::index_sequence<i...>);
  using type = decltype(spelled(std::make_index_sequence<word.size()>{}));
};

}  // namespace samesum::detail
