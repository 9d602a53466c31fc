#!/usr/bin/env python3
"""Compares RLX with transformers option by option: of every family of hf_configs.py one small model of random weights for each field of its
config that has another value, true for false or twice a number. Prints the options of which RLX's results differ, and those that it refuses.

    pip install transformers==5.24.0 torch safetensors
    scripts/hf_sweep.py build/release/rlx FOLDER [FAMILY...]
"""
import copy
import json
import subprocess
import sys
import warnings
from pathlib import Path

import torch
import transformers as tf
from hf_configs import MODELS
from hf_models import randomised, without_f32
from safetensors.torch import save_file

# Of training, of what a run gives beside its result, of generation, and sizes that every model has.
NO_OPTIONS = {
    "output_hidden_states", "return_dict", "is_encoder_decoder", "output_attentions", "use_cache", "output_router_logits", "use_return_dict",
    "chunk_size_feed_forward", "vocab_size", "num_hidden_layers", "n_layer", "n_layers", "num_labels", "transformers_version", "sparse_prediction",
    "rescale_prenorm_residual", "reference_compile", "use_mamba_kernels", "use_mambapy", "use_associative_scan", "time_step_floor", "time_step_min",
    "time_step_max", "time_step_scale", "mtp_num_hidden_layers", "pretraining_tp", "num_logits_to_keep", "deterministic_flash_attn", "summary_use_proj",
    "summary_proj_to_labels", "initializer_cutoff_factor", "use_fused_rms_norm", "is_decoder", "max_position_embeddings", "n_positions"
}
TRAINING = ("dropout", "initializer", "loss_coef", "pdrop", "_token_id", "jitter", "init_std", "loss_coefficient", "label_smoothing", "z_loss")
ACTIVATIONS = ("hidden_act", "hidden_activation", "activation", "activation_function", "classifier_activation")
OTHERS = {
    "feed_forward_proj": ["gated-gelu", "gelu", "gated-silu", "gated-relu"],
    "topk_method": ["group_limited_greedy"],
    "classifier_pooling": ["mean"],
    "sliding_window": [None, 3],
    "q_lora_rank": [None],
    "final_logit_softcapping": [None, 5.0],
    "attn_logit_softcapping": [None, 5.0],
    "num_key_value_heads": [1, 4],
    "num_ln_in_parallel_attn": [1],
    "ffn_hidden_size": [None],
    "query_pre_attn_scalar": [3],
    "local_attention": [4],
    "layer_types": [["full_attention", "full_attention"], ["sliding_attention", "sliding_attention"], ["full_attention", "sliding_attention"]],
    "mlp_only_layers": [[], [0, 1]],
    "no_rope_layers": [[0, 1], [0, 0]],
    "time_step_limit": [[0.01, 0.5]],
    "full_attn_idxs": [[0]],
}
ROPES = [
    dict(rope_type="linear", factor=4.0),
    dict(rope_type="dynamic", factor=4.0),
    dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, truncate=False),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=16.0, beta_slow=2.0, attention_factor=1.3),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.8, mscale_all_dim=0.5),
    dict(rope_type="proportional", partial_rotary_factor=0.5),
    dict(rope_type="default", partial_rotary_factor=0.5),
]


def other_values(name, value):
    """What a field may say in place of `value`."""
    if name in NO_OPTIONS or any(part in name for part in TRAINING):
        return []
    if name in OTHERS:
        return [other for other in OTHERS[name] if other != value]
    if name in ACTIVATIONS and isinstance(value, str):
        return ["mish", "relu2"]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value] + ([value // 2] if value > 1 else [])
    if isinstance(value, float):
        return [1e-3 if value < 1e-3 else 1.5 * value if value else 0.5]
    return []


def other_ropes(rope):
    """Other ways to turn, in each of the places where a config has one."""
    if not rope:
        return
    if "rope_type" in rope:
        yield from ({"rope_theta": rope["rope_theta"], **other} for other in ROPES)
        yield {**rope, "rope_theta": 123.0}
        return
    for layers in rope:
        for other in other_ropes(rope[layers]):
            yield {**rope, layers: other}


def variants(kind, arguments):
    """The config as it is, and those that differ in one field."""
    base = getattr(tf, kind)(**arguments)
    yield "as it is", arguments
    said = base.to_dict()
    for name, value in said.items():
        for other in other_values(name, value) if name != "rope_parameters" else other_ropes(value):
            yield f"{name} = {json.dumps(other)}", {**arguments, name: other}


def kinds_of_model(config):
    """What is made of a config, by the class and the result that is compared."""
    if config.model_type == "t5":
        return [(tf.T5ForConditionalGeneration, "logits")]
    if hasattr(config, "vision_config"):
        return []  # their text models have families of their own
    if config.model_type in ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "modernbert"):
        return [(tf.AutoModelForMaskedLM, "logits"), (tf.AutoModelForSequenceClassification, "logits"), (tf.AutoModel, "last_hidden_state")]
    if config.model_type == "nomic_bert" or getattr(config, "use_bidirectional_attention", False):
        return [(tf.AutoModel, "last_hidden_state")]
    return [(tf.AutoModelForCausalLM, "logits")]


def record(folder, config, kind, result):
    torch.manual_seed(1)
    config._attn_implementation = config._experts_implementation = "eager"
    if getattr(config, "alibi", False):
        config._attn_implementation = "sdpa"  # eager attention of transformers 5.24 adds the slopes twice
    config.use_cache = False
    if (getattr(config, "pad_token_id", None) or 0) >= config.vocab_size:
        config.pad_token_id = None
    made = kind.from_config(config) if kind.__name__.startswith("Auto") else kind(config)
    model = randomised(made.eval())
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    inputs = {"input_ids": torch.randint(3, 128, (2, 12))}
    if config.model_type == "t5":
        inputs |= {"attention_mask": torch.ones(2, 12, dtype=torch.long), "decoder_input_ids": torch.randint(3, 128, (2, 5))}
    with torch.no_grad():
        out = model(**inputs)[result]
        with without_f32():
            wide = model.double()(**inputs)[result]
    save_file({**inputs, result: out.clone(), f"{result}_f64": wide.clone()}, folder / "expected.safetensors")


def record_family(family, target):
    """A folder for each option, and class of model, that transformers has."""
    for number, (option, arguments) in enumerate(variants(*MODELS[family])):
        try:
            config = getattr(tf, MODELS[family][0])(**copy.deepcopy(arguments))
            kinds = kinds_of_model(config)
        except Exception:
            continue  # there is no such model
        for kind, result in kinds:
            folder = target / family / f"{number:03}-{kind.__name__}"
            folder.mkdir(parents=True, exist_ok=True)
            try:
                record(folder, copy.deepcopy(config), kind, result)
            except Exception:
                continue
            (folder / "option.txt").write_text(f"{kind.__name__}: {option}")


def verdicts(rlx, folders):
    done = subprocess.run([rlx, "verify", "--json", *folders], capture_output=True, text=True)
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    for folder in folders:
        tensors = [line for line in seen if line["folder"] == str(folder)]
        refused = [line for line in done.stderr.splitlines() if f"{folder}/" in line or f"{folder}:" in line]
        if not tensors:
            yield "refused: " + (refused[0].replace(str(folder), "") if refused else "?")
        else:
            over = [line for line in tensors if not line["passed"]]
            yield f"DIFFERS by {over[0]['difference']} of {over[0]['allowed']:.2g}" if over else "same"


def main():
    warnings.simplefilter("ignore")
    tf.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    rlx, target = sys.argv[1], Path(sys.argv[2])
    for family in sys.argv[3:] or MODELS:
        if not (target / family).exists():
            record_family(family, target)
        folders = sorted(path.parent for path in (target / family).glob("*/option.txt"))
        results = list(verdicts(rlx, folders))
        for folder, result in zip(folders, results):
            if result != "same":
                print(family, folder.name[:3], (folder / "option.txt").read_text(), result, sep=" | ", flush=True)
        print(f"{family}: {results.count('same')} of {len(results)} are the same", flush=True)


if __name__ == "__main__":
    main()
