/// Stub of the CUDA backend for a library that is built without CUDA: no methods, and the reason.
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/backends.hpp"

namespace samesum::gpu {
namespace {

class AbsentCuda : public Backend {
  std::string_view name() const override { return "cuda"; }
  std::string absence() const override {
    return "this library was built without CUDA; build it with SAMESUM_CUDA=ON";
  }
  std::vector<Entry> entries() const override { return {}; }
};

}  // namespace
}  // namespace samesum::gpu

template <> const samesum::Backend& samesum::backend<"cuda">() {
  static const gpu::AbsentCuda only;
  return only;
}
