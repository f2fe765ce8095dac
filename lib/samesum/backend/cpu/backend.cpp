/// The entry of the CPU backend: the methods of every format, rolling methods, methods by key, and softmax;
/// and calls of which only some elements take part.
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/selection/selection.hpp"
#include "samesum/catalogue/backends.hpp"
#include "samesum/catalogue/join.hpp"

namespace samesum::cpu {
namespace {

class Cpu : public Backend {
  std::string_view name() const override { return "cpu"; }
  std::vector<Entry> entries() const override {
    const auto sums_of = []<std::size_t index>() { return sums<index>(); };
    const auto reductions_of = []<std::size_t index>() { return reductions<index>(); };
    const auto scans_of = []<std::size_t index>() { return scans<index>(); };
    return joined(sums_of,
                  joined(reductions_of,
                         joined(scans_of, joined(rolling_methods(), joined(methods_by_key(), softmaxes())))));
  }

  void run_selected(HostRun& run) const override { cpu::run_selected(run); }
  PackedInputs packed(const Values& x, const Values& y, const Options& options) const override {
    return cpu::packed(x, y, options);
  }
};

}  // namespace
}  // namespace samesum::cpu

template <> const samesum::Backend& samesum::backend<"cpu">() {
  static const cpu::Cpu only;
  return only;
}
