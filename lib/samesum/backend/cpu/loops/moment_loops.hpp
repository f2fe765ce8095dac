/// The mean and variance of a leaf: lanes add their elements in turn and are then halved. Short rows are
/// reduced side by side. Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/vectors.hpp"

namespace samesum::cpu {
namespace {

template <class F> class MomentLoops {
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width;
  using Vector = Pack<F, width>;

 public:
  /// See RowMoments.
  template <class Shape, class T>
  static void row_moments(const void* x, std::size_t pitch, std::size_t n, std::size_t count, void* of_mean,
                          void* of_variance) {
    const T* const a = static_cast<const T*>(x);
    auto *const mean = static_cast<Carrier*>(of_mean), *const variance = static_cast<Carrier*>(of_variance);
    std::size_t o = 0;
    // Elements of 16 bits take longer to gather.
    if (n <= (sizeof(T) == 2 ? 40 : most_side_by_side) && count >= w) {
      const LaneMerges merges{n};
      for (; o + w <= count; o += w)
        rows_side_by_side(a + o * pitch, pitch, n, merges, mean + o, variance + o);
    }
    for (; o < count; ++o) leaf_moments<Shape, T>(a + o * pitch, n, mean + o, variance + o);
  }
  /// See LeafMoments.
  template <class Shape, class T>
  static void leaf_moments(const void* x, std::size_t n, void* of_mean, void* of_variance) {
    const T* const a = static_cast<const T*>(x);
    constexpr std::size_t lanes = Shape::lanes, packs = lanes / w;
    const std::size_t rows = n / lanes, rest = n % lanes;
    Vector mean[packs], variance[packs];
    for (std::size_t p = 0; p < (rows > 0 ? packs : (rest + w - 1) / w); ++p)
      mean[p] = variance[p] = Vector::zero();
    const auto share_of = [](std::size_t row) {
      return Vector::broadcast(reciprocal<F>(static_cast<std::uint32_t>(row + 1)));
    };
    for (std::size_t r = 0; r < rows; ++r) {
      const Vector share = share_of(r);
      for (std::size_t p = 0; p < packs; ++p)
        add_to_moments(mean[p], variance[p], Vector::load(a + r * lanes + p * w), share);
    }
    const T* const last = a + rows * lanes;
    const Vector share = share_of(rows);
    std::size_t p = 0;
    for (; (p + 1) * w <= rest; ++p) add_to_moments(mean[p], variance[p], Vector::load(last + p * w), share);
    if (p * w < rest) {
      T padded[w] = {};
      std::memcpy(static_cast<void*>(padded), last + p * w, (rest - p * w) * sizeof(T));
      const Vector before[2] = {mean[p], variance[p]};
      add_to_moments(mean[p], variance[p], Vector::load(padded), share);
      const auto has_element = lane_numbers() < static_cast<Carrier>(rest - p * w);
      mean[p] = select(has_element, mean[p], before[0]);
      variance[p] = select(has_element, variance[p], before[1]);
    }
    halve_moments<lanes / 2>(mean, variance, rows, rest);
    std::memcpy(of_mean, mean, sizeof(Carrier));
    std::memcpy(of_variance, variance, sizeof(Carrier));
  }

 private:
  /// Elements of rows that are faster side by side, a row in each lane of a pack, than one after another.
  static constexpr std::size_t most_side_by_side = 64;

  /// The merges of n lanes of one element each, in their order.
  struct LaneMerges {
    struct One {
      std::size_t into, from;
      typename Moments<F>::Shares shares;
    };
    One merge[most_side_by_side];
    std::size_t count = 0;

    explicit LaneMerges(std::size_t n) {
      std::uint64_t elements[most_side_by_side];
      for (std::size_t l = 0; l < n; ++l) elements[l] = 1;
      for (std::size_t half = most_side_by_side / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half && l + half < n; ++l) {
          merge[count++] = {l, l + half, Moments<F>::shares(elements[l], elements[l + half])};
          elements[l] += elements[l + half];
        }
    }
  };
  template <class T>
  static void rows_side_by_side(const T* x, std::size_t pitch, std::size_t n, const LaneMerges& merges,
                                Carrier* of_mean, Carrier* of_variance) {
    Vector mean[most_side_by_side], variance[most_side_by_side];
    const Vector share = Vector::broadcast(Carrier(1));
    for (std::size_t i = 0; i < n; ++i) {
      T column[w];
      for (std::size_t l = 0; l < w; ++l) column[l] = x[l * pitch + i];
      mean[i] = variance[i] = Vector::zero();
      add_to_moments(mean[i], variance[i], Vector::load(column), share);
    }
    for (std::size_t k = 0; k < merges.count; ++k) {
      const auto& one = merges.merge[k];
      merge_moments(mean[one.into], variance[one.into], mean[one.from], variance[one.from],
                    Vector::broadcast(one.shares.mine.v), Vector::broadcast(one.shares.others.v));
    }
    std::memcpy(of_mean, mean, sizeof mean[0]);
    std::memcpy(of_variance, variance, sizeof variance[0]);
  }

  static Register<Carrier, width> lane_numbers() {
    Register<Carrier, width> numbers;
    for (int l = 0; l < width; ++l) numbers[l] = static_cast<Carrier>(l);
    return numbers;
  }
  /// Merges lane l + half into lane l, for halves down to 1: Moments::merge. The first `longer` of the 2·half
  /// lanes, fewer than all, have count + 1 elements, the others `count`.
  template <std::size_t half>
  [[gnu::always_inline]] static void halve_moments(Vector* mean, Vector* variance, std::size_t count,
                                                   std::size_t longer) {
    // A longer lane l has a partner that is longer too if l < both.
    const std::size_t both = longer > half ? longer - half : 0,
                      end = count > 0 ? half : both;  // beyond, partners have no elements
    const auto number = [](std::size_t k) { return static_cast<Carrier>(k); };
    const auto share = [&](std::size_t of) {
      return Vector::broadcast(round_lanes<F, Carrier, 1>(number(of) / number(2 * count + 1)));
    };
    // The lanes from `first` to `last` - 1 have one element more than their partners.
    const std::size_t first = both, last = longer < half ? longer : half;
    const bool any_differ = count > 0 && first < last;  // otherwise no division is needed
    const Vector equal = Vector::broadcast(Carrier(0.5)), larger = any_differ ? share(count + 1) : equal,
                 smaller = any_differ ? share(count) : equal;
    for (std::size_t p = 0; p * w < end; ++p) {
      const std::size_t l = p * w;
      Vector mine = equal, others = equal;
      if (any_differ && first < l + w && last > l) {
        const auto lane = lane_numbers();
        const auto differs = (lane >= number(first) - number(l)) & (lane < number(last) - number(l));
        mine = select(differs, larger, equal);
        others = select(differs, smaller, equal);
      }
      Vector next_mean = mean[p], next_variance = variance[p];
      merge_moments(next_mean, next_variance, partner<half>(mean, p), partner<half>(variance, p), mine,
                    others);
      if (end < l + w && end < half) {
        const auto merges = lane_numbers() < number(end - l);
        next_mean = select(merges, next_mean, mean[p]);
        next_variance = select(merges, next_variance, variance[p]);
      }
      mean[p] = next_mean;
      variance[p] = next_variance;
    }
    if constexpr (half > 1) {
      const std::size_t sum = 2 * count + (both > 0 || longer == half ? 1 : 0);
      halve_moments<half / 2>(mean, variance, sum, longer == half ? 0 : both > 0 ? both : longer);
    }
  }
  static void merge_moments(Vector& mean, Vector& variance, Vector other_mean, Vector other_variance,
                            Vector mine, Vector others) {
    const Vector apart = other_mean - mean;
    variance = (variance * mine + other_variance * others) + (apart * mine) * (apart * others);
    mean = mean + apart * others;
  }
  /// The lanes from `half` lanes behind those of pack p on.
  template <std::size_t half> [[gnu::always_inline]] static Vector partner(const Vector* of, std::size_t p) {
    if constexpr (half >= w)
      return of[p + half / w];
    else
      return Vector{shifted_lanes<int{half}>(of[0].v)};
  }
};

}  // namespace
}  // namespace samesum::cpu
