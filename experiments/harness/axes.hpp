/// Axes that multiply: what a table of speeds measures is declared as products of operations, formats, shapes
/// and data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/bench.hpp"

namespace samesum::harness {

/// The shape of an array whose middle axis is reduced.
struct Shape {
  std::size_t outer, n, inner = 1;
};

constexpr Shape a_vector(std::size_t n) { return {1, n}; }
constexpr Shape columns(std::size_t n, std::size_t inner) { return {1, n, inner}; }

/// "normal", and the awkward data.
std::vector<std::string> all_data();

/// Which runs measure a product: all, or those with --full.
enum class Mode { always, full };

/// A product of axes.
struct Axes {
  std::vector<std::string> operations, formats;
  std::vector<Shape> shapes;
  std::vector<std::string> data = {"normal"};  ///< "normal" first: times on other data are relative to it
  Mode mode = Mode::always;
  int threads = 1;  ///< 0 on a GPU
};

/// The cells of all products, in their order, without those of another mode and those whose format cannot
/// hold the data. A cell that several products have occurs once.
std::vector<Cell> cells_of(std::span<const Axes> products, bool full);

}  // namespace samesum::harness
