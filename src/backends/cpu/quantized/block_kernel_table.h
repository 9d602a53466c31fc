#pragma once
#include "backends/cpu/quantized/block_codes.h"
#include "backends/cpu/quantized/block_pack.h"
#include "backends/cpu/quantized/block_tables.h"

namespace rlx::cpu {
namespace {

template <class Codes, class Scales>
constexpr BlockKernel empty_block_kernel(std::string_view name, const RowFormat& format, BlockKernel::PackPanel pack_panel) {
  BlockKernel kernel;
  kernel.type = name;
  kernel.rows = format;
  kernel.block_values = Scales::steps * RowFormat::step;
  kernel.scale_bytes = Scales::bytes;
  kernel.code_bytes = Scales::steps * Codes::step_bytes;
  kernel.pack_panel = pack_panel;
  return kernel;
}

/// `Make` for each block type that is multiplied as it is stored: Make::type<Codes, Scales, RowFormat>(name, pack_panel) is its entry.
template <class Table, class V, class Make>
consteval Table for_block_types() {
  constexpr int raised = V::raised ? 128 : 0;
  using Nonlinear = Named<V, Nibbles<V>, nonlinear_numbers, 127>;
  using DoubledFp4 = Named<V, Nibbles<V>, doubled_fp4_numbers, 12>;
  using Iq1 = Named<V, ThreeBits<V>, iq1_numbers, 9>;
  using Iq2 = Named<V, ThreeBits<V>, iq2_numbers, 43>;
  using Iq3Xxs = Named<V, Nibbles<V>, iq3_xxs_numbers, 62>;
  using Iq3S = Named<V, Nibbles<V>, iq3_s_numbers, 15>;
  return {{
      Make::template type<Nibbles<V>, HalfScale<V>, RowFormat{8, 1, false}>("Q4_0", pack_q4_0),
      Make::template type<Nibbles<V>, HalfScaleAndStart<V>, RowFormat{0, 1, true}>("Q4_1", pack_q4_1),
      Make::template type<FiveBits<V>, HalfScale<V>, RowFormat{16, 1, false}>("Q5_0", pack_q5_0),
      Make::template type<FiveBits<V>, HalfScaleAndStart<V>, RowFormat{0, 1, true}>("Q5_1", pack_q5_1),
      Make::template type<WholeBytes<V>, HalfScale<V>, RowFormat{raised, 1, false}>("Q8_0", pack_q8_0),
      Make::template type<Nibbles<V>, SuperScaleAndMinimum<V, 1>, RowFormat{0, 1, true}>("Q4_K", pack_q4_k),
      Make::template type<FiveBits<V>, SuperScaleAndMinimum<V, 1>, RowFormat{0, 1, true}>("Q5_K", pack_q5_k),
      Make::template type<SixBits<V>, SuperScale<V, 2>, RowFormat{32, 2, false}>("Q6_K", pack_q6_k),
      Make::template type<Nonlinear, HalfScale<V>, RowFormat{raised, 1, false}>("IQ4_NL", pack_iq4_nl),
      Make::template type<Nonlinear, SuperScale<V, 1>, RowFormat{raised, 1, false}>("IQ4_XS", pack_iq4_xs),
      Make::template type<DoubledFp4, ExponentScale<V>, RowFormat{raised, 1, false}>("MXFP4", pack_mxfp4),
      Make::template type<DoubledFp4, HalfScales<V>, RowFormat{raised, 2, false}>("NVFP4", pack_nvfp4),
      Make::template type<WholeBytes<V>, HalfScale<V>, RowFormat{raised, 1, false}>("Q8_1", pack_q8_1),
      Make::template type<WholeBytes<V>, WholeScale<V>, RowFormat{raised, 1, false}>("Q8_K", pack_q8_k),
      Make::template type<TwoBits<V>, SuperScaleAndMinimum<V, 2>, RowFormat{0, 2, true}>("Q2_K", pack_q2_k),
      Make::template type<ThreeBits<V>, SuperScale<V, 2>, RowFormat{4, 2, false}>("Q3_K", pack_q3_k),
      Make::template type<TwoBits<V>, SuperScale<V, 1>, RowFormat{1, 1, false}>("TQ1_0", pack_tq1_0),
      Make::template type<TwoBits<V>, SuperScale<V, 1>, RowFormat{1, 1, false}>("TQ2_0", pack_tq2_0),
      Make::template type<Iq1, SuperScale<V, 1, 8>, RowFormat{raised, 1, false}>("IQ1_S", pack_iq1_s),
      Make::template type<Iq1, SuperScale<V, 2, 8>, RowFormat{raised, 2, false}>("IQ1_M", pack_iq1_m),
      Make::template type<Iq2, SuperScale<V, 1, 8>, RowFormat{raised, 1, false}>("IQ2_XXS", pack_iq2_xxs),
      Make::template type<Iq2, SuperScale<V, 2, 8>, RowFormat{raised, 2, false}>("IQ2_XS", pack_iq2_xs),
      Make::template type<Iq2, SuperScale<V, 2, 8>, RowFormat{raised, 2, false}>("IQ2_S", pack_iq2_s),
      Make::template type<Iq3Xxs, SuperScale<V, 1, 4>, RowFormat{raised, 1, false}>("IQ3_XXS", pack_iq3_xxs),
      Make::template type<Iq3S, SuperScale<V, 1>, RowFormat{raised, 1, false}>("IQ3_S", pack_iq3_s),
  }};
}

}  // namespace
}  // namespace rlx::cpu
