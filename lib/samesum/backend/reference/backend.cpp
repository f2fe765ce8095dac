#include "samesum/backend/join.hpp"
#include "samesum/backend/reference/methods.hpp"
#include "samesum/support.hpp"

namespace samesum::reference {
namespace {

class Reference : public Backend {
  std::string_view name() const override { return "reference"; }
  std::vector<Entry> entries() const override {
    return joined([]<std::size_t shard>() { return methods<shard>(); }, softmaxes());
  }
};

}  // namespace
}  // namespace samesum::reference

template <> const samesum::Backend& samesum::backend<"reference">() {
  static const reference::Reference only;
  return only;
}
