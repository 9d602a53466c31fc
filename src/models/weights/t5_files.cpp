#include "models/weights/t5_files.h"

#include <cmath>
#include <limits>

#include "base/names.h"
#include "models/config/config_field.h"
#include "models/config/end_tokens.h"
#include "models/config/model_folder.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/families/gguf/gguf_encoder.h"

namespace rlx {
namespace {

constexpr std::int64_t usual_distance = 128;  // that other readers know alone
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();

/// The tensors of one stack, whose layers have two blocks, or three where they also read what the encoder gave.
void add_stack(std::string_view stack, std::string_view short_name, std::int64_t layers, bool reads_encoder,
               std::vector<WeightName>& names) {
  const auto add = [&](std::string param, std::string tensor) { names.push_back({{std::move(param)}, std::move(tensor)}); };
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string block = fmt::format("{}.block.{}.layer.", stack, i), to = fmt::format("{}.blk.{}.", short_name, i);
    const auto attention = [&](int layer, std::string_view kind, std::string_view name) {
      for (char part : {'q', 'k', 'v', 'o'})
        add(fmt::format("{}{}.{}.{}", block, layer, kind, part), fmt::format("{}{}_{}", to, name, part));
      add(fmt::format("{}{}.layer_norm", block, layer), fmt::format("{}{}_norm", to, name));
    };
    attention(0, "SelfAttention", "attn");
    if (reads_encoder) attention(1, "EncDecAttention", "cross_attn");
    const std::string last = fmt::format("{}{}.", block, reads_encoder ? 2 : 1), dense = last + "DenseReluDense.";
    add(block + "0.SelfAttention.relative_attention_bias", to + "attn_rel_b");
    add(last + "layer_norm", to + "ffn_norm");
    add(dense + "wi_0", to + "ffn_gate"), add(dense + "wi_1", to + "ffn_up"), add(dense + "wi", to + "ffn_up");
    add(dense + "wo", to + "ffn_down");
  }
  add(fmt::format("{}.final_layer_norm", stack), fmt::format("{}.output_norm", short_name));
}

}  // namespace

WeightNames t5_weight_names(const T5Config& config, const Checkpoint& checkpoint) {
  WeightNames names = t5_weight_names();
  if (config.tied_head && checkpoint.find("lm_head.weight") == nullptr) names.whole.push_back({{"lm_head"}, "shared"});
  return names;
}

WeightNames t5_weight_names() {
  return {.unused = {"encoder.embed_tokens", "decoder.embed_tokens", "lm_head",
                     "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias"}};
}

WeightNames t5_gguf_names(const T5Config& c) {
  WeightNames names{.unused = {"dec.blk.0.cross_attn_rel_b"}, .whole = {{{"shared"}, "token_embd"}, {{"lm_head"}, "output"}}};
  add_stack("encoder", "enc", c.num_layers, false, names.whole);
  add_stack("decoder", "dec", c.num_decoder_layers, true, names.whole);
  add_gguf_dense_names(names);
  return names;
}

T5Config read_gguf_t5(const GgufFile& file) {
  const auto key_of = [architecture = file.value("general.architecture").string()](const char* key) {
    return fmt::format("{}.{}", architecture, key);
  };
  const auto size = [&](const char* key, std::int64_t least = 1, std::int64_t most = largest_size) {
    return file.value(key_of(key)).integer(least, most);
  };
  const auto size_or = [&](const char* key, std::int64_t otherwise, std::int64_t most) {
    return file.find_value(key_of(key)) ? size(key, 1, most) : otherwise;
  };
  T5Config c;
  c.vocab_size = embedding_rows(file);
  c.d_model = size("embedding_length"), c.d_kv = size("attention.key_length"), c.d_ff = size("feed_forward_length");
  c.num_heads = size("attention.head_count");
  c.num_layers = size("block_count", 1, 1024);
  c.num_decoder_layers = size_or("decoder_block_count", c.num_layers, 1024);
  c.buckets = size("attention.relative_buckets_count", 4, 1 << 16);
  c.max_distance = size_or("attention.relative_max_distance", usual_distance, 1 << 20);
  if (c.max_distance <= c.buckets / 2)
    fail("{}: key '{}' is {} (allowed: above {})", file.name(), key_of("attention.relative_max_distance"), c.max_distance, c.buckets / 2);
  const std::string epsilon = key_of("attention.layer_norm_rms_epsilon");
  c.layer_norm_epsilon = file.value(epsilon).number();
  if (!std::isfinite(c.layer_norm_epsilon) || c.layer_norm_epsilon < 0)
    fail("{}: key '{}' is {} (allowed: finite numbers, not below 0)", file.name(), epsilon, c.layer_norm_epsilon);
  c.gated = file.find("enc.blk.0.ffn_gate.weight") != nullptr || file.find("dec.blk.0.ffn_gate.weight") != nullptr;
  c.activation = c.gated ? HiddenActivation::gelu_tanh : HiddenActivation::relu;
  c.tied_output = file.find("output.weight") == nullptr;
  c.n_positions = size_or("context_length", c.n_positions, largest_size);
  const GgufValue* start = file.find_value(key_of("decoder_start_token_id"));
  if (start == nullptr) start = file.find_value("tokenizer.ggml.padding_token_id");
  if (start != nullptr) c.decoder_start_token_id = static_cast<std::int32_t>(start->integer(0, c.vocab_size - 1));
  return c;
}

void describe_t5(const ModelFolder& folder, const T5Config& c, GgufMetadata& metadata) {
  if (c.activation != (c.gated ? HiddenActivation::gelu_tanh : HiddenActivation::relu))
    folder.config()
        .find("dense_act_fn")
        .value_or(folder.config().at("feed_forward_proj"))
        .refuse("has no form in GGUF files (allowed: relu, gated-gelu)");
  const auto size = [&](const char* key, std::int64_t value) {
    metadata.set(fmt::format("t5.{}", key), static_cast<std::uint32_t>(value));
  };
  size("context_length", c.n_positions);
  size("embedding_length", c.d_model);
  size("feed_forward_length", c.d_ff);
  size("block_count", c.num_layers);
  size("decoder_block_count", c.num_decoder_layers);
  size("attention.head_count", c.num_heads);
  size("attention.key_length", c.d_kv);
  size("attention.value_length", c.d_kv);
  size("attention.relative_buckets_count", c.buckets);
  if (c.max_distance != usual_distance) size("attention.relative_max_distance", c.max_distance);  // ours
  metadata.set("t5.attention.layer_norm_epsilon", static_cast<float>(c.layer_norm_epsilon));
  metadata.set("t5.attention.layer_norm_rms_epsilon", static_cast<float>(c.layer_norm_epsilon));
  size("decoder_start_token_id", c.decoder_start_token_id);
}

json::Value t5_folder_config(const T5Config& c) {
  return {{"architectures", {"T5ForConditionalGeneration"}},
          {"model_type", "t5"},
          {"is_encoder_decoder", true},
          {"vocab_size", c.vocab_size},
          {"d_model", c.d_model},
          {"d_kv", c.d_kv},
          {"d_ff", c.d_ff},
          {"num_heads", c.num_heads},
          {"num_layers", c.num_layers},
          {"num_decoder_layers", c.num_decoder_layers},
          {"relative_attention_num_buckets", c.buckets},
          {"relative_attention_max_distance", c.max_distance},
          {"layer_norm_epsilon", c.layer_norm_epsilon},
          {"feed_forward_proj", c.gated ? "gated-gelu" : "relu"},
          {"tie_word_embeddings", c.tied_output},
          {"n_positions", c.n_positions},
          {"decoder_start_token_id", c.decoder_start_token_id}};
}

bool T5Files::is_in(const GgufFile& file) {
  const GgufValue* architecture = file.find_value("general.architecture");
  return architecture != nullptr && (architecture->string() == "t5" || architecture->string() == "t5encoder");
}

bool T5Files::is_in(const ModelFolder& folder) { return folder.model_type() == "t5"; }

T5Files T5Files::of_gguf(Checkpoint checkpoint) {
  const GgufFile& file = *checkpoint.gguf();
  T5Config config = read_gguf_t5(file);
  WeightNames names = t5_gguf_names(config);
  auto end_tokens = end_tokens_of(file);
  return {config, std::move(names), std::move(checkpoint), std::move(end_tokens)};
}

T5Files T5Files::of_folder(const ModelFolder& folder) {
  Checkpoint checkpoint = Checkpoint::open(folder.path());
  const T5Config config = T5Config::read(folder.config());
  WeightNames names = t5_weight_names(config, checkpoint);
  return {config, std::move(names), std::move(checkpoint), end_tokens_of(folder)};
}

WeightNames T5Files::encoder_names() const {
  WeightNames own = names;
  for (const char* part : {"decoder", "dec", "lm_head", "output"}) own.unused.emplace_back(part);
  return own;
}

T5Files T5Files::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return of_folder(ModelFolder::open(path));
  Checkpoint checkpoint = Checkpoint::open(path);
  if (checkpoint.gguf() == nullptr) fail("{}: neither a GGUF file nor a folder with a model's config.json", path.string());
  return of_gguf(std::move(checkpoint));
}

}  // namespace rlx
