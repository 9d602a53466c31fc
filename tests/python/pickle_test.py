"""Compiled functions and what stands beside them go to other processes by what they are made of; weights of files by the path."""
import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@rlx.jit
def doubled(x):
    return x * 2


def scale(x, by, kind="sum"):
    return getattr(jnp, kind)(x, axis=1) * by


@rlx.custom_vjp
def straight(x):
    return jnp.round(x)


straight.defvjp(lambda x: (jnp.round(x), None), lambda kept, dy: (dy,))


def test_a_decorated_function_is_found_by_its_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled and pickle.loads(pickle.dumps(straight)) is straight
    assert b"doubled" in pickle.dumps(doubled) and len(pickle.dumps(doubled)) < 100


def test_a_compiled_function_is_pickled_with_its_options():
    f = rlx.jit(scale, static_argnames="kind", dims={"x": {0: rlx.Dim("B", 8)}})
    f(X, 2.0)
    again = pickle.loads(pickle.dumps(f))
    assert again is not f and again.cache_size() == 0
    assert np.array_equal(again(X, 2.0, kind="max"), f(X, 2.0, kind="max"))
    again(np.ones((3, 3), np.float32), 2.0, kind="max")
    assert again.cache_size() == 1
    donating = pickle.loads(pickle.dumps(rlx.jit(scale, donate_argnums=0, device="cpu")))
    assert donating.donate_argnums == (0,) and donating.device == "cpu"


def test_copies_are_the_function_itself():
    assert copy.copy(doubled) is doubled and copy.deepcopy([doubled, straight]) == [doubled, straight]
    symbol = rlx.Dim("B", 8)
    assert copy.deepcopy(symbol) == symbol and pickle.loads(pickle.dumps(symbol * 2 + 1)) == symbol * 2 + 1


class Scaler:
    def __init__(self, by):
        self.by = by

    @rlx.jit
    def scaled(self, x):
        return x * self.by


def test_compiled_methods_are_pickled():
    assert np.array_equal(pickle.loads(pickle.dumps(Scaler(3.0).scaled))(X), X * 3)


MAIN = """
import multiprocessing, sys
import cloudpickle, numpy as np, rlx, rlx.numpy as jnp
@rlx.jit
def doubled(x):
    return x * 2 if x.ndim else doubled(x)
@rlx.custom_jvp
def sine(x):
    return jnp.sin(x)
sine.defjvp(lambda x, dx: (sine(x[0]), dx[0] * 7))
w = rlx.array([1.0, 2.0, 3.0])
both = rlx.jit(lambda x: rlx.grad(lambda v: (sine(v) * w).sum())(doubled(x)))
if __name__ == "__main__":
    sys.stdout.buffer.write(cloudpickle.dumps((both, doubled)))
"""


def test_cloudpickle_takes_functions_of_a_program_to_others():
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(rlx.__file__))}
    data = subprocess.run([sys.executable, "-c", MAIN], capture_output=True, check=True, env=environment).stdout
    both, double = cloudpickle.loads(data)
    assert both(X[0]).tolist() == [7, 14, 21] and np.array_equal(double(X), X * 2)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_processes_call_compiled_functions(method):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        for function in (doubled, rlx.jit(np_free)):
            assert np.array_equal(pool.submit(function, X).result(timeout=120), X * 2)


def np_free(x):
    return x + x


def is_mapped(path):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return [line.split()[1] for line in maps if line.rstrip().endswith(path)]


def used(weights, path):
    return is_mapped(path), float(weights["w"].sum()), weights["w"]


def test_weights_of_a_file_go_to_other_processes_by_its_path(tmp_path):
    path = str(tmp_path / "w.safetensors")
    rlx.save_safetensors(path, {"w": np.ones((1000, 100), np.float32), "b": np.arange(3)})
    weights = rlx.load_safetensors(path)
    f = rlx.jit(lambda x: x @ weights["w"] + jnp.sum(weights["b"]))
    data = cloudpickle.dumps(f)
    assert len(data) < 5000 and np.array_equal(cloudpickle.loads(data)(np.ones((1, 1000), np.float32)), np.full((1, 100), 1003))
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        rights, total, again = pool.submit(used, weights, path).result(timeout=120)
    assert rights and all("w" not in each for each in rights) and total == 100000 and np.array_equal(again, weights["w"])
    assert len(pickle.dumps(weights)) > 400000  # what is kept in a file does not hang on another one


def test_a_file_that_has_changed_gives_no_weights(tmp_path):
    path = str(tmp_path / "w.safetensors")
    rlx.save_safetensors(path, {"w": X})
    weights = rlx.load_safetensors(path)
    data = cloudpickle.dumps(weights)
    os.utime(path, ns=(1, 1))
    with pytest.raises(rlx.Error, match="w.safetensors: the file .* has changed"):
        cloudpickle.loads(data)
    again = cloudpickle.loads(cloudpickle.dumps(weights))  # by value
    os.remove(path)
    assert np.array_equal(again["w"], X)


def test_executables_are_pickled_by_graph_and_session(tmp_path):
    graph = rlx.Graph("g")
    w, s = graph.param("w", (3,)), graph.state("s", ())
    y = (graph.input("x", (3,)) * w).sum() + s
    graph.set_outputs({"y": y, "s": y})
    executable = rlx.Session(threads=1).compile(graph)
    executable.set_param("w", np.float32([1, 2, 3]))
    assert float(executable.run({"x": X[0]})["y"]) == 8
    again = pickle.loads(pickle.dumps(executable))
    for each in (executable, again):
        assert float(each.run({"x": X[0]})["y"]) == 16


def test_pickles_hold_no_programs():
    f = rlx.jit(np_free)
    before = len(pickle.dumps(f))
    for size in range(1, 4):
        f(np.ones(size, np.float32))
    assert len(pickle.dumps(f)) == before
