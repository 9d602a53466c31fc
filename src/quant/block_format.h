#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Tensor types of GGUF files. A row of a tensor is a sequence of blocks, each of which stores as many values in as many bytes. A plain type
// (F32, I8, ...) is one of one value.

namespace rlx {

struct BlockFormat {
  std::string_view name;  // as GGUF tools write it: "Q4_K"
  std::uint32_t id;       // in a tensor's record of a GGUF file
  std::int64_t values;    // of one block
  std::int64_t bytes;     // of one block; little-endian

  /// The values of blocks, each with the roundings of the published decoders: one per operation in f32. `count` is the number of values, a
  /// multiple of `values`. Any bytes decode to something. The thread must not flush subnormals.
  void (*decode)(const std::byte* blocks, float* values, std::int64_t count);

  /// One row as blocks, by a search for the least sum of squared errors, each weighted by `importance`: a finite weight of at least 0 for
  /// each of the `count` values, or null where all weigh the same. Weights matter within a block. `count` is a multiple of `values`. Scales
  /// that f16 cannot hold saturate. Plain integers are rounded to the nearest and saturate. Throws Error naming the position where a format
  /// of several values a block meets a value that is not finite.
  void (*encode)(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// All of them, in the order of their ids.
std::span<const BlockFormat> block_formats();

/// The format of that id or name ("Q4_K"; case does not matter), or null.
const BlockFormat* find_block_format(std::uint32_t id);
const BlockFormat* find_block_format(std::string_view name);

}  // namespace rlx
