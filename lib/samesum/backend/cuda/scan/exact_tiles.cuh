/// The fallback of exact scans, if integers of 320 bits do not hold the sums: a warp sums a tile with all
/// digits, and each thread scans its elements in wide integers.
#pragma once

#include <cooperative_groups.h>

#include "samesum/accumulator/running_exact.hpp"
#include "samesum/backend/cuda/scan/exact_scan.cuh"

namespace samesum::gpu {

/// An element, exactly, and its flags.
struct ExactElement {
  double value;
  unsigned flags;
};
__device__ inline ExactElement exact_element(const ScanInput& in, std::size_t at) {
  ExactElement e{0, Exact::seen_any};
  visit_format(in.format, [&]<class T>() {
    const T x = static_cast<const T*>(in.x)[at];
    const BitsOf<T> bits = to_bits(x), magnitude = BitsOf<T>(bits & ~Format<T>::sign_bit);
    if (bits != Format<T>::sign_bit) e.flags |= Exact::seen_other_than_minus_zero;
    if (magnitude < Format<T>::infinity)
      e.value = static_cast<double>(widen(x));
    else
      e.flags |= magnitude > Format<T>::infinity ? Exact::seen_nan
                 : magnitude == bits             ? Exact::seen_plus_infinity
                                                 : Exact::seen_minus_infinity;
  });
  return e;
}

constexpr int digit_warps = 3;
static_assert(Exact::digit_count < digit_warps * warp);

/// Calls visit(tile) for the tiles of a warp.
template <class Visit> __device__ void for_each_tile(const TileList& tiles, Visit visit) {
  const std::size_t first = blockIdx.x * std::size_t{digit_warps} + static_cast<std::size_t>(warp_index());
  for (std::size_t t = first; t < tiles.count; t += gridDim.x * std::size_t{digit_warps}) visit(t);
}

/// Sums each tile.
__device__ inline void sum_tiles(const ScanInput& in, const Layout& l, const TileList& tiles, Digits& digits,
                                 TileDigits* sums) {
  for_each_tile(tiles, [&](std::size_t t) {
    const std::size_t result = t / tiles.of_result, begin = t % tiles.of_result * tiles.length,
                      end = min(begin + tiles.length, l.n),
                      first = l.first(result / l.inner) + result % l.inner;
    for (int i = thread(); i < Exact::digit_count; i += warp) digits[i] = 0;
    __syncwarp();  // all digits are 0
    unsigned flags = 0;
    for (std::size_t k = begin + static_cast<std::size_t>(thread()); k < end; k += warp) {
      const ExactElement e = exact_element(in, first + k * l.stride);
      flags |= e.flags;
      if (e.value != 0) deposit(digits, e.value);
    }
    flags = __reduce_or_sync(whole_warp, flags);
    __syncwarp();  // all elements are added
    for (int i = thread(); i < Exact::digit_count; i += warp) sums[t].digit[i] = carried(digits, i);
    if (thread() == 0) sums[t].flags = flags;
    __syncwarp();  // all digits are read before the next tile overwrites them
  });
}

/// Tiles whose sums are added one after another: a chunk.
constexpr std::size_t tiles_of_chunk = 128;

/// Calls visit(word) for a digit, or for the flags, of each `step`-th of `count` tiles. A thread has one of
/// these words.
template <class Visit>
__device__ void for_each_word(TileDigits* sums, std::size_t count, std::size_t step, Visit visit) {
  if (threadIdx.x > Exact::digit_count) return;
  const bool is_digit = threadIdx.x < Exact::digit_count;
#pragma unroll 8
  for (std::size_t t = 0; t < count; t += step)
    visit(is_digit ? sums[t].digit[threadIdx.x] : sums[t].flags, is_digit);
}
/// Replaces the sum of each tile by that of the tiles before it in its chunk. The first tile, before which
/// there are none, gets the sum of the chunk.
__device__ inline void sum_before_tiles(std::size_t results, const TileList& tiles, TileDigits* sums) {
  const std::size_t chunks = (tiles.of_result - 1) / tiles_of_chunk + 1;
  for (std::size_t c = blockIdx.x; c < results * chunks; c += gridDim.x) {
    const std::size_t begin = c % chunks * tiles_of_chunk;
    TileDigits* const of_chunk = sums + c / chunks * tiles.of_result + begin;
    std::int64_t sum = 0;
    for_each_word(of_chunk, min(tiles_of_chunk, tiles.of_result - begin), 1, [&](auto& word, bool is_digit) {
      const std::int64_t added = word;
      word = sum;
      sum = is_digit ? sum + added : sum | added;
    });
    for_each_word(of_chunk, 1, 1, [&](auto& word, bool) { word = sum; });
  }
}
/// Replaces the sum of each chunk by that of the chunks before it.
__device__ inline void sum_before_chunks(std::size_t results, const TileList& tiles, TileDigits* sums) {
  for (std::size_t result = blockIdx.x; result < results; result += gridDim.x) {
    std::int64_t sum = 0;
    for_each_word(sums + result * tiles.of_result, tiles.of_result, tiles_of_chunk,
                  [&](auto& word, bool is_digit) {
                    const std::int64_t added = word;
                    word = sum;
                    sum = is_digit ? sum + added : sum | added;
                  });
  }
}

/// The words of a thread's sum in memory that a warp shares word by word.
struct WordsOfThread {
  std::uint64_t* first;
  __device__ std::uint64_t& operator[](std::size_t i) const { return first[i * warp]; }
};
using RunningTile = RunningExact<WordsOfThread>;
struct WordsOfWarp {
  std::uint64_t word[RunningTile::words][warp];
};

/// a + b + carry; the carry becomes that of the sum.
__device__ inline std::uint64_t add_with_carry(std::uint64_t a, std::uint64_t b, unsigned& carry) {
  const std::uint64_t sum = a + b, all = sum + carry;
  carry = (sum < a) | (all < sum);
  return all;
}

/// Starts the sum of each thread with what lies before its elements: the sums of the threads before it, and
/// that of the tiles before, if there are any. The sum of its elements is in `elements`, where `sum` has its
/// words, and their flags are `flags`.
__device__ inline void start_tile(RunningTile& sum, const WordsOfWarp& elements, unsigned flags,
                                  const TileDigits* tile, const TileDigits* chunk) {
  constexpr int steps = 5;  // step s adds the sums of the 2^s threads before
  static_assert(1 << steps == warp);
  const auto before = [](auto x, int distance) {
    const auto other = __shfl_up_sync(whole_warp, x, distance);
    return thread() < distance ? decltype(x){} : other;
  };
  const auto digit = [&](int d) {
    return tile == nullptr ? 0 : tile->digit[d] + (chunk == nullptr ? 0 : chunk->digit[d]);
  };
  unsigned carry[steps] = {}, carry_of_tiles = 0;
  std::int64_t of_digits = 0;
  for (int i = 0; i < RunningTile::words; ++i) {
    std::uint64_t word = elements.word[i][thread()];
#pragma unroll
    for (int s = 0; s < steps; ++s) word = add_with_carry(word, before(word, 1 << s), carry[s]);
    const std::int64_t low = digit(2 * i) + of_digits, high = digit(2 * i + 1) + (low >> 32);
    of_digits = high >> 32;
    const std::uint64_t of_tiles = (low & 0xffffffff) | static_cast<std::uint64_t>(high) << 32;
    sum.set(i, add_with_carry(before(word, 1), of_tiles, carry_of_tiles));
  }
#pragma unroll
  for (int s = 0; s < steps; ++s) flags |= before(flags, 1 << s);
  sum.add_flags(before(flags, 1));
  if (tile != nullptr) sum.add_flags(static_cast<unsigned>(tile->flags));
  if (chunk != nullptr) sum.add_flags(static_cast<unsigned>(chunk->flags));
}

/// Scans each tile in wide integers, one element of each thread after another. `before` is null if no result
/// has more than one tile.
__device__ inline void scan_tiles(const ScanInput& in, const Layout& l, const TileList& tiles,
                                  WordsOfWarp& words, const TileDigits* before, const ScanDestination& out,
                                  std::size_t format) {
  const std::size_t of_thread = tiles.length / warp;
  for_each_tile(tiles, [&](std::size_t t) {
    const std::size_t result = t / tiles.of_result, tile = t % tiles.of_result, o = result / l.inner,
                      i = result % l.inner, first = l.first(o) + i, to = o * out.row_stride + i,
                      begin = min(tile * tiles.length + static_cast<std::size_t>(thread()) * of_thread, l.n),
                      end = min(begin + of_thread, l.n);
    RunningTile sum{WordsOfThread{&words.word[0][thread()]}};
    for (int w = 0; w < RunningTile::words; ++w) sum.set(w, 0);
    unsigned flags = 0;
    for (std::size_t k = begin; k < end; ++k) {
      const ExactElement e = exact_element(in, first + k * l.stride);
      flags |= e.flags;
      sum.add_finite(e.value);
    }
    RunningTile running{WordsOfThread{&words.word[0][thread()]}};
    const std::size_t in_chunk = tile % tiles_of_chunk;
    start_tile(running, words, flags, before == nullptr ? nullptr : before + t,
               before == nullptr || in_chunk == 0 ? nullptr : before + t - in_chunk);
    for (std::size_t k = begin; k < end; ++k) {
      const ExactElement e = exact_element(in, first + k * l.stride);
      const auto write = [&] {
        visit_format(format, [&]<class F>() {
          static_cast<BitsOf<F>*>(out.out)[to + k * l.inner] = running.template rounded<F>();
        });
      };
      if (out.exclusive) write();
      running.add_flags(e.flags);
      running.add_finite(e.value);
      if (!out.exclusive) write();
    }
  });
}

/// Scans in wide integers, if narrower ones do not give the results.
static __global__ void __launch_bounds__(digit_warps* warp)
    scan_digits(ScanInput in, Layout l, TileList tiles, ExactScan call, TileDigits* sums, ScanDestination out,
                std::size_t format) {
  if (call.narrow_fits() || call.wide_words() != 0) return;
  __shared__ Digits digits[digit_warps];
  __shared__ WordsOfWarp words[digit_warps];
  if (tiles.of_result > 1) {
    const auto grid = cooperative_groups::this_grid();
    sum_tiles(in, l, tiles, digits[warp_index()], sums);
    grid.sync();
    sum_before_tiles(l.results(), tiles, sums);
    grid.sync();
    sum_before_chunks(l.results(), tiles, sums);
    grid.sync();
  }
  scan_tiles(in, l, tiles, words[warp_index()], tiles.of_result > 1 ? sums : nullptr, out, format);
}

}  // namespace samesum::gpu
