"""llama.cpp, by llama-cpp-python, as one side of bench/llama_peers.py: answers as bench/language_model.cpp does. Its own defaults, apart from the
threads; --exact keeps keys and values in F32, where it has F16 by default, and leaves its flash attention out, which rounds to F16 inside.

usage: serve_llama.py --model FILE.gguf [--context 2048] [--threads 2] [--exact]
"""
import argparse
import ctypes
import json
import time

import llama_cpp as ll
import numpy as np

BATCH = 2048  # most tokens of one call: the tool's default
F32 = 0  # of ggml_type


@ll.llama_log_callback
def quiet(level, text, user_data):
    pass


class Model:
    """One sequence of tokens in one context."""

    def __init__(self, path, context, threads, exact=False):
        ll.llama_log_set(quiet, None)
        ll.llama_backend_init()
        self.model = ll.llama_model_load_from_file(str(path).encode(), ll.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"{path}: llama.cpp does not read it")
        params = ll.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = BATCH
        params.n_threads = params.n_threads_batch = threads
        if exact:
            params.type_k = params.type_v = F32
            params.flash_attn_type = ll.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = ll.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError(f"{path}: llama.cpp opens no context of {context} tokens")
        self.vocabulary = ll.llama_model_get_vocab(self.model)
        self.vocab_size = ll.llama_vocab_n_tokens(self.vocabulary)
        self.batch = ll.llama_batch_init(BATCH, 0, 1)
        self.held = 0

    def close(self):
        ll.llama_batch_free(self.batch)
        ll.llama_free(self.context)
        ll.llama_model_free(self.model)

    def tokenize(self, text):
        """Ids with the special tokens that it adds."""
        data = text.encode()
        ids = (ll.llama_token * (len(data) + 8))()
        count = ll.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), True, False)
        return list(ids[:count])

    def rewind(self, length):
        ll.llama_memory_seq_rm(ll.llama_get_memory(self.context), 0, length, -1)
        self.held = length

    def append(self, ids, wanted=1):
        """The logits behind the last `wanted` tokens: (wanted, vocab_size)."""
        pieces, first_wanted = [], len(ids) - wanted
        for begin in range(0, len(ids), BATCH):
            piece = ids[begin:begin + BATCH]
            self.batch.n_tokens = len(piece)
            for i, token in enumerate(piece):
                self.batch.token[i] = token
                self.batch.pos[i] = self.held + i
                self.batch.n_seq_id[i] = 1
                self.batch.seq_id[i][0] = 0
                self.batch.logits[i] = begin + i >= first_wanted
            if ll.llama_decode(self.context, self.batch):
                raise RuntimeError(f"llama.cpp cannot append {len(piece)} tokens to {self.held}")
            self.held += len(piece)
            count = min(len(piece), begin + len(piece) - first_wanted)
            if count > 0:
                logits = ctypes.cast(ll.llama_get_logits(self.context), ctypes.POINTER(ctypes.c_float))
                pieces.append(np.array(np.ctypeslib.as_array(logits, (count, self.vocab_size))))
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def version():
    return ll.__version__


def quantize(source, out, threads):
    """To Q4_K_M."""
    ll.llama_log_set(quiet, None)
    params = ll.llama_model_quantize_default_params()
    params.nthread = threads
    params.ftype = ll.LLAMA_FTYPE_MOSTLY_Q4_K_M
    if ll.llama_model_quantize(str(source).encode(), str(out).encode(), ctypes.byref(params)):
        raise RuntimeError(f"{source}: llama.cpp does not quantize it")


def some_tokens(count, vocab_size):
    return [(i * 7919 + 11) % vocab_size for i in range(count)]


def greedy(model, prompt, count):
    """(count, vocab_size): the logits behind the prompt and behind each of the most likely tokens that follow."""
    model.rewind(0)
    rows = [model.append(prompt)]
    while len(rows) < count:
        rows.append(model.append([int(rows[-1].argmax())]))
    return np.concatenate(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--exact", action="store_true")
    args = parser.parse_args()
    begin = time.perf_counter()
    model, depth = Model(args.model, args.context, args.threads, args.exact), 0
    print(json.dumps({"version": ll.__version__, "open_s": time.perf_counter() - begin}), flush=True)
    while line := input_line():
        word, number = line[0], int(line[1])
        if word == "greedy":
            np.save(line[2], greedy(model, some_tokens(depth, model.vocab_size), number))
            print("saved", flush=True)
            continue
        if word == "fill":
            depth = number
            if number > model.held:
                model.append(some_tokens(number - model.held, model.vocab_size))
            print(depth, flush=True)
            continue
        ids = some_tokens(number, model.vocab_size)
        model.rewind(depth)
        begin = time.perf_counter()
        if word == "decode":
            for token in ids:
                model.append([token])
        else:
            model.append(ids)
        print(f"{time.perf_counter() - begin:.9f}", flush=True)


def input_line():
    try:
        return input().split()
    except EOFError:
        return []


if __name__ == "__main__":
    main()
