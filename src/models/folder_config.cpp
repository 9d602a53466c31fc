#include "models/folder_config.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/decoder_family.h"
#include "models/encoder.h"
#include "models/gguf_config.h"

namespace rlx {
namespace {

constexpr double f32_rounding = 1e-5;  // metadata are f32, and what follows from them is off by a few roundings

bool nearly(double a, double b) { return std::abs(a - b) <= f32_rounding * std::max(std::abs(a), std::abs(b)); }

bool nearly(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return nearly(x, y); });
}

std::string activation_word(HiddenActivation kind) {
  switch (kind) {
    case HiddenActivation::gelu: return "gelu";
    case HiddenActivation::gelu_tanh: return "gelu_pytorch_tanh";
    case HiddenActivation::quick_gelu: return "quick_gelu";
    case HiddenActivation::relu: return "relu";
    case HiddenActivation::relu_squared: return "relu2";
    case HiddenActivation::silu: return "silu";
    case HiddenActivation::tanh: return "tanh";
  }
  fail_internal("activation {} is not in the enumeration", static_cast<int>(kind));
}

/// Sizes in the spelling of Llama, which most families took over.
json::Value llama_fields(const DecoderConfig& c) {
  json::Value out{{"vocab_size", c.vocab_size},
                  {"hidden_size", c.hidden_size},
                  {"intermediate_size", c.ffn_size > 0 ? c.ffn_size : c.experts.width},
                  {"num_hidden_layers", c.layers.size()},
                  {"num_attention_heads", c.heads},
                  {"num_key_value_heads", c.kv_heads},
                  {"head_dim", c.head_size},
                  {"max_position_embeddings", c.max_positions},
                  {"hidden_act", activation_word(c.activation)},
                  {"tie_word_embeddings", c.tied_output}};
  out[c.norm.centred ? "layer_norm_eps" : "rms_norm_eps"] = c.norm.eps;
  return out;
}

/// Llama 3's scaling, of which a file keeps only the factors. All its models have these two bounds; the length is found by trying.
json::Value llama3_scaling(const RopeOptions& rope) {
  RopeOptions tried = rope;
  tried.factor = *std::max_element(rope.short_factors.begin(), rope.short_factors.end());
  tried.low_freq_factor = 1, tried.high_freq_factor = 4;
  for (tried.original_length = 16; tried.original_length < 1 << 20; tried.original_length *= 2) {
    const std::vector<float> factors = llama3_factors(tried);
    if (nearly({factors.begin(), factors.end()}, rope.short_factors)) break;
  }
  return {{"rope_type", "llama3"},
          {"factor", tried.factor},
          {"low_freq_factor", tried.low_freq_factor},
          {"high_freq_factor", tried.high_freq_factor},
          {"original_max_position_embeddings", static_cast<std::int64_t>(tried.original_length)}};
}

void write_rope(const DecoderConfig& c, json::Value& out) {
  if (c.ropes.empty()) return;
  const RopeOptions& rope = c.ropes.front();
  out["rope_theta"] = rope.theta;
  if (rope.dims != c.head_size) out["partial_rotary_factor"] = static_cast<double>(rope.dims) / static_cast<double>(c.head_size);
  const auto length = static_cast<std::int64_t>(rope.original_length);
  if (rope.scaling == RopeScaling::linear) out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::yarn)
    out["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", rope.factor}, {"original_max_position_embeddings", length}};
  if (rope.scaling != RopeScaling::longrope) return;
  if (rope.short_factors == rope.long_factors) {
    out["rope_scaling"] = llama3_scaling(rope);
  } else {
    out["original_max_position_embeddings"] = length;
    out["rope_scaling"] = {{"rope_type", "longrope"},
                           {"short_factor", rope.short_factors},
                           {"long_factor", rope.long_factors},
                           {"attention_factor", rope.attention_factor}};
  }
}

std::int64_t window_of(const DecoderConfig& c) {
  std::int64_t window = 0;
  for (const DecoderLayer& layer : c.layers) window = std::max(window, layer.window);
  return window;
}

void write_windows(const DecoderConfig& c, json::Value& out) {
  const std::int64_t window = window_of(c);
  if (window == 0) return;
  out["sliding_window"] = window;
  for (const DecoderLayer& layer : c.layers) out["layer_types"].push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
}

void write_experts(const DecoderConfig& c, json::Value& out) {
  out["num_experts"] = c.experts.count;
  out["num_experts_per_tok"] = c.experts.chosen;
  out["moe_intermediate_size"] = c.experts.width;
  out["norm_topk_prob"] = c.experts.normalize;
  if (c.experts.shared_width > 0) out["shared_expert_intermediate_size"] = c.experts.shared_width;
  out["decoder_sparse_step"] = 1;
  out["mlp_only_layers"] = json::Value::array();
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    if (!c.layers[i].experts) out["mlp_only_layers"].push_back(i);
}

void write_llama(const DecoderConfig& c, json::Value& out) {
  out["attention_bias"] = c.qkv_bias, out["mlp_bias"] = c.ffn_bias;
  write_rope(c, out);
  if (window_of(c) > 0) out["sliding_window"] = window_of(c);
}

void write_mixtral(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  out["num_local_experts"] = c.experts.count;
  out["num_experts_per_tok"] = c.experts.chosen;
}

void write_qwen(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  write_windows(c, out);
  if (window_of(c) > 0) out["use_sliding_window"] = true;
  if (c.experts.count > 0) write_experts(c, out);
}

void write_gemma(const DecoderConfig& c, json::Value& out) {
  out["hidden_activation"] = activation_word(c.activation);
  write_rope(c, out);
  if (!c.norm_after) return;
  const double scale = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  out["query_pre_attn_scalar"] = static_cast<std::int64_t>(std::llround(1 / (scale * scale)));  // an integer in all of the family
  if (c.attention_softcap > 0) out["attn_logit_softcapping"] = c.attention_softcap;
  if (c.logits_softcap > 0) out["final_logit_softcapping"] = c.logits_softcap;
  write_windows(c, out);
  if (c.ropes.size() > 1) out["rope_local_base_freq"] = c.ropes[1].theta;
}

void write_phi3(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  if (window_of(c) > 0) out["sliding_window"] = window_of(c);
}

void write_gpt2(const DecoderConfig& c, json::Value& out) {
  out = {{"vocab_size", c.vocab_size},          {"n_embd", c.hidden_size},
         {"n_positions", c.max_positions},      {"n_head", c.heads},
         {"n_layer", c.layers.size()},          {"n_inner", c.ffn_size},
         {"layer_norm_epsilon", c.norm.eps},    {"activation_function", "gelu_new"},
         {"tie_word_embeddings", c.tied_output}};
}

void write_granite(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  out["embedding_multiplier"] = c.embedding_scale;
  out["residual_multiplier"] = c.residual_scale;
  out["attention_multiplier"] = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  out["logits_scaling"] = 1 / c.logits_scale;
}

void write_bert(const DecoderConfig& c, json::Value& out) {
  out.erase("head_dim");
  out["type_vocab_size"] = c.token_types;
}

void write_distilbert(const DecoderConfig& c, json::Value& out) {
  out = {{"vocab_size", c.vocab_size},
         {"dim", c.hidden_size},
         {"hidden_dim", c.ffn_size},
         {"n_layers", c.layers.size()},
         {"n_heads", c.heads},
         {"max_position_embeddings", c.max_positions},
         {"activation", activation_word(c.activation)}};
}

void write_nomic(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  out["type_vocab_size"] = c.token_types;
}

void write_modernbert(const DecoderConfig& c, json::Value& out) {
  out.erase("layer_norm_eps");
  out["norm_eps"] = c.norm.eps;
  out["hidden_activation"] = activation_word(c.activation);
  out["local_attention"] = 2 * window_of(c);
  for (const DecoderLayer& layer : c.layers) out["layer_types"].push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
  out["global_rope_theta"] = c.ropes[0].theta, out["local_rope_theta"] = c.ropes.size() > 1 ? c.ropes[1].theta : c.ropes[0].theta;
  out["classifier_pooling"] = c.text_head.mean ? "mean" : "cls";
}

void write_mamba(const DecoderConfig& c, json::Value& out) {
  const StateSpaceConfig& s = c.state_space;
  out = {{"vocab_size", c.vocab_size},
         {"hidden_size", c.hidden_size},
         {"intermediate_size", s.width},
         {"expand", s.width / c.hidden_size},
         {"num_hidden_layers", c.layers.size()},
         {"state_size", s.states},
         {"conv_kernel", s.kernel},
         {"time_step_rank", s.step_rank},
         {"use_bias", s.bias},
         {"use_conv_bias", s.convolution_bias},
         {"hidden_act", activation_word(c.activation)},
         {"layer_norm_epsilon", c.norm.eps},
         {"tie_word_embeddings", c.tied_output}};
}

struct FolderFamily {
  std::string_view architecture, model_type, classes;  // of GGUF; of the config, and what its classes' names begin with
  void (*write)(const DecoderConfig& c, json::Value& out);
  std::string_view prefix = "model.";
  bool (*fits)(const DecoderConfig& c) = [](const DecoderConfig&) { return true; };
};

constexpr FolderFamily folder_families[] = {
    {"llama", "mixtral", "Mixtral", write_mixtral, "model.", [](const DecoderConfig& c) { return c.experts.count > 0; }},
    {"llama", "mistral", "Mistral", write_llama, "model.", [](const DecoderConfig& c) { return window_of(c) > 0; }},
    {"llama", "llama", "Llama", write_llama},
    {"qwen2", "qwen2", "Qwen2", write_qwen},
    {"qwen2moe", "qwen2_moe", "Qwen2Moe", write_qwen},
    {"qwen3", "qwen3", "Qwen3", write_qwen},
    {"qwen3moe", "qwen3_moe", "Qwen3Moe", write_qwen},
    {"gemma", "gemma", "Gemma", write_gemma},
    {"gemma2", "gemma2", "Gemma2", write_gemma},
    {"gemma3", "gemma3_text", "Gemma3", write_gemma},
    {"phi3", "phi3", "Phi3", write_phi3},
    {"gpt2", "gpt2", "GPT2", write_gpt2, "transformer."},
    {"granite", "granite", "Granite", write_granite},
    {"olmo2", "olmo2", "Olmo2", write_llama},
    {"bert", "distilbert", "DistilBert", write_distilbert, "distilbert.", [](const DecoderConfig& c) { return c.token_types == 0; }},
    {"bert", "bert", "Bert", write_bert, "bert."},
    {"nomic-bert", "nomic_bert", "NomicBert", write_nomic, ""},
    {"modern-bert", "modernbert", "ModernBert", write_modernbert},
    {"mamba", "mamba", "Mamba", write_mamba, "backbone.", [](const DecoderConfig& c) { return !c.state_space.norm; }},
};

const FolderFamily& folder_family(const GgufFile& file, const DecoderConfig& c) {
  const std::string_view architecture = file.value("general.architecture").string();
  std::vector<std::string_view> known;
  for (const FolderFamily& each : folder_families) {
    if (each.architecture == architecture && each.fits(c)) return each;
    if (known.empty() || known.back() != each.architecture) known.push_back(each.architecture);
  }
  fail("{}: the architecture {} has no folder in Hugging Face's layout here (supported: {})", file.name(), quote_name(architecture),
       fmt::join(known, ", "));
}

std::string class_name(const FolderFamily& family, const DecoderConfig& c) {
  if (family.model_type == "gpt2") return "GPT2LMHeadModel";
  const std::string_view what = c.causal ? "ForCausalLM" : c.text_head.labels > 0 ? "ForSequenceClassification" : "Model";
  return fmt::format("{}{}", family.classes, what);
}

void write_token_ids(const GgufFile& file, json::Value& out) {
  constexpr std::pair<std::string_view, const char*> roles[] = {
      {"bos", "bos_token_id"}, {"eos", "eos_token_id"}, {"padding", "pad_token_id"}};
  for (const auto& [role, field] : roles) {
    const GgufValue* id = file.find_value(fmt::format("tokenizer.ggml.{}_token_id", role));
    out[field] = id ? json::Value(id->integer(0, INT32_MAX)) : json::Value();  // what is left out would be the family's usual one
  }
}

void write_labels(const GgufFile& file, const DecoderConfig& c, json::Value& out) {
  const GgufValue* names = file.find_value(fmt::format("{}.classifier.output_labels", file.value("general.architecture").string()));
  const auto given = names ? names->strings() : std::vector<std::string_view>();
  for (std::int64_t i = 0; i < c.text_head.labels; ++i) {
    const bool named = std::cmp_less(i, given.size());
    out["id2label"][std::to_string(i)] = named ? std::string(given[static_cast<std::size_t>(i)]) : fmt::format("LABEL_{}", i);
  }
}

/// The factors by which a rope divides its frequencies, where they are the same for all lengths.
std::vector<double> factors_of(const RopeOptions& rope) {
  if (rope.scaling != RopeScaling::llama3) return rope.short_factors;
  const std::vector<float> factors = llama3_factors(rope);
  return {factors.begin(), factors.end()};
}

/// Whether two ropes turn alike, whichever words say so.
bool same_rope(const RopeOptions& a, const RopeOptions& b) {
  if (!nearly(a.theta, b.theta) || a.dims != b.dims || !nearly(factors_of(a), factors_of(b))) return false;
  if (a.scaling == RopeScaling::longrope && b.scaling == RopeScaling::longrope)
    return nearly(a.long_factors, b.long_factors) && a.original_length == b.original_length &&
           nearly(a.attention_factor, b.attention_factor);
  if (a.scaling == RopeScaling::longrope) return b.scaling == RopeScaling::llama3 && nearly(a.long_factors, a.short_factors);
  return a.scaling == b.scaling && nearly(a.factor, b.factor) && (a.scaling != RopeScaling::yarn || a.original_length == b.original_length);
}

/// `read`, as the config gives it back, with the numbers of `wanted` where they are nearly the same: nothing else may differ.
DecoderConfig with_numbers_of(const DecoderConfig& wanted, DecoderConfig read) {
  const auto take = [](double& to, double from, double usual) {
    if (nearly(to == 0 ? usual : to, from == 0 ? usual : from)) to = from;
  };
  take(read.attention_scale, wanted.attention_scale, 1 / std::sqrt(static_cast<double>(wanted.head_size)));
  take(read.embedding_scale, wanted.embedding_scale, 1);
  take(read.residual_scale, wanted.residual_scale, 1);
  take(read.logits_scale, wanted.logits_scale, 1);
  take(read.norm.eps, wanted.norm.eps, 0);
  const std::size_t used = std::min(wanted.ropes.size(), read.ropes.size());
  bool same = wanted.ropes.empty() == read.ropes.empty();
  for (std::size_t i = 0; i < used; ++i) same = same && same_rope(wanted.ropes[i], read.ropes[i]);
  if (same) read.ropes = wanted.ropes;
  read.norm.plus_one = wanted.norm.plus_one;  // files have the 1 added
  read.state_space.log_decay = wanted.state_space.log_decay;
  return read;
}

Graph graph_of(const DecoderConfig& c) {
  if (c.causal) return decoder_graph(c, {.sequences = 1, .capacity = 8, .chunk = 8});
  Graph graph("encoder");
  const EncodedText text = encode_text(Flow(graph), c, 2, 4);
  graph.output("states", text.states.back());
  if (c.text_head.labels > 0) graph.output("scores", text_scores(Flow(graph), c, text));
  return graph;
}

}  // namespace

FolderConfig FolderConfig::of(const GgufFile& file, const DecoderConfig& model) {
  const FolderFamily& family = folder_family(file, model);
  FolderConfig out;
  out.json = llama_fields(model);
  family.write(model, out.json);
  out.json["architectures"] = {class_name(family, model)};
  out.json["model_type"] = family.model_type;
  write_token_ids(file, out.json);
  if (model.text_head.labels > 0) write_labels(file, model, out.json);
  const DecoderFamily* reader = DecoderFamily::find(family.model_type);
  if (reader == nullptr) fail_internal("the family {} is listed and not found", family.model_type);
  const json::Value written = json::parse(out.json.dump(), "config.json");  // as others will read it
  out.model = reader->read(JsonField(written, "config.json"));
  if (!structurally_equal(graph_of(model), graph_of(with_numbers_of(model, out.model))))
    fail("{}: config.json of the model type {} cannot say all that the metadata say of the model", file.name(),
         quote_name(family.model_type));
  out.names = reader->weight_names(out.model);
  out.prefix = model.causal || model.text_head.labels > 0 ? family.prefix : "";
  return out;
}

}  // namespace rlx
