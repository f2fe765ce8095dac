/// Tests that random data tells models of matrix units apart: a model that is wrong in one parameter is
/// caught.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tensor_cores/data.hpp"
#include "tensor_cores/fit.hpp"
#include "tensor_cores/probes.hpp"

namespace samesum::tensor_cores {
namespace {

/// Dot products of all classes, with what a model says of them.
template <class I> std::vector<Dot> dots_of(const FusedSum& model) {
  std::vector<Dot> dots;
  for (int i = 0; i < 100 * classes; ++i) {
    const std::uint64_t tile = hash(1, std::uint64_t(i));
    for (int output = 0; output < 4; ++output) {
      Dot d;
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

template <class I> int mismatches(const FusedSum& model, const std::vector<Dot>& dots) {
  int found = 0;
  for (const Dot& d : dots) found += predicted<I>(d.a, d.b, d.c, model) != d.hardware;
  return found;
}

/// Expects each model that differs from `model` in one of these parameters to be caught.
template <class I> void expect_caught(const FusedSum& model, const std::set<std::string>& parameters) {
  const std::vector<Dot> dots = dots_of<I>(model);
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

TEST(Probes, RevealTheBitsAndTheGroupsOfAModel) {
  const auto probes = [](const FusedSum& p) {
    return probe_results<Instruction<element::fp16, float>>([&](std::vector<Dot>& dots) {
      for (Dot& d : dots) d.hardware = predicted<Instruction<element::fp16, float>>(d.a, d.b, d.c, p);
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
