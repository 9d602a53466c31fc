#pragma once
#include <cstddef>
#include <cstdint>

// How blocks of GGUF files are laid out in the panels of BlockKernel: see block_tile.h for what the kernels expect of each type.

namespace rlx::cpu {

/// The 16 numbers that the codes of IQ4_NL and IQ4_XS name, and those of MXFP4, doubled.
inline constexpr std::int8_t nonlinear_numbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr std::int8_t doubled_fp4_numbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

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

}  // namespace rlx::cpu
