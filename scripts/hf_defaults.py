#!/usr/bin/env python3
"""Prints what the config classes of transformers take for fields that a config leaves out, as the table in
src/models/config/class_defaults.cpp; with a path, writes there the configs that say nothing but their type, with all fields.

    pip install 'transformers>=5'
    scripts/hf_defaults.py
    scripts/hf_defaults.py tests/fixtures/hf_configs/defaults.json
"""
import json
import re
import sys
import textwrap
from pathlib import Path

import transformers as tf
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SOURCES = Path(__file__).resolve().parent.parent / "src/models"
# What a config must say itself, what others read, and what our readers derive.
LEFT_OUT = {"vocab_size", "hidden_size", "num_hidden_layers", "n_embd", "n_layer", "n_layers", "dim", "layer_types", "architectures", "model_type",
            "pad_token_id", "eos_token_id", "bos_token_id", "rope_interleave", "num_experts", "num_local_experts", "n_routed_experts"}
NEEDED = {"deepseek_v2": {"num_experts_per_tok": 6}}
ALL_SAID = {"gemma3_text": {"vocab_size"}}


def sources(*patterns):
    return "".join(path.read_text() for pattern in patterns for path in sorted(SOURCES.glob(pattern)))


def fields_read():
    return set(re.findall(r'"([A-Za-z_0-9]+)"', sources("families/*.cpp", "families/encoders/*.cpp", "families/recurrent/*.cpp", "config/*.cpp")))


def ropes(config):
    """The rope of a class without arguments, in the fields of version 4."""
    rope = getattr(config, "rope_parameters", None) or {}
    if "full_attention" not in rope:
        return {name: value for name, value in rope.items() if name != "rope_type"}
    full, sliding = rope["full_attention"]["rope_theta"], rope["sliding_attention"]["rope_theta"]
    if config.model_type == "modernbert":
        return {"global_rope_theta": full, "local_rope_theta": sliding}
    return {"rope_theta": full} if full == sliding else {"rope_theta": full, "rope_local_base_freq": sliding}


def defaults(kind, names):
    fields = CONFIG_MAPPING[kind].__dataclass_fields__
    said = {name: field.default for name, field in fields.items() if name in names - LEFT_OUT | ALL_SAID.get(kind, set())}
    said |= ropes(CONFIG_MAPPING[kind]())
    if said.get("num_key_value_heads") == said.get("num_attention_heads"):
        said.pop("num_key_value_heads", None)
    return {name: value for name, value in said.items() if isinstance(value, (int, float, str)) and value is not False}


def types():
    text = sources("families/*.cpp", "families/*/*.cpp")
    found = {kind for group in re.findall(r"DecoderFamily \w+\(\s*\{([^}]*)\}", text) for kind in re.findall(r'"([^"]+)"', group)}
    found.add("t5")
    return sorted(kind for kind in found if not hasattr(CONFIG_MAPPING[kind](), "text_config"))


def main():
    if len(sys.argv) > 1:
        full = {kind: {name: value for name, value in CONFIG_MAPPING[kind](**NEEDED.get(kind, {})).to_dict().items() if value is not None} for kind in types()}
        Path(sys.argv[1]).write_text("{\n" + ",\n".join(f"{json.dumps(kind)}: {json.dumps(config)}" for kind, config in full.items()) + "\n}\n")
        return
    names = fields_read()
    lines = ",\n".join(f'"{kind}": {json.dumps(defaults(kind, names))}' for kind in types())
    print("\n".join(textwrap.fill(line, 138, subsequent_indent="  ") for line in lines.split("\n")))


if __name__ == "__main__":
    main()
