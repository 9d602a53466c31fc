#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"

namespace rlx {

class GgufFile;

/// How many labels the classifier of a model has whose `architectures` name one for sequences or for tokens, and which of them it is; none
/// for every other model.
void read_labels(const JsonField& config, TextHead& head);
/// Whether its `architectures` name a model that says words for masked ones.
bool predicts_words(const JsonField& config);

/// The names of a classifier's `count` labels, as config.json's id2label or a GGUF file has them; LABEL_0 and so on where there are none.
/// Throws Error naming file and field where a label has no name.
std::vector<std::string> label_names(const JsonField& config, std::int64_t count);
std::vector<std::string> label_names(const GgufFile& file, std::int64_t count);

}  // namespace rlx
