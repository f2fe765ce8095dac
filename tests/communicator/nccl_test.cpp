/// Vectors that are spread over GPUs: one thread per GPU, one communicator over all of them.
#include "samesum/nccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

#include "backend/cuda_support.hpp"
#include "partial_support.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

int count_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  static_cast<void>(cudaGetLastError());
  return count;
}

#define SAMESUM_NEEDS_GPUS() \
  if (count_gpus() < 2) GTEST_SKIP() << "needs 2 GPUs, but there are " << count_gpus()

/// A rank in a thread of its own.
struct Rank {
  int rank, size;
  ncclComm_t comm;
  cudaStream_t stream;
  std::size_t me() const { return static_cast<std::size_t>(rank); }
};

/// One communicator over all GPUs of this process.
class Gpus {
 public:
  static Gpus& all() {
    static Gpus only;
    return only;
  }
  std::size_t count() const { return comms_.size(); }

  /// Runs work(rank, meet) in a thread per GPU; meet() waits for the other threads. Returns the messages of
  /// the exceptions that it throws, by rank.
  template <class Work> std::vector<std::string> run(Work work) {
    std::vector<std::string> messages(count());
    std::barrier meeting{static_cast<std::ptrdiff_t>(count())};
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < count(); ++r)
      threads.emplace_back([&, r] {
        succeed(cudaSetDevice(static_cast<int>(r)));
        try {
          work(Rank{static_cast<int>(r), static_cast<int>(count()), comms_[r], streams_[r]},
               [&] { meeting.arrive_and_wait(); });
        } catch (const std::exception& e) {
          messages[r] = *e.what() ? e.what() : "unknown error";
          meeting.arrive_and_drop();
        }
      });
    for (std::thread& thread : threads) thread.join();
    return messages;
  }

 private:
  Gpus() : comms_(static_cast<std::size_t>(count_gpus())), streams_(comms_.size()) {
    const ncclResult_t result = ncclCommInitAll(comms_.data(), count_gpus(), nullptr);
    if (result != ncclSuccess) throw std::runtime_error{ncclGetErrorString(result)};
    for (std::size_t r = 0; r < comms_.size(); ++r) {
      succeed(cudaSetDevice(static_cast<int>(r)));
      succeed(cudaStreamCreateWithFlags(&streams_[r], cudaStreamNonBlocking));
    }
    succeed(cudaSetDevice(0));
  }
  std::vector<ncclComm_t> comms_;
  std::vector<cudaStream_t> streams_;
};

/// Ends the program if this lives longer than 10 seconds: a rank then waits for another one for ever.
class InTime {
 public:
  InTime()
      : watch_{[this](const std::stop_token& ended) {
          std::unique_lock lock{mutex_};
          changed_.wait_for(lock, ended, std::chrono::seconds{10}, [] { return false; });
          if (ended.stop_requested()) return;
          std::cerr << "a rank hangs" << std::endl;
          std::_Exit(1);
        }} {}

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread watch_;
};

/// Takes the memory of the current device, but for about `left` bytes; all of it if that is 0.
class FullDevice {
 public:
  explicit FullDevice(std::size_t left) {
    std::size_t free = 0, total = 0;
    succeed(cudaMemGetInfo(&free, &total));
    for (std::size_t bytes = free; bytes >= 512;) {
      if (left > 0) {
        succeed(cudaMemGetInfo(&free, &total));
        if (free <= left) return;
        bytes = std::min(bytes, free - left);
      }
      void* memory = nullptr;
      if (cudaMalloc(&memory, bytes) == cudaSuccess) {
        taken_.emplace_back(memory, [](void* p) { static_cast<void>(cudaFree(p)); });
      } else {
        static_cast<void>(cudaGetLastError());
        bytes /= 2;
      }
    }
  }

 private:
  std::vector<std::shared_ptr<void>> taken_;
};

const std::vector<std::string> no_errors() { return std::vector<std::string>(Gpus::all().count()); }

Values part_of(const Values& all, std::size_t begin, std::size_t n) {
  return {*all.format, static_cast<const std::byte*>(all.data) + begin * all.format->bytes, n};
}

/// Uneven cuts of n elements; some blocks are empty.
std::vector<std::size_t> random_cuts(std::mt19937_64& random, std::size_t n) {
  std::vector<std::size_t> cuts{0, n};
  for (std::size_t r = 1; r < Gpus::all().count(); ++r)
    cuts.push_back(random() % 4 == 0 ? n * (random() % 2) : below(random, n + 1));
  std::ranges::sort(cuts);
  return cuts;
}

/// Results in device memory, with a pattern that a missing write leaves.
class DeviceResults {
 public:
  DeviceResults(const Method& m, const FormatInfo& input, std::size_t results)
      : bytes_{results * m.result_bytes()},
        memory_{device_memory(bytes_)},
        results_{m.result_format(input), memory_.get(), results * static_cast<std::size_t>(m.results)} {
    clear();
  }
  Results results() const { return results_; }
  void clear() const {
    succeed(cudaMemset(memory_.get(), 0xa5, bytes_));
    succeed(cudaDeviceSynchronize());
  }
  std::vector<std::byte> fetch(cudaStream_t stream) const {
    std::vector<std::byte> host(bytes_);
    succeed(cudaStreamSynchronize(stream));
    succeed(cudaMemcpy(host.data(), memory_.get(), bytes_, cudaMemcpyDeviceToHost));
    return host;
  }
  /// The first result.
  float first(cudaStream_t stream) const {
    float value;
    std::memcpy(&value, fetch(stream).data(), sizeof value);
    return value;
  }

 private:
  std::size_t bytes_;
  std::shared_ptr<std::byte> memory_;
  Results results_;
};

/// A sum that overflows its grid is NaN on a GPU; the CPU throws, and its results are NaN, too.
void reduce_on_cpu(const Method& m, const Values& x, const Values* y, const Layout& layout, Results out,
                   const Options& options) try {
  if (y)
    reduce(m, x, *y, layout, out, options);
  else
    reduce(m, x, layout, out, options);
} catch (const std::overflow_error&) {
}

std::vector<const Method*> methods_that_merge() {
  std::vector<const Method*> chosen;
  for (const Method* m : methods_with_partials("cuda"))
    if (Code::of(*m).merge_subtrees) chosen.push_back(m);
  return chosen;
}

// --- one vector over all GPUs ------------------------------------------------------------------------------

/// Reduces blocks of x on all GPUs. Returns the bytes of the results of each rank.
std::vector<std::vector<std::byte>> reduced_over_gpus(const Method& m, const Inputs& in,
                                                      const std::vector<std::size_t>& cuts) {
  std::vector<std::vector<std::byte>> all(Gpus::all().count());
  const std::vector<std::string> errors = Gpus::all().run([&](const Rank& r, auto meet) {
    const std::size_t begin = cuts[r.me()], n = cuts[r.me() + 1] - begin;
    const OnGpu x{part_of(in.x.values(), begin, n), begin % 3},
        y{m.inputs == 2 ? part_of(in.y.values(), begin, n) : Values{*in.x.values().format, nullptr, 0}};
    const DeviceResults out{m, *in.x.values().format, 1};
    meet();  // all memory is allocated before a rank waits for another one
    nccl::Plan plan = nccl::Plan::reduce(m, *in.x.values().format, n, r.comm,
                                         with_grid(m, {.ddof = double(m.results == 2)}));
    meet();
    if (m.inputs == 2)
      plan.enqueue(x.values(), y.values(), out.results(), r.stream);
    else
      plan.enqueue(x.values(), out.results(), r.stream);
    all[r.me()] = out.fetch(r.stream);
    meet();
  });
  EXPECT_EQ(errors, no_errors()) << m.name;
  return all;
}

TEST(AReductionOverGpus, HasTheBitsOfOneGpuAndOfTheCpu) {
  SAMESUM_NEEDS_GPUS();
  std::mt19937_64 random{21};
  int compared = 0;
  std::vector<std::size_t> lengths{1, 4097};
  if (!is_sanitized)
    lengths.insert(lengths.end(), {0, 100'003, 4'500'001});  // the last in tiles of two leaves
  for (const Method* m : methods_that_merge())
    for (const std::size_t n : lengths) {
      if ((n > 1'000'000 || is_sanitized) && m->format->name != "fp32") continue;
      const Inputs in = random_inputs(random, *m, n);
      const Options options = with_grid(*m, {.ddof = double(m->results == 2)});
      std::vector<std::byte> expected(m->result_bytes());
      const Values x = in.x.values(), y = in.y.values();
      reduce_on_cpu(find_on("cpu", *m), x, m->inputs == 2 ? &y : nullptr, Layout::vector(n),
                    {m->result_format(*x.format), expected.data(), static_cast<std::size_t>(m->results)},
                    options);
      succeed(cudaSetDevice(0));
      const OnGpu whole_x{x}, whole_y{y};
      const DeviceResults one{*m, *x.format, 1};
      if (m->inputs == 2)
        gpu::reduce(*m, whole_x.values(), whole_y.values(), Layout::vector(n), one.results(), nullptr,
                    nullptr, options);
      else
        gpu::reduce(*m, whole_x.values(), Layout::vector(n), one.results(), nullptr, nullptr, options);
      EXPECT_EQ(one.fetch(nullptr), expected) << m->name << " on one GPU, n = " << n;
      for (int repetition = 0; repetition < (n > 1'000'000 ? 1 : 2); ++repetition) {
        const std::vector<std::size_t> cuts = random_cuts(random, n);
        EXPECT_THAT(reduced_over_gpus(*m, in, cuts), Each(expected))
            << m->name << ", " << x.format->name << ", cuts " << ::testing::PrintToString(cuts);
        ++compared;
      }
    }
  EXPECT_GT(compared, is_sanitized ? 50 : 300);
}

TEST(AReductionOverGpus, HasTheBitsOfOneGpuForLongBlocksThatEndInsideLeaves) {
  SAMESUM_NEEDS_GPUS();
  SAMESUM_UNSANITIZED("it takes long");
  const std::size_t ranks = Gpus::all().count(), n = (std::size_t{1} << 26) + 12'345;
  std::vector<float> x(n);
  std::mt19937 random{22};
  for (float& e : x) e = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f;
  for (const char* name :
       {"exact/fp32", "tree/plain/fp32", "tree/kahan/fp32", "pairwise/plain/fp32",
        "pairwise/double_word/fp32", "norm/tree/fp32", "argmax/fp32", "moments/tree/fp32"}) {
    const Method& m = gpu::find(name);
    const DeviceResults one{m, format_info<fp32>(), 1};
    succeed(cudaSetDevice(0));
    const OnGpu whole{x};
    gpu::reduce(m, whole.values(), Layout::vector(n), one.results());
    const std::vector<std::byte> expected = one.fetch(nullptr);
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{123'457}}) {
      std::vector<std::vector<std::byte>> all(ranks);
      const auto errors = Gpus::all().run([&](const Rank& r, auto meet) {
        const auto cut = [&](std::size_t k) { return k == 0 ? 0 : k == ranks ? n : n / ranks * k + shift; };
        const std::span<const float> block = std::span{x}.subspan(cut(r.me()), cut(r.me() + 1) - cut(r.me()));
        const OnGpu mine{block};
        const DeviceResults out{m, format_info<fp32>(), 1};
        meet();
        nccl::Plan plan = nccl::Plan::reduce(m, format_info<fp32>(), block.size(), r.comm);
        meet();
        plan.enqueue(mine.values(), out.results(), r.stream);
        all[r.me()] = out.fetch(r.stream);
        meet();
      });
      EXPECT_EQ(errors, no_errors()) << name;
      EXPECT_THAT(all, Each(expected)) << name << ", shift " << shift;
    }
  }
}

// --- element by element ------------------------------------------------------------------------------------

TEST(VectorsOnGpus, ReducedElementByElementHaveTheBitsOfAMatrixOfThem) {
  SAMESUM_NEEDS_GPUS();
  std::mt19937_64 random{23};
  int compared = 0;
  const std::size_t ranks = Gpus::all().count();
  for (const Method& m : methods()) {
    const std::size_t n = 3001;
    const Layout over_ranks = Layout::axis(1, ranks, n);
    if (m.backend != "cuda" || m.promise < Promise::everywhere || !reduces_vectors(m) ||
        !m.accepts(*m.format, over_ranks) || (is_sanitized && m.format->name != "fp32"))
      continue;
    const Inputs in = random_inputs(random, m, ranks * n);
    const Values x = in.x.values(), y = in.y.values();
    if (!m.accepts(*x.format, over_ranks)) continue;
    const Options options = with_grid(m, {.ddof = double(m.results == 2)});
    std::vector<std::byte> expected(n * m.result_bytes());
    const FormatInfo* const of_results = m.result_format(*x.format);
    reduce_on_cpu(find_on("cpu", m), x, m.inputs == 2 ? &y : nullptr, over_ranks,
                  {of_results, expected.data(), n * static_cast<std::size_t>(m.results)}, options);
    // The last rank keeps the rest.
    const std::size_t each = n / (2 * ranks);
    std::vector<std::vector<std::byte>> whole(ranks), in_place(ranks), blocks(ranks);
    const auto errors = Gpus::all().run([&](const Rank& r, auto meet) {
      const std::size_t kept = r.me() + 1 == ranks ? n - each * r.me() : each;
      const OnGpu mine{part_of(x, r.me() * n, n)},
          other{m.inputs == 2 ? part_of(y, r.me() * n, n) : Values{*x.format, nullptr, 0}};
      const DeviceResults all{m, *x.format, n}, block{m, *x.format, kept};
      meet();
      nccl::Plan all_reduce =
                     nccl::Plan::all_reduce(m, *x.format, n, r.comm, options, 1000 * x.format->bytes),
                 reduce_scatter = nccl::Plan::reduce_scatter(m, *x.format, n, kept, r.comm, options,
                                                             300 * x.format->bytes);
      meet();
      const auto enqueue = [&](nccl::Plan& plan, const Results& out) {
        if (m.inputs == 2)
          plan.enqueue(mine.values(), other.values(), out, r.stream);
        else
          plan.enqueue(mine.values(), out, r.stream);
      };
      enqueue(all_reduce, all.results());
      enqueue(reduce_scatter, block.results());
      whole[r.me()] = all.fetch(r.stream);
      blocks[r.me()] = block.fetch(r.stream);
      if (m.inputs == 1 && m.results == 1 && of_results && of_results->index == x.format->index) {
        void* const data = const_cast<void*>(mine.values().data);
        all_reduce.enqueue(mine.values(), {of_results, data, n}, r.stream);
        in_place[r.me()].resize(expected.size());
        succeed(cudaStreamSynchronize(r.stream));
        succeed(cudaMemcpy(in_place[r.me()].data(), data, expected.size(), cudaMemcpyDeviceToHost));
      } else {
        in_place[r.me()] = expected;
      }
      meet();
    });
    EXPECT_EQ(errors, no_errors()) << m.name;
    EXPECT_THAT(whole, Each(expected)) << m.name << " of " << x.format->name << ": all_reduce";
    EXPECT_THAT(in_place, Each(expected)) << m.name << " of " << x.format->name << ": in place";
    std::vector<std::byte> joined;
    for (const auto& block : blocks) joined.insert(joined.end(), block.begin(), block.end());
    EXPECT_EQ(joined, expected) << m.name << " of " << x.format->name << ": reduce_scatter";
    ++compared;
  }
  EXPECT_GT(compared, is_sanitized ? 10 : 30);
}

// --- graphs ------------------------------------------------------------------------------------------------

TEST(AGraphOverGpus, GivesTheSameBitsInEachReplay) {
  SAMESUM_NEEDS_GPUS();
  const std::size_t ranks = Gpus::all().count(), n = 50'001;
  for (const char* name :
       {"exact/fp32", "tree/kahan/fp32", "fixed_point/fp32", "max/fp32", "mean/exact/fp32"}) {
    const Method& m = gpu::find(name);
    const Options options = with_grid(m);
    std::vector<std::vector<std::byte>> sums(ranks), elements(ranks), sums_again(ranks),
        elements_again(ranks);
    std::vector<std::byte> expected_sum(m.result_bytes()), expected_elements(n * m.result_bytes());
    const Array all{format_info<fp32>(), wide(ranks * n, 20, 24)};
    const Method& on_cpu = find_on("cpu", m);
    reduce(on_cpu, all.values(), Layout::vector(ranks * n), {m.format, expected_sum.data(), 1}, options);
    reduce(on_cpu, all.values(), Layout::axis(1, ranks, n), {m.format, expected_elements.data(), n}, options);
    const auto errors = Gpus::all().run([&](const Rank& r, auto meet) {
      const Values block = part_of(all.values(), r.me() * n, n);
      const OnGpu x{block};
      const DeviceResults sum{m, *block.format, 1}, each{m, *block.format, n};
      meet();
      nccl::Plan reduce = nccl::Plan::reduce(m, *block.format, n, r.comm, options),
                 all_reduce = nccl::Plan::all_reduce(m, *block.format, n, r.comm, options, 40'000);
      meet();
      reduce.enqueue(x.values(), sum.results(), r.stream);
      all_reduce.enqueue(x.values(), each.results(), r.stream);
      sums[r.me()] = sum.fetch(r.stream);
      elements[r.me()] = each.fetch(r.stream);
      meet();
      const Graph graph{r.stream, [&] {
                          reduce.enqueue(x.values(), sum.results(), r.stream);
                          all_reduce.enqueue(x.values(), each.results(), r.stream);
                        }};
      for (int repetition = 0; repetition < 3; ++repetition) {
        sum.clear();
        each.clear();
        meet();
        graph.replay();
        sums_again[r.me()] = sum.fetch(r.stream);
        elements_again[r.me()] = each.fetch(r.stream);
        EXPECT_EQ(sums_again[r.me()], expected_sum) << name << ", replay " << repetition;
        EXPECT_EQ(elements_again[r.me()], expected_elements) << name << ", replay " << repetition;
        meet();
      }
    });
    EXPECT_EQ(errors, no_errors()) << name;
    EXPECT_THAT(sums, Each(expected_sum)) << name;
    EXPECT_THAT(elements, Each(expected_elements)) << name;
  }
}

// --- errors ------------------------------------------------------------------------------------------------

std::string last_rank() { return "rank " + std::to_string(Gpus::all().count() - 1); }

/// Expects that work(rank, meet) throws on all ranks in time, with one message that contains the words.
template <class Work> void throws_on_all_ranks(const std::string& words, Work work) {
  const InTime in_time;
  const auto errors = Gpus::all().run(work);
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("samesum: rank "), HasSubstr(words))));
  for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
}
/// Expects that call(rank, whether it is the last one) throws an error with `words` on all ranks.
template <class Call> void refused(const std::string& words, Call call) {
  throws_on_all_ranks(words, [&](const Rank& r, auto) { call(r, r.rank + 1 == r.size); });
}

TEST(APlanOverGpus, IsRefusedOnAllRanksIfOneIsWrong) {
  SAMESUM_NEEDS_GPUS();
  const Method &tree = gpu::find("tree/plain/fp32"), &kahan = gpu::find("tree/kahan/fp32");
  const FormatInfo& f = format_info<fp32>();
  const std::string last = last_rank();
  refused(last + " calls reduce of fp32 with sum/tree/kahan/fp32",
          [&](const Rank& r, bool odd) { nccl::Plan::reduce(odd ? kahan : tree, f, 10, r.comm); });
  refused(last + " calls reduce of fp16 with sum/tree/plain/fp32", [&](const Rank& r, bool odd) {
    nccl::Plan::reduce(tree, odd ? format_info<fp16>() : f, 10, r.comm);
  });
  refused("all_reduce of 11 elements",
          [&](const Rank& r, bool odd) { nccl::Plan::all_reduce(tree, f, odd ? 11 : 10, r.comm); });
  refused("grid -3", [&](const Rank& r, bool odd) {
    nccl::Plan::reduce(gpu::find("fixed_point/fp32"), f, 10, r.comm, {.grid = odd ? -3 : -4});
  });
  refused(
      last +
          ": sum/serial/plain/fp32@cuda: no kernel merges partials in the order serial; use the order tree",
      [&](const Rank& r, bool odd) {
        nccl::Plan::reduce(odd ? gpu::find("serial/plain/fp32") : tree, f, 10, r.comm);
      });
  refused(last + ": sum/tree/plain/fp32@cpu: the method does not run on a GPU", [&](const Rank& r, bool odd) {
    nccl::Plan::reduce(odd ? find("tree/plain/fp32@cpu") : tree, f, 10, r.comm);
  });
  refused("run to run",
          [&](const Rank& r, bool) { nccl::Plan::reduce(gpu::find("atomic/plain/fp32"), f, 10, r.comm); });
  refused("needs a grid",
          [&](const Rank& r, bool) { nccl::Plan::reduce(gpu::find("fixed_point/fp32"), f, 10, r.comm); });
  refused("number per element", [&](const Rank& r, bool) {
    nccl::Plan::all_reduce(gpu::find("cumsum/exact/fp32"), f, 10, r.comm);
  });
  refused("chunk_bytes is 0",
          [&](const Rank& r, bool) { nccl::Plan::all_reduce(tree, f, 10, r.comm, {}, 0); });
  EXPECT_THAT(
      Gpus::all().run([&](const Rank& r, auto) { nccl::Plan::reduce_scatter(tree, f, 10, 1, r.comm); }),
      Each(HasSubstr("they need 10")));
  EXPECT_THAT(Gpus::all().run([&](const Rank&, auto) { nccl::Plan::reduce(tree, f, 10, nullptr); }),
              Each(HasSubstr("comm is null")));
  // The current device is another one on all ranks, or on the last one.
  for (const bool on_all : {true, false}) {
    const int rank = on_all ? 0 : static_cast<int>(Gpus::all().count()) - 1;
    refused("rank " + std::to_string(rank) + ": the current device is", [&](const Rank& r, bool odd) {
      const int device = (r.rank + (on_all || odd)) % r.size;
      succeed(cudaSetDevice(device));
      try {
        nccl::Plan::reduce(tree, f, 10, r.comm);
      } catch (const nccl::Error& e) {
        int current = -1;
        succeed(cudaGetDevice(&current));
        EXPECT_EQ(current, device);
        EXPECT_THAT(e.what(), HasSubstr("call cudaSetDevice(" + std::to_string(rank) + ")"));
        throw;
      }
    });
  }
}

TEST(APlanOverGpus, IsRefusedOnAllRanksIfOneHasNoMemory) {
  SAMESUM_NEEDS_GPUS();
  const Method& tree = gpu::find("tree/plain/fp32");
  const FormatInfo& f = format_info<fp32>();
  constexpr std::size_t n = std::size_t{1} << 28;
  const auto sum_has_its_bits = [&](const Rank& r) {
    const OnGpu x{std::vector<float>(100, 1)};
    const DeviceResults out{tree, f, 1};
    nccl::reduce(tree, x.values(), out.results(), r.comm, r.stream);
    EXPECT_EQ(out.first(r.stream), static_cast<float>(100 * r.size));
  };
  EXPECT_EQ(Gpus::all().run([&](const Rank& r, auto) { sum_has_its_bits(r); }), no_errors());
  for (const std::size_t left : {std::size_t{64} << 20, std::size_t{0}}) {
    // `call` needs little memory on the other ranks, and none that only the last one has taken before.
    const auto lacks_memory = [&](auto call) {
      throws_on_all_ranks("out of memory", [&](const Rank& r, auto meet) {
        const OnGpu x{std::vector<float>(100, 1)};
        const DeviceResults out{tree, f, 100};
        std::optional<FullDevice> full;
        if (r.rank + 1 == r.size) full.emplace(left);
        meet();  // all memory is allocated before a rank waits for another one
        try {
          call(r, x.values(), out.results());
        } catch (const nccl::Error& e) {
          EXPECT_THAT(e.what(), HasSubstr(last_rank() + ": "));
          throw;
        }
      });
    };
    lacks_memory([&](const Rank& r, auto, auto) { nccl::Plan::all_reduce(tree, f, n, r.comm); });
    lacks_memory([&](const Rank& r, auto, auto) {
      const auto ranks = static_cast<std::size_t>(r.size);
      nccl::Plan::reduce_scatter(tree, f, n, r.rank == 0 ? n - (ranks - 1) * (n / ranks) : n / ranks, r.comm);
    });
    if (left > 0) continue;  // these need little
    lacks_memory([&](const Rank& r, auto, auto) { nccl::Plan::reduce(tree, f, 100'000, r.comm); });
    lacks_memory(
        [&](const Rank& r, auto, auto) { nccl::Plan::reduce(gpu::find("exact/fp32"), f, 5, r.comm); });
    lacks_memory(
        [&](const Rank& r, Values x, Results out) { nccl::all_reduce(tree, x, out, r.comm, r.stream); });
    lacks_memory([&](const Rank& r, Values x, Results out) {
      out.size = 1;
      nccl::reduce(tree, x, out, r.comm, r.stream);
    });
  }
  // After errors the next call is a call like any other.
  EXPECT_EQ(Gpus::all().run([&](const Rank& r, auto) { sum_has_its_bits(r); }), no_errors());
}

TEST(ACallThatWaits, IsRefusedOnAllRanksIfOneHasOtherArguments) {
  SAMESUM_NEEDS_GPUS();
  const Method &tree = gpu::find("tree/plain/fp32"), &dot = gpu::find("dot/tree/plain/fp32");
  const FormatInfo& f = format_info<fp32>();
  const std::size_t ranks = Gpus::all().count(), n = 8 * ranks;
  const auto with_arrays = [&](const std::string& words, auto call) {
    throws_on_all_ranks(last_rank() + ": " + words, [&](const Rank& r, auto meet) {
      const OnGpu x{std::vector<float>(n, 1)}, y{std::vector<float>(n, 1)};
      const DeviceResults out{tree, f, n};
      meet();
      call(r, r.rank + 1 == r.size, x.values(), y.values(), out.results());
    });
  };
  const auto first = [](Results out, std::size_t count) {
    out.size = count;
    return out;
  };
  const auto inside = [&](Values x, std::size_t begin, std::size_t count) {
    return Results{&f, static_cast<float*>(const_cast<void*>(x.data)) + begin, count};
  };
  with_arrays("sum/tree/plain/fp32@cuda: x is null",
              [&](const Rank& r, bool odd, Values x, Values, Results out) {
                if (odd) x.data = nullptr;
                nccl::reduce(tree, x, first(out, 1), r.comm, r.stream);
              });
  with_arrays("sum/tree/plain/fp32@cuda: out has room for 2 results",
              [&](const Rank& r, bool odd, Values x, Values, Results out) {
                nccl::reduce(tree, x, first(out, odd ? 2 : 1), r.comm, r.stream);
              });
  with_arrays("sum/tree/plain/fp32@cuda: out has room for 3 results",
              [&](const Rank& r, bool odd, Values x, Values, Results out) {
                nccl::all_reduce(tree, x, first(out, odd ? 3 : n), r.comm, r.stream);
              });
  with_arrays("dot/tree/plain/fp32@cuda: y has",
              [&](const Rank& r, bool odd, Values x, Values y, Results out) {
                if (odd) --y.size;
                nccl::all_reduce(dot, x, y, out, r.comm, r.stream);
              });
  with_arrays("dot/tree/plain/fp32@cuda: the method takes two inputs",
              [&](const Rank& r, bool odd, Values x, Values y, Results out) {
                if (odd)
                  nccl::reduce(dot, x, first(out, 1), r.comm, r.stream);
                else
                  nccl::reduce(dot, x, y, first(out, 1), r.comm, r.stream);
              });
  // `out` overlaps x or y: at the elements that the rank keeps, behind them, at the last one.
  for (const std::size_t begin : {std::size_t{0}, std::size_t{5}, std::size_t{9}, n - 1}) {
    with_arrays("sum/tree/plain/fp32@cuda: out overlaps x",
                [&](const Rank& r, bool odd, Values x, Values, Results out) {
                  nccl::reduce_scatter(tree, x, odd ? inside(x, begin, 8) : first(out, 8), r.comm, r.stream);
                });
    with_arrays("dot/tree/plain/fp32@cuda: out overlaps y", [&](const Rank& r, bool odd, Values x, Values y,
                                                                Results out) {
      nccl::reduce_scatter(dot, x, y, odd ? inside(y, begin, 8) : first(out, 8), r.comm, r.stream);
    });
    if (begin == 0) continue;  // all_reduce may work in place
    with_arrays("sum/tree/plain/fp32@cuda: out overlaps x",
                [&](const Rank& r, bool odd, Values x, Values, Results out) {
                  nccl::all_reduce(tree, x, odd ? inside(x, begin, n) : out, r.comm, r.stream);
                });
  }
}

TEST(ACallOverGpus, RefusesOtherArgumentsThanThoseOfItsPlan) {
  SAMESUM_NEEDS_GPUS();
  const Method &tree = gpu::find("tree/plain/fp32"), &dot = gpu::find("dot/tree/plain/fp32");
  const auto errors = Gpus::all().run([&](const Rank& r, auto meet) {
    const OnGpu x{std::vector<float>(100, 1)};
    const DeviceResults out{tree, format_info<fp32>(), 1}, many{tree, format_info<fp32>(), 100};
    const Values all = x.values(), fewer = part_of(all, 0, 99);
    meet();
    nccl::Plan plan = nccl::Plan::reduce(tree, format_info<fp32>(), 100, r.comm),
               of_two = nccl::Plan::reduce(dot, format_info<fp32>(), 100, r.comm),
               elements = nccl::Plan::all_reduce(tree, format_info<fp32>(), 100, r.comm),
               shares = nccl::Plan::reduce_scatter(tree, format_info<fp32>(), 100,
                                                   r.rank == 0 ? std::size_t{100} - 10 * (r.size - 1) : 10,
                                                   r.comm);
    const auto refused = [&](const std::string& words, auto call) {
      try {
        call();
        ADD_FAILURE() << "not refused: " << words;
      } catch (const std::invalid_argument& e) {
        EXPECT_THAT(e.what(), HasSubstr(words));
      }
    };
    refused("x has 99 elements of fp32; the plan is for 100 of fp32",
            [&] { plan.enqueue(fewer, out.results(), r.stream); });
    refused("x is null", [&] {
      plan.enqueue(Values{format_info<fp32>(), nullptr, 100}, out.results(), r.stream);
    });
    refused("out has room for 100 results", [&] { plan.enqueue(all, many.results(), r.stream); });
    refused("out has room for 1 results", [&] { elements.enqueue(all, out.results(), r.stream); });
    refused("y has 99 elements", [&] { of_two.enqueue(all, fewer, out.results(), r.stream); });
    refused("", [&] { of_two.enqueue(all, out.results(), r.stream); });
    refused("overlap", [&] {
      const auto* const data = static_cast<const float*>(all.data);
      plan.enqueue(all, {&format_info<fp32>(), const_cast<float*>(data + 5), 1}, r.stream);
    });
    refused("out overlaps x", [&] {  // behind the elements of which this rank keeps the results
      const auto* const data = static_cast<const float*>(all.data);
      const std::size_t kept = r.rank == 0 ? std::size_t{100} - 10 * (r.size - 1) : 10;
      shares.enqueue(all, {&format_info<fp32>(), const_cast<float*>(data + 99), kept}, r.stream);
    });
    meet();
    // After errors the next call is a call like any other.
    plan.enqueue(all, out.results(), r.stream);
    EXPECT_EQ(out.first(r.stream), static_cast<float>(100 * r.size));
    meet();
  });
  EXPECT_EQ(errors, no_errors());
}

TEST(ACallThatWaits, HasTheResultsOfAPlan) {
  SAMESUM_NEEDS_GPUS();
  const auto errors = Gpus::all().run([&](const Rank& r, auto) {
    const std::size_t n = 1000;
    const OnGpu x{std::vector<float>(n, static_cast<float>(r.rank + 1))};
    const float ranks = static_cast<float>(r.size), total = ranks * (ranks + 1) / 2;
    const Method &exact = gpu::find("exact/fp32"), &dot = gpu::find("dot/exact/fp32");
    const DeviceResults one{exact, format_info<fp32>(), 1}, all{exact, format_info<fp32>(), n},
        block{exact, format_info<fp32>(), r.rank == 0 ? n : 0};
    nccl::reduce(exact, x.values(), one.results(), r.comm, r.stream);
    EXPECT_EQ(one.first(nullptr), static_cast<float>(n) * total);
    nccl::reduce(dot, x.values(), x.values(), one.results(), r.comm, r.stream);
    EXPECT_EQ(one.first(nullptr), static_cast<float>(n) * ranks * (ranks + 1) * (2 * ranks + 1) / 6);
    nccl::all_reduce(exact, x.values(), all.results(), r.comm, r.stream);
    EXPECT_EQ(all.first(nullptr), total);
    nccl::reduce_scatter(exact, x.values(), block.results(), r.comm, r.stream);
    if (r.rank == 0) {
      EXPECT_EQ(block.first(nullptr), total);
    }
  });
  EXPECT_EQ(errors, no_errors());
}

TEST(APlanOfACall, ReducesWhatTheLayoutSaysWithTheAddressesOfTheCall) {
  SAMESUM_NEEDS_GPUS();
  const auto errors = Gpus::all().run([&](const Rank& r, auto) {
    const std::size_t n = 1000;
    const OnGpu x{std::vector<float>(n, static_cast<float>(r.rank + 1))};
    const float ranks = static_cast<float>(r.size), total = ranks * (ranks + 1) / 2;
    const Method& tree = gpu::find("tree/fp32");
    const DeviceResults one{tree, format_info<fp32>(), 1}, all{tree, format_info<fp32>(), n};
    const auto call = [&](const Layout& layout, const DeviceResults& out) {
      return Call{.method = &tree, .x = x.values(), .layout = layout, .out = out.results()};
    };
    nccl::Plan vector{call(Layout::vector(n), one), r.comm};
    vector.enqueue(r.stream);
    EXPECT_EQ(one.first(r.stream), static_cast<float>(n) * total);
    nccl::Plan elements{call(Layout::axis(1, 1, n), all), r.comm};
    elements.enqueue(r.stream);
    EXPECT_EQ(all.first(r.stream), total);
    nccl::run(call(Layout::axis(1, 1, n), all), r.comm, r.stream);
    EXPECT_EQ(all.first(r.stream), total);
    EXPECT_THROW((nccl::Plan{call(Layout::rows(2, n / 2), all), r.comm}), nccl::Error);
  });
  EXPECT_EQ(errors, no_errors());
}

}  // namespace
}  // namespace samesum
