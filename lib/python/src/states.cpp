/// Exact states and partials.
#include "module.hpp"

namespace samesum::python {
void bind_states(nb::module_&) {}
}  // namespace samesum::python
