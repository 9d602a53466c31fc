"""Writes a language model of random weights as a GGUF file: by default the shape of a 1.1B Llama (22 layers, 2048, 32/4 heads, 5632, 32000
tokens). The bits of the blocks are drawn as they are, so that every tool decodes the same numbers, which have a deviation of about 0.02.

    bench/llama_model.py build/llama_q4_0.gguf --type Q4_0

Types: F32, F16, BF16, Q8_0, Q4_0, Q4_K_M (its mix of Q4_K and Q6_K). --gain multiplies the weights of the first three: logits differ by more,
and attention looks at fewer tokens. With --experts 8 every layer is a mixture of experts, of which a token takes --chosen. Needs numpy and
gguf.
"""
import argparse

import gguf
import numpy as np

DEVIATION = 0.02


def halves(value, shape):
    return np.full(shape, value, dtype=np.float16).view(np.uint8)


def with_scale(rng, rows, blocks, scale, codes):
    """(rows, blocks * (2 + codes)) bytes: a half, then random bits."""
    data = rng.integers(0, 256, size=(rows, blocks, codes), dtype=np.uint8)
    return np.concatenate([halves(scale, (rows, blocks, 1)), data], axis=2).reshape(rows, -1)


def q4_k(rng, rows, blocks):
    """Scale and minimum of each 32 are one number s, so that values are d s (code - 7.5); four of the eight fit six bits unsplit."""
    unit = DEVIATION / (4.6 * 32)
    s = rng.integers(16, 48, size=(rows, blocks, 4), dtype=np.uint8)  # of the first four; the last four: 4 low bits alone, below 16
    low = rng.integers(8, 16, size=(rows, blocks, 4), dtype=np.uint8)
    scales = np.concatenate([s, s, low | (low << 4)], axis=2)
    codes = rng.integers(0, 256, size=(rows, blocks, 128), dtype=np.uint8)
    return np.concatenate([halves(unit, (rows, blocks, 1)), halves(7.5 * unit, (rows, blocks, 1)), scales, codes], axis=2).reshape(rows, -1)


def q6_k(rng, rows, blocks):
    codes = rng.integers(0, 256, size=(rows, blocks, 192), dtype=np.uint8)
    scales = rng.integers(16, 48, size=(rows, blocks, 16), dtype=np.uint8)
    return np.concatenate([codes, scales, halves(DEVIATION / (18.5 * 32), (rows, blocks, 1))], axis=2).reshape(rows, -1)


def blocks_of(rng, kind, rows, columns, gain):
    if kind == gguf.GGMLQuantizationType.Q4_0:
        return with_scale(rng, rows, columns // 32, DEVIATION / 4.6, 16)
    if kind == gguf.GGMLQuantizationType.Q8_0:
        return with_scale(rng, rows, columns // 32, DEVIATION / 74, 32)
    if kind == gguf.GGMLQuantizationType.Q4_K:
        return q4_k(rng, rows, columns // 256)
    if kind == gguf.GGMLQuantizationType.Q6_K:
        return q6_k(rng, rows, columns // 256)
    values = (rng.standard_normal((rows, columns), dtype=np.float32) * np.float32(DEVIATION * gain))
    if kind == gguf.GGMLQuantizationType.BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return values.astype(np.float16) if kind == gguf.GGMLQuantizationType.F16 else values


def made_up_words(count):
    """"▁" and letters, and words of them: of a word all beginnings are there, so that its merges are."""
    letters = "etaoinshrdlu"
    words = ["▁"]
    for word in words:  # which grows
        words += [word + letter for letter in letters]
        if len(words) >= count:
            return [*letters, *words]


def kind_of(name, mix, layer, layers):
    """The type of a matrix: llama.cpp's mix of Q4_K_M has Q6_K in the head, and in half of the layers for values and down projections."""
    types = gguf.GGMLQuantizationType
    if mix != "Q4_K_M":
        return types[mix]
    more = layer is None or layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return types.Q6_K if name == "output" or (name in ("attn_v", "ffn_down", "ffn_down_exps") and more) else types.Q4_K


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--type", default="Q4_0", choices=["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K_M"])
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=4)
    parser.add_argument("--ffn", type=int, default=5632)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--context", type=int, default=16384)
    parser.add_argument("--gain", type=float, default=1)
    parser.add_argument("--experts", type=int, default=0, help="of each layer; --ffn is the width of one")
    parser.add_argument("--chosen", type=int, default=2, help="experts that a token takes")
    return parser.parse_args()


def add_keys(writer, args):
    writer.add_name(f"random {args.type}")
    writer.add_context_length(args.context)
    writer.add_embedding_length(args.width)
    writer.add_block_count(args.layers)
    writer.add_feed_forward_length(args.ffn)
    writer.add_head_count(args.heads)
    writer.add_head_count_kv(args.kv_heads)
    if args.experts:
        writer.add_expert_count(args.experts)
        writer.add_expert_used_count(args.chosen)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(args.width // args.heads)
    writer.add_vocab_size(args.vocab)


def add_vocabulary(writer, args):
    writer.add_tokenizer_model("llama")
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    pieces = (pieces + made_up_words(args.vocab))[:args.vocab]
    kinds += [1] * (args.vocab - len(kinds))
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(i) for i in range(args.vocab)])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def matrices_of(args):
    """Of each the full name, that within its layer, the layer, rows and columns."""
    head = args.width // args.heads * args.kv_heads
    exps = "_exps" if args.experts else ""
    matrices = [("attn_q", args.width, args.width), ("attn_k", head, args.width), ("attn_v", head, args.width),
                ("attn_output", args.width, args.width), ("ffn_gate" + exps, args.ffn, args.width),
                ("ffn_up" + exps, args.ffn, args.width), ("ffn_down" + exps, args.width, args.ffn)]
    every = [("token_embd", "token_embd", None, args.vocab, args.width), ("output", "output", None, args.vocab, args.width)]
    for layer in range(args.layers):
        every += [(f"blk.{layer}.{name}", name, layer, rows, columns) for name, rows, columns in matrices]
    return every


def add_matrices(writer, rng, args):
    for full, name, layer, rows, columns in matrices_of(args):
        kind = kind_of(name, args.type, layer, args.layers)
        plain = kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16)
        mixed = args.experts if name.endswith("_exps") else 1
        blocks = blocks_of(rng, kind, mixed * rows, columns, args.gain)
        writer.add_tensor(full + ".weight", blocks.reshape(mixed, rows, -1) if mixed > 1 else blocks, raw_dtype=None if plain else kind)


def add_routers_and_norms(writer, rng, args):
    for layer in range(args.layers):
        if args.experts:
            router = blocks_of(rng, gguf.GGMLQuantizationType.F32, args.experts, args.width, args.gain)
            writer.add_tensor(f"blk.{layer}.ffn_gate_inp.weight", router)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(args.width, dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(args.width, dtype=np.float32))


def main():
    args = options()
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(args.out, "llama")
    add_keys(writer, args)
    add_vocabulary(writer, args)
    add_matrices(writer, rng, args)
    add_routers_and_norms(writer, rng, args)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
