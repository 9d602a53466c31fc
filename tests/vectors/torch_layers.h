#pragma once
#include "ir/op.h"
#include "vectors/recorded.h"

// Layers, attention and losses: our graph for each case of fixtures/torch/backward.json.
namespace rlx::test {

using TorchOperands = std::map<std::string, Value>;
using TorchRule = std::function<Values(TorchOperands&, const json::Value& parameters)>;

inline double number(const json::Value& parameters, const char* key, double initial) {
  return parameters.contains(key) ? parameters[key].get<double>() : initial;
}

inline Values recorded_attention(TorchOperands& x, const json::Value& p) {
  AttentionOptions options{.scale = number(p, "scale", 0), .softcap = number(p, "softcap", 0), .causal = p.contains("causal")};
  options.window = static_cast<std::int64_t>(number(p, "window", 0));
  if (p.contains("mask")) options.mask = x["m"];
  if (p.contains("bias")) options.bias = x["bias"];
  const Dim queries = x["q"].dim(2);
  if (p.contains("offset")) options.positions = iota(x["q"], {queries}, i32, 0) + scalar(x["q"], number(p, "offset", 0), i32);
  return {attention(x["q"], x["k"], x["v"], options)};
}

inline Reduction recorded_reduction(const json::Value& p) {
  const auto word = p.value("reduction", std::string("mean"));
  return word == "none" ? Reduction::none : word == "sum" ? Reduction::sum : Reduction::mean;
}

inline Values recorded_cross_entropy(TorchOperands& x, const json::Value& p) {
  return {cross_entropy(x["x"], x["t"], recorded_reduction(p), number(p, "label_smoothing", 0),
                        static_cast<std::int64_t>(number(p, "ignore_index", -100)), 1, x.contains("w") ? x["w"] : Value())};
}

/// The logits become log-probabilities inside the recorded case.
inline Values recorded_ctc(TorchOperands& x, const json::Value& p) {
  return {ctc_loss(log_softmax(x["x"]), x["t"], x["input_lengths"], x["target_lengths"], p["blank"].get<std::int64_t>(),
                   recorded_reduction(p), p["zero_infinity"].get<bool>())};
}

// x (..., D) turned by recorded angles (S, D / 2): as the angles of a position of 1.
inline Values recorded_rope(TorchOperands& x, RopeStyle style) {
  Value angle = cast(x["angle"], f64), one = scalar(x["x"], 1, i32);
  const Attrs attrs{std::string(enum_words(style)[static_cast<std::size_t>(style)]), 1.0};
  return {apply(find_op("rope"), attrs,
                std::vector<Value>{x["x"], broadcast(one, {1, 1, 1, 1}, {}), reshape(angle, {1, 1, angle.dim(0), angle.dim(1)})})[0]};
}

inline const std::map<std::string, TorchRule>& torch_layers() {
  static const std::map<std::string, TorchRule> all{
      {"layer_norm", [](auto& x, auto& p) { return Values{layer_norm(x["x"], x["w"], x["b"], {-1}, number(p, "eps", 1e-5))}; }},
      {"layer_norm_plain", [](auto& x, auto&) { return Values{layer_norm(x["x"])}; }},
      {"layer_norm_two_axes", [](auto& x, auto& p) { return Values{layer_norm(x["x"], x["w"], x["b"], {-2, -1}, number(p, "eps", 0))}; }},
      {"layer_norm_offset", [](auto& x, auto&) { return Values{layer_norm(x["x"])}; }},
      {"rms_norm", [](auto& x, auto& p) { return Values{rms_norm(x["x"], x["w"], {-1}, number(p, "eps", 0))}; }},
      {"rms_norm_plain", [](auto& x, auto& p) { return Values{rms_norm(x["x"], {}, {-1}, number(p, "eps", 0))}; }},
      {"group_norm",
       [](auto& x, auto& p) {
         return Values{group_norm(x["x"], static_cast<std::int64_t>(number(p, "groups", 1)), x["w"], x["b"], number(p, "eps", 1e-5))};
       }},
      {"instance_norm", [](auto& x, auto& p) { return Values{instance_norm(x["x"], {}, {}, number(p, "eps", 1e-5))}; }},
      {"batch_norm_train",
       [](auto& x, auto& p) {
         return batch_norm_training(x["x"], x["mean"], x["var"], x["w"], x["b"], number(p, "momentum", 0.1), number(p, "eps", 1e-5));
       }},
      {"batch_norm_eval",
       [](auto& x, auto& p) {
         return Values{batch_norm(x["x"], x["mean"], x["var"], x["w"], x["b"], number(p, "eps", 1e-5)), x["mean"], x["var"]};
       }},
      {"local_response_norm",
       [](auto& x, auto& p) {
         const auto size = static_cast<std::int64_t>(number(p, "size", 5));
         return Values{local_response_norm(x["x"], size, number(p, "alpha", 1e-4), number(p, "beta", 0.75), number(p, "k", 1))};
       }},
      {"normalize_l2", [](auto& x, auto& p) { return Values{l2_normalize(x["x"], {-1}, number(p, "eps", 1e-12))}; }},
      {"weight_norm", [](auto& x, auto&) { return Values{weight_norm(x["v"], x["g"])}; }},
      {"sdpa", recorded_attention},
      {"sdpa_gqa_scale", recorded_attention},
      {"sdpa_causal", [](auto& x, auto&) { return Values{attention(x["q"], x["k"], x["v"], {.causal = true})}; }},
      {"sdpa_causal_rect",  // aligned to the left: query i stands at key i
       [](auto& x, auto&) {
         return Values{attention(x["q"], x["k"], x["v"], {.causal = true, .positions = iota(x["q"], {x["q"].dim(2)}, i32, 0)})};
       }},
      {"sdpa_bool_mask", [](auto& x, auto&) { return Values{attention(x["q"], x["k"], x["v"], {.mask = x["m"]})}; }},
      {"sdpa_bias", [](auto& x, auto&) { return Values{attention(x["q"], x["k"], x["v"], {.bias = x["bias"]})}; }},
      {"attention_causal", recorded_attention},
      {"attention_causal_rect", recorded_attention},
      {"attention_causal_offset", recorded_attention},
      {"attention_window", recorded_attention},
      {"attention_window_gqa", recorded_attention},
      {"attention_softcap", recorded_attention},
      {"attention_softcap_causal_gqa", recorded_attention},
      {"attention_bias_causal", recorded_attention},
      {"attention_mask_empty_rows", recorded_attention},
      {"attention_offset_empty_rows", recorded_attention},
      {"attention_all", recorded_attention},
      {"cross_entropy", recorded_cross_entropy},
      {"cross_entropy_sum_smooth", recorded_cross_entropy},
      {"cross_entropy_ignore", recorded_cross_entropy},
      {"cross_entropy_ignore_smooth", recorded_cross_entropy},
      {"cross_entropy_all", recorded_cross_entropy},
      {"cross_entropy_soft", recorded_cross_entropy},
      {"cross_entropy_nothing", recorded_cross_entropy},
      {"cross_entropy_none_2d", [](auto& x, auto&) { return Values{cross_entropy(x["x"], x["t"], Reduction::none, 0, -100, 1)}; }},
      {"nll_weight", [](auto& x, auto&) { return Values{nll(log_softmax(x["x"]), x["t"], Reduction::mean, -100, 1, x["w"])}; }},
      {"bce_logits_pos_weight", [](auto& x, auto&) { return Values{bce_with_logits(x["x"], x["t"], x["w"])}; }},
      {"mse", [](auto& x, auto&) { return Values{mse(x["x"], x["y"])}; }},
      {"l1", [](auto& x, auto&) { return Values{l1(x["x"], x["y"])}; }},
      {"smooth_l1", [](auto& x, auto& p) { return Values{smooth_l1(x["x"], x["y"], number(p, "beta", 1))}; }},
      {"huber", [](auto& x, auto& p) { return Values{huber(x["x"], x["y"], number(p, "delta", 1))}; }},
      {"kl_div_log_target",
       [](auto& x, auto&) {
         const auto rows = static_cast<double>(x["x"].dim(0).value());
         return Values{kl_div(log_softmax(x["x"]), log_softmax(x["y"]), true, Reduction::sum) / rows};
       }},
      {"cosine_similarity", [](auto& x, auto&) { return Values{cosine_similarity(x["x"], x["y"])}; }},
      {"embedding_repeated", [](auto& x, auto&) { return Values{embedding(x["w"], x["i"])}; }},
      {"embedding_padding_idx",  // the row is read, but takes no gradient
       [](auto& x, auto& p) { return Values{embedding(x["w"], x["i"], p["padding_idx"].template get<std::int64_t>())}; }},
      {"triplet_margin", [](auto& x, auto&) { return Values{triplet_margin(x["x"], x["y"], x["z"])}; }},
      {"gaussian_nll", [](auto& x, auto&) { return Values{gaussian_nll(x["x"], x["y"], x["v"], true)}; }},
      {"poisson_nll", [](auto& x, auto&) { return Values{poisson_nll(x["x"], x["y"])}; }},
      {"ctc_none", recorded_ctc},
      {"ctc_mean", recorded_ctc},
      {"ctc_infinity", recorded_ctc},
      {"logsumexp", [](auto& x, auto&) { return Values{logsumexp(x["x"], {1})}; }},
      {"softmax", [](auto& x, auto&) { return Values{softmax(x["x"])}; }},
      {"var_std", [](auto& x, auto&) { return Values{var(x["x"], {1}), std_dev(x["x"], {1}), var(x["x"], {1}, 0)}; }},
      {"prelu", [](auto& x, auto&) { return Values{prelu(x["x"], reshape(x["w"], {x["w"].dim(0), 1}))}; }},
      {"swiglu", [](auto& x, auto&) { return Values{matmul(swiglu(matmul(x["x"], x["g"]), matmul(x["x"], x["u"])), x["o"])}; }},
      {"rope_half", [](auto& x, auto&) { return recorded_rope(x, RopeStyle::half); }},
      {"rope_interleaved", [](auto& x, auto&) { return recorded_rope(x, RopeStyle::interleaved); }},
  };
  return all;
}

}  // namespace rlx::test
