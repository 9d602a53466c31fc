#pragma once
#include "rlx/graph.h"

namespace rlx {

/// Adds an input node and lists it. The name is not checked: regions name their captures themselves.
Value make_input(GraphData& graph, Input input);
Value make_constant(GraphData& graph, Array value);

bool is_input(const Node& node);
/// The attributes of an input node, and back.
Attrs input_attrs(const Input& input);
Input input_from(const Attrs& attrs);
/// The value of a constant node, else null.
const Array* constant_value(const Node& node);

}  // namespace rlx
