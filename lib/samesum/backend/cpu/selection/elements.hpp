/// The elements of which some take part in a call, and room for those that do.
#pragma once

#include <cstdint>
#include <memory>

#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/call/call.hpp"

namespace samesum::cpu {

/// Elements that are packed at a time: in fp64 they fit the second-level cache.
inline constexpr std::size_t packed_at_a_time = most_selected;

/// Returns memory for that many bytes, which are not initialised.
inline std::unique_ptr<std::byte[]> room_for(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

/// Elements in a row or column of an array: those from `first` on, `stride` apart.
struct Stretch {
  std::size_t first, n, stride = 1;
};

/// The inputs of a call, and what selects the elements that take part.
struct SelectableElements {
  Values x, y;
  const std::uint8_t* where;  ///< null if all do
  bool skip_nan;

  std::size_t bytes() const { return x.format->bytes; }

  /// Calls visit(k, takes) for each element k of a stretch, in order. Without a branch, which could not be
  /// predicted.
  template <class T, class Visit> void for_each(Stretch s, Visit visit) const {
    const auto *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
    const bool skips_of_y = skip_nan && b;
    for (std::size_t k = 0, i = s.first; k < s.n; ++k, i += s.stride)
      visit(k, (!where || where[i] != 0) & !(skip_nan && is_nan_bits<T>(to_bits(a[i]))) &
                   !(skips_of_y && is_nan_bits<T>(to_bits(b[i]))));
  }

  /// Packs the elements of a stretch that take part, and returns how many do. `to_y` is used if y is given.
  std::size_t pack(Stretch s, std::byte* to_x, std::byte* to_y) const {
    return with_format(*x.format, [&]<class T>() {
      const auto *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
      auto *p = reinterpret_cast<T*>(to_x), *q = reinterpret_cast<T*>(to_y);
      std::size_t count = 0;
      // Each element is written, and perhaps overwritten.
      for_each<T>(s, [&](std::size_t k, bool takes) {
        p[count] = a[s.first + k * s.stride];
        if (b) q[count] = b[s.first + k * s.stride];
        count += takes;
      });
      return count;
    });
  }

  /// Writes for each element of a stretch whether it takes part.
  void flag(Stretch s, std::uint8_t* flags) const {
    with_format(*x.format,
                [&]<class T>() { for_each<T>(s, [&](std::size_t k, bool takes) { flags[k] = takes; }); });
  }

  /// The place in a stretch of the element that is number `index` of those that take part.
  std::size_t place_of(std::size_t index, Stretch s) const {
    std::size_t place = 0;
    with_format(*x.format, [&]<class T>() {
      for_each<T>(s, [&](std::size_t k, bool takes) {
        if (takes && index-- == 0) place = k;
      });
    });
    return place;
  }
};

/// The elements of one or two inputs that take part, packed into memory of their own.
class PackedElements {
 public:
  PackedElements(const SelectableElements& from, std::size_t most)
      : from_{from},
        x_{room_for(most * from.bytes())},
        y_{room_for(from.y.is_given() ? most * from.bytes() : 0)} {}
  /// Appends the elements of a stretch that take part.
  void append(Stretch s) {
    const std::size_t at = size_ * from_.bytes();
    size_ += from_.pack(s, x_.get() + at, from_.y.is_given() ? y_.get() + at : nullptr);
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  Values x() const { return {*from_.x.format, x_.get(), size_}; }
  Values y() const { return from_.y.is_given() ? Values{*from_.x.format, y_.get(), size_} : Values{}; }
  std::byte* data() { return x_.get(); }

 private:
  SelectableElements from_;
  std::unique_ptr<std::byte[]> x_, y_;
  std::size_t size_ = 0;
};

}  // namespace samesum::cpu
