#pragma once
#include "rlx/graph.h"
#include "rlx/io.h"

namespace rlx::coreml {

/// The graph in real numbers: each complex value is two, its real and its imaginary part, for devices without complex numbers. Guarantees:
/// the other values as they are; an input or output `x` of complex numbers is two, `x_real` and `x_imag`. Expects primitives only, and no
/// Fourier transforms. Throws Error naming an op that has no such form: factorisations, and regions with complex numbers.
Graph in_real_parts(const Graph& graph);
/// The arrays that the parameters of such a graph have.
NamedArrays in_real_parts(const NamedArrays& arrays);

}  // namespace rlx::coreml
