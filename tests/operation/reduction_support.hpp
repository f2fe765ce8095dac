/// Support for the tests of reductions: batches of every shape, and the bits of their results.
#pragma once

#include <numeric>

#include "samesum/operation/reduction_bound.hpp"
#include "support.hpp"

namespace samesum::testing_support {

/// Bits of all results, number by number.
using Bits = std::vector<std::uint64_t>;

inline Bits reduce_all(const Method& m, Values x, Values y, const Layout& layout, Options options = {}) {
  const std::size_t numbers = layout.results() * static_cast<std::size_t>(m.results);
  const auto run = [&]<class Out>(Out poison) {
    std::vector<Out> out(numbers, poison);  // poisoned, to detect results that are not written
    if (m.inputs == 2)
      reduce(m, x, y, layout, std::span{out}, options);
    else
      reduce(m, x, layout, std::span{out}, options);
    Bits bits;
    bits.reserve(numbers);
    for (const Out& number : out)
      bits.push_back(std::bit_cast<std::uint64_t>(static_cast<std::int64_t>([&] {
        if constexpr (std::is_same_v<Out, std::int64_t>)
          return number;
        else
          return static_cast<std::int64_t>(to_bits(number));
      }())));
    return bits;
  };
  if (m.returns_index) return run(std::int64_t{-77});
  return with_format(*m.format, [&]<class F>() { return run(from_bits<F>(BitsOf<F>(0x5a5a))); });
}

/// Returns the bits of the results, at the places of the elements, and checks that nothing else is written.
/// `stride` is the row stride of the results.
inline Bits result_per_element(const Method& m, Values x, const Layout& layout, Options options = {},
                               std::size_t stride = 0) {
  return with_format(*m.format, [&]<class F>() {
    constexpr std::size_t margin = 8;
    const std::size_t width = layout.n * layout.inner, apart = stride == 0 ? layout.outer_stride : stride,
                      size = layout.results() == 0 || layout.n == 0 ? 0 : (layout.outer - 1) * apart + width;
    const F poison = from_bits<F>(BitsOf<F>(0x5a5a));
    std::vector<F> out(size + margin, poison);
    reduce(m, x, layout, Results{&format_info<F>(), out.data(), size, stride}, options);
    Bits bits;
    bits.reserve(size);
    for (std::size_t i = 0, column = 0; i < out.size(); ++i, column = column + 1 < apart ? column + 1 : 0) {
      if (i < size && column < width)
        bits.push_back(to_bits(out[i]));
      else
        EXPECT_EQ(to_bits(out[i]), to_bits(poison)) << m.name << ": a place without an element was written";
    }
    return bits;
  });
}

/// Returns the methods of a backend, without softmax, that promise at least `everywhere`.
inline std::vector<const Method*> reductions_of(std::string_view backend) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods())
    if (m.backend == backend && reduces_vectors(m) && m.promise >= Promise::everywhere) chosen.push_back(&m);
  return chosen;
}

/// Returns the bounds of the two results of moments.
inline MomentsBound moments_bound(const Method& moments, const FormatInfo& input, std::size_t n, Number mean,
                                  Number variance, double ddof = 0, double largest = unbounded_error) {
  const auto of = [&](std::size_t k) {
    return moments.bound(input, n, {mean, variance}, largest, {.result_index = k, .ddof = ddof});
  };
  return {of(0), of(1)};
}

/// Returns data that fast paths must detect and leave to the general code, in full leaves, in short rows and
/// after them.
inline std::vector<Dataset> awkward_data(std::size_t n) {
  const std::vector<double> u = uniform(n, 31);
  const auto of = [n](auto element) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = element(i);
    return x;
  };
  const auto with = [&](std::size_t at, double value) {
    return of([&](std::size_t i) { return i == at ? value : u[i]; });
  };
  constexpr int exponents[] = {50, 0, -60};
  return {{"a NaN late in a leaf", with(4000, NAN)},
          {"a NaN first", with(0, NAN)},
          {"a NaN last", with(n - 1, NAN)},
          {"infinity", with(4000, INFINITY)},
          {"-infinity", with(100, -INFINITY)},
          {"-infinities", of([](std::size_t) { return -INFINITY; })},
          {"both infinities", of([&](std::size_t i) {
             return i == 9 ? INFINITY : i == 4001 ? -INFINITY : u[i];
           })},
          {"zeros of both signs", of([](std::size_t i) { return i % 3 == 1 ? 0.0 : -0.0; })},
          {"zeros and equal numbers", of([](std::size_t i) { return i % 7 == 3 ? 1.0 : 0.0; })},
          {"a sum beyond fp16", of([&](std::size_t i) { return 20'000 * (1.5 + u[i]); })},
          {"sums beyond fp16 of either sign", of([&](std::size_t i) { return 60'000 * u[i / 40]; })},
          {"one big", with(2000, 0x1p60)},
          {"one small", with(2000, 0x1p-60)},
          {"small ones and zeros", of([&](std::size_t i) { return i % 5 == 0 ? 0.0 : u[i] * 0x1p-55; })},
          {"big, middling and small",
           of([&](std::size_t i) { return std::ldexp(1 + u[i] / 2, exponents[i % 3]); })}};
}

/// Returns the fp16 means of a backend.
inline std::vector<const Method*> half_means(std::string_view backend) {
  std::vector<const Method*> means;
  for (const Method& m : methods("mean"))
    if (m.backend == backend && m.format == &format_info<fp16>()) means.push_back(&m);
  return means;
}

/// A batch and the number of elements that it reads.
struct BatchCase {
  std::string name;
  Layout layout;
  std::size_t elements;
  std::vector<std::uint64_t> offsets;  ///< of segments
};

/// Returns vectors of edge lengths, rows for every schedule, axes and segments, including 0 rows and 0
/// columns.
inline std::vector<BatchCase> batches() {
  std::vector<BatchCase> all;
  const auto add = [&all](std::string name, Layout layout, std::size_t elements) {
    all.push_back({std::move(name), layout, elements, {}});
  };
  for (const std::size_t n : {0,   1,   2,   3,    7,    8,    31,   32,   33,    64,     65,    127,
                              128, 129, 511, 1000, 4095, 4096, 4097, 8193, 12293, 40'000, 70'001})
    add("a vector of " + std::to_string(n), Layout::vector(n), n);
  for (const auto& [rows, columns, stride] : {std::array<std::size_t, 3>{0, 5, 5},
                                              {5, 0, 0},
                                              {1, 1, 1},
                                              {3, 1, 1},
                                              {7, 5, 5},
                                              {33, 32, 32},
                                              {5, 256, 256},
                                              {1, 512, 512},
                                              {7, 512, 512},
                                              {6, 512, 516},
                                              {5, 700, 700},
                                              {5, 33, 40},
                                              {9, 64, 64},
                                              {4, 100, 101},
                                              {19, 128, 128},
                                              {3, 129, 129},
                                              {5, 1024, 1024},
                                              {3, 1025, 1027},
                                              {3, 4097, 4097},
                                              {2, 33'000, 33'001}})
    add(std::to_string(rows) + " rows of " + std::to_string(columns) + ", " + std::to_string(stride) +
            " apart",
        Layout::rows(rows, columns, stride), rows == 0 ? 0 : (rows - 1) * stride + columns);
  for (const auto& [outer, n, inner] : {std::array<std::size_t, 3>{1, 0, 4},
                                        {1, 5, 0},
                                        {1, 1, 3},
                                        {1, 7, 5},
                                        {2, 130, 17},
                                        {3, 5, 40},
                                        {1, 4100, 3},
                                        {2, 9000, 2}})
    add("axis of " + std::to_string(outer) + " x " + std::to_string(n) + " x " + std::to_string(inner),
        Layout::axis(outer, n, inner), outer * n * inner);
  for (const auto& [outer, n, inner] :
       {std::array<std::size_t, 3>{3, 1000, 1}, {1, 4100, 3}, {2, 130, 17}, {1, 9, 40}})
    add(std::to_string(outer) + " x " + std::to_string(inner) + " elements, each of them " +
            std::to_string(n) + " times",
        Layout{outer, n, inner, inner, 0}, outer * inner);
  for (const std::vector<std::uint64_t>& lengths : {std::vector<std::uint64_t>{},
                                                    {0},
                                                    {1},
                                                    {3, 0, 0, 130, 1, 4096, 0},
                                                    {4097, 5, 9000, 128, 0},
                                                    std::vector<std::uint64_t>(300, 7)}) {
    std::vector<std::uint64_t> offsets{2};  // segments need not begin at 0
    for (const std::uint64_t n : lengths) offsets.push_back(offsets.back() + n);
    all.push_back({std::to_string(lengths.size()) + " segments", {}, offsets.back(), offsets});
  }
  for (BatchCase& b : all)
    if (!b.offsets.empty()) b.layout = Layout::segments(b.offsets.data(), b.offsets.size() - 1);
  return all;
}

/// A batch with its elements in one format.
struct BatchData {
  BatchCase batch;
  Array x, y;
};

/// Returns all batches. Their elements are rounded once for all methods.
inline const std::vector<BatchData>& batch_data(const FormatInfo& format) {
  static std::vector<BatchData> of_formats[formats.size()];
  std::vector<BatchData>& made = of_formats[format.index];
  if (made.empty())
    for (BatchCase& b : batches()) {
      const std::size_t n = b.elements;
      made.push_back({std::move(b), {format, wide(n, 12, 1)}, {format, wide(n, 12, 2)}});
    }
  return made;
}

}  // namespace samesum::testing_support
