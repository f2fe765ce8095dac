/// The elements of one result after another of a call of statistics, contiguous.
#pragma once

#include <memory>
#include <vector>

#include "samesum/call/statistics_call.hpp"

namespace samesum::cpu {

/// Where the elements of a result lie in an array.
struct VectorPlace {
  std::size_t first = 0, n = 0, stride = 1;
  VectorPlace() = default;
  VectorPlace(const Layout& l, std::size_t result)
      : first{l.first(result / l.inner) + result % l.inner},
        n{l.length(result / l.inner)},
        stride{l.stride} {}
  friend bool operator==(const VectorPlace&, const VectorPlace&) = default;
};

/// Where the weights of a result, or of a variable, lie.
inline VectorPlace place_of_weights(const StatisticsCall& call, std::size_t result) {
  return {weights_layout(call), is_matrix(call.statistic) ? 0 : result};
}

/// Flags of the elements of a result that take part, as options.where and skip_nan say.
class TakingPart {
 public:
  explicit TakingPart(const StatisticsCall& call) : call_{call} {}

  /// Whether some elements may take no part.
  bool selects() const { return samesum::selects(call_.options); }
  /// Returns a flag for each element of a result; null if all take part. The next call overwrites them.
  const std::uint8_t* flags(std::size_t result) {
    if (!selects()) return nullptr;
    const VectorPlace x{call_.layout, result};
    flags_.resize(x.n);
    const std::uint8_t* const where = call_.options.where.data;
    for (std::size_t k = 0; k < x.n; ++k) flags_[k] = !where || where[x.first + k * x.stride] != 0;
    if (!call_.options.skip_nan) return flags_.data();
    leave_out_nan(call_.x, x);
    if (call_.y.is_given()) leave_out_nan(call_.y, {y_layout(call_), result});
    if (call_.weights.is_given()) leave_out_nan(call_.weights.values, place_of_weights(call_, result));
    return flags_.data();
  }

 private:
  void leave_out_nan(const Values& v, const VectorPlace& at) {
    with_format(*v.format, [&]<class T>() {
      const T* const x = static_cast<const T*>(v.data) + at.first;
      for (std::size_t k = 0; k < at.n; ++k) flags_[k] &= !is_nan_bits<T>(to_bits(x[k * at.stride]));
    });
  }

  const StatisticsCall& call_;
  std::vector<std::uint8_t> flags_;
};

/// Elements of one input: those of a result, contiguous. Elements that are so in the input are not copied.
class Elements {
 public:
  explicit Elements(const Values& all) : all_{all} {}

  /// Moves to the elements of a place that take part; `flags` is null if all do.
  void move_to(const VectorPlace& place, const std::uint8_t* flags = nullptr) {
    if (!flags && version_ > 0 && !are_selected_ && place == place_) return;
    place_ = place, are_selected_ = flags != nullptr, ++version_;
    const std::size_t bytes = all_.format->bytes;
    values_ = {*all_.format, static_cast<const std::byte*>(all_.data) + place.first * bytes, place.n};
    if (place.n == 0 || (place.stride == 1 && !flags)) return;
    if (place.n > room_) packed_ = std::make_unique_for_overwrite<std::byte[]>((room_ = place.n) * bytes);
    values_.size = with_format(*all_.format, [&]<class T>() { return pack<T>(values_.data, flags); });
    values_.data = packed_.get();
  }
  const Values& values() const { return values_; }
  /// A number that changes with the elements.
  std::uint64_t version() const { return version_; }

 private:
  /// Packs elements, and returns how many take part.
  template <class T> std::size_t pack(const void* first, const std::uint8_t* flags) {
    const T* const from = static_cast<const T*>(first);
    T* const to = reinterpret_cast<T*>(packed_.get());
    std::size_t m = 0;
    for (std::size_t k = 0; k < place_.n; ++k) {  // without branches, which nothing predicts
      to[m] = from[k * place_.stride];
      m += flags ? flags[k] != 0 : 1;
    }
    return m;
  }

  Values all_, values_;
  VectorPlace place_;
  bool are_selected_ = false;
  std::uint64_t version_ = 0;
  std::unique_ptr<std::byte[]> packed_;
  std::size_t room_ = 0;
};

}  // namespace samesum::cpu
