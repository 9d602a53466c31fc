#pragma once
#include "rlx/graph.h"

namespace rlx {

/// The bytes of x, in memory order, as elements of type `to` in `shape`: c64[n] as f32[n,2], i4[n] as u8[ceil(n/2)]. No byte moves, so a
/// target gives the result the memory of x. Made by `legalize`; it has no derivative. Throws Error when the bytes are not as many.
Value reinterpret(Value x, DType to, Dims shape);

/// True for a node that `reinterpret` made.
bool is_reinterpretation(const Node& node);

}  // namespace rlx
