#pragma once
#include <string_view>

#include "lowering/attention/attention_views.h"

namespace rlx::gpu {

inline constexpr std::int64_t most_features = 256;  // of queries, keys and values: what a block of rows keeps in registers and on chip

/// The kernels of a launch, one after the other.
std::vector<GeneratedKernel> attention_kernels(const Draft& draft, const AttentionViews& attention);

/// One way to compute attention: CUDA C++ that ends in `void attend(const Problem&)`. In front of it stand the numbers of the op as
/// constants, and `Problem`: where the operands lie, and which rows a group computes. A row is a query of one of the heads that share keys.
struct AttentionCode {
  std::string_view text;
  int rows;   // of a group
  int keys;   // of a tile
  int lanes;  // of a group
  int on_chip_bytes;
};

/// Any types, by plain products of f32.
AttentionCode plain_attention(const AttentionViews& attention);

}  // namespace rlx::gpu
