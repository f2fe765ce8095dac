/// Calls from extension modules that are compiled apart from the library.
#include "foreign.hpp"

#include "module.hpp"

namespace samesum::python {
namespace {

void run_foreign_call(std::string_view method, const Call& call, Place place, std::string& error) noexcept
    try {
  const bool on_gpu = place.device >= 0;
  Call mine = call;
  mine.method = &find(method, {"sum", call.x.format->name, on_gpu ? "cuda" : "cpu"});
  // On the host not in chunks, between which signal handlers would need the GIL.
  on_gpu ? run_at(mine, place) : run(mine);
} catch (const std::exception& failure) {
  error = failure.what();
}

}  // namespace

void bind_foreign(nb::module_& m) {
  m.attr("run_foreign_call") = nb::capsule(reinterpret_cast<void*>(&run_foreign_call), foreign_capsule);
}

}  // namespace samesum::python
