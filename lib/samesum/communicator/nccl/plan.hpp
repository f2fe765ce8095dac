/// What the two kinds of plans have in common.
#pragma once

#include "samesum/backend/cuda/check.hpp"
#include "samesum/backend/cuda/methods.hpp"
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

/// The arguments of a call.
struct Arguments {
  const Values &x, &y;
  const Results& out;
};

/// The call of a plan.
class Plan::Call {
 public:
  Call(const Ranks& ranks, const Method& method, const FormatInfo& input, std::size_t size,
       const Options& options)
      : ranks_{ranks}, method_{method}, input_{input}, size_{size}, options_{options} {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Allocates memory for the call. What it has allocated before it throws is freed with this object.
  virtual void allocate() = 0;
  /// Throws std::invalid_argument if an argument is invalid.
  void check_arguments(const Arguments& arguments) const;
  /// Checks the arguments, and enqueues the call.
  void enqueue(const Arguments& arguments, cudaStream_t stream) const;

 protected:
  const Ranks& ranks() const { return ranks_; }
  const Method& method() const { return method_; }
  std::size_t element_bytes() const { return input_.bytes; }
  const FormatInfo& input() const { return input_; }
  const Options& options() const { return options_; }
  std::size_t inputs() const { return static_cast<std::size_t>(method_.inputs); }

  /// A layout with as many results as `out` must have.
  virtual Layout layout_of_results() const = 0;
  /// Whether `out` may be x itself.
  virtual bool may_work_in_place() const { return false; }
  virtual void enqueue(const std::byte* x, const std::byte* y, std::byte* out, cudaStream_t stream) const = 0;

 private:
  Ranks ranks_;
  const Method& method_;
  const FormatInfo& input_;
  std::size_t size_;
  Options options_;
};

/// Returns a message that names the invalid argument of a plan; empty if all are valid.
std::string validation_error(const Method& method, const FormatInfo& input, std::size_t size,
                             const Layout& layout, const Options& options);

/// Makes a call, allocates its memory, and checks its arguments if there are some, all of which may fail on
/// one rank: then all ranks throw Error. Frees memory only after the agreement, since cudaFree waits for the
/// device, and other ranks of this process may already wait for this one.
template <class AnyCall, class... Parameters>
std::unique_ptr<Plan::Call> agreed_call(const Ranks& ranks, const Arguments* arguments,
                                        const Parameters&... parameters) {
  std::unique_ptr<Plan::Call> call;
  ranks.agree(report_of([&] {
    call = std::make_unique<AnyCall>(ranks, parameters...);
    call->allocate();
    if (arguments) call->check_arguments(*arguments);
    return std::string_view{"the allocation of memory"};
  }));
  return call;
}

/// Plans a call on all ranks. Checks its arguments, too, if they are known.
std::unique_ptr<Plan::Call> plan_vector(const Method& method, const FormatInfo& input, std::size_t size,
                                        ncclComm_t comm, const Options& options,
                                        const Arguments* arguments = nullptr);
/// Element by element. `results`: of the block of this rank; all of them if it is empty.
std::unique_ptr<Plan::Call> plan_elements(const Method& method, const FormatInfo& input, std::size_t n,
                                          std::optional<std::size_t> results, ncclComm_t comm,
                                          const Options& options, std::size_t chunk_bytes,
                                          const Arguments* arguments = nullptr);

}  // namespace samesum::nccl
