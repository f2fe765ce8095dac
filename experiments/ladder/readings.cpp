#include "ladder/readings.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "harness/repeat.hpp"
#include "harness/truth.hpp"
#include "ladder/kernel.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::ladder {

using harness::Truth;

float read_in_turn(std::span<const float> x, const Truth&) {
  float sum = -0.0f;
  for (const float v : x) sum += v;
  return sum;
}

float read_by_doubling(std::span<const float> x, const Truth&) {
  std::vector<float> y(x.begin(), x.end());
  for (std::size_t stride = 1; stride < y.size(); stride *= 2)
    for (std::size_t i = 0; i + stride < y.size(); i += 2 * stride) y[i] += y[i + stride];
  return y[0];
}

float read_by_halves(std::span<const float> x, const Truth&) {
  std::vector<float> y(x.begin(), x.end());
  for (std::size_t stride = most_of_block / 2; stride > 0; stride /= 2)
    for (std::size_t i = 0; i < stride && i + stride < y.size(); ++i) y[i] += y[i + stride];
  return y[0];
}

/// Beyond 2^20 elements, uses the CPU backend, which the library's tests compare with the reference.
float read_by_tree(std::span<const float> x, const Truth&) {
  const char* name = x.size() <= (std::size_t{1} << 20) ? "tree/plain/fp32@reference" : "tree/plain/fp32@cpu";
  return find(name)(Values{x}, {.threads = 1}).as<fp32>();
}

float read_exactly(std::span<const float>, const Truth& truth) {
  return truth.rounded(format_info<fp32>()).as<fp32>();
}

double in_turn(std::size_t n) { return static_cast<double>(n - 1); }
double levels(std::size_t n) { return static_cast<double>(std::bit_width(n - 1)); }
double levels_of_halves(std::size_t) { return levels(most_of_block); }
double height_of_tree(std::size_t n) {
  return static_cast<double>(find("tree/plain/fp32").height(n).total());
}

// --- expected contents of arrays --------------------------------------------------------------------

void expect_strided(const Task& t, int stride) {
  const std::size_t s = static_cast<std::size_t>(stride), rows = t.n / s;
  for (std::size_t c = 0; c < s; ++c)
    for (std::size_t r = 0; r < rows; ++r) t.out[c * rows + r] = t.x[r * s + c];
}

namespace {

void expect_steps_of(const float* x, const Task& t, int steps) {
  for (std::size_t i = 0; i < t.n; ++i) {
    float v = x[i];
    const Step step = v < 0.5f ? step_below : step_above;
    for (int k = 0; k < steps; ++k) v = v * step.a + step.b;
    t.out[i] = v;
  }
}

}  // namespace

void expect_steps(const Task& t, int steps) { expect_steps_of(t.x, t, steps); }
void expect_steps_of_partitioned(const Task& t, int steps) { expect_steps_of(t.y, t, steps); }

void expect_sum_of_two(const Task& t, int) {
  for (std::size_t i = 0; i < t.n; ++i) t.out[i] = t.x[i] + t.y[i];
}

void expect_window(const Task& t, int) {
  constexpr std::size_t r = window_radius;
  for (std::size_t i = 0; i < t.n; ++i) {
    float sum = -0.0f;
    for (std::size_t k = i < r ? 0 : i - r; k < std::min(i + r + 1, t.n); ++k) sum += t.x[k];
    t.out[i] = sum;
  }
}

void expect_softmax(const Task& t, int columns) {
  const auto width = static_cast<std::size_t>(columns);
  cpu::for_each_task(harness::several_threads(), t.n / width, [&](std::size_t row) {
    const float* x = t.x + row * width;
    float* out = t.out + row * width;
    double most = x[0], sum = 0;
    for (std::size_t i = 1; i < width; ++i) most = std::max<double>(most, x[i]);
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(x[i] - most);
    for (std::size_t i = 0; i < width; ++i) out[i] = static_cast<float>(std::exp(x[i] - most) / sum);
  });
}

void expect_count(const Task& t, int steps) {
  for (std::size_t i = 0; i < t.n; ++i)
    t.out[i] = static_cast<float>(chains * (chains - 1) / 2 + chains * steps);
}

}  // namespace samesum::ladder
