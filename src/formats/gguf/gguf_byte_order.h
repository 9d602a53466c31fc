#pragma once
#include <cstddef>
#include <span>

#include "quant/block_format.h"

namespace rlx {

/// Reverses the bytes of the number that `bytes` holds.
void turn_number(std::span<std::byte> bytes);

/// Turns the blocks of a big-endian file into little-endian ones, in place: the numbers of two or four bytes in each block are turned
/// round, packed bits stay. `bytes` are whole blocks.
void turn_blocks(const BlockFormat& format, std::span<std::byte> bytes);

}  // namespace rlx
