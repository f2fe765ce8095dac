/// Prints the bits of every sum over a few arrays: the output must be the same from every compiler,
/// optimisation level, vector width and processor.
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "samesum/accumulator/exact.hpp"
#include "samesum/backend/cpu/canonical.hpp"
#include "samesum/backend/cpu/exact_block.hpp"
#include "samesum/backend/cpu/leaf.hpp"
#include "samesum/environment.hpp"
#include "samesum/reading.hpp"
#include "samesum/support.hpp"

using namespace samesum;

/// Either sign, so many binades, from the generator's integers alone.
template <class T> static std::vector<T> data(std::size_t n, unsigned binades = 24) {
  std::mt19937_64 random{n};
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
  const auto literal = read<State>(Shape{}, x.size(), at);
  const State sum = [&] {
    if constexpr (requires { Shape::rows; }) {
      std::vector<State> leaves(Shape::leaves(x.size()));
      cpu::Leaves<Shape, A, F>::template sum<T>(x.data(), x.size(), leaves.data());
      return merge_by_stride_doubling(std::span{leaves});
    } else {
      return *cpu::sum_canonical<Shape::lanes, State>(x.size(), at);
    }
  }();
  std::printf("%s/%s/%s of %s %zu %llx %llx\n", Order::name.data(), State::name.data(),
              Format<F>::name.data(), Format<T>::name.data(), x.size(), bits(to_format<F>(literal->result())),
              bits(to_format<F>(sum.result())));
}

template <class T> void print_exact(const std::vector<T>& x) {
  Exact literal, sum;
  literal.add(std::span<const T>{x});
  cpu::Expansions words;
  const std::size_t whole = x.size() / cpu::exact_step * cpu::exact_step;
  const std::size_t taken = cpu::ExactBlocks<T>::add(words, x.data(), whole);
  for (const auto& word : words.word) sum.add(std::span<const double>{word});
  sum.add(std::span<const T>{x}.subspan(taken));
  std::printf("exact of %s %zu %llx %llx\n", std::string{Format<T>::name}.c_str(), x.size(),
              bits(literal.result<double>()), bits(sum.result<double>()));
}

/// The caller's sticky flags after arithmetic under the guard: none, on each processor.
static void print_flags() {
  std::feclearexcept(FE_ALL_EXCEPT);
  in_standard_environment([] {
    volatile double x = 1, y = 3;
    x = x / y;
  });
  std::printf("flags %d\n", std::fetestexcept(FE_ALL_EXCEPT));
}

int main() {
  print_flags();
  for (const std::size_t n : {1, 7, 130, 2049, 33'000, 100'003}) {
    Orders::for_each([n]<class Order>() {
      Accumulators::for_each([n]<template <class> class A>() {
        if constexpr (refusal<Sum, Order, A, fp64>("cpu").empty())
          Formats::for_each([n]<class F>() { print<Order, A, F>(data<F>(n)); });
      });
    });
    for (const unsigned binades : {24u, 100u})
      Formats::for_each([=]<class T>() { print_exact(data<T>(n, binades)); });
  }
}
