#include "samesum/communicator/nccl/ranks.hpp"

#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/call/validation.hpp"

namespace samesum::nccl {
namespace {

/// Makes a device the current one, and at the end that of the caller again.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    gpu::check(cudaGetDevice(&before_), "cudaGetDevice");
    gpu::check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~CurrentDevice() { static_cast<void>(cudaSetDevice(before_)); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

/// Whether a CUDA call that may lack memory has succeeded. Clears the error otherwise.
bool succeeded(cudaError_t code) {
  if (code == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

/// A stream; the default stream, which needs no memory, if the device has none for another one.
std::shared_ptr<CUstream_st> stream_of_agreement() {
  cudaStream_t stream = nullptr;
  if (!succeeded(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return nullptr;
  return {stream, [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
}

/// Memory of the device, or of the host if the device has none left: NCCL takes either. cudaFree would wait
/// for the device, and other threads of this process might wait for it meanwhile; so it is from the pool.
gpu::Memory memory_of_agreement(std::size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  if (succeeded(cudaMallocAsync(&memory, bytes, stream)))
    return {memory, [stream](void* p) { static_cast<void>(cudaFreeAsync(p, stream)); }};
  gpu::check(cudaMallocHost(&memory, bytes), gpu::with_size("cudaMallocHost", bytes));
  return {memory, [](void* p) { static_cast<void>(cudaFreeHost(p)); }};
}

}  // namespace

void check(ncclResult_t code, const char* call) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  throw Error{std::string{"samesum: "} + call + " failed: " + ncclGetErrorString(code)};
}

Ranks::Ranks(ncclComm_t comm) : comm_{comm} {
  if (comm == nullptr) throw Error{"samesum: comm is null; pass a communicator of NCCL"};
  check(ncclCommUserRank(comm, &rank_), "ncclCommUserRank");
  check(ncclCommCount(comm, &size_), "ncclCommCount");
  check(ncclCommCuDevice(comm, &device_), "ncclCommCuDevice");
}

void Ranks::check_device() const {
  int current = 0;
  gpu::check(cudaGetDevice(&current), "cudaGetDevice");
  if (current != device_)
    throw std::invalid_argument("samesum: the current device is " + std::to_string(current) +
                                ", but that of comm is " + std::to_string(device_) + "; call cudaSetDevice(" +
                                std::to_string(device_) + ")");
}

std::vector<std::uint64_t> Ranks::agree(const Report& mine, std::uint64_t number) const {
  struct Entry {
    std::uint64_t number;
    Report report;
  };
  Entry entry{number, mine};
  std::vector<Entry> entries;
  std::vector<std::uint64_t> numbers;
  const Report of_memory = report_of([&] {
    entries.resize(count());
    numbers.reserve(count());
    return std::string_view{};
  });
  if (of_memory.failed && !mine.failed) entry.report = of_memory;

  const CurrentDevice device{device_};
  const std::shared_ptr<CUstream_st> stream = stream_of_agreement();
  const gpu::Memory memory = memory_of_agreement(count() * sizeof entry, stream.get());
  auto* const all = static_cast<Entry*>(memory.get());
  const auto copy = [&](void* to, const void* from, std::size_t n) {
    gpu::check(cudaMemcpyAsync(to, from, n * sizeof entry, cudaMemcpyDefault, stream.get()),
               "cudaMemcpyAsync");
  };
  copy(all + rank_, &entry, 1);
  check(ncclAllGather(all + rank_, all, sizeof entry, ncclChar, comm_, stream.get()), "ncclAllGather");
  copy(entries.data(), all, entries.size());
  gpu::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  if (of_memory.failed) throw std::bad_alloc{};

  for (const Entry& e : entries) {
    if (e.report.failed)
      throw Error{message_of_failure(static_cast<std::size_t>(&e - entries.data()), e.report)};
    numbers.push_back(e.number);
  }
  for (const Entry& e : entries)
    if (e.report.call != entries[0].report.call)
      throw Error{
          message_of_difference(entries[0].report, static_cast<std::size_t>(&e - entries.data()), e.report)};
  return numbers;
}

std::string description(std::string_view function, const Method& method, const FormatInfo& input,
                        const Options& options) {
  const std::string name{is_listed(&input) ? input.name : "an unknown format"};
  return description_of_call(std::string{function} + " of " + name, method, options);
}

}  // namespace samesum::nccl
