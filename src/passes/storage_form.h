#pragma once
#include "rlx/graph.h"

namespace rlx {

/// True for types whose values `load_parts` takes apart: complex ones and those of narrow_types.h.
bool has_parts(DType t);

/// A stored value as values that kernels can compute with, of its shape: the real and the imaginary part of a complex one; the numbers of
/// a narrow one. They are index maps and scalar ops on `reinterpret` of its bytes, or, of 4-bit integers in rows of symbolic sizes that may
/// end inside a byte, a cast of the whole.
Values load_parts(Value stored);

/// The value of that type whose bytes hold the parts.
Value store_parts(const Values& parts, const Type& type);

/// The parts of a constant of one element, as constants.
Values constant_parts(GraphData& graph, const Array& value);

}  // namespace rlx
