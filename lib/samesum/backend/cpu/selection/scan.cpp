/// Scans of which only some elements take part.
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/backend/cpu/selection/call.hpp"

namespace samesum::cpu {
namespace {

class SelectiveScan : public SelectiveCall {
 public:
  using SelectiveCall::SelectiveCall;
  /// Scans each vector: its packed elements, whose results then go to all places.
  void scan() {
    const std::size_t results = layout().results();
    if (results == 0) return;
    for_each_task(thread_count(call_.options.threads, results * layout().n, results), results,
                  [&](std::size_t r) { scan_vector(r, results == 1 ? call_.options.threads : 1); });
  }

 private:
  void scan_vector(std::size_t r, int threads) {
    const Stretch all = elements_of(r);
    const std::size_t bytes = call_.out.format->bytes, o = r / layout().inner, i = r % layout().inner;
    PackedElements packed{elements_, all.n};
    // x may be overwritten by the results.
    const auto takes = std::make_unique_for_overwrite<std::uint8_t[]>(all.n);
    elements_.flag(all, takes.get());
    packed.append(all);
    // One result more, that of no elements, comes first.
    const std::unique_ptr<std::byte[]> of_packed = room_for((packed.size() + 1) * bytes);
    const std::uint64_t zero = 0;
    const auto scan_part = [&](const Values& x, bool exclusive, std::size_t at, int threads_of_part) {
      Call part = call_;
      part.options.exclusive = exclusive;
      part.x = x;
      part.layout = Layout::vector(x.size);
      part.out = {call_.out.format, of_packed.get() + at * bytes, x.size, 0};
      run_packed(part, threads_of_part);
    };
    // If the last element takes part, no exclusive result contains it: then its sum must not overflow a grid.
    if (call_.options.exclusive && all.n > 0 && takes[all.n - 1] != 0) {
      scan_part(packed.x(), true, 0, threads);
    } else {
      scan_part({*call_.x.format, &zero, 1}, true, 0, 1);
      if (packed.size() > 0) scan_part(packed.x(), false, 1, threads);
    }
    with_format(*call_.out.format, [&]<class F>() {
      auto* out = static_cast<F*>(call_.out.data) + o * call_.out.row_stride + i;
      const auto* const of_first = reinterpret_cast<const F*>(of_packed.get());
      std::size_t before = 0;
      for (std::size_t k = 0; k < all.n; ++k, out += layout().inner) {
        const std::size_t after = before + takes[k];
        *out = of_first[call_.options.exclusive ? before : after];
        before = after;
      }
    });
  }
};

}  // namespace

bool scan_selected(const Call& call) {
  SelectiveScan scan{call};
  scan.scan();
  return scan.overflowed();
}

}  // namespace samesum::cpu
