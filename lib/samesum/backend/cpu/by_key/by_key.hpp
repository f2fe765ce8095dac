/// Loops over elements by key on a CPU: tables with a word for each result, and how threads share the work.
///
/// An adder adds elements of type X to the words. It has:
/// - `X`, `Word`, and `fresh`, the word of a result without elements;
/// - `is_order_free`, whether words of parts of the elements can be merged; then merge(word, other) does so;
/// - rows(first, n, buffer), which returns the elements of n rows, converted ones in the buffer; null if it
///   cannot add them: then it gives up, and no word counts;
/// - add(word, x); or is_common(x), add(word, x) for common elements, and add_uncommon(result, word, x) for
///   others;
/// - optionally words(), the words of each result, where they are several: add gets the first one, and
///   word_of(x) is the number of the one that it changes;
/// - optionally loop(), a copy with is_common, are_common, add and word_of that the compiler can keep in
///   registers;
/// - optionally add_rows(x, places, n, words), which adds n rows of several elements, row r to the words from
///   words[places[r]] on.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::cpu {

/// The rows of a call, one for each key: their number, the elements of a row, and the bytes of an element.
struct Rows {
  Keys keys;
  std::size_t bins, inner;
  const void* x = nullptr;
  std::size_t bytes = 0;
  std::size_t count() const { return keys.size; }
  std::size_t results() const { return bins * inner; }
  /// Rows per block, whose elements stay in the first-level cache.
  std::size_t block() const { return std::max<std::size_t>(1, block_elements / inner); }
  static constexpr std::size_t block_elements = 1024;
};

/// Fetches the keys and elements of the next block while those of a block are added: the passes that check a
/// block before it is added would otherwise wait for the memory. Addresses may lie behind the end.
struct NextBlock {
  static constexpr std::size_t step = 16;  ///< rows per fetch
  std::uintptr_t key, x;                   ///< addresses
  std::size_t key_bytes, x_bytes;
  void fetch(std::size_t r) const {
    for (std::size_t at = r; at < r + step; at += 64 / sizeof(std::uint64_t)) {
      __builtin_prefetch(reinterpret_cast<const void*>(key + at * key_bytes));
      __builtin_prefetch(reinterpret_cast<const void*>(x + at * x_bytes));
    }
  }
};

/// Words of more results than fit in the second-level cache are fetched ahead of their use.
inline constexpr std::size_t cached_bytes = std::size_t{1} << 20;

template <class Adder> std::size_t words_of(const Adder& adder) {
  if constexpr (requires { adder.words(); })
    return adder.words();
  else
    return 1;
}

/// Words of consecutive results, of which the first is `first`.
template <class Adder> struct WordsOfResults {
  typename Adder::Word* at;
  std::size_t first;
  bool is_cached;
};

template <class Loop>
concept has_uncommon = requires {
  &Loop::is_common;
};
template <class Adder> decltype(auto) loop_of(const Adder& adder) {
  if constexpr (requires { adder.loop(); })
    return adder.loop();
  else
    return (adder);
}

/// Adds x, which is common if the adder has uncommon ones and `are_common`, to the r-th result of `words`.
template <bool are_common, class Adder, class Loop>
inline void add_to(const WordsOfResults<Adder>& words, const Adder& adder, const Loop& loop, std::size_t r,
                   typename Adder::X x) {
  auto& word = words.at[r * words_of(loop)];
  if constexpr (!are_common && has_uncommon<Loop>)
    if (!loop.is_common(x)) [[unlikely]]
      return adder.add_uncommon(words.first + r, word, x);
  loop.add(word, x);
}
/// Fetches the word that add_to changes.
template <class Adder, class Loop>
inline void prefetch(const WordsOfResults<Adder>& words, const Loop& loop, std::size_t r,
                     typename Adder::X x) {
  std::size_t at = r * words_of(loop);
  if constexpr (requires { loop.word_of(x); }) at += loop.word_of(x);
  __builtin_prefetch(words.at + at, 1);
}

/// Adds n elements to results, of which the first one has the key 0.
template <bool are_common, class Adder, class K>
inline void add_elements(const Adder& adder, const WordsOfResults<Adder>& words, const K* key,
                         const typename Adder::X* x, std::size_t n, const NextBlock& next) {
  constexpr std::size_t step = NextBlock::step, ahead = 24;
  std::size_t r = 0;
  const auto& loop = loop_of(adder);
  const auto add = [&](std::size_t i) {
    add_to<are_common>(words, adder, loop, static_cast<std::size_t>(key[i]), x[i]);
  };
  if (words.is_cached)
    for (; r + step <= n; r += step) {
      next.fetch(r);
      for (std::size_t i = r; i < r + step; ++i) add(i);
    }
  else
    for (; r + step + ahead <= n; r += step) {
      next.fetch(r);
      for (std::size_t i = r; i < r + step; ++i) {
        prefetch(words, loop, static_cast<std::size_t>(key[i + ahead]), x[i + ahead]);
        add(i);
      }
    }
  for (; r < n; ++r) add(r);
}

/// Adds n rows to results, of which the first row has the key 0.
template <class Adder, class K>
inline void add_rows(const Adder& adder, const WordsOfResults<Adder>& words, const K* key,
                     const typename Adder::X* x, std::size_t n, std::size_t inner, const NextBlock& next) {
  const auto place = [&](std::size_t r) { return static_cast<std::size_t>(key[r]) * inner; };
  if constexpr (requires { &Adder::add_rows; }) {
    std::array<std::size_t, Rows::block_elements / 2> places;
    for (std::size_t r = 0; r < n; ++r) places[r] = place(r);
    return adder.add_rows(x, places.data(), n, words.at);
  } else if (inner > 1) {
    const auto& loop = loop_of(adder);
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < inner; ++i)
        add_to<false>(words, adder, loop, place(r) + i, x[r * inner + i]);
  } else {
    if constexpr (has_uncommon<std::decay_t<decltype(loop_of(adder))>>)
      if (!loop_of(adder).are_common(x, n)) return add_elements<false>(adder, words, key, x, n, next);
    add_elements<true>(adder, words, key, x, n, next);
  }
}

/// The words of all results, or why there are none.
template <class Word> struct Table {
  std::vector<Word> words;
  bool has_bad_key = false, gave_up = false;
};

/// One pass of an adder over rows, with keys of type K: std::uint32_t or std::int64_t. Keys of 32 bits with a
/// sign are read as those without, since negative ones then lie above all valid keys.
template <class Adder, class K> class PassByKey {
 public:
  using Word = typename Adder::Word;
  using X = typename Adder::X;

  PassByKey(const Adder& adder, const Rows& rows, std::vector<Word> start)
      : adder_{adder}, rows_{rows}, keys_{static_cast<const K*>(rows.keys.data)}, end_{rows.bins} {
    if (rows.keys.format == KeyFormat::int32) end_ = std::min(end_, std::size_t{1} << 31);
    table_.words = std::move(start);
  }

  /// Adds all rows on up to `threads` threads. Either each thread has a table of its own and adds some of the
  /// rows, or all share one table and each adds the rows of some keys: then all threads read all keys, and
  /// the order is kept.
  Table<Word> run(int threads) && {
    const auto tables = static_cast<std::size_t>(threads);
    const bool is_small =
        words() * sizeof(Word) <= cached_bytes || 4 * tables * rows_.results() <= rows_.count() * rows_.inner;
    // Gathering elements costs as much as adding them to a small table.
    const bool is_cheap = !Adder::is_order_free && rows_.inner < 8 && words() * sizeof(Word) <= cached_bytes;
    if (threads == 1 || is_cheap || rows_.count() == 0 || rows_.results() == 0)
      add_chunk(table_.words, 0, rows_.count());
    else if (Adder::is_order_free && is_small)
      run_with_tables(tables);
    else
      run_with_ranges(tables);
    table_.has_bad_key = has_bad_key_;
    table_.gave_up = gave_up_;
    return std::move(table_);
  }

 private:
  /// Words of all results.
  std::size_t words() const { return rows_.results() * words_of(adder_); }
  bool is_over() const { return has_bad_key_.load(relaxed) || gave_up_.load(relaxed); }

  /// Calls visit(first, n, x) for the blocks of rows begin … end - 1.
  template <class Visit> void for_each_block(std::size_t begin, std::size_t end, Visit visit) {
    const std::size_t block = rows_.block();
    std::vector<X> buffer(block * rows_.inner);
    for (std::size_t first = begin; first < end && !is_over(); first += block) {
      const std::size_t n = std::min(block, end - first);
      const X* const x = adder_.rows(first, n, buffer.data());
      if (x != nullptr)
        visit(first, n, x);
      else
        gave_up_.store(true, relaxed);
    }
  }

  bool are_valid(const K* key, std::size_t n) const {
    using U = std::make_unsigned_t<K>;
    constexpr std::uint64_t most = std::numeric_limits<std::make_signed_t<K>>::max();
    const std::size_t last = end_ - 1;
    U signs = 0;
    if (end_ == 0 || last > most) return n == 0 || (end_ > 0 && are_below(key, n));
    // One of the two is negative if the key is.
    for (std::size_t r = 0; r < n; ++r) signs |= U(key[r]) | U(U(last) - U(key[r]));
    return signs <= most;
  }
  bool are_below(const K* key, std::size_t n) const {
    return std::all_of(key, key + n, [&](K k) { return static_cast<std::uint64_t>(k) < end_; });
  }

  /// The block after that of row `first`.
  NextBlock after(std::size_t first) const {
    const std::size_t row = first + rows_.block();
    return {reinterpret_cast<std::uintptr_t>(keys_) + row * sizeof(K),
            reinterpret_cast<std::uintptr_t>(rows_.x) + row * rows_.bytes, sizeof(K), rows_.bytes};
  }

  void add_chunk(std::vector<Word>& words, std::size_t begin, std::size_t end) {
    const bool is_cached = words.size() * sizeof(Word) <= cached_bytes;
    for_each_block(begin, end, [&](std::size_t first, std::size_t n, const X* x) {
      if (are_valid(keys_ + first, n))
        add_rows(adder_, {words.data(), 0, is_cached}, keys_ + first, x, n, rows_.inner, after(first));
      else
        has_bad_key_.store(true, relaxed);
    });
  }

  void run_with_tables(std::size_t tables) {
    if constexpr (Adder::is_order_free) {
      const std::size_t chunk = (rows_.count() - 1) / tables + 1;
      std::vector<std::vector<Word>> others(tables - 1);
      for_each_task(static_cast<int>(tables), tables, [&](std::size_t t) {
        std::vector<Word>& words = t == 0 ? table_.words : others[t - 1];
        if (t > 0) words.assign(this->words(), Adder::fresh);
        add_chunk(words, t * chunk, std::min(rows_.count(), (t + 1) * chunk));
      });
      if (is_over()) return;
      const std::size_t all = words(), part = (all - 1) / tables + 1;
      for_each_task(static_cast<int>(tables), tables, [&](std::size_t t) {
        for (const std::vector<Word>& other : others)
          for (std::size_t at = t * part; at < std::min(all, (t + 1) * part); ++at)
            adder_.merge(table_.words[at], other[at]);
      });
    }
  }

  void run_with_ranges(std::size_t ranges) {
    const std::size_t width = (rows_.bins - 1) / ranges + 1, inner = rows_.inner;
    if (first_bad_key(rows_.keys, rows_.bins) != no_bad_key) {
      has_bad_key_ = true;
      return;
    }
    for_each_task(static_cast<int>(ranges), ranges, [&](std::size_t t) {
      const std::size_t low = t * width, high = std::min(rows_.bins, low + width);
      if (low >= high) return;
      std::vector<K> key(rows_.block() + 1);
      std::vector<X> mine((rows_.block() + 1) * inner);
      const std::size_t first_result = low * inner, words = words_of(adder_);
      const bool is_cached = (high - low) * inner * words * sizeof(Word) <= cached_bytes;
      for_each_block(0, rows_.count(), [&](std::size_t first, std::size_t n, const X* x) {
        std::size_t count = 0;  // no branch depends on a key: half of them would be mispredicted
        for (std::size_t r = 0; r < n; ++r) {
          const std::size_t of_range = static_cast<std::size_t>(keys_[first + r]) - low;
          key[count] = static_cast<K>(of_range);
          if (inner == 1)
            mine[count] = x[r];
          else
            std::copy_n(x + r * inner, inner, mine.data() + count * inner);
          count += of_range < high - low;
        }
        add_rows(adder_, {table_.words.data() + first_result * words, first_result, is_cached}, key.data(),
                 mine.data(), count, inner, after(first));
      });
    });
  }

  static constexpr auto relaxed = std::memory_order_relaxed;
  const Adder& adder_;
  const Rows& rows_;
  const K* keys_;
  std::size_t end_;  ///< valid keys are smaller
  Table<Word> table_;
  std::atomic<bool> has_bad_key_ = false, gave_up_ = false;
};

/// Adds all rows to the words `start`, those of each result together.
template <class Adder>
Table<typename Adder::Word> add_by_key(const Adder& adder, const Rows& rows, int threads,
                                       std::vector<typename Adder::Word> start) {
  if (rows.keys.format == KeyFormat::int64)
    return PassByKey<Adder, std::int64_t>{adder, rows, std::move(start)}.run(threads);
  return PassByKey<Adder, std::uint32_t>{adder, rows, std::move(start)}.run(threads);
}
template <class Adder>
Table<typename Adder::Word> add_by_key(const Adder& adder, const Rows& rows, int threads) {
  return add_by_key(adder, rows, threads,
                    std::vector<typename Adder::Word>(rows.results() * words_of(adder), Adder::fresh));
}

/// Calls visit(at) for each result, on up to `threads` threads.
template <class Visit> void for_each_result(int threads, std::size_t results, Visit visit) {
  constexpr std::size_t part = std::size_t{1} << 14;
  for_each_task(threads, results / part + 1, [&](std::size_t k) {
    for (std::size_t at = k * part; at < std::min(results, (k + 1) * part); ++at) visit(at);
  });
}

}  // namespace samesum::cpu
