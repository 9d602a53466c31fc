#pragma once
#include <optional>
#include <vector>

#include "lowering/attention/operand_views.h"
#include "lowering/claim.h"

namespace rlx {

/// The op `attention` as kernels of its own take it: views of stored values. Keys and values of f32 may be stored as narrower numbers, and
/// int8 ones with scales, which such a kernel widens.
struct AttentionViews {
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

  /// The stored values that are read.
  std::vector<ValueId> reads() const;
  double flops(const Graph& graph, const Bindings& bindings) const;
};

/// The operands of the op by what they are; those that are optional may be missing.
struct AttentionOperands {
  explicit AttentionOperands(const Node& node);
  ValueId q, k, v;
  std::optional<ValueId> mask, bias, positions;
};

/// A claim of attention at work: operands that are no views of stored values are stored, and results go straight where the moves behind the
/// op lead. A device says which nodes it takes, and makes the launches.
class AttentionClaimed : public GraphClaim {
 public:
  using Takes = bool (*)(const Graph& graph, const Node& node);
  using MakesLaunch = Launch (*)(const Draft& draft, const AttentionViews& attention);
  AttentionClaimed(Draft& draft, Takes takes, MakesLaunch launch_of);

  void store_operands() override;
  std::vector<std::vector<ValueId>> regions() const override { return regions_; }
  void build() override;
  std::optional<Launch> launch(ValueId value) override;

 private:
  AttentionViews view_operands(const std::vector<ValueId>& region);

  Draft& draft_;
  MakesLaunch launch_of_;
  std::vector<std::vector<ValueId>> regions_;  // the op and the moves behind it
  std::map<ValueId, AttentionViews> built_;    // by the value that is stored
};

}  // namespace rlx
