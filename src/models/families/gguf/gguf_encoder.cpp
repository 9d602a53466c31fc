#include "models/families/gguf/gguf_encoder.h"

#include <limits>

#include "base/names.h"
#include "formats/json/json_field.h"
#include "models/config/sentence_config.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/families/gguf/gguf_keys.h"

namespace rlx {
namespace {

/// A value below the architecture's name, or null.
const GgufValue* find_key(const GgufFile& file, std::string_view key) {
  return file.find_value(fmt::format("{}.{}", file.value("general.architecture").string(), key));
}

/// The layers of ModernBERT: one of n sees all, the first among them, and the others a window, half to each side, with a rope of their own.
void read_symmetric_windows(const GgufFile& file, DecoderConfig& c) {
  const GgufValue* window = find_key(file, "attention.sliding_window");
  if (window == nullptr) return;
  const std::int64_t tokens = window->integer(0, std::numeric_limits<std::int32_t>::max());
  const GgufValue* pattern = find_key(file, "attention.sliding_window_pattern");
  const auto every = static_cast<std::size_t>(pattern ? pattern->integer(1, 1024) : 3);
  if (c.ropes.empty()) fail("{}: tensor 'position_embd.weight': this architecture turns its tokens instead", file.name());
  RopeOptions sliding = c.ropes.front();
  sliding.theta = GgufConfig(file, file.value("general.architecture").string()).positive_or("rope.freq_base_swa", sliding.theta);
  c.ropes.push_back(sliding);
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool slides = tokens > 0 && i % every != 0;
    c.layers[i].window = slides ? tokens / 2 : 0, c.layers[i].rope = slides ? 1 : 0;
  }
}

void read_gguf_classifier(const GgufFile& file, bool modern, DecoderConfig& c) {
  TextHead& head = c.text_head;
  if (const TensorView* output = file.find("cls.output.weight"); output != nullptr && output->shape.size() == 2)
    head.labels = matrix_rows(file, *output);
  head.dense = file.find("cls.weight") != nullptr, head.dense_bias = file.find("cls.bias") != nullptr;
  head.norm = file.find("cls.norm.weight") != nullptr;
  head.activation = modern ? HiddenActivation::gelu : HiddenActivation::tanh;
  if (const GgufValue* act = find_key(file, "classifier.activation")) {
    const json::Value name = std::string(act->string());
    head.activation = read_activation(JsonField(name, file.name(), "classifier.activation"));
  }
  const GgufValue* pooling = find_key(file, "classifier.pooling_type");
  head.mean = pooling ? pooling->integer(1, 2) == 1 : modern;
}

/// What says words for masked ones: a dense layer where a classifier would have one, the embeddings, a bias.
void read_gguf_word_head(const GgufFile& file, DecoderConfig& c) {
  c.output = c.output_dense = c.text_head.labels == 0 && file.find("cls.norm.weight") != nullptr;
  c.output_bias = c.output && file.find("output.bias") != nullptr;
}

}  // namespace

void read_gguf_encoder(const GgufFile& file, DecoderConfig& c) {
  const bool modern = file.value("general.architecture").string() == "modern-bert";
  c.causal = false;
  c.norm.bias = file.find("token_embd_norm.bias") != nullptr;
  c.norm_before = modern, c.norm_after = false, c.norm_sum = !modern;
  c.embedding_norm = true, c.output_norm = modern;
  if (const TensorView* types = file.find("token_types.weight"); types != nullptr && types->shape.size() == 2)
    c.token_types = matrix_rows(file, *types);
  c.gated = modern || file.find("blk.0.ffn_gate.weight") != nullptr;
  if (const GgufValue* act = find_key(file, "hidden_activation")) {
    if (act->string() == "silu") c.activation = HiddenActivation::silu;
    else if (act->string() != "gelu") fail("{}: hidden_activation is {} (allowed: gelu, silu)", file.name(), quote_name(act->string()));
  }
  if (modern) read_symmetric_windows(file, c);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].norm = file.find(fmt::format("blk.{}.attn_norm.weight", i)) != nullptr;  // of embeddings, too: the first layer has none
  read_gguf_classifier(file, modern, c);
  read_gguf_word_head(file, c);
}

void add_gguf_encoder_names(WeightNames& names) {
  for (const WeightName& line : std::vector<WeightName>{{{"type_embedding"}, "token_types"},
                                                        {{"embedding_norm"}, "token_embd_norm"},
                                                        {{"classifier.dense"}, "cls"},
                                                        {{"classifier.norm"}, "cls.norm"},
                                                        {{"head.dense"}, "cls"},
                                                        {{"head.norm"}, "cls.norm"},
                                                        {{"classifier.output"}, "cls.output"}})
    names.whole.push_back(line);
  names.layer.push_back({{"attention_post_norm"}, "attn_output_norm"});
  names.layer.push_back({{"ffn_post_norm"}, "layer_output_norm"});
  names.unused.push_back("cls");
}

void add_gguf_dense_names(WeightNames& names) {
  for (std::size_t i = 0; i < gguf_dense_names.size(); ++i)
    names.whole.push_back({{fmt::format("dense.{}", i)}, std::string(gguf_dense_names[i])});
  names.unused.insert(names.unused.end(), gguf_dense_names.begin(), gguf_dense_names.end());
}

}  // namespace rlx
