/// Generated elements that many methods reduce.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/input.hpp"
#include "harness/measure.hpp"
#include "harness/peers.hpp"
#include "harness/results.hpp"

namespace samesum::harness {

/// The key of a row, which names the operation unless that is sum.
inline Json with_operation(Json key, const Method& v) {
  if (v.operation != "sum") key["operation"] = v.operation;
  return key;
}

/// What a table of an operation compares, before the rest of its title: "variance, "; empty for sums.
inline std::string title_prefix(const std::string& operation) {
  return operation == "sum" ? "" : operation == "moments" ? "variance, " : operation + ", ";
}

/// The operations besides sum whose results are rounded: all with a truth except min and max.
inline std::vector<std::string> rounded_operations() {
  std::vector<std::string> all = Truth::operations();
  std::erase_if(all, [](const std::string& name) { return name == "sum" || name == "min" || name == "max"; });
  return all;
}

/// Elements, the exact result of an operation on them, and a copy on the GPU, which is made when a method
/// first needs it. compared_result says which of several results it is.
class Sample {
 public:
  explicit Sample(Column x, const std::string& operation = "sum", std::optional<Column> y = {})
      : x_{std::move(x)},
        y_{std::move(y)},
        result_index_{compared_index(operation)},
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

  Column x_;
  std::optional<Column> y_;
  std::size_t result_index_;
  Truth truth_;
  std::optional<Placed> x_on_gpu_, y_on_gpu_;
};

}  // namespace samesum::harness
