#pragma once
#include "formats/checkpoint.h"
#include "models/families/weight_names.h"
#include "models/layers/flow.h"

namespace rlx {

/// How a checkpoint stores the matrices of a model, and the stacked ones of its experts: blocks, bf16, f16 or f32. Experts of several types
/// become elements of the model.
WeightStorage stored_types(const Checkpoint& checkpoint, const WeightNames& names);

/// The value of every parameter of `graph`: the file's own mapped bytes where the types agree, else converted (bf16 and f16 to f32).
/// Parameters of bytes are the blocks of a tensor. `known` are values of parameters that the checkpoint need not have. Rows that are made
/// (TensorView::make_rows) are made by so many threads; 0: as many as the process may use.
/// Throws Error that lists the tensors that are missing, the ones that nothing takes, or the one whose shape differs.
NamedArrays load_weights(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names, int threads, NamedArrays known = {});

}  // namespace rlx
