// The table is written by scripts/hf_defaults.py.
#include "models/config/class_defaults.h"

#include <string>

namespace rlx {
namespace {

constexpr std::string_view classes = R"({
"arcee": {"intermediate_size": 18432, "num_attention_heads": 32, "hidden_act": "relu2", "max_position_embeddings": 4096, "rms_norm_eps":
  1e-05, "rope_theta": 10000.0},
"bert": {"num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2,
  "layer_norm_eps": 1e-12, "tie_word_embeddings": true},
"camembert": {"num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512,
  "type_vocab_size": 2, "layer_norm_eps": 1e-12, "tie_word_embeddings": true},
"cohere": {"intermediate_size": 22528, "logit_scale": 0.0625, "num_attention_heads": 64, "hidden_act": "silu", "max_position_embeddings":
  8192, "layer_norm_eps": 1e-05, "tie_word_embeddings": true, "rope_theta": 500000.0},
"deepseek_v2": {"intermediate_size": 11008, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048,
  "rms_norm_eps": 1e-06, "first_k_dense_replace": 0, "kv_lora_rank": 512, "q_lora_rank": 1536, "n_shared_experts": 2, "qk_nope_head_dim":
  128, "qk_rope_head_dim": 64, "routed_scaling_factor": 1.0, "topk_method": "greedy", "v_head_dim": 128, "moe_intermediate_size": 1407,
  "rope_theta": 10000.0},
"deepseek_v3": {"intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128, "n_shared_experts": 1,
  "routed_scaling_factor": 2.5, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim":
  128, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "norm_topk_prob": true, "hidden_act": "silu",
  "max_position_embeddings": 4096, "rms_norm_eps": 1e-06, "rope_theta": 10000.0},
"distilbert": {"max_position_embeddings": 512, "n_heads": 12, "hidden_dim": 3072, "activation": "gelu", "tie_word_embeddings": true},
"falcon": {"num_attention_heads": 71, "layer_norm_epsilon": 1e-05, "multi_query": true, "parallel_attn": true, "max_position_embeddings":
  2048, "activation": "gelu", "tie_word_embeddings": true, "rope_theta": 10000.0},
"falcon_mamba": {"state_size": 16, "layer_norm_epsilon": 1e-05, "expand": 2, "conv_kernel": 4, "use_conv_bias": true, "hidden_act":
  "silu", "time_step_rank": "auto", "tie_word_embeddings": true, "mixer_rms_eps": 1e-06},
"gemma": {"intermediate_size": 24576, "num_attention_heads": 16, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
  "max_position_embeddings": 8192, "rms_norm_eps": 1e-06, "tie_word_embeddings": true, "rope_theta": 10000.0},
"gemma2": {"intermediate_size": 9216, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_activation":
  "gelu_pytorch_tanh", "max_position_embeddings": 8192, "rms_norm_eps": 1e-06, "tie_word_embeddings": true, "query_pre_attn_scalar": 256,
  "sliding_window": 4096, "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0, "rope_theta": 10000.0},
"gemma3_text": {"vocab_size": 262208, "intermediate_size": 9216, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
  "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "tie_word_embeddings": true,
  "query_pre_attn_scalar": 256, "sliding_window": 4096, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0},
"gpt2": {"n_positions": 1024, "n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05, "scale_attn_weights": true,
  "tie_word_embeddings": true},
"gpt_neox": {"num_attention_heads": 64, "intermediate_size": 24576, "hidden_act": "gelu", "max_position_embeddings": 2048,
  "layer_norm_eps": 1e-05, "use_parallel_residual": true, "attention_bias": true, "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
"granite": {"intermediate_size": 11008, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps":
  1e-06, "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "attention_multiplier": 1.0, "rope_theta":
  10000.0},
"jamba": {"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu", "rms_norm_eps": 1e-06,
  "max_position_embeddings": 262144, "num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8,
  "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": "auto", "mamba_conv_bias": true},
"lfm2": {"intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 128000, "norm_eps":
  1e-05, "tie_word_embeddings": true, "conv_L_cache": 3, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
  "block_auto_adjust_ff_dim": true, "rope_theta": 1000000.0},
"lfm2_moe": {"intermediate_size": 7168, "moe_intermediate_size": 1792, "tie_word_embeddings": true, "max_position_embeddings": 128000,
  "norm_eps": 1e-05, "num_attention_heads": 32, "num_key_value_heads": 8, "conv_L_cache": 3, "num_dense_layers": 2, "num_experts_per_tok":
  4, "use_expert_bias": true, "routed_scaling_factor": 1.0, "norm_topk_prob": true, "rope_theta": 1000000.0},
"llama": {"intermediate_size": 11008, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps":
  1e-06, "rope_theta": 10000.0},
"mamba": {"state_size": 16, "layer_norm_epsilon": 1e-05, "expand": 2, "conv_kernel": 4, "use_conv_bias": true, "hidden_act": "silu",
  "time_step_rank": "auto", "tie_word_embeddings": true},
"mamba2": {"num_heads": 128, "head_dim": 64, "state_size": 128, "layer_norm_epsilon": 1e-05, "expand": 2, "conv_kernel": 4, "n_groups": 8,
  "use_conv_bias": true, "hidden_act": "silu", "time_step_rank": "auto"},
"ministral": {"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu",
  "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "sliding_window": 4096, "rope_theta": 10000.0},
"mistral": {"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu",
  "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "sliding_window": 4096, "rope_theta": 10000.0},
"mixtral": {"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu",
  "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "num_experts_per_tok": 2, "rope_theta": 1000000.0},
"modernbert": {"intermediate_size": 1152, "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192,
  "norm_eps": 1e-05, "local_attention": 128, "decoder_bias": true, "classifier_pooling": "cls", "classifier_activation": "gelu",
  "tie_word_embeddings": true, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0},
"nomic_bert": {"num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "silu", "max_position_embeddings": 2048,
  "type_vocab_size": 2, "layer_norm_eps": 1e-12, "rope_theta": 1000.0},
"olmo2": {"intermediate_size": 11008, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps":
  1e-05, "rope_theta": 10000.0},
"olmo3": {"intermediate_size": 11008, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps":
  1e-05, "sliding_window": 4096, "rope_theta": 500000.0},
"phi": {"intermediate_size": 8192, "num_attention_heads": 32, "hidden_act": "gelu_new", "max_position_embeddings": 2048, "layer_norm_eps":
  1e-05, "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
"phi3": {"intermediate_size": 8192, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 4096,
  "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
"qwen2": {"intermediate_size": 22016, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps":
  1e-06, "sliding_window": 4096, "max_window_layers": 28, "rope_theta": 10000.0},
"qwen2_moe": {"intermediate_size": 5632, "num_attention_heads": 16, "hidden_act": "silu", "max_position_embeddings": 32768,
  "rms_norm_eps": 1e-06, "sliding_window": 4096, "max_window_layers": 28, "decoder_sparse_step": 1, "moe_intermediate_size": 1408,
  "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4, "qkv_bias": true, "rope_theta": 10000.0},
"qwen3": {"intermediate_size": 22016, "num_attention_heads": 32, "head_dim": 128, "hidden_act": "silu", "max_position_embeddings": 32768,
  "rms_norm_eps": 1e-06, "sliding_window": 4096, "max_window_layers": 28, "rope_theta": 10000.0},
"qwen3_5_text": {"intermediate_size": 12288, "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act": "silu",
  "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
  "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "rope_theta": 10000.0, "partial_rotary_factor":
  0.25},
"qwen3_moe": {"intermediate_size": 6144, "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act": "silu",
  "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "sliding_window": 4096, "decoder_sparse_step": 1, "moe_intermediate_size": 768,
  "num_experts_per_tok": 8, "rope_theta": 10000.0},
"qwen3_next": {"intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 2, "hidden_act": "silu",
  "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
  "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "decoder_sparse_step": 1,
  "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10, "norm_topk_prob": true, "rope_theta":
  10000.0, "partial_rotary_factor": 0.25},
"roberta": {"num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size":
  2, "layer_norm_eps": 1e-12, "tie_word_embeddings": true},
"smollm3": {"intermediate_size": 11008, "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act": "silu",
  "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "no_rope_layer_interval": 4, "tie_word_embeddings": true, "rope_theta":
  2000000.0},
"stablelm": {"intermediate_size": 6912, "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 4096,
  "layer_norm_eps": 1e-05, "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
"starcoder2": {"intermediate_size": 12288, "num_attention_heads": 24, "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh",
  "max_position_embeddings": 4096, "norm_epsilon": 1e-05, "use_bias": true, "tie_word_embeddings": true, "rope_theta": 10000.0},
"t5": {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "relative_attention_num_buckets": 32,
  "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-06, "feed_forward_proj": "relu"},
"xlm-roberta": {"num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512,
  "type_vocab_size": 2, "layer_norm_eps": 1e-12, "tie_word_embeddings": true}
})";

}  // namespace

const json::Value& class_defaults(std::string_view model_type) {
  static const json::Value all = json::parse(std::string(classes), "class defaults");
  static const json::Value none = json::Value::object();
  const auto found = all.find(std::string(model_type));
  return found == all.end() ? none : *found;
}

json::Value over_class_defaults(const json::Value& config, std::string_view model_type) {
  json::Value merged = class_defaults(model_type);
  merged.update(config);
  return merged;
}

}  // namespace rlx
