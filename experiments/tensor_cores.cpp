/// What do matrix units add, and in which order, with how many bits?
#include <algorithm>
#include <sstream>

#include "harness/names.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"
#include "tensor_cores/hardware.hpp"
#include "tensor_cores/probes.hpp"
#include "tensor_cores/sums_study.hpp"
#include "tensor_cores/tiles.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;
using namespace samesum::tensor_cores;

/// Dot products of an instruction that are compared one by one, and of which hashes are published.
constexpr std::size_t quick_dots = 100'000'000, all_dots = 10'000'000'000, quick_hashes = 10,
                      all_hashes = 1000, published_cases = 200;

std::string words_in_hex(const std::uint32_t (&x)[words]) {
  std::string text;
  for (const std::uint32_t w : x) text += (text.empty() ? "" : " ") + bit_string({&format_info<fp32>(), w});
  return text;
}

/// `result` is the format of the result, or one as wide.
Json case_json(const DotProduct& d, const FormatInfo& result) {
  return {{"class", class_names[d.kind]},
          {"a", words_in_hex(d.a)},
          {"b", words_in_hex(d.b)},
          {"c", bit_string({&result, d.c})},
          {"result", bit_string({&result, d.hardware})}};
}

/// The parameters of a model; null for fp64 and int8, which are added one after the other.
template <class I> Json model_json() {
  if constexpr (!requires { I::model; }) {
    return nullptr;
  } else {
    constexpr FusedSum p = I::model;
    return {{"group", p.group},
            {"run", p.run},
            {"fraction_bits", p.fraction_bits},
            {"smallest_exponent", p.smallest_exponent},
            {"adds_last", p.adds_last},
            {"result_fraction_bits", p.result_fraction_bits},
            {"rounding", p.result == Cut::toward_zero ? "toward zero" : "to nearest"}};
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in{text};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Probes, whose results the hardware and the model give in words.
template <class I> void probe(Study& study, const Unit& unit) {
  const std::vector<std::string> theirs = lines_of(probe_results<I>(unit.execute));
  study.expect(theirs.size());
  const std::vector<std::string> ours = lines_of(probe_results<I>([](std::vector<DotProduct>& dots) {
    for (DotProduct& d : dots) d.hardware = predicted<I>(d.a, d.b, d.c, model_of<I>);
  }));
  std::size_t same = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const Json row = study.row({{"kind", "probe"}, {"instruction", I::name}, {"probe", i}}, [&] {
      return Json{{"found", theirs[i]}, {"same", theirs[i] == ours[i]}};
    });
    same += row["same"] == Json(true);
    if (row["same"] == Json(false))
      study.fail(std::string{I::name} + ": the model's " + ours[i] + ", but the " + theirs[i]);
  }
  if (!theirs.empty())
    study.print("  " + std::to_string(same) + " of " + std::to_string(theirs.size()) +
                " probes have the model's results");
}

template <class I> void compare_in_numbers(Study& study, const Unit& unit) {
  std::vector<Json> keys;
  for (int kind = 0; kind < classes; ++kind)
    keys.push_back(
        {{"kind", "fused"}, {"instruction", I::name}, {"class", class_names[kind]}, {"seed", study.seed()}});
  const std::vector<Json> rows = study.rows(keys, [&] {
    std::vector<Counts> total(classes);
    std::size_t dots = 0;
    for (std::uint64_t launch = 0; dots < (study.full() ? all_dots : quick_dots); ++launch) {
      const std::vector<Counts> counts = unit.compare(hash(study.seed(), launch));
      for (std::size_t kind = 0; kind < classes; ++kind) {
        total[kind].dots += counts[kind].dots;
        total[kind].mismatches += counts[kind].mismatches;
        total[kind].other_nans += counts[kind].other_nans;
        dots += counts[kind].dots;
      }
    }
    std::vector<Json> found;
    for (const Counts& c : total)
      found.push_back({{"dots", c.dots}, {"mismatches", c.mismatches}, {"other_nans", c.other_nans}});
    return found;
  });
  for (const Json& row : rows) {
    study.print("  " + left(row["class"], 14) + right(row["dots"].dump(), 16) + " dot products, " +
                row["mismatches"].dump() + " differ from the model, " + row["other_nans"].dump() +
                " are NaN with other bits");
    if (row["mismatches"] != Json(0))
      study.fail(std::string{I::name} + ": " + row["mismatches"].dump() + " of " + row["dots"].dump() +
                 " dot products of the class " + std::string{row["class"]} + " differ from the model");
  }
}

/// Hashes of the first dot products, and some of them in full: by the hardware, or without one by the model.
template <class I> void publish(Study& study, const Unit* unit) {
  const std::size_t hashes = study.full() ? all_hashes : quick_hashes;
  const auto tiles = int(hashes * per_hash / per_tile<I>);
  using Result = typename I::Result;
  const FormatInfo& as_wide =
      format_info<std::conditional_t<std::is_same_v<Result, std::int32_t>, fp32, Result>>();
  const Json row = study.row(
      {{"kind", "dots"}, {"instruction", I::name}, {"seed", study.seed()}, {"n", hashes * per_hash}}, [&] {
        const std::vector<DotProduct> ours =
            modelled_dots<I>(study.seed(), std::uint64_t(tiles), model_of<I>);
        const std::vector<DotProduct> dots = unit ? unit->sample(study.seed(), tiles) : ours;
        const std::vector<std::uint64_t> of_dots = hashes_of<I>(dots), of_model = hashes_of<I>(ours);
        std::size_t equal = 0;
        Json texts = Json::array(), cases = Json::array();
        for (std::size_t i = 0; i < of_dots.size(); ++i) {
          texts.push_back(hexadecimal_digest(of_dots[i]));
          equal += of_dots[i] == of_model[i];
        }
        // One dot product of each of the first tiles, at another place.
        for (std::size_t i = 0; i < published_cases && i < std::size_t(tiles); ++i)
          cases.push_back(case_json(dots[i * per_tile<I> + i * 37 % per_tile<I>], as_wide));
        return Json{
            {"by", unit ? "hardware" : "model"}, {"equal", equal}, {"hashes", texts}, {"cases", cases}};
      });
  if (row["equal"] != row["hashes"].size())
    study.fail(std::string{I::name} + ": the model on the CPU has " + row["equal"].dump() + " of " +
               std::to_string(row["hashes"].size()) + " hashes");
}

template <class I> void measure(Study& study, const Unit* unit) {
  const Json row = study.row({{"kind", "instruction"}, {"instruction", I::name}}, [&] {
    const Json opcodes = unit && !unit->opcodes.empty() ? Json(unit->opcodes) : Json(nullptr);
    return Json{
        {"opcodes", opcodes}, {"expected_opcode", I::opcode}, {"products", I::n}, {"model", model_json<I>()}};
  });
  study.print(std::string{I::name} + ", " +
              (row["opcodes"].is_null() ? std::string{I::opcode} : row["opcodes"].dump()));
  if (unit) {
    probe<I>(study, *unit);
    compare_in_numbers<I>(study, *unit);
  }
  publish<I>(study, unit);
}

bool is_chosen(const std::string& filter, std::string_view name) {
  if (filter.empty()) return true;
  return std::ranges::any_of(globs_in(filter),
                             [&](const std::string& glob) { return matches(glob, std::string{name}); });
}

/// The instructions that --filter chooses.
std::vector<std::string_view> chosen(const std::string& filter) {
  std::vector<std::string_view> names;
  Instructions::for_each([&]<class I>() {
    if (is_chosen(filter, I::name)) names.push_back(I::name);
  });
  if (names.empty())
    throw UsageError{"--filter: '" + filter + "' matches no instruction; see --help for their names"};
  return names;
}

std::string instructions_in_words() {
  std::string text;
  Instructions::for_each([&]<class I>() { text += "\n  " + std::string{I::name}; });
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "tensor_cores",
      "What do tensor cores add, in which order, and with how many bits?",
      "A matrix unit adds the products of a row and a column, and an addend, in groups: all terms are "
      "aligned to the largest exponent and cut, the integers are added, and the sum is rounded once. How "
      "many products form a group, how many bits are kept, and what happens to subnormal numbers, "
      "overflow and NaN is not documented. Each instruction of Hopper has a model with these facts as "
      "parameters (samesum/accumulator/fused_sum.hpp). Here the hardware is "
      "compared with it: on probes, dot products of a few powers of two that reveal one parameter each "
      "(Fasi, Higham, Mikaitis and Pranesh 2021; the groups as in FPRev, Xie et al. 2024, arXiv "
      "2411.00442); and bit by bit on random dot products of six classes: ordinary numbers, wide "
      "exponents, arbitrary bits, pairs that cancel, one large product beside those at the last kept "
      "bits, and tiny numbers. With --full, each instruction executes 10^10 of them. Other models: Xie et "
      "al. 2025 (MMA-Sim, arXiv 2511.10909), Khattak and Mikaitis 2025 (arXiv 2512.07004).\n\n"
      "A hash of each 1024 of the first 10240 dot products (--full: 1024000) is published, and up "
      "to 200 of them in full: results of the hardware, or, without a GPU of "
      "compute capability 9.0, of the model "
      "on the CPU, which then is all that is measured.\n\n"
      "Sums of fp16 and bf16 are products with ones: vectors, rows and columns, in an order that is a "
      "function of n alone, so that the model gives them the same bits everywhere. Their errors are "
      "compared with a proved bound, their bits with the executable definition and over launches, and "
      "their times, in CUDA graphs of 20 calls, with those of sum/tree/plain/fp32 in turns. --filter "
      "leaves them out.\n\nExit code 1 if the hardware and its model differ, or if a sum breaks its bound "
      "or its order.",
      {"instruction", "probe", "fused", "dots", "unit_sum"},
      "  tensor_cores\n"
      "  tensor_cores --full --out build/study\n"
      "  tensor_cores --filter 'wgmma*e4m3*' --json\n\nInstructions, which --filter chooses:" +
          instructions_in_words()};
  study.add_processes();
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<Unit>* hardware = nullptr;
    const std::vector<std::string_view> names = chosen(s.filter());
    try {
      hardware = &units();
    } catch (const std::runtime_error& e) {
      s.leave_out("the hardware", e.what());
    }
    const bool has_sums = hardware != nullptr && s.filter().empty();
    s.expect(names.size() * (hardware ? 2 + classes : 2) + (has_sums ? rows_of_sums(s.full()) : 0));
    Instructions::for_each([&]<class I>() {
      if (std::ranges::find(names, I::name) == names.end()) return;
      const Unit* unit = nullptr;
      if (hardware) unit = &*std::ranges::find(*hardware, I::name, &Unit::instruction);
      measure<I>(s, unit);
    });
    if (has_sums) study_sums(s);
  });
}
