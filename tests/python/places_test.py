"""Gathers and scatters of rlx.lax, sums of segments and trees as vectors, against loops of NumPy."""
import functools

import numpy as np
import pytest

import rlx
from rlx import lax, tree_util
from rlx.flatten_util import ravel_pytree

RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, 3)).astype(np.float32)
IDS = np.array([0, 2, 2, 5, 1, -1, 9], np.int32)
COMBINE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
ROWS = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))


def segments(name, x, ids, count):
    limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else np.finfo(np.float32)
    start = {"sum": 0, "prod": 1, "max": limits.min if x.dtype.kind in "iu" else -np.inf, "min": limits.max if x.dtype.kind in "iu" else np.inf}
    result = np.full((count, *x.shape[1:]), start[name], x.dtype)
    for i, row in zip(ids, x):
        if 0 <= i < count:
            result[i] = COMBINE[name](result[i], row)
    return result


@pytest.mark.parametrize("name", COMBINE)
def test_segments_are_combined(name):
    function = getattr(rlx.ops, f"segment_{name}")
    for x in (X, (X * 10).astype(np.int32), abs(X * 10).astype(np.uint8)):
        expected = segments(name, x, IDS, 6)
        for options in ({}, {"bucket_size": 3}, {"indices_are_sorted": False, "unique_indices": False}):
            seen = rlx.jit(lambda x, ids: function(x, ids, 6, **options))(x, IDS)
            assert seen.dtype == rlx.asarray(x).dtype and np.allclose(seen, expected, rtol=1e-6)
    assert np.allclose(function(X, IDS, 6, mode="clip"), segments(name, X, np.clip(IDS, 0, 5), 6))
    assert function(X[:4], IDS[:4]).shape == (6, 3) and function(X[:0], IDS[:0], 2).shape == (2, 3)
    batch = rlx.vmap(lambda x: function(x, IDS, 6))(np.stack([X, -X]))
    assert np.allclose(batch[1], segments(name, -X, IDS, 6))
    with pytest.raises(rlx.Error, match="num_segments is -1"):
        function(X, IDS, -1)


@pytest.mark.parametrize("name", COMBINE)
def test_derivatives_of_segments_follow_finite_differences(name):
    x, v = X.astype(np.float64), RNG.normal(size=X.shape)
    total = lambda x: (getattr(rlx.ops, f"segment_{name}")(x, np.abs(IDS) % 3, 3) * np.arange(1.0, 4)[:, None]).sum()
    slope = (float(total(x + 1e-6 * v)) - float(total(x - 1e-6 * v))) / 2e-6
    assert np.isclose((rlx.grad(total)(x).numpy() * v).sum(), slope, rtol=1e-6)
    assert np.isclose(float(rlx.jvp(total, (x,), (v,))[1]), slope, rtol=1e-6)


def test_segments_of_bool():
    assert rlx.ops.segment_max(X > 0, IDS, 4).tolist() == segments("max", (X > 0).astype(np.uint8), IDS, 4).astype(bool).tolist()
    assert rlx.ops.segment_min(X > 0, IDS, 4).tolist() == segments("min", (X > 0).astype(np.uint8), IDS, 4).astype(bool).tolist()


SCATTERS = {"scatter": lambda a, b: b, "scatter_add": np.add, "scatter_sub": np.subtract, "scatter_mul": np.multiply, "scatter_min": np.minimum,
            "scatter_max": np.maximum}  # fmt: skip


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("mode", [None, "drop", "clip", lax.GatherScatterMode.CLIP])
def test_windows_are_scattered(name, mode):
    x, at, updates = X[:5], np.array([[0], [3], [3], [-1], [7]], np.int32), RNG.normal(size=(5, 3)).astype(np.float32)
    expected = x.copy()
    for (i,), row in zip(at, updates):
        i = i if mode in (None, "drop") else np.clip(i, 0, 4)
        if 0 <= i < 5:
            expected[i] = SCATTERS[name](expected[i], row)
    function = functools.partial(getattr(lax, name), dimension_numbers=ROWS, mode=mode)
    assert np.allclose(function(x, at, updates), expected) and np.allclose(rlx.jit(function)(x, at, updates), expected)


def test_a_function_is_applied_to_windows():
    result = lax.scatter_apply(X, np.array([[0], [2], [9]], np.int32), lambda x: x * x, ROWS, update_shape=(3, 3))
    assert np.allclose(result, np.where(np.isin(np.arange(7), [0, 2])[:, None], X * X, X))


def test_windows_are_gathered():
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    at = np.array([[0], [6], [9]], np.int32)
    gather = lambda x, **options: lax.gather(x, at, numbers, (1, 2), **options)
    assert gather(X).tolist() == gather(X, mode="clip").tolist() == X[[0, 6, 6], :2].tolist()
    assert gather(X, mode="fill", fill_value=3.5)[2].tolist() == [3.5, 3.5] and np.isnan(gather(X, mode="fill").numpy()[2]).all()
    assert gather((X * 9).astype(np.int32), mode=lax.GatherScatterMode.FILL_OR_DROP)[2].tolist() == [-(2**31)] * 2
    with pytest.raises(rlx.Error, match="mode is 'wrap' .allowed: clip"):
        gather(X, mode="wrap")


def test_a_tree_is_a_vector():
    tree = {"a": np.float32([[1, 2], [3, 4]]), "b": (np.int32(3), [np.float32(7)])}
    flat, unravel = ravel_pytree(tree)
    assert flat.tolist() == [1, 2, 3, 4, 3, 7] and flat.dtype == rlx.float32
    back = unravel(flat * 2)
    assert back["a"].tolist() == [[2, 4], [6, 8]] and back["b"][0].dtype == rlx.int32 and back["b"][1][0].item() == 14
    slope = rlx.jit(rlx.grad(lambda t: (ravel_pytree(t)[0] ** 2).sum()))({"a": np.float32([1, 2]), "b": np.float32(3)})
    assert slope["a"].tolist() == [2, 4] and slope["b"].item() == 6
    assert ravel_pytree(())[0].shape == (0,) and ravel_pytree(())[1](rlx.numpy.zeros(0)) == ()


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


class Name(str):
    pass


def test_classes_become_containers_by_the_names_of_jax():
    keys = tree_util.GetAttrKey("first"), tree_util.GetAttrKey("second")
    tree_util.register_pytree_with_keys(Pair, lambda p: (tuple(zip(keys, (p.first, p.second))), None), lambda _, children: Pair(*children))
    tree_util.register_static(Name)
    tree = {"x": [1, (2, 3)], "y": Pair(4, {"q": 5}), "z": Name("n")}
    paths, structure = tree_util.tree_flatten_with_path(tree)
    assert [(tree_util.keystr(path), leaf) for path, leaf in paths] == [("['x'][0]", 1), ("['x'][1][0]", 2), ("['x'][1][1]", 3), ("['y'].first", 4),
                                                                        ("['y'].second['q']", 5)]  # fmt: skip
    assert [type(key) for key in paths[1][0]] == [tree_util.DictKey, tree_util.SequenceKey, tree_util.SequenceKey]
    assert paths[1][0][1].idx == 1 and paths[3][0][1].name == "first" and structure == tree_util.tree_structure(tree)
    called = tree_util.tree_map(lambda x: x + 1, tree_util.Partial(max, 6, key=2))
    assert called.func is max and called.args == (7,) and called.keywords == {"key": 3}
    assert tree_util.all_leaves([1, 2]) and not tree_util.all_leaves([1, [2]])
    assert tree_util.treedef_is_leaf(tree_util.tree_structure(1)) and not tree_util.treedef_is_leaf(tree_util.tree_structure((1,)))
    assert tree_util.treedef_children(tree_util.tree_structure((1, 2)))[0] == tree_util.tree_structure(0)
    assert tree_util.tree_broadcast({"a": 1, "b": (2, 3)}, {"a": [0, 0], "b": (0, {"c": 0})}) == {"a": [1, 1], "b": (2, {"c": 3})}
    assert tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcde")) == "((ab)(c(de)))"


def test_an_axis_outside_is_an_index_error():
    for function in (lambda: rlx.numpy.expand_dims(X, 3), lambda: rlx.numpy.expand_dims(X, (0, -6)), lambda: rlx.numpy.moveaxis(X, 2, 0)):
        with pytest.raises(IndexError, match="is out of range") as caught:
            function()
        assert isinstance(caught.value, rlx.Error)
