/// Which subtrees of a vector that is spread over ranks each rank reduces, and which elements it gets for
/// that from other ranks: a function of the lengths of the blocks alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace samesum::nccl {

/// Most tiles of a vector. One block of threads merges their states.
inline constexpr std::uint64_t most_tiles = 1024;

/// Consecutive elements of the vector.
struct Range {
  std::uint64_t first, count;
  std::uint64_t end() const { return first + count; }
};

/// A tile that is spread over several ranks. Its owner, the rank with most of its elements, gets all of them.
struct SplitTile {
  struct Part {
    int rank;
    Range elements;
  };
  Range elements;
  int owner;
  std::vector<Part> parts;  ///< parts of the ranks, in rank order
};

/// The vector is cut into tiles of leaves, whose number is a power of two. Tiles merge by stride doubling, as
/// leaves do, so an aligned group of 2^k of them is a subtree, whose state is one vector's.
struct Schedule {
  std::uint64_t n = 0;
  std::vector<std::uint64_t> begins;  ///< of the blocks
  std::vector<SplitTile> split;
  /// The subtrees of each rank, in the order of their states: first the split tiles that it owns.
  std::vector<std::vector<Range>> subtrees;
  std::size_t states_per_rank = 0;  ///< at most; 1 or more
  /// For each tile the place of the state of the subtree that begins there, if the states of rank r begin at
  /// r·states_per_rank; -1 if a subtree that begins before it covers it.
  std::vector<std::int32_t> place;
};

namespace schedule_of_tiles {

/// The parts of a range, which begins in the block of rank `first` or behind it.
inline std::vector<SplitTile::Part> parts_of(const Range& range, std::span<const std::uint64_t> sizes,
                                             const std::vector<std::uint64_t>& begins, std::size_t first) {
  std::vector<SplitTile::Part> parts;
  for (std::size_t r = first; r < sizes.size() && begins[r] < range.end(); ++r) {
    const std::uint64_t begin = std::max(begins[r], range.first),
                        end = std::min(begins[r] + sizes[r], range.end());
    if (begin < end) parts.push_back({static_cast<int>(r), {begin, end - begin}});
  }
  return parts;
}

/// Number of tiles of the largest subtree that begins at tile `first` and ends at tile `end` or before. At
/// the end of the vector a subtree may lack some of its tiles.
inline std::uint64_t tiles_of_subtree(std::uint64_t first, std::uint64_t end, std::uint64_t all) {
  const std::uint64_t left = end - first, aligned = first & (~first + 1);  // 0: any size
  if (end == all && (aligned == 0 || left <= aligned)) return left;
  return std::bit_floor(aligned == 0 ? left : std::min(left, aligned));
}

/// For each tile the rank that has its state, and the index of the state there; the number of ranks if there
/// is none.
using States = std::vector<std::pair<std::size_t, std::size_t>>;

/// Makes each block a subtree, for methods whose order is free.
inline States one_per_block(Schedule& s, std::span<const std::uint64_t> sizes) {
  States states(sizes.size(), {sizes.size(), 0});
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    if (sizes[r] == 0) continue;
    s.subtrees[r].push_back({s.begins[r], sizes[r]});
    states[r] = {r, 0};
  }
  return states;
}

}  // namespace schedule_of_tiles

/// Makes the schedule for blocks of these sizes. `leaf` is the number of elements per leaf of the tree; 0 if
/// the order is free: each block is then a subtree. `most` limits the number of tiles.
inline Schedule schedule_of(std::span<const std::uint64_t> sizes, std::uint64_t leaf,
                            std::uint64_t most = most_tiles) {
  using namespace schedule_of_tiles;
  Schedule s;
  const std::size_t ranks = sizes.size();
  s.subtrees.resize(ranks);
  for (const std::uint64_t size : sizes) {
    s.begins.push_back(s.n);
    s.n += size;
  }
  States of_tile;
  if (leaf == 0) {
    of_tile = one_per_block(s, sizes);
  } else if (s.n > 0) {
    std::uint64_t tile = leaf;
    while ((s.n - 1) / tile >= most) tile *= 2;
    const std::uint64_t tiles = (s.n - 1) / tile + 1;
    const auto elements = [&](std::uint64_t first, std::uint64_t end) {
      return Range{first * tile, std::min(end * tile, s.n) - first * tile};
    };
    of_tile.assign(tiles, {ranks, 0});
    const auto add = [&](std::size_t rank, std::uint64_t first, std::uint64_t count) {
      of_tile[first] = {rank, s.subtrees[rank].size()};
      s.subtrees[rank].push_back(elements(first, first + count));
    };
    std::vector<std::size_t> whole(tiles, ranks);  // the rank that has all of a tile
    std::size_t rank = 0;
    for (std::uint64_t k = 0; k < tiles; ++k) {
      const Range range = elements(k, k + 1);
      while (s.begins[rank] + sizes[rank] <= range.first) ++rank;
      std::vector<SplitTile::Part> parts = parts_of(range, sizes, s.begins, rank);
      const int owner =
          std::ranges::max_element(parts, {}, [](const auto& part) { return part.elements.count; })->rank;
      if (parts.size() == 1) {
        whole[k] = static_cast<std::size_t>(owner);
      } else {
        add(static_cast<std::size_t>(owner), k, 1);
        s.split.push_back({range, owner, std::move(parts)});
      }
    }
    for (std::uint64_t first = 0, end; first < tiles; first = end) {
      for (end = first + 1; end < tiles && whole[end] == whole[first];) ++end;
      if (whole[first] == ranks) continue;
      for (std::uint64_t k = first, count; k < end; k += count) {
        count = tiles_of_subtree(k, end, tiles);
        add(whole[first], k, count);
      }
    }
  }
  for (const auto& subtrees : s.subtrees) s.states_per_rank = std::max(s.states_per_rank, subtrees.size());
  s.states_per_rank = std::max<std::size_t>(s.states_per_rank, 1);
  for (const auto& [rank, index] : of_tile)
    s.place.push_back(rank == ranks ? -1 : static_cast<std::int32_t>(rank * s.states_per_rank + index));
  return s;
}

}  // namespace samesum::nccl
