/// Numbers equal keys by a table with a cell for each possible key, if these are few, else by hash tables.
#include "samesum/backend/cpu/by_key/key_groups.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>

#include "samesum/backend/cpu/schedule/tasks.hpp"

namespace samesum::cpu {
namespace {

/// Memory for the cells of a table, which are read at random: in huge pages, if the system has them.
template <class Cell> class TableOfCells {
 public:
  TableOfCells(std::size_t size, Cell fresh) : size_{size}, cells_{allocated(size)} {
    std::uninitialized_fill_n(cells_.get(), size, fresh);
  }
  Cell* data() const { return cells_.get(); }
  std::size_t size() const { return size_; }
  Cell& operator[](std::size_t i) const { return cells_[i]; }

 private:
  static constexpr std::size_t huge = std::size_t{1} << 21;
  struct Free {
    void operator()(Cell* cells) const { ::operator delete[](cells, std::align_val_t{huge}); }
  };
  static Cell* allocated(std::size_t size) {
    auto* const cells = static_cast<Cell*>(::operator new[](size * sizeof(Cell), std::align_val_t{huge}));
#if defined(MADV_HUGEPAGE)
    if (size * sizeof(Cell) >= huge) madvise(cells, size * sizeof(Cell) / huge * huge, MADV_HUGEPAGE);
#endif
    return cells;
  }
  std::size_t size_;
  std::unique_ptr<Cell[], Free> cells_;
};

/// Keys begin … end - 1 of part `part` of `parts`.
struct Part {
  std::size_t begin, end;
  Part(std::size_t n, std::size_t part, std::size_t parts) {
    const std::size_t size = n / parts + 1;
    begin = std::min(n, part * size);
    end = std::min(n, begin + size);
  }
};

/// The smallest key, and by how much the largest one exceeds it.
struct Range {
  std::int64_t least;
  std::uint64_t width;
  std::uint64_t place(std::int64_t key) const {
    return static_cast<std::uint64_t>(key) - static_cast<std::uint64_t>(least);
  }
};

Range range_of(std::span<const std::int64_t> keys, int threads) {
  constexpr std::size_t lanes = 8;
  const auto parts = static_cast<std::size_t>(threads);
  std::vector<std::int64_t> least(parts, keys.front()), most(parts, keys.front());
  for_each_task(threads, parts, [&](std::size_t p) {
    const Part part{keys.size(), p, parts};
    std::array<std::int64_t, lanes> low, high;
    low.fill(keys.front());
    high.fill(keys.front());
    std::size_t i = part.begin;
    for (; i + lanes <= part.end; i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) {
        low[l] = std::min(low[l], keys[i + l]);
        high[l] = std::max(high[l], keys[i + l]);
      }
    for (; i < part.end; ++i) {
      low[0] = std::min(low[0], keys[i]);
      high[0] = std::max(high[0], keys[i]);
    }
    least[p] = *std::ranges::min_element(low);
    most[p] = *std::ranges::max_element(high);
  });
  Range range{*std::ranges::min_element(least), 0};
  range.width = range.place(*std::ranges::max_element(most));
  return range;
}

/// Replaces the index of the first key of each group by the rank of this index among all.
class Ranks {
 public:
  explicit Ranks(std::size_t keys) : flags_(keys / 64 + 1), before_(keys / 64 + 2) {}
  void add(std::size_t index) { flags_[index / 64] |= std::uint64_t{1} << index % 64; }
  /// Returns all indices in ascending order. Only then, ranks are known.
  std::vector<std::int64_t> indices() {
    std::vector<std::int64_t> all;
    for (std::size_t w = 0; w < flags_.size(); ++w) {
      before_[w] = all.size();
      for (std::uint64_t rest = flags_[w]; rest != 0; rest &= rest - 1)
        all.push_back(static_cast<std::int64_t>(64 * w + static_cast<std::size_t>(std::countr_zero(rest))));
    }
    return all;
  }
  std::size_t rank(std::size_t index) const {
    const std::uint64_t below = flags_[index / 64] & ((std::uint64_t{1} << index % 64) - 1);
    return before_[index / 64] + static_cast<std::size_t>(std::popcount(below));
  }

 private:
  std::vector<std::uint64_t> flags_;
  std::vector<std::size_t> before_;
};

/// Numbers groups by a table with a cell for each integer in the range of the keys.
template <class Number>
std::vector<std::int64_t> number_in_range(std::span<const std::int64_t> keys, Range range, bool sorted,
                                          int threads, Number* numbers) {
  constexpr Number none = std::numeric_limits<Number>::max();
  const std::size_t cells = range.width + 1, n = keys.size(),
                    parts = std::clamp<std::size_t>(2 * n / cells, 1, static_cast<std::size_t>(threads));
  std::vector<std::unique_ptr<TableOfCells<Number>>> firsts(parts);
  for_each_task(threads, parts, [&](std::size_t p) {
    firsts[p] = std::make_unique<TableOfCells<Number>>(cells, none);
    Number* const first = firsts[p]->data();
    const Part part{n, p, parts};
    for (std::size_t i = part.end; i-- > part.begin;) first[range.place(keys[i])] = static_cast<Number>(i);
  });
  Number* const first = firsts[0]->data();
  for (std::size_t p = 1; p < parts; ++p)
    for (std::size_t c = 0; c < cells; ++c) first[c] = std::min(first[c], (*firsts[p])[c]);

  std::vector<std::int64_t> groups;
  if (sorted) {
    for (std::size_t c = 0; c < cells; ++c) {
      if (first[c] == none) continue;
      groups.push_back(first[c]);
      first[c] = static_cast<Number>(groups.size() - 1);
    }
  } else {
    Ranks ranks{n};
    for (std::size_t c = 0; c < cells; ++c)
      if (first[c] != none) ranks.add(static_cast<std::size_t>(first[c]));
    groups = ranks.indices();
    for (std::size_t c = 0; c < cells; ++c)
      if (first[c] != none) first[c] = static_cast<Number>(ranks.rank(static_cast<std::size_t>(first[c])));
  }
  const auto all = static_cast<std::size_t>(threads);
  for_each_task(threads, all, [&](std::size_t p) {
    const Part part{n, p, all};
    for (std::size_t i = part.begin; i < part.end; ++i) numbers[i] = first[range.place(keys[i])];
  });
  return groups;
}

/// Different keys in the order of their first appearance, with open addressing and linear probing.
template <class Number> class KeyTable {
 public:
  /// Numbers n keys, the first of which has the index `begin`.
  void number(const std::int64_t* key, std::size_t n, std::size_t begin, Number* numbers) {
    std::array<std::size_t, block> places;
    for (std::size_t first = 0; first < n; first += block) {
      const std::size_t count = std::min(block, n - first);
      if (2 * (keys.size() + block) > cells_.size()) grow();
      for (std::size_t j = 0; j < count; ++j) {
        places[j] = place_of(key[first + j]);
        __builtin_prefetch(cells_.data() + places[j]);
      }
      for (std::size_t j = 0; j < count; ++j) {
        Cell& cell = found(places[j], key[first + j]);
        if (cell.number == none) {
          cell = {key[first + j], static_cast<Number>(keys.size())};
          keys.push_back(key[first + j]);
          indices.push_back(static_cast<std::int64_t>(begin + first + j));
        }
        numbers[first + j] = cell.number;
      }
    }
  }

  std::vector<std::int64_t> keys;     ///< the key of each group
  std::vector<std::int64_t> indices;  ///< the index of its first key

 private:
  static constexpr std::size_t block = 32;
  static constexpr Number none = -1;
  struct Cell {
    std::int64_t key;
    Number number;
  };

  std::size_t place_of(std::int64_t key) const {
    const auto product =
        static_cast<unsigned __int128>(static_cast<std::uint64_t>(key)) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(
        (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64)) >> shift_);
  }
  /// The cell of a key, or the free one for it.
  Cell& found(std::size_t place, std::int64_t key) const {
    while (cells_[place].number != none && cells_[place].key != key)
      place = (place + 1) & (cells_.size() - 1);
    return cells_[place];
  }
  void grow() {
    cells_ = TableOfCells<Cell>{4 * cells_.size(), {0, none}};
    shift_ -= 2;
    for (std::size_t k = 0; k < keys.size(); ++k)
      found(place_of(keys[k]), keys[k]) = {keys[k], static_cast<Number>(k)};
  }

  int shift_ = 64 - 10;
  TableOfCells<Cell> cells_{std::size_t{1} << 10, {0, none}};
};

/// Returns the order that sorts keys, by their digits of 11 bits.
template <class Number> std::vector<Number> sorting_order(std::span<const std::int64_t> keys, Range range) {
  constexpr int bits = 11;
  struct Item {
    std::uint64_t place;
    Number index;
  };
  std::vector<Item> items(keys.size()), other(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) items[k] = {range.place(keys[k]), static_cast<Number>(k)};
  if (keys.size() < std::size_t{1} << bits) {
    std::ranges::sort(items, {}, &Item::place);
  } else {
    for (int shift = 0; shift < 64 && range.width >> shift != 0; shift += bits) {
      std::array<std::size_t, (std::size_t{1} << bits) + 1> end{};
      const auto digit = [&](const Item& item) { return item.place >> shift & ((1u << bits) - 1); };
      for (const Item& item : items) ++end[digit(item) + 1];
      for (std::size_t d = 1; d < end.size(); ++d) end[d] += end[d - 1];
      for (const Item& item : items) other[end[digit(item)]++] = item;
      items.swap(other);
    }
  }
  std::vector<Number> order(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) order[k] = items[k].index;
  return order;
}

/// Numbers groups by hash tables, one for each thread, which are merged.
template <class Number>
std::vector<std::int64_t> number_by_hash(std::span<const std::int64_t> keys, Range range, bool sorted,
                                         int threads, Number* numbers) {
  const auto parts = static_cast<std::size_t>(threads);
  std::vector<KeyTable<Number>> tables(parts);
  for_each_task(threads, parts, [&](std::size_t p) {
    const Part part{keys.size(), p, parts};
    tables[p].number(keys.data() + part.begin, part.end - part.begin, part.begin, numbers + part.begin);
  });
  // The first keys of a later part lie behind those of an earlier one.
  KeyTable<Number>& all = tables[0];
  std::vector<std::vector<Number>> renumbered(parts);
  for (std::size_t p = 0; p < parts; ++p) {
    const KeyTable<Number>& table = tables[p];
    renumbered[p].resize(table.keys.size());
    if (p == 0) {
      for (std::size_t g = 0; g < table.keys.size(); ++g) renumbered[p][g] = static_cast<Number>(g);
      continue;
    }
    const std::size_t before = all.keys.size();
    all.number(table.keys.data(), table.keys.size(), 0, renumbered[p].data());
    for (std::size_t g = before; g < all.keys.size(); ++g)
      all.indices[g] = table.indices[static_cast<std::size_t>(all.indices[g])];
  }
  std::vector<std::int64_t> groups = std::move(all.indices);
  if (sorted) {
    const std::vector<Number> order = sorting_order<Number>(all.keys, range);
    const std::vector<std::int64_t> indices = std::move(groups);
    groups.resize(order.size());
    std::vector<Number> rank(order.size());
    for (std::size_t g = 0; g < order.size(); ++g) {
      rank[static_cast<std::size_t>(order[g])] = static_cast<Number>(g);
      groups[g] = indices[static_cast<std::size_t>(order[g])];
    }
    for (std::vector<Number>& of_part : renumbered)
      for (Number& number : of_part) number = rank[static_cast<std::size_t>(number)];
  }
  for_each_task(threads, parts, [&](std::size_t p) {
    if (p == 0 && !sorted) return;
    const Part part{keys.size(), p, parts};
    for (std::size_t i = part.begin; i < part.end; ++i)
      numbers[i] = renumbered[p][static_cast<std::size_t>(numbers[i])];
  });
  return groups;
}

}  // namespace

template <GroupNumber Number>
std::vector<std::int64_t> number_groups(std::span<const std::int64_t> keys, bool sorted, int threads,
                                        Number* numbers) {
  if (keys.empty()) return {};
  threads = thread_count(threads, keys.size(), keys.size());
  const Range range = range_of(keys, threads);
  const bool is_narrow = range.width < std::max<std::size_t>(2 * keys.size(), 1024);
  return is_narrow ? number_in_range(keys, range, sorted, threads, numbers)
                   : number_by_hash(keys, range, sorted, threads, numbers);
}

template <std::integral Number>
void sort_by_group(std::span<const Number> numbers, std::size_t groups, int threads, std::int64_t* indices,
                   std::uint64_t* offsets) {
  const std::size_t n = numbers.size();
  // Each part has a place for the next index of each group.
  const std::size_t parts = std::clamp<std::size_t>(
      n / (groups + 1), 1, static_cast<std::size_t>(thread_count(threads, n, std::max<std::size_t>(n, 1))));
  std::vector<std::vector<std::uint64_t>> next(parts);
  for_each_task(static_cast<int>(parts), parts, [&](std::size_t p) {
    next[p].resize(groups);
    const Part part{n, p, parts};
    for (std::size_t i = part.begin; i < part.end; ++i) ++next[p][static_cast<std::size_t>(numbers[i])];
  });
  std::uint64_t end = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    offsets[g] = end;
    for (std::vector<std::uint64_t>& of_part : next) {
      const std::uint64_t count = of_part[g];
      of_part[g] = end;
      end += count;
    }
  }
  offsets[groups] = end;
  for_each_task(static_cast<int>(parts), parts, [&](std::size_t p) {
    const Part part{n, p, parts};
    for (std::size_t i = part.begin; i < part.end; ++i)
      indices[next[p][static_cast<std::size_t>(numbers[i])]++] = static_cast<std::int64_t>(i);
  });
}

template std::vector<std::int64_t> number_groups(std::span<const std::int64_t>, bool, int, std::int32_t*);
template std::vector<std::int64_t> number_groups(std::span<const std::int64_t>, bool, int, std::int64_t*);
template void sort_by_group(std::span<const std::uint32_t>, std::size_t, int, std::int64_t*, std::uint64_t*);
template void sort_by_group(std::span<const std::int32_t>, std::size_t, int, std::int64_t*, std::uint64_t*);
template void sort_by_group(std::span<const std::int64_t>, std::size_t, int, std::int64_t*, std::uint64_t*);

}  // namespace samesum::cpu
