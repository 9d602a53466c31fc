#pragma once
#include <cstdint>

#include "models/config/hidden_activation.h"

namespace rlx {

class JsonField;

/// The sizes of a T5 (Raffel et al. 2020), named as in Hugging Face's config.json.
struct T5Config {
  std::int64_t vocab_size = 0, d_model = 0, d_kv = 0, d_ff = 0;
  std::int64_t num_heads = 0, num_layers = 0, num_decoder_layers = 0;
  std::int64_t buckets = 32, max_distance = 128;  // of relative positions
  double layer_norm_epsilon = 1e-6;
  HiddenActivation activation = HiddenActivation::relu;
  bool gated = false;
  bool tied_output = true;  // the head's weights are the embeddings, and what it reads is scaled by d_model^-0.5: one goes with the other
  bool tied_head = true;    // the weights of a head that a file lacks are the embeddings
  std::int64_t n_positions = 512;           // tokens that it was made for; distances are all that counts, so that more run, too
  std::int32_t decoder_start_token_id = 0;  // what the decoder reads first

  /// Throws Error naming the file and the field for what is missing, malformed or not supported.
  static T5Config read(const JsonField& config);
};

}  // namespace rlx
