/// What makes a sum fast, one lesson at a time: the kernels of the textbooks, checked, timed and profiled.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <tuple>

#include "harness/bench.hpp"
#include "harness/dataset.hpp"
#include "harness/names.hpp"
#include "harness/repeat.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"
#include "harness/timed_row.hpp"
#include "ladder/judge.hpp"
#include "ladder/profile.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;
using namespace samesum::ladder;

// --- what is measured -------------------------------------------------------------------------------

/// A processor with its kernels, and the lengths of its sums.
struct Side {
  std::string name;  ///< "CPU"
  std::shared_ptr<const Place> place;
  std::vector<Kernel> kernels;
  Kernel read;
  std::vector<std::size_t> lengths;
};

/// Kernels that are measured in turns: sums of n elements, or one demonstration.
struct Group {
  const Side* side;
  std::string demonstration;  ///< empty for sums
  std::size_t n;
  std::vector<const Kernel*> kernels;
};

/// Most elements on which a demonstration is checked without --full: a multiple of what its kernels need.
constexpr std::size_t quick_length = std::size_t{1} << 20;

std::vector<Side> sides(bool full) {
  const std::size_t of_cpu = std::size_t{1} << (full ? 26 : 24), of_gpu = std::size_t{1} << (full ? 28 : 24);
  std::vector<Side> all;
  all.push_back({"CPU", cpu_place(), cpu_kernels(), cpu_read(), {most_of_block, of_cpu}});
  if (absent().empty()) {
    const std::shared_ptr<const Place> place = gpu_place();
    all.push_back({"GPU", place, gpu_kernels(place), gpu_read(place), {most_of_block, of_gpu}});
  }
  return all;
}

/// "exact" for sum/exact/fp32@cuda.
std::string short_name(const std::string& method) {
  const std::size_t first = method.starts_with("sum/") ? 4 : 0;
  return method.substr(first, method.rfind('/') - first);
}

/// Whether the glob matches the kernel. A glob may omit the format, the backend, and the "sum/" of a sum.
bool fits(const std::string& glob, const Kernel& k) {
  const std::string path = k.method.substr(0, k.method.find('@'));
  return matches(glob, k.method) || matches(glob, path) || matches(glob, path.substr(0, path.rfind('/'))) ||
         matches(glob, short_name(k.method));
}

void check(const std::vector<std::string>& globs, const std::vector<Side>& sides) {
  for (const std::string& glob : globs)
    if (std::ranges::none_of(sides, [&](const Side& side) {
          return std::ranges::any_of(side.kernels, [&](const Kernel& k) { return fits(glob, k); });
        }))
      throw UsageError{"--filter: '" + glob + "' matches no kernel; see the first column of the table"};
}

std::vector<Group> groups(const std::vector<Side>& sides, const std::vector<std::string>& globs) {
  std::vector<Group> all;
  const auto add = [&](const Side& side, const Kernel& k, std::size_t n) {
    const auto same = [&](const Group& g) {
      return g.side == &side && g.demonstration == k.demonstration && g.n == n;
    };
    auto group = std::ranges::find_if(all, same);
    if (group == all.end()) group = all.insert(all.end(), {&side, k.demonstration, n, {}});
    group->kernels.push_back(&k);
  };
  for (const Side& side : sides)
    for (const bool sums : {true, false})
      for (const std::size_t n : sums ? side.lengths : std::vector<std::size_t>{0})
        for (const Kernel& k : side.kernels) {
          const bool wanted =
              globs.empty() || std::ranges::any_of(globs, [&](auto& g) { return fits(g, k); });
          if (wanted && k.demonstration.empty() == sums && (!sums || n <= k.most))
            add(side, k, sums ? n : k.length);
        }
  return all;
}

// --- profiles ---------------------------------------------------------------------------------------

using Launch = std::tuple<std::string, int, std::size_t>;  ///< method, setting, n
using Profiles = std::map<Launch, Profile>;

std::string quoted(const std::string& text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return all + '\'';
}

/// Profiles each kernel of the groups on a GPU: runs this program with --launches under the profiler.
Profiles profiles_of(Study& s, const std::vector<Group>& groups) {
  std::vector<Launch> launches;
  for (const Group& g : groups)
    if (g.side->name == "GPU")
      for (const Kernel* k : g.kernels) launches.emplace_back(k->method, k->setting, g.n);
  const auto leave_out = [&](const std::string& why) {
    s.leave_out("branch efficiency and cache hit rates", why);
    return Profiles{};
  };
  if (launches.empty()) return leave_out("no kernel of a GPU is measured");
  if (!has_profiler()) return leave_out("ncu is not on the PATH");
  try {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string filter = s.filter().empty() ? "" : " --filter " + quoted(s.filter());
    const std::vector<Profile> found = profile(quoted(self) + (s.full() ? " --full" : "") +
                                               " --launches --seed " + std::to_string(s.seed()) + filter);
    if (found.size() != launches.size())
      return leave_out("ncu reported " + std::to_string(found.size()) + " kernels instead of " +
                       std::to_string(launches.size()));
    Profiles all;
    for (std::size_t i = 0; i < found.size(); ++i) all[launches[i]] = found[i];
    return all;
  } catch (const std::runtime_error& e) {
    return leave_out(e.what());
  }
}

// --- benches ----------------------------------------------------------------------------------------

std::vector<float> block_of(std::uint64_t seed) {
  const std::span<const std::byte> bytes =
      speed_block(format_info<fp32>(), *datasets_matching("uniform").front(), seed);
  std::vector<float> block(bytes.size() / sizeof(float));
  std::memcpy(block.data(), bytes.data(), bytes.size());
  return block;
}

/// Makes a workbench when it is first needed, and keeps it while groups are on the same side.
class Benches {
 public:
  Benches(const std::vector<Group>& groups, std::uint64_t seed) : groups_{groups}, seed_{seed} {}

  Workbench& of(const Side& side) {
    if (side_ != &side) {
      bench_.reset();  // frees memory for the next one
      truths_.clear();
      std::size_t room = side.name == "GPU" ? std::size_t{1} << 26 : 0,
                  results = 0;  // more elements than a cache holds
      for (const Group& g : groups_) {
        if (g.side != &side) continue;
        room = std::max(room, g.n);
        if (g.kernels.front()->expected != nullptr) results = std::max(results, g.n);
      }
      bench_ = std::make_unique<Workbench>(*side.place, block_of(seed_), room, results);
      side_ = &side;
    }
    return *bench_;
  }

  const Truth& truth(const Side& side, std::size_t n) {
    return truths_.try_emplace(n, Values{of(side).x(n)}).first->second;
  }

 private:
  const std::vector<Group>& groups_;
  std::uint64_t seed_;
  const Side* side_ = nullptr;
  std::unique_ptr<Workbench> bench_;
  std::map<std::size_t, Truth> truths_;
};

/// Launches each kernel of a GPU once, after a mark, for the profiler.
void launch_all(const std::vector<Group>& groups, Benches& benches) {
  for (const Group& g : groups) {
    if (g.side->name != "GPU") continue;
    const Workbench& bench = benches.of(*g.side);
    for (const Kernel* k : g.kernels) {
      gpu_mark();
      k->run(bench.task(g.n));
      g.side->place->finish(k->method);
    }
  }
}

// --- rows -------------------------------------------------------------------------------------------

Json key_of(const Study& study, const Group& g, const Kernel& k) {
  Json key = {{"kind", g.demonstration.empty() ? "ladder" : "demonstration"},
              {"method", k.method},
              {"input_format", "fp32"},
              {"data", "uniform"},
              {"seed", study.seed()},
              {"n", g.n},
              {"setting", k.setting}};
  if (!g.demonstration.empty()) key["demonstration"] = g.demonstration;
  return key;
}

Json share(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

/// The speeds of the kernels, and the speed of reading at the end. 2^22 elements or more come from the memory
/// of a GPU, not from its caches: runs move through a larger array.
std::vector<Speed> speeds(const Group& g, const Workbench& bench, Repeats repeats) {
  std::vector<const Kernel*> kernels = g.kernels;
  kernels.push_back(&g.side->read);
  std::vector<Turn> turns;
  for (const Kernel* k : kernels)
    turns.push_back({k->method, std::nullopt, [k, task = bench.task(g.n)](std::size_t offset) {
                       Task at = task;
                       at.x += offset / sizeof(float);
                       k->run(at);
                     }});
  const std::size_t apart = (g.n + 63) / 64 * 64;
  const bool several = g.side->name == "GPU" && g.n >= two_to(22);
  return g.side->place->in_turns(turns,
                                 {.repeats = repeats,
                                  .bytes = g.n * sizeof(float),
                                  .places = several ? std::max<std::size_t>(bench.room() / apart, 1) : 1,
                                  .stride = apart * sizeof(float)});
}

/// The fields that rows of both kinds have, besides times.
Json values_of(const Group& g, const Kernel& k, const Profiles& profiles) {
  const auto n = static_cast<double>(g.n);
  const auto found = profiles.find({k.method, k.setting, g.n});
  const Profile profile = found == profiles.end() ? Profile{} : found->second;
  return {{"lesson", k.lesson},
          {"bytes", n * k.bytes},
          {"operations", n * k.operations},
          {"branch_efficiency", share(profile.branch_efficiency)},
          {"l1_hit_rate", share(profile.l1_hit_rate)}};
}

Json values_of_sum(const Kernel& k, const Judgement& v) {
  return {{"promise", name_of(k.promise)},
          {"runs", v.runs},
          {"distinct_bits", v.distinct_bits},
          {"bits", bit_string(Number::of(v.first))},
          {"error_ulps", number_or_null(v.error_ulps)},
          {"bound", number_or_null(v.bound)},
          {"within_bound", v.within_bound},
          {"as_read", v.as_read ? Json(*v.as_read) : Json(nullptr)},
          {"broken", v.broken}};
}

/// Checks a kernel. The sums of the first process are judged.
void check_kernel(Json& row, const Study& study, const Group& g, const Kernel& k, Benches& benches) {
  const Workbench& bench = benches.of(*g.side);
  if (!g.demonstration.empty()) {
    row["occupancy"] = k.occupancy > 0 ? Json(k.occupancy) : Json(nullptr);
    row["suggested"] = k.occupancy > 0 ? Json(k.suggested) : Json(nullptr);
    const std::string problem = bench.problem(k, study.full() ? g.n : std::min(g.n, quick_length));
    add_check(row, k.expected ? std::optional{problem.empty()} : std::nullopt);
  } else if (processes_of(row) == 0) {
    const auto answers = repeat(100, study.full() ? 1 : 0.1, [&](std::size_t) { return bench.sum(k, g.n); });
    row.update(values_of_sum(k, judge(k, answers, bench.x(g.n), benches.truth(*g.side, g.n))));
  }
}

/// Checks all kernels of a group, then times them in turns.
void measure(std::vector<Json>& rows, const Study& study, const Group& g, Benches& benches,
             const Profiles& profiles) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_kernel(rows[i], study, g, *g.kernels[i], benches);
    rows[i].update(values_of(g, *g.kernels[i], profiles));
  }
  const std::vector<Speed> measured = speeds(g, benches.of(*g.side), study.repeats(11));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    add_rounds(rows[i], measured[i].rounds);
    if (g.demonstration.empty()) add_rounds(rows[i], measured.back().rounds, "read_rounds");
  }
}

/// Computes the speeds of a group.
void derive(std::vector<Json>& rows, const Group& g) {
  for (Json& row : rows) {
    const double seconds = row["seconds"];
    if (g.demonstration.empty()) {
      row["gb_per_s"] = static_cast<double>(g.n) * sizeof(float) / seconds / 1e9;
      row["read_share"] = ratio_of_rounds(rounds_of(row, "read_rounds"), rounds_of(row)).median;
    } else {
      row["gb_per_s"] = row["bytes"].get<double>() / seconds / 1e9;
      row["gflop_per_s"] = row["operations"].get<double>() / seconds / 1e9;
    }
  }
}

// --- the table --------------------------------------------------------------------------------------

std::string percent(const Json& share) {
  return share.is_null() ? "-" : compact(100 * share.get<double>(), 5) + '%';
}

std::string text_of(const Json& row) {
  const bool sum = row["kind"] == "ladder";
  const std::string name = short_name(row["method"]);
  const bool several = sum && (row["setting"] > 1 || name == "coarsened");
  std::string line = left(name + (several ? ' ' + row["setting"].dump() : ""), 21);
  if (!sum) line += right(row["setting"].dump(), 6);
  line += right(duration(row["seconds"]), 8) + right(compact(row["gb_per_s"], 6, 4), 7);
  if (sum)
    line += right(percent(row["read_share"]), 7) +
            right(row["distinct_bits"].dump() + '/' + row["runs"].dump(), 9) +
            right(row["error_ulps"].is_null() ? "inf" : compact(row["error_ulps"], 7), 9);
  else
    line += right(compact(row["gflop_per_s"], 6, 4), 8) + right(percent(row["occupancy"]), 9) +
            (row["suggested"] == Json(true) ? " *" : "  ");
  return line + right(percent(row["branch_efficiency"]), 7) + right(percent(row["l1_hit_rate"]), 7);
}

std::string head_of(const Group& g) {
  const std::string head = g.side->name + ", " + (g.demonstration.empty() ? "sums" : g.demonstration) +
                           ", n = " + power_or_number(g.n) + '\n';
  if (g.demonstration.empty())
    return head + left("sum", 21) + right("time", 8) + right("GB/s", 7) + right("of read", 8) +
           right("results", 8) + right("ulps", 9) + right("branch", 7) + right("L1", 7);
  return head + left("kernel", 21) + right("set", 6) + right("time", 8) + right("GB/s", 7) +
         right("GFLOP/s", 8) + right("occupied", 9) + "  " + right("branch", 7) + right("L1", 7);
}

/// The check that a row fails, or "".
std::string complaint(const Json& row) {
  if (row["kind"] == "demonstration") return row["verified"] == Json(false) ? "wrong result" : "";
  if (!row["within_bound"]) return "the error exceeds its bound";
  if (row["broken"]) return "promises " + row["promise"].get<std::string>() + " but gave several results";
  return row["as_read"] == Json(false) ? "bits differ from those of its declared order" : "";
}

void run_group(Study& s, const Group& g, Benches& benches, const Profiles& profiles) {
  std::vector<Json> keys;
  for (const Kernel* k : g.kernels) keys.push_back(key_of(s, g, *k));
  s.print(head_of(g));
  const auto measure_all = [&](std::vector<Json>& rows) { measure(rows, s, g, benches, profiles); };
  for (const Json& row :
       s.rows_in_turns(keys, measure_all, [&](std::vector<Json>& rows) { derive(rows, g); })) {
    s.print(text_of(row));
    if (const std::string wrong = complaint(row); !wrong.empty())
      s.fail(row["method"].get<std::string>() + ", setting " + row["setting"].dump() +
             ", n = " + power_or_number(g.n) + ": " + wrong);
  }
  s.print("");
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "ladder",
      "What makes a sum fast, one lesson at a time, and what does it cost in bits?",
      "The kernels of the textbooks (GPU MODE, lectures 8 and 9; Kirk, Hwu and El Hajj 2022, chapters 6 and "
      "10; Harris 2007, Optimizing Parallel Reduction in CUDA), simplest first, and their counterparts on a "
      "CPU. A kernel of one block sums 2048 elements, the others also 2^24 (--full: 2^28, on a CPU 2^26). "
      "Each kernel is checked first: in 100 runs (fewer with --quick if they are slow), its errors must be "
      "within the rigorous bound of its order, γ_k Σ|x| for the height k, and its bits "
      "must be those of its order if it declares one. Without --full, a demonstration is checked on at most "
      "2^20 elements. Then all kernels of a table are timed in turns, on a "
      "GPU with events; there, 2^22 elements or more come from memory, not from caches. A time is the "
      "median of 5 rounds (--full: 11), which have random orders.\n\n"
      "of read: the speed relative to reading the same elements and adding nothing, in the same turns. "
      "results: different results / runs. ulps: the largest error. set: the stride of coalescing, threads "
      "per block "
      "(* if CUDA suggests them), steps of divergence and ceilings, elements per thread of coarsening, the "
      "width of a window or a row. Bytes and operations are counted in the source of a kernel, an "
      "exponential as one operation; with the ceilings they give its place on the roofline (Williams, "
      "Waterman and Patterson 2009). branch and L1 (--profile): the share of branches in which all threads "
      "of a warp agree, and of sectors found in the L1 cache, as counted by ncu.\n\n"
      "--filter selects kernels by their names.",
      {"ladder", "demonstration"},
      "  ladder\n"
      "  ladder --filter 'coarsened,tree/plain,loop'\n"
      "  ladder --full --profile --out build/study"};
  bool profiled = false, launches = false;
  study.add_flag("--profile", profiled, "Measure branch efficiency and L1 hits with ncu");
  study.add_processes();
  study.add_flag("--launches", launches, "");  // hidden: launches each kernel of a GPU once, for --profile
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Side> all = sides(s.full());
    const std::vector<std::string> globs = globs_in(s.filter());
    check(globs, all);
    const std::vector<Group> chosen = groups(all, globs);
    for (const Group& g : chosen) s.expect(g.kernels.size());
    Benches benches{chosen, s.seed()};
    if (launches) return launch_all(chosen, benches);
    s.depend_on("profile", profiled);
    const Profiles profiles = profiled ? profiles_of(s, chosen) : Profiles{};
    if (const std::string gpu = gpu_description(); !gpu.empty()) s.print(gpu + "\n");
    for (const Group& g : chosen) run_group(s, g, benches, profiles);
  });
}
