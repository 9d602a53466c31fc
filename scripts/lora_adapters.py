#!/usr/bin/env python3
"""Writes adapters of random numbers for the tiny models in tests/fixtures, with what PEFT computes of them: the fixtures in tests/fixtures/lora.
Each folder is one as PEFT writes it and `expected.safetensors`: input_ids, logits in f32 and in f64, and a greedy continuation. What PEFT
cannot adapt any more (single experts, which transformers keeps in one parameter) is merged by numpy and run without it. NAME.gguf is the same
adapter in a GGUF file.

    pip install transformers==5.23.0 peft==0.21.2 torch safetensors gguf
    scripts/lora_adapters.py tests/fixtures [NAME...]
"""
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
import peft
import tokenizers
import torch
import transformers as tf
from hf_models import without_f32
from safetensors.numpy import load_file as load_numpy
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import load_file, save_file

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Folder of the model, and what LoraConfig is given.
ADAPTERS = {
    "llama": (
        "hf/llama",
        dict(
            r=4, lora_alpha=6, target_modules=LINEAR, rank_pattern={"down_proj": 2, r"layers\.0\.mlp\.(up|gate)_proj": 3},
            alpha_pattern={"model.layers.1.self_attn.q_proj": 3}
        )
    ),
    "llama-head": ("hf/llama", dict(r=3, lora_alpha=2, use_rslora=True, target_modules=["v_proj", "lm_head", "embed_tokens"])),
    "llama-tied": ("hf/llama-tied", dict(r=2, lora_alpha=3, target_modules=["o_proj", "lm_head", "embed_tokens"])),
    "gpt2": ("hf/gpt2", dict(r=4, lora_alpha=4, target_modules=["c_attn", "c_proj", "c_fc", "wte"], fan_in_fan_out=True)),
    "phi3": ("hf/phi3", dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"])),
    "falcon-new": ("hf_more/falcon-new", dict(r=2, lora_alpha=4, target_modules=["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"])),
    "gemma3": ("hf/gemma3", dict(r=2, lora_alpha=4, target_modules=[*LINEAR, "embed_tokens"])),
    "qwen3_next": (
        "hf/qwen3_next",
        dict(
            r=2, lora_alpha=2, target_modules=["q_proj", "k_proj", "o_proj", "in_proj_qkvz", "in_proj_ba", "out_proj"]
        )
    ),
    "mamba": ("hf/mamba", dict(r=2, lora_alpha=4, target_modules=["in_proj", "x_proj"])),
    "deepseek_v3": (
        "hf_more/deepseek_v3",
        dict(r=2, lora_alpha=4, target_modules=["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"])
    ),
}
# Encoders, whose folders have input_ids, attention_mask and last_hidden_state, or the scores of these texts for the query "dog".
TEXTS = ["A small dog", "Prices rose", "The beach"]
ENCODERS = {
    "bert": ("hf/bert", tf.AutoModel, dict(r=3, lora_alpha=6, target_modules=["query", "value", "intermediate.dense", "output.dense"])),
    "bert-scores": (
        "hf_more/bert-scores", tf.AutoModelForSequenceClassification, dict(r=2, lora_alpha=2, target_modules=["key", "value", "classifier"])
    ),
}
EXPERTS = {"mixtral": ("hf/mixtral", dict(r=3, lora_alpha=6, target_modules=["q_proj", "w1", "w2", "w3"]))}
GGUF = {"llama": "llama", "llama-head": "llama", "mixtral": "llama"}


def open_model(path):
    model = tf.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    model.config._experts_implementation = "eager"
    return model.eval()


def record(model, folder):
    config = model.config
    ids = torch.randint(0, config.vocab_size, (2, 12))
    with torch.no_grad():
        logits = model(ids).logits
        greedy = prompt = ids[:1, :6]
        for _ in range(14):
            greedy = torch.cat([greedy, model(greedy, use_cache=False).logits[:, -1:].argmax(-1)], 1)
        with without_f32():
            wide = model.double()(ids).logits
    expected = {"input_ids": ids, "logits": logits, "logits_f64": wide, "prompt_ids": prompt, "greedy_ids": greedy}
    save_file({name: value.clone().contiguous() for name, value in expected.items()}, folder / "expected.safetensors")
    print(folder, float((logits - wide).abs().max()), float(logits.abs().max()), len(set(greedy[0].tolist())))


def finish(folder, base):
    """Without what differs from one run to the next, and without what a user reads."""
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = base
    config["target_modules"] = sorted(config["target_modules"])
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def write_peft(fixtures, name, base, options):
    torch.manual_seed(2)
    folder = fixtures / "lora" / name
    model = peft.get_peft_model(open_model(fixtures / base), peft.LoraConfig(task_type="CAUSAL_LM", **options)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_" in key:
                parameter.normal_(0, 0.35)
    model.save_pretrained(folder)
    finish(folder, base)
    record(model, folder)


def encoded(pair):
    return {"input_ids": torch.tensor([pair.ids]), "token_type_ids": torch.tensor([pair.type_ids])}


def write_encoder(fixtures, name, base, kind, options):
    torch.manual_seed(4)
    folder = fixtures / "lora" / name
    model = kind.from_pretrained(fixtures / base, dtype=torch.float32, attn_implementation="eager")
    model = peft.get_peft_model(model, peft.LoraConfig(**options)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_" in key:
                parameter.normal_(0, 0.2)
    model.save_pretrained(folder)
    finish(folder, base)
    if "Classification" in kind.__name__:
        tokenizer = tokenizers.Tokenizer.from_file(str(fixtures / base / "tokenizer.json"))
        output, inputs = "logits", [encoded(tokenizer.encode("dog", text)) for text in TEXTS]
    else:
        recorded = load_file(fixtures / base / "expected.safetensors")
        output, inputs = "last_hidden_state", [{key: recorded[key] for key in ("input_ids", "attention_mask", "token_type_ids")}]
    with torch.no_grad():
        narrow = torch.cat([model(**each)[output] for each in inputs])
        wide = torch.cat([model.double()(**each)[output] for each in inputs])
    expected = {output: narrow, output + "_f64": wide} | (inputs[0] if len(inputs) == 1 else {})
    save_file({key: value.clone().contiguous() for key, value in expected.items()}, folder / "expected.safetensors")
    print(folder, float((narrow - wide).abs().max()), float(narrow.abs().max()))


def write_merged(fixtures, name, base, options):
    rng = np.random.default_rng(3)
    folder = fixtures / "lora" / name
    weights = {key: value.float().numpy() for key, value in load_file(fixtures / base / "model.safetensors").items()}
    factors = {}
    for key in list(weights):
        module = key.removesuffix(".weight")
        if not any(module.endswith("." + target) for target in options["target_modules"]) or (".experts.2." in key and "w1" in key):
            continue
        rows, columns = weights[key].shape
        a = rng.normal(0, 0.35, (options["r"], columns)).astype(np.float32)
        b = rng.normal(0, 0.35, (rows, options["r"])).astype(np.float32)
        weights[key] = (weights[key].astype(np.float64) + options["lora_alpha"] / options["r"] * (b.astype(np.float64) @ a)).astype(np.float32)
        factors[f"base_model.model.{module}.lora_A.weight"], factors[f"base_model.model.{module}.lora_B.weight"] = a, b
    peft.LoraConfig(task_type="CAUSAL_LM", **options).save_pretrained(folder)
    save_numpy(factors, folder / "adapter_model.safetensors")
    finish(folder, base)
    with tempfile.TemporaryDirectory() as merged:
        shutil.copy(fixtures / base / "config.json", merged)
        save_numpy(weights, Path(merged) / "model.safetensors", {"format": "pt"})
        torch.manual_seed(2)
        record(open_model(merged), folder)


def neighbours(b, heads):
    """Rows of queries and keys as GGUF files of Llama's kin have them."""
    return b.reshape(heads, 2, b.shape[0] // heads // 2, b.shape[1]).swapaxes(1, 2).reshape(b.shape)


def own_scale(options, module, rank):
    """What a module's scale is more than alpha / rank, the one that readers compute from a file."""
    alphas = (alpha for pattern, alpha in options["alpha_pattern"].items() if re.match(rf"(.*\.)?({pattern})$", module))
    return np.float32(next(alphas, options["lora_alpha"]) / options["lora_alpha"] * (rank**0.5 if options["use_rslora"] else 1))


def write_gguf(fixtures, name, architecture):
    folder = fixtures / "lora" / name
    options = json.loads((folder / "adapter_config.json").read_text())
    config = json.loads((fixtures / options["base_model_name_or_path"] / "config.json").read_text())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], config["num_hidden_layers"])
    writer = gguf.GGUFWriter(fixtures / "lora" / f"{name}.gguf", architecture)
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(options["lora_alpha"]))
    experts = {}
    for key, value in sorted(load_numpy(folder / "adapter_model.safetensors").items()):
        if "base_layer" in key:
            continue
        module, half = re.fullmatch(r"base_model\.model\.(.*)\.lora_(?:embedding_)?([AB])(?:\.weight)?", key).groups()
        if ".experts." in module:
            layer, expert, matrix = re.search(r"layers\.(\d+)\..*experts\.(\d+)\.w(\d)", module).groups()
            target = f"blk.{layer}." + {"1": "ffn_gate_exps", "2": "ffn_down_exps", "3": "ffn_up_exps"}[matrix]
            experts.setdefault((target, half), {})[int(expert)] = value
            continue
        if half == "B" and module.endswith("q_proj"):
            value = neighbours(value, config["num_attention_heads"])
        if half == "B" and module.endswith("k_proj"):
            value = neighbours(value, config["num_key_value_heads"])
        if half == "A" and module.endswith("embed_tokens"):
            value = np.ascontiguousarray(value.T)
        if half == "B":
            value = value * own_scale(options, module, value.shape[1])
        writer.add_tensor(f"{names.get_name(module)}.weight.lora_{half.lower()}", value)
    for (target, half), values in sorted(experts.items()):
        count, like = config["num_local_experts"], next(iter(values.values()))
        stacked = np.stack([values.get(expert, np.zeros_like(like)) for expert in range(count)])
        writer.add_tensor(f"{target}.weight.lora_{half.lower()}", stacked)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    fixtures, wanted = Path(sys.argv[1]), sys.argv[2:]
    for writes, table in ((write_peft, ADAPTERS), (write_merged, EXPERTS)):
        for name, (base, options) in table.items():
            if not wanted or name in wanted:
                writes(fixtures, name, base, options)
    for name, arguments in ENCODERS.items():
        if not wanted or name in wanted:
            write_encoder(fixtures, name, *arguments)
    for name, architecture in GGUF.items():
        if not wanted or name in wanted:
            write_gguf(fixtures, name, architecture)


if __name__ == "__main__":
    main()
