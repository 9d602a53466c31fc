"""Arguments of NumPy and jax.numpy beside the usual ones, and the names that few use, against NumPy."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

A = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
B = np.random.default_rng(4).normal(size=(3, 4)).astype(np.float32)
V = np.float32([1, 3, 4, 7])
N = np.int32([[3, 1, 0, 2], [7, 0, 5, 3], [0, 2, 2, 9]])
MASK = A > 0
BYTES = np.uint8([[1, 130, 255], [0, 7, 64]])


def compare(seen, expected):
    if isinstance(expected, (tuple, list)):
        assert len(seen) == len(expected)
        for one, other in zip(seen, expected):
            compare(one, other)
        return
    seen = np.asarray(seen)
    assert seen.shape == np.shape(expected), (seen.shape, np.shape(expected))
    assert np.allclose(seen, expected, rtol=2e-5, atol=2e-6, equal_nan=True), (seen, expected)


CASES = [(name, (A,), {"where": MASK, **more}) for name in ("sum", "prod", "mean", "var", "std", "nansum", "nanprod")
         for more in ({}, {"axis": 1}, {"axis": 0, "keepdims": True})]  # fmt: skip
CASES += [("max", (A,), {"where": MASK, "initial": -1.0, "axis": 1}), ("min", (A,), {"where": MASK, "initial": 0.5}), ("max", (N,), {"where": N > 2, "initial": 0, "axis": 0}),
          ("sum", (A,), {"initial": 2.0}), ("prod", (A,), {"initial": 2.0, "axis": 0}), ("all", (A,), {"where": MASK, "axis": 1}), ("any", (MASK,), {"where": N > 2}),
          ("var", (A,), {"dtype": "float64"}), ("mean", (A,), {"where": MASK[0]})]  # fmt: skip
CASES += [("linspace", (0, 1, 5), {"retstep": True}), ("linspace", (A[0], B[0], 5), {}), ("linspace", (A, 2.0, 3), {"axis": 1}), ("linspace", (A[0], V, 4), {"endpoint": False}),
          ("meshgrid", (V, A[0, :3]), {"sparse": True}), ("meshgrid", (V, A[0, :3]), {"indexing": "ij", "sparse": True}), ("reshape", (A, (4, 3)), {"order": "F"}),
          ("reshape", (A, (2, -1)), {"order": "F"}), ("ravel", (A,), {"order": "F"}), ("concatenate", ([N, N],), {"dtype": "float32"}), ("stack", ([N, N],), {"dtype": "float32"}),
          ("take", (A, np.array([0, 5, -1]), 1), {"mode": "clip"}), ("take", (A, np.array([0, 5, -7]), 1), {"mode": "wrap"}), ("take", (A, np.array([[0, -1]])), {}),
          ("interp", (np.float32([-1, 2, 9]), V, A[0]), {"left": 5.0, "right": -5.0}), ("interp", (np.float32([-9, 2, 9]), V, A[0]), {"period": 6.0}),
          ("trace", (N,), {"offset": 1, "dtype": "float32"}), ("unique", (N,), {"axis": 0}), ("unique", (N,), {"return_inverse": True, "return_counts": True}),
          ("unique", (np.float32([1, np.nan, np.nan]),), {}), ("unique", (np.float32([1, np.nan, np.nan]),), {"equal_nan": False}), ("where", (MASK,), {}),
          ("intersect1d", (N, V), {"return_indices": True}), ("cov", (A,), {"fweights": np.array([1, 2, 1, 3])}), ("cov", (A,), {"aweights": V}),
          ("cov", (A, B), {"aweights": V, "fweights": np.array([1, 2, 1, 3]), "ddof": 0}), ("isin", (N, [2, 3]), {"assume_unique": False}), ("sort", (A,), {"kind": "stable"}),
          ("einsum", (A, [0, 1], B, [0, 1], [0]), {}), ("einsum", ("ij,ij", A, B), {"optimize": True}), ("array", (V,), {"ndmin": 3}), ("apply_over_axes", (np.sum, A, [0, 1]), {}),
          ("mask_indices", (3, np.triu), {}), ("packbits", (N,), {}), ("packbits", (N,), {"axis": 1, "bitorder": "little"}), ("unpackbits", (BYTES,), {}),
          ("unpackbits", (BYTES,), {"axis": 0}), ("unpackbits", (BYTES,), {"axis": 1, "count": 20, "bitorder": "little"}), ("unpackbits", (BYTES[0],), {"count": -3}),
          ("bitwise_count", (N,), {}), ("bitwise_count", (-N,), {}), ("frexp", (np.float32([0, 1, -3, 0.1, 1e-30, 3e38, np.inf, np.nan]),), {}),
          ("spacing", (np.float32([1, -2, 1e10]),), {}), ("histogramdd", (A[:, :2],), {"bins": 3}), ("histogramdd", (A[:, :2], (2, 3), ((-1, 1), (-2, 2))), {"density": True}),
          ("histogram2d", (A[0], B[0]), {"bins": 3}), ("histogram2d", (A[0], B[0]), {"bins": 2, "weights": V, "range": ((-2, 2), (-2, 2))}),
          ("fromstring", ("1 2 3",), {"sep": " ", "dtype": "float32"}), ("frombuffer", (V.tobytes(),), {"dtype": "float32"}), ("fromiter", (range(3),), {"dtype": "int32"})]  # fmt: skip


@pytest.mark.parametrize("name,args,options", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_function(name, args, options):
    mine = [getattr(jnp, each.__name__) if callable(each) else each for each in args]
    with np.errstate(all="ignore"):
        compare(getattr(jnp, name)(*mine, **options), getattr(np, name)(*args, **options))


def test_elements_and_reductions_take_out_and_where():
    memory = np.full((3, 4), 9, np.float32)
    expected = memory.copy()
    assert jnp.add(A, B, out=memory, where=MASK) is memory
    compare(memory, np.add(A, B, out=expected, where=MASK))
    assert jnp.exp(A, out=memory) is memory
    compare(memory, np.exp(A))
    total = np.zeros(4, np.float32)
    assert jnp.sum(A, axis=0, out=total) is total
    compare(total, A.sum(0))
    half = np.zeros((3, 4), np.float16)
    jnp.multiply(A, 2, out=half)
    compare(half.astype(np.float32), (A * 2).astype(np.float16).astype(np.float32))
    compare(jnp.sqrt(A, where=MASK), np.where(MASK, np.sqrt(np.abs(A)), 0))
    with pytest.raises(rlx.Error, match="does not change"):
        jnp.add(A, B, out=rlx.asarray(A))
    with pytest.raises(rlx.Error, match="initial"):
        jnp.max(A, where=MASK)


def test_sizes_that_are_given_let_functions_compile():
    x = np.int32([0, 4, 0, 5, 6])
    compare(rlx.jit(lambda x: jnp.nonzero(x, size=4, fill_value=-1)[0])(x), [1, 3, 4, -1])
    compare(rlx.jit(lambda x: jnp.where(x > 4, size=2)[0])(x), [3, 4])
    compare(rlx.jit(lambda x: jnp.argwhere(x, size=3))(x), np.argwhere(x))
    compare(jnp.unique(np.int32([3, 1, 3]), size=4), [1, 3, 1, 1])
    compare(jnp.unique(np.int32([3, 1, 3]), size=4, fill_value=7), [1, 3, 7, 7])
    compare(jnp.union1d(x, [9], size=6, fill_value=0), [0, 4, 5, 6, 9, 0])
    compare(rlx.jit(lambda x, n: jnp.repeat(x, n, total_repeat_length=7))(V, np.int32([2, 0, 3, 1])), [1, 1, 4, 4, 4, 7, 7])
    compare(jnp.take(A, np.array([0, 9]), 1, mode="fill"), np.stack([A[:, 0], np.full(3, np.nan)], 1))
    compare(jnp.take_along_axis(A, np.array([[0, 9]] * 3), 1, fill_value=5.0), np.stack([A[:, 0], np.full(3, 5.0)], 1))
    compare(jnp.take_along_axis(np.float32([1, 2, 3]), np.array([-1, -9, 9]), 0, mode="clip"), np.float32([3, 1, 3]))
    for name in ("int8", "int64", "uint8", "uint64"):  # JAX's fill
        ends = np.iinfo(name)
        compare(jnp.take(np.ones(2, name), np.array([0, 9]), mode="fill"), np.array([1, ends.max if name[0] == "u" else ends.min], name))


def test_grids_and_joined_vectors():
    for index in (np.s_[0:3, 1:9:2], np.s_[0:1:3j, 0:2], np.s_[2:5]):
        compare(jnp.mgrid[index], np.mgrid[index])
        compare(jnp.ogrid[index], np.ogrid[index])
    compare(jnp.r_[1:4, 0, [5, 6]], np.r_[1:4, 0, [5, 6]])
    compare(jnp.c_[V, A[0]], np.c_[V, A[0]])
    compare(jnp.c_[A, V[:3]], np.c_[A, V[:3]])


def test_vectorize_names_axes():
    dot = lambda a, b: (a * b).sum()  # noqa: E731
    for given in (A, V):
        compare(jnp.vectorize(dot, signature="(n),(n)->()")(given, V), np.vectorize(dot, signature="(n),(n)->()")(given, V))
    compare(jnp.vectorize(lambda x, y: jnp.where(x > y, x, y))(A, V), np.maximum(A, V))
    compare(jnp.vectorize(lambda x, n: x**n, excluded=(1,))(A, 2), A**2)
    with pytest.raises(rlx.Error, match="signature"):
        jnp.vectorize(dot, signature="n,n->")(V, V)


def test_new_arrays_from_old_ones():
    expected = A.copy()
    np.put(expected, [0, 5], [7, 8])
    compare(jnp.put(A, [0, 5], [7, 8]), expected)
    expected = A.copy()
    np.place(expected, MASK, [1, 2])
    compare(jnp.place(A, MASK, [1, 2]), expected)
    with pytest.raises(TypeError, match="at\\[index\\]"):
        rlx.asarray(V)[0] = 1


def test_files_of_arrays(tmp_path):
    jnp.save(tmp_path / "a.npy", A)
    compare(jnp.load(tmp_path / "a.npy"), A)
    jnp.savez(tmp_path / "b.npz", A, v=jnp.asarray(V))
    compare(jnp.load(tmp_path / "b.npz")["v"], V)
    A.tofile(tmp_path / "c")
    compare(jnp.fromfile(tmp_path / "c"), A.reshape(-1))


def test_kinds_of_types():
    for kind in ("floating", "integer", "signedinteger", "unsignedinteger", "inexact", "complexfloating", "number"):
        for name in ("float32", "int8", "uint16", "complex64", "bool"):
            assert jnp.issubdtype(name, getattr(jnp, kind)) == jnp.issubdtype(name, getattr(np, kind)) == np.issubdtype(name, getattr(np, kind)), (kind, name)
    assert jnp.issubdtype("bfloat16", jnp.floating) and jnp.dtype("float16") == rlx.float16 and jnp.single == rlx.float32


def test_more_of_arrays():
    x = rlx.asarray(A)
    compare(x.ptp(axis=0), np.ptp(A, axis=0))
    compare(x.reshape(4, 3, order="F"), A.reshape(4, 3, order="F"))
    compare(list(x.flat), list(A.flat))
    compare(x.view("int32"), A.view(np.int32))
    compare(divmod(7, rlx.asarray(V)), divmod(7, V))
    assert x.tobytes() == A.tobytes() and x.copy() is x and 3 in rlx.asarray(V) and not 5 in rlx.asarray(V)
    compare(round(x, 1), A.round(1))


def test_gradients_pass():
    mask = rlx.asarray(MASK)
    for function in (lambda x: jnp.var(x, where=mask), lambda x: jnp.max(x, where=mask, initial=0.0), lambda x: jnp.linspace(x, 1.0, 3).sum(), lambda x: jnp.cov(x, aweights=V).sum(),
                     lambda x: jnp.interp(x, V, V * 2, left=0.0).sum(), lambda x: jnp.vectorize(lambda a: a * a)(x).sum()):  # fmt: skip
        gradient = rlx.grad(lambda x: function(x) * 1.0)(A).numpy()
        direction = np.random.default_rng(0).normal(size=A.shape)
        wide = [float(function(rlx.asarray(A.astype(np.float64) + s * 1e-4 * direction))) for s in (1, -1)]
        assert np.isclose((gradient * direction).sum(), (wide[0] - wide[1]) / 2e-4, rtol=1e-3, atol=1e-4)
