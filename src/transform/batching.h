#pragma once
#include <span>
#include <vector>

#include "ir/op.h"

namespace rlx {

/// A value for one example, or for all of them along axis 0.
struct Batched {
  Value value;
  bool batched = false;
};

/// The outputs of a graph, or region, on a batch of `size` examples.
std::vector<Batched> batch_graph(GraphData& target, const Graph& graph, std::span<const Batched> operands, const Dim& size);

/// One op on a batch. Derived from the roles of its attributes, unless the op brings a rule; composites run their bodies.
std::vector<Batched> batch_op(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Batched> operands, const Dim& size);

/// The value with the batch on axis 0, repeated when it has none.
Value with_batch(const Batched& value, const Dim& size);
/// The type of one example with the batch in front.
Type batched_type(Type type, const Dim& size);

}  // namespace rlx
