/// The dot products that kernels generate, on the host: tiles of rows and columns, and hashes of results.
#pragma once

#include <span>
#include <vector>

#include "harness/digest.hpp"
#include "tensor_cores/data.hpp"
#include "tensor_cores/models.hpp"

namespace samesum::tensor_cores {

/// Dot products of which a hash is published.
constexpr std::size_t per_hash = 1024;
/// Dot products of a tile, whose class is that of its number modulo `classes`.
template <class I> constexpr std::size_t per_tile = std::size_t(I::rows) * columns;

/// The dot products of a tile, without results.
template <class I> std::vector<DotProduct> dots_of_tile(std::uint64_t seed, std::uint64_t index) {
  const auto kind = Class(index % classes);
  const std::uint64_t tile = hash(seed, index);
  std::vector<DotProduct> dots(per_tile<I>);
  for (int row = 0; row < I::rows; ++row)
    for (int column = 0; column < columns; ++column) {
      DotProduct& d = dots[std::size_t(row * columns + column)];
      d.kind = int(kind);
      for (int w = 0; w < words; ++w) {
        d.a[w] =
            column > 0 ? dots[std::size_t(row * columns)].a[w] : generated_word<I>(kind, tile, 0, row, w);
        d.b[w] = row > 0 ? dots[std::size_t(column)].b[w] : generated_word<I>(kind, tile, 1, column, w);
      }
      d.c = generated_addend<I>(kind, tile, row * columns + column, d.a, d.b);
    }
  return dots;
}

/// The first dot products, whole tiles, with the results of a model.
template <class I>
std::vector<DotProduct> modelled_dots(std::uint64_t seed, std::uint64_t tiles, const FusedSum& model) {
  std::vector<DotProduct> all;
  for (std::uint64_t t = 0; t < tiles; ++t)
    for (DotProduct& d : dots_of_tile<I>(seed, t)) {
      d.hardware = predicted<I>(d.a, d.b, d.c, model);
      all.push_back(d);
    }
  return all;
}

/// Digests of each `per_hash` results. All NaN of fp64 count as one: which operand's
/// payload they carry is not modelled.
template <class I> std::vector<std::uint64_t> hashes_of(std::span<const DotProduct> dots) {
  std::vector<std::uint64_t> hashes;
  for (std::size_t first = 0; first + per_hash <= dots.size(); first += per_hash) {
    std::vector<std::uint64_t> results;
    for (const DotProduct& d : dots.subspan(first, per_hash)) {
      const bool any_nan = std::is_same_v<typename I::Result, double> && is_nan<I>(d.hardware);
      results.push_back(any_nan ? Format<double>::canonical_nan : d.hardware);
    }
    hashes.push_back(harness::digest(std::as_bytes(std::span{results})));
  }
  return hashes;
}

}  // namespace samesum::tensor_cores
