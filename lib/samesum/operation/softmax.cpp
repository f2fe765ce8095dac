#include "samesum/operation/softmax.hpp"

#include <stdexcept>
#include <vector>

#include "samesum/environment.hpp"
#include "samesum/operation/softmax_backends.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum {
namespace {

std::string shape(const char* name, const Matrix& m) {
  return std::string{name} + " has " + std::to_string(m.rows) + " rows of " + std::to_string(m.columns);
}

/// From the first byte to behind the last one.
struct Extent {
  std::uintptr_t begin, end;
  explicit Extent(const Matrix& m)
      : begin{reinterpret_cast<std::uintptr_t>(m.data)}, end{begin + elements(m) * m.format->bytes} {}
  static std::size_t elements(const Matrix& m) { return (m.rows - 1) * m.row_stride + m.columns; }
};

/// Whether two matrices of the same shape, which are not the same, have an element in common.
bool overlap(const Matrix& in, const Matrix& out) {
  const Extent a{in}, b{out};
  if (a.end <= b.begin || b.end <= a.begin) return false;
  if (in.row_stride != out.row_stride) return true;  // some may not, but nobody wants to depend on it
  const std::size_t stride = in.row_stride * in.format->bytes, width = in.columns * in.format->bytes;
  const std::size_t apart = (a.begin < b.begin ? b.begin - a.begin : a.begin - b.begin) % stride;
  return apart < width || apart + width > stride;
}

std::string validation_error(const char* name, const Matrix& m) {
  if (m.row_stride < m.columns)
    return std::string{name} + " has a row stride of " + std::to_string(m.row_stride) + ", less than its " +
           std::to_string(m.columns) + " columns";
  const Layout rows = Layout::rows(m.rows, m.columns, m.row_stride);
  if (!extent(rows, true))
    return shape(name, m) + " elements, " + std::to_string(m.row_stride) +
           " apart, which is more than memory can hold";
  return samesum::validation_error(name, m.data, Extent::elements(m), {m.format->bytes, m.format->bytes});
}

}  // namespace

std::string validation_error(Matrix in, MutableMatrix out, SoftmaxOptions options) {
  if (options.threads < 0)
    return "threads is " + std::to_string(options.threads) + "; it must be 0 (automatic) or more";
  if (!is_listed(options.accumulator))
    return "accumulator is none of SoftmaxSum: fp16, bf16, fp32, exact, online";
  for (const auto& [name, format] : {std::pair{"in", in.format}, std::pair{"out", out.format}})
    if (!is_listed(format) || format->bytes > sizeof(float))
      return std::string{name} + " is " + std::string{is_listed(format) ? format->name : "of no format"} +
             "; softmax takes fp16, bf16 and fp32";
  if (in.rows != out.rows || in.columns != out.columns)
    return shape("out", out) + ", but " + shape("in", in) + "; they must be the same";
  if (in.format->index != out.format->index)
    return "out is " + std::string{out.format->name} + ", but in is " + std::string{in.format->name} +
           "; convert one of them";
  if (in.rows == 0 || in.columns == 0) return {};
  if (in.columns >> 39 != 0) return shape("in", in) + " columns; fewer than 2^39 can be summed";
  if (std::string wrong = validation_error("in", in); !wrong.empty()) return wrong;
  if (std::string wrong = validation_error("out", out); !wrong.empty()) return wrong;
  if (in.data == out.data && in.row_stride == out.row_stride) return {};
  if (overlap(in, out))
    return "out overlaps in; give it memory of its own, or in's data with in's row stride";
  return {};
}

void softmax(Matrix in, MutableMatrix out, SoftmaxOptions options) {
  if (const std::string wrong = validation_error(in, out, options); !wrong.empty())
    throw std::invalid_argument("samesum: " + wrong);
  cpu::softmax({in.format, in.data, out.data, in.rows, in.columns, in.row_stride, out.row_stride,
                options.accumulator, options.log, options.threads});
}

namespace {

/// What sums the denominator, and what that promises: the list of which there is a variant each, for
/// softmax and for log-softmax, on every backend.
struct Denominator {
  SoftmaxSum accumulator;
  const char* name;
  Promise promise;
};
constexpr Denominator denominators[] = {{SoftmaxSum::fp16, "tree/plain/fp16", Promise::everywhere},
                                        {SoftmaxSum::bf16, "tree/plain/bf16", Promise::everywhere},
                                        {SoftmaxSum::fp32, "tree/plain/fp32", Promise::everywhere},
                                        {SoftmaxSum::exact, "exact", Promise::order_free},
                                        {SoftmaxSum::online, "online/fp32", Promise::everywhere}};

std::vector<SoftmaxVariant> all_softmaxes() {
  const FloatingPointEnvironment environment;  // also for the driver of a GPU, which begins here
  std::vector<SoftmaxVariant> all;
  const auto append = [&all](const char* backend, void (*run)(const SoftmaxCall&)) {
    for (const bool log : {false, true})
      for (const Denominator& d : denominators)
        all.push_back(
            {std::string{log ? "log_softmax/" : "softmax/"}.append(d.name).append("@").append(backend),
             d.accumulator, log, backend, d.promise, run});
  };
  append("reference", [](const SoftmaxCall& call) {
    const FloatingPointEnvironment environment;
    reference::softmax(call);
  });
  append("cpu", cpu::softmax);
  if (gpu::has_softmax()) append("cuda", nullptr);
  return all;
}

}  // namespace

std::span<const SoftmaxVariant> softmax_variants() {
  static const std::vector<SoftmaxVariant> table = all_softmaxes();
  return table;
}

}  // namespace samesum
