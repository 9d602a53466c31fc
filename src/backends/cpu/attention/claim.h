#pragma once
#include <optional>
#include <vector>

#include "backends/cpu/attention/operand_views.h"
#include "lowering/claim.h"

namespace rlx::cpu {

/// The op `attention` as its kernel takes it: views of stored values. Keys and values of f32 may be stored as narrower numbers, and int8
/// ones with scales, which the kernel widens.
struct Attention {
  ValueId node, result;  // result: the value that is stored (the op's, or the end of the moves that follow it)
  Dims batch;            // extents of the axes before the heads
  Dim heads, kv_heads, queries, keys, head_size, value_size;
  StridedOperand q, k, v, out;                          // (batch..., head, row, feature)
  std::optional<RowScales> k_scales, v_scales;          // of int8
  std::optional<StridedOperand> mask, bias, positions;  // (batch..., head, query, key); positions: (batch..., query)
  double scale = 0, softcap = 0;
  bool causal = false;
  std::int64_t window = 0;
  bool int16 = false;

  double flops(const Graph& graph, const Bindings& bindings) const;
};

/// Takes q, k and v in f32 or bf16, a bias in f32, positions in i32 or i64, heads of up to 1024 features.
const Claim& attention_claim();

}  // namespace rlx::cpu
