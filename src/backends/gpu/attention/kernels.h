#pragma once
#include <string>

#include "lowering/attention/attention_views.h"

namespace rlx::gpu {

inline constexpr std::int64_t most_features = 256;  // of queries, keys and values: what a block of rows keeps in registers and on chip
inline constexpr int split_rows = 16;               // up to which keys are shared among groups

/// The kernels of a launch, one after the other.
void add_attention_kernels(const Draft& draft, const AttentionViews& attention, Launch& launch);

/// One way to compute attention, or a part of it: CUDA C++ that ends in `void attend(const Problem&)`. In front of it stand the numbers of
/// the op as constants, and `Problem`: where the operands lie, and which rows a group computes. A row is a query of one of the heads that
/// share keys.
struct AttentionCode {
  std::string shared;  // functions that texts of a program share
  std::string text;
  int rows;   // of a group
  int keys;   // of a tile
  int lanes;  // of a group
  int on_chip_bytes;
  int splits = 0;                 // groups that share the keys of a head, and leave what they find in scratch memory; 0: none do
  bool is_part = false;           // it is such a group, for all rows
  std::vector<BoxMap> maps = {};  // of keys and values, which are buffers 1 and 2; none: lanes copy them
};

/// Any types, by plain products of f32; also of a part of the keys.
AttentionCode plain_attention(const AttentionViews& attention);

/// bf16 and f16 of heads of 64 and 128 features, by Hopper's products of groups of warps.
bool takes_hopper_code(const Graph& graph, const AttentionViews& attention);
AttentionCode hopper_attention(const Graph& graph, const AttentionViews& attention);

/// Up to `split_rows` rows of any type on keys of bf16 and f16 in heads of 64 and 128 features.
bool takes_split_code(const Graph& graph, const AttentionViews& attention);
AttentionCode split_attention(const Graph& graph, const AttentionViews& attention);
/// Puts together what groups found that shared keys.
AttentionCode joining_attention(int splits);

/// Whether rows of 16 bits a feature lie side by side, and begin at multiples of 16 bytes.
bool lies_well(const StridedOperand& operand);

}  // namespace rlx::gpu
