/// The instructions of matrix units of Hopper that were studied, and the model of each: a fused sum that has
/// the bits of the hardware, fused multiply-adds one after the other for fp64, and integers for int8.
#pragma once

#include <string_view>

#include "samesum/base/type_list.hpp"
#include "tensor_cores/shape.hpp"

namespace samesum::tensor_cores {

/// fp32 results of n products that are added at once.
constexpr FusedSum in_fp32(int n) {
  FusedSum p;
  p.group = p.run = n;
  p.keeps_sign_of_underflow = false;
  return p;
}
constexpr FusedSum in_fp16(int n) {
  FusedSum p = in_fp32(n);
  p.result_fraction_bits = 10;
  p.result = Cut::nearest_even;
  p.nan = 0x7fff;
  return p;
}
/// Products of fp8 by wgmma keep 13 bits, and so do results in fp32.
constexpr FusedSum of_fp8(FusedSum p, int result_fraction_bits) {
  p.fraction_bits = 13;
  p.result_fraction_bits = result_fraction_bits;
  return p;
}
/// Products of fp8 by mma.sync are two instructions of fp16: one for the lower two bytes of each word, one
/// for the upper two. The addend is added last, rounded to nearest.
constexpr FusedSum by_two_of_fp16(FusedSum p) {
  p.run = 2;
  p.adds_last = true;
  return p;
}

struct MmaFp16 : Instruction<element::fp16, float> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                    opcode = "HMMA.16816.F32";
  static constexpr FusedSum model = in_fp32(16);
};
struct MmaFp16ToFp16 : Instruction<element::fp16, fp16> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
                                    opcode = "HMMA.16816.F16";
  static constexpr FusedSum model = in_fp16(16);
};
struct MmaBf16 : Instruction<element::bf16, float> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                                    opcode = "HMMA.16816.F32.BF16";
  static constexpr FusedSum model = in_fp32(16);
};
struct MmaTf32 : Instruction<element::tf32, float> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
                                    opcode = "HMMA.1688.F32.TF32";
  static constexpr FusedSum model = in_fp32(8);
};
struct MmaE4m3 : Instruction<element::e4m3, float> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
                                    opcode = "HMMA.16816.F32";
  static constexpr FusedSum model = by_two_of_fp16(in_fp32(16));
};
struct MmaE5m2 : Instruction<element::e5m2, float> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
                                    opcode = "HMMA.16816.F32";
  static constexpr FusedSum model = by_two_of_fp16(in_fp32(16));
};
struct MmaE4m3ToFp16 : Instruction<element::e4m3, fp16> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16",
                                    opcode = "HMMA.16816.F16";
  static constexpr FusedSum model = by_two_of_fp16(in_fp16(16));
};
struct MmaE5m2ToFp16 : Instruction<element::e5m2, fp16> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16",
                                    opcode = "HMMA.16816.F16";
  static constexpr FusedSum model = by_two_of_fp16(in_fp16(16));
};
struct MmaFp64 : Instruction<element::fp64, double, 8> {
  static constexpr std::string_view name = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                                    opcode = "DMMA.8x8x4";
};
struct MmaInt8 : Instruction<Int8, std::int32_t> {
  static constexpr std::string_view name = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
                                    opcode = "IMMA.16832.S8.S8";
};
struct WgmmaFp16 : Instruction<element::fp16, float> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
                                    opcode = "HGMMA.64x8x16.F32";
  static constexpr FusedSum model = in_fp32(16);
};
struct WgmmaFp16ToFp16 : Instruction<element::fp16, fp16> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16",
                                    opcode = "HGMMA.64x8x16.F16";
  static constexpr FusedSum model = in_fp16(16);
};
struct WgmmaBf16 : Instruction<element::bf16, float> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
                                    opcode = "HGMMA.64x8x16.F32.BF16";
  static constexpr FusedSum model = in_fp32(16);
};
struct WgmmaTf32 : Instruction<element::tf32, float> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32",
                                    opcode = "HGMMA.64x8x8.F32.TF32";
  static constexpr FusedSum model = in_fp32(8);
};
struct WgmmaE4m3 : Instruction<element::e4m3, float> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
                                    opcode = "QGMMA.64x8x32.F32.E4M3.E4M3";
  static constexpr FusedSum model = of_fp8(in_fp32(32), 13);
};
struct WgmmaE5m2 : Instruction<element::e5m2, float> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2",
                                    opcode = "QGMMA.64x8x32.F32.E5M2.E5M2";
  static constexpr FusedSum model = of_fp8(in_fp32(32), 13);
};
struct WgmmaE4m3ToFp16 : Instruction<element::e4m3, fp16> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3",
                                    opcode = "QGMMA.64x8x32.F16.E4M3.E4M3";
  static constexpr FusedSum model = of_fp8(in_fp16(32), 10);
};
struct WgmmaE5m2ToFp16 : Instruction<element::e5m2, fp16> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2",
                                    opcode = "QGMMA.64x8x32.F16.E5M2.E5M2";
  static constexpr FusedSum model = of_fp8(in_fp16(32), 10);
};
struct WgmmaInt8 : Instruction<Int8, std::int32_t> {
  static constexpr std::string_view name = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8",
                                    opcode = "IGMMA.64x8x32.S8.S8";
};

using Instructions = TypeList<MmaFp16, MmaFp16ToFp16, MmaBf16, MmaTf32, MmaE4m3, MmaE5m2, MmaE4m3ToFp16,
                              MmaE5m2ToFp16, MmaFp64, MmaInt8, WgmmaFp16, WgmmaFp16ToFp16, WgmmaBf16,
                              WgmmaTf32, WgmmaE4m3, WgmmaE5m2, WgmmaE4m3ToFp16, WgmmaE5m2ToFp16, WgmmaInt8>;

/// The parameters of the model of an instruction. Those of fp64 and int8 have none.
template <class I>
constexpr FusedSum model_of = [] {
  if constexpr (requires { I::model; }) return I::model;
  return FusedSum{};
}();

}  // namespace samesum::tensor_cores
