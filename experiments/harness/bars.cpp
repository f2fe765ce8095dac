#include "harness/bars.hpp"

#include <algorithm>

#include "harness/commands.hpp"

namespace samesum::harness {
namespace {

constexpr std::size_t any = SIZE_MAX;

/// What a method is held to: `factor` times the speed of the fastest method that `against` names, or at most
/// `factor` microseconds.
struct Bar {
  std::string methods;  ///< a glob
  std::vector<std::string> inputs;
  std::vector<std::string> data, places;
  std::size_t shortest, longest;
  double factor;
  std::string against;       ///< a glob; empty for microseconds. The other one sums normal data.
  int threads = 1;           ///< of the method; the other one has as many, but for `itself`
  std::string ceiling = {};  ///< a method whose speed is enough, whatever the factor asks for
};

const std::string itself = "itself";  ///< on normal data, with one thread

const std::vector<std::string> all{"fp16", "bf16", "fp32", "fp64"}, narrow{"fp16", "bf16", "fp32"},
    halves{"fp16", "bf16"}, fp32_alone{"fp32"}, fp64_alone{"fp64"};
const std::vector<std::string> normal{"normal"}, binades{"60 binades"},
    awkward{"60 binades", "arbitrary bits"};
const std::vector<std::string> l2{"L2"}, dram{"DRAM"}, caches_and_dram{"L2", "DRAM"}, few{"latency"},
    gpu{"GPU"};

const std::vector<Bar> bars{
    // On a CPU.
    {"tree/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 2.0, "std_reduce/*"},
    {"pairwise/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 2.0, "std_reduce/*"},
    {"tree/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 0.6, "eigen/*"},
    {"pairwise/plain/fp32@cpu", fp32_alone, normal, l2, 0, any, 0.6, "eigen/*"},
    {"tree/kahan/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.5, "std_reduce/*"},
    {"tree/neumaier/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.5, "std_reduce/*"},
    {"exact/fp32@cpu", fp32_alone, normal, l2, 0, any, 1.0, "std_reduce/*"},
    {"tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.2, "eigen/*"},
    {"pairwise/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.2, "eigen/*"},
    {"tree/kahan/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.95, "eigen/*"},
    {"tree/neumaier/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.95, "eigen/*"},
    {"exact/fp32@cpu", fp32_alone, normal, dram, 0, any, 0.9, "eigen/*"},
    {"tree/plain/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.7, itself, 2, "read"},
    {"exact/fp32@cpu", fp32_alone, normal, dram, 0, any, 1.7, itself, 2, "read"},
    {"tree/plain/fp32@cpu", halves, normal, dram, 0, any, 0.8, "read"},
    {"pairwise/plain/fp32@cpu", halves, normal, dram, 0, any, 0.8, "read"},
    {"exact/*@cpu", {"fp32", "fp64"}, binades, caches_and_dram, 0, any, 0.5, itself},
    {"tree/plain/fp64@cpu", fp64_alone, normal, dram, 0, any, 1.0, "eigen/*"},
    {"exact/fp64@cpu", fp64_alone, normal, dram, 0, any, 0.5, "tree/plain/fp64@cpu"},
    {"*@cpu", all, normal, few, 1, 64, 0.75, ""},
    // On a GPU.
    {"pairwise/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(22), any, 0.99, "cub/*", 0},
    {"tree/plain/fp32@cuda", fp32_alone, normal, gpu, two_to(22), any, 0.97, "cub/*", 0},
    {"pairwise/plain/*@cuda", halves, normal, gpu, two_to(22), two_to(26), 1.05, "cub/*", 0},
    {"tree/plain/*@cuda", halves, normal, gpu, two_to(22), two_to(26), 1.03, "cub/*", 0},
    {"pairwise/plain/*@cuda", halves, normal, gpu, two_to(27), any, 1.00, "cub/*", 0},
    {"tree/plain/*@cuda", halves, normal, gpu, two_to(27), any, 0.98, "cub/*", 0},
    {"tree/plain/fp64@cuda", fp64_alone, normal, gpu, two_to(22), any, 0.97, "cub/*", 0},
    {"pairwise/plain/*@cuda", all, normal, gpu, two_to(14), two_to(20), 1.30, "cub/run_to_run/*", 0},
    {"tree/plain/*@cuda", all, normal, gpu, two_to(14), two_to(20), 1.27, "cub/run_to_run/*", 0},
    {"*/plain/*@cuda", all, normal, gpu, 0, two_to(13), 0.95, "cub/*", 0},
    {"*/kahan/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"*/neumaier/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"*/double_word/fp32@cuda", fp32_alone, normal, gpu, two_to(26), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"exact/*@cuda", narrow, normal, gpu, two_to(28), any, 0.97, "tree/plain/fp32@cuda", 0},
    {"exact/*@cuda", narrow, normal, gpu, two_to(24), two_to(24), 0.90, "tree/plain/fp32@cuda", 0},
    {"exact/*@cuda", narrow, normal, gpu, 0, two_to(16), 5.0, "", 0},
    {"exact/*@cuda", {"fp32", "fp64"}, normal, gpu, 0, any, 1.30, "cub/gpu_to_gpu/*", 0},
    {"exact/*@cuda", fp64_alone, normal, gpu, two_to(26), any, 0.90, "tree/plain/fp64@cuda", 0},
    {"exact/fp32@cuda", fp32_alone, awkward, gpu, two_to(24), any, 0.80, itself, 0},
    {"exact/bf16@cuda", {"bf16"}, awkward, gpu, two_to(24), any, 0.60, itself, 0},
    {"exact/fp16@cuda", {"fp16"}, awkward, gpu, two_to(24), any, 0.95, itself, 0},
};

/// The fastest of the methods that a glob names.
const SpeedRow* best(const std::vector<SpeedRow>& rows, const Cell& cell, const std::string& glob) {
  const SpeedRow* found = nullptr;
  for (const SpeedRow& r : rows)
    if (r.cell == cell && matches(glob, r.method) && (!found || r.seconds < found->seconds)) found = &r;
  return found;
}

double ratio(const SpeedRow& slow, const SpeedRow& fast) {
  if (!(slow.cell == fast.cell) || slow.rounds.empty() || slow.rounds.size() != fast.rounds.size())
    return slow.seconds / fast.seconds;
  return ratio_of_rounds(slow.rounds, fast.rounds);
}

bool concerns(const Bar& bar, const SpeedRow& row) {
  const Cell& cell = row.cell;
  const auto has = [](const std::vector<std::string>& list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
  };
  return matches(bar.methods, row.method) && has(bar.inputs, cell.input->name) && has(bar.data, cell.data) &&
         has(bar.places, cell.place) && cell.n >= bar.shortest && cell.n <= bar.longest &&
         cell.threads == bar.threads;
}

std::optional<Verdict> judge(const SpeedRow& row, const Bar& bar, const std::vector<SpeedRow>& rows) {
  if (bar.against.empty()) return Verdict{"us", bar.factor, row.seconds * 1e6};
  Cell other = row.cell;
  other.data = "normal";
  if (bar.against == itself) other.threads = std::min(other.threads, 1);
  const SpeedRow* opponent = best(rows, other, bar.against == itself ? row.method : bar.against);
  if (!opponent) return std::nullopt;
  double factor = bar.factor;
  if (const SpeedRow* ceiling = best(rows, row.cell, bar.ceiling))
    factor = std::min(factor, 0.95 * ratio(*opponent, *ceiling));  // as near as runs differ
  const std::string unlike = other.threads < row.cell.threads ? ", one thread"
                             : other.data != row.cell.data    ? ", normal"
                                                              : "";
  return Verdict{opponent->method + unlike, factor, ratio(*opponent, row)};
}

}  // namespace

double ratio_of_rounds(const std::vector<double>& slow, const std::vector<double>& fast) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < slow.size(); ++i) ratios.push_back(slow[i] / fast.at(i));
  std::ranges::sort(ratios);
  return ratios.at(ratios.size() / 2);
}

std::vector<Verdict> verdicts(const SpeedRow& row, const std::vector<SpeedRow>& measured) {
  std::vector<Verdict> all;
  for (const Bar& bar : bars)
    if (concerns(bar, row))
      if (const auto verdict = judge(row, bar, measured)) all.push_back(*verdict);
  return all;
}

}  // namespace samesum::harness
