#include "samesum/communicator/nccl/ranks.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "samesum/backend/cuda/check.hpp"
#include "samesum/operation/validation.hpp"

namespace samesum::nccl {
namespace {

/// What a rank tells the others. Longer texts are cut.
struct Report {
  std::uint64_t number;
  std::array<char, 248> call, error;
};

template <std::size_t size> void put(std::array<char, size>& to, std::string_view text) {
  std::ranges::copy(text.substr(0, size - 1), to.begin());
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
  const std::string wrong = message_of([&] { check_device(); });
  if (!wrong.empty()) throw Error{wrong};
}

void Ranks::check_device() const {
  int current = 0;
  gpu::check(cudaGetDevice(&current), "cudaGetDevice");
  if (current != device_)
    throw std::invalid_argument("samesum: the current device is " + std::to_string(current) +
                                ", but that of comm is " + std::to_string(device_) + "; call cudaSetDevice(" +
                                std::to_string(device_) + ")");
}

std::vector<std::uint64_t> Ranks::agree(std::string_view call, const std::string& error,
                                        std::uint64_t number) const {
  std::vector<Report> reports(count());
  Report& mine = reports[me()];
  mine.number = number;
  put(mine.call, call);
  put(mine.error, without_prefix(error));
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const std::shared_ptr<CUstream_st> owner{stream,
                                           [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
  // cudaFree would wait for the device, and other threads of this process might wait for it meanwhile.
  auto* const all = static_cast<Report*>(gpu::pool_memory(count() * sizeof(Report), nullptr, stream));
  const gpu::Memory freed{all, [stream](void* p) { static_cast<void>(cudaFreeAsync(p, stream)); }};
  gpu::check(cudaMemcpyAsync(all + rank_, &mine, sizeof mine, cudaMemcpyHostToDevice, stream),
             "cudaMemcpyAsync");
  check(ncclAllGather(all + rank_, all, sizeof mine, ncclChar, comm_, stream), "ncclAllGather");
  gpu::check(cudaMemcpyAsync(reports.data(), all, count() * sizeof mine, cudaMemcpyDeviceToHost, stream),
             "cudaMemcpyAsync");
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");

  const auto rank_of = [&](const auto& report) { return std::to_string(&report - reports.data()); };
  for (const Report& r : reports)
    if (r.error[0] != 0) throw Error{"samesum: rank " + rank_of(r) + ": " + r.error.data()};
  for (const Report& r : reports)
    if (r.call != reports[0].call)
      throw Error{std::string{"samesum: rank 0 plans "} + reports[0].call.data() + ", but rank " +
                  rank_of(r) + " plans " + r.call.data() + "; make the same plan on all ranks"};
  std::vector<std::uint64_t> numbers;
  for (const Report& r : reports) numbers.push_back(r.number);
  return numbers;
}

std::string description(std::string_view function, const Method& method, const FormatInfo& input,
                        const Options& options) {
  const std::string name{is_listed(&input) ? input.name : "an unknown format"};
  return description_of_call(std::string{function} + " of " + name, method, options);
}

}  // namespace samesum::nccl
