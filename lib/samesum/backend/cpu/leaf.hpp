/// One leaf of a tree on a CPU: the same merges as its literal reading, a pack of neighbouring lanes at a
/// time.
#pragma once

#include <array>
#include <type_traits>

#include "samesum/accumulator/concept.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::cpu {

/// Bytes of the vectors that this object file is compiled for.
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <class Shape, template <class> class A, class F, class T> class Leaf {
  static constexpr std::size_t lanes = Shape::lanes;
  static constexpr int width = lanes == 1 ? 1 : vector_bytes / int{sizeof(CarrierOf<F>)};
  static constexpr std::size_t w = width;
  static constexpr std::size_t packs = lanes / w;
  using One = A<Scalar<F>>;
  using Many = A<Pack<F, width>>;
  static_assert(Accumulator<Many, Pack<F, width>>);
  // A pack of states is a state of packs: number f of lane l lies at f * width + l.
  using OneNumbers = std::array<CarrierOf<F>, sizeof(One) / sizeof(CarrierOf<F>)>;
  using ManyNumbers = std::array<CarrierOf<F>, sizeof(Many) / sizeof(CarrierOf<F>)>;
  static_assert(sizeof(ManyNumbers) == w * sizeof(OneNumbers));

 public:
  /// The state of a leaf of n >= 1 elements, n at most Shape::leaf.
  static One sum(const T* x, std::size_t n) { return n < lanes ? sum_single_row(x, n) : sum_rows(x, n); }

 private:
  static One sum_single_row(const T* x, std::size_t n) {
    std::array<One, lanes> lane;
    for (std::size_t l = 0; l < n; ++l) {
      lane[l] = One{};
      lane[l].add(Scalar<F>::of(x[l]));
    }
    return halve(lane, n);
  }

  static One sum_rows(const T* x, std::size_t n) {
    const std::size_t full_rows = n / lanes, longer_lanes = n % lanes;
    std::array<Many, packs> pack;
    std::size_t p = 0;
    if constexpr (Shape::rows != unbounded)
      if (n == Shape::leaf) p = sum_full(x, pack.data());
    for (; (p + 1) * w <= longer_lanes; ++p) pack[p] = column<Many>(x + p * w, full_rows + 1);
    if (p * w < longer_lanes) {
      pack[p] = uneven_column(x + p * w, full_rows, longer_lanes - p * w);
      ++p;
    }
    for (; p < packs; ++p) pack[p] = column<Many>(x + p * w, full_rows);
    for (std::size_t half = packs / 2; half > 0; half /= 2)
      for (p = 0; p < half; ++p) pack[p].merge(pack[p + half]);
    std::array<One, w> lane;
    for (std::size_t l = 0; l < w; ++l) lane[l] = extract(pack[0], l);
    return halve(lane, w);
  }

  /// The common case, where the compiler knows all counts.
  static std::size_t sum_full(const T* x, Many* pack) {
    if constexpr (Shape::in_turn) {
      constexpr std::size_t at_once = packs % 4 == 0 ? 4 : 1;  // columns side by side hide latency
      for (std::size_t p = 0; p < packs; p += at_once) {
        prefetch<Shape::rows * at_once * w>(x, Shape::leaf + p * Shape::rows * w);  // the next leaf
        std::array<Many, at_once> sum;
        sum.fill(Many{});
        for (std::size_t r = 0; r < Shape::rows; ++r)
          for (std::size_t c = 0; c < at_once; ++c)
            sum[c].add(Pack<F, width>::load(x + r * lanes + (p + c) * w));
        std::copy(sum.begin(), sum.end(), pack + p);
      }
    } else {
      rows_by_pairs<Shape::rows>(x, pack);
    }
    return packs;
  }

  /// Lines of rows far apart in turn look like no stream to the hardware: so they are asked for, `ahead`
  /// elements from x on. They may lie beyond the array: an address will do, and asking for nothing is
  /// harmless.
  template <std::size_t elements> static void prefetch(const T* x, std::size_t ahead) {
    const auto first = reinterpret_cast<std::uintptr_t>(x) + ahead * sizeof(T);
    for (std::size_t i = 0; i + 64 <= elements * sizeof(T); i += 64)
      __builtin_prefetch(reinterpret_cast<const void*>(first + i));
  }

  /// A power of two of rows: both halves, then the merge of the two. A few rows are read side by side.
  template <std::size_t rows> static void rows_by_pairs(const T* x, Many* pack) {
    if constexpr (rows <= 8) {
      for (std::size_t p = 0; p < packs; ++p) {
        prefetch<rows * w>(x, (2 * packs + p) * rows * w);  // the rows after the next
        pack[p] = column_by_pairs<rows>(x + p * w);
      }
    } else {
      std::array<Many, packs> other;
      rows_by_pairs<rows / 2>(x, pack);
      rows_by_pairs<rows / 2>(x + rows / 2 * lanes, other.data());
      for (std::size_t p = 0; p < packs; ++p) pack[p].merge(other[p]);
    }
  }
  template <std::size_t rows> [[gnu::always_inline]] static Many column_by_pairs(const T* x) {
    if constexpr (rows == 1) {
      return Many{Pack<F, width>::load(x)};
    } else {
      Many sum = column_by_pairs<rows / 2>(x);
      if constexpr (rows == 2 && Many::adds_as_it_merges)
        sum.add(Pack<F, width>::load(x + lanes));
      else
        sum.merge(column_by_pairs<rows / 2>(x + rows / 2 * lanes));
      return sum;
    }
  }

  /// So many rows of neighbouring lanes: Many for a pack of them, One for a single lane.
  template <class State> static State column(const T* x, std::size_t rows) {
    if constexpr (Shape::in_turn) {
      State sum;
      for (std::size_t r = 0; r < rows; ++r) sum.add(decltype(sum.result())::load(x + r * lanes));
      return sum;
    } else {
      return by_pairs<State>(x, rows);
    }
  }

  template <class State> static State by_pairs(const T* x, std::size_t rows) {
    std::array<State, Shape::rows> row;
    for (std::size_t r = 0; r < rows; ++r) {
      row[r] = State{};
      row[r].add(decltype(row[r].result())::load(x + r * lanes));
    }
    for (std::size_t stride = 1; stride < rows; stride *= 2)
      for (std::size_t r = 0; r + stride < rows; r += 2 * stride) row[r].merge(row[r + stride]);
    return row[0];
  }

  /// A pack whose first `longer` lanes have one row more than the others.
  static Many uneven_column(const T* x, std::size_t full_rows, std::size_t longer) {
    ManyNumbers numbers;
    for (std::size_t l = 0; l < w; ++l) {
      const auto one = same_bits<OneNumbers>(column<One>(x + l, full_rows + (l < longer)));
      for (std::size_t f = 0; f < one.size(); ++f) numbers[f * w + l] = one[f];
    }
    return same_bits<Many>(numbers);
  }

  static One extract(const Many& pack, std::size_t l) {
    const auto numbers = same_bits<ManyNumbers>(pack);
    OneNumbers one;
    for (std::size_t f = 0; f < one.size(); ++f) one[f] = numbers[f * w + l];
    return same_bits<One>(one);
  }

  /// Lane l takes lane l + half until one is left; only the first n have an element.
  template <std::size_t size> static One halve(std::array<One, size>& lane, std::size_t n) {
    for (std::size_t half = size / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l + half < n; ++l) lane[l].merge(lane[l + half]);
      n = std::min(n, half);
    }
    return lane[0];
  }
};

}  // namespace samesum::cpu
