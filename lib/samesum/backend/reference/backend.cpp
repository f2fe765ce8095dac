/// The entry of the reference backend: the methods of every format, rolling methods, methods by key, and
/// softmax.
#include "samesum/backend/reference/methods.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/join.hpp"

namespace samesum::reference {
namespace {

class Reference : public Backend {
  std::string_view name() const override { return "reference"; }
  std::vector<Entry> entries() const override {
    return joined([]<std::size_t index>() { return methods<index>(); },
                  joined(rolling_methods(), joined(methods_by_key(), softmaxes())));
  }
};

}  // namespace
}  // namespace samesum::reference

template <> const samesum::Backend& samesum::backend<"reference">() {
  static const reference::Reference only;
  return only;
}
