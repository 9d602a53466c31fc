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

from gguf_metadata import add_metadata, expert_count, llama3_factors

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


def add_rope_factors(writer, c):
    rope = c.get("rope_parameters", {})
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, c["head_dim"]))
    for length in ("long", "short"):
        if f"{length}_factor" in rope:
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], np.float32))


def of_architecture(name, values, c, arch, reorder):
    """What all models of an architecture in GGUF have otherwise."""
    if reorder and ".q_proj." in name:
        values = reordered(values, c["num_attention_heads"])
    if reorder and ".k_proj." in name:
        values = reordered(values, c["num_key_value_heads"])
    if arch.startswith(("gemma", "qwen3next", "qwen35")) and name.endswith("norm.weight") and "linear_attn" not in name:
        values = values + 1
    if arch == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        values = values.T
    return values


def with_experts_stacked(tensors, c, arch):
    """The tensors, those of a layer's experts as one, where the last of them stands."""
    experts = {}
    for name, values, dtype in tensors:
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
        yield name, values, dtype


def add_tensor(writer, name, values, dtype):
    """Vectors in F32, others in their own type."""
    kind = gguf.GGMLQuantizationType[dtype if values.ndim > 1 else "F32"]
    stored = values if kind == gguf.GGMLQuantizationType.F32 else gguf.quants.quantize(np.ascontiguousarray(values), kind)
    writer.add_tensor(name, np.ascontiguousarray(stored), raw_dtype=kind)


def convert(folder, target, arch, reorder):
    c = json.loads((folder / "config.json").read_text())
    layers = c.get("num_hidden_layers", c.get("n_layer", c.get("num_layers")))
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch], layers)
    others = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)  # of layers that other models of the architecture do not have
    writer = gguf.GGUFWriter(target, arch)
    add_metadata(writer, c, layers)
    add_rope_factors(writer, c)
    add_modules(writer, folder)
    tensors = read_safetensors(folder / "model.safetensors")
    tensors = ((name, of_architecture(name, values, c, arch, reorder), dtype) for name, values, dtype in tensors)
    for name, values, dtype in with_experts_stacked(tensors, c, arch):
        for form, values in in_gguf_form(name, values, c):
            new = names.get_name(form, (".weight", ".bias")) or others.get_name(form, (".weight", ".bias"))
            if new is None:
                raise SystemExit(f"{folder}: {form} has no name in GGUF")
            add_tensor(writer, new, values, dtype)
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
