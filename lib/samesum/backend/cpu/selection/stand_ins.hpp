/// Reductions in which something stands in for the elements that take no part, so that the others need not
/// move.
#pragma once

#include <vector>

#include "samesum/backend/cpu/selection/call.hpp"
#include "samesum/operation/extremum.hpp"

namespace samesum::cpu {

/// A call whose elements may be copied with stand-ins: zeros that add nothing to an exact sum, or what every
/// number replaces as an extremum.
class CallWithStandIns : public SelectiveCall {
 public:
  using SelectiveCall::SelectiveCall;

 protected:
  /// What the method adds if it is an exact sum or mean of elements, by this backend's own loops.
  const ExactKind* adds_elements() const {
    const std::optional<ExactKind>& adds = Code::of(method()).adds;
    const bool is_exact = method().backend == "cpu" && method().accumulator == "exact";
    return is_exact && adds && adds->term == Term::element && !adds->moments ? &*adds : nullptr;
  }
  bool is_smallest() const { return method().operation == Min::name || method().operation == ArgMin::name; }
  /// Whether the method finds an extremum, or its index, by this backend's own loops.
  bool finds_extremum() const {
    const bool is_largest = method().operation == Max::name || method().operation == ArgMax::name;
    return method().backend == "cpu" && (is_largest || is_smallest());
  }
  /// Whether something can stand in for elements that take no part, so that the others need not move.
  bool can_stay() const { return adds_elements() || finds_extremum(); }
  /// The bits of an element that stands in for others: it adds nothing, or is what every number replaces.
  std::uint64_t stand_in() const {
    return with_format(*call_.x.format, [&]<class T>() {
      std::uint64_t bits = finds_extremum() ? Format<T>::infinity : 0;
      if (!finds_extremum() || !is_smallest()) bits |= Format<T>::sign_bit;
      return bits;
    });
  }
  bool any_takes(Stretch s) const {
    bool any = false;
    with_format(*call_.x.format,
                [&]<class T>() { elements_.for_each<T>(s, [&](std::size_t, bool takes) { any |= takes; }); });
    return any;
  }
  /// Copies rows of `count` elements from `first` on, with stand-ins for those that take no part, and returns
  /// how many do. If `counts` is given, it becomes those of the columns.
  std::size_t keep(std::size_t first, std::size_t pitch, std::size_t rows, std::size_t count, std::byte* to,
                   std::vector<std::size_t>* counts = nullptr) const {
    return with_format(*call_.x.format, [&]<class T>() {
      constexpr std::size_t pack = SelectedRows::pack;
      std::vector<BitsOf<T>> of_columns(counts ? (count + pack - 1) / pack * pack : 0);
      const std::size_t all = kernels(Formats::index_of<T>())
                                  .keep_selected({static_cast<const T*>(call_.x.data) + first,
                                                  elements_.where ? elements_.where + first : nullptr, pitch,
                                                  rows, count, elements_.skip_nan, stand_in()},
                                                 to, counts ? of_columns.data() : nullptr);
      if (counts) counts->assign(of_columns.begin(), of_columns.begin() + static_cast<std::ptrdiff_t>(count));
      return all;
    });
  }
};

}  // namespace samesum::cpu
