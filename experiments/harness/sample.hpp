/// Generated elements that many methods reduce.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "harness/input.hpp"
#include "harness/measure.hpp"
#include "harness/peers.hpp"

namespace samesum::harness {

/// Elements, the exact result of an operation on them, and a copy on the GPU, which is made when a method
/// first needs it. For moments the result is the variance.
class Sample {
 public:
  explicit Sample(Column x, const std::string& operation = "sum", std::optional<Column> y = {})
      : x_{std::move(x)},
        y_{std::move(y)},
        result_index_{operation == "moments" ? 1u : 0u},
        truth_{Truth::of(operation, x_.values(), second(), result_index_)} {}

  const FormatInfo& format() const { return *x_.format; }
  const Truth& truth() const { return truth_; }

  Measurement judged(const Method& v, Options options = {}) {
    return judge(v, format(), truth_, result_of(v, inputs_for(v), options), result_index_);
  }

 private:
  std::optional<Values> second() const { return y_ ? std::optional{y_->values()} : std::nullopt; }

  Inputs inputs_for(const Method& v) {
    if (!runs_on_gpu(v)) return {x_.values(), second()};
    if (!x_on_gpu_) {
      x_on_gpu_ = v.place(x_.values());
      if (y_) y_on_gpu_ = v.place(y_->values());
    }
    return {x_on_gpu_->values, y_ ? std::optional{y_on_gpu_->values} : std::nullopt};
  }

  static ResultNumbers result_of(const Method& v, const Inputs& in, Options options) {
    if (v.results == 1) return in.y ? v(in.x, *in.y, options) : v(in.x, options);
    return with_format(*v.format, [&]<class F>() -> ResultNumbers {
      std::array<F, 2> both;
      reduce(v, in.x, Layout::vector(in.x.size), std::span<F>{both}, options);
      return {Number::of(both[0]), Number::of(both[1])};
    });
  }

  Column x_;
  std::optional<Column> y_;
  std::size_t result_index_;
  Truth truth_;
  std::optional<Placed> x_on_gpu_, y_on_gpu_;
};

}  // namespace samesum::harness
