"""Makes a folder as sentence-transformers saves it, with BERT-base as published (12 layers of 768, 12 heads, 30522 tokens) and random weights.

usage: bert_base.py FOLDER
"""
import itertools
import json
import pathlib
import string
import sys

import numpy as np
from safetensors.numpy import save_file

CONFIG = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
          "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2,
          "layer_norm_eps": 1e-12, "hidden_act": "gelu", "position_embedding_type": "absolute", "pad_token_id": 0}
SPECIAL = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
MODULES = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
           for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])]
POOLING = {"word_embedding_dimension": 768, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
           "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}


def vocabulary(size):
    """The special tokens at the places of the published vocabulary, and words of three letters and more."""
    words = ("".join(letters) for count in itertools.count(3) for letters in itertools.product(string.ascii_lowercase, repeat=count))
    by_id = {i: token for token, i in SPECIAL.items()}
    return {by_id[i] if i in by_id else f"[unused{i}]" if i < 104 else next(words): i for i in range(size)}


def tokenizer():
    piece = lambda kind, name: {kind: {"id": name, "type_id": 0}}
    single = [piece("SpecialToken", "[CLS]"), piece("Sequence", "A"), piece("SpecialToken", "[SEP]")]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": i, "content": token, **flags} for token, i in SPECIAL.items()],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": {
                token: {"id": token, "ids": [SPECIAL[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                      "vocab": vocabulary(CONFIG["vocab_size"])}}


def weights(seed=1):
    """Normal with the published deviation of 0.02; norms scale by about 1. Biases are not zero, so that one that is left out shows."""
    draw = np.random.default_rng(seed)
    width, wide = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    tensors = {}

    def tensor(name, *shape, mean=0.0):
        tensors[name] = (mean + 0.02 * draw.standard_normal(shape, np.float32)).astype(np.float32)

    def norm(name):
        tensor(name + ".weight", width, mean=1.0)
        tensor(name + ".bias", width)

    def linear(name, rows, cols):
        tensor(name + ".weight", rows, cols)
        tensor(name + ".bias", rows)

    for table, rows in (("word", "vocab_size"), ("position", "max_position_embeddings"), ("token_type", "type_vocab_size")):
        tensor(f"embeddings.{table}_embeddings.weight", CONFIG[rows], width)
    norm("embeddings.LayerNorm")
    for i in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            linear(layer + name, width, width)
        linear(layer + "intermediate.dense", wide, width)
        linear(layer + "output.dense", width, wide)
        norm(layer + "attention.output.LayerNorm")
        norm(layer + "output.LayerNorm")
    return tensors


def main():
    folder = pathlib.Path(sys.argv[1])
    if (folder / "modules.json").exists():
        return
    files = {"config.json": CONFIG, "sentence_bert_config.json": {"max_seq_length": 512, "do_lower_case": False},
             "1_Pooling/config.json": POOLING, "tokenizer.json": tokenizer()}
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=None if name == "tokenizer.json" else 1))
    save_file(weights(), folder / "model.safetensors")
    (folder / "modules.json").write_text(json.dumps(MODULES, indent=1))  # last: with it the folder is whole


if __name__ == "__main__":
    main()
