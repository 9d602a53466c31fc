"""What packages in f16 have for the blocks of types with minima, by NumPy from the layouts that ggml documents.

block_minima.py FIXTURES OUT reads FIXTURES/gguf/TYPE.gguf, whose blocks are its end, checks that they are the numbers of TYPE.safetensors
where nothing is rounded, and writes OUT/TYPE.npy: scales, their products with the codes, and minima rounded to f16.
"""
import json
import pathlib
import sys

import numpy as np

BLOCKS = {"q4_1": (32, 20), "q5_1": (32, 24), "q2_k": (256, 84), "q4_k": (256, 144), "q5_k": (256, 176)}  # values, and bytes


def half(block, at):
    return float(np.frombuffer(block[at : at + 2], "<f2")[0])


def nibble(block, at, j, width):
    return block[at + j // (2 * width) * width + j % width] >> 4 * (j % (2 * width) // width) & 15


def parts(kind, block):
    """Of each value: its scale, its code, and its minimum."""
    if kind in ("q4_1", "q5_1"):
        high = int.from_bytes(block[4:8], "little") if kind == "q5_1" else 0
        codes = [nibble(block, 8 if kind == "q5_1" else 4, j, 16) | (high >> j & 1) << 4 for j in range(32)]
        return [(half(block, 0), code, -half(block, 2)) for code in codes]
    if kind == "q2_k":
        d, least = half(block, 80), half(block, 82)
        codes = [block[16 + j // 128 * 32 + j % 32] >> 2 * (j % 128 // 32) & 3 for j in range(256)]
        return [(d * (block[j // 16] & 15), codes[j], least * (block[j // 16] >> 4)) for j in range(256)]
    d, least, s = half(block, 0), half(block, 2), block[4:16]
    scales = [s[g] & 63 if g < 4 else s[g + 4] & 15 | s[g - 4] >> 6 << 4 for g in range(8)]
    minima = [s[g + 4] & 63 if g < 4 else s[g + 4] >> 4 | s[g] >> 6 << 4 for g in range(8)]
    high = [block[16 + j % 32] >> j // 32 & 1 if kind == "q5_k" else 0 for j in range(256)]
    return [(d * scales[j // 32], nibble(block, 48 if kind == "q5_k" else 16, j, 32) | high[j] << 4, least * minima[j // 32])
            for j in range(256)]


def recorded(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    first, end = json.loads(data[8:begin])["w"]["data_offsets"]
    return np.frombuffer(data[begin + first : begin + end], "<f4")


def rounded(x):
    return np.float32(np.float16(x))


def main(fixtures, out):
    for kind, (values, size) in BLOCKS.items():
        wanted = recorded(fixtures / f"{kind}.safetensors")
        data = (fixtures / f"{kind}.gguf").read_bytes()[-(len(wanted) // values * size) :]
        all_parts = [part for at in range(0, len(data), size) for part in parts(kind, data[at : at + size])]
        scale, code, least = (np.float32(column) for column in zip(*all_parts))
        assert (scale * code - least == wanted).all(), kind
        np.save(out / f"{kind}.npy", rounded(rounded(scale) * code) - rounded(least))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) / "gguf", pathlib.Path(sys.argv[2]))
