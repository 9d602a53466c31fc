#!/usr/bin/env python3
"""Writes tiny language models as GGUF files: the fixtures in tests/fixtures/gguf_models, from the folders of the same name in
tests/fixtures/hf and hf_more; that of hf_options lies beside its folder. Names come from the `gguf` package (its map of tensors), and the changes of values from the format's conventions: rows
of queries and keys of Llama's kin are reordered, weights of Gemma's norms are written with their 1 added.

    pip install gguf numpy
    scripts/gguf_models.py tests/fixtures [NAME...]
"""
import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np

# Folder: the architecture in GGUF, and whether queries and keys are reordered.
MODELS = {
    "llama": ("llama", True),
    "mistral": ("llama", True),
    "mixtral": ("llama", True),
    "qwen2": ("qwen2", False),
    "qwen3": ("qwen3", False),
    "gemma3": ("gemma3", False),
    "phi3": ("phi3", False),
    "olmo2": ("olmo2", False),
    "granite": ("granite", True),
    "gpt2": ("gpt2", False),
    "gemma": ("gemma", False),
    "gemma2": ("gemma2", False),
    "qwen3_moe": ("qwen3moe", False),
    "gpt_neox": ("gptneox", False),
    "gpt_neox-serial": ("gptneox", False),
    "falcon": ("falcon", False),
    "falcon-new": ("falcon", False),
    "starcoder2": ("starcoder2", False),
    "stablelm": ("stablelm", False),
    "stablelm-parallel": ("stablelm", False),
    "phi": ("phi2", False),
    "cohere": ("command-r", False),
    "arcee": ("arcee", True),
    "smollm3": ("smollm3", True),
    "deepseek_v2": ("deepseek2", False),
    "deepseek_v3": ("deepseek2", False),
    "lfm2": ("lfm2", False),
    "lfm2_moe": ("lfm2moe", False),
    "mamba": ("mamba", False),
    "falcon_mamba": ("mamba", False),
    "mamba2": ("mamba2", False),
    "jamba": ("jamba", False),
    "phi3-longrope": ("phi3", False),
    "phi4": ("phi3", False),
    "olmo3": ("olmo2", False),
    "qwen2_moe": ("qwen2moe", False),
    "qwen3_next": ("qwen3next", False),
    "qwen3_5": ("qwen35", False),
    "embedding-gemma": ("gemma-embedding", False),
    "t5": ("t5", False),
    "t5-gated": ("t5", False),
}
TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        yield name, values.astype(np.float32), entry["dtype"]


def reordered(rows, heads):
    """The first and second half of each head's rows, one by one in turn."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


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
    if "sliding_attention" in c.get("layer_types", []):
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in c["layer_types"]])


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


def values_apart(values, heads, groups):
    """Queries, keys and values that come group by group, as all of the queries, all keys and all values."""
    rows = values.reshape(groups, heads // groups + 2, -1, *values.shape[1:])
    return np.concatenate([part.reshape(-1, *values.shape[1:]) for part in (rows[:, :-2], rows[:, -2], rows[:, -1])])


def heads_in_turn(values, c, size, axis=0):
    """Value heads of delta nets, those that share a key head together, as one of each key head after the other."""
    values = np.moveaxis(values, axis, 0)
    keys = c["linear_num_key_heads"]
    values = values.reshape(keys, c["linear_num_value_heads"] // keys, size, -1).swapaxes(0, 1).reshape(values.shape)
    return np.moveaxis(values, 0, axis)


def delta_net_form(name, values, c):
    """Queries, keys and values apart from gates; in Qwen 3.5 the value heads in turn."""
    keys, size = c["linear_num_key_heads"], c["linear_value_head_dim"]
    key_rows = c["linear_key_head_dim"]
    value_rows = c["linear_num_value_heads"] // keys * size
    if "in_proj_qkvz" in name:
        groups = np.split(values.reshape(keys, -1, values.shape[-1]), np.cumsum([key_rows, key_rows, value_rows]), axis=1)
        q, k, v, z = (part.reshape(-1, values.shape[-1]) for part in groups)
        return [(name.replace("in_proj_qkvz", "in_proj_qkv"), np.concatenate([q, k, v])), (name.replace("in_proj_qkvz", "in_proj_z"), z)]
    if c["model_type"] == "qwen3_next":
        return [(name, values)]
    if "in_proj_qkv." in name or "conv1d" in name:
        at = 2 * keys * key_rows
        values = np.concatenate([values[:at], heads_in_turn(values[at:], c, size)])
    elif "in_proj_z" in name:
        values = heads_in_turn(values, c, size)
    elif "out_proj" in name:
        values = heads_in_turn(values, c, size, axis=1)
    elif name.endswith(("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_proj.bias")):
        values = heads_in_turn(values, c, 1)
    return [(name, values)]


def in_gguf_form(name, values, c):
    """Tensors of one as converters write them: pairs of name and values."""
    kind = c["model_type"]
    heads = c.get("num_attention_heads")
    if "query_key_value" in name:
        groups = (values.shape[0] // (c["hidden_size"] // heads) - heads) // 2
        return [(name, values_apart(values, heads, groups))]
    if "kv_b_proj" in name:
        each = values.reshape(heads, -1, values.shape[-1])
        size = c["qk_nope_head_dim"]
        return [
            (name.replace("kv_b_proj", "k_b_proj"), each[:, :size].swapaxes(1, 2)),
            (name.replace("kv_b_proj", "v_b_proj"), each[:, size:]),
        ]
    if name.endswith("A_log"):
        values = -np.exp(values)
    if kind == "mamba2" and name.endswith(("A_log", ".D")):
        values = values[:, None]
    if kind == "mamba2" and name.endswith("mixer.norm.weight"):
        values = values.reshape(c["n_groups"], -1)
    if name.endswith(("conv1d.weight", "conv.conv.weight")):
        values = values.squeeze(1)
    for old, new in (("dt_bias", "dt_proj.bias"), ("e_score_correction_bias", "e_score_correction.bias"), ("expert_bias", "expert_bias.bias")):
        if name.endswith("." + old):
            name = name.removesuffix(old) + new
    return delta_net_form(name, values, c) if "linear_attn" in name else [(name, values)]


def add_modules(writer, folder):
    """How a sentence model makes vectors: by a mean and dense layers."""
    if not (folder / "modules.json").exists():
        return
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    for number in (2, 3):
        layer = folder / f"{number}_Dense"
        config = json.loads((layer / "config.json").read_text())
        writer.add_dense_features_dims(f"dense_{number}", config["in_features"], config["out_features"])
        for _, values, _ in read_safetensors(layer / "model.safetensors"):
            writer.add_tensor(f"dense_{number}.weight", values)


def convert(folder, target, arch, reorder):
    c = json.loads((folder / "config.json").read_text())
    layers = c.get("num_hidden_layers", c.get("n_layer", c.get("num_layers")))
    heads = c.get("num_attention_heads")
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch], layers)
    others = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)  # of layers that other models of the architecture do not have
    writer = gguf.GGUFWriter(target, arch)
    add_metadata(writer, c, layers)
    rope = c.get("rope_parameters", {})
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, c["head_dim"]))
    for length in ("long", "short"):
        if f"{length}_factor" in rope:
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], np.float32))
    add_modules(writer, folder)
    experts = {}
    for name, values, dtype in read_safetensors(folder / "model.safetensors"):
        if reorder and ".q_proj." in name:
            values = reordered(values, heads)
        if reorder and ".k_proj." in name:
            values = reordered(values, c["num_key_value_heads"])
        if arch.startswith(("gemma", "qwen3next", "qwen35")) and name.endswith("norm.weight") and "linear_attn" not in name:
            values = values + 1
        if arch == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            values = values.T
        parts = name.split(".")
        if "experts" in parts:
            at = parts.index("experts")
            expert = int(parts[at + 1])
            merged = ".".join(parts[: at + 1] + parts[at + 2 :])
            if arch == "lfm2moe":
                for old, new in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")):
                    merged = merged.replace(f".{old}.", f".{new}.")
            experts.setdefault(merged, {})[expert] = values
            if len(experts[merged]) < expert_count(c):
                continue
            name, values = merged, np.stack([experts[merged][e] for e in sorted(experts[merged])])
        for name, values in in_gguf_form(name, values, c):
            new = names.get_name(name, (".weight", ".bias")) or others.get_name(name, (".weight", ".bias"))
            if new is None:
                raise SystemExit(f"{folder}: {name} has no name in GGUF")
            kind = gguf.GGMLQuantizationType[dtype if values.ndim > 1 else "F32"]
            stored = values if kind == gguf.GGMLQuantizationType.F32 else gguf.quants.quantize(np.ascontiguousarray(values), kind)
            writer.add_tensor(new, np.ascontiguousarray(stored), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    fixtures = Path(sys.argv[1])
    target = fixtures / "gguf_models"
    target.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        folder = next(fixtures / part / name for part in ("hf", "hf_more", "hf_options") if (fixtures / part / name).exists())
        convert(folder, (folder.parent if "options" in str(folder) else target) / f"{name}.gguf", *MODELS[name])


if __name__ == "__main__":
    main()
