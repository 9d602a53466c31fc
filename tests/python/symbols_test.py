"""Functions of arrays of which a size is a symbol: what they give is what they give for the number, or an Error of ours says which function
needs to know the size."""
import importlib
import inspect
import re

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import lax, nn

B = rlx.Dim("B", 8)
LINE, SQUARE = np.array([0.5, -1, 2], np.float32), np.float32([[3, 1, 0.5], [1, 4, 0.2], [0.5, 0.2, 5]])
MODULES = ["numpy", "numpy.linalg", "numpy.fft", "nn", "lax", "lax.linalg", *("scipy." + name for name in
           "linalg special stats signal ndimage fft interpolate integrate optimize".split())]  # fmt: skip
NO_ARRAYS = set("save savez load fromfile savetxt loadtxt genfromtxt expi exp1 expn frompyfunc printoptions set_printoptions cond switch".split())


def inputs(size):
    """Arrays and their axes that are symbols."""
    rng = np.random.default_rng(size)
    floats = lambda *shape: rng.uniform(0.1, 0.9, shape).astype(np.float32)  # noqa: E731
    square = floats(size, size)
    return [(floats(size), [0]), (floats(size, 3), [0]), (floats(3, size), [1]), ((square @ square.T + size * np.eye(size)).astype(np.float32), [0, 1]),
            (rng.integers(0, 3, size).astype(np.int32), [0])]  # fmt: skip


CALLS = {
    "x": lambda f, x: f(x), "x x": lambda f, x: f(x, x), "[x x]": lambda f, x: f([x, x]), "x line": lambda f, x: f(x, LINE),
    "x 1": lambda f, x: f(x, 1), "line x": lambda f, x: f(LINE, x), "x [0]": lambda f, x: f(x, [0]), "x 2 0": lambda f, x: f(x, 2, 0),
    "x 0.5": lambda f, x: f(x, 0.5), "x x x": lambda f, x: f(x, x, x), "n": lambda f, x: f(x.shape[0]), "shape": lambda f, x: f(x.shape),
    "x n": lambda f, x: f(x, x.shape[0]), "0 1 n": lambda f, x: f(0, 1, x.shape[0]), "x square": lambda f, x: f(x, SQUARE),
    "x axis 0": lambda f, x: f(x, axis=0), "x x same": lambda f, x: f(x, x, mode="same"),
}  # fmt: skip


def functions(module):
    for name in dir(module):
        function = getattr(module, name)
        if name[0] != "_" and name not in NO_ARRAYS and callable(function) and not isinstance(function, (type, rlx.DType)) and not inspect.ismodule(function):
            yield name, function


def leaves(result):
    return [np.asarray(leaf) for leaf in rlx.tree_util.tree_leaves(result)]


def known(function, x):
    """What it gives for the size as a number, or None."""
    try:
        return leaves(rlx.jit(lambda x: function(x))(x))
    except Exception:  # whatever it says of arguments that are not its
        return None


def check(name, function, x, expected, other, axes):
    """The same for a symbol and two numbers, or an Error; anything else that is raised fails."""
    compiled = rlx.jit(lambda x: function(x), dims={"x": {axis: B for axis in axes}})
    try:
        results = [(expected, leaves(compiled(x))), (known(function, other), leaves(compiled(other)))]
    except rlx.Error as error:
        assert re.match(r"[\w.]+: |an array of .* is being traced by", str(error)), f"{name}: {error}"
        return
    for one, symbolic in results:
        assert one is None or [(each.shape, each.dtype) for each in one] == [(each.shape, each.dtype) for each in symbolic], name
        for a, b in zip(one or [], symbolic):
            assert np.allclose(a, b, rtol=2e-4, atol=2e-5, equal_nan=True) if a.dtype.kind in "fc" else np.array_equal(a, b), name


@pytest.mark.parametrize("module", MODULES)
def test_a_symbol_gives_what_a_number_does_or_an_error_of_ours(module):
    for name, function in functions(lax.linalg if module == "lax.linalg" else importlib.import_module("rlx." + module)):
        for (x, axes), (other, _) in zip(inputs(5), inputs(4)):
            found = 2 if module == "scipy.special" else 0  # whose long formulas take their time to compile
            for call, called in CALLS.items():
                apply = lambda x, called=called: called(function, x)  # noqa: B023, E731: called at once
                if found < 3 and (expected := known(apply, x)):
                    found += 1
                    check(f"{name} of {call}, {x.dtype}{x.shape}", apply, x, expected, other, axes)


PICTURES, KERNEL, ROWS = np.ones((2, 3, 5, 4), np.float32), np.ones((2, 3, 2, 2), np.float32), np.array([[0], [2]])
ARGUMENTS = {
    "conv": lambda x: lax.conv(x, KERNEL, (1, 1), "SAME"), "conv_general_dilated": lambda x: lax.conv_general_dilated(x, KERNEL, (1, 1), [(1, 1), (0, 0)]),
    "conv, valid": lambda x: lax.conv(x, KERNEL, (1, 1), "VALID"), "conv by 2": lambda x: lax.conv(x, KERNEL, (2, 2), "SAME"),
    "conv_transpose": lambda x: lax.conv_transpose(x, np.ones((2, 2, 4, 3), np.float32), (2, 2), "SAME"),
    "conv_general_dilated_patches": lambda x: lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "SAME"),
    "nn.Conv": lambda x: nn.Conv(3, 2, (2, 2), key=rlx.random.key(0), padding=1)(x), "nn.GroupNorm": lambda x: nn.GroupNorm(3, 3)(x),
    "dot_general": lambda x: lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))), "reduce": lambda x: lax.reduce(x, np.float32(0), lax.add, (2,)),
    "reduce_window": lambda x: lax.reduce_window(x, np.float32(0), lax.add, (1, 1, 2, 1), (1, 1, 1, 1), "SAME"),
    "gather": lambda x: lax.gather(x[0, 0], ROWS, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
    "scatter_add": lambda x: lax.scatter_add(x[0, 0], ROWS, np.ones((2, 4), np.float32), lax.ScatterDimensionNumbers((1,), (0,), (0,))),
    "iota": lambda x: lax.broadcasted_iota("int32", x.shape, 2), "dynamic_update_slice_in_dim": lambda x: lax.dynamic_update_slice_in_dim(x, x[:, :, :1], 1, 2),
    "nn.unroll": lambda x: nn.unroll(nn.LSTMCell(4, 2, key=rlx.random.key(0)), jnp.moveaxis(x[:, 0], 1, 0)),
    "nn.Attention": lambda x: nn.Attention(4, 2, key=rlx.random.key(0))(x[:, 0]), "leslie": lambda x: rlx.scipy.linalg.leslie(x[0, 0, :, 0], x[0, 0, 1:, 0]),
    "lu_solve": lambda x: rlx.scipy.linalg.lu_solve(rlx.scipy.linalg.lu_factor(x[0, 0] @ x[0, 0].T + jnp.eye(x.shape[2])), x[0, 0]),
    "minimize": lambda x: rlx.scipy.optimize.minimize(lambda v: (v * v).sum(), x[0, 0, :, 0], method="BFGS").x,
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_functions_with_arguments_of_their_own(name):
    expected = known(ARGUMENTS[name], PICTURES)
    assert expected
    check(name, ARGUMENTS[name], PICTURES, expected, PICTURES[:, :, :4], [2])


WITH_NUMPY = {
    "cov": lambda np, x: np.cov(x.T), "cov of columns": lambda np, x: np.cov(x, rowvar=False), "corrcoef": lambda np, x: np.corrcoef(x.T, x[:, 0]),
    "gradient": lambda np, x: np.gradient(x, axis=0), "gradient by 2": lambda np, x: np.gradient(x, 2.0, axis=0),
    "stack": lambda np, x: np.stack([x, x], 1), "column_stack": lambda np, x: np.column_stack([x[:, 0], x]), "vstack": lambda np, x: np.vstack([x, x]),
    "hstack": lambda np, x: np.hstack([x, x]), "dstack": lambda np, x: np.dstack([x, x]), "concatenate": lambda np, x: np.concatenate([x, x[1:]]),
    "polyder": lambda np, x: np.polyder(x[:, 0]), "polyint": lambda np, x: np.polyint(x[:, 0]), "polyval": lambda np, x: np.polyval(x[:, 0], x[:, 1]),
    "delete": lambda np, x: np.delete(x, 0, 0), "delete the last": lambda np, x: np.delete(x, -1, 0), "insert": lambda np, x: np.insert(x, 0, 1.0, axis=0),
    "vander": lambda np, x: np.vander(x[:, 0]), "vander of 2": lambda np, x: np.vander(x[:, 0], 2), "rising": lambda np, x: np.vander(x[:, 0], increasing=True),
    "indices": lambda np, x: np.indices(x.shape), "correlate": lambda np, x: np.correlate(x[:, 0], LINE, "full"),
    "average": lambda np, x: np.average(x, 0, returned=True)[1], "linspace": lambda np, x: np.linspace(1, 2, x.shape[0]),
    "linspace of gaps": lambda np, x: np.linspace(1, 2, x.shape[0], endpoint=False), "geomspace": lambda np, x: np.geomspace(1, 8, x.shape[0]),
    "arange down": lambda np, x: np.arange(x.shape[0] - 1, -1, -1), "arange from below": lambda np, x: np.arange(-x.shape[0], 2),
    "fftfreq": lambda np, x: np.fft.fftfreq(x.shape[0], 0.5), "fftshift": lambda np, x: np.fft.fftshift(x), "ifftshift": lambda np, x: np.fft.ifftshift(x),
    "fft": lambda np, x: abs(np.fft.fft(x, axis=0, norm="ortho")), "digitize": lambda np, x: np.digitize(x, np.sort(x[:, 0])),
    "resize": lambda np, x: np.resize(x, (3, x.shape[0])), "pad": lambda np, x: np.pad(x, ((1, 0), (0, 0)), "linear_ramp"),
    "size times": lambda np, x: x * x.shape[0] - x.shape[0] / x, "compared": lambda np, x: (x < x.shape[0]) & (x != x.shape[0]) & (x.shape[0] > x),
    "equal": lambda np, x: np.round(x) == x.shape[0], "last": lambda np, x: x[x.shape[0] - 1], "sizes": lambda np, x: np.asarray(x.shape),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_NUMPY)
def test_what_needs_no_number_is_what_numpy_has(name):
    compiled = rlx.jit(lambda x: WITH_NUMPY[name](jnp, x), dims={"x": {0: B}})
    for size in (2, 5, 8):
        x = np.random.default_rng(size).uniform(0.5, 2, (size, 3)).astype(np.float32)
        assert np.allclose(compiled(x), WITH_NUMPY[name](np, x), rtol=1e-4, atol=1e-5), size


def test_more_that_needs_no_number():
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    of_rows = lambda function, x: rlx.jit(lambda x: function(x), dims={"x": {0: B}})(x)  # noqa: E731
    assert np.allclose(of_rows(lambda x: nn.logmeanexp(x, 0), x), np.log(np.exp(x).mean(0)), rtol=1e-5)
    assert np.allclose(of_rows(lambda x: rlx.scipy.linalg.toeplitz(x[:, 0]), x), np.float32([[x[abs(i - j), 0] for j in range(4)] for i in range(4)]))
    assert np.allclose(of_rows(lambda x: rlx.scipy.signal.convolve(x[:, 0], LINE, "same"), x), np.convolve(x[:, 0], LINE, "same"), atol=1e-5)
    filled = rlx.jit(lambda x: jnp.fill_diagonal(x, 7.0), dims={"x": {0: B, 1: B}})(x)
    assert np.array_equal(filled, np.where(np.eye(4, dtype=bool), np.float32(7), x))


def test_sizes_are_numbers_as_far_as_their_bounds_go():
    assert B < 9 and B >= 1 and not B > 8 and 0 < B and B - 1 >= 0 and min(B, B) == B and max(B, B + 1) == B + 1 and abs(-B) == B and B != None  # noqa: E711
    assert (8 * B + 11) // 8 == B + 1 and (8 * B + 11) % 8 == 3 and type(B - B) is int and B + np.int64(2) == B + 2


@pytest.mark.parametrize("words, function", [
    (r"packbits: \(-B\) % 8 depends on the size -B, any of -8..-1 \(allowed: known sizes\)", lambda x: jnp.packbits(x > 0)),
    (r"delete: B > 1 depends on the size B, any of 1..8 \(allowed: known sizes\)", lambda x: jnp.delete(x, 1)),
    (r"poly: a number of Python depends on the size B, any of 1..8", jnp.poly), (r"stack: the length of f32\[B\] is the symbol B", jnp.stack),
    (r"^B \* 1.5 depends on the size B, any of 1..8 \(allowed: known sizes, and rlx.asarray\(size\), its number as an array\)", lambda x: x.shape[0] * 1.5),
    (r"^a number of Python depends on the size B", lambda x: range(x.shape[0])),
    (r"lu: size B is symbolic where a fixed size is needed", lambda x: rlx.lu(x[None])),
    ("gaussian_kde: B < 2 depends on the size B", lambda x: rlx.scipy.stats.gaussian_kde(x)),
    (r"arange: a step of 2 from 0 to B \(allowed where a size is a symbol: 1, -1\)", lambda x: jnp.arange(0, x.shape[0], 2)),
])  # fmt: skip
def test_errors_name_the_function_and_the_size(words, function):
    with pytest.raises(rlx.Error, match=words):
        rlx.jit(lambda x: function(x), dims={"x": {0: B}})(LINE)
