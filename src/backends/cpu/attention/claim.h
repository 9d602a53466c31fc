#pragma once
#include <map>
#include <optional>
#include <vector>

#include "backends/cpu/attention/operand_views.h"

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

/// The attention that the kernel computes: q, k and v in f32 or bf16, a bias in f32, positions in i32 or i64, heads of up to 1024 features.
bool takes_attention(const Graph& graph, const Node& node);

/// The moves of elements (reshapes, permutations) that follow the op and that nobody reads before the last; the kernel stores straight
/// where they lead. Begins with the op's own result.
std::vector<ValueId> attention_region(const Graph& graph, ValueId op, const std::map<ValueId, std::vector<std::int32_t>>& users,
                                      const std::function<bool(ValueId)>& must_store);

/// Sees the operands as views of stored values. Nothing when one is not: it must be stored first (`blocker` says which).
std::optional<Attention> as_attention(const Graph& graph, const std::vector<ValueId>& region, const Puller::IsStored& is_stored,
                                      ValueId& blocker);

}  // namespace rlx::cpu
