"""Writes a Mamba of random weights as a GGUF file: by default the shape of Mamba 2 130M (24 layers, 768, 24 heads of 64 with 128 states, 50288
tokens). Steps and decays are spread as the published models begin their training.

    bench/mamba_model.py build/mamba2.gguf --type F32
    bench/mamba_model.py build/mamba.gguf --version 1 --type F32

Needs numpy and gguf.
"""
import argparse

import gguf
import numpy as np

from llama_model import blocks_of, made_up_words


def state_space(rng, args, inner):
    """The tensors of a layer that are no matrices, and the shapes of its matrices (rows, columns) by name."""
    steps = np.exp(rng.uniform(np.log(1e-3), np.log(1e-1), args.heads if args.version == 2 else inner))
    small = {"ssm_dt.bias": np.log(np.expm1(steps))}  # whose softplus they are
    if args.version == 1:
        features, rank = inner, args.width // 16
        small |= {"ssm_a": -np.tile(np.arange(1, args.states + 1), (inner, 1)), "ssm_d": np.ones(inner)}
        matrices = {"ssm_in": (2 * inner, args.width), "ssm_x": (rank + 2 * args.states, inner), "ssm_dt": (inner, rank)}
    else:
        features = inner + 2 * args.states
        small |= {"ssm_a": -rng.uniform(1, 16, (args.heads, 1)), "ssm_d": np.ones((args.heads, 1)), "ssm_norm.weight": np.ones((1, inner))}
        matrices = {"ssm_in": (inner + features + args.heads, args.width)}
    small |= {"ssm_conv1d.weight": rng.uniform(-0.5, 0.5, (features, 4)), "ssm_conv1d.bias": np.zeros(features)}
    return small, matrices | {"ssm_out": (args.width, inner)}


def add_metadata(writer, args, inner):
    writer.add_name(f"random {args.type}")
    writer.add_context_length(1 << 20)
    writer.add_embedding_length(args.width)
    writer.add_block_count(args.layers)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_head_count_kv(0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_ssm_conv_kernel(4)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(args.states)
    writer.add_ssm_time_step_rank(args.heads if args.version == 2 else args.width // 16)
    if args.version == 2:
        writer.add_ssm_group_count(1)
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = (pieces + made_up_words(args.vocab))[:args.vocab]
    writer.add_vocab_size(args.vocab)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(i) for i in range(args.vocab)])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (args.vocab - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--version", type=int, default=2, choices=[1, 2])
    parser.add_argument("--type", default="F32", choices=["F32", "F16", "BF16", "Q8_0", "Q4_0"])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--states", type=int, help="16 of version 1, 128 of version 2")
    parser.add_argument("--vocab", type=int, default=50288)
    args = parser.parse_args()
    args.states = args.states or {1: 16, 2: 128}[args.version]
    inner = 2 * args.width
    args.heads = inner // 64
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(args.out, {1: "mamba", 2: "mamba2"}[args.version])
    add_metadata(writer, args, inner)
    types = gguf.GGMLQuantizationType
    plain = args.type in ("F32", "F16")

    def add_matrix(name, rows, columns):
        kind = types[args.type] if columns % 32 == 0 or plain else types.F32
        raw = None if plain or kind == types.F32 else kind
        writer.add_tensor(name + ".weight", blocks_of(rng, kind, rows, columns, 1), raw_dtype=raw)

    add_matrix("token_embd", args.vocab, args.width)
    writer.add_tensor("output_norm.weight", np.ones(args.width, dtype=np.float32))
    for layer in range(args.layers):
        small, matrices = state_space(rng, args, inner)
        for name, values in small.items():
            writer.add_tensor(f"blk.{layer}.{name}", values.astype(np.float32))
        for name, (rows, columns) in matrices.items():
            add_matrix(f"blk.{layer}.{name}", rows, columns)
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", np.ones(args.width, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
