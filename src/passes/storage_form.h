#pragma once
#include "rlx/graph.h"

namespace rlx {

/// True for types whose values `load_parts` takes apart: complex ones and those of narrow_types.h.
bool has_parts(DType t);

/// True when `load_parts` and `store_parts` know where each element lies: always, but for 4-bit integers that share a byte with elements
/// of another row, or with none, where sizes are symbolic.
bool has_known_places(const Type& type);

/// A stored value as values that kernels can compute with, of its shape: the real and the imaginary part of a complex one; the numbers of
/// a narrow one. They are index maps and scalar ops on `reinterpret` of its bytes.
Values load_parts(Value stored);

/// The value of that type whose bytes hold the parts.
Value store_parts(const Values& parts, const Type& type);

/// The parts of a constant of one element, as constants.
Values constant_parts(GraphData& graph, const Array& value);

}  // namespace rlx
