#!/usr/bin/env python3
"""Writes configs with every kind of rope, and the cosines and sines that transformers makes of them: tests/fixtures/hf_configs/ropes.json.

    pip install 'transformers>=5' torch
    scripts/hf_ropes.py tests/fixtures/hf_configs/ropes.json
"""
import json
import sys
from pathlib import Path

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)
LONG = dict(
    rope_type="longrope", original_max_position_embeddings=64, short_factor=[1.0 + i / 10 for i in range(8)],
    long_factor=[1.0 + i for i in range(8)]
)
ROPES = {
    "default": dict(rope_type="default"),
    "theta": dict(rope_type="default", rope_theta=500.0),
    "linear": dict(rope_type="linear", factor=3.0),
    "dynamic": dict(rope_type="dynamic", factor=2.0),
    "llama3": dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
    "yarn": YARN,
    "yarn-ramp": dict(YARN, beta_fast=8.0, beta_slow=2.0),
    "yarn-without-factor": dict(YARN, factor=None),
    "yarn-attention": dict(YARN, attention_factor=0.8),
    "yarn-scales": dict(YARN, mscale=0.7, mscale_all_dim=0.9),
    "yarn-spread": dict(YARN, truncate=False, beta_fast=20.0, beta_slow=0.5),
    "yarn-spread-attention": dict(YARN, truncate=False, attention_factor=1.3),
    "proportional": dict(rope_type="proportional", partial_rotary_factor=0.5),
    "proportional-whole": dict(rope_type="proportional", factor=2.0),
    "longrope": LONG,
    "longrope-factor": dict(LONG, factor=3.0),
    "longrope-attention": dict(LONG, factor=4.0, attention_factor=1.3),
}
ROPES |= {f"{name}-far": dict(rope) for name, rope in ROPES.items() if name.startswith("long")}
POSITIONS = [1, 7, 40]


def recorded(rope, positions):
    config = LlamaConfig(
        hidden_size=64, num_attention_heads=4, num_hidden_layers=1, max_position_embeddings=256,
        rope_parameters={"rope_theta": 10000.0, **rope}
    )
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1, dtype=torch.float64), torch.tensor([positions]))
    half = cos.shape[-1] // 2
    rounded = lambda table: [[round(value, 7) for value in row] for row in table[0, :, :half].tolist()]
    return {"positions": positions, "cos": rounded(cos), "sin": rounded(sin)}


def main():
    cases = {}
    for name, rope in ROPES.items():
        config = {"hidden_size": 64, "max_position_embeddings": 256, "rope_parameters": {"rope_theta": 10000.0, **rope}}
        cases[name] = {"config": config, **recorded(rope, POSITIONS + [200] * name.endswith("-far"))}
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()) + "\n}\n")


if __name__ == "__main__":
    main()
