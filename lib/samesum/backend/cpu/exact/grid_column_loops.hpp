/// Sums of neighbouring columns on grids. Blocks of rows whose elements are multiples of the grids are summed
/// exactly in doubles while the largest elements are sought; the others are rounded in a second pass, with a
/// vector of scales. Each instruction set compiles its own copy.
#pragma once

#include "samesum/accumulator/fixed_point.hpp"
#include "samesum/backend/cpu/exact/extremes.hpp"
#include "samesum/backend/cpu/exact/grid_loops.hpp"
#include "samesum/backend/cpu/exact/stream_window.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"

namespace samesum::cpu {
namespace {

/// The loops over elements of format T, or over terms that are written as doubles: see SumColumnsOnGrid.
template <class T> class GridColumnLoops {
  static constexpr int width = vector_bytes / 8, narrow = vector_bytes / int{sizeof(T)};
  static constexpr std::size_t w = width, strip = GridColumns::most, packs = strip / w,
                               rows = GridColumns::rows, vectors = strip / std::size_t{narrow};
  static constexpr std::uint32_t all_packs = static_cast<std::uint32_t>((std::uint64_t{1} << packs) - 1);
  static constexpr int words = sizeof(T) == 8 ? 2 : 1;  ///< per sum of a block of ordinary data
  static constexpr std::size_t rows_ahead = 8192 / (strip * sizeof(T));  ///< distance of the prefetch
  using V = Pack<fp64, width>;
  using Bits = BitsOf<T>;
  using Magnitudes = Register<std::make_signed_t<Bits>, narrow>;  // they have comparisons in every set

 public:
  /// See SumColumnsOnGrid.
  static void sum(const GridColumns& columns, GridColumnSum* out) {
    GridColumnLoops loops{columns};
    for (std::size_t k = 0; k < loops.blocks_; ++k) {
      const T* const x = loops.block(k);
      loops.look(k, x);
      if (columns.is_given) loops.round(k, x);  // while it is in the first-level cache
    }
    loops.set_grids();
    for (std::size_t k = 0; !columns.is_given && k < loops.blocks_; ++k)
      if ((columns.marks[k] | loops.again_) != 0) loops.round(k, loops.block(k));
    loops.carry();
    loops.write(out);
  }

 private:
  explicit GridColumnLoops(const GridColumns& columns)
      : b_{columns},
        copies_{columns.count < strip || columns.read},
        pitch_{copies_ ? strip : columns.pitch},
        blocks_{(columns.n - 1) / rows + 1},
        mask_{columns.read ? ~std::uint64_t{0} : kept_bits<fp64>(columns.term)} {
    for (std::size_t p = 0; p < packs; ++p) {
      floor_[p] = columns.is_given ? columns.grid : columns.quantum;
      lowest_[p] = -no_exponent;
    }
    if (columns.is_given)
      for (double& scale : scale_) scale = power_of_two(-columns.grid);
    if (columns.count < strip) std::memset(static_cast<void*>(copy_), 0, sizeof copy_);
  }

  std::size_t rows_of(std::size_t block) const {
    return b_.n - block * rows < rows ? b_.n - block * rows : rows;
  }
  /// The first element of a block of whole strips. Columns beyond `count` are zeros.
  const T* block(std::size_t k) {
    const std::size_t first = k * rows * b_.pitch;
    if (!copies_) return static_cast<const T*>(b_.x) + first;
    for (std::size_t r = 0; r < rows_of(k); ++r) {
      const std::size_t from = (first + r * b_.pitch) * b_.bytes;
      const void* const x = static_cast<const char*>(b_.x) + from;
      if (b_.read)
        b_.read(b_.term, x, b_.y ? static_cast<const char*>(b_.y) + from : nullptr, b_.count,
                copy_ + r * strip, nullptr);
      else
        std::memcpy(static_cast<void*>(copy_ + r * strip), x, b_.count * sizeof(T));
    }
    return copy_;
  }

  /// Finds the largest element of each column, and adds the packs whose elements are multiples of all grids
  /// that are known so far. Marks the other packs.
  void look(std::size_t k, const T* x) {
    const std::size_t n = rows_of(k);
    V sum[packs];
    const ExponentRange range = look(x, n, sum);
    if (!b_.is_given && k + 1 == next_floors_) {
      raise_floors();
      next_floors_ *= 8;
    }
    std::uint32_t& marks = b_.marks[k];
    marks = range.is_bounded() ? 0 : all_packs;
    for (int& slices : slices_)  // for a grid that is given
      slices = slices_for(range.is_bounded() ? range.top() - b_.grid : most_bits);
    if (range.is_empty() || !range.is_bounded()) return;
    StreamWindow<words> window;
    const bool fits = window.place(range, log2_rows);
    for (std::size_t p = 0; p < packs; ++p)
      if (!fits || range.lowest() < floor_[p])
        marks |= 1U << p;
      else
        lowest_[p] = range.lowest() < lowest_[p] ? range.lowest() : lowest_[p];
    if constexpr (words == 1) {
      for (std::size_t p = 0; p < packs; ++p)
        if (!(marks >> p & 1)) exact_[p].add(sum[p]);
    } else {
      constexpr std::size_t at_once = packs < 2 ? 1 : 2;
      for (std::size_t p = 0; p < packs; p += at_once)
        if ((marks >> p & ((1U << at_once) - 1)) != (1U << at_once) - 1)
          add_in_two_words<at_once>(x + p * w, n, window.anchor[0], marks >> p, exact_ + p);
    }
  }
  /// Returns the range of a block; if one word holds it, also its sums.
  [[gnu::noinline]] ExponentRange look(const T* x, std::size_t n, V (&sums)[packs]) {
    const Register<std::uint64_t, width> mask = Register<std::uint64_t, width>{} + mask_;
    constexpr auto magnitude = static_cast<std::make_signed_t<Bits>>(~Format<T>::sign_bit);
    Extremes<T> seen;
    Magnitudes largest[vectors];
    std::memcpy(&largest, &largest_, sizeof largest);
    V sum[packs];
    for (V& s : sum) s = V::zero();
    for (std::size_t r = 0; r < n; ++r, x += pitch_) {
      if (pitch_ > strip) prefetch_row(x, strip * sizeof(T), rows_ahead * pitch_ * sizeof(T));
      for (std::size_t v = 0; v < vectors; ++v) {
        Magnitudes bits;
        std::memcpy(&bits, x + v * narrow, sizeof bits);
        seen.see(bits);
        bits &= magnitude;
        largest[v] = bits > largest[v] ? bits : largest[v];
      }
      if constexpr (words == 1)
        for (std::size_t p = 0; p < packs; ++p) sum[p] = sum[p] + masked(V::load(x + p * w), mask);
    }
    std::memcpy(&largest_, &largest, sizeof largest);
    for (std::size_t p = 0; p < packs; ++p) sums[p] = sum[p];
    return seen.range();
  }
  [[gnu::always_inline]] static V masked(V v, Register<std::uint64_t, width> mask) {
    using Words = Register<std::uint64_t, width>;
    return {same_bits<typename V::Storage>(Words(same_bits<Words>(v.v) & mask))};
  }
  template <std::size_t count>
  [[gnu::noinline]] void add_in_two_words(const T* x, std::size_t n, double first, std::uint32_t marks,
                                          ThreeWords<width>* to) const {
    const Register<std::uint64_t, width> mask = Register<std::uint64_t, width>{} + mask_;
    const V anchor = V::broadcast(first);
    V high[count], low[count];
    for (std::size_t p = 0; p < count; ++p) high[p] = low[p] = V::zero();
    for (std::size_t r = 0; r < n; ++r, x += pitch_)
      for (std::size_t p = 0; p < count; ++p) {
        const V element = masked(V::load(x + p * w), mask), part = (anchor + element) - anchor;
        high[p] = high[p] + part;
        low[p] = low[p] + (element - part);
      }
    for (std::size_t p = 0; p < count; ++p)
      if (!(marks >> p & 1)) {
        to[p].add(high[p]);
        to[p].add(low[p]);
      }
  }

  T largest(std::size_t column) const { return from_bits<T>(static_cast<Bits>(largest_[column])); }
  bool is_finite(std::size_t column) const {
    return static_cast<Bits>(largest_[column]) < Format<T>::infinity;
  }
  int grid_for(int exponent) const { return found_grid(exponent, b_.n, b_.word_bits, b_.quantum); }
  /// Sets the floors to the grids that are known so far, and two bits more: grids may become coarser.
  void raise_floors() {
    for (std::size_t p = 0; p < packs; ++p) {
      std::make_signed_t<Bits> most = 0;
      for (std::size_t c = p * w; c < (p + 1) * w; ++c)
        if (is_finite(c)) most = largest_[c] > most ? largest_[c] : most;
      if (most != 0) floor_[p] = grid_for(exponent_of(from_bits<T>(static_cast<Bits>(most)))) + 2;
    }
  }
  static constexpr int most_bits = 126;  ///< most bits of an element in units
  static int slices_for(int bits) { return bits <= slice_bits ? 1 : bits <= 2 * slice_bits ? 2 : 3; }
  /// Sets the grid and the scale of each column, and marks all of the packs whose exact sums have elements
  /// that are no multiples of a grid.
  void set_grids() {
    for (std::size_t p = 0; p < packs; ++p) {
      int most = 0, coarsest = b_.quantum;
      const bool is_exact = exact_[p].is_exact();
      for (std::size_t c = p * w; c < (p + 1) * w; ++c) {
        const int exponent = exponent_of(largest(c));
        grid_[c] = b_.is_given ? b_.grid : grid_for(exponent);
        const int bits = exponent == no_exponent ? 0 : exponent + 1 - grid_[c];
        known_[c] = is_finite(c) && bits <= most_bits && (is_exact || !b_.is_given) &&
                    std::abs(grid_[c]) <= GridColumns::largest_grid;
        if (b_.is_given) continue;
        scale_[c] = known_[c] ? power_of_two(-grid_[c]) : 0;
        if (!known_[c]) continue;
        most = bits > most ? bits : most;
        coarsest = grid_[c] > coarsest ? grid_[c] : coarsest;
      }
      if (b_.is_given) continue;
      slices_[p] = slices_for(most);
      if (lowest_[p] < coarsest || !is_exact) {
        exact_[p] = {};
        again_ |= 1U << p;
      }
    }
  }

  /// Adds the units of the marked packs of a block.
  void round(std::size_t k, const T* x) {
    const std::uint32_t marks = b_.marks[k] | again_;
    rounded_ |= marks;
    for (std::size_t p = 0; p < packs; ++p)
      if (marks >> p & 1) {
        if (slices_[p] == 1)
          add_units<1>(x, rows_of(k), p);
        else
          slices_[p] == 2 ? add_units<2>(x, rows_of(k), p) : add_units<3>(x, rows_of(k), p);
      }
    constexpr std::size_t most = 2048 / rows;  // blocks whose sums of slices fit in 64 bits
    if (marks != 0 && ++blocks_in_sums_ == most) carry();
  }
  template <int slices> [[gnu::noinline]] void add_units(const T* x, std::size_t n, std::size_t p) {
    using Words = Register<std::uint64_t, width>;
    const Words mask = Words{} + mask_;
    typename V::Storage scale;
    std::memcpy(&scale, scale_ + p * w, sizeof scale);
    Words sum[slices];
    for (int s = 0; s < slices; ++s) std::memcpy(&sum[s], units_[s] + p * w, sizeof sum[s]);
    x += p * w;
    for (std::size_t r = 0; r < n; ++r, x += pitch_)
      sum[0] += same_bits<Words>(
          without_upper_slices<slices>(masked(V::load(x), mask).v * scale,
                                       [&](int s, auto anchored) { sum[s] += same_bits<Words>(anchored); }) +
          whole_anchor);
    for (int s = 0; s < slices; ++s) {
      sum[s] -= n * to_bits(whole_anchor);
      std::memcpy(units_[s] + p * w, &sum[s], sizeof sum[s]);
    }
  }
  void carry() {
    blocks_in_sums_ = 0;
    for (int s = 0; s < 2; ++s)
      for (std::size_t c = 0; c < strip; ++c) {
        const std::int64_t over = units_[s][c] >> slice_bits;
        units_[s][c] -= over << slice_bits;
        units_[s + 1][c] += over;
      }
  }

  void write(GridColumnSum* out) {
    for (std::size_t p = 0; p < packs; ++p) {
      exact_[p].normalise();
      for (std::size_t l = 0; l < w && p * w + l < b_.count; ++l) {
        const std::size_t c = p * w + l;
        GridColumnSum& sum = out[c];
        for (int i = 0; i < 3; ++i) {
          sum.exact[i] = exact_[p].word[i].v[l];
          sum.units[i] = units_[i][c];
        }
        sum.largest = static_cast<std::uint64_t>(largest_[c]);
        sum.grid = grid_[c];
        sum.known = known_[c];
        sum.is_exact = !(rounded_ >> p & 1);
      }
    }
  }

  static constexpr int log2_rows = std::countr_zero(rows);

  const GridColumns& b_;
  bool copies_;  ///< blocks are copied, or written as terms
  std::size_t pitch_, blocks_;
  std::size_t next_floors_ = 1;  ///< blocks after which the floors are raised
  std::uint64_t mask_;
  std::make_signed_t<Bits> largest_[strip] = {};  ///< bits of the largest magnitudes
  /// A bound of the grids of a pack; and a power of two that divides the elements of its exact sums.
  int floor_[packs], lowest_[packs];
  ThreeWords<width> exact_[packs];
  std::size_t blocks_in_sums_ = 0;         ///< rounded since the last carry
  std::uint32_t again_ = 0, rounded_ = 0;  ///< packs all of whose blocks, or some, are rounded
  int grid_[strip], slices_[packs];
  bool known_[strip];
  double scale_[strip];
  std::int64_t units_[3][strip] = {};
  T copy_[rows * strip];  ///< the elements of a block
};

}  // namespace
}  // namespace samesum::cpu
