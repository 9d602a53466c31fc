#pragma once
#include "models/config/decoder_config.h"
#include "rlx/graph.h"

namespace rlx {

/// The graph whose parameters a checkpoint holds: that of a model which continues texts, or encodes them and perhaps scores them.
/// `dense`: an encoder without labels has the dense layer below a classifier, too.
Graph param_graph(const DecoderConfig& config, bool dense);

/// Whether two descriptions, each of its own form, are of one model: their graphs are the same but for roundings of numbers to f32 and for
/// the forms that parameters have.
bool same_model(const DecoderConfig& wanted, const DecoderConfig& read);

}  // namespace rlx
