"""rlx.numpy against NumPy, eagerly and compiled."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

RNG = np.random.default_rng(1)
A = RNG.normal(size=(3, 4)).astype(np.float32)
B = RNG.normal(size=(3, 4)).astype(np.float32)
C = RNG.normal(size=(4, 3)).astype(np.float32)
P = np.abs(A) + np.float32(0.1)
U = np.clip(A, -0.9, 0.9)
N = RNG.integers(-5, 6, size=(3, 4)).astype(np.int32)
M = RNG.integers(1, 6, size=(3, 4)).astype(np.int32)
V = np.array([1, 3, 5, 7], np.float32)
S = (C.T @ C + np.eye(3, dtype=np.float32)).astype(np.float32)
Z = (A + 1j * B).astype(np.complex64)

CASES = [(name, (x,), {}) for name in "exp expm1 exp2 sin cos tan sinh cosh tanh arctan arcsinh cbrt sinc square sign negative absolute floor ceil trunc isnan "
         "isinf isfinite ravel transpose reciprocal signbit".split() for x in (A, N) if name not in ("sinc", "reciprocal", "signbit") or x is A]  # fmt: skip
CASES += [(name, (P,), {}) for name in "log log1p log2 log10 sqrt".split()]
CASES += [(name, (U,), {}) for name in "arcsin arccos arctanh".split()]
CASES += [("arccosh", (P + 1,), {})]
CASES += [(name, (x, y), {}) for name in "add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal floor_divide "
          "remainder fmod".split() for x, y in ((A, B), (N, M), (A, V), (N, 3), (2.5, A))]  # fmt: skip
CASES += [(name, (A, B), {}) for name in "arctan2 hypot logaddexp copysign nextafter".split()]
CASES += [("power", (P, B), {}), ("power", (A, 2), {}), ("power", (N, 3), {}), ("power", (N, 0), {}), ("power", (N, M), {}), ("power", (2.0, A), {})]
CASES += [(name, (N, M), {}) for name in "bitwise_and bitwise_or bitwise_xor left_shift logical_and logical_or logical_xor".split()]
CASES += [("logical_not", (N,), {}), ("invert", (N,), {}), ("round", (A,), {}), ("round", (A, 2), {}), ("clip", (A, -0.5, 0.5), {}), ("clip", (N, None, 2), {})]
for axis in (None, 0, 1, -1, (0, 1)):
    for keep in (False, True):
        CASES += [(name, (A,), {"axis": axis, "keepdims": keep}) for name in "sum prod max min mean var std all any count_nonzero".split()]
        if not isinstance(axis, tuple):
            CASES += [(name, (A,), {"axis": axis, "keepdims": keep}) for name in ("argmax", "argmin")]
CASES += [("var", (A,), {"ddof": 1}), ("sum", (A > 0,), {}), ("sum", (N,), {"axis": 1}), ("mean", (N,), {}), ("cumsum", (A,), {}), ("cumsum", (N,), {"axis": 1}),
          ("cumprod", (A,), {"axis": 0}), ("diff", (A,), {}), ("diff", (A, 2), {"axis": 1})]  # fmt: skip
CASES += [("reshape", (A, (2, 6)), {}), ("reshape", (A, -1), {}), ("transpose", (A, (1, 0)), {}), ("swapaxes", (A, 0, 1), {}), ("moveaxis", (A, 0, -1), {}),
          ("squeeze", (A[None],), {}), ("expand_dims", (A, (0, -1)), {}), ("concatenate", ([A, B],), {"axis": 1}), ("concatenate", ([A, N],), {}),
          ("concatenate", ([A, B],), {"axis": None}), ("stack", ([A, B],), {"axis": 1}), ("hstack", ([V, V],), {}), ("vstack", ([V, V],), {}),
          ("split", (A, 2), {"axis": 1}), ("split", (A, (1, 2)), {"axis": 0}), ("flip", (A,), {}), ("flip", (A, 1), {}), ("roll", (A, 1), {}),
          ("roll", (A, -2), {"axis": 1}), ("repeat", (A, 2), {}), ("repeat", (A, 2), {"axis": 0}), ("tile", (A, (2, 1)), {}),
          ("broadcast_to", (V, (3, 4)), {}), ("broadcast_arrays", (A, V), {}), ("take", (A, np.array([0, -1])), {"axis": 1}), ("take", (A, np.array([3, 0])), {}),
          ("take_along_axis", (A, np.argsort(A, 1)), {"axis": 1}), ("pad", (A, 1), {}), ("pad", (A, ((1, 0), (0, 2))), {"constant_values": 3}),
          ("pad", (A, 1, "reflect"), {}), ("pad", (A, 2, "edge"), {}), ("pad", (A, 1, "wrap"), {}), ("sort", (A,), {}), ("sort", (A,), {"axis": 0}),
          ("argsort", (A,), {}), ("searchsorted", (V, A), {}), ("searchsorted", (V, V), {"side": "right"}), ("interp", (A, V, V**2), {}), ("diag", (V,), {}),
          ("diag", (A,), {}), ("diag", (V, 1), {}), ("diagonal", (A, 1), {}), ("diagonal", (A, -1), {}), ("trace", (A,), {}), ("tril", (A,), {}),
          ("triu", (A, 1), {}), ("where", (A > 0, A, B), {}), ("where", (A > 0, A, 0.0), {}), ("meshgrid", (V, V[:2]), {}),
          ("meshgrid", (V, V[:2]), {"indexing": "ij"}), ("nan_to_num", (np.array([np.nan, np.inf, 1], np.float32),), {}), ("isclose", (A, A + 1e-6), {}),
          ("array_equal", (A, A), {}), ("allclose", (A, B), {})]  # fmt: skip
CASES += [("matmul", (A, C), {}), ("matmul", (V, C), {}), ("dot", (A, C), {}), ("dot", (V, V), {}), ("dot", (A, V), {}), ("vdot", (A, B), {}), ("outer", (V, V), {}),
          ("tensordot", (A, C, 1), {}), ("tensordot", (A, B, ([0, 1], [0, 1])), {}), ("einsum", ("ij,jk->ik", A, C), {}), ("einsum", ("ij->j", A), {}),
          ("kron", (A, C), {}), ("conj", (Z,), {}), ("real", (Z,), {}), ("imag", (Z,), {}), ("abs", (Z,), {}), ("exp", (Z,), {}), ("multiply", (Z, A), {})]  # fmt: skip
CASES += [("linalg.solve", (S, C[:3]), {}), ("linalg.inv", (S,), {}), ("linalg.cholesky", (S,), {}), ("linalg.det", (S,), {}), ("linalg.slogdet", (S,), {}),
          ("linalg.norm", (V,), {}), ("linalg.norm", (A,), {"axis": 1}), ("fft.fft", (A,), {}), ("fft.ifft", (Z,), {}), ("fft.rfft", (A,), {}),
          ("fft.irfft", (Z[:, :3],), {}), ("fft.fftn", (Z,), {})]  # fmt: skip

CASES += [("positive", (N,), {}), ("cumulative_sum", (A,), {"axis": 1, "include_initial": True}), ("cumulative_prod", (V,), {}), ("cumulative_sum", (N,), {"axis": 0}),
          ("repeat", (A, np.array([2, 0, 1])), {"axis": 0}), ("diff", (A,), {"axis": 0, "prepend": A[:1], "append": B}), 
          ("unique_counts", (N,), {}), ("unique_inverse", (N,), {}), ("unique_all", (N,), {}),
          ("searchsorted", (V[::-1].copy(), A), {"sorter": np.array([3, 2, 1, 0])})]  # fmt: skip
CASES += [("linalg.matrix_norm", (A,), {}), ("linalg.matrix_norm", (A,), {"ord": 1, "keepdims": True}), ("linalg.matrix_norm", (A,), {"ord": -np.inf}),
          ("linalg.vector_norm", (A,), {"axis": 0, "ord": 3}), ("linalg.matrix_power", (S, 3), {}), ("linalg.matrix_power", (S, -2), {}),
          ("linalg.matrix_power", (S, 0), {}), ("linalg.cross", (S, C[:3]), {}), ("linalg.cross", (S, C[:3]), {"axis": 0}), ("linalg.trace", (S,), {"offset": 1}),
          ("linalg.solve", (S, V[:3]), {}), ("linalg.cholesky", (S,), {"upper": True}), ("linalg.diagonal", (np.stack([A, B]),), {"offset": -1}),
          ("linalg.outer", (V, V), {}), ("linalg.tensordot", (A, C), {"axes": 1}), ("linalg.vecdot", (A, B), {}), ("linalg.matmul", (A, C), {}),
          ("linalg.matrix_transpose", (A,), {})]  # fmt: skip
T = RNG.normal(size=(2, 4, 3)).astype(np.float32)
CASES += [("linalg.qr", (x,), {"mode": mode}) for x in (A, C, T, Z) for mode in ("reduced", "complete", "r") if mode != "r" or x is not T]
CASES += [(f"linalg.{name}", (x,), {}) for name in ("svdvals", "pinv", "matrix_rank") for x in (A, C, T, Z, np.ones((3, 3), np.float32))]
CASES += [("linalg.matrix_rank", (A @ C,), {"rtol": 0.5}), ("linalg.pinv", (A,), {"rtol": 0.5}), ("linalg.eigvalsh", (S,), {}), ("linalg.lstsq", (C, V), {}),
          ("linalg.lstsq", (C, C), {}), ("linalg.multi_dot", ([A, C, A, C],), {}), ("linalg.multi_dot", ([V, C, A],), {}), ("linalg.tensorinv", (RNG.normal(size=(4, 6, 8, 3)).astype(np.float32),), {"ind": 2}),
          ("linalg.det", (np.float32([[1, 2], [2, 4]]),), {}), ("linalg.tensorsolve", (RNG.normal(size=(2, 3, 6)).astype(np.float32), A[:2, :3]), {})]  # fmt: skip
CASES += [("linalg.norm", (x,), {"ord": ord}) for x in (A, Z) for ord in ("fro", "nuc", 1, 2, -1, -2, np.inf, -np.inf)]
CASES += [("linalg.norm", (T,), {"ord": ord, "axis": (0, 2), "keepdims": keep}) for ord in ("fro", "nuc", 2, 1) for keep in (False, True)]
CASES += [("linalg.norm", (V,), {"ord": ord}) for ord in (1, 2, 3, np.inf)] + [("linalg.norm", (T,), {}), ("linalg.norm", (T,), {"axis": 1, "ord": 1})]
CASES += [("linalg.cond", (x,), {"p": p}) for x in (S,) for p in (None, 2, -2, 1, "fro")]
CASES += [(name, (Z,), {}) for name in "sinh cosh tanh expm1 log1p arcsin arccos arctan arcsinh arccosh arctanh sign sqrt log sin cos".split()]
I = np.inf
ENDS = [np.array(x.ravel()) for x in np.meshgrid(np.float32([0, 0.5, -1.5, 3, -100, 5, I, -I, np.nan, 3e38]), np.float32([0.01, -0.01, 3, -3, 0, I, -I, np.nan, 1e30]))]
CASES += [("floor_divide", ENDS, {}), ("remainder", ENDS, {}), ("median", (np.float32([[I] * 4, [-I] * 4, [3e38, 3e38, -3e38, -3e38], [-I, I, 1, 2]]),), {"axis": 1})]
CASES += [("remainder", (np.float32([-0.0, 0.0, 4, -4]), np.float32([3, -3, -2, 2])), {}), ("reshape", (A, (4, 3)), {})]
for norm in (None, "backward", "ortho", "forward"):
    CASES += [(f"fft.{name}", (x,), {"norm": norm}) for name, x in
              (("fft", Z), ("ifft", Z), ("rfft", A), ("irfft", Z), ("fftn", Z), ("ifftn", Z), ("rfftn", A), ("irfftn", Z), ("hfft", Z), ("ihfft", A))]  # fmt: skip
CASES += [("fft.fft", (A,), {"n": 3}), ("fft.fft", (A,), {"n": 6, "axis": 0}), ("fft.irfft", (Z,), {"n": 5}), ("fft.rfft", (A,), {"n": 7}),
          ("fft.fftn", (Z,), {"s": (2, 5), "axes": (0, 1)}), ("fft.irfftn", (Z,), {"s": (4, 5), "axes": (0, 1)}), ("fft.hfft", (Z,), {"n": 5}), ("fft.fftshift", (A,), {}),
          ("fft.ifftshift", (A,), {"axes": 1})]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_powers_of_integers_are_exact_and_wrap(dtype):
    most = np.iinfo(dtype)
    x, y = (np.array(v.ravel()) for v in np.meshgrid(np.array([0, 1, 2, 3, 5, most.max, most.min], dtype), np.array([0, 1, 2, 7, 39, most.max], dtype)))
    assert np.array_equal(jnp.power(x, y).numpy(), np.power(x, y))
    assert jnp.power(np.int32([1, -1, -1, 2, 0]), np.int32([-3, -3, -2, -1, -1])).numpy().tolist() == [1, -1, 1, 0, 0]


def test_a_remainder_of_0_has_the_derivative_of_any_other():
    x, y = np.float32([2, 3, 0, -6, 5]), np.float32([1, 1.5, 2, 3, 3])
    slopes = rlx.grad(lambda x, y: jnp.sum(jnp.remainder(x, y)), argnums=(0, 1))(jnp.asarray(x), jnp.asarray(y))
    assert np.array_equal(slopes[0].numpy(), np.ones(5)) and np.array_equal(slopes[1].numpy(), -np.floor(x / y))


def resolve(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def compare(seen, expected):
    if isinstance(expected, (list, tuple)):
        assert len(seen) == len(expected)
        for one, other in zip(seen, expected):
            compare(one, other)
        return
    expected = np.asarray(expected)
    seen = np.asarray(seen)
    assert seen.shape == expected.shape
    assert (seen.dtype.kind in "iu") == (expected.dtype.kind in "iu") and (seen.dtype.kind == "b") == (expected.dtype.kind == "b")
    assert np.allclose(seen, expected, rtol=2e-5, atol=2e-6, equal_nan=True), (seen, expected)


@pytest.mark.parametrize("name,args,options", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_function(name, args, options):
    expected = resolve(np, name)(*args, **options)
    function = resolve(jnp, name)
    compare(function(*args, **options), expected)
    if name.startswith("unique") or "sorter" in options or isinstance(args[-1], np.ndarray) and name == "repeat":
        return  # how many elements there are depends on values
    arrays = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]
    static = [i for i in range(len(args)) if i not in arrays]
    if any(isinstance(args[i], (list, tuple)) and any(isinstance(each, (np.ndarray, list)) for each in args[i]) for i in static):
        return  # lists of arrays are no arguments of a NumPy function alone
    compare(rlx.jit(lambda *given: function(*given, **options), static_argnums=static)(*args), expected)


@pytest.mark.parametrize("x", [A, C, T, Z, np.zeros((3, 3), np.float32), np.ones((4, 2), np.float32), np.zeros((0, 3), np.float32)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_are_orthonormal(x, full):
    u, s, vh = (np.asarray(part) for part in jnp.linalg.svd(x, full_matrices=full))
    expected = np.linalg.svd(x, full_matrices=full)
    assert [part.shape for part in (u, s, vh)] == [part.shape for part in expected]
    k = s.shape[-1]
    compare((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    compare(np.swapaxes(u.conj(), -1, -2) @ u, np.broadcast_to(np.eye(u.shape[-1], dtype=u.dtype), (*u.shape[:-2], u.shape[-1], u.shape[-1])))
    compare(vh @ np.swapaxes(vh.conj(), -1, -2), np.broadcast_to(np.eye(vh.shape[-2], dtype=vh.dtype), (*vh.shape[:-2], vh.shape[-2], vh.shape[-2])))


@pytest.mark.parametrize("triangle", [None, "L", "U"])
@pytest.mark.parametrize("x", [RNG.normal(size=(2, 5, 5)).astype(np.float32), (C[:3] + 1j * S).astype(np.complex64), np.zeros((2, 2), np.float32)])
def test_eigenvectors_belong_to_eigenvalues(x, triangle):
    given = (x + np.swapaxes(x.conj(), -1, -2)) / 2 if triangle is None else x
    w, v = jnp.linalg.eigh(x, UPLO=triangle)
    compare(w, np.linalg.eigh(given, UPLO=triangle or "L").eigenvalues)
    below = np.tril(given, -1) if triangle != "U" else np.swapaxes(np.triu(given, 1).conj(), -1, -2)
    whole = below + np.swapaxes(below.conj(), -1, -2) + np.real(np.diagonal(given, axis1=-2, axis2=-1))[..., None] * np.eye(x.shape[-1], dtype=x.dtype)
    compare((v * w[..., None, :].astype(v.dtype)) @ jnp.conj(v.mT), whole)


def test_wrong_words_of_decompositions_are_named():
    for call, text in ((lambda: jnp.linalg.qr(A, mode="raw"), "mode is 'raw'"), (lambda: jnp.linalg.eigh(S, UPLO="l"), "UPLO is 'l'"),
                       (lambda: jnp.linalg.eigh(A), r"eigh: f32\[3,4\]"), (lambda: jnp.linalg.matrix_norm(A, ord=3), "ord is 3"), (lambda: rlx.svd(V), r"f32\[4\]")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()


def test_arrays_from_nothing():
    compare(jnp.zeros((2, 3)), np.zeros((2, 3)))
    compare(jnp.ones(3, dtype="int32"), np.ones(3, np.int32))
    compare(jnp.full((2,), 7), np.full((2,), 7))
    compare(jnp.arange(5), np.arange(5))
    compare(jnp.arange(2, 11, 3), np.arange(2, 11, 3))
    compare(jnp.arange(5, 0, -2), np.arange(5, 0, -2))
    compare(jnp.arange(0, 1, 0.25), np.arange(0, 1, 0.25))
    compare(jnp.linspace(0, 1, 7), np.linspace(0, 1, 7))
    compare(jnp.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False))
    compare(jnp.eye(3, 4, 1), np.eye(3, 4, 1))
    compare(jnp.tri(3), np.tri(3))
    compare(jnp.zeros_like(N), np.zeros_like(N))
    compare(jnp.nonzero(N), np.nonzero(N))


def test_types_are_found():
    assert jnp.result_type("int32", "float32") == rlx.float32 and jnp.result_type(rlx.int8, 1) == rlx.int8
    assert jnp.isdtype("float16", "real floating") and not jnp.isdtype("uint8", "signed integer") and jnp.isdtype(rlx.int8, ("bool", "integral"))
    assert jnp.can_cast("int8", "int32") and not jnp.can_cast("float32", "int32")


def test_different_elements_are_in_order():
    compare(jnp.unique_values(N), np.unique(N))
    compare(jnp.unique_values(np.float32([np.nan, 1, np.nan])), np.float32([1, np.nan, np.nan]))


def test_the_namespace_tells_what_it_is():
    assert rlx.array(1.0).__array_namespace__() is jnp and jnp.__array_api_version__ == "2024.12"
    info = jnp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == rlx.float32 and info.dtypes(kind="signed integer").keys() == {"int8", "int16", "int32", "int64"}
    assert info.devices() == [info.default_device()] == [rlx.array(1).device] and info.capabilities()["boolean indexing"]
    for dtype in ("float16", "float32", "float64"):
        ours, theirs = jnp.finfo(dtype), np.finfo(dtype)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal)
    assert jnp.finfo("bfloat16").bits == 16 and jnp.finfo(rlx.complex64).dtype == rlx.float32
    assert jnp.iinfo("int8").min == -128 and jnp.iinfo(rlx.array(1)).max == 2**31 - 1 and jnp.iinfo("uint64").max == 2**64 - 1
    with pytest.raises(rlx.Error, match="no integer type"):
        jnp.iinfo("float32")
    assert np.allclose(jnp.fft.fftfreq(5, 0.1).numpy(), np.fft.fftfreq(5, 0.1)) and np.allclose(jnp.fft.rfftfreq(6).numpy(), np.fft.rfftfreq(6))


def test_every_function_of_the_registry_has_a_signature_and_a_text():
    import inspect

    for name in dir(rlx.ops):
        function = getattr(rlx.ops, name)
        assert inspect.signature(function).parameters, name
        assert function.__doc__, name
    assert str(inspect.signature(rlx.layer_norm)) == "(x, gamma=None, beta=None, axes=(-1,), eps=1e-05)"
    assert "causal" in inspect.signature(rlx.attention).parameters


def test_functions_of_the_registry_take_words_and_options():
    q = RNG.normal(size=(1, 2, 4, 8)).astype(np.float32)
    scores = np.einsum("bhqd,bhkd->bhqk", q, q) / np.sqrt(8)
    scores = np.where(np.tril(np.ones((4, 4), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    compare(rlx.attention(q, q, q, causal=True), np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), q))
    compare(rlx.mse(A, B, reduction="sum"), ((A - B) ** 2).sum())
    compare(rlx.top_k(V, 2), (np.array([7, 5], np.float32), np.array([3, 2], np.int32)))


def test_random_numbers_come_from_keys():
    key = rlx.random.key(7)
    one, other = rlx.random.split(key)
    assert np.array_equal(rlx.random.normal(one, (4,)).numpy(), rlx.random.normal(one, (4,)).numpy())
    assert not np.array_equal(rlx.random.normal(one, (4,)).numpy(), rlx.random.normal(other, (4,)).numpy())
    numbers = rlx.random.uniform(key, (10000,), minval=-1.0, maxval=3.0).numpy()
    assert abs(numbers.mean() - 1) < 0.05 and numbers.min() >= -1 and numbers.max() < 3
    assert set(rlx.random.randint(key, (100,), 0, 3).tolist()) == {0, 1, 2}
