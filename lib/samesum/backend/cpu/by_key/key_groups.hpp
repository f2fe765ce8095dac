/// Groups of equal keys on a CPU: which group each key belongs to, and which keys each group has.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace samesum::cpu {

/// The integers that number groups. They must hold the number of keys.
template <class Number>
concept GroupNumber = std::same_as<Number, std::int32_t> || std::same_as<Number, std::int64_t>;

/// Writes the number of the group of key i to numbers[i]. Groups are numbered in the order of their keys or,
/// unless `sorted`, in the order of their first keys. The numbers do not depend on `threads`, as in Options.
/// @returns the index of the first key of each group.
template <GroupNumber Number>
std::vector<std::int64_t> number_groups(std::span<const std::int64_t> keys, bool sorted, int threads,
                                        Number* numbers);

/// Sorts the indices of all keys by the number of their group; those of a group keep their order. Numbers
/// have 32 or 64 bits, with or without a sign, and are not negative.
/// @param groups   exceeds all numbers
/// @param indices  memory for as many indices as there are numbers
/// @param offsets  memory for groups + 1 numbers: the indices of group g begin at indices[offsets[g]], and
///                 end where those of the next group begin
template <std::integral Number>
void sort_by_group(std::span<const Number> numbers, std::size_t groups, int threads, std::int64_t* indices,
                   std::uint64_t* offsets);

}  // namespace samesum::cpu
