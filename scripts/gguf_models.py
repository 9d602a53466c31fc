#!/usr/bin/env python3
"""Writes tiny language models as GGUF files: the fixtures in tests/fixtures/gguf_models, from the folders of the same name in
tests/fixtures/hf. Names come from the `gguf` package (its map of tensors), and the changes of values from the format's conventions: rows
of queries and keys of Llama's kin are reordered, weights of Gemma's norms are written with their 1 added.

    pip install gguf numpy
    scripts/gguf_models.py tests/fixtures/hf tests/fixtures/gguf_models
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


def add_metadata(writer, c, layers):
    hidden, heads = c.get("hidden_size", c.get("n_embd")), c.get("num_attention_heads", c.get("n_head"))
    writer.add_context_length(c.get("max_position_embeddings", c.get("n_positions")))
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(c.get("intermediate_size", c.get("n_inner")))
    writer.add_head_count(heads)
    writer.add_head_count_kv(c.get("num_key_value_heads", heads))
    if "rms_norm_eps" in c:
        writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(c["layer_norm_epsilon"])
    head = c.get("head_dim") or hidden // heads
    writer.add_key_length(head)
    writer.add_value_length(head)
    if "num_local_experts" in c:
        writer.add_expert_count(c["num_local_experts"])
        writer.add_expert_used_count(c["num_experts_per_tok"])
    add_rope(writer, c, head)
    if c.get("sliding_window") and c.get("use_sliding_window", True):
        writer.add_sliding_window(c["sliding_window"])
    for key, add in (
        ("embedding_multiplier", writer.add_embedding_scale),
        ("residual_multiplier", writer.add_residual_scale),
        ("attention_multiplier", writer.add_attention_scale),
        ("logits_scaling", writer.add_logit_scale),
    ):
        if key in c:
            add(c[key])
    if "query_pre_attn_scalar" in c:
        writer.add_attention_scale(c["query_pre_attn_scalar"] ** -0.5)
    if "layer_types" in c:
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in c["layer_types"]])


def add_rope(writer, c, head):
    rope = c.get("rope_parameters")
    if rope is None:
        return
    if "full_attention" in rope:
        writer.add_float32(f"{writer.arch}.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 1)))
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


def convert(folder, target, arch, reorder):
    c = json.loads((folder / "config.json").read_text())
    layers = c.get("num_hidden_layers", c.get("n_layer"))
    heads = c.get("num_attention_heads")
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch], layers)
    writer = gguf.GGUFWriter(target, arch)
    add_metadata(writer, c, layers)
    rope = c.get("rope_parameters", {})
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, c["head_dim"]))
    experts = {}
    for name, values, dtype in read_safetensors(folder / "model.safetensors"):
        if reorder and ".q_proj." in name:
            values = reordered(values, heads)
        if reorder and ".k_proj." in name:
            values = reordered(values, c["num_key_value_heads"])
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        if arch == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            values = values.T
        parts = name.split(".")
        if "experts" in parts:
            at = parts.index("experts")
            expert = int(parts[at + 1])
            merged = ".".join(parts[: at + 1] + parts[at + 2 :])
            experts.setdefault(merged, {})[expert] = values
            if len(experts[merged]) < c["num_local_experts"]:
                continue
            name, values = merged, np.stack([experts[merged][e] for e in sorted(experts[merged])])
        new = names.get_name(name, (".weight", ".bias"))
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
    source, target = (Path(argument) for argument in sys.argv[1:3])
    target.mkdir(parents=True, exist_ok=True)
    for name, (arch, reorder) in MODELS.items():
        convert(source / name, target / f"{name}.gguf", arch, reorder)


if __name__ == "__main__":
    main()
