"""Times what a call from Python costs: microseconds, the fastest of many rounds. NumPy and jax beside, where they are there.

Usage: PYTHONPATH=<the package> python3 bench/python_calls.py
"""
import subprocess
import sys
import threading
import time
import timeit

import numpy as np

import rlx

SMALL, LARGE = (4, 1000), 1 << 20


def microseconds(call, count=200, rounds=100):
    call(), call()
    return min(timeit.repeat(call, number=count, repeat=rounds)) / count * 1e6


def row(name, **figures):
    print(f"{name:34}" + "".join(f"{what} {value:9.2f}   " for what, value in figures.items()), flush=True)


def chain(x):
    for _ in range(5):
        x = x * 1.5 + 0.5
    return x


def vectors(size):
    return np.ones(size, np.float32), np.full(size, 2, np.float32)


def peers():
    """jax.jit of the same function, and how its arrays are made; nothing without jax."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    return jax.jit(lambda x, y: x + y), jax.jit(chain), jnp.asarray


def time_calls(size, jax):
    add = rlx.jit(lambda x, y: x + y)
    tree = rlx.jit(lambda p, y: {"sum": p["x"] + y})
    a, b = vectors(size)
    x, y = rlx.asarray(a), rlx.asarray(b)
    row(f"jit, {size} elements", own=microseconds(lambda: add(x, y)), numpy=microseconds(lambda: add(a, b)),
        dicts=microseconds(lambda: tree({"x": x}, y)))  # fmt: skip
    row(f"eager a + b, {size} elements", own=microseconds(lambda: (x + y).block_until_ready()), noted=microseconds(lambda: x + y),
        numpy_itself=microseconds(lambda: a + b))  # fmt: skip
    if jax:
        add, _, array = jax
        p, q = array(a), array(b)
        row(f"jax.jit, {size} elements", own=microseconds(lambda: add(p, q).block_until_ready()),
            numpy=microseconds(lambda: add(a, b).block_until_ready()), eager=microseconds(lambda: (p + q).block_until_ready()))  # fmt: skip


def time_large(jax):
    a, b = vectors(LARGE)
    x, y = rlx.asarray(a), rlx.asarray(b)
    add, compiled = rlx.jit(lambda x, y: x + y), rlx.jit(chain)
    few = {"count": 5, "rounds": 40}
    row("a + b of 1M elements", eager=microseconds(lambda: (x + y).block_until_ready(), **few), jit=microseconds(lambda: add(x, y), **few),
        numpy_itself=microseconds(lambda: a + b, **few))  # fmt: skip
    row("ten operations on 1M elements", eager=microseconds(lambda: chain(x).block_until_ready(), **few),
        jit=microseconds(lambda: compiled(x), **few), numpy_itself=microseconds(lambda: chain(a), 1, 20))  # fmt: skip
    if jax:
        _, compiled, array = jax
        p = array(a)
        row("jax.jit, ten operations", own=microseconds(lambda: compiled(p).block_until_ready(), **few))


def time_threads(size, calls, threads=8):
    """The rate of several threads that call one function, as a multiple of one thread's."""
    x = rlx.asarray(vectors(size)[0])
    function = rlx.jit(lambda x: rlx.sin(rlx.cos(rlx.tanh(x))))
    function(x), function(x)

    def work():
        for _ in range(calls):
            function(x)

    def seconds(count):
        group = [threading.Thread(target=work) for _ in range(count)]
        begin = time.perf_counter()
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()
        return (time.perf_counter() - begin) / count

    row(f"{threads} threads, {size} elements", rate_of_one=min(seconds(1) for _ in range(5)) / min(seconds(threads) for _ in range(5)),
        one_call=microseconds(lambda: function(x), 20, 50))  # fmt: skip


def time_import():
    code = "import time; wall, cpu = time.perf_counter(), time.process_time(); import rlx; print(time.perf_counter() - wall, time.process_time() - cpu)"
    runs = [[float(t) * 1e3 for t in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()] for _ in range(15)]
    row("import rlx, milliseconds", wall=min(run[0] for run in runs), processor=min(run[1] for run in runs))


def main():
    jax = peers()
    time_import()
    for size in SMALL:
        time_calls(size, jax)
    time_large(jax)
    time_threads(1000, 2000)
    time_threads(30000, 300)


main()
