#pragma once
#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"

namespace rlx {

/// How many labels the classifier of a model has whose `architectures` name one for sequences or for tokens, and which of them it is; none
/// for every other model.
void read_labels(const JsonField& config, TextHead& head);
/// Whether its `architectures` name a model that says words for masked ones.
bool predicts_words(const JsonField& config);

}  // namespace rlx
