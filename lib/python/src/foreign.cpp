/// Calls from extension modules that are compiled apart from the library.
#include "foreign.hpp"

#include "module.hpp"

namespace samesum::python {
namespace {

void run(const ForeignCall& c) {
  const bool on_gpu = c.device >= 0;
  const FormatInfo& format = format_named(c.format);
  const Method& method = find(c.method, {"sum", c.format, on_gpu ? "cuda" : "cpu"});
  const FormatInfo* out_format = c.out_format.empty() ? nullptr : &format_named(c.out_format);
  const Layout all = Layout::rows(c.rows, c.n);
  const auto reduce_rows = [&](std::size_t first, const Layout& layout, std::size_t out_size) {
    const std::size_t skipped = first * c.n * format.bytes;
    const auto from = [&](const void* data) {
      return Values{format, static_cast<const std::byte*>(data) + skipped, layout.results() * c.n};
    };
    const Values x = from(c.x), y = c.y ? from(c.y) : x;
    const Results out{out_format, static_cast<std::byte*>(c.out) + first * method.result_bytes(), out_size};
    const View call{method, x, c.y ? &y : nullptr, layout, out, {c.threads, c.ddof}};
    if (on_gpu)
      reduce_on_gpu(call, {c.device, reinterpret_cast<std::uintptr_t>(c.stream)});
    else if (c.y)  // not reduce_on_host: signal handlers would need the GIL
      reduce(method, x, y, layout, out, call.options);
    else
      reduce(method, x, layout, out, call.options);
  };
  if (!on_gpu || c.rows == 1 || method.accepts(format, all)) return reduce_rows(0, all, c.out_size);
  // Some methods reduce single vectors only.
  for (std::size_t row = 0; row < c.rows; ++row)
    reduce_rows(row, Layout::vector(c.n), static_cast<std::size_t>(method.results));
}

void run_foreign_call(const ForeignCall& call, std::string& error) noexcept try {
  run(call);
} catch (const std::exception& failure) {
  error = failure.what();
}

}  // namespace

void bind_foreign(nb::module_& m) {
  m.attr("run_foreign_call") = nb::capsule(reinterpret_cast<void*>(&run_foreign_call), foreign_capsule);
}

}  // namespace samesum::python
