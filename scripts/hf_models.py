#!/usr/bin/env python3
"""Writes tiny language models of random weights in Hugging Face's layout, with what transformers computes of them: the fixtures in
tests/fixtures/hf_more. `expected.safetensors` holds input_ids, logits and hidden states in f32, the logits in f64, and a greedy continuation.

    pip install transformers==4.57.1 torch safetensors
    scripts/hf_models.py tests/fixtures/hf_more
"""
import json
import sys
from pathlib import Path

import torch
import transformers as tf
from safetensors.torch import save_file

SIZES = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
GROUPED = dict(SIZES, num_key_value_heads=2, intermediate_size=48)

MODELS = {
    "gpt_neox": tf.GPTNeoXConfig(**SIZES, intermediate_size=48, rotary_pct=0.25, use_parallel_residual=True),
    "gpt_neox-serial": tf.GPTNeoXConfig(**SIZES, intermediate_size=48, rotary_pct=0.5, use_parallel_residual=False),
    "falcon": tf.FalconConfig(**SIZES, ffn_hidden_size=48, multi_query=True, new_decoder_architecture=False, parallel_attn=True),
    "falcon-new": tf.FalconConfig(**SIZES, ffn_hidden_size=48, num_kv_heads=2, new_decoder_architecture=True),
    "starcoder2": tf.Starcoder2Config(**GROUPED, sliding_window=6),
    "stablelm": tf.StableLmConfig(**GROUPED, use_qkv_bias=True, partial_rotary_factor=0.25),
    "stablelm-parallel": tf.StableLmConfig(**GROUPED, use_parallel_residual=True, partial_rotary_factor=0.5),
    "phi": tf.PhiConfig(**GROUPED, partial_rotary_factor=0.5),
    "cohere": tf.CohereConfig(**GROUPED, logit_scale=0.25),
    "qwen2_moe": tf.Qwen2MoeConfig(
        **GROUPED, moe_intermediate_size=16, shared_expert_intermediate_size=24, num_experts=4, num_experts_per_tok=2, mlp_only_layers=[0]
    ),
    "qwen3_moe": tf.Qwen3MoeConfig(
        **GROUPED, head_dim=8, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True
    ),
    "gemma": tf.GemmaConfig(**GROUPED, head_dim=8),
}


def randomised(model):
    """Weights with enough spread that every part of the model shows in the result."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 1.2 / parameter.shape[-1] ** 0.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.1)
            else:
                parameter.normal_(0 if "gemma" in type(model).__name__.lower() else 1, 0.1)
    return model


def write(folder, config):
    torch.manual_seed(1)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    config._attn_implementation = "eager"
    model = randomised(tf.AutoModelForCausalLM.from_config(config).eval())
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    ids = torch.randint(0, config["vocab_size"], (2, 12))
    with torch.no_grad():
        out = model(ids, output_hidden_states=True)
        prompt = ids[:1, :6]
        greedy = prompt
        for _ in range(14):
            greedy = torch.cat([greedy, model(greedy).logits[:, -1:].argmax(-1)], 1)
        wide = model.double()(ids).logits
    expected = {
        "input_ids": ids,
        "logits": out.logits,
        "logits_f64": wide,
        "hidden_states_row0": torch.stack([state[0] for state in out.hidden_states]),
        "prompt_ids": prompt,
        "greedy_ids": greedy,
    }
    save_file({name: value.clone().contiguous() for name, value in expected.items()}, folder / "expected.safetensors")
    print(folder, float((out.logits - wide).abs().max()), float(out.logits.abs().max()), len(set(greedy[0].tolist())))


def main():
    target = Path(sys.argv[1])
    for name in sys.argv[2:] or MODELS:
        write(target / name, MODELS[name])


if __name__ == "__main__":
    main()
