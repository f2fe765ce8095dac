/// Prints the bits of sums of a few arrays. The output must be the same for every compiler, optimisation
/// level, vector width and processor.
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "samesum/accumulator/exact.hpp"
#include "samesum/backend/cpu/exact/block.hpp"
#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/backend/cpu/sums/canonical.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/catalogue/support.hpp"
#include "samesum/format/elementary.hpp"
#include "samesum/operation/moments.hpp"
#include "samesum/order/reference.hpp"

// The library's sources that the headers need are compiled in this translation unit, so that each program of
// tests/bits parses the headers only once.
#include "samesum/accumulator/exact.cpp"
#include "samesum/base/environment.cpp"

/// Prefetches change no bits. The library's definition stands beside the list of all loops, which are not
/// linked.
bool samesum::cpu::wants_prefetch() { return false; }

using namespace samesum;

/// Returns n numbers of either sign over the given number of binades. They are computed from the integers of
/// a SplitMix64 generator, since <random> takes long to parse.
template <class T> static std::vector<T> data(std::size_t n, unsigned binades = 24) {
  std::uint64_t state = n;
  const auto random = [&state] {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  };
  std::vector<T> x(n);
  for (T& e : x) {
    const std::uint64_t bits = random();
    const double magnitude =
        static_cast<double>(bits >> 32) * 0x1p-32 * power_of_two(static_cast<int>(bits % binades) - 16);
    e = convert<T>(bits & 32 ? -magnitude : magnitude);
  }
  return x;
}

template <class State> static unsigned long long bits(const State& x) {
  return static_cast<unsigned long long>(to_bits(x));
}

template <class Order, template <class> class A, class F, class T> void print(const std::vector<T>& x) {
  using Shape = typename Order::Shape;
  using State = A<Scalar<F>>;
  const auto at = [&](std::size_t i) { return Scalar<F>::of(x[i]); };
  const State sum = [&] {
    if constexpr (requires { Shape::rows; }) {
      std::vector<State> leaves(Shape::leaves(x.size()));
      cpu::Leaves<Shape, A, F>::template sum<T>(x.data(), x.size(), leaves.data());
      return merge_by_stride_doubling(std::span{leaves});
    } else if constexpr (std::is_same_v<Order, Prefix>) {
      const ElementSum<A, F> reducer;
      PrefixWalker<ElementSum<A, F>> walker{reducer};
      for (std::size_t i = 0; i < x.size(); ++i) walker.push(at(i));
      return walker.state();
    } else {
      return *cpu::sum_canonical<Shape::lanes, State>(x.size(), at);
    }
  }();
  std::printf("%s/%s/%s of %s %zu %llx", Order::name.data(), State::name.data(), Format<F>::name.data(),
              Format<T>::name.data(), x.size(), bits(to_format<F>(sum.result())));
  // Half of the accumulators of each order: the reference takes a quarter of the time to compile.
  if constexpr ((Orders::index_of<Order>() + Accumulators::index_of<A>()) % 2 == 0)
    std::printf(" %llx", bits(to_format<F>(reference_state<State>(Shape{}, x.size(), at)->result())));
  std::printf("\n");
}

template <class T> void print_exact(const std::vector<T>& x) {
  Exact literal, sum;
  literal.add(std::span<const T>{x});
  cpu::Expansions words;
  const std::size_t whole = x.size() / cpu::exact_step * cpu::exact_step;
  const std::size_t taken = cpu::ExactBlocks<T, cpu::AllElements<T>>::add(words, x.data(), whole);
  for (const auto& word : words.word) sum.add(std::span<const double>{word});
  sum.add(std::span<const T>{x}.subspan(taken));
  std::printf("exact of %s %zu %llx %llx\n", std::string{Format<T>::name}.c_str(), x.size(),
              bits(literal.result<double>()), bits(sum.result<double>()));
}

/// Prints results of moments, exp and log, whose multiplications and additions a compiler might fuse.
static void print_products() {
  constexpr int width = 4;
  using Vector = Pack<fp32, width>;
  std::vector<float> x = data<float>(1024);
  Moments<fp32> all;
  for (std::size_t first = 0; first < x.size(); first += 128) {
    Moments<fp32> part;
    for (std::size_t i = 0; i < 128; ++i) part.add(Scalar<fp32>::of(x[first + i]), i);
    first == 0 ? void(all = part) : all.merge(part);
  }
  for (float& e : x) e = e < 0 ? -e : e;
  unsigned long long digest = 0;
  const auto add = [&digest](const Vector& result) {
    float number[width];
    std::memcpy(number, &result, sizeof number);
    for (const float y : number) digest = digest * 0x9e3779b97f4a7c15u + bits(y);
  };
  for (std::size_t i = 0; i < x.size(); i += width) {
    add(exp_of_nonpositive(Vector::zero() - Vector::load(x.data() + i)));
    add(log(Vector::load(x.data() + i)));
  }
  std::printf("moments %llx %llx, exp and log %llx\n", bits(all.mean.v), bits(all.variance.v), digest);
}

/// Prints the caller's sticky flags after arithmetic under the guard, which must leave none on any processor.
static void print_flags() {
  std::feclearexcept(FE_ALL_EXCEPT);
  in_standard_environment([] {
    volatile double x = 1, y = 3;
    x = x / y;
  });
  std::printf("flags %d\n", std::fetestexcept(FE_ALL_EXCEPT));
}

/// Whether this program prints the sums of an order and an accumulator. The two canonical orders share their
/// code, so each of them prints half of the accumulators.
template <class Order, template <class> class A>
constexpr bool is_printed = Order::promise >= Promise::everywhere &&
                            (!std::is_base_of_v<Canonical<16>, Order> ||
                             Accumulators::index_of<A>() % 2 == 0) &&
                            (!std::is_base_of_v<Canonical<128>, Order> ||
                             Accumulators::index_of<A>() % 2 == 1);

/// Format for an order and an accumulator. Each accumulator, and each order except the canonical ones, occurs
/// with every format. The digests cover all combinations, but only for the main build's compiler.
template <class Order, template <class> class A>
using FormatFor = Formats::at<(Orders::index_of<Order>() + Accumulators::index_of<A>()) % Formats::size>;

int main() {
  print_flags();
  print_products();
  // The longest array has five leaves of 4096, four of which are summed side by side, and a partial leaf.
  for (const std::size_t n : {1, 7, 130, 2049, 20'499}) {
    Orders::for_each([n]<class Order>() {
      Accumulators::for_each([n]<template <class> class A>() {
        using F = FormatFor<Order, A>;
        if constexpr (is_printed<Order, A>) print<Order, A, F>(data<F>(n));
      });
    });
    for (const unsigned binades : {24u, 100u})
      Formats::for_each([=]<class T>() { print_exact(data<T>(n, binades)); });
  }
}
