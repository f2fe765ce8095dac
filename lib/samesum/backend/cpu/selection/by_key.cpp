/// Reductions by key of which only some elements take part.
#include <optional>
#include <vector>

#include "samesum/backend/cpu/selection/call.hpp"

namespace samesum::cpu {
namespace {

class SelectiveReductionByKey : public SelectiveCall {
 public:
  using SelectiveCall::SelectiveCall;
  /// Packs pairs of a key and an element. Rows of several elements become pairs of their own: element i of a
  /// row with key k has the key k·inner + i. A result still has at most one element of each row.
  void reduce() {
    const std::size_t inner = layout().inner, n = call_.keys.size, results = call_.out.size;
    const bool counts = method().inputs == 0;
    std::vector<std::int64_t> keys;
    std::size_t rows = 0, end_of_row = 0;  // rows of which an element takes part, and where the last one ends
    const auto take = [&](std::size_t at) {
      const std::size_t place = at / inner;
      const std::uint64_t key = key_at(call_.keys.format, call_.keys.data, place);
      if (key >= results / inner) refuse(method(), message_of_bad_key(place, key, results / inner));
      if (at >= end_of_row) end_of_row = (place + 1) * inner, ++rows;
      keys.push_back(static_cast<std::int64_t>(key * inner + at % inner));
    };
    std::optional<PackedElements> packed;
    if (counts) {
      for (std::size_t k = 0; k < n; ++k)
        if (elements_.where[k]) take(k);
    } else {
      packed.emplace(elements_, n * inner);
      packed->append({0, n * inner});
      with_format(*call_.x.format, [&]<class T>() {
        elements_.for_each<T>({0, n * inner}, [&](std::size_t at, bool takes) {
          if (takes) take(at);
        });
      });
    }
    Call part = call_;
    if (packed) part.x = packed->x();
    part.keys = Keys{std::span<const std::int64_t>{keys}};
    part.most_terms = rows;
    part.layout = Layout::vector(keys.size());
    run_packed(part, call_.options.threads);
  }
};

}  // namespace

bool reduce_selected_by_key(const Call& call) {
  SelectiveReductionByKey reduction{call};
  reduction.reduce();
  return reduction.overflowed();
}

}  // namespace samesum::cpu
