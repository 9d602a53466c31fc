"""Calls of compiled functions are found without Python, whatever they are called with; an import takes what it needs."""
import collections
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Pair = collections.namedtuple("Pair", "a b")


class Box:
    def __init__(self, value, name):
        self.value, self.name = value, name


rlx.tree.register(Box, lambda box: ((box.value,), box.name), lambda name, children: Box(children[0], name))


def test_trees_come_back_as_they_were_given():
    trees = [X, (X, [X, None]), {"b": X, "a": {"c": (X,)}}, Pair(X, {"k": X}), [Box(X, "n"), ()], {"x": {}}]
    identity = rlx.jit(lambda tree: tree)
    for tree in trees:
        for _ in range(2):  # traced, then found
            result = identity(tree)
            assert rlx.tree.structure(result) == rlx.tree.structure(tree)
            assert all(np.array_equal(leaf.numpy(), X) for leaf in rlx.tree.leaves(result))
    assert identity.cache_size() == len(trees) and isinstance(identity(trees[3]), Pair) and identity(trees[4])[0].name == "n"


def test_structures_are_told_apart():
    differ = [(X, X), [X, X], (X, X, None), {"a": X, "b": X}, {"a": X, "c": X}, Pair(X, X), (Box(X, 1), X), (Box(X, 2), X)]
    structures = [rlx.tree.structure(tree) for tree in differ]
    assert len(set(structures)) == len(differ)
    assert str(structures[3]) == "{'a': *, 'b': *}" and str(structures[0]) == "(*, *)" and str(rlx.tree.structure((X,))) == "(*,)"
    with pytest.raises(rlx.Error, match="do not compare"):
        rlx.tree.flatten({1: X, "a": X})


def test_every_kind_of_array_is_an_argument():
    traces = []

    @rlx.jit
    def double(x):
        traces.append(x.shape)
        return x + x

    strided, reverse = np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2], X[::-1]
    read_only = X.copy()
    read_only.setflags(write=False)
    for array in (X, strided, reverse, read_only, X.astype(">f4"), rlx.asarray(X)):
        assert np.array_equal(double(array).numpy(), array * 2)
    assert traces == [(3, 4)]
    for dtype in (np.int8, np.uint64, np.float64, np.complex64, ml_dtypes.bfloat16, np.float16, bool):
        for _ in range(2):
            array = np.ones(3, dtype)
            assert np.array_equal(rlx.jit(lambda x: x)(array).numpy(), array)
    for empty in (np.zeros((0, 3), np.float32), np.float32(2), np.zeros((), np.float32)):
        assert double(empty).shape == np.shape(empty)
    assert double(2.5).tolist() == 5 and double(True + 0).tolist() == 2
    with pytest.raises(rlx.Error, match="element type"):
        double(np.array([object()]))


def test_memory_of_numpy_is_read_when_it_is_called():
    changing = np.ones(3, np.float32)
    double = rlx.jit(lambda x: x * 2)
    first = double(changing)
    changing[:] = 5
    assert first.tolist() == [2, 2, 2] and double(changing).tolist() == [10, 10, 10]
    same = rlx.jit(lambda x: x)(changing)
    changing[:] = 7
    assert same.tolist() == [5, 5, 5]


def test_results_that_are_kept_keep_their_values():
    large = np.ones(1 << 18, np.float32)
    add = rlx.jit(lambda x, y: (x + y, x.sum(), x - y))
    kept = [add(large, np.float32(i)) for i in range(6)]
    for i, (total, elements, difference) in enumerate(kept):
        assert np.all(total.numpy() == 1 + i) and float(elements) == 1 << 18 and np.all(difference.numpy() == 1 - i)
    view = kept[0][0].numpy()
    del kept, total, difference
    add(large, np.float32(9))
    assert np.all(view == 1)


def test_static_and_symbolic_arguments_are_found_again():
    calls = []

    def scale(x, kind, factor=1.0):
        calls.append(kind)
        return getattr(jnp, kind)(x, axis=1) * factor

    compiled = rlx.jit(scale, static_argnames="kind", dims={"x": {0: rlx.Dim("B", 64)}})
    for rows in (2, 5):
        for kind in ("sum", "max"):
            assert np.allclose(compiled(X[:1].repeat(rows, 0), kind, factor=2.0).numpy(), getattr(X[:1].repeat(rows, 0), kind)(1) * 2)
    assert calls == ["sum", "max"] and compiled.cache_size() == 2


def test_operators_take_numbers_of_every_kind_again_and_again():
    x = rlx.asarray(X)
    for _ in range(2):
        assert (x + 1).tolist() == (X + 1).tolist() and (x + 1.5).tolist() == (X + 1.5).tolist() and (x + True).dtype == rlx.float32
        assert (x * 2 - x).tolist() == X.tolist() and (2 * x - 1 / (x + 1)).shape == (3, 4)
        assert (rlx.array([1, 2]) + 1).dtype == rlx.int32 and (rlx.array([1, 2]) + 1.0).dtype == rlx.float32
        assert (x + X).tolist() == (X + X).tolist() and (X + x).tolist() == (X + X).tolist()
        assert (x == 3).tolist() == (X == 3).tolist() and ((x > 2) & (x < 5)).tolist() == ((X > 2) & (X < 5)).tolist()
    with pytest.raises(TypeError):
        x + "1"
    assert (x == "1") is False
    for _ in range(2):
        with pytest.raises(rlx.Error, match="shape|size|fit"):
            x + np.ones(5, np.float32)


def test_threads_share_programs_while_they_are_made():
    compiled = rlx.jit(lambda x, k: x * 2 + k)
    wrong = []

    def work(i):
        for k in range(200):
            x = np.full(1 + (i + k) % 5, k, np.float32)
            if not np.array_equal(compiled(x, np.float32(i)).numpy(), x * 2 + i):
                wrong.append((i, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and compiled.cache_size() == 5


def test_an_import_takes_no_module_that_is_not_used():
    code = "import sys, rlx; print(sorted({'numpy', 'ml_dtypes', 'json', 're', 'inspect', 'rlx.numpy', 'rlx.ops'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    assert {"softmax", "jit", "grad", "numpy", "tree"} <= set(dir(rlx))
