#pragma once
#include "passes/expand.h"

namespace rlx {

/// True for an element type that the target computes with.
using HasType = std::function<bool(DType)>;

/// Replaces nodes on element types that the target lacks by nodes on types that it has: complex numbers become two real values, 8-bit
/// floats f32, packed 4-bit integers i8 and u8. Inputs, outputs and what the host reads and writes keep their types; `reinterpret` and
/// index maps stand between them and the parts.
/// Like narrower floats everywhere, 8-bit ones keep the bits of f32 until they are stored or something is cast to them.
/// The nodes keep their types where no rule of this pass fits, for code that computes them whole: sorting and the like, a complex product
/// over an axis, c128 powers, and the casts by which 4-bit values come and go whose rows may end inside a byte.
/// Complex results with infinite operands may be NaN where C's Annex G finds an infinity.
/// Regions are treated like the graph around them. Assumes: a graph of primitives and claimed composites, which compute with types that the
/// target has. Guarantees: the same, with the same inputs and outputs; the same graph when it lacks none.
Graph legalize(const Graph& graph, const HasType& has_type, const IsClaimed& is_claimed = nothing_claimed);

}  // namespace rlx
