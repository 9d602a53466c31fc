#pragma once
#include <cstdint>
#include <string>

#include "models/config/sentence_config.h"
#include "models/layers/encoder.h"
#include "models/weights/decoder_files.h"

namespace rlx {

/// How its graph reads texts.
TextForm text_form(const SentenceModelConfig& config);

/// Encoder, pooling and normalisation as one graph: the inputs of TextInputs -> "embedding" (B, width). `storage`: of the weights;
/// `adapters`: what changes them. `padded`: all texts of a run have the same length, whatever `text_form` says.
Graph sentence_graph(const SentenceModelConfig& config, std::int64_t max_batch, WeightStorage storage = {}, LowRankForms adapters = {},
                     bool padded = false);

/// An encoder with its classifier as one graph: the inputs of TextInputs -> "scores", as text_scores gives them.
Graph score_graph(std::string name, const DecoderFiles& files, std::int64_t max_batch, std::int64_t max_length);

}  // namespace rlx
