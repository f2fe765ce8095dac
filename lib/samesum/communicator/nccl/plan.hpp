/// What the two kinds of plans have in common.
#pragma once

#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/backend/cuda/device/methods.hpp"
#include "samesum/communicator/nccl/ranks.hpp"

namespace samesum::nccl {

/// A stream of high priority: its kernels start while those of the caller's stream still have blocks to come.
using Stream = std::shared_ptr<CUstream_st>;
Stream new_stream();

/// An event that marks a place in a stream.
class Mark {
 public:
  Mark();
  /// Everything that is enqueued in `then` from now on waits for what is enqueued in `first`.
  void order(cudaStream_t first, cudaStream_t then) const;
  void record(cudaStream_t stream) const;
  void wait(cudaStream_t stream) const;

 private:
  std::shared_ptr<CUevent_st> event_;
};

/// A workspace for calls of one method, one after another.
class Workspace {
 public:
  /// Allocates and prepares the largest workspace of these calls, whose data need not exist yet.
  explicit Workspace(std::vector<gpu::Launch> calls);
  /// Enqueues a call, one of those or a smaller one with the same size of a workspace.
  void run(gpu::Launch launch, cudaStream_t stream) const;

 private:
  std::size_t bytes_ = gpu::size_if_none_needed;
  gpu::Memory memory_;
};

/// Sends bytes to other ranks, and receives some, as one operation.
class Messages {
 public:
  Messages(ncclComm_t comm, cudaStream_t stream) : comm_{comm}, stream_{stream} {
    check(ncclGroupStart(), "ncclGroupStart");
  }
  ~Messages() {
    if (!ended_) static_cast<void>(ncclGroupEnd());
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  void send(const std::byte* from, std::size_t bytes, std::size_t rank) const {
    if (bytes > 0) check(ncclSend(from, bytes, ncclChar, static_cast<int>(rank), comm_, stream_), "ncclSend");
  }
  void receive(std::byte* to, std::size_t bytes, std::size_t rank) const {
    if (bytes > 0) check(ncclRecv(to, bytes, ncclChar, static_cast<int>(rank), comm_, stream_), "ncclRecv");
  }
  /// Enqueues all of them.
  void enqueue() {
    ended_ = true;
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  ncclComm_t comm_;
  cudaStream_t stream_;
  bool ended_ = false;
};

/// Addresses of data that a size query does not read.
inline const void* const no_input = reinterpret_cast<const void*>(std::uintptr_t{16});
inline void* const no_output = reinterpret_cast<void*>(std::uintptr_t{1} << 62);

/// A plan: its call, without the data, and the memory that the call needs.
class Plan::Work {
 public:
  Work(const Ranks& ranks, const Call& call) : ranks_{ranks}, call_{call} {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Allocates memory for the call. What it has allocated before it throws is freed with this object.
  virtual void allocate() = 0;
  const Call& call() const { return call_; }
  /// Throws std::invalid_argument if the data of a call do not fit the plan.
  void check_data(const Call& call) const;
  /// Checks the data of a call, and enqueues it.
  void enqueue(const Call& call, cudaStream_t stream) const;

 protected:
  const Ranks& ranks() const { return ranks_; }
  const Method& method() const { return *call_.method; }
  std::size_t element_bytes() const { return input().bytes; }
  const FormatInfo& input() const { return *call_.x.format; }
  const Options& options() const { return call_.options; }
  std::size_t inputs() const { return static_cast<std::size_t>(method().inputs); }

  /// A layout with as many results as `out` must have.
  virtual Layout layout_of_results() const { return call_.layout; }
  /// Whether `out` may be x itself.
  virtual bool may_work_in_place() const { return false; }
  virtual void enqueue(const std::byte* x, const std::byte* y, std::byte* out, cudaStream_t stream) const = 0;

 private:
  Ranks ranks_;
  Call call_;
};

/// Returns a message that names the invalid argument of a plan; empty if all are valid. `layout` has the
/// results that this rank writes.
std::string validation_error(const Call& call, const Layout& layout);

/// Makes the work of a plan, allocates its memory, and checks the data of its call if they are known, all of
/// which may fail on one rank: then all ranks throw Error. Frees memory only after the agreement, since
/// cudaFree waits for the device, and other ranks of this process may already wait for this one.
template <class AnyWork, class... Parameters>
std::unique_ptr<Plan::Work> agreed_work(const Ranks& ranks, const Call& call, bool has_data,
                                        const Parameters&... parameters) {
  std::unique_ptr<Plan::Work> work;
  ranks.agree(report_of([&] {
    work = std::make_unique<AnyWork>(ranks, call, parameters...);
    work->allocate();
    if (has_data) work->check_data(call);
    return std::string_view{"the allocation of memory"};
  }));
  return work;
}

/// Plans a call on one vector over all ranks. Checks its data, too, if they are known.
std::unique_ptr<Plan::Work> plan_vector(const Call& call, ncclComm_t comm, bool has_data);
/// Element by element. `results`: of the block of this rank; all of them if it is empty.
std::unique_ptr<Plan::Work> plan_elements(const Call& call, std::optional<std::size_t> results,
                                          ncclComm_t comm, std::size_t chunk_bytes, bool has_data);

}  // namespace samesum::nccl
