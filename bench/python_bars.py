"""What work through Python costs, each line beside its bar and beside jax, NumPy or the command in the same run. The fastest of many rounds.

usage: PYTHONPATH=<the package> bench/python_bars.py [--json FILE] [--build build/release] [--wheel FILE] [--work FOLDER] [--encoder FOLDER]
       [--sentences 100000] [PART]...

PART: calls, chains, encoder, import, wheel, generation, threads, corpus; by itself all of them. generation and corpus need the command of
--build; generation writes a model of random weights to --work, and corpus embeds with --encoder on PyPI's ray.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import timeit

import numpy as np

import machine
import rlx

HERE = pathlib.Path(__file__).parent
LARGE = 1 << 20


def microseconds(call, count=200, rounds=100):
    call(), call()
    return min(timeit.repeat(call, number=count, repeat=rounds)) / count * 1e6


def row(work, bar, ours, met, **peers):
    """A line: what was measured, and whether the bar is met; None where what it is beside could not be measured."""
    return {"work": work, "bar": bar, "rlx": ours, "peers": {name: value for name, value in peers.items() if value is not None}, "met": met}


def jax_functions():
    """jax and its numpy; nothing where they are not there."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None, None
    return jax, jnp


def below(ours, bar, peer, share):
    """Whether it is at most the bar, and that share of the peer's."""
    return ours <= bar and (peer is None or ours <= peer * share)


def vectors(size):
    return np.ones(size, np.float32), np.full(size, 2, np.float32)


def calls(_):
    jax, jnp = jax_functions()
    add, peer = rlx.jit(lambda x, y: x + y), jax and jax.jit(lambda x, y: x + y)
    for size in (4, 1000):
        a, b = vectors(size)
        x, y = rlx.asarray(a), rlx.asarray(b)
        p, q = (jnp.asarray(a), jnp.asarray(b)) if jax else (None, None)
        for kind, ours, theirs in (("own arrays", (x, y), (p, q)), ("NumPy's arrays", (a, b), (a, b))):
            its = microseconds(lambda: add(*ours))
            other = jax and microseconds(lambda: peer(*theirs).block_until_ready())
            yield row(f"a compiled function of {size} elements, {kind}, us", "<= 2.5, half of jax.jit", its, below(its, 2.5, other, 0.5), jax=other)
    its = microseconds(lambda: (x + y).block_until_ready())
    other = jax and microseconds(lambda: (p + q).block_until_ready())
    yield row("eager a + b of 1000 elements, us", "<= 3, half of jax", its, below(its, 3, other, 0.5), jax=other, numpy=microseconds(lambda: a + b))


def chain(x):
    for _ in range(5):
        x = x * 1.5 + 0.5
    return x


def chains(_):
    jax, jnp = jax_functions()
    a, b = vectors(LARGE)
    x, y = rlx.asarray(a), rlx.asarray(b)
    few = {"count": 5, "rounds": 60}
    its, numpy_itself = microseconds(lambda: (x + y).block_until_ready(), **few), microseconds(lambda: a + b, **few)
    yield row("eager a + b of 1M elements, us", "<= 1.1 times NumPy", its, its <= 1.1 * numpy_itself, numpy=numpy_itself)
    its, numpy_itself = microseconds(lambda: chain(x).block_until_ready(), **few), microseconds(lambda: chain(a), 1, 20)
    compiled, p = (jax.jit(chain), jnp.asarray(a)) if jax else (None, None)
    other = jax and microseconds(lambda: compiled(p).block_until_ready(), **few)
    yield row("ten operations on 1M elements, us", ">= 10 times faster than NumPy, <= 1.2 times jax.jit", its,
              its * 10 <= numpy_itself and (other is None or its <= 1.2 * other), numpy=numpy_itself, jax=other)  # fmt: skip


LAYERS, WIDTH, HEADS, TOKENS = 12, 768, 12, 128
OURS = f"""
import time, rlx, rlx.numpy as jnp
from rlx import nn
class Layer(nn.Module):
    def __init__(self, keys):
        self.attention, self.first, self.second = nn.Attention({WIDTH}, {HEADS}, key=keys[0]), nn.LayerNorm({WIDTH}), nn.LayerNorm({WIDTH})
        self.up, self.down = nn.Linear({WIDTH}, {4 * WIDTH}, key=keys[1]), nn.Linear({4 * WIDTH}, {WIDTH}, key=keys[2])
    def __call__(self, x):
        x = self.first(x + self.attention(x))
        return self.second(x + self.down(rlx.gelu(self.up(x))))
layers = [Layer(rlx.random.split(key, 3)) for key in rlx.random.split(rlx.random.key(0), {LAYERS})]
def encoder(layers, x):
    for layer in layers:
        x = layer(x)
    return x
x = jnp.zeros((1, {TOKENS}, {WIDTH}))
for leaf in rlx.tree.leaves(layers): leaf.block_until_ready()
begin = time.perf_counter()
rlx.jit(encoder).lower(layers, x)
print(time.perf_counter() - begin)
"""
JAX = f"""
import time, jax, jax.numpy as jnp
W, H = {WIDTH}, {HEADS}
def norm(x, p):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * p[0] + p[1]
def layer(p, x):
    q, k, v = [(x @ w + b).reshape(1, -1, H, W // H).transpose(0, 2, 1, 3) for w, b in p["qkv"]]
    a = jax.nn.softmax(q @ k.swapaxes(2, 3) / (W // H) ** 0.5, -1) @ v
    x = norm(x + a.transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"][0] + p["out"][1], p["first"])
    return norm(x + jax.nn.gelu(x @ p["up"][0] + p["up"][1], approximate=False) @ p["down"][0] + p["down"][1], p["second"])
linear = lambda m, n: (jnp.zeros((m, n)), jnp.zeros(n))
params = [{{"qkv": [linear(W, W)] * 3, "out": linear(W, W), "up": linear(W, 4 * W), "down": linear(4 * W, W), "first": linear(W, 1)[1:] * 2,
            "second": linear(W, 1)[1:] * 2}} for _ in range({LAYERS})]
def encoder(params, x):
    for p in params:
        x = layer(p, x)
    return x
x = jnp.zeros((1, {TOKENS}, W))
begin = time.perf_counter()
jax.jit(encoder).lower(params, x).compile()
print(time.perf_counter() - begin)
"""


def new_process(code, rounds, **environment):
    """The least of what processes of their own print, each a number in a line by itself; None where they fail."""
    runs = [subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) for _ in range(rounds)]
    return None if any(run.returncode for run in runs) else min(float(run.stdout) for run in runs)


def encoder(_):
    jax, _ = jax_functions()
    its, other = new_process(OURS, 5, RLX_CACHE=""), new_process(JAX, 3) if jax else None
    yield row(f"tracing and compiling an encoder of {LAYERS} layers, nothing on disk, s", "<= 0.5", its, its <= 0.5, jax=other)


def imports(_):
    code = "import time; begin = time.perf_counter(); import {}; print((time.perf_counter() - begin) * 1e3)"
    its = new_process(code.format("rlx"), 15)
    yield row("import rlx, ms", "<= 25", its, its <= 25, numpy=new_process(code.format("numpy"), 5))


def wheel(args):
    if args.wheel:
        megabytes = os.path.getsize(args.wheel) / 1e6
        yield row("the wheel, MB", "<= 25", megabytes, megabytes <= 25)


def generation(args):
    """Tokens a second behind the first one, ours and the command's in turn: medians, as what memory gives changes from second to second."""
    import llama_peers

    args.work.mkdir(parents=True, exist_ok=True)
    file, tokens = llama_peers.model_file(args, "Q4_0", layers=8), 128
    model = rlx.Model.open(file, context=2 * tokens)
    ours, theirs = [], []
    for _ in range(11):
        pieces = model.generate("a", max_tokens=tokens + 1)
        next(pieces)
        before, begin = len(pieces.ids), time.perf_counter()
        for _ in pieces:
            pass
        ours.append((len(pieces.ids) - before) / (time.perf_counter() - begin))
        said = subprocess.run([args.build / "rlx", "bench", file, "-p", "0", "-n", str(tokens), "-r", "1", "--json"], check=True, capture_output=True, text=True).stdout
        theirs.append(json.loads(said)["samples"][0])
    its, other = statistics.median(ours), statistics.median(theirs)
    yield row("Model.generate, tokens a second", "within 2% of rlx bench", its, its >= 0.98 * other, rlx_bench=other)


def rate(function, x, calls, count):
    """Calls a second of `count` threads, each of which makes so many."""
    def work():
        for _ in range(calls):
            function(x)

    group = [threading.Thread(target=work) for _ in range(count)]
    begin = time.perf_counter()
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()
    return count * calls / (time.perf_counter() - begin)


def three_functions():
    return rlx.jit(lambda x: rlx.sin(rlx.cos(rlx.tanh(x))))


def rate_of_one(size, calls):
    """Calls a second of one thread in a process that has one CPU."""
    code = f"import python_bars as bars, rlx; x = rlx.asarray(bars.vectors({size})[0]); print(max(bars.rate(bars.three_functions(), x, {calls}, 1) for _ in range(6)))"
    cpu = min(os.sched_getaffinity(0))
    made = subprocess.run([sys.executable, "-c", code], cwd=HERE, check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    return float(made.stdout)


def threads(_, count=8):
    """Long calls of one thread are shared by all CPUs: what threads gain there is counted from one thread on one CPU."""
    function = three_functions()
    for size, calls, bar in ((1000, 2000, 0.9), (16000, 600, 1.8), (30000, 300, 1.8)):
        x = rlx.asarray(vectors(size)[0])
        expected, same = function(x).numpy().tobytes(), []
        one = rate_of_one(size, calls) if bar > 1 else max(rate(function, x, calls, 1) for _ in range(5))
        many = max(rate(lambda x: same.append(function(x).numpy().tobytes() == expected) if len(same) < 100 else function(x), x, calls, count) for _ in range(5))
        yield row(f"{count} threads, calls of {1e6 / one:.0f} us: times the rate of one", f">= {bar} on two cores, the same bits", many / one, many >= bar * one and all(same))


def corpus(args):
    """Sentences a second, with the start of Ray's workers and of the command."""
    if not args.encoder:
        return
    import ray

    from rlx.data import Embed

    texts = [f"sentence {i} is about {['cats', 'dogs', 'ships', 'the weather of the north'][i % 4]}" for i in range(args.sentences)]
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    begin = time.perf_counter()
    rows = ray.data.from_items([{"text": text} for text in texts]).map_batches(
        Embed, fn_constructor_args=(str(args.encoder),), fn_constructor_kwargs={"threads": 1}, batch_size=512, compute=ray.data.ActorPoolStrategy(size=2))
    count = sum(len(batch["embedding"]) for batch in rows.iter_batches(batch_size=4096))
    ours = count / (time.perf_counter() - begin)
    ray.shutdown()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "texts")
        file.write_text("\n".join(texts) + "\n")
        begin = time.perf_counter()
        subprocess.run([args.build / "rlx", "embed", "--model", args.encoder, file, "--threads", "2", "--npy", pathlib.Path(folder, "all.npy")], check=True, capture_output=True)
        theirs = len(texts) / (time.perf_counter() - begin)
    yield row(f"{count} sentences by Ray Data, two workers, sentences a second", ">= 0.9 times rlx embed with two threads", ours, ours >= 0.9 * theirs, rlx_embed=theirs)


PARTS = {"calls": calls, "chains": chains, "encoder": encoder, "import": imports, "wheel": wheel, "generation": generation, "threads": threads, "corpus": corpus}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    for name in ("build", "work", "json", "wheel", "encoder"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    parser.add_argument("--sentences", type=int, default=100_000)
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"unknown parts {sorted(unknown)} (allowed: {', '.join(PARTS)})")
    return args


def main():
    args, rows = arguments(), []
    for name in args.parts or PARTS:
        for each in PARTS[name](args):
            rows.append(each)
            beside = "".join(f", {peer} {value:.4g}" for peer, value in each["peers"].items())
            print(f"{'met ' if each['met'] else 'MISS'} {each['work']}: {each['rlx']:.4g}{beside} ({each['bar']})", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"machine": machine.describe(), "command": machine.command(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
