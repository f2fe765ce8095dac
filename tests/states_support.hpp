/// Data for the tests of states on a CPU and a GPU: awkward elements of every format, and particles that are
/// deposited on a mesh.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "samesum/samesum.hpp"
#include "samesum/states.hpp"

namespace samesum::testing_support {

/// Returns data sets of n elements of T, by name: many binades, cancellation, arbitrary bits, special
/// elements.
template <class T> std::vector<std::pair<std::string, std::vector<T>>> state_datasets(std::size_t n) {
  std::mt19937_64 random{n + 1};
  const auto wide = [&](int binades) {
    std::vector<T> x(n);
    for (T& e : x)
      e = convert<T>(static_cast<double>(static_cast<std::int64_t>(random()) >> 11) * 0x1p-52 *
                     power_of_two(static_cast<int>(random() % static_cast<unsigned>(binades)) - binades / 2));
    return x;
  };
  std::vector<T> cancelling = wide(4), bits(n), subnormal(n), special = wide(20);
  for (std::size_t i = 0; i + 1 < n; i += 2)
    cancelling[i + 1] = from_bits<T>(BitsOf<T>(to_bits(cancelling[i]) ^ Format<T>::sign_bit));
  for (T& e : bits) {
    BitsOf<T> pattern = static_cast<BitsOf<T>>(random());
    if ((pattern & Format<T>::infinity) == Format<T>::infinity) pattern ^= Format<T>::infinity;  // finite
    e = from_bits<T>(pattern);
  }
  for (T& e : subnormal) e = from_bits<T>(BitsOf<T>(random() & (Format<T>::sign_bit | 0xff)));
  if (n > 2) special[n / 2] = from_bits<T>(BitsOf<T>(Format<T>::infinity | Format<T>::sign_bit));
  return {{"1 binade", wide(1)},
          {"20 binades", wide(20)},
          {"60 binades", wide(60)},
          {"cancelling pairs", cancelling},
          {"arbitrary bits", bits},
          {"subnormal", subnormal},
          {"-infinity among numbers", special},
          {"-0", std::vector<T>(n, from_bits<T>(Format<T>::sign_bit))}};
}

// A kind of state with its window or grid, so that one kernel serves all. `finish` is for n elements.
template <class T> struct SumsOnAGrid {
  using Element = T;
  using State = FixedPointState;
  static constexpr const char* name = "on a grid";
  int grid;
  SAMESUM_HD void add(State& state, T x) const { state.add(x, grid); }
  SAMESUM_HD void atomic_add(State& state, T x) const { state.atomic_add(x, grid); }
  template <class F> SAMESUM_HD F finish(const State& state, std::uint64_t n) const {
    return state.finish<F>(grid, n);
  }
};
template <class T, int words> struct SumsInAWindow {
  using Element = T;
  using State = WindowState<words>;
  static constexpr const char* name = "in a window";
  ExponentWindow window;
  SAMESUM_HD void add(State& state, T x) const { state.add(x, window); }
  SAMESUM_HD void atomic_add(State& state, T x) const { state.atomic_add(x, window); }
  template <class F> SAMESUM_HD F finish(const State& state, std::uint64_t) const {
    return state.template finish<F>(window);
  }
};
template <class T> struct ExactSums {
  using Element = T;
  using State = ExactState<T>;
  static constexpr const char* name = "exact";
  SAMESUM_HD void add(State& state, T x) const { state.add(x); }
  SAMESUM_HD void atomic_add(State& state, T x) const { state.atomic_add(x); }
  template <class F> SAMESUM_HD F finish(const State& state, std::uint64_t) const {
    return state.template finish<F>();
  }
};

/// A periodic mesh of two dimensions.
struct Mesh {
  static constexpr std::uint32_t side = 16, cells = side * side;
  /// Charges are products of three floats below 1, each rounded to fp32: at least 2^-75 if none is 0, with a
  /// last bit of 2^-98.
  static constexpr ExponentWindow window{-100, 1};
};

/// Deposits a charge at a place on the four nearest cells, with the weights of a cloud in a cell (Birdsall
/// and Fuss 1969): add(cell, charge) adds to a cell.
template <class Add> SAMESUM_HD void deposit_cloud(float x, float y, float charge, Add add) {
  const auto column = static_cast<std::uint32_t>(x), row = static_cast<std::uint32_t>(y);
  const float right = x - static_cast<float>(column), above = y - static_cast<float>(row);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t to_right = i % 2, up = i / 2;
    const float weight = (to_right != 0 ? right : 1 - right) * (up != 0 ? above : 1 - above);
    add((row + up) % Mesh::side * Mesh::side + (column + to_right) % Mesh::side, charge * weight);
  }
}

/// Particles at pseudorandom places, half of them crowded in one cell.
struct Particles {
  std::vector<float> x, y, charge;

  Particles(std::size_t n, std::uint64_t seed) : x(n), y(n), charge(n) {
    std::mt19937_64 random{seed};
    const auto uniform = [&] { return static_cast<float>(random() >> 40) * 0x1p-24f; };
    for (std::size_t i = 0; i < n; ++i) {
      const float extent = i % 2 == 0 ? static_cast<float>(Mesh::side) : 1.0f;
      x[i] = std::min(uniform() * extent, 15.999999f);
      y[i] = std::min(uniform() * extent, 15.999999f);
      charge[i] = uniform() - 0.5f;
    }
  }
  std::size_t size() const { return x.size(); }
  template <class Add> void deposit(std::size_t p, Add add) const {
    deposit_cloud(x[p], y[p], charge[p], add);
  }
};

/// The charges of all cells by the library: an exact sum by key of what the particles deposit.
inline std::vector<float> charges_by_key(const Particles& particles) {
  std::vector<std::int32_t> cells;
  std::vector<float> charges, sums(Mesh::cells);
  for (std::size_t p = 0; p < particles.size(); ++p)
    particles.deposit(p, [&](std::uint32_t cell, float charge) {
      cells.push_back(static_cast<std::int32_t>(cell));
      charges.push_back(charge);
    });
  reduce(find("scatter_add/exact/fp32@cpu"), Values{charges}, Keys{cells}, Layout::vector(charges.size()),
         std::span{sums});
  return sums;
}

}  // namespace samesum::testing_support
