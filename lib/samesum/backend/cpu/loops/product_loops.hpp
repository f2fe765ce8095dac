/// Products of leaves and of neighbouring columns, whose exponents are added apart from the significands.
/// Each instruction set compiles its own copy.
#pragma once

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/vectors.hpp"

namespace samesum::cpu {
namespace {

template <class F> class ProductLoops {
  using Carrier = CarrierOf<F>;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width;
  using Vector = Pack<F, width>;

 public:
  /// See LeafProduct. Multiplies significands and adds the exponents of the elements: a product of
  /// significands is rounded as if it were normalised. Missing elements become 1, which changes nothing.
  template <class Shape>
  static bool leaf_product(const void* x, std::size_t n, void* numbers, std::int64_t& exponent) {
    constexpr std::size_t lanes = Shape::lanes;
    const F* a = static_cast<const F*>(x);
    const std::size_t rows = n / lanes, rest = n % lanes, packs_of_rest = (rest + w - 1) / w;
    std::size_t used = rows > 0 ? lanes : packs_of_rest * w;
    F last[lanes], product[lanes];
    for (std::size_t l = 0; l < packs_of_rest * w; ++l) last[l] = l < rest ? a[rows * lanes + l] : F{1};
    Significands all;
    for (std::size_t lane = 0; lane < used; lane += w) {
      Vector of_lanes = Vector::broadcast(1);
      const auto multiply = [&](const F* from) { of_lanes = of_lanes * all.take_element(from); };
      for (std::size_t r = 0; r < rows; ++r) multiply(a + r * lanes + lane);
      if (lane < rest) multiply(last + lane);
      store_lanes(all.take(of_lanes), product + lane, w);
    }
    exponent = -std::int64_t{Format<F>::max_exponent} *
               static_cast<std::int64_t>(rows * lanes + packs_of_rest * w + used);
    for (std::size_t l = 0; l < w; ++l) exponent += static_cast<std::int64_t>(all.fields[l]);
    for (std::size_t half = lanes / 2; half > 1; half /= 2) {  // products stay below 2^64
      for (std::size_t l = 0; l < half && l + half < used; ++l) product[l] *= product[l + half];
      used = used < half ? used : half;
    }
    std::memcpy(numbers, product, 2 * sizeof(F));
    return !any_lane(all.others);
  }

  /// See LeafProducts. Row r of the leaf belongs to lane r mod lanes.
  template <class Shape>
  static void leaf_products(const ColumnLeaf& leaf, void* scratch, ColumnProduct* out) {
    constexpr std::size_t lanes = Shape::lanes, ahead = 16;
    const std::size_t packs = (leaf.count - 1) / w + 1, used = leaf.n < lanes ? leaf.n : lanes;
    const F* const x = static_cast<const F*>(leaf.x);
    auto* const lane = static_cast<Vector*>(scratch);
    Significands of_pack[ColumnLeaf::most / w];
    const auto first_of = [&](std::size_t p) {  // the last pack may overlap the one before it
      return (p + 1) * w <= leaf.count ? p * w : leaf.count - w;
    };
    for (std::size_t r = 0; r < leaf.n; ++r) {
      Vector* const product = lane + r % lanes * packs;
      if (!leaf.is_contiguous())
        prefetch_row(x + r * leaf.pitch, leaf.count * sizeof(F), ahead * leaf.pitch * sizeof(F));
      for (std::size_t p = 0; p < packs; ++p) {
        const Vector element = of_pack[p].take_element(x + r * leaf.pitch + first_of(p));
        product[p] = r < lanes ? element : product[p] * element;
      }
    }
    for (std::size_t l = 0; l < used; ++l)
      for (std::size_t p = 0; p < packs; ++p) lane[l * packs + p] = of_pack[p].take(lane[l * packs + p]);
    for (std::size_t half = lanes / 2; half > 1; half /= 2)  // products stay below 2^64
      for (std::size_t l = 0; l < half && l + half < used; ++l)
        for (std::size_t p = 0; p < packs; ++p)
          lane[l * packs + p] = lane[l * packs + p] * lane[(l + half) * packs + p];
    for (std::size_t p = 0; p < packs; ++p)
      for (std::size_t c = 0; c < w; ++c)
        out[first_of(p) + c] = {
            {double{lane[p].v[c]}, used > 1 ? double{lane[packs + p].v[c]} : 1.0},
            static_cast<std::int64_t>(of_pack[p].fields[c]) -
                std::int64_t{Format<F>::max_exponent} * static_cast<std::int64_t>(leaf.n + used),
            of_pack[p].others[c] == 0};
  }

 private:
  /// Cuts numbers into a significand and an exponent.
  struct Significands {
    using Bits = BitsOf<F>;
    using Words = Register<Bits, width>;
    static constexpr int fraction_bits = Format<F>::precision - 1;
    static constexpr Bits exponent_bits = Format<F>::infinity, one = Bits(Format<F>::max_exponent)
                                                                     << fraction_bits;
    Words fields{};  ///< sums of the fields of the exponents
    Words others{};  ///< not 0 in lanes that met a number which is 0, subnormal, infinite or NaN

    /// The significands, in [1, 2), with the signs.
    [[gnu::always_inline]] Vector take(Vector v) { return take(same_bits<Words>(v.v)); }
    [[gnu::always_inline]] Vector take_element(const F* x) {
      Words bits;
      std::memcpy(&bits, x, sizeof bits);
      const Words field = bits & exponent_bits;
      others |= same_bits<Words>((field == Words{}) | (field == exponent_bits));
      return take(bits);
    }
    [[gnu::always_inline]] Vector take(Words bits) {
      fields += Words(bits & exponent_bits) >> fraction_bits;
      return Vector{same_bits<typename Vector::Storage>(Words((bits & ~exponent_bits) | one))};
    }
  };
};

}  // namespace
}  // namespace samesum::cpu
