#pragma once
#include <cstddef>
#include <cstdint>

// How blocks of GGUF files are laid out in the panels of BlockKernel: see block_tile.h for what the kernels expect of each type.

namespace rlx::cpu {

/// The 16 numbers that the codes of IQ4_NL and IQ4_XS name, and those of MXFP4 and NVFP4, doubled.
inline constexpr std::int8_t nonlinear_numbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr std::int8_t doubled_fp4_numbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// The same of the codes that panels have for points of grids: a coordinate, and above it whether it is negative. Those of IQ1 are
/// multiplied by 8, so that the eighth more or less that a group has is whole: above the coordinate is whether it is less.
inline constexpr std::int8_t iq1_numbers[16] = {-7, 1, 9, 0, -9, -1, 7};
inline constexpr std::int8_t iq2_numbers[16] = {8, 25, 43, 0, -8, -25, -43};
inline constexpr std::int8_t iq3_xxs_numbers[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
inline constexpr std::int8_t iq3_s_numbers[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

/// BlockKernel::pack_panel of each type.
void pack_q4_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q4_1(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q5_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q5_1(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q8_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q4_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q5_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q6_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq4_nl(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq4_xs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_mxfp4(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_nvfp4(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q8_1(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q8_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q2_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_q3_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_tq1_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_tq2_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq1_s(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq1_m(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq2_xxs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq2_xs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq2_s(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq3_xxs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);
void pack_iq3_s(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes);

}  // namespace rlx::cpu
