#pragma once
#include "backends/cpu/quantised/block_codes.h"
#include "backends/cpu/quantised/block_pack.h"
#include "backends/cpu/quantised/block_tables.h"

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
  using Nonlinear = NamedNibbles<V, nonlinear_numbers, 127>;
  using DoubledFp4 = NamedNibbles<V, doubled_fp4_numbers, 12>;
  return {{
      Make::template type<Nibbles<V>, HalfScale<V>, RowFormat{8, 1, false}>("Q4_0", pack_q4_0),
      Make::template type<Nibbles<V>, HalfScaleAndStart<V>, RowFormat{0, 1, true}>("Q4_1", pack_q4_1),
      Make::template type<FiveBits<V>, HalfScale<V>, RowFormat{16, 1, false}>("Q5_0", pack_q5_0),
      Make::template type<FiveBits<V>, HalfScaleAndStart<V>, RowFormat{0, 1, true}>("Q5_1", pack_q5_1),
      Make::template type<WholeBytes<V>, HalfScale<V>, RowFormat{raised, 1, false}>("Q8_0", pack_q8_0),
      Make::template type<Nibbles<V>, SuperScaleAndMinimum<V>, RowFormat{0, 1, true}>("Q4_K", pack_q4_k),
      Make::template type<FiveBits<V>, SuperScaleAndMinimum<V>, RowFormat{0, 1, true}>("Q5_K", pack_q5_k),
      Make::template type<SixBits<V>, SuperScale<V, 2>, RowFormat{32, 2, false}>("Q6_K", pack_q6_k),
      Make::template type<Nonlinear, HalfScale<V>, RowFormat{raised, 1, false}>("IQ4_NL", pack_iq4_nl),
      Make::template type<Nonlinear, SuperScale<V, 1>, RowFormat{raised, 1, false}>("IQ4_XS", pack_iq4_xs),
      Make::template type<DoubledFp4, ExponentScale<V>, RowFormat{raised, 1, false}>("MXFP4", pack_mxfp4),
  }};
}

}  // namespace
}  // namespace rlx::cpu
