#pragma once
#include <vector>

#include "models/config/sentence_config.h"
#include "rlx/io.h"

namespace rlx {

/// Of layers that have files of their own the values, in f32, under the names of a sentence encoder's parameters: dense.0.weight.
NamedArrays load_dense(const std::vector<SentenceDense>& layers);

}  // namespace rlx
