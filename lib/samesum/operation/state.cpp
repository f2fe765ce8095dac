/// States of every accumulator in every format, behind one type.
#include "samesum/operation/state.hpp"

#include <algorithm>
#include <stdexcept>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/base/serial_form.hpp"
#include "samesum/bound/bound.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/order/reference.hpp"

namespace samesum {
namespace {

using Numbers = std::array<double, 2>;

// The numbers of accumulator A over a scalar, which lie side by side in the carrier type of format F.
template <class A, class F> struct Shape {
  static constexpr std::size_t size = sizeof(A) / sizeof(CarrierOf<F>);
  static_assert(size <= std::tuple_size_v<Numbers>);
};

template <class A, class F> A unpack(const Numbers& numbers) {
  std::array<CarrierOf<F>, Shape<A, F>::size> fields;
  std::ranges::transform(std::span{numbers}.first(fields.size()), fields.begin(),
                         [](double x) { return static_cast<CarrierOf<F>>(x); });
  return std::bit_cast<A>(fields);
}

template <class A, class F> Numbers pack(const A& state) {
  Numbers numbers{};
  std::ranges::copy(std::bit_cast<std::array<CarrierOf<F>, Shape<A, F>::size>>(state), numbers.begin());
  return numbers;
}

}  // namespace

struct State::Kind {
  std::string name;
  const FormatInfo* format;
  std::size_t size;
  Numbers (*sum)(Values x);
  Numbers (*merge)(const Numbers& a, const Numbers& b);
  std::uint64_t (*result)(const Numbers& state);
  AccumulatorBound bound;

  template <template <class> class A, class F> static Kind of() {
    using Accumulator = A<Scalar<F>>;
    return {std::string{Accumulator::name}.append("/").append(Format<F>::name),
            &format_info<F>(),
            Shape<Accumulator, F>::size,
            [](Values x) {
              const auto sum_of = [&]<class T>() {
                const std::span<const T> elements = x.as<T>();
                return *reference_state<Accumulator>(
                    Serial::Shape{}, x.size, [&](std::size_t i) { return Scalar<F>::of(elements[i]); });
              };
              return pack<Accumulator, F>(with_format(*x.format, sum_of));
            },
            [](const Numbers& a, const Numbers& b) {
              auto state = unpack<Accumulator, F>(a);
              state.merge(unpack<Accumulator, F>(b));
              return pack<Accumulator, F>(state);
            },
            [](const Numbers& state) -> std::uint64_t {
              return to_bits(to_format<F>(unpack<Accumulator, F>(state).result()));
            },
            Accumulator::bound};
  }
};

const std::vector<State::Kind>& State::kinds() {
  static const std::vector<Kind> table = [] {
    std::vector<Kind> all;
    Accumulators::for_each([&]<template <class> class A>() {
      Formats::for_each([&]<class F>() { all.push_back(Kind::of<A, F>()); });
    });
    return all;
  }();
  return table;
}

State::State(std::string_view name) {
  const auto found = std::ranges::find(kinds(), name, &Kind::name);
  if (found == kinds().end())
    throw std::invalid_argument("samesum: no state named '" + std::string{name} +
                                "'; a name is an accumulator and a format, such as 'kahan/fp32'");
  kind_ = &*found;
}

const std::string& State::name() const { return kind_->name; }

void State::add(Values x) {
  check("x", x);
  if (x.size == 0) return;
  const FloatingPointEnvironment environment;
  State sum{*this};
  sum.count_ = x.size;
  sum.height_ = Serial::height(x.size);
  sum.rounded_ = !holds(*kind_->format, *x.format);
  sum.numbers_ = kind_->sum(x);
  if (empty())
    *this = sum;
  else
    merge(sum);
}

void State::merge(const State& other) {
  if (kind_ != other.kind_)
    throw std::invalid_argument("samesum: only states of the same name can be merged, not " + other.name() +
                                " into " + name());
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  if (count_ + other.count_ < count_)
    throw std::length_error("samesum: the merged state would have 2^64 elements or more");
  const FloatingPointEnvironment environment;
  numbers_ = kind_->merge(numbers_, other.numbers_);
  count_ += other.count_;
  height_ = {std::max(height_.adds, other.height_.adds), std::max(height_.merges, other.height_.merges) + 1};
  rounded_ = rounded_ || other.rounded_;
}

Number State::result() const {
  if (empty()) return {kind_->format, 0};
  const FloatingPointEnvironment environment;
  return {kind_->format, kind_->result(numbers_)};
}

double State::bound(double magnitudes) const {
  const FloatingPointEnvironment environment;
  magnitudes = checked_magnitudes(name(), "magnitudes", magnitudes);
  const FormatInfo& widest = rounded_ ? format_info<fp64>() : *kind_->format;
  return sum_bound(kind_->bound, widest, *kind_->format, count_, height_, magnitudes, result()).bound;
}

std::vector<std::byte> State::serialise() const {
  SerialWriter out{name()};
  for (const std::uint64_t word : {count_, std::uint64_t{height_.adds}, std::uint64_t{height_.merges}})
    out.put(word);
  out.put(std::uint8_t{rounded_});
  for (std::size_t i = 0; i < kind_->size; ++i) out.put(std::bit_cast<std::uint64_t>(numbers_[i]));
  return out.bytes();
}

State State::deserialise(std::span<const std::byte> bytes) {
  const FloatingPointEnvironment environment;
  SerialReader in{bytes};
  const auto found = std::ranges::find(kinds(), in.name(), &Kind::name);
  if (found == kinds().end()) SerialReader::refuse("this library has no accumulator '" + in.name() + "'");
  State state{in.name()};
  state.count_ = in.get<std::uint64_t>();
  state.height_.adds = in.get<std::uint64_t>();
  state.height_.merges = in.get<std::uint64_t>();
  state.rounded_ = in.get<std::uint8_t>() != 0;
  for (std::size_t i = 0; i < found->size; ++i) {
    state.numbers_[i] = std::bit_cast<double>(in.get<std::uint64_t>());
    const Number rounded =
        with_format(*found->format, [&]<class F>() { return Number::of(convert<F>(state.numbers_[i])); });
    if (state.numbers_[i] == state.numbers_[i] && rounded.to_double() != state.numbers_[i])
      SerialReader::refuse("it holds a number that is not a value of " + std::string{found->format->name});
  }
  in.finish();
  // The bound depends on the height, which is less than the number of elements.
  const std::uint64_t most = std::max<std::uint64_t>(state.count_, 1) - 1;
  const bool fits = state.height_.adds <= most && state.height_.merges <= most - state.height_.adds;
  // Only the bytes that `serialise` writes are accepted.
  const State& canonical = state.empty() ? State{in.name()} : state;
  if (!fits || !std::ranges::equal(canonical.serialise(), bytes))
    SerialReader::refuse("its count, height and numbers contradict each other");
  return state;
}

}  // namespace samesum
