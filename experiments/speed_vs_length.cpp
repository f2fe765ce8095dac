/// How fast is each sum, for arrays of every length, beside what other libraries need and what memory allows?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "harness/commands.hpp"
#include "harness/gpu_speed.hpp"
#include "harness/peers.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/registry.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

/// One measured cell.
struct Row {
  const FormatInfo* input;
  GpuData data;
  int log2_n;
  GpuSpeed speed;

  double gb_per_s() const {
    return std::ldexp(static_cast<double>(input->bytes), log2_n) / speed.seconds / 1e9;
  }
};
using Rows = std::vector<Row>;

/// What a cell is held to: `factor` times the speed of the fastest method that `against` names, or at most
/// `factor` microseconds.
struct Bar {
  std::string methods;  ///< a glob
  std::vector<std::string> inputs;
  std::vector<GpuData> data;
  int shortest, longest;  ///< log2 of n
  double factor;
  std::string against;  ///< a glob; empty for microseconds. The other one sums normal data.
};

constexpr int any = 99;
const std::vector<std::string> all{"fp16", "bf16", "fp32", "fp64"}, narrow{"fp16", "bf16", "fp32"},
    halves{"fp16", "bf16"};
const std::vector<GpuData> normal{GpuData::normal}, awkward{GpuData::binades, GpuData::arbitrary};

const std::vector<Bar> bars{
    {"pairwise/plain/fp32@cuda", {"fp32"}, normal, 22, any, 0.99, "cub/*"},
    {"tree/plain/fp32@cuda", {"fp32"}, normal, 22, any, 0.97, "cub/*"},
    {"pairwise/plain/*@cuda", halves, normal, 22, 26, 1.05, "cub/*"},
    {"tree/plain/*@cuda", halves, normal, 22, 26, 1.03, "cub/*"},
    {"pairwise/plain/*@cuda", halves, normal, 27, any, 1.00, "cub/*"},
    {"tree/plain/*@cuda", halves, normal, 27, any, 0.98, "cub/*"},
    {"tree/plain/fp64@cuda", {"fp64"}, normal, 22, any, 0.97, "cub/*"},
    {"pairwise/plain/*@cuda", all, normal, 14, 20, 1.30, "cub/run_to_run/*"},
    {"tree/plain/*@cuda", all, normal, 14, 20, 1.27, "cub/run_to_run/*"},
    {"*/plain/*@cuda", all, normal, 0, 13, 0.95, "cub/*"},
    {"*/kahan/fp32@cuda", {"fp32"}, normal, 26, any, 0.97, "tree/plain/fp32@cuda"},
    {"*/neumaier/fp32@cuda", {"fp32"}, normal, 26, any, 0.97, "tree/plain/fp32@cuda"},
    {"*/double_word/fp32@cuda", {"fp32"}, normal, 26, any, 0.97, "tree/plain/fp32@cuda"},
    {"exact/*", narrow, normal, 28, any, 0.97, "tree/plain/fp32@cuda"},
    {"exact/*", narrow, normal, 24, 24, 0.90, "tree/plain/fp32@cuda"},
    {"exact/*", narrow, normal, 0, 16, 5.0, ""},
    {"exact/*", {"fp32", "fp64"}, normal, 0, any, 1.30, "cub/gpu_to_gpu/*"},
    {"exact/*", {"fp64"}, normal, 26, any, 0.90, "tree/plain/fp64@cuda"},
    {"exact/*", {"fp32"}, awkward, 24, any, 0.80, "exact/*"},
    {"exact/*", {"bf16"}, awkward, 24, any, 0.60, "exact/*"},
    {"exact/*", {"fp16"}, awkward, 24, any, 0.95, "exact/*"},
};

/// How a cell did against one bar.
struct Verdict {
  const Bar* bar;
  double reached;  ///< a ratio of speeds, or microseconds
  std::string against;
  bool holds() const { return bar->against.empty() ? reached <= bar->factor : reached >= bar->factor; }
};

std::vector<Verdict> judge(const Row& row, const Rows& rows) {
  std::vector<Verdict> verdicts;
  for (const Bar& bar : bars) {
    if (!matches(bar.methods, row.speed.method) || std::ranges::count(bar.inputs, row.input->name) == 0 ||
        std::ranges::count(bar.data, row.data) == 0 || row.log2_n < bar.shortest || row.log2_n > bar.longest)
      continue;
    if (bar.against.empty()) {
      verdicts.push_back({&bar, row.speed.seconds * 1e6, "us"});
      continue;
    }
    const Row* best = nullptr;
    for (const Row& r : rows)
      if (r.input == row.input && r.data == GpuData::normal && r.log2_n == row.log2_n &&
          matches(bar.against, r.speed.method) && (!best || r.speed.seconds < best->speed.seconds))
        best = &r;
    if (best) verdicts.push_back({&bar, best->speed.seconds / row.speed.seconds, best->speed.method});
  }
  return verdicts;
}

struct SpeedOptions {
  std::string inputs = "fp32,fp16,bf16,fp64", methods, output;
  int shortest = 10, longest = 32, step = 2;
  GpuSpeedOptions speed;
};

/// What is measured unless told otherwise: every order and accumulator in fp32 or the input's format, exact,
/// and the peers.
std::vector<const Variant*> chosen_for(const FormatInfo& input, const std::string& methods) {
  std::vector<const Variant*> chosen;
  if (!methods.empty()) {
    for (const Variant* v : variants_matching(methods, input))
      if (v->launch[input.index]) chosen.push_back(v);
    if (chosen.empty())
      throw UsageError{"--methods: '" + methods + "' names nothing that runs on a GPU; add @cuda or @peer"};
    return chosen;
  }
  for (const Variant& v : variants()) {
    const bool fits = v.accumulator == "plain"
                          ? v.format == &input || (input.bytes == 2 && v.format->name == "fp32")
                      : v.accumulator == "exact" ? v.format == &input
                                                 : v.format == &input && input.name == "fp32";
    if (v.backend == "cuda" && !v.slow && fits) chosen.push_back(&v);
  }
  for (const Variant& v : peers())
    if (v.launch[input.index]) chosen.push_back(&v);
  return chosen;
}

void print(const Row& row, const Rows& rows) {
  std::string text = left(row.speed.method, 29) + ' ' + left(std::string{row.input->name}, 4) + ' ' +
                     left(row.data == GpuData::normal ? "" : name_of(row.data), 14) + " 2^" +
                     left(std::to_string(row.log2_n), 2) + ' ' + right(duration(row.speed.seconds), 7) + ' ' +
                     right(compact(50 * (row.speed.high - row.speed.low) / row.speed.seconds, 4, 2), 4) +
                     "% " + right(compact(row.gb_per_s(), 5, 4), 5);
  for (const Verdict& v : judge(row, rows))
    text += std::string{"  "} + (v.holds() ? "pass" : "MISS") + ' ' + compact(v.reached, 5) +
            (v.bar->against.empty() ? " us <= " : " >= ") + compact(v.bar->factor, 4) +
            (v.bar->against.empty() ? "" : " x " + v.against);
  std::puts((text + (row.speed.verified.value_or(true) ? "" : "  WRONG BITS")).c_str());
}

Json as_json(const Rows& rows, const SpeedOptions& options) {
  Json cells = Json::array();
  for (const Row& r : rows) {
    Json held = Json::array();
    for (const Verdict& v : judge(r, rows))
      held.push_back(
          {{"against", v.against}, {"factor", v.bar->factor}, {"reached", v.reached}, {"holds", v.holds()}});
    cells.push_back({{"method", r.speed.method},
                     {"input_format", r.input->name},
                     {"data", name_of(r.data)},
                     {"log2_n", r.log2_n},
                     {"seconds", r.speed.seconds},
                     {"low", r.speed.low},
                     {"high", r.speed.high},
                     {"gb_per_s", r.gb_per_s()},
                     {"verified", r.speed.verified ? Json(*r.speed.verified) : Json(nullptr)},
                     {"bars", held}});
  }
  return {{"kind", "speed"},
          {"provenance", provenance()},
          {"repeats", options.speed.repeats},
          {"caches", options.speed.cold ? "cold" : "hot"},
          {"cells", cells}};
}

void check(const SpeedOptions& options) {
  if (options.shortest < 0 || options.longest > 40 || options.shortest > options.longest || options.step < 1)
    throw UsageError{"--from, --to, --step: 0 <= from <= to <= 40 and step >= 1 are needed"};
  if (options.speed.repeats < 1) throw UsageError{"--repeat: give 1 or more"};
  if (!absent().empty()) throw UsageError{absent()[0].reason};
  if (!options.output.empty()) check_writable(options.output);
}

int run(const SpeedOptions& options) {
  check(options);
  std::printf("%s; %s caches; median of %d\n\n", gpu_description().c_str(),
              options.speed.cold ? "cold" : "hot", options.speed.repeats);
  std::printf("%-29s %-4s %-14s %-4s %7s %5s %5s  %s\n", "method", "in", "data", "n", "time", "+-", "GB/s",
              "bars");
  Rows rows;
  std::istringstream inputs{options.inputs};
  for (std::string name; std::getline(inputs, name, ',');) {
    const FormatInfo* found = find_format(name);
    if (!found)
      throw UsageError{"--inputs: there is no format '" + name + "'; choose of " + format_names(",")};
    const FormatInfo& input = *found;
    for (const GpuData data : {GpuData::normal, GpuData::binades, GpuData::arbitrary}) {
      const bool only_exact = data != GpuData::normal;  // the others do not look at what they add
      if (only_exact && (!options.methods.empty() || options.longest < 24)) continue;
      GpuBench bench{input, data,
                     std::size_t{1} << (only_exact ? std::min(options.longest, 28) : options.longest)};
      for (int log2_n = options.shortest; log2_n <= options.longest; log2_n += options.step) {
        if (only_exact && log2_n != 24 && log2_n != 28) continue;
        const std::size_t first = rows.size();
        const auto chosen =
            only_exact ? variants_matching("exact@cuda", input) : chosen_for(input, options.methods);
        for (const GpuSpeed& speed : bench.measure(chosen, std::size_t{1} << log2_n, options.speed))
          rows.push_back({&input, data, log2_n, speed});
        for (std::size_t i = first; i < rows.size(); ++i) print(rows[i], rows);
        std::fflush(stdout);
      }
    }
  }
  int held = 0, missed = 0, wrong = 0;
  for (const Row& row : rows) {
    wrong += !row.speed.verified.value_or(true);
    for (const Verdict& v : judge(row, rows)) ++(v.holds() ? held : missed);
  }
  std::printf("\n%d bars hold, %d are missed\n", held, missed);
  if (!options.output.empty()) write_file(options.output, json_line(as_json(rows, options)));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How fast is each sum on the GPU, for arrays of every length?", "speed_vs_length"};
  SpeedOptions options;
  app.add_option("--inputs", options.inputs, "Formats of the elements (default fp32,fp16,bf16,fp64)");
  app.add_option("--methods", options.methods,
                 "As in samesum compare (default: plain, compensated, exact, peers)");
  app.add_option("--from", options.shortest, "Shortest length, as a power of 2 (default 10)");
  app.add_option("--to", options.longest, "Longest length, as a power of 2 (default 32)");
  app.add_option("--step", options.step, "Between powers (default 2)");
  app.add_option("--repeat", options.speed.repeats, "Runs of each method, in turns (default 11)");
  app.add_flag("--cold", options.speed.cold, "Read data that are in no cache (default: the same again)");
  app.add_option("--output", options.output, "Write the results there too, as JSON");
  app.footer(
      "Exits with 1 if a result has other bits than on the CPU; a missed bar is no failure.\n\nExamples:\n"
      "  speed_vs_length\n  speed_vs_length --inputs fp32 --from 20 --to 30\n"
      "  speed_vs_length --cold --output speed.jsonl");
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "speed_vs_length: %s\n", error.what());
    return 2;
  }
}
