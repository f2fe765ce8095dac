/// Vectors of all ranks, element by element: each rank gets blocks of all vectors, reduces them along the
/// axis of ranks, and keeps or spreads the results.
#include <algorithm>
#include <numeric>

#include "samesum/communicator/nccl/plan.hpp"

namespace samesum::nccl {
namespace {

/// What the ranks reduce of a chunk: consecutive elements of the vectors.
struct Block {
  std::size_t first, count;
};
using Chunk = std::vector<Block>;  // one block per rank

/// Blocks begin at multiples of that many elements, so that they are aligned if the vectors are.
constexpr std::size_t granularity = 64;

/// Chunks of n elements of about `size`, each in blocks that differ by at most the granularity.
std::vector<Chunk> chunks_of_all(std::size_t n, std::size_t ranks, std::size_t size) {
  std::vector<Chunk> chunks;
  const auto rounded = [](std::size_t count) {
    return (count + granularity - 1) / granularity * granularity;
  };
  const std::size_t of_chunk = rounded(std::max<std::size_t>(size / ranks, 1)) * ranks;
  for (std::size_t first = 0; first < n; first += of_chunk) {
    const std::size_t count = std::min(of_chunk, n - first), each = rounded((count + ranks - 1) / ranks);
    Chunk& chunk = chunks.emplace_back();
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t begin = std::min(count, r * each), end = std::min(count, (r + 1) * each);
      chunk.push_back({first + begin, end - begin});
    }
  }
  return chunks;
}

/// Chunks of consecutive blocks of these sizes.
std::vector<Chunk> chunks_of_blocks(std::span<const std::uint64_t> sizes, std::size_t size) {
  std::vector<Chunk> chunks;
  const std::size_t each = (std::max<std::size_t>(size / sizes.size(), 1) + granularity - 1) / granularity *
                           granularity,
                    longest = std::ranges::max(sizes);
  for (std::size_t at = 0; at < longest; at += each) {
    Chunk& chunk = chunks.emplace_back();
    std::size_t begin = 0;
    for (const std::uint64_t of_rank : sizes) {
      const std::size_t first = std::min<std::size_t>(at, of_rank);
      chunk.push_back({begin + first, std::min(each, of_rank - first)});
      begin += of_rank;
    }
  }
  return chunks;
}

class ElementsWork : public Plan::Work {
 public:
  /// `results`: of this rank, if each keeps a block of them; those of all ranks are `sizes`.
  ElementsWork(const Ranks& ranks, const Call& call, std::optional<std::size_t> results,
               std::span<const std::uint64_t> sizes, std::size_t chunk_bytes)
      : Plan::Work{ranks, call}, results_{results}, side_{new_stream()} {
    const std::size_t in_chunk = std::max<std::size_t>(chunk_bytes / input().bytes, 1);
    chunks_ =
        results ? chunks_of_blocks(sizes, in_chunk) : chunks_of_all(call.x.size, ranks.count(), in_chunk);
  }

  void allocate() override {
    std::size_t most = 0;
    std::vector<gpu::Launch> calls;
    for (const Chunk& chunk : chunks_) {
      const std::size_t count = mine(chunk).count;
      most = std::max(most, count);
      if (count > 0 && (calls.empty() || calls.back().call.layout.inner != count))
        calls.push_back(call_on(no_input, no_input, count, no_output));
    }
    for (std::size_t i = 0; i < 2 * inputs(); ++i)
      received_.push_back(gpu::device_memory(most * ranks().count() * element_bytes()));
    if (!calls.empty()) workspace_.emplace(calls);
  }

 private:
  Layout layout_of_results() const override { return Layout::axis(1, 1, results_.value_or(call().x.size)); }
  bool may_work_in_place() const override { return !results_; }

  /// Step s sends the blocks of chunk s to the ranks that reduce them, and the results of chunk s - 2 to all
  /// ranks, while chunk s - 1 is reduced: it was received in the step before. So both buffers are in use.
  void enqueue(const std::byte* x, const std::byte* y, std::byte* out, cudaStream_t stream) const override {
    const std::byte* const vectors[] = {x, y};
    const std::size_t steps = chunks_.size();
    start_.order(stream, side_.get());
    for (std::size_t s = 0; s < steps + 2; ++s) {
      if (s >= 2) reduced_[s % 2].wait(side_.get());
      {
        Messages messages{ranks().comm(), side_.get()};
        if (s < steps) send_blocks(messages, vectors, s);
        if (s >= 2 && !results_) send_results(messages, out, chunks_[s - 2]);
        messages.enqueue();
      }
      if (s >= steps) continue;
      arrived_.order(side_.get(), stream);
      reduce(vectors, out, s, stream);
      reduced_[s % 2].record(stream);
    }
    end_.order(side_.get(), stream);
  }

  std::byte* buffer(std::size_t step, std::size_t input) const {
    return static_cast<std::byte*>(received_[step % 2 * inputs() + input].get());
  }
  const Block& mine(const Chunk& chunk) const { return chunk[ranks().me()]; }

  /// The other ranks, each rank beginning with its neighbour, so that not all send to the same one.
  template <class Visit> void for_others(Visit visit) const {
    for (std::size_t i = 1; i < ranks().count(); ++i) visit((ranks().me() + i) % ranks().count());
  }
  void send_blocks(const Messages& messages, const std::byte* const* vectors, std::size_t step) const {
    const Chunk& chunk = chunks_[step];
    const std::size_t bytes = mine(chunk).count * element_bytes();
    for_others([&](std::size_t rank) {
      for (std::size_t input = 0; input < inputs(); ++input) {
        messages.send(vectors[input] + chunk[rank].first * element_bytes(),
                      chunk[rank].count * element_bytes(), rank);
        messages.receive(buffer(step, input) + rank * bytes, bytes, rank);
      }
    });
  }
  void send_results(const Messages& messages, std::byte* out, const Chunk& chunk) const {
    const std::size_t bytes = method().result_bytes();
    for_others([&](std::size_t rank) {
      messages.send(out + mine(chunk).first * bytes, mine(chunk).count * bytes, rank);
      messages.receive(out + chunk[rank].first * bytes, chunk[rank].count * bytes, rank);
    });
  }

  /// Reduces the block of this rank of a chunk along the axis of ranks.
  void reduce(const std::byte* const* vectors, std::byte* out, std::size_t step, cudaStream_t stream) const {
    const Block& block = mine(chunks_[step]);
    if (block.count == 0) return;
    const std::size_t bytes = block.count * element_bytes();
    for (std::size_t input = 0; input < inputs(); ++input)
      gpu::check(cudaMemcpyAsync(buffer(step, input) + ranks().me() * bytes,
                                 vectors[input] + block.first * element_bytes(), bytes,
                                 cudaMemcpyDeviceToDevice, stream),
                 "cudaMemcpyAsync");
    const std::size_t first = results_ ? block.first - mine(chunks_.front()).first : block.first;
    workspace_->run(call_on(buffer(step, 0), inputs() == 2 ? buffer(step, 1) : no_input, block.count,
                            out + first * method().result_bytes()),
                    stream);
  }
  gpu::Launch call_on(const void* x, const void* y, std::size_t count, void* out) const {
    const std::size_t rows = ranks().count();
    return {normalised({.method = &method(),
                        .x = {input(), x, rows * count},
                        .y = inputs() == 2 ? Values{input(), y, rows * count} : Values{},
                        .layout = Layout::axis(1, rows, count),
                        .out = {method().result_format(input()), out, count},
                        .options = options()})};
  }

  std::optional<std::size_t> results_;
  std::vector<Chunk> chunks_;
  std::vector<gpu::Memory>
      received_;  ///< for two chunks, of each input: the blocks of all ranks, in rank order
  std::optional<Workspace> workspace_;
  Stream side_;
  Mark start_, arrived_, reduced_[2], end_;
};

}  // namespace

std::unique_ptr<Plan::Work> plan_elements(const Call& call, std::optional<std::size_t> results,
                                          ncclComm_t comm, std::size_t chunk_bytes, bool has_data) {
  const Ranks ranks{comm};
  const Method& method = *call.method;
  const std::size_t n = call.x.size;
  const std::vector<std::uint64_t> sizes = ranks.agree(
      report_of([&] {
        ranks.check_device();
        std::string wrong = validation_error(call, Layout::axis(1, ranks.count(), results.value_or(n)));
        if (wrong.empty() && chunk_bytes == 0) wrong = "chunk_bytes is 0; it must be 1 or more";
        if (!wrong.empty()) refuse(method, wrong);
        const std::string function{results ? "reduce_scatter" : "all_reduce"};
        return description(function + " of " + std::to_string(n) + " elements", method, *call.x.format,
                           call.options) +
               ", chunks of " + std::to_string(chunk_bytes) + " bytes";
      }),
      results.value_or(0));
  const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (results && all != n)  // on all ranks alike
    throw Error{"samesum: " + method.name + ": the blocks of all ranks have room for " + std::to_string(all) +
                " results; they need " + std::to_string(n)};
  return agreed_work<ElementsWork>(ranks, call, has_data, results, sizes, chunk_bytes);
}

}  // namespace samesum::nccl
