#!/usr/bin/env python3
"""Writes tiny language models of random weights in Hugging Face's layout, with what transformers computes of them: the fixtures in
tests/fixtures/hf_more. `expected.safetensors` holds input_ids, logits and hidden states in f32, the logits in f64, and a greedy continuation.

    pip install transformers==5.23.0 torch safetensors
    scripts/hf_models.py tests/fixtures/hf_more [NAME...]
    scripts/hf_models.py tests/fixtures/hf_options [NAME...]
"""
import contextlib
import json
import sys
from pathlib import Path

import torch
import transformers as tf
from safetensors.torch import save_file

SIZES = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
GROUPED = dict(SIZES, num_key_value_heads=2, intermediate_size=48)
LATENT = dict(
    SIZES, num_key_value_heads=4, intermediate_size=48, moe_intermediate_size=16, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6,
    n_routed_experts=8, num_experts_per_tok=3
)
SMALL = dict(vocab_size=64, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32)
SMALL_LATENT = dict(
    {**LATENT, **SMALL}, num_hidden_layers=1, intermediate_size=24, moe_intermediate_size=8, kv_lora_rank=8, q_lora_rank=8, n_shared_experts=1,
    first_k_dense_replace=0
)
HYBRID = dict(GROUPED, num_hidden_layers=3)
WITHOUT_ATTENTION = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, tie_word_embeddings=False)
VISION = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, image_size=8, patch_size=4)
YARN = dict(
    rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
    mscale_all_dim=1.0
)

DENSE_MODELS = {
    "gpt_neox": tf.GPTNeoXConfig(**SIZES, intermediate_size=48, rotary_pct=0.25, use_parallel_residual=True),
    "gpt_neox-serial": tf.GPTNeoXConfig(**SIZES, intermediate_size=48, rotary_pct=0.5, use_parallel_residual=False),
    "falcon": tf.FalconConfig(**SIZES, ffn_hidden_size=48, multi_query=True, new_decoder_architecture=False, parallel_attn=True),
    "falcon-new": tf.FalconConfig(**SIZES, ffn_hidden_size=48, num_kv_heads=2, new_decoder_architecture=True),
    "falcon-alibi": tf.FalconConfig(
        **dict(SMALL, num_attention_heads=12), ffn_hidden_size=32, multi_query=False, new_decoder_architecture=False, parallel_attn=False, bias=True, alibi=True
    ),
    "starcoder2": tf.Starcoder2Config(**GROUPED, sliding_window=6),
    "stablelm": tf.StableLmConfig(**GROUPED, use_qkv_bias=True, partial_rotary_factor=0.25),
    "stablelm-parallel": tf.StableLmConfig(**GROUPED, use_parallel_residual=True, partial_rotary_factor=0.5),
    "stablelm-norms": tf.StableLmConfig(**GROUPED, qk_layernorm=True, use_parallel_residual=True),
    "phi-norms": tf.PhiConfig(**GROUPED, qk_layernorm=True),
    "cohere-norms": tf.CohereConfig(**GROUPED, use_qk_norm=True),
    "phi": tf.PhiConfig(**GROUPED, partial_rotary_factor=0.5),
    "cohere": tf.CohereConfig(**GROUPED, logit_scale=0.25),
    "gemma": tf.GemmaConfig(**GROUPED, head_dim=8),
    "arcee": tf.ArceeConfig(**GROUPED),
    "smollm3": tf.SmolLM3Config(**{**GROUPED, "num_hidden_layers": 4}, no_rope_layer_interval=4),
    "phi4": tf.Phi3Config(
        **GROUPED, tie_word_embeddings=True, original_max_position_embeddings=16, sliding_window=None,
        rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75, original_max_position_embeddings=16,
            short_factor=[1.0, 1.1, 1.3], long_factor=[1.0, 2.5, 4.0]
        )
    ),
    "olmo3": tf.Olmo3Config(
        **GROUPED, sliding_window=5, layer_types=["sliding_attention", "full_attention"],
    ),
}

EXPERT_MODELS = {
    "qwen3_moe-local": tf.Qwen3MoeConfig(
        **GROUPED, head_dim=8, moe_intermediate_size=16, num_local_experts=4, num_experts_per_tok=2, mlp_only_layers=[1]
    ),
    "qwen2_moe": tf.Qwen2MoeConfig(
        **GROUPED, moe_intermediate_size=16, shared_expert_intermediate_size=24, num_experts=4, num_experts_per_tok=2, mlp_only_layers=[0]
    ),
    "qwen3_moe": tf.Qwen3MoeConfig(
        **GROUPED, head_dim=8, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True
    ),
    "deepseek_v3": tf.DeepseekV3Config(
        **{**LATENT, "num_hidden_layers": 3}, q_lora_rank=12, n_shared_experts=1, n_group=4, topk_group=2, first_k_dense_replace=1,
        routed_scaling_factor=2.5, rope_parameters=YARN
    ),
    "deepseek_v2": tf.DeepseekV2Config(
        **LATENT, q_lora_rank=None, n_shared_experts=2, n_group=4, topk_group=2, topk_method="group_limited_greedy",
        first_k_dense_replace=1, routed_scaling_factor=16.0
    ),
    "deepseek_v2-greedy": tf.DeepseekV2Config(
        **LATENT, q_lora_rank=12, n_shared_experts=1, topk_method="greedy", rope_parameters=dict(YARN, mscale=0.7)
    ),
    "deepseek_v2-normalized": tf.DeepseekV2Config(
        **SMALL_LATENT, topk_method="greedy", scoring_func="softmax", norm_topk_prob=True, routed_scaling_factor=2.5
    ),
    "deepseek_v2-sigmoid": tf.DeepseekV2Config(
        **SMALL_LATENT, n_group=4, topk_group=2, topk_method="noaux_tc", scoring_func="sigmoid", norm_topk_prob=True, routed_scaling_factor=2.5
    ),
    "deepseek_v3-plain": tf.DeepseekV3Config(**SMALL_LATENT, n_group=1, topk_group=1, norm_topk_prob=False, routed_scaling_factor=1.5),
}

# With states or convolutions in some layers or in all.
RECURRENT_MODELS = {
    "qwen3_5": tf.Qwen3_5TextConfig(
        **GROUPED, head_dim=16, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
        layer_types=["linear_attention", "full_attention"]
    ),
    "lfm2": tf.Lfm2Config(**HYBRID, block_multiple_of=16, layer_types=["conv", "full_attention", "conv"]),
    "lfm2_moe": tf.Lfm2MoeConfig(
        **HYBRID, moe_intermediate_size=16, num_dense_layers=1, num_experts=4, num_experts_per_tok=2, routed_scaling_factor=1.5,
        layer_types=["conv", "full_attention", "conv"]
    ),
    "mamba2": tf.Mamba2Config(
        **WITHOUT_ATTENTION, num_heads=8, head_dim=8, state_size=8, n_groups=2, chunk_size=8
    ),
    "mamba2-limited": tf.Mamba2Config(
        **WITHOUT_ATTENTION, num_heads=8, head_dim=8, state_size=8, n_groups=1, chunk_size=8, time_step_limit=(0.05, 1.5)
    ),
    "falcon_mamba": tf.FalconMambaConfig(**WITHOUT_ATTENTION, state_size=8),
    "jamba": tf.JambaConfig(
        **{**HYBRID, "num_hidden_layers": 4}, num_experts=4, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=4,
        expert_layer_offset=2, mamba_d_state=8, mamba_dt_rank=4
    ),
}

# Of which we read the part for texts.
VISION_MODELS = {
    "gemma3-vision": tf.Gemma3Config(
        text_config=dict(GROUPED, head_dim=8, query_pre_attn_scalar=8, sliding_window=5, layer_types=["sliding_attention", "full_attention"]),
        vision_config=VISION, mm_tokens_per_image=1
    ),
    "qwen3_5-vision": tf.Qwen3_5Config(
        text_config=dict(
            GROUPED, head_dim=16, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
            layer_types=["linear_attention", "full_attention"]
        ),
        vision_config=dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=1, patch_size=2, out_hidden_size=32, num_position_embeddings=4)
    ),
}

MODELS = DENSE_MODELS | EXPERT_MODELS | RECURRENT_MODELS | VISION_MODELS

# What GGUF files cannot say: tests/fixtures/hf_options.
OPTIONS = {
    "gpt2-scaled": tf.GPT2Config(
        vocab_size=64, n_embd=24, n_layer=3, n_head=4, n_positions=32, n_inner=32, scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True,
        reorder_and_upcast_attn=True
    ),
    "qwen3_5-mish": tf.Qwen3_5TextConfig(
        **SMALL, num_key_value_heads=2, intermediate_size=24, head_dim=8, linear_key_head_dim=4, linear_value_head_dim=4, linear_num_key_heads=2,
        linear_num_value_heads=4, hidden_act="mish", layer_types=["linear_attention", "full_attention"]
    ),
    "mamba-mish": tf.MambaConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=2, state_size=4, hidden_act="mish", tie_word_embeddings=False
    ),
    "llama-mish": tf.LlamaConfig(**SMALL, intermediate_size=32, hidden_act="mish"),
}


def authors_router(gate, config):
    """The router of DeepSeek's own code, of which transformers has a part: scores, choice and weights are options."""
    if config.topk_method == "noaux_tc":
        gate.e_score_correction_bias = torch.nn.Buffer(torch.randn(config.n_routed_experts) * 0.1)

    def forward(hidden_states):
        logits = hidden_states.reshape(-1, config.hidden_size) @ gate.weight.to(hidden_states.dtype).T
        scores = logits.sigmoid() if config.scoring_func == "sigmoid" else logits.softmax(-1)
        judged = scores
        if config.topk_method == "noaux_tc":
            judged = scores + gate.e_score_correction_bias
            groups = judged.view(len(scores), config.n_group, -1)
            best = groups.topk(2, dim=-1).values.sum(-1).topk(config.topk_group, dim=-1).indices
            kept = torch.zeros(groups.shape[:2], dtype=torch.bool).scatter(1, best, True)
            judged = groups.masked_fill(~kept[..., None], float("-inf")).flatten(1)
        chosen = judged.topk(config.num_experts_per_tok, dim=-1).indices
        weights = scores.gather(1, chosen)
        if config.norm_topk_prob:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return logits, weights * config.routed_scaling_factor, chosen

    gate.forward = forward


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
        for name, buffer in model.named_buffers():
            if name.endswith("bias") and buffer.is_floating_point():
                buffer.normal_(0, 0.1)
    return model


@contextlib.contextmanager
def without_f32():
    """What models compute in f32 whatever their type, such as norms and scans, is computed in f64."""
    narrow, to_narrow = torch.float32, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32 = torch.float = narrow
        torch.Tensor.float = to_narrow


def write(folder, config):
    torch.manual_seed(1)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    config._attn_implementation = config._experts_implementation = "eager"
    if getattr(config, "alibi", False):
        config._attn_implementation = "sdpa"  # eager attention of transformers 5.24 adds the slopes twice
    kind = tf.AutoModelForImageTextToText if hasattr(config, "vision_config") else tf.AutoModelForCausalLM
    model = kind.from_config(config).eval()
    if hasattr(config, "scoring_func"):
        for layer in model.model.layers:
            authors_router(layer.mlp.gate, config)
    model = randomised(model)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    ids = torch.randint(0, config.get("text_config", config)["vocab_size"], (2, 12))
    with torch.no_grad():
        out = model(ids, output_hidden_states=True)
        prompt = ids[:1, :6]
        greedy = prompt
        for _ in range(14):
            greedy = torch.cat([greedy, model(greedy).logits[:, -1:].argmax(-1)], 1)
        with without_f32():
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
    for name in sys.argv[2:] or (OPTIONS if target.name == "hf_options" else MODELS):
        write(target / name, (OPTIONS if target.name == "hf_options" else MODELS)[name])


if __name__ == "__main__":
    main()
