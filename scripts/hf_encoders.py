#!/usr/bin/env python3
"""Writes tiny encoders of random weights in Hugging Face's layout, with what transformers computes of them: more fixtures in
tests/fixtures/hf_more. `expected.safetensors` holds input_ids, attention_mask (the second text is padded) and, in f32 and f64, the last
states, or the scores of models that classify. Where there is a tokenizer, `texts.json` holds texts (or pairs of them) with their ids and
what the model makes of them in f64: the mean of the states as a vector of length 1, or the scores; and how far f32 is from it. Of models
that say words for masked ones, of which token types are not recorded, it holds the likeliest tokens of each mask and their probabilities. Of models that label texts or tokens it holds what transformers' pipelines give,
places in bytes.

    pip install transformers==5.23.0 torch safetensors
    scripts/hf_encoders.py tests/fixtures/hf_more
    scripts/hf_encoders.py tests/fixtures/masked_words
    scripts/hf_encoders.py tests/fixtures/hf_options
    scripts/hf_encoders.py tests/fixtures/labels
"""
import json
import sys
from pathlib import Path

import tokenizers as tk
import torch
import transformers as tf
from hf_models import randomised
from safetensors.torch import save_file

SIZES = dict(vocab_size=320, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=40)
ROBERTA = dict(SIZES, pad_token_id=1, bos_token_id=0, eos_token_id=2, type_vocab_size=1)
DISTIL = dict(vocab_size=320, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40)
MODERN = dict(SIZES, num_hidden_layers=3, local_attention=6, global_attn_every_n_layers=3, pad_token_id=0, bos_token_id=None,
              eos_token_id=None, cls_token_id=2, sep_token_id=3)
ONE = {"num_labels": 1}

MODELS = {
    "roberta": (tf.RobertaModel, tf.RobertaConfig(**ROBERTA), "bytes"),
    "distilbert": (tf.DistilBertModel, tf.DistilBertConfig(**DISTIL), "words"),
    "bert-scores": (tf.BertForSequenceClassification, tf.BertConfig(**SIZES, **ONE), "words"),
    "xlm-roberta-scores": (tf.XLMRobertaForSequenceClassification, tf.XLMRobertaConfig(**ROBERTA, **ONE), "pieces"),
    "modernbert-scores": (tf.ModernBertForSequenceClassification, tf.ModernBertConfig(**MODERN, classifier_pooling="mean", **ONE), "words"),
    "distilbert-labels": (tf.DistilBertForSequenceClassification, tf.DistilBertConfig(**DISTIL, num_labels=3), None),
}

# EmbeddingGemma: what GGUF files have names for, but folders made of them do not hold (tests/fixtures/hf_options).
OPTIONS = {
    "embedding-gemma": (
        tf.Gemma3TextModel,
        tf.Gemma3TextConfig(
            vocab_size=272, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=32,
            query_pre_attn_scalar=8, max_position_embeddings=40, sliding_window=6, use_bidirectional_attention=True, pad_token_id=0,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"]
        ),
        "bytes"
    ),
}

MASKED = {
    "bert": (tf.BertForMaskedLM, tf.BertConfig(**SIZES, hidden_act="relu"), "words"),
    "roberta": (tf.RobertaForMaskedLM, tf.RobertaConfig(**ROBERTA), "bytes"),
    "distilbert": (tf.DistilBertForMaskedLM, tf.DistilBertConfig(**DISTIL), "words"),
    "modernbert": (tf.ModernBertForMaskedLM, tf.ModernBertConfig(**MODERN), "words"),
    "modernbert-biases": (
        tf.ModernBertForMaskedLM,
        tf.ModernBertConfig(
            **MODERN, tie_word_embeddings=False, attention_bias=True, mlp_bias=True, norm_bias=True, classifier_bias=True, decoder_bias=False
        ),
        "words"
    ),
}

ENTITIES = {"id2label": dict(enumerate(["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "ANIMAL"]))}
FEELINGS = {"id2label": dict(enumerate(["NEGATIVE", "neutral, or neither", "POSITIVE"]))}

LABELS = {
    "bert-tokens": (tf.BertForTokenClassification, tf.BertConfig(**SIZES, **ENTITIES), "words"),
    "roberta-tokens": (tf.RobertaForTokenClassification, tf.RobertaConfig(**ROBERTA, **ENTITIES), "bytes"),
    "distilbert-tokens": (tf.DistilBertForTokenClassification, tf.DistilBertConfig(**DISTIL, **ENTITIES), "words"),
    "xlm-roberta-tokens": (tf.XLMRobertaForTokenClassification, tf.XLMRobertaConfig(**ROBERTA, num_labels=3), "pieces"),
    "modernbert-tokens": (tf.ModernBertForTokenClassification, tf.ModernBertConfig(**MODERN, classifier_bias=True, **ENTITIES), "words"),
    "bert-feelings": (tf.BertForSequenceClassification, tf.BertConfig(**SIZES, **FEELINGS), "words"),
    "roberta-topics": (
        tf.RobertaForSequenceClassification,
        tf.RobertaConfig(**ROBERTA, **FEELINGS, problem_type="multi_label_classification"), "bytes"
    ),
    "distilbert-number": (
        tf.DistilBertForSequenceClassification, tf.DistilBertConfig(**DISTIL, num_labels=1, problem_type="regression"), "words"
    ),
    "modernbert-one": (tf.ModernBertForSequenceClassification, tf.ModernBertConfig(**MODERN, **ONE), "words"),
}

CORPUS = [
    "How do I reset the password of my account?",
    "A small dog runs along the beach at sunset.",
    "The committee will meet on Thursday to discuss next year's budget.",
    "Prices rose by 3.4% in March, the fastest rate since 1992.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "Photosynthesis converts light energy into chemical energy.",
]
TEXTS = ["A dog at the beach", "How fast do prices rise in March?", "Zwei Füchse, café", ""]
MASKS = ["A dog at the {0}", "Prices {0} by 3.4% in {0}", "{0} dog"]
PAIRS = [(TEXTS[1], line) for line in CORPUS[:4]] + [("dog", "A small dog runs along the beach at sunset. " * 6)]


def tokenizer_of(kind, vocab_size):
    if kind == "words":
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = tk.Tokenizer(tk.models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = tk.normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = tk.decoders.WordPiece()
        trainer = tk.trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=special)
        processor = tk.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    elif kind == "bytes":
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        tokenizer = tk.Tokenizer(tk.models.BPE())
        tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tk.decoders.ByteLevel()
        trainer = tk.trainers.BpeTrainer(
            vocab_size=vocab_size, special_tokens=special, initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet()
        )
        processor = tk.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    else:
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        tokenizer = tk.Tokenizer(tk.models.Unigram())
        tokenizer.pre_tokenizer = tk.pre_tokenizers.Metaspace()
        tokenizer.decoder = tk.decoders.Metaspace()
        trainer = tk.trainers.UnigramTrainer(vocab_size=vocab_size, special_tokens=special, unk_token="<unk>")
        processor = tk.processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processor
    return tokenizer


def answer(model, encoding):
    """What embedding or scoring gives, in the element type of the model."""
    inputs = {"input_ids": torch.tensor([encoding.ids])}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.tensor([encoding.type_ids])
    with torch.no_grad():
        out = model(**inputs)
    if "logits" in out:
        return out.logits[0]
    vector = out.last_hidden_state[0].mean(0)
    for layer in getattr(model, "dense_layers", []):
        vector = vector @ layer.weight.detach().to(vector.dtype).T
    return vector / vector.norm()


def likeliest(model, ids, mask):
    """For each mask the five likeliest tokens with their probabilities, in the element type of the model."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    best = logits.softmax(-1)[torch.tensor(ids) == mask].topk(5)
    return best.indices, best.values


def record_masks(folder, model, tokenizer):
    mask = "[MASK]" if tokenizer.token_to_id("[MASK]") is not None else "<mask>"
    rows, distance = [], 0
    for text in (text.format(mask) for text in MASKS):
        ids = tokenizer.encode(text).ids
        tokens, narrow = likeliest(model.float(), ids, tokenizer.token_to_id(mask))
        same, wide = likeliest(model.double(), ids, tokenizer.token_to_id(mask))
        assert torch.equal(tokens, same)
        distance = max(distance, float((narrow - wide).abs().max()))
        rows.append({"text": text, "tokens": tokens.tolist(), "probabilities": wide.tolist()})
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "texts.json").write_text(json.dumps({"distance": distance, "rows": rows}, indent=1) + "\n")


def labelled(model, tokenizer, text):
    """What a pipeline gives of a text, or of a pair: the scores of all labels, or parts with a label and their places in bytes."""
    longest = model.config.max_position_embeddings - (2 if "roberta" in model.config.model_type else 0)
    fast = tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest)
    types = ["token_type_ids"] if getattr(model.config, "type_vocab_size", 0) > 1 else []
    fast.model_input_names = ["input_ids", "attention_mask"] + types
    if "Sequence" in type(model).__name__:
        scores = tf.pipeline("text-classification", model=model, tokenizer=fast, top_k=None)([text if isinstance(text, str) else dict(zip(("text", "text_pair"), text))], truncation=True)[0]
        return {each["label"]: each["score"] for each in scores}
    parts = tf.pipeline("token-classification", model=model, tokenizer=fast, aggregation_strategy="simple")(text)
    place = lambda at: len(text[:at].encode())
    return [
        {"label": part["entity_group"], "score": float(part["score"]), "begin": place(part["start"]), "end": place(part["end"])}
        for part in parts
    ]


def record_labels(folder, model, tokenizer):
    pairs = PAIRS if "Sequence" in type(model).__name__ else []
    rows = [{"text": text, "labels": labelled(model.double(), tokenizer, text)} for text in TEXTS + CORPUS + pairs if text]
    tokenizer.no_truncation()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "texts.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")


def record_texts(folder, model, tokenizer):
    scores = hasattr(model, "classifier")
    tokenizer.enable_truncation(model.config.max_position_embeddings - (2 if "roberta" in model.config.model_type else 0))
    rows = []
    for text in PAIRS if scores else TEXTS:
        encoding = tokenizer.encode(*text) if scores else tokenizer.encode(text)
        rows.append({"text": text, "ids": encoding.ids, "f32": answer(model.float(), encoding), "f64": answer(model.double(), encoding)})
    distance = max(float((row["f32"] - row["f64"]).abs().max()) for row in rows)
    for row in rows:
        row["values"] = row.pop("f64").tolist()
        del row["f32"]
    tokenizer.no_truncation()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "texts.json").write_text(json.dumps({"distance": distance, "rows": rows}, indent=1) + "\n")


def add_modules(folder, model):
    """Pooling, two dense layers and a norm, as sentence-transformers saves them."""
    modules = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    width = model.config.hidden_size
    model.dense_layers = [torch.nn.Linear(width, 20, bias=False), torch.nn.Linear(20, 16, bias=False)]
    configs = {1: {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True, "include_prompt": True}}
    for number, layer in enumerate(model.dense_layers, 2):
        layer.weight.data.normal_(0, layer.in_features ** -0.5)
        configs[number] = {
            "in_features": layer.in_features, "out_features": layer.out_features, "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity"
        }
    for number, config in configs.items():
        part = folder / f"{number}_{modules[number]}"
        part.mkdir(exist_ok=True)
        (part / "config.json").write_text(json.dumps(config) + "\n")
        if number > 1:
            save_file({"linear.weight": model.dense_layers[number - 2].weight.data}, part / "model.safetensors")
    table = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i > 0 else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(table) + "\n")


def write(folder, kind, config, tokenizer):
    torch.manual_seed(1)
    config._attn_implementation = "eager"
    model = randomised(kind(config).eval())
    for name, parameter in model.named_parameters():
        if parameter.shape == (config.vocab_size,):  # the bias of words, which would drown in the logits
            parameter.data.normal_(0, 1)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    if "Gemma3" in kind.__name__:
        add_modules(folder, model)
    ids = torch.randint(5, config.vocab_size, (2, 12))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0  # no token of padding is out of reach of all others: eager attention gives NaN for such
    ids[1, 9:] = config.pad_token_id or 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    masked = "MaskedLM" in kind.__name__
    if getattr(config, "type_vocab_size", 0) > 0 and not masked:
        inputs["token_type_ids"] = torch.zeros_like(ids)
    name = "logits" if masked or "Classification" in kind.__name__ else "last_hidden_state"
    with torch.no_grad():
        out = model(**inputs, output_hidden_states=True)
        wide = model.double()(**inputs)[name]
    expected = dict(inputs) | {name: out[name], f"{name}_f64": wide}
    if name == "last_hidden_state":
        expected["hidden_states_row0"] = torch.stack([state[0] for state in out.hidden_states])
    save_file({key: value.clone().contiguous() for key, value in expected.items()}, folder / "expected.safetensors")
    if tokenizer:
        record = record_masks if masked else record_labels if folder.parent.name == "labels" else record_texts
        record(folder, model, tokenizer_of(tokenizer, config.vocab_size))
    print(folder, float((out[name] - wide).abs().max()), float(out[name].abs().max()))


def main():
    target = Path(sys.argv[1])
    models = {"masked_words": MASKED, "hf_options": OPTIONS, "labels": LABELS}.get(target.name, MODELS)
    for name in sys.argv[2:] or models:
        write(target / name, *models[name])


if __name__ == "__main__":
    main()
