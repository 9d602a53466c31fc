"""The keys of GGUF files that gguf_models.py writes, from the config.json of a folder."""
import gguf
import numpy as np


def add_t5(writer, c):
    writer.add_context_length(512)
    writer.add_embedding_length(c["d_model"])
    writer.add_feed_forward_length(c["d_ff"])
    writer.add_block_count(c["num_layers"])
    writer.add_decoder_block_count(c["num_decoder_layers"])
    writer.add_head_count(c["num_heads"])
    writer.add_key_length(c["d_kv"])
    writer.add_value_length(c["d_kv"])
    writer.add_layer_norm_eps(c["layer_norm_epsilon"])
    writer.add_layer_norm_rms_eps(c["layer_norm_epsilon"])
    writer.add_relative_attn_buckets_count(c["relative_attention_num_buckets"])
    writer.add_decoder_start_token_id(c["decoder_start_token_id"])
    # Not of the format: other readers know 128 alone, and these models have less.
    writer.add_uint32("t5.attention.relative_max_distance", c["relative_attention_max_distance"])


def add_metadata(writer, c, layers):
    if c["model_type"] == "t5":
        return add_t5(writer, c)
    hidden, heads = c.get("hidden_size", c.get("n_embd")), c.get("num_attention_heads", c.get("n_head", 0))
    writer.add_context_length(c.get("max_position_embeddings", c.get("n_positions", 1 << 20)))
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(feed_forward_length(c))
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads_of_keys(c, heads, layers))
    if "rms_norm_eps" in c or "mamba" in c["model_type"] or "lfm2" in c["model_type"]:
        writer.add_layer_norm_rms_eps(c.get("rms_norm_eps", c.get("layer_norm_epsilon", c.get("norm_eps"))))
    else:
        writer.add_layer_norm_eps(c.get("layer_norm_epsilon", c.get("layer_norm_eps", c.get("norm_epsilon"))))
    head = c.get("head_dim") or (hidden // heads if heads else 0)
    if head and "kv_lora_rank" not in c and "state_size" not in c:
        writer.add_key_length(head)
        writer.add_value_length(head)
    add_experts(writer, c)
    add_latent_attention(writer, c)
    add_state_space(writer, c)
    add_delta_net(writer, c)
    add_rope(writer, c, head)
    if "conv_L_cache" in c:
        writer.add_shortconv_l_cache(c["conv_L_cache"])
    if c.get("sliding_window") and c.get("use_sliding_window", True):
        writer.add_sliding_window(c["sliding_window"])
    if c.get("use_parallel_residual") is not None:
        writer.add_parallel_residual(c["use_parallel_residual"])
    add_scales(writer, c)
    if "sliding_attention" in c.get("layer_types", []):
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in c["layer_types"]])


def add_scales(writer, c):
    for key, add in (
        ("embedding_multiplier", writer.add_embedding_scale),
        ("residual_multiplier", writer.add_residual_scale),
        ("attention_multiplier", writer.add_attention_scale),
        ("logits_scaling", writer.add_logit_scale),
        ("logit_scale", writer.add_logit_scale),
        ("attn_logit_softcapping", writer.add_attn_logit_softcapping),
        ("final_logit_softcapping", writer.add_final_logit_softcapping),
    ):
        if c.get(key) is not None:
            add(c[key])
    if "query_pre_attn_scalar" in c:
        writer.add_attention_scale(c["query_pre_attn_scalar"] ** -0.5)


def feed_forward_length(c):
    width = c.get("intermediate_size", c.get("n_inner", c.get("ffn_hidden_size", 0)))
    if "state_size" in c:
        return 0
    if c["model_type"] != "lfm2":
        return width
    block = c["block_multiple_of"]
    return -(-int(c["block_ffn_dim_multiplier"] * int(2 * width / 3)) // block) * block


def heads_of_keys(c, heads, layers):
    """For hybrids a list: layers without attention have none."""
    count = c.get("num_key_value_heads", c.get("num_kv_heads", heads))
    if c["model_type"] == "falcon" and not c["new_decoder_architecture"]:
        count = 1
    if c["model_type"] == "jamba":
        return [count if i % c["attn_layer_period"] == c["attn_layer_offset"] else 0 for i in range(layers)]
    if "conv_L_cache" in c:
        return [count if kind == "full_attention" else 0 for kind in c["layer_types"]]
    return 1 if "kv_lora_rank" in c else count


def expert_count(c):
    return c.get("num_local_experts", c.get("num_experts", c.get("n_routed_experts", 0)))


def add_experts(writer, c):
    if not expert_count(c):
        return
    writer.add_expert_count(expert_count(c))
    writer.add_expert_used_count(c["num_experts_per_tok"])
    if "moe_intermediate_size" in c:
        writer.add_expert_feed_forward_length(c["moe_intermediate_size"])
    if c.get("shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(c["shared_expert_intermediate_size"])
    if "num_dense_layers" in c:
        writer.add_leading_dense_block_count(c["num_dense_layers"])
    sigmoid = c["model_type"] in ("deepseek_v3", "lfm2_moe")
    if "routed_scaling_factor" in c:
        writer.add_expert_weights_scale(c["routed_scaling_factor"])
        writer.add_expert_weights_norm(sigmoid and c["norm_topk_prob"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid else gguf.ExpertGatingFuncType.SOFTMAX)
    if c.get("n_group"):
        writer.add_expert_group_count(c["n_group"])
        writer.add_expert_group_used_count(c["topk_group"])
    if "n_shared_experts" in c:
        writer.add_expert_shared_count(c["n_shared_experts"])
        writer.add_leading_dense_block_count(c["first_k_dense_replace"])


def add_latent_attention(writer, c):
    if "kv_lora_rank" not in c:
        return
    if c["q_lora_rank"]:
        writer.add_q_lora_rank(c["q_lora_rank"])
    writer.add_kv_lora_rank(c["kv_lora_rank"])
    writer.add_key_length(c["kv_lora_rank"] + c["qk_rope_head_dim"])
    writer.add_value_length(c["kv_lora_rank"])
    writer.add_key_length_mla(c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    writer.add_value_length_mla(c["v_head_dim"])


def add_state_space(writer, c):
    if "mamba" not in c["model_type"] and c["model_type"] != "jamba":
        return
    width = c.get("mamba_expand", c.get("expand", 2)) * c["hidden_size"]
    writer.add_ssm_conv_kernel(c.get("mamba_d_conv", c.get("conv_kernel")))
    writer.add_ssm_inner_size(width)
    writer.add_ssm_state_size(c.get("mamba_d_state", c.get("state_size")))
    writer.add_ssm_time_step_rank(c.get("mamba_dt_rank", c.get("time_step_rank")) if c["model_type"] != "mamba2" else c["num_heads"])
    if c["model_type"] == "mamba2":
        writer.add_ssm_group_count(c["n_groups"])
    if c["model_type"] == "falcon_mamba":
        writer.add_ssm_dt_b_c_rms(True)


def add_delta_net(writer, c):
    if "linear_num_key_heads" not in c:
        return
    writer.add_ssm_conv_kernel(c["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(c["linear_key_head_dim"])
    writer.add_ssm_group_count(c["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(c["linear_num_value_heads"])
    writer.add_ssm_inner_size(c["linear_value_head_dim"] * c["linear_num_value_heads"])
    writer.add_array(f"{writer.arch}.attention.recurrent_layers", [kind == "linear_attention" for kind in c["layer_types"]])
    if writer.arch == "qwen35":  # [11, 11, 10, 0] in all of the family, whose heads have 32 pairs that turn
        pairs = int(c["head_dim"] * c["rope_parameters"]["partial_rotary_factor"]) // 2
        writer.add_rope_dimension_sections([(pairs + 2) // 3, (pairs + 1) // 3, pairs // 3, 0])


def add_rope(writer, c, head):
    if "n_positions" in c or "state_size" in c or c["model_type"] == "jamba":
        return
    rope = c.get("rope_parameters", {"rope_type": "default", "rope_theta": c.get("rope_theta", c.get("rotary_emb_base"))})
    if "full_attention" in rope:
        writer.add_float32(f"{writer.arch}.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    part = rope.get("partial_rotary_factor", c.get("partial_rotary_factor", c.get("rotary_pct", 1)))
    writer.add_rope_dimension_count(c.get("qk_rope_head_dim", int(head * part)))
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
    if rope["rope_type"] == "longrope":
        trained = rope.get("original_max_position_embeddings", c.get("original_max_position_embeddings"))
        longer = c["max_position_embeddings"] / trained
        writer.add_rope_scaling_orig_ctx_len(trained)
        writer.add_rope_scaling_attn_factors((1 + np.log(longer) / np.log(trained)) ** 0.5)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])


def llama3_factors(rope, head):
    """What Llama 3's scaling divides each frequency by, which files of that kind bring as a tensor."""
    frequencies = rope["rope_theta"] ** (-np.arange(0, head, 2) / head)
    turns = rope["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / rope["factor"] + smooth)).astype(np.float32)
