/// Selects what runs a call of which only some elements take part.
#include "samesum/backend/cpu/selection/selection.hpp"

#include "samesum/backend/cpu/selection/call.hpp"
#include "samesum/catalogue/selection.hpp"

namespace samesum::cpu {

SelectiveCall::SelectiveCall(const Call& call)
    : call_{call}, elements_{call.x, call.y, call.options.where.data, call.options.skip_nan} {
  call_.options = of_all_elements(call.options);
  call_ = normalised(call_);
}

void SelectiveCall::run_packed(Call packed, int threads) {
  packed.options.threads = threads;
  HostRun run{normalised(packed)};
  Code::of(method()).backend->run(run);
  if (run.overflowed) overflowed_ = true;
}

void run_selected(HostRun& run) {
  const auto run_by = run.call.keys.is_given()                  ? reduce_selected_by_key
                      : run.call.method->has_result_per_element ? scan_selected
                                                                : reduce_selected;
  run.overflowed = run_by(run.call);
}

PackedInputs packed(const Values& x, const Values& y, const Options& options) {
  const auto elements = std::make_shared<PackedElements>(
      SelectableElements{x, y, options.where.data, options.skip_nan}, x.size);
  elements->append({0, x.size});
  return {{elements->x(), elements}, {elements->y(), elements}};
}

}  // namespace samesum::cpu
