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

std::string validation_error(const Call& call, const Layout& layout) {
  const Method& m = *call.method;
  const std::size_t size = call.x.size;
  if (m.backend != "cuda") return "the method does not run on a GPU; use the method of the same name @cuda";
  if (m.takes_keys) return "the method takes keys; use one that reduces vectors";
  if (m.has_result_per_element) return "the method returns a number per element; use one that reduces";
  if (m.promise < Promise::everywhere)
    return "its bits differ from run to run; use a method that promises everywhere";
  if (!is_listed(call.x.format)) return "input is an unknown format; use one of samesum::formats";
  if (size >> 39 != 0)
    return "there are " + std::to_string(size) + " elements; fewer than 2^39 are supported";
  const FormatInfo& input = *call.x.format;
  const Values x{input, no_input, layout.results() * layout.n};
  return samesum::validation_error(
      {.method = &m,
       .x = x,
       .y = m.inputs == 2 ? x : Values{},
       .layout = layout,
       .out = {m.result_format(input), no_output, layout.results() * static_cast<std::size_t>(m.results)},
       .options = call.options},
      false);
}

void Plan::Work::check_data(const Call& call) const {
  const Method* const m = call.method;
  const Values &x = call.x, &y = call.y;
  const Results& out = call.out;
  ranks_.check_device();
  for (const auto& [name, all] : {std::pair{"x", &x}, std::pair{"y", &y}}) {
    if (all == &y && !y.is_given()) continue;
    if (const std::string wrong = samesum::validation_error(name, *all); !wrong.empty()) refuse(*m, wrong);
    if (all->format->index != input().index || all->size != call_.x.size)
      refuse(*m, std::string{name} + " has " + std::to_string(all->size) + " elements of " +
                     std::string{all->format->name} + "; the plan is for " + std::to_string(call_.x.size) +
                     " of " + std::string{input().name});
  }
  const Layout layout = layout_of_results();
  // Only the number, the format and the place of the inputs matter here.
  Values whole_x{input(), x.data, layout.results() * layout.n}, whole_y = y;
  if (y.is_given()) whole_y.size = whole_x.size;
  const bool in_place = may_work_in_place() && out.data == x.data && out.format != nullptr &&
                        is_listed(out.format) && out.format->index == input().index && m->results == 1;
  if (in_place || whole_x.data == nullptr) whole_x.data = no_input;
  if (y.is_given() && y.data == nullptr) whole_y.data = no_input;
  std::string wrong = samesum::validation_error(
      {.method = m, .x = whole_x, .y = whole_y, .layout = layout, .out = out}, false);
  if (wrong.empty() && !in_place) wrong = overlap_error(x, y, out);
  if (!wrong.empty()) refuse(*m, wrong);
}

void Plan::Work::enqueue(const Call& call, cudaStream_t stream) const {
  const FloatingPointEnvironment environment;
  check_data(call);
  enqueue(static_cast<const std::byte*>(call.x.data), static_cast<const std::byte*>(call.y.data),
          static_cast<std::byte*>(call.out.data), stream);
}

namespace {

/// Plans a call by its layout.
std::unique_ptr<Plan::Work> plan(const Call& call, ncclComm_t comm, std::size_t chunk_bytes, bool has_data) {
  const FloatingPointEnvironment environment;
  const Layout& l = call.layout;
  const bool by_elements = l.outer == 1 && l.n == 1 && l.inner == call.x.size && !is_vector(l);
  return by_elements ? plan_elements(call, std::nullopt, comm, chunk_bytes, has_data)
                     : plan_vector(call, comm, has_data);
}

void run(const Plan::Work& work, const Call& call, cudaStream_t stream) {
  work.enqueue(call, stream);
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/// Element by element; `results` as for plan_elements.
void run_elements(const Method& method, const Values& x, const Values& y, const Results& out,
                  std::optional<std::size_t> results, ncclComm_t comm, cudaStream_t stream,
                  const Options& options) {
  const FloatingPointEnvironment environment;
  const Call call{.method = &method,
                  .x = x,
                  .y = y,
                  .layout = Layout::axis(1, 1, x.size),
                  .out = out,
                  .options = options};
  run(*plan_elements(call, results, comm, default_chunk_bytes, true), call, stream);
}

}  // namespace

Plan::Plan(std::unique_ptr<Work> work) : work_{std::move(work)} {}
Plan::Plan(const Call& call, ncclComm_t comm, std::size_t chunk_bytes)
    : Plan{plan(call, comm, chunk_bytes, call.out.data != nullptr)} {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

Plan Plan::all_reduce(const Method& method, const FormatInfo& input, std::size_t n, ncclComm_t comm,
                      Options options, std::size_t chunk_bytes) {
  const FloatingPointEnvironment environment;
  const Call call = planned(method, input, n, Layout::axis(1, 1, n), options);
  return Plan{plan_elements(call, std::nullopt, comm, chunk_bytes, false)};
}
Plan Plan::reduce_scatter(const Method& method, const FormatInfo& input, std::size_t n, std::size_t results,
                          ncclComm_t comm, Options options, std::size_t chunk_bytes) {
  const FloatingPointEnvironment environment;
  const Call call = planned(method, input, n, Layout::axis(1, 1, n), options);
  return Plan{plan_elements(call, results, comm, chunk_bytes, false)};
}

void Plan::enqueue(cudaStream_t stream) { work_->enqueue(work_->call(), stream); }
void Plan::enqueue(Values x, Values y, Results out, cudaStream_t stream) {
  Call call = work_->call();
  call.x = x;
  call.y = y;
  call.out = out;
  work_->enqueue(call, stream);
}

void run(const Call& call, ncclComm_t comm, cudaStream_t stream) {
  run(*plan(call, comm, default_chunk_bytes, true), call, stream);
}

void all_reduce(const Method& method, Values x, Values y, Results out, ncclComm_t comm, cudaStream_t stream,
                Options options) {
  run_elements(method, x, y, out, std::nullopt, comm, stream, options);
}
void reduce_scatter(const Method& method, Values x, Values y, Results out, ncclComm_t comm,
                    cudaStream_t stream, Options options) {
  run_elements(method, x, y, out, out.size / static_cast<std::size_t>(method.results), comm, stream, options);
}

}  // namespace samesum::nccl
