/// How fast are reductions over several GPUs, beside those of one GPU and beside ncclAllReduce?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "harness/bench.hpp"
#include "harness/text.hpp"
#include "samesum/backend/cuda/device/check.hpp"
#include "samesum/nccl.hpp"

namespace {

using namespace samesum;
using harness::left;
using harness::right;
using Json = nlohmann::ordered_json;

void check(cudaError_t code, const char* call) { gpu::check(code, call); }
void check(ncclResult_t code, const char* call) {
  if (code != ncclSuccess)
    throw std::runtime_error{std::string{call} + " failed: " + ncclGetErrorString(code)};
}

struct Arguments {
  int gpus = 0, log2_vector = 30, log2_elements = 28, repeats = 7, calls = 10;
  std::vector<int> chunks{256};
  std::string parts = "vector,elements,parts";
  bool json = false;
  bool measures(const std::string& part) const { return parts.find(part) != parts.npos; }
};

// --- ranks -------------------------------------------------------------------------------------------------

/// A rank in a thread of its own.
struct Rank {
  int rank;
  ncclComm_t comm;
  cudaStream_t stream;
  std::barrier<>& meeting;
  std::size_t me() const { return static_cast<std::size_t>(rank); }
  void meet() const { meeting.arrive_and_wait(); }
};

class Gpus {
 public:
  explicit Gpus(int count) : comms_(static_cast<std::size_t>(count)), streams_(comms_.size()) {
    check(ncclCommInitAll(comms_.data(), count, nullptr), "ncclCommInitAll");
    for (std::size_t r = 0; r < comms_.size(); ++r) {
      check(cudaSetDevice(static_cast<int>(r)), "cudaSetDevice");
      check(cudaStreamCreateWithFlags(&streams_[r], cudaStreamNonBlocking), "cudaStreamCreate");
    }
    check(cudaSetDevice(0), "cudaSetDevice");
  }
  std::size_t count() const { return comms_.size(); }

  /// Runs work(rank) in a thread per GPU. An error ends the program, since the other ranks wait.
  template <class Work> void run(Work work) {
    std::barrier<> meeting{static_cast<std::ptrdiff_t>(count())};
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < count(); ++r)
      threads.emplace_back([&, r] {
        try {
          check(cudaSetDevice(static_cast<int>(r)), "cudaSetDevice");
          work(Rank{static_cast<int>(r), comms_[r], streams_[r], meeting});
        } catch (const std::exception& e) {
          std::cerr << "several_gpus: rank " << r << ": " << e.what() << std::endl;
          std::_Exit(2);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<ncclComm_t> comms_;
  std::vector<cudaStream_t> streams_;
};

// --- data --------------------------------------------------------------------------------------------------

/// Elements repeat after that many, a number that is no multiple of a leaf.
constexpr std::size_t period = 1'000'003;

const std::vector<float>& pattern() {
  static const std::vector<float> all = [] {
    std::vector<float> x(2 * period);
    std::mt19937_64 random{1};
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < period; ++i) x[i] = x[i + period] = normal(random);
    return x;
  }();
  return all;
}

/// Elements first, first + 1, … of the pattern in the memory of the current GPU.
class Elements {
 public:
  Elements(std::uint64_t first, std::size_t n) : memory_{gpu::device_memory(n * sizeof(float))}, n_{n} {
    auto* const x = static_cast<float*>(memory_.get());
    const std::size_t begin = std::min(n, period);
    check(cudaMemcpy(x, pattern().data() + first % period, begin * sizeof(float), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    for (std::size_t done = begin; done < n; done *= 2)
      check(cudaMemcpy(x + done, x, std::min(done, n - done) * sizeof(float), cudaMemcpyDeviceToDevice),
            "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  Values values() const { return {format_info<fp32>(), memory_.get(), n_}; }
  float* data() const { return static_cast<float*>(memory_.get()); }

 private:
  gpu::Memory memory_;
  std::size_t n_;
};

std::vector<std::uint32_t> fetched(const float* x, std::size_t n, cudaStream_t stream) {
  std::vector<std::uint32_t> bits(n);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check(cudaMemcpy(bits.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return bits;
}

// --- time --------------------------------------------------------------------------------------------------

/// Seconds of a call: `calls` of them follow each other in the stream, and the median of the repeats counts.
template <class Enqueue>
double seconds(const Arguments& a, cudaStream_t stream, const std::function<void()>& meet, Enqueue enqueue) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  enqueue();
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  std::vector<double> all;
  for (int repeat = 0; repeat < a.repeats; ++repeat) {
    meet();
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    for (int call = 0; call < a.calls; ++call) enqueue();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    all.push_back(static_cast<double>(milliseconds) / 1000 / a.calls);
  }
  meet();
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

// --- tables ------------------------------------------------------------------------------------------------

std::string decimal(double x, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

bool all_right = true;

void report(const Arguments& a, const Json& row, const std::string& line) {
  std::cout << (a.json ? row.dump() : line) << std::endl;
  if (row.contains("same_bits") && row["same_bits"] == false) all_right = false;
}
void print(const Arguments& a, const std::string& line) {
  if (!a.json) std::cout << line << std::endl;
}

const char* const vector_methods[] = {"exact/fp32", "tree/plain/fp32", "tree/kahan/fp32",
                                      "pairwise/plain/fp32"};

/// One vector over all GPUs. Blocks differ from 2^E by `shift` elements.
void measure_vector(const Arguments& a, Gpus& gpus, std::size_t shift) {
  const std::size_t ranks = gpus.count(), each = std::size_t{1} << a.log2_vector, n = ranks * each - 77;
  const auto begin = [&](std::size_t r) { return r == 0 ? 0 : r == ranks ? n : r * each + shift; };
  print(a, "reduce of " + std::to_string(n) + " fp32, blocks of 2^" + std::to_string(a.log2_vector) + " + " +
               std::to_string(shift) + " elements");
  print(a, left("", 22) + right("1 GPU, us", 11) + right("all, us", 11) + right("speedup", 9) +
               right("us + 1 GPU / P", 16) + right("bits", 7));
  for (const char* name : vector_methods) {
    const Method& m = gpu::find(name);
    double one = 0;
    std::vector<std::uint32_t> expected;
    {
      check(cudaSetDevice(0), "cudaSetDevice");
      const Elements x{0, n};
      const Elements out{0, 1};
      const Layout layout = Layout::vector(n);
      const Results result{&format_info<fp32>(), out.data(), 1};
      std::size_t bytes = 0;
      check(gpu::reduce(m, nullptr, bytes, x.values(), layout, result), "reduce");
      const gpu::Memory workspace = gpu::device_memory(bytes);
      check(gpu::prepare(workspace.get(), bytes), "prepare");
      one = seconds(
          a, nullptr, [] {},
          [&] { check(gpu::reduce(m, workspace.get(), bytes, x.values(), layout, result), "reduce"); });
      expected = fetched(out.data(), 1, nullptr);
    }
    std::vector<double> times(ranks);
    std::atomic<bool> same = true;
    gpus.run([&](const Rank& r) {
      const Elements x{begin(r.me()), begin(r.me() + 1) - begin(r.me())}, out{0, 1};
      r.meet();
      nccl::Plan plan = nccl::Plan::reduce(m, format_info<fp32>(), x.values().size, r.comm);
      r.meet();
      times[r.me()] = seconds(
          a, r.stream, [&] { r.meet(); },
          [&] {
            plan.enqueue(x.values(), {&format_info<fp32>(), out.data(), 1}, r.stream);
          });
      if (fetched(out.data(), 1, r.stream) != expected) same = false;
      r.meet();
    });
    const double all = std::ranges::max(times);
    const Json row{
        {"kind", "vector"},        {"method", m.name}, {"gpus", ranks},         {"n", n},
        {"shift", shift},          {"seconds", all},   {"seconds_of_one", one}, {"speedup", one / all},
        {"same_bits", same.load()}};
    report(a, row,
           left(name, 22) + right(decimal(one * 1e6, 1), 11) + right(decimal(all * 1e6, 1), 11) +
               right(decimal(one / all, 3), 9) +
               right(decimal((all - one / static_cast<double>(ranks)) * 1e6, 1), 16) +
               right(same ? "same" : "WRONG", 7));
  }
  print(a, "");
}

/// The vectors of all GPUs, element by element.
void measure_elements(const Arguments& a, Gpus& gpus, int log2_n) {
  const std::size_t ranks = gpus.count(), n = std::size_t{1} << log2_n, checked = std::min(n, period);
  const FormatInfo& f = format_info<fp32>();
  print(a, "all_reduce of 2^" + std::to_string(log2_n) + " fp32 per GPU");
  print(a, left("", 22) + right("chunk, MiB", 11) + right("us", 11) + right("x ncclAllReduce", 17) +
               right("bits", 7));
  std::vector<std::unique_ptr<Elements>> in(ranks), out(ranks);
  std::vector<double> times(ranks);
  gpus.run([&](const Rank& r) {
    in[r.me()] = std::make_unique<Elements>(r.me() * 12'345, n);
    out[r.me()] = std::make_unique<Elements>(0, n);
    r.meet();
    times[r.me()] = seconds(
        a, r.stream, [&] { r.meet(); },
        [&] {
          check(
              ncclAllReduce(in[r.me()]->data(), out[r.me()]->data(), n, ncclFloat, ncclSum, r.comm, r.stream),
              "ncclAllReduce");
        });
  });
  const double peer = std::ranges::max(times);
  report(a, {{"kind", "elements"}, {"method", "ncclAllReduce"}, {"gpus", ranks}, {"n", n}, {"seconds", peer}},
         left("ncclAllReduce", 22) + right("", 11) + right(decimal(peer * 1e6, 1), 11) + right("1.000", 17));
  for (const char* name : {"exact/fp32", "tree/plain/fp32", "tree/kahan/fp32", "mean/tree/plain/fp32"}) {
    const Method& m = gpu::find(name);
    // The elements at both ends, on one GPU.
    std::vector<std::vector<std::uint32_t>> expected;
    const std::size_t places[] = {0, n - checked};
    for (const std::size_t place : places) {
      check(cudaSetDevice(0), "cudaSetDevice");
      const Elements matrix{0, ranks * checked}, result{0, checked};
      for (std::size_t r = 0; r < ranks; ++r) {
        const Elements row{r * 12'345 + place, checked};
        check(cudaMemcpy(matrix.data() + r * checked, row.data(), checked * sizeof(float),
                         cudaMemcpyDeviceToDevice),
              "cudaMemcpy");
      }
      gpu::reduce(m, matrix.values(), Layout::axis(1, ranks, checked), {&f, result.data(), checked});
      expected.push_back(fetched(result.data(), checked, nullptr));
    }
    for (const int chunk : a.chunks) {
      std::atomic<bool> same = true;
      gpus.run([&](const Rank& r) {
        nccl::Plan plan = nccl::Plan::all_reduce(m, f, n, r.comm, {}, static_cast<std::size_t>(chunk) << 20);
        check(cudaMemset(out[r.me()]->data(), 0xa5, n * sizeof(float)), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        r.meet();
        times[r.me()] = seconds(
            a, r.stream, [&] { r.meet(); },
            [&] {
              plan.enqueue(in[r.me()]->values(), {&f, out[r.me()]->data(), n}, r.stream);
            });
        for (std::size_t i = 0; i < 2; ++i)
          if (fetched(out[r.me()]->data() + places[i], checked, r.stream) != expected[i]) same = false;
        r.meet();
      });
      const double all = std::ranges::max(times);
      report(a,
             {{"kind", "elements"},
              {"method", m.name},
              {"gpus", ranks},
              {"n", n},
              {"chunk_mib", chunk},
              {"seconds", all},
              {"times_nccl", all / peer},
              {"same_bits", same.load()}},
             left(name, 22) + right(std::to_string(chunk), 11) + right(decimal(all * 1e6, 1), 11) +
                 right(decimal(all / peer, 3), 17) + right(same ? "same" : "WRONG", 7));
    }
  }
  print(a, "");
}

/// The contributions of P ranks on one GPU: what a rank reduces.
void measure_parts(const Arguments& a, int log2_n) {
  print(a, "local reduction of P parts on one GPU, 2^" + std::to_string(log2_n) + " fp32 in all");
  print(a, left("", 22) + right("P", 4) + right("us", 11) + right("read, us", 11) + right("of read", 9) +
               right("with writes", 13) + right("bits", 7));
  std::vector<const Method*> chosen;
  for (const char* name : {"exact/fp32", "tree/plain/fp32", "tree/kahan/fp32"})
    chosen.push_back(&gpu::find(name));
  check(cudaSetDevice(0), "cudaSetDevice");
  for (const std::size_t parts : {2u, 3u, 8u, 64u}) {
    const std::size_t inner = (std::size_t{1} << log2_n) / parts / 64 * 64;
    const harness::Cell cell{.input = &format_info<fp32>(), .n = parts, .threads = 0, .inner = inner};
    harness::Bench bench{cell, 1, cell.elements()};
    const std::vector<harness::Speed> speeds = bench.measure(cell, chosen, a.repeats);
    const double read = speeds.back().seconds;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const double own = speeds[i].seconds, share = read / own,
                   with_writes = share * (1 + 1 / static_cast<double>(parts));
      const bool same = speeds[i].verified.value_or(false);
      report(a,
             {{"kind", "parts"},
              {"method", chosen[i]->name},
              {"parts", parts},
              {"n", cell.elements()},
              {"seconds", own},
              {"seconds_of_reading", read},
              {"share_of_reading", share},
              {"share_with_writes", with_writes},
              {"same_bits", same}},
             left(std::string{chosen[i]->name, 0, chosen[i]->name.find('@')}, 22) +
                 right(std::to_string(parts), 4) + right(decimal(own * 1e6, 1), 11) +
                 right(decimal(read * 1e6, 1), 11) + right(decimal(share, 3), 9) +
                 right(decimal(with_writes, 3), 13) + right(same ? "same" : "WRONG", 7));
    }
  }
  print(a, "");
}

int run(const Arguments& a) {
  int there = 0;
  if (cudaGetDeviceCount(&there) != cudaSuccess) there = 0;
  if (there == 0) {
    std::cerr << "several_gpus: there is no GPU\n";
    return 2;
  }
  const int count = a.gpus > 0 ? a.gpus : there;
  if (count > there) {
    std::cerr << "several_gpus: --gpus is " << count << ", but there are " << there << "\n";
    return 2;
  }
  if (a.measures("vector") || a.measures("elements")) {
    Gpus gpus{count};
    if (a.measures("vector"))
      for (const std::size_t shift : {0, 1204, 1201}) measure_vector(a, gpus, shift);
    if (a.measures("elements"))
      for (const int log2_n : {a.log2_elements - 6, a.log2_elements}) measure_elements(a, gpus, log2_n);
  }
  if (a.measures("parts")) measure_parts(a, a.log2_elements);
  return all_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  CLI::App app{"How fast are reductions over several GPUs, beside one GPU and ncclAllReduce?",
               "several_gpus"};
  app.add_option("--gpus", a.gpus, "Number of GPUs (default: all)")->type_name("P")->check(CLI::Range(1, 64));
  app.add_option("--parts", a.parts, "What is measured (default: vector,elements,parts)")->type_name("LIST");
  app.add_option("--vector", a.log2_vector, "Elements per GPU of a vector: 2^E (default 30)")
      ->type_name("E")
      ->check(CLI::Range(12, 32));
  app.add_option("--elements", a.log2_elements, "Elements of vectors that are added: 2^E (default 28)")
      ->type_name("E")
      ->check(CLI::Range(18, 32));
  app.add_option("--chunks", a.chunks, "MiB that are sent at a time (default 256)")
      ->type_name("MIB,…")
      ->delimiter(',');
  app.add_option("--repeat", a.repeats, "Repeats, of which the median counts (default 7)")
      ->type_name("R")
      ->check(CLI::Range(1, 1000));
  app.add_option("--calls", a.calls, "Calls per repeat (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", a.json, "Print one JSON object per row");
  app.footer(
      "How it is measured: calls follow each other in a stream; the slowest GPU counts.\n"
      "All bits are compared with those of one GPU, of long vectors those at both ends.\n"
      "For NCCL without multicast, set NCCL_NVLS_ENABLE=0. Exit code 1 if bits differ.\n\n"
      "Examples:\n"
      "  NCCL_NVLS_ENABLE=0 several_gpus\n"
      "  several_gpus --parts elements --chunks 16,64,256\n"
      "  several_gpus --gpus 2 --parts vector --vector 28 --json");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return run(a);
  } catch (const std::exception& e) {
    std::cerr << "several_gpus: " << e.what() << "\n";
    return 2;
  }
}
