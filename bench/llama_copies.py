"""Copies of GGUF files for llama.cpp, which lacks some of what the fixtures' models have: see llama_families.py."""
import gguf
import numpy as np


class Copy:
    """A file's keys, with their types, and its tensors in F32."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.arch = reader.get_field("general.architecture").contents()
        kept = lambda key: not key.startswith(("GGUF.", "tokenizer.")) or key == "tokenizer.ggml.token_type_count"
        self.keys = {key: (field.contents(), *field.types) for key, field in reader.fields.items() if kept(key) and key != "general.architecture"}
        self.tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}

    def get(self, key, otherwise=None):
        return self.keys.get(f"{self.arch}.{key}", (otherwise,))[0]

    def put(self, key, value, kind=gguf.GGUFValueType.UINT32):
        self.keys[f"{self.arch}.{key}"] = (value, kind)

    def scale(self, ending, factor):
        for name in self.tensors:
            if name.endswith(ending):
                self.tensors[name] = self.tensors[name] * np.float32(factor)

    def write(self, path):
        writer = gguf.GGUFWriter(path, self.arch)
        for key, (value, kind, *of) in self.keys.items():
            writer.add_key_value(key, value, kind, of[0] if of else None)
        for name, values in self.tensors.items():
            writer.add_tensor(name, np.ascontiguousarray(values))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def queries_scaled(copy):
    by = copy.get("attention.scale") * copy.get("attention.key_length") ** 0.5
    copy.scale("attn_q_norm.weight" if "blk.0.attn_q_norm.weight" in copy.tensors else "attn_q.weight", by)


def experts_scaled(copy):
    copy.scale("ffn_down_exps.weight", copy.get("expert_weights_scale"))


def query_rank_given(copy):
    """Its key, and no groups of experts, which take part by their best expert here, there by their two best."""
    copy.put("attention.q_lora_rank", 0)
    take_out(copy, "expert_group_count", "expert_group_used_count")


def turned_queries_scaled(copy):
    """Queries and keys that turn are both multiplied by the factor."""
    rows = copy.get("attention.key_length_mla") - copy.get("rope.dimension_count")
    for name, values in copy.tensors.items():
        if name.endswith("attn_q_b.weight"):
            by_head = values.reshape(copy.get("attention.head_count"), -1, values.shape[-1]).copy()
            by_head[:, rows:] *= np.float32(copy.get("rope.scaling.yarn_attn_factor") ** 2)
            copy.tensors[name] = by_head.reshape(values.shape)


def take_out(copy, *endings):
    copy.keys = {key: value for key, value in copy.keys.items() if not key.endswith(endings)}
    copy.tensors = {name: values for name, values in copy.tensors.items() if not name.endswith(endings)}


def first_layer_of_experts(copy):
    """Those of the layer behind it."""
    take_out(copy, *(f"blk.0.ffn_{part}.weight" for part in ("gate", "up", "down")))
    copy.tensors |= {name.replace("blk.1.", "blk.0."): values for name, values in copy.tensors.items() if name.startswith("blk.1.ffn_")}
    copy.put("leading_dense_block_count", 0)


def values_as_long_as_keys(copy):
    """Of each value head the first features."""
    heads, keys, old = copy.get("ssm.time_step_rank"), 2 * copy.get("ssm.group_count") * copy.get("ssm.state_size"), copy.get("ssm.inner_size")
    kept = np.arange(old).reshape(heads, -1)[:, :copy.get("ssm.state_size")]
    for name, values in copy.tensors.items():
        ending = name.split(".", 2)[-1]
        if ending in ("attn_qkv.weight", "ssm_conv1d.weight") and len(values) == keys + old:
            copy.tensors[name] = np.concatenate([values[:keys], values[keys:][kept.ravel()]])
        elif ending == "attn_gate.weight":
            copy.tensors[name] = values[kept.ravel()]
        elif ending == "ssm_out.weight":
            copy.tensors[name] = values[:, kept.ravel()]
        elif ending == "ssm_norm.weight":
            copy.tensors[name] = values[:kept.shape[1]]
    copy.put("ssm.inner_size", kept.size)


def bucket_of(distance, count, largest):
    """T5's bucket of a distance, https://arxiv.org/abs/1910.10683, section 2.1: one for each up to half of them, then growing."""
    exact = count // 2
    return distance if distance < exact else min(count - 1, exact + int(np.log(distance / exact) / np.log(largest / exact) * (count - exact)))


def each_distance_its_bucket(copy):
    """So many buckets that each distance within the fixtures' texts has its own, which holds what the model has for that distance."""
    count, largest, many = copy.get("attention.relative_buckets_count"), copy.get("attention.relative_max_distance"), 128
    for part, ways in (("enc", 2), ("dec", 1)):
        name, each = f"{part}.blk.0.attn_rel_b.weight", count // ways
        buckets = [bucket_of(distance, each, largest) + way * each for way in range(ways) for distance in range(many // ways)]
        copy.tensors[name] = copy.tensors[name][buckets]
    copy.put("attention.relative_buckets_count", many)


def tied_output_scaled(copy):
    each_distance_its_bucket(copy)
    copy.tensors["output.weight"] = copy.tensors["token_embd.weight"] * np.float32(copy.get("embedding_length") ** -0.5)


# Of a fixture: what llama.cpp lacks, what is done to the copy, and how the run differs.
WINDOW = "a window in all layers: tokens go in one by one, and what the window leaves behind is forgotten", None, {"window": True}
SCALE = "Gemma's attention.scale: queries are multiplied instead", queries_scaled, {}
OURS = {"ours": True}  # the measure: something was taken out
ADAPTED = {
    "gemma2": SCALE,
    "gemma3": SCALE,
    "gemma3-vision": SCALE,
    "mistral": WINDOW,
    "phi3": WINDOW,
    "starcoder2": WINDOW,
    "lfm2_moe": ("LFM2's expert_weights_scale: products of the experts are multiplied instead", experts_scaled, {}),
    "deepseek_v2-greedy": ("an mscale unlike mscale_all_dim: queries that turn are multiplied instead", turned_queries_scaled, {}),
    "t5": ("buckets for distances up to other than 128, and the scale of a tied output: as many buckets as distances, an output of its own",
           tied_output_scaled, {}),
    "t5-gated": ("buckets for distances up to other than 128: as many buckets as distances", each_distance_its_bucket, {}),
    "modernbert": ("output.bias, and what says words for masked ones: none, the states behind the first text are the measure",
                   lambda copy: take_out(copy, "output.bias"), {}),
    "distilbert-labels": ("a head with ReLU: its head is computed here, from llama.cpp's states", None, {"head": True}),
    "deepseek_v2": ("groups that take part by their best expert, and q_lora_rank must be there: no groups, and a rank of 0", query_rank_given, OURS),
    "qwen2": ("a window in some layers: none", lambda copy: take_out(copy, "sliding_window", "sliding_window_pattern"), OURS),
    "qwen2_moe": ("a layer without experts: the experts of the next one", first_layer_of_experts, OURS),
    "qwen3_next": ("values longer than keys: cut", values_as_long_as_keys, OURS),
    "mamba": ("biases of ssm_in and ssm_out: none", lambda copy: take_out(copy, "ssm_in.bias", "ssm_out.bias"), OURS),
    "mamba2-limited": ("limits of the time step: none", lambda copy: take_out(copy, "time_step_least", "time_step_largest"), OURS),
}
