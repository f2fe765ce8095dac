/// The extension module _jax: handlers of JAX's foreign function interface, one for the CPU and one for GPUs.
///
/// A handler reduces the last axis of its inputs; the other axes are a batch. Its attributes are the method's
/// name, `threads` and `ddof`.
#include <nanobind/nanobind.h>

#include "../src/foreign.hpp"
#include "xla/ffi/api/ffi.h"

namespace samesum::python {
namespace {

namespace nb = nanobind;
namespace ffi = xla::ffi;

RunForeignCall run_foreign_call = nullptr;

/// Returns the format of elements; null for every other data type.
const FormatInfo* format_of(const ffi::AnyBuffer& buffer) {
  switch (buffer.element_type()) {
    case ffi::F16:
      return &format_info<fp16>();
    case ffi::BF16:
      return &format_info<bf16>();
    case ffi::F32:
      return &format_info<fp32>();
    case ffi::F64:
      return &format_info<fp64>();
    default:
      return nullptr;
  }
}

ffi::Error reduce(int device, void* stream, std::string_view method, std::int64_t threads, double ddof,
                  const ffi::AnyBuffer& x, const ffi::RemainingArgs& others, const ffi::AnyBuffer& out) {
  const auto axes = x.dimensions();
  if (axes.size() == 0) return ffi::Error::InvalidArgument("samesum: x has no axis to reduce");
  const auto size = [&](std::size_t d) { return static_cast<std::size_t>(axes[d]); };
  std::size_t rows = 1;
  for (std::size_t d = 0; d + 1 < axes.size(); ++d) rows *= size(d);
  const std::size_t n = size(axes.size() - 1);
  if (out.element_count() == 0) return ffi::Error::Success();
  const FormatInfo *const format = format_of(x), *const out_format = format_of(out);
  if (!format || (!out_format && out.element_type() != ffi::S64))
    return ffi::Error::InvalidArgument(
        "samesum: elements must be fp16, bf16, fp32 or fp64, and results these or int64");
  Call call{.method = nullptr,
            .x = {*format, x.untyped_data(), rows * n},
            .layout = Layout::rows(rows, n),
            .out = {out_format, out.untyped_data(), out.element_count()},
            .options = {.threads = static_cast<int>(threads), .ddof = ddof}};
  if (others.size() > 0) {
    const auto y = others.get<ffi::AnyBuffer>(0);
    if (y.has_error()) return y.error();
    if (y->element_type() != x.element_type() || y->element_count() != x.element_count())
      return ffi::Error::InvalidArgument("samesum: x and y must have the same shape and type");
    call.y = {*format, y->untyped_data(), rows * n};
  }
  std::string error;
  run_foreign_call(method, call, {device, reinterpret_cast<std::uintptr_t>(stream)}, error);
  return error.empty() ? ffi::Error::Success() : ffi::Error::InvalidArgument(error);
}

ffi::Error reduce_on_host(std::string_view method, std::int64_t threads, double ddof, ffi::AnyBuffer x,
                          ffi::RemainingArgs others, ffi::Result<ffi::AnyBuffer> out) {
  return reduce(-1, nullptr, method, threads, ddof, x, others, *out);
}

ffi::Error reduce_on_gpu(void* stream, std::int32_t device, std::string_view method, std::int64_t threads,
                         double ddof, ffi::AnyBuffer x, ffi::RemainingArgs others,
                         ffi::Result<ffi::AnyBuffer> out) {
  return reduce(device, stream, method, threads, ddof, x, others, *out);
}

template <class Binding> auto with_call(Binding binding) {
  return std::move(binding)
      .template Attr<std::string_view>("method")
      .template Attr<std::int64_t>("threads")
      .template Attr<double>("ddof")
      .template Arg<ffi::AnyBuffer>()
      .RemainingArgs()
      .template Ret<ffi::AnyBuffer>();
}

XLA_FFI_DEFINE_HANDLER(host_handler, reduce_on_host, with_call(ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER(
    gpu_handler, reduce_on_gpu,
    with_call(ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Ctx<ffi::DeviceOrdinal>()));

}  // namespace

NB_MODULE(_jax, m) {
  const nb::object core = nb::module_::import_("samesum._core").attr("run_foreign_call");
  run_foreign_call = reinterpret_cast<RunForeignCall>(PyCapsule_GetPointer(core.ptr(), foreign_capsule));
  if (!run_foreign_call) throw nb::python_error();
  m.attr("cpu") = nb::capsule(reinterpret_cast<void*>(host_handler));
  m.attr("cuda") = nb::capsule(reinterpret_cast<void*>(gpu_handler));
}

}  // namespace samesum::python
