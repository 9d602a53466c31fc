"""The inputs of the comparisons: sentences as token ids, and the same as text for the side that tokenizes itself."""
import json
import pathlib
import re

import numpy as np

MIXED = [12, 20, 33, 45, 60, 7, 128, 90, 14, 18, 22, 31, 40, 64, 5, 100, 17, 26, 75, 8, 9, 111, 50, 34, 28, 16, 80, 66, 11, 13, 44, 39]


def make(model, lengths):
    """Texts of words that are one token each, so that a text of n tokens has n - 2 words; and their ids, with [CLS] and [SEP]."""
    vocabulary = json.loads((pathlib.Path(model) / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(w for w in vocabulary if re.fullmatch("[a-z]{3,}", w))
    texts, ids = [], []
    for row, length in enumerate(lengths):
        chosen = [words[(row * 7919 + i * 104729) % len(words)] for i in range(length - 2)]
        texts.append(" ".join(chosen))
        ids.append([vocabulary[w] for w in ("[CLS]", *chosen, "[SEP]")])
    return texts, ids


def batches(ids, size):
    """Rows padded to the longest of their batch: one batch in the given order when size is 0, else sorted by length, `size` at a time.
    A batch is (the numbers of its rows, the inputs)."""
    order = list(range(len(ids))) if size == 0 else sorted(range(len(ids)), key=lambda row: -len(ids[row]))
    size = size or len(ids)
    return [(order[i:i + size], pad([ids[row] for row in order[i:i + size]])) for i in range(0, len(order), size)]


def pad(rows):
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for b, row in enumerate(rows):
        ids[b, :len(row)] = row
        mask[b, :len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
