/// Generated elements that many methods sum.
#pragma once

#include <optional>
#include <utility>

#include "harness/input.hpp"
#include "harness/measure.hpp"
#include "harness/peers.hpp"

namespace samesum::harness {

/// Elements, their exact sum, and a copy on the GPU, which is made when a method first needs it.
class Sample {
 public:
  explicit Sample(Column column) : column_{std::move(column)}, truth_{column_.values()} {}

  const FormatInfo& format() const { return *column_.format; }
  const Truth& truth() const { return truth_; }

  Measurement judged(const Method& v, Options options = {}) {
    if (runs_on_gpu(v) && !on_gpu_) on_gpu_ = v.place(column_.values());
    return judge(v, format(), truth_, v(runs_on_gpu(v) ? on_gpu_->values : column_.values(), options));
  }

 private:
  Column column_;
  Truth truth_;
  std::optional<Placed> on_gpu_;
};

}  // namespace samesum::harness
