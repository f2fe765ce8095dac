/// Tests that the models of matrix units have the published bits of the hardware, and that random data
/// catches a model that is wrong in one parameter.
#include <gtest/gtest.h>

#include <fstream>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "harness/results.hpp"
#include "tensor_cores/fit.hpp"
#include "tensor_cores/probes.hpp"
#include "tensor_cores/tiles.hpp"

namespace samesum::tensor_cores {
namespace {

/// Dot products of all classes, with what a model says of them.
template <class I> std::vector<DotProduct> dots_of(const FusedSum& model) {
  std::vector<DotProduct> dots;
  for (int i = 0; i < 100 * classes; ++i) {
    const std::uint64_t tile = hash(1, std::uint64_t(i));
    for (int output = 0; output < 4; ++output) {
      DotProduct d;
      d.kind = i % classes;
      for (int w = 0; w < words; ++w) {
        d.a[w] = generated_word<I>(Class(d.kind), tile, 0, output / 2, w);
        d.b[w] = generated_word<I>(Class(d.kind), tile, 1, output % 2, w);
      }
      d.c = generated_addend<I>(Class(d.kind), tile, output, d.a, d.b);
      d.hardware = predicted<I>(d.a, d.b, d.c, model);
      dots.push_back(d);
    }
  }
  return dots;
}

template <class I> int mismatches(const FusedSum& model, const std::vector<DotProduct>& dots) {
  int found = 0;
  for (const DotProduct& d : dots) found += predicted<I>(d.a, d.b, d.c, model) != d.hardware;
  return found;
}

/// Expects each model that differs from `model` in one of these parameters to be caught.
template <class I> void expect_caught(const FusedSum& model, const std::set<std::string>& parameters) {
  const std::vector<DotProduct> dots = dots_of<I>(model);
  ASSERT_EQ(mismatches<I>(model, dots), 0);
  std::set<std::string> seen;
  for (const Axis& axis : axes_of(model, I::n, Format<typename I::Result>::precision - 1)) {
    if (!parameters.contains(axis.name)) continue;
    seen.insert(axis.name);
    for (const FusedSum& wrong : axis.models)
      if (describe(wrong) != describe(model)) {
        EXPECT_GT(mismatches<I>(wrong, dots), 0) << describe(wrong);
      }
  }
  EXPECT_EQ(seen, parameters);
}

TEST(RandomData, CatchesModelsOfFp16ThatAreWrongInOneParameter) {
  expect_caught<Instruction<element::fp16, float>>(
      {}, {"bits", "alignment", "exponent", "group", "zeros", "flush_elements", "flush_addend", "adds_last",
           "result_bits", "result_cut", "zero_sign"});
}

TEST(RandomData, CatchesModelsOfFp16ResultsThatAreWrongInOneParameter) {
  FusedSum p;
  p.result_fraction_bits = 10;
  p.result = Cut::nearest_even;
  p.nan = 0x7fff;
  expect_caught<Instruction<element::fp16, fp16>>(
      p, {"bits", "alignment", "exponent", "group", "flush_elements", "flush_addend", "flush_result",
          "adds_last", "result_bits", "result_cut", "saturates", "zero_sign"});
}

TEST(RandomData, CatchesModelsOfBf16AndTf32ThatAreWrongInOneParameter) {
  const std::set<std::string> parameters{
      "bits",         "alignment", "exponent",    "group",      "zeros",     "flush_elements", "flush_addend",
      "flush_result", "adds_last", "result_bits", "result_cut", "saturates", "zero_sign",      "underflow"};
  expect_caught<Instruction<element::bf16, float>>({}, parameters);
  FusedSum p;
  p.group = p.run = 8;
  std::set<std::string> of_tf32 = parameters;
  of_tf32.insert("round_elements");
  expect_caught<Instruction<element::tf32, float>>(p, of_tf32);
}

TEST(RandomData, CatchesModelsOfFp8ThatAreWrongInOneParameter) {
  FusedSum p;
  p.group = p.run = 32;
  p.fraction_bits = p.result_fraction_bits = 13;
  const std::set<std::string> parameters{"bits",        "alignment",      "exponent",
                                         "group",       "flush_elements", "adds_last",
                                         "result_bits", "result_cut",     "zero_sign"};
  expect_caught<Instruction<element::e4m3, float>>(p, parameters);
  expect_caught<Instruction<element::e5m2, float>>(p, parameters);
}

/// The published results of the hardware: the row "dots" of each instruction.
const std::map<std::string, harness::Json>& published() {
  static const std::map<std::string, harness::Json> rows = [] {
    std::map<std::string, harness::Json> found;
    std::ifstream file{SAMESUM_SOURCE_DIR "/experiments/results/h200.tensor_cores.jsonl"};
    for (std::string line; std::getline(file, line);)
      if (const harness::Json row = harness::Json::parse(line); row["kind"] == "dots")
        found[row["instruction"]] = row;
    return found;
  }();
  return rows;
}

/// The first hashes of a model, as they are published.
template <class I>
std::vector<std::string> hashes_by(const FusedSum& model, std::uint64_t seed, std::size_t n) {
  std::vector<std::string> texts;
  for (const std::uint64_t h : hashes_of<I>(modelled_dots<I>(seed, n * per_hash / per_tile<I>, model))) {
    std::ostringstream text;
    text << "0x" << std::hex << std::setw(16) << std::setfill('0') << h;
    texts.push_back(text.str());
  }
  return texts;
}

/// On how many published dot products, which are given in full, a model differs from the hardware.
template <class I> int wrong_cases(const FusedSum& model, const harness::Json& row) {
  int wrong = 0;
  const auto bits = [](const harness::Json& text) {
    return std::stoull(text.get<std::string>(), nullptr, 16);
  };
  for (const harness::Json& c : row["cases"]) {
    DotProduct d;
    std::istringstream a{c["a"].get<std::string>()}, b{c["b"].get<std::string>()};
    for (int w = 0; w < words; ++w) {
      a >> std::hex >> d.a[w];
      b >> std::hex >> d.b[w];
    }
    const std::uint64_t ours = predicted<I>(d.a, d.b, bits(c["c"]), model), theirs = bits(c["result"]);
    const bool any_nan = std::is_same_v<typename I::Result, double> && is_nan<I>(ours) && is_nan<I>(theirs);
    wrong += ours != theirs && !any_nan;
  }
  return wrong;
}

/// Whether a model has another hash than is published. Takes ten times as many at a time: one bit less shows
/// in few results of fp16.
template <class I> bool is_caught(const FusedSum& model, const harness::Json& row) {
  for (std::size_t n = 10; n <= 100; n *= 10) {
    const std::vector<std::string> hashes = hashes_by<I>(model, row["seed"], n);
    for (std::size_t i = 0; i < n; ++i)
      if (row["hashes"][i] != hashes[i]) return true;
  }
  return false;
}

TEST(ModelsOfMatrixUnits, HaveThePublishedBitsOfTheHardware) {
  Instructions::for_each([]<class I>() {
    SCOPED_TRACE(I::name);
    ASSERT_TRUE(published().contains(std::string{I::name}));
    const harness::Json& row = published().at(std::string{I::name});
    EXPECT_EQ(row["by"], "hardware");
    EXPECT_EQ(row["hashes"].size(), 1000u);
    EXPECT_EQ(row["cases"].size(), 200u);
    const std::vector<std::string> hashes = hashes_by<I>(model_of<I>, row["seed"], 10);
    for (std::size_t i = 0; i < hashes.size(); ++i) EXPECT_EQ(row["hashes"][i], hashes[i]) << i;
    EXPECT_EQ(wrong_cases<I>(model_of<I>, row), 0);
  });
}

TEST(PublishedDotProducts, CatchAWrongBitARoundingAndAGroup) {
  Instructions::for_each([]<class I>() {
    if constexpr (requires { I::model; }) {
      FusedSum bit = I::model, rounding = I::model, alignment = I::model, group = I::model;
      // Hardly any fp16 result of fp8 by mma.sync depends on the last bits of an exact product of fp16.
      bit.fraction_bits -= I::model.adds_last && Format<typename I::Result>::precision == 11 ? 8 : 1;
      rounding.result = I::model.result == Cut::toward_zero ? Cut::nearest_even : Cut::toward_zero;
      alignment.alignment = Cut::nearest_even;
      alignment.fraction_bits = bit.fraction_bits;
      group.group /= 2;
      if (I::model.run == I::model.group) group.run /= 2;
      for (const FusedSum& wrong : {bit, rounding, alignment, group})
        EXPECT_TRUE(is_caught<I>(wrong, published().at(std::string{I::name})))
            << I::name << ", " << describe(wrong);
    }
  });
}

TEST(Probes, RevealTheBitsAndTheGroupsOfAModel) {
  const auto probes = [](const FusedSum& p) {
    return probe_results<Instruction<element::fp16, float>>([&](std::vector<DotProduct>& dots) {
      for (DotProduct& d : dots) d.hardware = predicted<Instruction<element::fp16, float>>(d.a, d.b, d.c, p);
    });
  };
  FusedSum p;
  p.fraction_bits = 24;
  p.group = p.run = 8;
  const std::string text = probes(p);
  EXPECT_NE(text.find("product 2 is small                         last kept 2^-24 "), std::string::npos)
      << text;
  // product 0 cancels one of its own group: those of the other group survive
  EXPECT_NE(text.find("while product 0 cancels product 0, 1, ...: - 8 8 8 8 8 8 8 0 0"), std::string::npos)
      << text;
  EXPECT_NE(text, probes({}));
}

}  // namespace
}  // namespace samesum::tensor_cores
