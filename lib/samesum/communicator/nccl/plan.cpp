/// Plans: their memory, streams and events, and the checks of their calls.
#include "samesum/communicator/nccl/plan.hpp"

#include "samesum/base/environment.hpp"
#include "samesum/call/validation.hpp"

namespace samesum::nccl {

Stream new_stream() {
  int least = 0, greatest = 0;
  gpu::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
             "cudaStreamCreateWithPriority");
  return {stream, [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
}

Mark::Mark() {
  cudaEvent_t event = nullptr;
  gpu::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  event_ = {event, [](cudaEvent_t e) { static_cast<void>(cudaEventDestroy(e)); }};
}
void Mark::record(cudaStream_t stream) const {
  gpu::check(cudaEventRecord(event_.get(), stream), "cudaEventRecord");
}
void Mark::wait(cudaStream_t stream) const {
  gpu::check(cudaStreamWaitEvent(stream, event_.get(), 0), "cudaStreamWaitEvent");
}
void Mark::order(cudaStream_t first, cudaStream_t then) const {
  record(first);
  wait(then);
}

Workspace::Workspace(std::vector<gpu::Launch> calls) {
  for (gpu::Launch& query : calls) {
    gpu::check(gpu::enqueue(query), query.call.method->name);
    bytes_ = std::max(bytes_, query.bytes);
  }
  memory_ = gpu::device_memory(bytes_);
  if (bytes_ < gpu::header_bytes) return;
  gpu::check(gpu::prepare_workspace(memory_.get(), nullptr), "prepare");
  gpu::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

void Workspace::run(gpu::Launch launch, cudaStream_t stream) const {
  launch.workspace = memory_.get();
  launch.bytes = bytes_;
  launch.stream = stream;
  gpu::check(gpu::enqueue(launch), launch.call.method->name);
}

std::string validation_error(const Method& m, const FormatInfo& input, std::size_t size, const Layout& layout,
                             const Options& options) {
  if (m.backend != "cuda") return "the method does not run on a GPU; use the method of the same name @cuda";
  if (m.takes_keys) return "the method takes keys; use one that reduces vectors";
  if (m.has_result_per_element) return "the method returns a number per element; use one that reduces";
  if (m.promise < Promise::everywhere)
    return "its bits differ from run to run; use a method that promises everywhere";
  if (!is_listed(&input)) return "input is an unknown format; use one of samesum::formats";
  if (size >> 39 != 0)
    return "there are " + std::to_string(size) + " elements; fewer than 2^39 are supported";
  const Values x{input, no_input, layout.results() * layout.n};
  return samesum::validation_error(
      {.method = &m,
       .x = x,
       .y = m.inputs == 2 ? x : Values{},
       .layout = layout,
       .out = {m.result_format(input), no_output, layout.results() * static_cast<std::size_t>(m.results)},
       .options = options},
      false);
}

void Plan::Call::check_arguments(const Arguments& arguments) const {
  const auto& [x, y, out] = arguments;
  const Method& m = method_;
  ranks_.check_device();
  for (const auto& [name, all] : {std::pair{"x", &x}, std::pair{"y", &y}}) {
    if (all == &y && !y.is_given()) continue;
    if (const std::string wrong = samesum::validation_error(name, *all); !wrong.empty()) refuse(m, wrong);
    if (all->format->index != input_.index || all->size != size_)
      refuse(m, std::string{name} + " has " + std::to_string(all->size) + " elements of " +
                    std::string{all->format->name} + "; the plan is for " + std::to_string(size_) + " of " +
                    std::string{input_.name});
  }
  const Layout layout = layout_of_results();
  // Of the inputs only the number, the format and the place matter here.
  Values whole_x{input_, x.data, layout.results() * layout.n}, whole_y = y;
  if (y.is_given()) whole_y.size = whole_x.size;
  const bool in_place = may_work_in_place() && out.data == x.data && out.format != nullptr &&
                        is_listed(out.format) && out.format->index == input_.index && m.results == 1;
  if (in_place || whole_x.data == nullptr) whole_x.data = no_input;
  if (y.is_given() && y.data == nullptr) whole_y.data = no_input;
  std::string wrong = samesum::validation_error(
      {.method = &m, .x = whole_x, .y = whole_y, .layout = layout, .out = out}, false);
  if (wrong.empty() && !in_place) wrong = overlap_error(x, y, out);
  if (!wrong.empty()) refuse(m, wrong);
}

void Plan::Call::enqueue(const Arguments& arguments, cudaStream_t stream) const {
  const FloatingPointEnvironment environment;
  check_arguments(arguments);
  const auto& [x, y, out] = arguments;
  enqueue(static_cast<const std::byte*>(x.data), static_cast<const std::byte*>(y.data),
          static_cast<std::byte*>(out.data), stream);
}

Plan::Plan(std::unique_ptr<Call> call) : call_{std::move(call)} {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

Plan Plan::reduce(const Method& method, const FormatInfo& input, std::size_t size, ncclComm_t comm,
                  Options options) {
  const FloatingPointEnvironment environment;
  return Plan{plan_vector(method, input, size, comm, options)};
}
Plan Plan::all_reduce(const Method& method, const FormatInfo& input, std::size_t n, ncclComm_t comm,
                      Options options, std::size_t chunk_bytes) {
  const FloatingPointEnvironment environment;
  return Plan{plan_elements(method, input, n, std::nullopt, comm, options, chunk_bytes)};
}
Plan Plan::reduce_scatter(const Method& method, const FormatInfo& input, std::size_t n, std::size_t results,
                          ncclComm_t comm, Options options, std::size_t chunk_bytes) {
  const FloatingPointEnvironment environment;
  return Plan{plan_elements(method, input, n, results, comm, options, chunk_bytes)};
}

void Plan::enqueue(Values x, Values y, Results out, cudaStream_t stream) {
  call_->enqueue({x, y, out}, stream);
}

namespace {

/// The format of the elements; that of the method if x has an unknown one, which the call then refuses.
const FormatInfo& format_of(const Method& method, const Values& x) {
  return is_listed(x.format) ? *x.format : *method.format;
}

void run(const Plan::Call& call, const Arguments& arguments, cudaStream_t stream) {
  call.enqueue(arguments, stream);
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void reduce(const Method& method, const Arguments& arguments, ncclComm_t comm, cudaStream_t stream,
            const Options& options) {
  const FloatingPointEnvironment environment;
  const Values& x = arguments.x;
  run(*plan_vector(method, format_of(method, x), x.size, comm, options, &arguments), arguments, stream);
}

/// `results` as for plan_elements.
void reduce_elements(const Method& method, const Arguments& arguments, std::optional<std::size_t> results,
                     ncclComm_t comm, cudaStream_t stream, const Options& options) {
  const FloatingPointEnvironment environment;
  const Values& x = arguments.x;
  run(*plan_elements(method, format_of(method, x), x.size, results, comm, options, default_chunk_bytes,
                     &arguments),
      arguments, stream);
}

std::size_t results_in(const Method& method, const Results& out) {
  return out.size / static_cast<std::size_t>(method.results);
}

}  // namespace

void reduce(const Method& method, Values x, Values y, Results out, ncclComm_t comm, cudaStream_t stream,
            Options options) {
  reduce(method, Arguments{x, y, out}, comm, stream, options);
}
void all_reduce(const Method& method, Values x, Values y, Results out, ncclComm_t comm, cudaStream_t stream,
                Options options) {
  reduce_elements(method, {x, y, out}, std::nullopt, comm, stream, options);
}
void reduce_scatter(const Method& method, Values x, Values y, Results out, ncclComm_t comm,
                    cudaStream_t stream, Options options) {
  reduce_elements(method, {x, y, out}, results_in(method, out), comm, stream, options);
}

}  // namespace samesum::nccl
