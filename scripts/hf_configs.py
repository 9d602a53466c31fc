#!/usr/bin/env python3
"""Writes the configs of one small model of every family, as this version of transformers saves them: tests/fixtures/hf_configs. Versions 4 and 5
say the same models in other fields.

    pip install 'transformers<5'
    scripts/hf_configs.py tests/fixtures/hf_configs/transformers4.json
    pip install 'transformers>=5'
    scripts/hf_configs.py tests/fixtures/hf_configs/transformers5.json
"""
import json
import sys
import tempfile
from pathlib import Path

import transformers as tf

OLD = int(tf.__version__.split(".")[0]) < 5
SIZES = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
GROUPED = dict(SIZES, num_key_value_heads=2, intermediate_size=48)
LATENT = dict(
    SIZES, num_key_value_heads=4, intermediate_size=48, moe_intermediate_size=16, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6,
    n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1, first_k_dense_replace=1
)
EXPERTS = dict(moe_intermediate_size=16, num_experts_per_tok=2)
LINEAR = dict(head_dim=16, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4)
STATES = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, tie_word_embeddings=False)
ENCODER = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=66)


def rope(theta, partial=None, **scaling):
    """The same rope in the fields of either version."""
    fraction = {} if partial is None else {"partial_rotary_factor": partial}
    if OLD:
        return {"rope_theta": theta, **fraction, **({"rope_scaling": scaling} if scaling else {})}
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **fraction, **scaling}}


def both_ropes(full, sliding, **scaling):
    """Of layers that see everything, and of those with a window (Gemma 3)."""
    if OLD:
        return {"rope_theta": full, "rope_local_base_freq": sliding, **({"rope_scaling": scaling} if scaling else {})}
    return {
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": full, **scaling},
            "sliding_attention": {"rope_type": "default", "rope_theta": sliding},
        }
    }


def global_and_local(full, sliding):
    """Of ModernBERT."""
    if OLD:
        return {"global_rope_theta": full, "local_rope_theta": sliding}
    return both_ropes(full, sliding)


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
LATENT_YARN = dict(YARN, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0)
LONG = dict(short_factor=[1.0, 1.1, 1.3, 1.5], long_factor=[1.0, 2.5, 4.0, 5.0])
ALTERNATING = dict(layer_types=["sliding_attention", "full_attention"])

# Name: class, arguments.
MODELS = {
    "llama": ("LlamaConfig", dict(GROUPED)),
    "llama-llama3": ("LlamaConfig", dict(GROUPED, **rope(500000.0, **LLAMA3))),
    "llama-linear": ("LlamaConfig", dict(GROUPED, head_dim=16, attention_bias=True, mlp_bias=True, **rope(10000.0, rope_type="linear", factor=4.0))),
    "llama-yarn": ("LlamaConfig", dict(GROUPED, tie_word_embeddings=True, **rope(1000000.0, **YARN))),
    "mistral": ("MistralConfig", dict(GROUPED, sliding_window=7, **rope(1000000.0))),
    "mixtral": ("MixtralConfig", dict(GROUPED, num_local_experts=4, num_experts_per_tok=2, sliding_window=None, **rope(1000000.0))),
    "qwen2": ("Qwen2Config", dict(GROUPED, **rope(1000000.0))),
    "qwen2-window": ("Qwen2Config", dict(GROUPED, use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen2_moe": ("Qwen2MoeConfig", dict(GROUPED, **EXPERTS, num_experts=4, shared_expert_intermediate_size=24, mlp_only_layers=[0])),
    "qwen3": ("Qwen3Config", dict(GROUPED, head_dim=16, **rope(1000000.0, **YARN))),
    "qwen3_moe": ("Qwen3MoeConfig", dict(GROUPED, **EXPERTS, head_dim=8, num_experts=4, norm_topk_prob=True, mlp_only_layers=[1])),
    "qwen3_next": ("Qwen3NextConfig", dict(GROUPED, **EXPERTS, **LINEAR, num_experts=4, shared_expert_intermediate_size=24, **rope(1000000.0, 0.25))),
    "qwen3_5_text": ("Qwen3_5TextConfig", dict(GROUPED, **LINEAR, layer_types=["linear_attention", "full_attention"], **rope(1000000.0, 0.25))),
    "ministral": ("MinistralConfig", dict(GROUPED, head_dim=8, sliding_window=5, **ALTERNATING, **rope(1000000.0))),
    "gemma": ("GemmaConfig", dict(GROUPED, head_dim=8)),
    "gemma2": ("Gemma2Config", dict(GROUPED, head_dim=8, query_pre_attn_scalar=8, sliding_window=5)),
    "gemma3_text": ("Gemma3TextConfig", dict(GROUPED, head_dim=8, query_pre_attn_scalar=8, sliding_window=5, **ALTERNATING, **both_ropes(1000000.0, 10000.0))),
    "gemma3_text-linear": (
        "Gemma3TextConfig",
        dict(GROUPED, head_dim=8, sliding_window=5, **ALTERNATING, **both_ropes(1000000.0, 20000.0, rope_type="linear", factor=8.0)),
    ),
    "gemma3": ("Gemma3Config", dict(text_config=dict(GROUPED, head_dim=8, sliding_window=5, **ALTERNATING, **both_ropes(1000000.0, 10000.0)))),
    "qwen3_5": (
        "Qwen3_5Config",
        dict(text_config=dict(GROUPED, **LINEAR, layer_types=["linear_attention", "full_attention"], **rope(1000000.0, 0.25))),
    ),
    "phi3": ("Phi3Config", dict(GROUPED, sliding_window=5, pad_token_id=0)),
    "phi3-long": (
        "Phi3Config",
        dict(GROUPED, original_max_position_embeddings=16, sliding_window=None, pad_token_id=0, **rope(10000.0, **({"type": "longrope"} if OLD else {"rope_type": "longrope"}), **LONG)),
    ),
    "phi": ("PhiConfig", dict(GROUPED, **rope(10000.0, 0.25))),
    "gpt2": ("GPT2Config", dict(vocab_size=128, n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    "gpt_neox": (
        "GPTNeoXConfig",
        dict(SIZES, intermediate_size=48, **(dict(rotary_pct=0.5, rotary_emb_base=20000) if OLD else rope(20000.0, 0.5))),
    ),
    "falcon": ("FalconConfig", dict(SIZES, ffn_hidden_size=48, multi_query=True, new_decoder_architecture=False, parallel_attn=True)),
    "falcon-new": ("FalconConfig", dict(SIZES, ffn_hidden_size=48, num_kv_heads=2, new_decoder_architecture=True, **rope(500000.0))),
    "starcoder2": ("Starcoder2Config", dict(GROUPED, sliding_window=6, **rope(100000.0))),
    "stablelm": ("StableLmConfig", dict(GROUPED, use_qkv_bias=True, **rope(10000.0, 0.25))),
    "stablelm-norms": ("StableLmConfig", dict(GROUPED, qk_layernorm=True, use_parallel_residual=True)),
    "cohere": ("CohereConfig", dict(GROUPED, logit_scale=0.25, use_qk_norm=True, **rope(8000000.0))),
    "smollm3": ("SmolLM3Config", dict(GROUPED, no_rope_layer_interval=2, **rope(5000000.0))),
    "arcee": ("ArceeConfig", dict(GROUPED, **rope(10000.0))),
    "granite": ("GraniteConfig", dict(GROUPED, embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.0156)),
    "olmo2": ("Olmo2Config", dict(GROUPED, **rope(500000.0))),
    "olmo3": ("Olmo3Config", dict(GROUPED, sliding_window=5, **ALTERNATING, **rope(500000.0))),
    "deepseek_v2": ("DeepseekV2Config", dict(LATENT, q_lora_rank=12, topk_method="greedy", **rope(10000.0, **LATENT_YARN))),
    "deepseek_v3": ("DeepseekV3Config", dict(LATENT, q_lora_rank=12, n_group=4, topk_group=2, **rope(10000.0, **LATENT_YARN))),
    "lfm2": ("Lfm2Config", dict(GROUPED, block_multiple_of=16, layer_types=["conv", "full_attention"], **rope(1000000.0))),
    "lfm2_moe": ("Lfm2MoeConfig", dict(GROUPED, **EXPERTS, num_dense_layers=1, num_experts=4, layer_types=["conv", "full_attention"], **rope(1000000.0))),
    "mamba": ("MambaConfig", dict(STATES, state_size=8)),
    "mamba2": ("Mamba2Config", dict(STATES, num_heads=8, head_dim=8, state_size=8, n_groups=2, chunk_size=8)),
    "falcon_mamba": ("FalconMambaConfig", dict(STATES, state_size=8)),
    "jamba": (
        "JambaConfig",
        dict(
            GROUPED, num_experts=4, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=8,
            mamba_dt_rank=4
        ),
    ),
    "bert": ("BertConfig", dict(ENCODER)),
    "roberta": ("RobertaConfig", dict(ENCODER)),
    "xlm-roberta": ("XLMRobertaConfig", dict(ENCODER)),
    "camembert": ("CamembertConfig", dict(ENCODER)),
    "distilbert": ("DistilBertConfig", dict(vocab_size=128, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64)),
    "modernbert": (
        "ModernBertConfig",
        dict(ENCODER, local_attention=8, global_attn_every_n_layers=2, pad_token_id=0, **global_and_local(160000.0, 10000.0)),
    ),
    "nomic_bert": ("NomicBertConfig", dict(ENCODER, **rope(1000.0))),
    "t5": ("T5Config", dict(vocab_size=128, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)),
}


def saved(config):
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        return json.loads((Path(folder) / "config.json").read_text())


def main():
    configs = {name: saved(getattr(tf, kind)(**arguments)) for name, (kind, arguments) in MODELS.items() if hasattr(tf, kind)}
    lines = [f"{json.dumps(name)}: {json.dumps(config, sort_keys=True)}" for name, config in configs.items()]
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
