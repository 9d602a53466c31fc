#pragma once
#include <cstdint>

#include "formats/json/json_field.h"

namespace rlx {

/// How many labels the classifier of a model has whose `architectures` name one for sequences; 0 for every other model.
std::int64_t read_labels(const JsonField& config);
/// Whether its `architectures` name a model that says words for masked ones.
bool predicts_words(const JsonField& config);

}  // namespace rlx
