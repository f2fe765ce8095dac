/// Definitions of selection.hpp.
#include "samesum/catalogue/selection.hpp"

#include "samesum/base/environment.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/backends.hpp"

namespace samesum {

std::string selection_error(const Call& call) {
  const Method& m = *call.method;
  const Mask& where = call.options.where;
  if (m.keeps_format) return "where and skip_nan are for reductions and scans; leave them out";
  if (m.inputs == 0 && call.options.skip_nan)
    return "skip_nan is for elements; the method counts keys, so leave it out";
  return m.inputs == 0 ? validation_error(where, call.keys.size, "key")
                       : validation_error(where, call.x.size, "element of x");
}

void run_selected(const Call& call) {
  const FloatingPointEnvironment environment;
  Call all = call;
  all.options = of_all_elements(call.options);
  std::string wrong = validation_error(all, true);
  if (wrong.empty()) wrong = selection_error(call);
  if (!wrong.empty()) refuse(*call.method, wrong);
  HostRun run{normalised(call)};
  Code::of(*call.method).backend->run_selected(run);
  refuse_what_failed(run);
}

void add_selected(Partial& partial, const Values& x, const Values& y, const Options& options) {
  const FloatingPointEnvironment environment;
  check_portion(partial, x, y);
  Call call = call_for_state(partial.method(), x, y, options);
  if (const std::string wrong = selection_error(call); !wrong.empty()) refuse(partial.method(), wrong);
  const PackedInputs packed = Code::of(partial.method()).backend->packed(x, y, options);
  partial.add(packed.x.values, packed.y.values, of_all_elements(options));
}

void Backend::run_selected(HostRun& run) const { backend<"cpu">().run_selected(run); }

PackedInputs Backend::packed(const Values& x, const Values& y, const Options& options) const {
  return backend<"cpu">().packed(x, y, options);
}

}  // namespace samesum
