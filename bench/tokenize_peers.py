"""Tokenizing 10 MB of text on one thread, beside Hugging Face's `tokenizers`: the same tokenizer.json and the same documents, the ids
compared before anything is timed.

Usage: python3 bench/tokenize_peers.py build/release/bench/tokenize [--out FILE.json] [--kinds gpt2,llama3,...] [--work FOLDER]
The text is made of files that a Debian system has (sources, documentation, message catalogues of many languages, licences), cut into
documents of about ten kilobytes. The tokenizers are trained on it, 32000 tokens each (t5: 16000), with the components of the models that they are
named after; they and the text stay in the working folder for the next run. The peer's fastest call is timed, which leaves offsets out as ours does.
"""
import argparse
import array
import json
import os
import pathlib
import random
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import machine

SIZE, DOCUMENT, VOCABULARY = 10_000_000, 10_000, 32_000
SOURCES = [("/usr/share/common-licenses", "*"), ("/usr/share/doc", "**/README*"), ("/usr/share/doc", "**/*.html"), ("/usr/share/perl", "**/*.p[lm]"),
           ("/usr/include", "**/*.h"), ("/usr/lib/python3*", "*.py"), ("/usr/share/i18n/locales", "*"), ("/usr/share/iso-codes", "**/*.json"),
           ("/usr/share/cmake*", "**/*.cmake"), ("/usr/share/vim", "**/*.vim"), ("/usr/share/zoneinfo", "*.tab"), ("/usr/share/gettext*", "**/*.po")]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def make_documents():
    """Pieces of files of all sources in turn, so that prose, code and other scripts mix."""
    random.seed(5)
    pools = []
    for pattern, glob in SOURCES:
        files = [f for folder in sorted(pathlib.Path("/").glob(pattern[1:])) for f in sorted(folder.glob(glob)) if f.is_file()]
        random.shuffle(files)
        if files:
            pools.append(iter(files))
    documents, size = [], 0
    while size < SIZE and pools:
        for pool in list(pools):
            file = next(pool, None)
            if file is None:
                pools.remove(pool)
                continue
            try:
                text = file.read_text(encoding="utf-8").replace("\0", "")[:60_000]
            except (UnicodeDecodeError, OSError):
                continue
            for at in range(0, len(text), DOCUMENT):
                documents.append(text[at:at + DOCUMENT])
                size += len(documents[-1].encode())
    while size < SIZE:  # a machine with few files
        documents.append(random.choice(documents))
        size += len(documents[-1].encode())
    return documents


def byte_level(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(kind, documents):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    quiet = {"vocab_size": VOCABULARY, "show_progress": False}
    if kind in ("gpt2", "llama3", "gpt4o"):
        result = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
        result.pre_tokenizer = {"gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False), "llama3": byte_level(LLAMA3), "gpt4o": byte_level(GPT4O)}[kind]
        result.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(initial_alphabet=sorted(alphabet), **quiet)
    elif kind == "llama2":
        result = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        result.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        result.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")  # for training only
        special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(special_tokens=special, limit_alphabet=2000, **quiet)
    elif kind == "t5":
        result = Tokenizer(models.Unigram())
        result.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        result.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(special_tokens=["<unk>"], unk_token="<unk>", **(quiet | {"vocab_size": 16_000}))
    else:
        result = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        result.normalizer = normalizers.BertNormalizer()
        result.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], **quiet)
    result.train_from_iterator(documents[::8] if kind == "t5" else documents, trainer)  # unigram trains for minutes
    if kind == "llama2":
        written = json.loads(result.to_str())
        written["pre_tokenizer"] = None
        written["added_tokens"] = written["added_tokens"][:3]  # bytes are found by the model
        result = Tokenizer.from_str(json.dumps(written))
    return result


def fastest(calls, work):
    best = 1e30
    for _ in range(calls):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("benchmark")
    parser.add_argument("--out")
    parser.add_argument("--kinds", default="gpt2,llama3,gpt4o,llama2,t5,bert")
    parser.add_argument("--work", default="build/tokenize")
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "documents").exists():
        (work / "documents").write_bytes(b"".join(text.encode() + b"\0" for text in make_documents()))
    documents = [text.decode() for text in (work / "documents").read_bytes().split(b"\0")[:-1]]
    size = sum(len(text.encode()) for text in documents)
    results = []
    for kind in options.kinds.split(","):
        path = work / f"{kind}.json"
        if not path.exists():
            train(kind, documents).save(str(path))
        peer = Tokenizer.from_file(str(path))
        expected = [encoding.ids for encoding in peer.encode_batch_fast(documents)]
        theirs = fastest(3, lambda: peer.encode_batch_fast(documents))
        seen = json.loads(subprocess.run([options.benchmark, path, work / "documents", work / "ids"], check=True, stdout=subprocess.PIPE).stdout)
        ids = array.array("i", (work / "ids").read_bytes())
        flat = array.array("i", [i for document in expected for i in (*document, -1)])
        if ids != flat:
            at = next(i for i, (a, b) in enumerate(zip(ids, flat)) if a != b)
            document = flat[:at].tolist().count(-1)
            sys.exit(f"{kind}: other ids from number {at}, in document {document}: {ids[at:at + 8].tolist()} for {flat[at:at + 8].tolist()}")
        rate = size / 1e3
        results.append({"kind": kind, "bytes": size, "tokens": seen["ids"], "rlx_ms": seen["milliseconds"], "tokenizers_ms": round(theirs, 2),
                        "rlx_mb_per_s": round(rate / seen["milliseconds"], 1), "tokenizers_mb_per_s": round(rate / theirs, 1),
                        "ratio": round(theirs / seen["milliseconds"], 2)})
        print(json.dumps(results[-1]))
    if options.out:
        report = {"machine": machine.describe(), "command": machine.command(), "tokenizers": tokenizers.__version__, "threads": 1, "results": results}
        pathlib.Path(options.out).write_text(json.dumps(report, indent=1) + "\n")


main()
