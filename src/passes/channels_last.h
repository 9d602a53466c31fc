#pragma once
#include "rlx/graph.h"

namespace rlx {

/// Convolutions of floats give their results with the channels as the last axis, and what follows them element by element or along axes
/// (`pad`, `window`, `reduce`, ...) is computed in that order; its old order is a transpose at the end, which costs nothing where another
/// convolution reads through it. A position's channels then lie side by side: a 1 x 1 convolution is a plain matrix product, and no block
/// of a product is turned round for its result. Also in regions. Assumes and guarantees a graph of primitives.
Graph channels_last(const Graph& graph);

}  // namespace rlx
