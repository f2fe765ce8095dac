/// One vector over all ranks: each rank reduces whole subtrees, and merges the states of all of them.
#include <algorithm>
#include <numeric>

#include "samesum/backend/cuda/tree/merge_subtrees.hpp"
#include "samesum/catalogue/state_call.hpp"
#include "samesum/communicator/nccl/plan.hpp"
#include "samesum/communicator/nccl/schedule.hpp"

namespace samesum::nccl {
namespace {

static_assert(most_tiles <= gpu::most_subtrees);

/// A copy in device memory. Waits for it.
template <class T> gpu::Memory uploaded(const std::vector<T>& from) {
  const gpu::Memory copy = gpu::device_memory(from.size() * sizeof(T));
  gpu::check(
      cudaMemcpyAsync(copy.get(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, nullptr),
      "cudaMemcpyAsync");
  gpu::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  return copy;
}

class VectorWork : public Plan::Work {
 public:
  VectorWork(const Ranks& ranks, const Call& call, std::span<const std::uint64_t> sizes)
      : Plan::Work{ranks, call},
        form_{*Code::of(method()).partial_form},
        schedule_{schedule_of(sizes, form_.leaf)},
        mine_{schedule_.subtrees[ranks.me()]},
        begin_{schedule_.begins[ranks.me()]},
        side_{new_stream()} {
    const auto me = ranks.rank();
    split_count_ = static_cast<std::size_t>(std::ranges::count(schedule_.split, me, &SplitTile::owner));
    sends_ = std::ranges::any_of(schedule_.split, [&](const SplitTile& tile) {
      return std::ranges::find(tile.parts, me, &SplitTile::Part::rank) != tile.parts.end();
    });
    largest_ = split_count_;
    for (std::size_t i = split_count_; i < mine_.size(); ++i)
      if (mine_[i].count > mine_[largest_].count) largest_ = i;
  }

  void allocate() override {
    place_ = uploaded(schedule_.place);
    if (form_.move_index) begins_ = uploaded(schedule_.begins);
    states_ = gpu::device_memory(ranks().count() * schedule_.states_per_rank * form_.state_bytes);
    std::size_t split_elements = 0;
    for (std::size_t i = 0; i < split_count_; ++i) split_elements += mine_[i].count;
    for (std::size_t i = 0; i < inputs(); ++i)
      split_.push_back(gpu::device_memory(split_elements * element_bytes()));
    std::vector<gpu::Launch> on_main, on_side;
    for (std::size_t i = 0; i < mine_.size(); ++i)
      (i == largest_ ? on_main : on_side).push_back(state_call(nullptr, nullptr, mine_[i].count, nullptr));
    if (!on_main.empty()) main_workspace_.emplace(on_main);
    if (!on_side.empty()) side_workspace_.emplace(on_side);
  }

 private:
  void enqueue(const std::byte* x, const std::byte* y, std::byte* out, cudaStream_t stream) const override {
    const bool forks = sends_ || side_workspace_;
    if (forks) fork_.order(stream, side_.get());
    if (sends_) exchange(x, y);
    std::size_t split_at = 0;
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      const Range& subtree = mine_[i];
      const bool is_split = i < split_count_;
      const auto place = [&](const std::byte* block, std::size_t input) {
        return is_split ? split_at_of(input, split_at) : block + (subtree.first - begin_) * element_bytes();
      };
      const gpu::Launch call =
          state_call(place(x, 0), y ? place(y, 1) : nullptr, subtree.count, state_at(ranks().me(), i));
      if (is_split) split_at += subtree.count;
      if (i == largest_)
        main_workspace_->run(call, stream);
      else
        side_workspace_->run(call, side_.get());
    }
    if (forks) join_.order(side_.get(), stream);
    if (ranks().size() > 1)
      check(ncclAllGather(state_at(ranks().me(), 0), states_.get(),
                          schedule_.states_per_rank * form_.state_bytes, ncclChar, ranks().comm(), stream),
            "ncclAllGather");
    gpu::SubtreeMerge merge{states_.get(),
                            static_cast<const std::int32_t*>(place_.get()),
                            static_cast<const std::uint64_t*>(begins_.get()),
                            static_cast<int>(schedule_.place.size()),
                            schedule_.n,
                            options().ddof,
                            options().grid.value_or(0),
                            out,
                            stream};
    Code::of(method()).merge_subtrees(merge);
    gpu::check(merge.error, method().name);
  }

  /// Sends the parts of this rank of split tiles, and assembles the tiles that it owns.
  void exchange(const std::byte* x, const std::byte* y) const {
    const std::byte* const blocks[] = {x, y};
    const auto at = [&](std::size_t input, const Range& part) {
      return blocks[input] + (part.first - begin_) * element_bytes();
    };
    const auto for_each_part =
        [&](auto visit) {  // the parts of a pair of ranks in the same order on both of them
          std::size_t split_at = 0;
          for (const SplitTile& tile : schedule_.split) {
            for (const SplitTile::Part& part : tile.parts)
              for (std::size_t input = 0; input < inputs(); ++input)
                visit(tile, part, input, split_at + (part.elements.first - tile.elements.first));
            if (tile.owner == ranks().rank()) split_at += tile.elements.count;
          }
        };
    const int me = ranks().rank();
    for_each_part(
        [&](const SplitTile& tile, const SplitTile::Part& part, std::size_t input, std::size_t place) {
          if (tile.owner == me && part.rank == me)
            gpu::check(
                cudaMemcpyAsync(split_at_of(input, place), at(input, part.elements),
                                part.elements.count * element_bytes(), cudaMemcpyDeviceToDevice, side_.get()),
                "cudaMemcpyAsync");
        });
    Messages messages{ranks().comm(), side_.get()};
    for_each_part(
        [&](const SplitTile& tile, const SplitTile::Part& part, std::size_t input, std::size_t place) {
          const std::size_t bytes = part.elements.count * element_bytes();
          if (tile.owner == me && part.rank != me)
            messages.receive(split_at_of(input, place), bytes, static_cast<std::size_t>(part.rank));
          if (tile.owner != me && part.rank == me)
            messages.send(at(input, part.elements), bytes, static_cast<std::size_t>(tile.owner));
        });
    messages.enqueue();
  }

  /// The call that writes the state of `count` elements to `state`. Without addresses, for a size query.
  gpu::Launch state_call(const void* x, const void* y, std::size_t count, void* state) const {
    const Values of_x{input(), x ? x : no_input, count}, of_y{input(), y ? y : no_input, count};
    gpu::Launch launch{.call = call_for_state(method(), of_x, inputs() == 2 ? of_y : Values{}, options()),
                       .as_state = true};
    launch.call.out.data = state;
    return launch;
  }

  std::byte* state_at(std::size_t rank, std::size_t i) const {
    return static_cast<std::byte*>(states_.get()) +
           (rank * schedule_.states_per_rank + i) * form_.state_bytes;
  }
  std::byte* split_at_of(std::size_t input, std::size_t element) const {
    return static_cast<std::byte*>(split_[input].get()) + element * element_bytes();
  }

  const PartialForm& form_;
  Schedule schedule_;
  std::vector<Range> mine_;
  std::uint64_t begin_;
  gpu::Memory place_, begins_, states_;
  std::vector<gpu::Memory> split_;  ///< for each input the split tiles that this rank owns
  std::size_t split_count_ = 0;
  bool sends_ = false;       ///< or receives parts of split tiles
  std::size_t largest_ = 0;  ///< the subtree that is reduced in the caller's stream
  std::optional<Workspace> main_workspace_, side_workspace_;
  Stream side_;
  Mark fork_, join_;
};

}  // namespace

std::unique_ptr<Plan::Work> plan_vector(const Call& call, ncclComm_t comm, bool has_data) {
  const Ranks ranks{comm};
  const Method& method = *call.method;
  const std::vector<std::uint64_t> sizes = ranks.agree(
      report_of([&] {
        ranks.check_device();
        const bool is_whole = is_vector(call.layout) && call.layout.n == call.x.size;
        std::string wrong = is_whole
                                ? validation_error(call, call.layout)
                                : "the layout is neither Layout::vector(x.size), for one vector over all "
                                  "ranks, nor Layout::axis(1, 1, x.size), for one result per element";
        if (wrong.empty()) {
          Partial{method, 0, call.options.grid};  // throws if the method has none, or needs a grid
          const Code& code = Code::of(method);
          if (!code.merge_subtrees)
            wrong = "no kernel merges partials in the order " + method.order + "; use the order tree";
          else if (code.partial_form->leaf == 0 && method.accumulator != Exact::name &&
                   ranks.count() > most_tiles)
            wrong = "comm has " + std::to_string(ranks.count()) + " ranks; at most 1024 are supported";
        }
        if (!wrong.empty()) refuse(method, wrong);
        return description("reduce", method, *call.x.format, call.options);
      }),
      call.x.size);
  return agreed_work<VectorWork>(ranks, call, has_data, sizes);
}

}  // namespace samesum::nccl
