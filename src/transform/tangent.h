#pragma once
#include "ir/op.h"

namespace rlx {

/// Only floats and complex numbers vary continuously; all other values have no tangent.
bool carries_tangent(const Type& type);
/// Whether a derivative flows into operand `i` of the op.
bool is_differentiable_operand(const OpDef& op, std::size_t i, const Type& type);

/// A value filled with one number, as a broadcast constant.
Value filled(GraphData& graph, const Type& type, double number);
Value zeros(GraphData& graph, const Type& type);
/// `tangent`, or zeros of `type` when it is null.
Value materialized(GraphData& graph, Value tangent, const Type& type);

/// a + b, where null is zero.
Value sum_of(Value a, Value b);

}  // namespace rlx
