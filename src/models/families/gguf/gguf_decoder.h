#pragma once
#include <cstddef>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// The language model that a GGUF file holds: sizes from the metadata of its architecture, axes from the tensors that it has.
/// Throws Error naming the file and the key for an architecture that is not supported, and for what is missing or not allowed.
DecoderConfig read_gguf_decoder(const GgufFile& file);

/// The rows of a matrix in the file, 1 to 2^31 - 1, whose bytes are there. Throws Error for another tensor.
std::int64_t matrix_rows(const GgufFile& file, const TensorView& tensor);
/// The rows of the embeddings, of which there may be more than tokens. Throws Error where the file's vocabulary has more tokens.
std::int64_t embedding_rows(const GgufFile& file);

/// How a folder's model is described once it lies in a GGUF file of that architecture: the same model, whose parameters have other forms.
DecoderConfig gguf_form(DecoderConfig config, std::string_view architecture);

/// Where files of one architecture differ from others in how parameters are put into tensors.
struct GgufLayout {
  bool fused_attention = false, fused_feed_forward = false;  // queries, keys and values are one tensor; gate and up are
  bool second_norm = false;                                  // attn_norm_2 is attention's, attn_norm the feed-forward block's
  bool last_norm_of_embeddings = false;                      // the norm before the head is called that of the embeddings
  bool one_delta_input = false;                              // older files: what delta nets read is one tensor
  std::size_t used_layers = 0;                               // those behind predict several tokens; 0: none does

  /// As a file has it.
  static GgufLayout of(const GgufFile& file, const DecoderConfig& config);
  /// As other software writes it for a folder whose tensors have those names.
  static GgufLayout of(std::string_view architecture, const DecoderConfig& config, const WeightNames& folder);
};

/// GGUF's names of tensors.
WeightNames gguf_names(const DecoderConfig& config, const GgufLayout& layout);

}  // namespace rlx
