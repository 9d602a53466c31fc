#pragma once
#include <functional>
#include <span>
#include <string_view>

#include "backends/consumer.h"
#include "backends/coreml/body.h"
#include "ir/op.h"

namespace rlx::coreml {

/// Makes operations of a region of an op, behind those of a block; `operands` are its inputs.
using EmitRegion = std::function<Tensors(Body& block, const Graph& region, const Tensors& operands)>;

/// The weight in floats or blocks that an operand is, if it is one; what may only be asked for it is not in `Call::x`.
using FindWeight = std::function<const Weight*(std::size_t operand)>;

/// A node for which a row makes operations. Floats of operands are what they are computed in, see floats_of, and bools are integers, but
/// for ops of elements and those with regions. Results get the elements of their types behind the row.
struct Call : NodeView {
  Body& out;
  const Tensors& x;
  const EmitRegion& emit_region;
  const FindWeight& weight;

  /// An empty place for a result.
  Tensor result(std::size_t result = 0) const { return {{}, *element_of(result_type(result)), shape(result)}; }
  /// Sizes of a result, and those that an attribute lists; a run has those of symbols.
  const Dims& shape(std::size_t result = 0) const { return node.results[result].shape; }
  const Dims& dims(std::string_view name) const { return attr<Dims>(name); }
};

using Rule = Tensors (*)(const Call&);
using Rows = std::span<const Row<Rule>>;

// The table, by subject.
Rows scalar_rows();
Rows structure_rows();
Rows addressing_rows();
Rows reduction_rows();
Rows contraction_rows();
Rows control_rows();
Rows composite_rows();
Rows rope_rows();
Rows recurrent_rows();
Rows random_rows();
Rows missing_rows();

/// All of them.
const RowTable<Rule>& table();
/// The first operand that CoreML's own recurrent layers ask for as a weight, as they do for all behind it; of other ops one that is not.
std::size_t recurrent_weights(const Node& node);
/// What floats of a node are computed in, and why where that is f32 whatever products are; none: in their own types.
struct Floats {
  std::optional<Element> element = {};
  std::string_view reason = {};
};
Floats floats_of(const Graph& graph, const Node& node, const ProgramParts& parts);
/// Whether both operands of a product are 8-bit integers, as under the policy of int8.
bool multiplies_int8(const Graph& graph, const Node& node);
/// Whether a node may have numbers of u32, whose bits are those of i32: for it the highest one is no sign.
bool takes_u32(const Node& node);

}  // namespace rlx::coreml
