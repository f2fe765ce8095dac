/// The functions of gpu.hpp and reducer.cuh neither depend on the caller's floating-point environment nor
/// change it.
#include <set>

#include "backend/cuda_support.hpp"
#include "environments.hpp"
#include "operation/user_reductions.hpp"
#include "public_functions.hpp"
#include "samesum/reducer.cuh"

namespace samesum {
namespace {

constexpr std::size_t rows = 15, columns = 100, n = rows * columns;

/// Data, a workspace and memory for results on a GPU, and the text of the results on the host.
class Device {
 public:
  Device() {
    for (const FormatInfo& format : formats) {
      std::vector<double> data = wide(n, 30, 5);
      for (std::size_t i = 0; i < data.size(); i += 3) data[i] *= 4 * format.smallest_subnormal;
      placed_.emplace_back(Array{format, data}.values());
    }
  }

  std::vector<Values> inputs() const {
    std::vector<Values> all;
    for (const OnGpu& x : placed_) all.push_back(x.values());
    return all;
  }
  const float* floats() const { return static_cast<const float*>(placed_[2].values().data); }
  void* workspace() const { return workspace_.get(); }
  gpu::ExactState* states() const { return reinterpret_cast<gpu::ExactState*>(states_.get()); }

  /// Returns unused memory for the given number of results.
  template <class T> T* room(std::size_t numbers) {
    auto* at = reinterpret_cast<T*>(results_.get() + used_);
    used_ += (numbers * sizeof(T) + 255) / 256 * 256;
    if (used_ > bytes) throw std::logic_error{"the test needs more memory"};
    return at;
  }
  Results results(const Method& m, const FormatInfo& input, const Layout& l) {
    const std::size_t numbers =
        m.has_result_per_element ? n : l.results() * static_cast<std::size_t>(m.results);
    return {m.result_format(input), room<double>(numbers), numbers};
  }

  /// Resets memory and text to their initial state.
  void clear() {
    used_ = 0;
    text = {};
    succeed(cudaMemset(results_.get(), 0x5a, bytes));
    succeed(cudaMemset(states_.get(), 0, 2 * sizeof(gpu::ExactState)));
    succeed(gpu::prepare(workspace_.get(), bytes));
    succeed(cudaDeviceSynchronize());
  }
  std::uint64_t hash() {
    std::vector<std::byte> all(used_);
    succeed(cudaMemcpy(all.data(), results_.get(), used_, cudaMemcpyDeviceToHost));
    text << std::string_view{reinterpret_cast<const char*>(all.data()), all.size()};
    return text.hash();
  }

  Text text;

 private:
  static constexpr std::size_t bytes = std::size_t{1} << 24;
  std::vector<OnGpu> placed_;
  std::shared_ptr<std::byte> workspace_ = device_memory(bytes), results_ = device_memory(bytes),
                             states_ = device_memory(2 * sizeof(gpu::ExactState));
  std::size_t used_ = 0;
};

/// Expects every call to succeed.
Text& operator<<(Text& out, cudaError_t error) {
  EXPECT_EQ(error, cudaSuccess);
  return out;
}

struct EntryPoint {
  const char* name;
  std::set<std::string> functions;  ///< public functions that `call` calls
  void (*call)(Device& device, Text& out);
};

const EntryPoint entry_points[] = {
    {"reduce",
     {"enqueue", "prepare", "reduce", "run", "workspace_size"},
     [](Device& device, Text& out) {
       out << gpu::prepare(device.workspace(), std::size_t{1} << 20);
       for (const Method& m : methods())
         for (const Values& x : device.inputs()) {
           if (m.backend != "cuda" || m.promise < Promise::everywhere || !m.accepts(*x.format) ||
               m.takes_keys)
             continue;
           const Layout batch = Layout::rows(rows, columns);
           const Layout layout = m.accepts(*x.format, batch) ? batch : Layout::vector(n);
           std::size_t bytes = 0;
           out << gpu::workspace_size({.method = &m,
                                       .x = x,
                                       .y = m.inputs == 2 ? x : Values{},
                                       .layout = layout,
                                       .out = device.results(m, *x.format, layout),
                                       .options = with_window(m)},
                                      bytes)
               << bytes;
           for (void* workspace : {static_cast<void*>(nullptr), device.workspace()}) {
             const Results to = device.results(m, *x.format, layout);
             out << (m.inputs == 2 ? gpu::reduce(m, workspace, bytes, x, x, layout, to)
                                   : gpu::reduce(m, workspace, bytes, x, layout, to, nullptr, with_window(m)))
                 << bytes;
           }
           const Results to = device.results(m, *x.format, layout);
           m.inputs == 2 ? gpu::reduce(m, x, x, layout, to)
                         : gpu::reduce(m, x, layout, to, nullptr, nullptr, with_window(m));
         }
       out.refusal([&] {
         gpu::reduce(gpu::find("moments/tree/fp32"), device.inputs()[2], Layout::vector(n),
                     std::span{device.room<float>(2), 2}, nullptr, nullptr, {.ddof = -0x1p-1060});
       });
     }},
    {"reduce by key",
     {"reduce"},
     [](Device& device, Text& out) {
       const Layout layout = Layout::vector(n);
       for (const Method& m : methods())
         for (const Values& x : device.inputs()) {
           if (m.backend != "cuda" || m.promise < Promise::everywhere || !m.accepts(*x.format)) continue;
           if (!m.takes_keys || m.inputs == 0) continue;
           auto* const zeros = device.room<std::uint32_t>(n);
           succeed(cudaMemset(zeros, 0, n * sizeof *zeros));
           const Keys keys{KeyFormat::uint32, zeros, n};
           std::size_t bytes = 0;
           out << gpu::reduce(m, nullptr, bytes, x, keys, layout, {m.format, device.room<double>(3), 3});
           gpu::reduce(m, x, keys, layout, {m.format, device.room<double>(3), 3});
         }
     }},
    {"segments_of",
     {"segments_of"},
     [](Device& device, Text& out) {
       auto* const zeros = device.room<std::uint32_t>(n);
       succeed(cudaMemset(zeros, 0, n * sizeof *zeros));
       const gpu::DeviceSegments to{device.room<std::int64_t>(n), device.room<std::uint64_t>(n + 1),
                                    device.room<std::uint64_t>(1)};
       std::size_t bytes = 0;
       for (void* workspace : {static_cast<void*>(nullptr), device.workspace()})
         out << gpu::segments_of(workspace, bytes, {KeyFormat::uint32, zeros, n}, to);
       gpu::segments_of({KeyFormat::uint32, zeros, n}, to);
       out.refusal([&] { gpu::segments_of({KeyFormat::uint32, nullptr, n}, to); });
     }},
    {"sum",
     {"sum"},
     [](Device& device, Text& out) {
       std::size_t bytes = 0;
       out << gpu::sum(nullptr, bytes, device.floats(), n, device.room<float>(1));
       out << gpu::sum(device.workspace(), bytes, device.floats(), n, device.room<float>(1));
       bytes = std::size_t{1} << 20;
       out << gpu::sum<"tree/kahan/bf16">(device.workspace(), bytes, device.floats(), n,
                                          device.room<bf16>(1));
       gpu::sum(device.floats(), n, device.room<float>(1));
       gpu::sum<"pairwise/plain/fp32">(device.floats(), n, device.room<float>(1));
     }},
    {"exact states",
     {"accumulate", "merge", "round", "download"},
     [](Device& device, Text& out) {
       for (const Values& x : device.inputs()) {
         std::size_t bytes = std::size_t{1} << 20;
         out << gpu::accumulate(device.workspace(), bytes, x, device.states());
         out << gpu::merge(device.states() + 1, device.states());
         for (const FormatInfo& format : formats)
           out << gpu::round(device.states() + 1, format, device.room<double>(1));
         out << gpu::download(device.states()).serialise();
       }
     }},
    {"add",
     {"add"},
     [](Device& device, Text& out) {
       for (const Method& m : methods()) {
         if (m.backend != "cuda" || m.promise < Promise::everywhere || !reduces_vectors(m)) continue;
         Partial partial{m, 0, m.accumulator == "fixed_point" ? std::optional{-20} : std::nullopt};
         for (const Values& x : device.inputs()) {
           if (!m.accepts(*x.format)) continue;
           m.inputs == 2 ? gpu::add(partial, x, x) : gpu::add(partial, x);
         }
         out << partial.serialise();
       }
       out.refusal([] {
         Partial partial{"tree/plain/fp32"};
         gpu::add(partial, std::span<const float>{});
       });
     }},
    {"find, count_distinct, Error",
     {"find", "count_distinct", "Error::code"},
     [](Device& device, Text& out) {
       out << gpu::find("norm/tree/fp16").name;
       out.refusal([] { gpu::find("exact/fp32@cpu"); });
       for (const Values& x : device.inputs()) out << gpu::count_distinct(x);
       out << static_cast<std::uint64_t>(gpu::Error{"cudaMalloc", cudaErrorMemoryAllocation}.code());
     }},
    {"reduce with a custom reduction",
     {"reduce"},
     [](Device& device, Text& out) {
       const Layout layout = Layout::rows(rows, columns);
       std::size_t bytes = 0;
       for (void* workspace : {static_cast<void*>(nullptr), device.workspace()})
         out << gpu::reduce(RoundingSum{}, workspace, bytes, device.floats(), n, layout,
                            device.room<ResultOf<RoundingSum>>(rows));
       gpu::reduce<Blocked>(RoundingSum{}, device.floats(), n, layout,
                            device.room<ResultOf<RoundingSum>>(rows));
       gpu::reduce(RoundingSum{}, device.floats(), n, device.room<ResultOf<RoundingSum>>(1));
     }},
};

/// Device functions, which kernels call.
const std::set<std::string> without_guard{
    "PlainReader::moved", "PlainReader::inputs",   "PlainReader::is_aligned",
    "PlainReader::fetch", "PlainReader::elements", "PlainReader::column",
    "warp_reduce",        "block_reduce"};

TEST(AnEntryPointOfTheGpu, ReturnsTheSameBitsInEveryEnvironmentAndChangesNone) {
  SAMESUM_NEEDS_GPU();
  Device device;
  for (const EntryPoint& entry : entry_points) {
    device.clear();
    entry.call(device, device.text);
    const std::uint64_t ordinary = device.hash();
    for (Environment environment : all_environments())
      for (const unsigned bits : register_bits) {
        environment.register_bits = bits;
        if (is_sanitized && (environment.rounding != FE_UPWARD || bits == all_flags)) continue;
        device.clear();
        const bool kept = call_in(environment, [&] { entry.call(device, device.text); });
        EXPECT_EQ(device.hash(), ordinary) << entry.name << " returned other bits: " << name_of(environment);
        EXPECT_TRUE(kept) << entry.name << " changed the environment: " << name_of(environment);
      }
  }
}

TEST(EveryPublicGpuFunction, IsTestedInEveryEnvironment) {
  std::set<std::string> called = without_guard, declared;
  for (const EntryPoint& entry : entry_points) called.insert(entry.functions.begin(), entry.functions.end());
  for (const char* header : {"gpu.hpp", "reducer.cuh", "states.cuh", "backend/cuda/selection/distinct.hpp",
                             "backend/cuda/device/error.hpp"})
    declared.merge(functions_of(std::filesystem::path{SAMESUM_SOURCE_DIR} / "lib" / "samesum" / header));
  EXPECT_EQ(called, declared);
}

}  // namespace
}  // namespace samesum
