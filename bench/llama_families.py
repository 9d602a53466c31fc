"""What llama.cpp computes from GGUF files of each family of models beside what was recorded of the same weights (tests/fixtures/hf, hf_more): from
the files in tests/fixtures/gguf_models, and from those that `rlx convert --type F32` writes.

usage: llama_families.py [NAME...] --build build/release [--results FOLDER]

llama.cpp reads a copy: the same keys and numbers, weights widened to F32 (it rounds activations to the type of the weights), without a tokenizer,
of which it takes the vocabulary's size alone (llama_copies.py). It keeps keys and values in F32, without flash attention, on one thread. Where it lacks something that
a model has, ADAPTED says how the copy or the run makes up for that: the recorded numbers stay the measure, or, where a part had to be taken out, ours
from the same copy. Each file has a process of its own: what llama.cpp does not expect ends it.

Each greedy token must be the recorded one, and no output further from the recorded one in f64, as a share of the largest, than the bound: CLOSE where
llama.cpp computes in F32, which sums in another order, and whose angles of rope are multiplied up from pair to pair; else what LOOSE says.
"""
import argparse
import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import gguf
import numpy as np

import machine
from llama_copies import ADAPTED, Copy

FIXTURES = pathlib.Path(__file__).parent.parent / "tests/fixtures"
TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
CONTEXT = 256  # llama.cpp rounds up to this
STEPS = 16  # of prompts and of tokens behind them, where ours are the measure
CLOSE = 1e-5  # those recorded in f32 are up to 5e-6 from those in f64
GELU = "GELU from a table, of F16 by F16 (2^-11 each), and by its tanh form (5e-4 off where erf is meant)"
LOOSE = {  # by architecture or fixture
    **dict.fromkeys(["bert", "falcon", "gemma", "gemma2", "gemma3", "gpt2", "gptneox", "modern-bert", "phi2", "starcoder2", "t5-gated"], (2e-3, GELU)),
    "falcon_mamba": (1e-3, "norms of B, C and the step by the layers' epsilon, 1e-5, not their own, 1e-6"),
}


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


class Model:
    """llama.cpp with one sequence. What goes wrong throws RuntimeError with what llama.cpp says of it."""

    def __init__(self, path, outputs, pooling=None):
        import llama_cpp as ll
        self.ll, self.said, self.outputs, self.held = ll, [], outputs, 0
        self.log = ll.llama_log_callback(lambda level, text, _: self.said.append(text.decode(errors="replace")) if level == 4 else None)
        ll.llama_log_set(self.log, None)
        self.model = ll.llama_model_load_from_file(str(path).encode(), ll.llama_model_default_params())
        if not self.model:
            self.fail("llama.cpp does not read it")
        params = ll.llama_context_default_params()
        params.n_ctx = CONTEXT
        params.n_threads = params.n_threads_batch = 1
        params.type_k = params.type_v = 0  # F32
        params.flash_attn_type = ll.LLAMA_FLASH_ATTN_TYPE_DISABLED
        if pooling is not None:
            params.embeddings, params.pooling_type = True, pooling
        self.context = ll.llama_init_from_model(self.model, params)
        if not self.context:
            self.fail("llama.cpp opens no context")

    def fail(self, what):
        raise RuntimeError(": ".join([what, *("".join(self.said).strip().splitlines()[:1])]))

    def forget(self, begin=0, end=-1):
        if not self.ll.llama_memory_seq_rm(self.ll.llama_get_memory(self.context), 0, begin, end):
            self.fail("llama.cpp forgets nothing")
        self.held = begin if end < 0 else self.held

    def batch(self, ids, embeddings=None):
        batch = self.ll.llama_batch_init(len(ids), 0 if embeddings is None else embeddings.shape[1], 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            if embeddings is None:
                batch.token[i] = int(token)
            batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = self.held + i, 1, 0, 1
        if embeddings is not None:
            ctypes.memmove(batch.embd, np.ascontiguousarray(embeddings, np.float32).ctypes.data, embeddings.size * 4)
        return batch

    def run(self, call, ids, embeddings=None):
        batch = self.batch(ids, embeddings)
        status = call(self.context, batch)
        self.ll.llama_batch_free(batch)
        if status:
            self.fail(f"llama.cpp computes nothing ({status})")

    def rows(self, get, count):
        return np.stack([np.array(np.ctypeslib.as_array(ctypes.cast(get(self.context, i), ctypes.POINTER(ctypes.c_float)), (self.outputs,))) for i in range(count)])

    def append(self, ids, window=0):
        """The logits behind each token. With a window tokens go in one by one, and what no layer sees any longer is forgotten."""
        rows = []
        for piece in ([[token] for token in ids] if window else [ids]):
            if window and self.held >= window:
                self.forget(0, self.held - window + 1)
            self.run(self.ll.llama_decode, piece)
            self.held += len(piece)
            rows.append(self.rows(self.ll.llama_get_logits_ith, len(piece)))
        return np.concatenate(rows)

    def encode(self, ids, embeddings=None):
        self.run(self.ll.llama_encode, ids, embeddings)
        return self.rows(self.ll.llama_get_embeddings_ith, len(ids))

    def pooled(self, ids, embeddings=None):
        self.run(self.ll.llama_encode, ids, embeddings)
        return self.rows(self.ll.llama_get_embeddings_seq, 1)[0]


def share(found, recorded):
    """The largest difference as a share of the largest number."""
    return float(np.abs(found - recorded).max() / np.abs(recorded).max())


class Decoder:
    """The logits behind each of some tokens, in one run or continued. Two sets of rope's factors are chosen by the length that a context is opened
    for, so that there is one model for each, and nothing is continued: what was computed with the others does not fit."""

    def __init__(self, copy, folder, outputs, window):
        self.window, self.ids, self.short = window, [], None
        copy.write(folder / "long.gguf")
        self.long = Model(folder / "long.gguf", outputs)
        if "rope_factors_short.weight" in copy.tensors:
            self.trained = copy.get("rope.scaling.original_context_length")
            copy.put("rope.scaling.original_context_length", CONTEXT)
            copy.write(folder / "short.gguf")
            self.short = Model(folder / "short.gguf", outputs)

    def behind(self, ids):
        ids = list(map(int, ids))
        if self.short or ids[:len(self.ids)] != self.ids or not self.ids:
            self.ids = []
        model = self.short if self.short and len(ids) <= self.trained else self.long
        if not self.ids:
            model.forget()
        rows = model.append(ids[len(self.ids):], self.window)
        self.ids = ids
        return rows

    def greedy(self, prompt, count):
        ids = list(map(int, prompt))
        while len(ids) < count:
            ids.append(int(self.behind(ids)[-1].argmax()))
        return ids


def judge_decoder(copy, folder, recorded, options):
    decoder = Decoder(copy, folder, recorded["logits_f64"].shape[-1], copy.get("attention.sliding_window") if options.get("window") else 0)
    found = np.stack([decoder.behind(row) for row in recorded["input_ids"]])
    ids = recorded["greedy_ids"][0].tolist()
    greedy = decoder.greedy(recorded["prompt_ids"][0], len(ids))
    return {"difference": share(found, recorded["logits_f64"]), "tokens": len(ids) - recorded["prompt_ids"].shape[1],
            "same_tokens": sum(a == b for a, b in zip(greedy, ids)) - recorded["prompt_ids"].shape[1]}


def judge_beside_ours(copy, folder, recorded, build):
    """Of the copy itself, which nothing was recorded of."""
    outputs = recorded["logits_f64"].shape[-1]
    tokenizer = copy.keys.pop("tokenizer.ggml.model")  # we ask for more of one that is there
    copy.write(folder / "ours.gguf")
    copy.keys["tokenizer.ggml.model"] = tokenizer
    command = [build / "bench/language_model", "--model", folder / "ours.gguf", "--exact", "--precision", "f32", "--threads", "1", "--context", str(2 * STEPS)]
    subprocess.run(command, check=True, input=f"fill {STEPS}\ngreedy {STEPS} {folder}/ours.npy\n", stdout=subprocess.DEVNULL, text=True)
    ours = np.load(folder / "ours.npy")
    ids = [(i * 7919 + 11) % outputs for i in range(STEPS)] + ours.argmax(1).tolist()  # as bench/language_model.cpp begins
    decoder = Decoder(copy, folder, outputs, 0)
    found = np.concatenate([decoder.behind(ids[:end])[-1:] for end in range(STEPS, 2 * STEPS)])
    return {"difference": share(found, ours), "tokens": STEPS, "same_tokens": int((found.argmax(1) == ours.argmax(1)).sum())}


def judge_t5(copy, folder, recorded):
    states, logits = recorded["encoder_last_hidden_state_f64"], recorded["logits_f64"]
    copy.write(folder / "copy.gguf")
    shares, ids = [], recorded["greedy_ids"][0].tolist()
    texts = [row[mask == 1] for row, mask in zip(recorded["input_ids"], recorded["attention_mask"])]
    for text, said, state, logit in zip(texts, recorded["decoder_input_ids"], states, logits):
        model = Model(folder / "copy.gguf", states.shape[-1], pooling=0)
        shares.append(np.abs(model.encode(text) - state[:len(text)]).max() / np.abs(states).max())
        model.outputs = logits.shape[-1]
        shares.append(np.abs(model.append(said) - logit).max() / np.abs(logits).max())
    model, greedy = Model(folder / "copy.gguf", states.shape[-1], pooling=0), recorded["prompt_ids"][0].tolist()
    model.encode(texts[0])
    model.outputs, pending, begin = logits.shape[-1], list(greedy), len(greedy)
    while len(greedy) < len(ids):
        greedy.append(int(model.append(pending)[-1].argmax()))
        pending = greedy[-1:]
    return {"difference": float(max(shares)), "tokens": len(ids) - begin, "same_tokens": sum(a == b for a, b in zip(greedy, ids)) - begin}


def head_of(copy, state):
    """DistilBERT's."""
    inner = np.maximum(copy.tensors["cls.weight"] @ state + copy.tensors["cls.bias"], 0)
    return copy.tensors["cls.output.weight"] @ inner + copy.tensors["cls.output.bias"]


def judge_encoder(copy, folder, recorded, options):
    """Its states, or the numbers of its head. llama.cpp takes all tokens to be of type 0: what another adds goes in with the embeddings."""
    copy.write(folder / "copy.gguf")
    scores = copy.get("classifier.output_labels") is not None
    head = options.get("head")
    if scores:
        expected = recorded["logits_f64"]
    else:
        expected = recorded.get("last_hidden_state_f64", recorded["hidden_states_row0"][-1:])
    model = Model(folder / "copy.gguf", copy.get("embedding_length") if head else expected.shape[-1], pooling=4 if scores and not head else 0)
    shares = []
    for i, row in enumerate(expected):
        mask = recorded["attention_mask"][i] == 1
        ids, types = recorded["input_ids"][i][mask], recorded.get("token_type_ids", np.zeros_like(recorded["input_ids"]))[i][mask]
        embeddings = None
        if types.any():
            added = copy.tensors["token_types.weight"]
            embeddings = copy.tensors["token_embd.weight"][ids] + added[types] - added[0]
        found = model.pooled(ids, embeddings) if scores and not head else model.encode(ids, embeddings)
        found = head_of(copy, found[0]) if head else found
        shares.append(np.abs(found - (row if scores else row[:len(ids)])).max() / np.abs(expected).max())
    return {"difference": float(max(shares))}


def judge(source, name, build):
    """A row of the table: one file beside its folder's recording."""
    folder = folder_of(name)
    recorded, copy = read_safetensors(folder / "expected.safetensors"), Copy(source)
    lacks, adapt, options = ADAPTED.get(name, ("", None, {}))
    if adapt:
        adapt(copy)
    copy.keys["tokenizer.ggml.model"] = ("none", gguf.GGUFValueType.STRING)
    copy.put("vocab_size", copy.tensors["token_embd.weight"].shape[0])
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        if "decoder_input_ids" in recorded:
            found = judge_t5(copy, work, recorded)
        elif "greedy_ids" not in recorded:
            found = judge_encoder(copy, work, recorded, options)
        elif options.get("ours"):
            found = judge_beside_ours(copy, work, recorded, build)
        else:
            found = judge_decoder(copy, work, recorded, options)
    bound, why = LOOSE.get(name, LOOSE.get(copy.arch, (CLOSE, "")))
    return {"architecture": copy.arch, "measure": "rlx" if options.get("ours") else "recorded", "lacks": lacks, **found, "bound": bound, "why": why}


def folder_of(name):
    return next(FIXTURES / kind / name for kind in ("hf", "hf_more") if (FIXTURES / kind / name).exists())


def row_of(args, name, source, file):
    """In a process of its own; what it says where it ends without a row is why."""
    command = [sys.executable, __file__, name, "--judge", file, "--build", args.build]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "GGML_NO_BACKTRACE": "1"})
    row = {"family": name, "source": source}
    if ended.returncode == 0:
        row |= json.loads(ended.stdout.splitlines()[-1])
        row["passed"] = row["difference"] <= row["bound"] and row.get("same_tokens") == row.get("tokens")
        tokens = f"{row['same_tokens']:3}/{row['tokens']}" if "tokens" in row else "      "
        print(f"{name:20} {source:10} {row['architecture']:12} {row['measure']:9} {tokens} {row['difference']:9.1e} of {row['bound']:.0e}"
              f"{'' if row['passed'] else '  FAILED'}", flush=True)
    else:
        row["refused"] = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
        row["unknown"] = "unknown model architecture" in row["refused"]
        print(f"{name:20} {source:10} {row['refused']}", flush=True)
    return row


def failure_of(row):
    if row.get("passed") or row.get("unknown"):
        return None
    of = f"{row['family']}, {row['source']}"
    if "refused" in row:
        return f"{of}: {row['refused']}"
    return f"{of}: {row['difference']:.1e} of the largest output apart (allowed: {row['bound']:.0e}), {row.get('same_tokens')} of {row.get('tokens')} tokens the same"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="folders of the fixtures; all")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--judge", type=pathlib.Path, help=argparse.SUPPRESS)  # one file, in a process of its own
    args = parser.parse_args()
    if args.judge:
        try:
            print(json.dumps(judge(args.judge, args.names[0], args.build)))
        except RuntimeError as reason:
            raise SystemExit(str(reason))
        return
    names = args.names or sorted(path.parent.name for path in FIXTURES.glob("hf*/*/expected.safetensors"))
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            made, converted = FIXTURES / f"gguf_models/{name}.gguf", pathlib.Path(work) / f"{name}.gguf"
            subprocess.run([args.build / "rlx", "convert", folder_of(name), converted, "--type", "F32", "--threads", "1"], check=True, stdout=subprocess.DEVNULL)
            rows += [row_of(args, name, source, file) for source, file in (("fixture", made), ("converted", converted)) if file.exists()]
    import llama_cpp
    report = {"machine": machine.describe(), "command": machine.command(), "llama_cpp_python": llama_cpp.__version__, "rows": rows}
    args.results.mkdir(parents=True, exist_ok=True)
    (args.results / "llama_families.json").write_text(json.dumps(report, indent=1) + "\n")
    failures = list(filter(None, map(failure_of, rows)))
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
