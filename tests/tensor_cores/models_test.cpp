/// Tests that the models of matrix units have the published bits of the hardware, and that random data
/// catches a model that is wrong in one parameter.
#include <gtest/gtest.h>

#include <fstream>
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

/// The first hashes of a model.
template <class I>
std::vector<std::string> hashes_by(const FusedSum& model, std::uint64_t seed, std::size_t n) {
  std::vector<std::string> texts;
  for (const std::uint64_t h : hashes_of<I>(modelled_dots<I>(seed, n * per_hash / per_tile<I>, model)))
    texts.push_back(harness::hexadecimal_digest(h));
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

TEST(ModelsOfMatrixUnits, HaveThePublishedBitsOfTheHardware) {
  std::ifstream file{SAMESUM_SOURCE_DIR "/experiments/results/h200.tensor_cores.jsonl"};
  if (!file) GTEST_SKIP() << "no results of tensor_cores are committed";
  std::map<std::string, harness::Json> published;
  for (std::string line; std::getline(file, line);)
    if (const harness::Json row = harness::Json::parse(line); row["kind"] == "dots")
      published[row["instruction"]] = row;
  Instructions::for_each([&]<class I>() {
    SCOPED_TRACE(I::name);
    const auto found = published.find(std::string{I::name});
    ASSERT_NE(found, published.end());
    const harness::Json& row = found->second;
    EXPECT_EQ(row["by"], "hardware");
    const std::vector<std::string> hashes = hashes_by<I>(model_of<I>, row["seed"], 10);
    for (std::size_t i = 0; i < hashes.size(); ++i) EXPECT_EQ(row["hashes"][i], hashes[i]) << i;
    EXPECT_EQ(row["cases"].size(), 200u);
    EXPECT_EQ(wrong_cases<I>(model_of<I>, row), 0);
  });
}

/// Whether two models have different hashes. Takes ten times as many dot products at a time: one bit less
/// shows in few results of fp16.
template <class I> bool are_told_apart(const FusedSum& model, const FusedSum& other) {
  for (const std::size_t n : {10, 100})
    if (hashes_by<I>(model, 1, n) != hashes_by<I>(other, 1, n)) return true;
  return false;
}

TEST(HashesOfDotProducts, CatchAWrongBitARoundingAndAGroup) {
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
        EXPECT_TRUE(are_told_apart<I>(I::model, wrong)) << I::name << ", " << describe(wrong);
    }
  });
}

/// Results of fp8 by mma.sync in fp16 on an H200, which models with 27 and 21 bits do not have.
template <class I> void expect_result(const char* a, const char* b, std::uint64_t c, std::uint64_t result) {
  EXPECT_EQ(
      wrong_cases<I>(model_of<I>, {{"cases",
                                    {{{"a", a},
                                      {"b", b},
                                      {"c", (std::ostringstream{} << std::hex << c).str()},
                                      {"result", (std::ostringstream{} << std::hex << result).str()}}}}}),
      0)
      << I::name << ' ' << a;
}

TEST(ModelsOfFp8ByMmaSync, HaveResultsOfAnH200) {
  expect_result<MmaE4m3ToFp16>("35138144 f117b2d8 1b1bed52 a9a7644c 101eda46 2eab150c bcb30680 378b8448",
                               "5f008500 1bf1c56b 459aa29a 90981937 ebc42275 744f6757 a754d264 15a15ab1",
                               0xc402, 0xe093);
  expect_result<MmaE4m3ToFp16>("3d001c32 933118f5 f1de8700 4970c096 5d2afb05 10c5e141 0b67b2e2 b157e98a",
                               "d014f5e5 0580c980 1f4701fb 9d8327e7 2efb2501 b70e4e71 62b03ab4 f6dedd7e", 0x0,
                               0x6506);
  expect_result<MmaE4m3ToFp16>("dae27d85 ad5d2eec c0955096 02ad0b35 6c49757c f5f01adc e368154e 32e1143e",
                               "1d1291c8 bde184d3 8b016993 85c267ac 5a65c65d b74db5c5 d0408ec1 308851b5",
                               0x473b, 0x71dd);
  expect_result<MmaE5m2ToFp16>("2e7532ce a8c43fa7 b7be0b8a 1db97a58 934a9d00 a377c156 404ba583 ab37f2bb",
                               "ba3ac080 5f66a380 e3b461b5 80a21402 8a36da9b 4094ab36 4f8bdcd6 c4f30d65",
                               0x11c, 0x6889);
  expect_result<MmaE5m2ToFp16>("96a3d579 ac06630a eac38a68 a62f2fa2 45660772 f21b31fa 66a60401 d36a6a3f",
                               "d4b3810a 3841ee9f 4b95f1de 15b9d08d 234be42b bdd0015e af137b27 22a77004",
                               0x75fd, 0x7498);
  expect_result<MmaE5m2ToFp16>("5b238799 a8dad720 1a4f9d9a aa40e305 ad022ce3 2ee22251 575282e9 4dbf58f4",
                               "c3d96ab6 c531243e 928c9fd1 396e3686 e77bb5d3 720a4c2d 16117a0f be58fade",
                               0xc4df, 0x7b9c);
  expect_result<MmaE5m2ToFp16>("3e43c4c9 4944c3be 4a4e4e47 c7cececa c141b42d ad34c141 31c6b3bd 3d3346b1",
                               "b53cb44b 4bb43cb5 3e4ccccc cccc4c3e 373e3e2d 2d3e3e37 b0344d3d 3d4d34b0",
                               0x8000, 0x3797);
  expect_result<MmaE5m2ToFp16>("2044a829 aa202ba8 2b2aa82b 24a7aaa3 20212b28 2aa42327 2020a4a3 a7a4a428",
                               "27482821 24a0ab20 21a0a820 a924a4a7 a028a520 a024a6a8 aaa42724 282021a3",
                               0x9e, 0x4fff);
  expect_result<MmaE5m2ToFp16>("87003b30 aaa009b8 b8a8282e 3b20bcbd 221aae38 011c3184 bc0cbeb8 9000889e",
                               "008b8b07 00008e06 078e0000 0004090d 03808087 0107028f 05000c00 80880504",
                               0x8000, 0x9543);
  expect_result<MmaE5m2ToFp16>("1e90bfab 2998a880 b6352d90 8194ac19 808231b8 361c2ba0 18372000 a0bc9abb",
                               "00040e0c 84808204 800d8800 0188878c 8000080d 80000888 8700020b 0500070d", 0x0,
                               0x93d9);
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
