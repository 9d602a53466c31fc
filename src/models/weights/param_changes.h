#pragma once
#include "models/config/decoder_config.h"
#include "models/weights/converted_tensors.h"

namespace rlx {

/// How parameters of the description `to` are made of those of `from`, which describes the same model as its other form has it: rows of
/// queries and keys where elements that turn together are neighbours, decays or their logarithms, norms with their 1 added, positions that
/// begin elsewhere, matrices of latent attention by feature, value heads of delta nets in another order.
ParamChanges changes_between(const DecoderConfig& from, const DecoderConfig& to);

}  // namespace rlx
