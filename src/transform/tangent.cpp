#include "transform/tangent.h"

#include "ir/sources.h"
#include "ops/broadcasting.h"

namespace rlx {

bool carries_tangent(const Type& type) { return is_float(type.dtype) || is_complex(type.dtype); }

bool is_differentiable_operand(const OpDef& op, std::size_t i, const Type& type) {
  return carries_tangent(type) && !op.integer_operands.contains(static_cast<int>(i));
}

Value filled(GraphData& graph, const Type& type, double number) {
  Array value(type.dtype, {});
  value.set_double(0, number);
  return broadcast_to(make_constant(graph, std::move(value)), type.shape);
}

Value zeros(GraphData& graph, const Type& type) { return filled(graph, type, 0); }

Value materialized(GraphData& graph, Value tangent, const Type& type) { return tangent ? tangent : zeros(graph, type); }

Value sum_of(Value a, Value b) { return !a ? b : !b ? a : a + b; }

}  // namespace rlx
