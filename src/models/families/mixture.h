#pragma once
#include "models/families/llama.h"

namespace rlx {

/// The mixture of Qwen's configs: num_experts, num_experts_per_tok, moe_intermediate_size, norm_topk_prob, and which layers have one
/// (decoder_sparse_step, mlp_only_layers).
void read_sparse_layers(const JsonField& config, DecoderConfig& result);
void write_sparse_layers(const DecoderConfig& config, json::Value& out);
/// How many experts there are: the field of that name, or one of those that transformers 5 saves for it. Throws Error where there is none.
std::int64_t expert_count(const JsonField& config, std::string_view name);
/// Llama's names, with those of experts below `mlp`.
WeightNames mixture_names(const DecoderConfig& config);
/// True where groups of experts are equal, and those that take part hold enough of them.
bool groups_suffice(const ExpertsConfig& experts);
/// Throws Error naming the field unless a token takes 1 to all of the experts.
void check_experts(const JsonField& config, const ExpertsConfig& experts);

}  // namespace rlx
