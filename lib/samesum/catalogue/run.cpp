/// Runs calls on the backend of their method.
#include <cstring>
#include <stdexcept>

#include "samesum/base/environment.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/selection.hpp"

namespace samesum {
namespace {

void check(const Call& call) {
  if (const std::string wrong = validation_error(call, true); !wrong.empty()) refuse(*call.method, wrong);
}

/// A call on one vector, to one number with these bits.
Call call_for_number(const Method& m, const Values& x, const Values& y, const Options& options,
                     std::uint64_t& bits) {
  return {.method = &m,
          .x = x,
          .y = y,
          .layout = Layout::vector(x.size),
          .out = {m.format, &bits, 1},
          .options = options};
}

/// The function for the sum of a vector, if neither y nor an option asks for more; otherwise null.
Code::Sum simple_sum(const Method& m, const Values& x, const Values& y, const Options& options) {
  const bool is_simple = is_listed(x.format) && !y.is_given() && !options.exclusive && !options.grid &&
                         !options.combine && !selects(options);
  return is_simple ? Code::of(m).sum[x.format->index] : nullptr;
}

Number one_number(const Method& m, const Values& x, const Values& y, const Options& options) {
  check_gives_number(m);
  std::uint64_t bits = 0;
  run(call_for_number(m, x, y, options, bits));
  return {m.format, bits};
}

}  // namespace

void check_gives_number(const Method& m) {
  if (m.takes_keys) refuse(m, "the method takes keys; call reduce with keys");
  if (m.has_result_per_element)
    refuse(m, "the method returns a number per element; call reduce with a layout");
  if (m.returns_index) refuse(m, "the method returns an index; call reduce_to_index");
  if (m.results != 1)
    refuse(m, "the method returns " + std::to_string(m.results) + " numbers; call reduce with a layout");
}

void run_sum(HostRun& run) {
  const Call& call = run.call;
  const Code& code = Code::of(*call.method);
  const std::size_t input = call.x.format->index;
  if (run.as_state) return code.host.any[input](run);
  const std::uint64_t bits = code.sum[input](call.x.data, call.layout.n, call.options.threads);
  std::memcpy(call.out.data, &bits,
              call.method->format->bytes);  // little-endian: the lowest bytes come first
}

Number Method::operator()(Values x, Values y, Options options) const {
  const Code::Sum sum = simple_sum(*this, x, y, options);
  if (!sum) return one_number(*this, x, y, options);
  const FloatingPointEnvironment environment;
  samesum::check(options);
  samesum::check("x", x);
  return {format, sum(x.data, x.size, options.threads)};
}

Job Method::bind(Values x, Values y, Options options) const {
  const FloatingPointEnvironment environment;
  check_gives_number(*this);
  samesum::check("x", x);
  if (selects(options)) return [this, x, y, options] { return one_number(*this, x, y, options); };
  samesum::check(options);
  if (simple_sum(*this, x, y, options)) return [this, x, options] { return (*this)(x, options); };
  std::uint64_t bits = 0;
  const Call call = call_for_number(*this, x, y, options, bits);
  check(call);  // reads no data, which may lie in any memory; the backend copies what it cannot read
  return [format = format, run = code_->backend->bind(normalised(call))] {
    const FloatingPointEnvironment environment;
    std::uint64_t result = 0;
    run(&result);
    return Number{format, result};
  };
}

Height Method::height(std::size_t n) const { return code_->height(n); }

bool Method::accepts(const FormatInfo& input) const {
  return input.index < Formats::size &&
         (code_->host.vector[input.index] || code_->device.vector[input.index]);
}

bool Method::accepts(const FormatInfo& input, const Layout& layout) const {
  return accepts(input) &&
         (is_vector(layout) || code_->host.any[input.index] || code_->device.any[input.index]);
}

Placed Method::place(Values x) const {
  const FloatingPointEnvironment environment;
  samesum::check("x", x);
  return code_->backend->place(x);
}

void refuse_grid(const Method& m, int grid) {
  throw std::overflow_error("samesum: " + m.name + ": a sum overflows the grid 2^" + std::to_string(grid) +
                            "; give a larger grid, or none, so that one is found on which it fits");
}

void refuse_what_failed(const HostRun& run) {
  const Call& call = run.call;
  if (run.overflowed) refuse_grid(*call.method, *call.options.grid);
  if (const std::size_t bad = run.first_bad_key; bad != no_bad_key) {
    const std::uint64_t key = run.bad_key ? *run.bad_key : key_at(call.keys.format, call.keys.data, bad);
    refuse(*call.method, message_of_bad_key(bad, key, bins(call)));
  }
}

void run(const Call& call) {
  if (selects(call.options) && !call.method->takes_window) return run_selected(call);
  const FloatingPointEnvironment environment;
  check(call);
  HostRun run{normalised(call)};
  if (call.method->has_result_per_element && run.call.layout.results() == 0) return;  // nothing to write
  Code::of(*call.method).backend->run(run);
  refuse_what_failed(run);
}

}  // namespace samesum
