"""The functions of rlx.numpy beyond the array API standard against NumPy, eagerly and, where shapes do not depend on elements, compiled."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import lax
from numpy_test import A, B, C, M, N, P, V, Z, compare

RNG = np.random.default_rng(3)
T = RNG.normal(size=(2, 3, 4)).astype(np.float32)
H = A.copy()
H[0, 1] = H[2] = np.nan
D = np.float32([0, 1, 3, 3.5])
E = np.arange(24).reshape(2, 3, 4).astype(np.int32)
COMPILED, EAGER = [], []
for axis in (None, 0, 1, (0, 1)):
    for keep in (False, True) if axis == 0 else (False,):
        options = {"axis": axis, "keepdims": keep}
        COMPILED += [(name, (A,), options) for name in ("ptp", "median")] + [("quantile", (A, 0.3), options), ("percentile", (A, 70), options)]
        COMPILED += [(name, (H,), options) for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian")]
COMPILED += [("quantile", (A, [0.0, 0.25, 1.0]), {"axis": 1}), ("nanquantile", (H, [0.1, 0.5]), {"axis": 0}), ("quantile", (H, 0.5), {"axis": 1})]
COMPILED += [("quantile", (A, 0.4), {"axis": 1, "method": method}) for method in ("lower", "higher", "nearest", "midpoint")]
COMPILED += [("average", (A,), {}), ("average", (A, 1, V), {}), ("average", (A, None, P), {"returned": True}), ("cov", (A,), {}), ("cov", (A, B), {"bias": True}),
             ("cov", (A,), {"rowvar": False}), ("cov", (V,), {}), ("corrcoef", (A,), {}), ("corrcoef", (A, B), {}), ("nancumsum", (H,), {"axis": 0}),
             ("nancumprod", (H,), {}), ("nanargmax", (np.nan_to_num(H, nan=-9),), {"axis": 1}), ("nanargmin", (H[:2],), {"axis": 1}), ("trapezoid", (A,), {}),
             ("trapezoid", (A, D), {}), ("trapezoid", (A,), {"dx": 0.5, "axis": 0})]  # fmt: skip
COMPILED += [(name, (x, y, mode), {}) for name in ("convolve", "correlate") for x, y in ((A[0], V), (V, A[0, :2]), (V[:2], A[0])) for mode in ("full", "same", "valid")]
EAGER += [("bincount", (M[0],), {}), ("bincount", (M[0], A[0]), {"minlength": 9}), ("digitize", (A, np.float32([-1, 0, 1])), {}),
          ("digitize", (N, np.int32([3, 0, -2])), {"right": True}), ("histogram", (A,), {}), ("histogram", (A, 5, (-1, 1)), {}),
          ("histogram", (A, np.float32([-1, 0, 0.5, 2])), {"density": True}), ("histogram", (A, 4), {"weights": P}), ("histogram_bin_edges", (A, 3), {})]  # fmt: skip
# Numbers.
COMPILED += [(name, (A,), {}) for name in ("rint", "fabs", "deg2rad", "rad2deg", "isneginf", "isposinf", "isreal", "iscomplex", "modf", "around", "angle")]
COMPILED += [("angle", (Z,), {"deg": True}), ("iscomplex", (Z,), {}), ("fmax", (H, B), {}), ("fmin", (H, B), {}), ("float_power", (M, 0.5), {}),
             ("heaviside", (np.sign(N).astype(np.float32), 0.5), {}), ("logaddexp2", (A, B), {}), ("divmod", (A, B), {}), ("ldexp", (A, N), {}),
             ("gcd", (N, M), {}), ("lcm", (N, M), {}), ("gcd", (N * 12, np.int32([18])), {}), ("unwrap", (A * 8,), {}), ("unwrap", (A * 8,), {"axis": 0}),
             ("bitwise_not", (N,), {})]  # fmt: skip
EAGER += [("shape", (T,), {}), ("ndim", (T,), {}), ("size", (T,), {}), ("size", (T, 1), {}), ("copy", (A,), {}), ("array_equiv", (V, np.stack([V, V])), {}),
          ("array_equiv", (V, A[0, :2]), {}), ("iscomplexobj", (Z,), {}), ("isrealobj", (Z,), {}), ("isscalar", (3,), {}), ("iterable", (3,), {})]  # fmt: skip
# Parts.
COMPILED += [("append", (A, B), {}), ("append", (A, B), {"axis": 1}), ("fliplr", (A,), {}), ("flipud", (A,), {}), ("inner", (A, B), {}), ("atleast_3d", (A,), {}),
             ("atleast_3d", (V,), {}), ("resize", (A, (5, 4)), {}), ("ediff1d", (A,), {}), ("ediff1d", (A, V, V), {}), ("matvec", (T, V), {}), ("vecmat", (Z[0], C), {}),
             ("diagflat", (A, 1), {}), ("take_along_axis", (A, np.argsort(A, 0), 0), {}), ("fill_diagonal", (A, 7), {"inplace": False}), ("lexsort", ((M, N),), {}),
             ("gradient", (A,), {}), ("gradient", (A, 2.0), {"axis": 0}), ("gradient", (A, D), {"axis": 1}), ("cross", (A[:, :3], B[:, :3]), {}), ("isin", (N, M), {}),
             ("isin", (N, M), {"invert": True}), ("vander", (V,), {}), ("vander", (V, 3), {"increasing": True})]  # fmt: skip
COMPILED += [("rot90", (A, k), {}) for k in (0, 1, 2, 3, -1)] + [("rollaxis", (T, i, j), {}) for i, j in ((2, 0), (0, 2), (1, 3), (-1, 1))]
EAGER += [("array_split", (V, 3), {}), ("array_split", (A, (1, 3)), {"axis": 1}), ("hsplit", (A, 2), {}), ("vsplit", (A, 3), {}), ("dsplit", (T, 2), {}),
          ("dstack", ([A, B],), {}), ("column_stack", ([V, V],), {}), ("block", ([[A, A], [B, B]],), {}), ("block", ([V, V],), {}), ("delete", (A, 1), {}),
          ("delete", (A, [0, -1], 1), {}), ("delete", (A, slice(0, 2), 0), {}), ("insert", (A, 1, 9), {}), ("insert", (A, [1, 1], 9, 1), {}),
          ("insert", (V, [2, 0], [8, 9]), {}), ("insert", (A, 1, V, 0), {}), ("insert", (A, slice(0, 3, 2), 9, 1), {}),
          ("compress", (V > 2, A, 1), {}), ("extract", (A > 0, A), {}), ("argwhere", (N > 0,), {}),
          ("flatnonzero", (N,), {}), ("choose", (M[0] % 2, [V, -V]), {}), ("select", ([A > 1, A > 0], [A, B], 5.0), {}), ("indices", ((2, 3),), {}),
          ("ix_", (np.arange(2), np.arange(3)), {}), ("diag_indices", (3,), {}), ("tril_indices", (3, 1), {}), ("triu_indices", (3, -1, 4), {}),
          ("tril_indices_from", (A,), {}), ("triu_indices_from", (A,), {}), ("unravel_index", (np.array([3, 7]), (3, 4)), {}),
          ("ravel_multi_index", ((np.array([1, 2]), np.array([3, 0])), (3, 4)), {}), ("trim_zeros", (np.float32([0, 0, 1, 0, 2, 0]),), {}), ("unique", (N,), {}),
          ("unique", (N,), {"return_counts": True, "return_index": True}), ("union1d", (N, M), {}), ("intersect1d", (N, M), {}), ("setdiff1d", (N, M), {}),
          ("setxor1d", (np.unique(N), np.unique(M)), {}), ("partition", (V, 2), {})]  # fmt: skip
# Polynomials and windows.
COMPILED += [("polyval", (V, A), {}), ("polyadd", (V, A[0, :2]), {}), ("polysub", (V, A[0, :2]), {}), ("polymul", (V, A[0]), {}), ("polyder", (V,), {}), ("polyder", (V, 2), {}),
             ("polyint", (V,), {}), ("poly", (V,), {}), ("polyfit", (A[0], B[0], 2), {}),
             ("polyfit", (A[0], B[0], 1), {"w": np.float32([1, 2, 0.5, 1])})]  # fmt: skip
EAGER += [(name, (n,), {}) for name in ("hanning", "hamming", "blackman", "bartlett") for n in (1, 2, 7)]
EAGER += [("logspace", (0, 2, 5), {}), ("geomspace", (1, 1000, 4), {}), ("geomspace", (-8, -1, 4), {})]
EAGER = [*EAGER, *COMPILED]


@pytest.mark.parametrize("name,args,options", EAGER, ids=[f"{i}-{case[0]}" for i, case in enumerate(EAGER)])
def test_function(name, args, options):
    expected = getattr(np, name)(*args, **{k: v for k, v in options.items() if k != "inplace"})
    if name == "fill_diagonal":
        expected = args[0].copy()
        np.fill_diagonal(expected, 7)
    if name in ("isscalar", "iterable", "iscomplexobj", "isrealobj", "shape", "ndim", "size"):
        assert getattr(jnp, name)(*args, **options) == expected
    else:
        compare(getattr(jnp, name)(*args, **options), expected)


@pytest.mark.parametrize("name,args,options", COMPILED, ids=[f"{i}-{case[0]}" for i, case in enumerate(COMPILED)])
def test_compiled_function(name, args, options):
    function = getattr(jnp, name)
    static = [i for i, arg in enumerate(args) if not isinstance(arg, np.ndarray)]
    if any(isinstance(args[i], (list, tuple)) and not all(isinstance(each, int) for each in args[i]) for i in static):
        return
    compare(rlx.jit(lambda *given: function(*given, **options), static_argnums=static)(*args), function(*args, **options))


def test_functions_of_lines():
    compare(jnp.apply_along_axis(lambda v: v[:2] * v.sum(), 1, T), np.apply_along_axis(lambda v: v[:2] * v.sum(), 1, T))
    compare(jnp.apply_along_axis(lambda v: v.sum(), 0, T), T.sum(0))
    compare(jnp.piecewise(A, [A < 0, A > 1], [lambda x: -x, 5.0, 2.0]), np.piecewise(A, [A < 0, A > 1], [lambda x: -x, 5.0, 2.0]))
    compare(jnp.fromfunction(lambda i, j: i + 2 * j, (2, 3)), np.fromfunction(lambda i, j: i + 2 * j, (2, 3)))
    places = np.argsort(A, 1)[:, :1]
    expected = A.copy()
    np.put_along_axis(expected, places, 9, 1)
    compare(jnp.put_along_axis(A, places, 9, 1), expected)
    quotient, rest = jnp.polydiv(V, A[0, :2])
    compare(quotient, np.polydiv(V, A[0, :2])[0])
    compare(jnp.polyadd(jnp.polymul(quotient, A[0, :2]), rest), V)
    assert jnp.vecdot(N.astype(np.int8), M.astype(np.int8)).dtype == rlx.int8
    assert jnp.s_[1:2, ...] == (slice(1, 2), ...)
    assert jnp.promote_types("int8", "float16") == rlx.float16


def test_transforms_of_matrices():
    for name, x in (("fft2", Z), ("ifft2", Z), ("rfft2", A), ("irfft2", Z)):
        compare(getattr(jnp.fft, name)(x), getattr(np.fft, name)(x))


def test_gradients_pass():
    for function in (lambda x: jnp.median(x), lambda x: jnp.nanmean(x), lambda x: jnp.convolve(x, x).sum(), lambda x: jnp.polyval(x, 2.0), lambda x: jnp.cov(x, x)[0, 1]):
        assert np.isfinite(rlx.grad(function)(V).numpy()).all()


def test_integers_beside_arrays_count_as_arrays():
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    for index in ((0, slice(None), [1, 2]), (slice(None), 0, slice(None), [1, 2]), (0, slice(None), [1, 2], 3), ([0, 1], slice(None), 2), (0, None, [1, 2]),
                  (slice(None), 1, [0, 2]), (0, ..., [[1], [2]])):  # fmt: skip
        assert np.array_equal(rlx.asarray(x)[index], x[index]), index
    with pytest.raises(IndexError, match="axis 0"):
        rlx.asarray(x)[5, :, [1, 2]]


def test_elements_at_an_index_are_read_and_changed_as_in_jax():  # whose results these are
    x = rlx.array([1.0, 2.0, 4.0])
    twice, outside = rlx.array([0, 0, 1]), rlx.array([1, 7])
    assert x.at[outside].get(mode="fill", fill_value=-1).tolist() == [2, -1] and x.at[outside].get().tolist() == [2, 4]
    assert np.isnan(x.at[outside].get(mode="fill").tolist()[1]) and x.at[outside].set(9, mode="drop").tolist() == [1, 9, 4]
    assert x.at[outside].add(1, mode="clip").tolist() == [1, 3, 5] and x.at[outside].set(9).tolist() == [1, 9, 4]
    assert x.at[twice].divide(2).tolist() == [0.25, 1, 4] and x.at[1:].power(2, unique_indices=True).tolist() == [1, 4, 16]
    assert x.at[twice].subtract(1).tolist() == [-1, 1, 4] and x.at[1].apply(lambda v: -v).tolist() == [1, -2, 4]
    with pytest.raises(rlx.Error, match="no mode 'wrap'"):
        x.at[0].set(1, mode="wrap")


def test_plain_integers_outside_count_as_others_do_in_changes():
    x = rlx.array([1.0, 2.0, 4.0])
    assert x.at[7].add(1, mode="drop").tolist() == [1, 2, 4] and x.at[7].get(mode="fill", fill_value=-1).item() == -1
    assert x.at[-1].set(9).tolist() == [1, 2, 9] and x.at[7].set(9, mode="clip").tolist() == [1, 2, 9]
    assert rlx.asarray(A).at[1, ::2].add(1).tolist() == (A + np.float32([[0] * 4, [1, 0, 1, 0], [0] * 4])).tolist()


NARROW = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_and_integers_take_the_type_of_floats_that_they_meet(dtype):
    x, integers = rlx.asarray(A).astype(dtype), rlx.asarray(M.astype(np.int8))
    for name in ("divide", "remainder", "floor_divide", "arctan2", "hypot", "logaddexp", "nextafter", "copysign", "float_power", "heaviside", "power"):
        function = getattr(jnp, name)
        for other in (2.5, 2, True, np.float64(2), np.bool_(True), integers):
            assert function(x, other).dtype == x.dtype, (name, other)
            if name not in ("float_power", "power"):
                assert function(other, x).dtype == x.dtype, (name, other)
        assert function(integers, 2).dtype == rlx.float32 or name in ("remainder", "floor_divide", "power")
    assert all(each.dtype == x.dtype for each in jnp.divmod(2.5, x)) and jnp.unwrap(x).dtype == x.dtype
    compare(jnp.remainder(rlx.asarray(A), -0.5), np.remainder(A, np.float32(-0.5)))


@pytest.mark.parametrize("value", [np.float64(2.5), 2.5], ids=["np.float64", "float"])
def test_numbers_of_f64_are_numbers_of_python(value):
    for dtype in ("float16", "float32", "float64"):
        x = rlx.asarray(A.astype(dtype))
        assert (x * value).dtype == rlx.jit(lambda x, y: x * y)(x, value).dtype == x.dtype
        assert rlx.grad(lambda x, y: (x * y).sum())(x, value).dtype == x.dtype
    f = rlx.jit(lambda y: y + 1)
    assert f(value).dtype == rlx.float32 and f(2.5).dtype == rlx.float32 and f.cache_size() == 1


def test_integers_that_do_not_fit_keep_their_low_bits():  # as in jax.numpy
    x = np.array([0, 1, 255], np.uint8)
    own = rlx.asarray(x)
    assert (own & -1).tolist() == x.tolist() and (own ^ -1).tolist() == (~x).tolist() and (own + -1).tolist() == [255, 0, 254]
    assert jnp.where(own > 0, own, -1).tolist() == [255, 1, 255] and (own + 256).tolist() == x.tolist()
    assert rlx.jit(lambda x: x - 1)(x).tolist() == [255, 0, 254]
    assert (rlx.asarray(np.uint64([1])) & -1).tolist() == [1]


def test_integers_without_nan_stay_integers():
    for name in ("nansum", "nanprod", "nanmax", "nanmin", "nancumsum", "nancumprod", "nanargmax"):
        for x in (M, M > 1):
            ours, plain = getattr(jnp, name)(x), getattr(jnp, name.replace("nan", ""))(x)
            assert ours.dtype == plain.dtype and np.array_equal(ours, plain), name


def test_the_place_of_the_largest_of_nothing_but_nan_is_minus_one():
    x = np.float32([[np.nan, np.nan], [1, np.nan], [np.nan, -3]])
    for function, wanted in ((jnp.nanargmax, [-1, 0, 1]), (jnp.nanargmin, [-1, 0, 1])):
        assert function(x, axis=1).tolist() == wanted and rlx.jit(function, static_argnames="axis")(x, axis=1).tolist() == wanted
        assert function(x, axis=1, keepdims=True).shape == (3, 1) and int(function(x[:1])) == -1


def test_indices_of_axes_whose_size_is_a_symbol():
    x, rows, columns = np.arange(15, dtype=np.float32).reshape(5, 3), np.array([0, -1, 3]), np.array([0, 2, -1])
    outside = np.array([0, -1, 3, 9, -9])
    for function in (lambda v: jnp.take(v, rows, axis=0), lambda v: v[rows, columns], lambda v: v.at[rows, columns].add(1.0),
                     lambda v: jnp.take(v, outside, axis=0, mode="clip"), lambda v: jnp.take(v, outside, axis=0, mode="wrap"),
                     lambda v: jnp.take(v, outside, axis=0, mode="fill", fill_value=7.0),
                     lambda v: jnp.take_along_axis(v, jnp.argsort(-v, axis=0), 0)):  # fmt: skip
        compiled = rlx.jit(function, dims={"v": {0: rlx.Dim("B", 8)}})
        assert compiled(x).tolist() == function(rlx.asarray(x)).tolist() and compiled(x[1:]).tolist() == function(rlx.asarray(x[1:])).tolist()


def test_scans_of_axes_whose_size_is_a_symbol():
    x = RNG.normal(size=(5, 3))
    linear = lambda one, other: (one[0] * other[0], one[1] * other[0] + other[1])
    for function in (lambda v: lax.cumlogsumexp(v, 0), lambda v: lax.cumlogsumexp(v.T, -1, True), rlx.grad(lambda v: (lax.cumlogsumexp(v, 0) ** 2).sum()),
                     lambda v: rlx.associative_scan(linear, (jnp.tanh(v), v))[1]):  # fmt: skip
        compiled = rlx.jit(function, dims={"v": {0: rlx.Dim("B", 8)}})
        for size in (1, 4, 5):
            assert np.allclose(compiled(x[:size]), rlx.jit(function)(x[:size]), rtol=1e-12), size


def test_quantiles_and_diagonals_of_axes_whose_size_is_a_symbol():
    x = RNG.normal(size=(5, 3)).astype(np.float32)
    for function in (lambda v, np=jnp: np.median(v, axis=0), lambda v, np=jnp: np.median(v, axis=1), lambda v, np=jnp: np.median(v),
                     lambda v, np=jnp: np.quantile(v, 0.3, axis=0), lambda v, np=jnp: np.nanquantile(v, 0.3, axis=0)):  # fmt: skip
        compiled = rlx.jit(function, static_argnames="np", dims={"v": {0: rlx.Dim("B", 8)}})
        for size in (1, 4, 5):
            assert np.allclose(compiled(x[:size]), function(x[:size], np), rtol=1e-5, atol=1e-6), size
    for function in (jnp.trace, jnp.diagonal):
        with pytest.raises(rlx.Error, match=rf"{function.__name__}: B > 3 depends on the size B, any of 1..8 \(allowed: known sizes\)"):
            rlx.jit(lambda v: function(v), dims={"v": {0: rlx.Dim("B", 8)}})(x)


def test_reversals_and_convolutions_of_axes_whose_size_is_a_symbol():
    x, v = RNG.normal(size=7).astype(np.float32), np.array([1, -2, 0.5], np.float32)
    dims = {"a": {0: rlx.Dim("B", 8)}}
    for function in (lambda a, np=jnp: a[::-1], lambda a, np=jnp: np.convolve(a, v), lambda a, np=jnp: np.convolve(v, a), lambda a, np=jnp: np.convolve(a, a)):
        compiled = rlx.jit(function, static_argnames="np", dims=dims)
        for size in (1, 4, 7):
            assert np.allclose(compiled(x[:size]), function(x[:size], np), rtol=1e-5, atol=1e-5), size
    with pytest.raises(rlx.Error, match=r"axis 0 of size B has the step 2 \(allowed: 1, and -1 over the whole axis\)"):
        rlx.jit(lambda a: a[::2], dims=dims)(x)
    with pytest.raises(rlx.Error, match="convolve: B > 3 depends on the size B, any of 1..8"):
        rlx.jit(lambda a: jnp.convolve(a, v, "same"), dims=dims)(x)


def test_an_array_whose_first_size_is_a_symbol_is_no_list():
    for function in (len, list, jnp.vstack):
        with pytest.raises(rlx.Error, match=r"the length of f32\[B,2\] is the symbol B on axis 0"):
            rlx.jit(lambda v: function(v), dims={"v": {0: rlx.Dim("B", 8)}})(np.ones((3, 2), np.float32))


def test_indices_at_the_ends_of_64_bits():
    x, beyond = np.arange(7, dtype=np.float32), np.array([2, 2**63, 2**64 - 1], np.uint64)
    assert jnp.take(x, beyond, mode="clip").tolist() == [2, 6, 6] and jnp.take(x, beyond, mode="fill", fill_value=-1).tolist() == [2, -1, -1]
    assert jnp.take(x, beyond, mode="wrap").tolist() == [2, 2**63 % 7, (2**64 - 1) % 7]
    assert jnp.take_along_axis(x, beyond, mode="fill", fill_value=-1).tolist() == [2, -1, -1]
    for start, first in ((-(2**63) + 1, 0), (-(2**62), 0), (2**62, 5), (-3, 4)):
        assert rlx.lax.dynamic_slice(x, [np.int64(start)], [2]).tolist() == [first, first + 1]
        assert rlx.lax.dynamic_update_slice(x, x[:1] - 9, [np.int64(start)]).tolist().index(-9) == (6 if start > 0 else first)


def test_an_error_of_an_array_that_is_computed_within_a_call_is_an_error():
    size = rlx.ops.dim_value(rlx.asarray(np.int32(0)), rlx.Dim("B", 4), "int32")  # and no array has the size B
    with pytest.raises(rlx.Error, match="B"):
        rlx.jit(lambda x: x + size)(np.zeros(3, np.float32))


def test_differences_of_nothing_are_nothing():
    for shape, n, axis in (((0,), 1, -1), ((3,), 10, 0), ((2, 0), 1, 1), ((2, 0), 1, 0), ((1,), 2, 0)):
        assert jnp.diff(np.zeros(shape, np.float32), n, axis).shape == np.diff(np.zeros(shape), n, axis).shape
    assert jnp.unwrap(np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("call,text", [
    (lambda: jnp.median(A, axis=-3), "axis -3 is out of range for an array of 2 axes .allowed: -2..1"), (lambda: jnp.moveaxis(A, 5, 0), "axis 5"),
    (lambda: jnp.trapezoid(A, axis=5), "axis 5"), (lambda: rlx.asarray(A).transpose(0, 4), "axis 4"), (lambda: jnp.diff(A, axis=2), "axis 2"),
    (lambda: jnp.nanmedian(A, axis=2), "axis 2"), (lambda: jnp.vdot(A, V), "as many elements"), (lambda: jnp.meshgrid(V, V, indexing="no"), "xy, ij"),
    (lambda: jnp.gcd(2, 2.5), "gcd: f32"), (lambda: jnp.vander(A), "one axis"), (lambda: jnp.unpackbits(M), "allowed: u8"),
    (lambda: jnp.take_along_axis(A, A[:, :1], 1), "allowed: integers"), (lambda: jnp.compress(A > 0, A, 0), "one axis"), (lambda: jnp.choose(M[0], [V], mode="no"), "clip, wrap"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(rlx.Error, match=text):
        call()


def test_small_things_that_numpy_takes():
    with pytest.raises(IndexError, match="delete: index 9 is outside of axis 0"):
        jnp.delete(V, 9)
    assert rlx.asarray(A).item(5) == A.item(5) and rlx.asarray(A).item(1, 2) == A.item(1, 2)
    compare(jnp.i0(V), np.i0(V))
    assert jnp.quantile(A, np.float32([[0.1, 0.2]]), axis=0).shape == (1, 2, 4)
    for name in ("union1d", "setxor1d", "intersect1d", "setdiff1d"):
        assert getattr(jnp, name)(V, M[0]).dtype == rlx.float32, name
    compare(jnp.choose(M[0], [V[:1], -V[:1]], mode="wrap"), np.choose(M[0], [V[:1], -V[:1]], mode="wrap"))
    compare(rlx.logsumexp(A), np.log(np.exp(A).sum()))
    compare(rlx.sum(A), A.sum())
    compare(rlx.mean(A, None, True), A.mean(keepdims=True))
    compare(rlx.reduce_max(A, [1]), A.max(1))


def test_the_gradient_of_cholesky_is_symmetric():  # as in jax.numpy, of whose results these are finite differences
    matrix, weights = np.float32([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]]), RNG.normal(size=(3, 3)).astype(np.float32)
    found = rlx.grad(lambda x: (jnp.linalg.cholesky(x) * weights).sum())(matrix).numpy()
    for i in range(3):
        for j in range(i + 1):
            step = np.zeros((3, 3))
            step[i, j] = step[j, i] = 1e-4
            change = sum(sign * (np.linalg.cholesky(matrix + sign * step) * weights).sum() for sign in (1, -1)) / 2e-4
            assert np.isclose((found * (step != 0)).sum(), change, rtol=1e-3, atol=1e-3)
    assert np.array_equal(found, found.T)
    lower = jnp.linalg.cholesky(np.tril(matrix), symmetrize_input=False)
    compare(lower, np.linalg.cholesky(matrix))


PADS = [(mode, width, {}) for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "mean", "median", "minimum", "maximum", "linear_ramp")
        for width in (0, 2, (1, 2), ((1, 2), (3, 0)), ((0, 0), (5, 7)), ((1,), (2,)), ((1, 1),), np.int64([[1, 2], [3, 4]]))]  # fmt: skip
PADS += [(mode, ((1, 9), (12, 1)), {"reflect_type": kind}) for mode in ("reflect", "symmetric") for kind in ("even", "odd")]
PADS += [("wrap", ((1, 9), (12, 1)), {}), ("linear_ramp", 2, {"end_values": ((1, 2), (3, 4))}), ("linear_ramp", (1, 2), {"end_values": 7})]
PADS += [("constant", 2, {"constant_values": ((1, 2), (3, 4))}), ("constant", 2, {"constant_values": (1, 2)}), ("constant", 1, {"constant_values": 5})]
PADS += [(mode, 2, {"stat_length": length}) for mode in ("mean", "median", "minimum", "maximum") for length in (1, (1, 2), ((1, 2), (2, 3)), 100)]


@pytest.mark.parametrize("mode,width,options", PADS)
def test_pad(mode, width, options):
    whole = (A * 10).astype(np.int32)
    for x in (A, whole, A[:1], A[:, :1]):
        compare(jnp.pad(x, width, mode, **options), np.pad(x, width, mode, **options))
    compare(rlx.jit(lambda x: jnp.pad(x, width, mode, **options))(A), np.pad(A, width, mode, **options))


def test_pad_of_other_things():
    compare(jnp.pad(A, {0: (1, 2), -1: 1}), np.pad(A, ((1, 2), (1, 1))))
    compare(jnp.pad(A[:0], ((1, 1), (0, 0))), np.pad(A[:0], ((1, 1), (0, 0))))
    assert jnp.pad(A, 1, "empty").shape == (5, 6)
    lengths = rlx.jit(lambda x: jnp.pad(x, (2, 1), "edge"), dims={"x": {0: rlx.Dim("N", 64)}})
    for n in (4, 9):
        compare(lengths(np.arange(n, dtype=np.float32)), np.pad(np.arange(n, dtype=np.float32), (2, 1), "edge"))
    for width, options, text in ((-1, {}, "a width of -1"), (1, {"mode": "around"}, "mode 'around'"), (((1, 2),) * 3, {}, "a pair for each of 2 axes"),
                                 (1, {"mode": "mean", "stat_length": 0}, "a stat_length of 0"), ({2: 1}, {}, "axis 2"),
                                 (1, {"mode": "reflect", "reflect_type": "new"}, "reflect_type 'new'")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            jnp.pad(A, width, **options)
    with pytest.raises(rlx.Error, match="axis 0 is empty"):
        jnp.pad(A[:0], 1, "edge")


def test_distances_along_an_axis():
    low, high = np.float32([1, 2]), np.float32([100, 300])
    for axis in (0, 1, -1):
        compare(jnp.geomspace(low, high, 3, axis=axis), np.geomspace(low, high, 3, axis=axis))
        compare(jnp.logspace(low, 3.0, 4, axis=axis), np.logspace(low, 3.0, 4, axis=axis))
    compare(jnp.geomspace(low, 100, 3, endpoint=False), np.geomspace(low, 100, 3, endpoint=False))
    compare(jnp.geomspace(1j, 1000j, 4), np.geomspace(1j, 1000j, 4).astype(np.complex64))
    with np.errstate(invalid="ignore"):
        compare(jnp.geomspace(1, -1000, 4), np.geomspace(1, -1000, 4).astype(np.float32))
    compare(jnp.geomspace(1, 1000, 4, dtype="int32"), np.geomspace(1, 1000, 4, dtype=np.int32))


def test_positions_in_flat_arrays():
    rows, columns = np.int32([3, 8, -1]), np.int32([4, 9, 1])
    for order in "CF":
        for mode in ("wrap", "clip", ("wrap", "clip")):
            compare(jnp.ravel_multi_index((rows, columns), (7, 6), mode=mode, order=order), np.ravel_multi_index((rows, columns), (7, 6), mode=mode, order=order))
        for shape, at in (((7, 6), np.int32([22, 41, 37])), ((2, 3, 4), np.int32([[5], [23]])), (7, np.int32(5))):
            for mine, other in zip(jnp.unravel_index(at, shape, order), np.unravel_index(at, shape, order), strict=True):
                compare(mine, other)
    with pytest.raises(rlx.Error, match=r"index 8 on axis 0 \(allowed: 0..6\)"):
        jnp.ravel_multi_index((rows, columns), (7, 6))
    assert [int(i) for i in jnp.unravel_index(50, (7, 6))] == [6, 5]


def test_sort_complex():
    for x in (Z, np.complex64([3 + 1j, 1 - 2j, 1 + 0j, np.nan]), M, N.astype(np.float32)):
        compare(jnp.sort_complex(x), np.sort_complex(x).astype(np.complex64))


def test_bool_is_added_and_multiplied_as_numpy_does():
    b, c = A > 0, B > 0
    x, y = rlx.asarray(b), rlx.asarray(c)
    for mine, other in ((x + y, b + c), (x * y, b * c), (b + y, b + c), (x * c, b * c), (x + True, b + True), (False * x, False * b)):
        compare(mine, other)
    compare(jnp.add(x, c), b + c)
    compare(jnp.multiply(b, y), b * c)
    assert (x + 1).dtype == rlx.int32 and (x * 0.5).dtype == rlx.float32
    compare(rlx.jit(lambda x, y: x + y * x)(b, c), b + c * b)
    with pytest.raises(rlx.Error, match="rlx.sub: bool"):
        x - y


def test_differences_of_bool_and_with_numbers_at_the_ends():
    for x, options in ((A, {"prepend": 0}), (A, {"append": 2, "axis": 0}), (N, {"prepend": 0.5}), (A > 0, {}), (A > 0, {"prepend": True}),
                       (A > 0, {"append": np.array(False), "n": 2}), (A, {"prepend": A[:, :1], "append": 1.5}), (N, {"prepend": np.float32([[2.5]] * 3)})):  # fmt: skip
        expected = np.diff(x, **options)
        compare(jnp.diff(x, **options), expected.astype(np.float32) if expected.dtype == np.float64 else expected)


def test_numbers_of_python_reach_f64_whole():
    x = np.arange(12.0).reshape(3, 4) - 4.0
    for mine, other in ((jnp.quantile(x, 0.3, axis=0), np.quantile(x, 0.3, axis=0)), (jnp.percentile(x, 30.1, axis=1), np.percentile(x, 30.1, axis=1)),
                        (jnp.nanquantile(x, [0.1, 0.7]), np.nanquantile(x, np.float32([0.1, 0.7]).astype(float))), (jnp.insert(x, 0, 0.1, 0), np.insert(x, 0, 0.1, 0)),
                        (jnp.pad(x, 1, constant_values=0.1), np.pad(x, 1, constant_values=0.1)), (jnp.logaddexp2(x, 0.1), np.logaddexp2(x, 0.1)),
                        (jnp.heaviside(x, 0.1), np.heaviside(x, 0.1)),
                        (jnp.piecewise(x, [x > 0], [0.1, 0.3]), np.piecewise(x, [x > 0], [0.1, 0.3]))):  # fmt: skip
        assert mine.dtype == rlx.float64
        np.testing.assert_allclose(mine, other, rtol=1e-14)
    for change in (rlx.asarray(x).at[0].set(0.1), (rlx.asarray(x) * 0).at[0].add(0.1)):
        np.testing.assert_array_equal(change[0], [0.1] * 4)
    whole = rlx.asarray(np.arange(3)).at[1].set(2.7)
    assert whole.tolist() == [0, 2, 2]


W = np.array([[3 + 1j, 1 - 2j, 1 + 0j], [1 - 3j, 3 + 1j, 3 - 1j]], np.complex64)


def test_complex_numbers_are_in_order_by_their_parts():
    for axis in (0, 1, -1, None):
        for name in ("sort", "argsort", "min", "max", "ptp", "std", "var"):
            np.testing.assert_allclose(getattr(jnp, name)(W, axis=axis), getattr(np, name)(W, axis=axis, **({"kind": "stable"} if name == "argsort" else {})), rtol=1e-6)
    np.testing.assert_array_equal(rlx.jit(jnp.sort)(W), np.sort(W))
    np.testing.assert_array_equal(jnp.sort(W[0], descending=True), np.sort(W[0])[::-1])
    for name in ("maximum", "minimum"):
        for x, y in ((W, W[::-1]), (W, np.float32(1)), (np.int32([3, 1, 2]), W), (W, np.complex64(np.nan))):
            compare(getattr(jnp, name)(x, y), getattr(np, name)(x, y.astype(np.complex64)))
    holds = np.array([True, False, True])
    np.testing.assert_allclose(jnp.var(W, axis=1, ddof=1, keepdims=True, where=holds), np.var(W, axis=1, ddof=1, keepdims=True, where=holds), rtol=1e-6)
    np.testing.assert_array_equal(jnp.max(W, axis=0, initial=2, where=holds), np.max(W, axis=0, initial=2, where=holds))
    for hole in (complex(np.nan, 1), complex(1, np.nan)):
        assert all(np.isnan(extreme(np.array([9, hole, 1], np.complex64)).numpy()) for extreme in (jnp.max, jnp.min))
    with pytest.raises(rlx.Error, match="max: no elements"):
        jnp.max(W[:, :0])


def test_arithmetic_of_bool_that_has_no_meaning_for_it_counts():
    x, y = np.array([True, False, True]), np.array([True, True, True])
    for name in ("remainder", "fmod", "floor_divide", "power"):
        for a, b in ((x, y), (x, True), (True, y)):
            result = getattr(jnp, name)(a, b)
            assert result.dtype == rlx.int32 and np.array_equal(result, getattr(np, name)(a, b))
    assert (rlx.asarray(x) % True).tolist() == [0, 0, 0] and (rlx.asarray(x) ** 2).tolist() == [1, 0, 1]


def test_roots():
    for p in ([1, -3, 2], [2.0, 0, 0], [0, 0, 1, -1], [5], [], [0, 0], [1, 0, 1], [1j, 2]):
        p = np.array(p, np.complex64 if p and p[0] == 1j else np.float32)
        found = jnp.roots(p)
        assert found.dtype == rlx.complex64
        np.testing.assert_allclose(np.sort(found), np.sort(np.roots(p)), atol=1e-6)
    assert jnp.roots(np.array([1, -3, 2.0])).dtype == rlx.complex128


def test_a_difference_of_sets_has_the_type_of_the_first():
    for x, y in ((M[0], A[0]), (np.array([2**53 + 1]), np.array([2.0**53])), (np.array([True, False]), np.array([1]))):
        compare(jnp.setdiff1d(x, y), np.setdiff1d(x, y))


def test_odd_arguments_mean_what_they_mean_to_numpy():
    assert not np.signbit(np.asarray(jnp.sign(np.float32([-0.0, 0.0])))).any() and not np.signbit(np.asarray(jnp.sign(np.complex64(complex(-0.0, -0.0)))).imag)
    holds = np.array([True, False, True, False])
    for mine, other in ((jnp.roll(A, (1, 2), 0), np.roll(A, (1, 2), 0)), (jnp.roll(A, (1, 2)), np.roll(A, (1, 2))), (jnp.roll(A, (1,), (0, 1)), np.roll(A, (1,), (0, 1))),
                        (jnp.delete(D, holds), np.delete(D, holds)), (jnp.insert(D, holds, 9), np.insert(D, holds, 9)), (jnp.take(D, holds), np.take(D, holds))):  # fmt: skip
        compare(mine, other)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for mine, other in zip(getattr(jnp, name)(2.5, D, A), getattr(np, name)(np.float32(2.5), D, A)):
            compare(mine, other)
    positive, halves = A > 0, np.int32([15, 25, -15, -25, 14, 16, 7, -7])
    for mine, other in ((jnp.matmul(positive, positive.T), positive @ positive.T), (jnp.dot(positive, positive[0]), positive @ positive[0]), (abs(rlx.asarray(positive)), positive), (jnp.abs(positive), positive),
                        (jnp.floor(positive), positive), (jnp.round(halves, -1), np.round(halves, -1)), (jnp.round(halves, -9), halves * 0), (jnp.round(W / 3, 1), np.round(W / 3, 1)),
                        (jnp.square(positive), positive * np.int32(1)), (jnp.partition(D, -4), np.sort(D)), (jnp.linalg.matrix_rank(D), np.int32(1)),
                        (jnp.cross(A[:, :2], B[:, :2]), A[:, 0] * B[:, 1] - A[:, 1] * B[:, 0]), (jnp.kaiser(5, 2.0), np.kaiser(5, 2.0).astype(np.float32))):  # fmt: skip
        compare(mine, other)
    for call, message in ((lambda: jnp.delete(D, holds[:2]), r"a mask of bool\[2\] for 4 slices"), (lambda: jnp.diag(T), "diag: .* one axis or two"),
                          (lambda: jnp.diff(D, -1), "diff: -1 times"), (lambda: jnp.gradient(D[:1]), "gradient: .* 2 and more"),
                          (lambda: jnp.cross(A, A), "cross: .* three elements"), (lambda: jnp.linalg.det(A), "determinant of .* square"),
                          (lambda: jnp.linalg.slogdet(D), "square"), (lambda: jnp.partition(D, 4), "element 4 of 4"), (lambda: jnp.argpartition(D, -5), "element -5"),
                          (lambda: jnp.put_along_axis(A, M, 0, 1, inplace=True), "arrays do not change")):  # fmt: skip
        with pytest.raises(rlx.Error, match=message):
            call()


def test_f64_keeps_its_digits():
    x = RNG.normal(size=(50, 2))  # whose ends are no numbers of f32
    for mine, theirs in ((jnp.histogram(x, 7), np.histogram(x, 7)), (jnp.histogram2d(*x.T, 5), np.histogram2d(*x.T, 5))):
        for seen, expected in zip(mine, theirs):
            assert np.allclose(seen, expected, rtol=1e-14, atol=1e-14)
    for ends in ((0.3, 700.0), (-2.0, -0.7), (np.float64([0.1, 3]), np.float64([5, 0.2]))):
        for endpoint in (True, False):
            seen = jnp.geomspace(*ends, 6, endpoint=endpoint, dtype=np.float64)
            assert np.allclose(seen, np.geomspace(*ends, 6, endpoint=endpoint), rtol=1e-14)
    assert np.allclose(jnp.logspace(-0.3, 2, 7, dtype=np.float64), np.logspace(-0.3, 2, 7), rtol=1e-14)


def test_integers_at_equal_distances_are_those_below():
    for ends in ((-3, 3), (2.5, -4.5), (np.float32([0.5, 9]), np.float32([-3.7, 0])), (np.int32([0]), np.int32([7]))):
        assert np.array_equal(jnp.linspace(*ends, 6, dtype=int), np.linspace(*ends, 6, dtype=int))


def test_cross_takes_vectors_of_three():
    x, y = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(4, 2, 3))
    for axes in ({"axisa": 0}, {"axisa": 0, "axisc": 1}, {"axisa": 0, "axisb": -1, "axisc": 0}):
        assert np.allclose(jnp.cross(x, y, **axes), np.cross(x, y, **axes))
    assert np.allclose(jnp.cross(x, x[::-1], axis=0), np.cross(x, x[::-1], axis=0))
    for shape, text in (((), "array of 0 axes"), ((3, 4), r"f32\[3,4\].*allowed: three elements each, or two, along the axis")):
        with pytest.raises(rlx.Error, match=text):
            jnp.cross(np.ones(shape, np.float32), np.ones(shape, np.float32))


def test_transforms_refuse_other_norms():
    for name in ("fft", "irfft", "hfft", "ihfft"):
        with pytest.raises(rlx.Error, match="norm is 'both' \\(allowed: backward, ortho, forward\\)"):
            getattr(jnp.fft, name)(A, norm="both")


def test_complex_logarithms_at_their_poles():
    for name, points in (("log2", [0, 8j, -3 + 1j]), ("log10", [0, -100, 2j]), ("arctanh", [1, -1, 0.5j, 0.3 + 2j]), ("arctan", [1j, -1j, 0.5, 3 - 1j])):
        z = np.array(points, np.complex128)
        with np.errstate(divide="ignore"):
            expected = getattr(np, name)(z)
        for seen in (getattr(jnp, name)(z), rlx.jit(getattr(jnp, name))(z)):
            np.testing.assert_allclose(np.asarray(seen), expected, rtol=1e-14, atol=1e-16)


def test_rare_arguments_are_as_in_numpy():
    x = np.float32([[1, -2], [3, np.nan]])
    assert np.array_equal(jnp.flip(np.arange(3), ()), np.arange(3)) and np.array_equal(jnp.flip(np.arange(3)), [2, 1, 0])
    assert jnp.copysign(np.float16([1, -2]), np.float32([-1])).dtype == rlx.float32 and jnp.spacing(rlx.ones_like(jnp.zeros(1, "bfloat16"))).dtype == rlx.bfloat16
    for name in ("remainder", "fmod"):
        assert getattr(jnp, name)(np.int32([7, -7, 7]), np.int32([0, 0, 2])).tolist() == [0, 0, 1]
    chosen = np.array([[True, False], [True, True]])
    for name in ("nanmean", "nanvar", "nanstd"):
        np.testing.assert_allclose(getattr(jnp, name)(x, where=chosen), getattr(np, name)(x, where=chosen), rtol=1e-6)
    assert jnp.nanmax(x, axis=0, initial=-1, where=chosen).tolist() == [3, -1] and jnp.nanmin(x, axis=1, initial=2).tolist() == [-2, 2]
    z = np.complex64([1 + 2j, 3 - 1j, complex(np.nan, 0)])
    assert jnp.nanvar(z).dtype == rlx.float32 and np.allclose(jnp.nanvar(z), np.nanvar(z))
    assert np.allclose(jnp.i0(np.int32([0, 2])), np.i0([0, 2]))


def test_vecdot_takes_an_axis_of_each():
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    np.testing.assert_array_equal(jnp.vecdot(x, y, axis=0), np.einsum("ik,ijk->jk", x, y))
    with pytest.raises(rlx.Error, match="vecdot: axis -1 has size 1 in x, 4 in y"):
        jnp.vecdot(x[:, :1], x)


def test_rare_operands_are_as_in_jax():
    assert lax.clamp(np.int32(8), np.int32([1, 6, 9]), np.int32(5)).tolist() == [5, 5, 5]
    assert lax.pad(np.int64([1]), 2**53 + 1, [(1, 0, 0)]).tolist() == [2**53 + 1, 1]
    assert rlx.jit(lambda x, v: lax.pad(x, v, [(1, -1, 1)]))(np.complex64([1, 2]), np.complex64(3j)).tolist() == [3j, 1, 3j]
    assert rlx.grad(lambda v: lax.pad(np.float32([1, 2]), v, [(1, 2, 1)]).sum())(np.float32(0)) == 4
    either = np.array([True, False])
    assert bool(lax.dot_general(either, either, (([0], [0]), ([], []))).numpy()) is True


def cofactors(a):
    rest = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)  # noqa: E731
    return np.array([[(-1) ** (i + j) * np.linalg.det(rest(i, j)) for j in range(len(a))] for i in range(len(a))])


@pytest.mark.parametrize("n", range(1, 6))
def test_the_gradient_of_a_determinant_is_its_cofactors_of_singular_matrices_too(n):
    rng = np.random.default_rng(n)
    for rank in range(n + 1):
        a = (rng.integers(-3, 4, (n, rank)) @ rng.integers(-2, 3, (rank, n))).astype(float)
        parts = np.diag([0.0] * (n - rank) + [1.0] * rank)
        for each in (a, parts, np.roll(parts, 1, 0)):
            compare(rlx.grad(jnp.linalg.det)(each), cofactors(each))
        batch = np.stack([a, parts, np.eye(n) + a])
        compare(rlx.grad(lambda x: jnp.linalg.det(x).sum())(batch), np.stack([cofactors(each) for each in batch]))
    compare(jnp.linalg.det(np.zeros((n, 0, 0))), np.ones(n))


def test_second_derivatives_of_determinants_of_three_singular_rows_are_differences_of_cofactors():
    a, d = np.float64([[1, 2, 3], [2, 4, 6], [1, 0, 1]]), np.random.default_rng(1).normal(size=(3, 3))
    compare(rlx.jvp(rlx.grad(jnp.linalg.det), (a,), (d,))[1], (cofactors(a + 1e-4 * d) - cofactors(a - 1e-4 * d)) / 2e-4)


def test_slices_that_differ_are_cut_and_filled_along_their_axis():
    x = np.int32([[3, 1, 3], [3, 1, 3], [2, 0, 2]])
    compare(jnp.unique(x, axis=1, size=1), x[:, 1:2])
    compare(jnp.unique(x, axis=1, size=3), x[:, [1, 0, 1]])
    compare(jnp.unique(x, axis=1, size=3, fill_value=9), np.int32([[1, 3, 9], [1, 3, 9], [0, 2, 9]]))


def test_edges_that_fall_are_found_while_they_are_traced():
    for edges in (np.float32([-1, 0, 1]), np.float32([1, 0, -1])):
        for right in (False, True):
            compare(rlx.jit(lambda x, bins: jnp.digitize(x, bins, right))(A, edges), np.digitize(A, edges, right))  # noqa: B023


def test_a_preferred_type_narrower_than_the_operands_rounds_sums_alone():
    x, y = np.float32([[1.005, -1]]), np.float32([[1], [1]])
    options = {"preferred_element_type": "bfloat16"}
    conv = lax.conv_general_dilated(x[None], y.T[None], (1,), "VALID", **options)
    sums = [jnp.matmul(x, y, **options), jnp.einsum("ij,jk->ik", x, y, **options), lax.dot_general(x, y, (((1,), (0,)), ((), ())), **options), conv,
            jnp.vdot(x, y, **options), jnp.vecdot(x, y.T, **options)]  # fmt: skip
    assert all(str(each.dtype) == "bfloat16" and abs(float(each.item()) - 0.005) < 5e-5 for each in sums), sums
    small = np.int8([[100, 100]])
    assert jnp.vecdot(small, small, preferred_element_type="int32").tolist() == [20000]
    assert jnp.matmul(small, small.T, preferred_element_type="float32").tolist() == [[20000]]


def test_the_sign_of_a_complex_determinant_has_the_derivative_of_its_angle():
    rng = np.random.default_rng(4)
    a, d = [rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)) for _ in range(2)]
    change = rlx.jvp(lambda x: jnp.linalg.slogdet(x)[0], (a,), (d,))[1]
    compare(change, (np.linalg.slogdet(a + 1e-6 * d)[0] - np.linalg.slogdet(a - 1e-6 * d)[0]) / 2e-6)
    assert jnp.linalg.slogdet(a * 0)[0].item() == 0


SIZED = {"zeros": lambda xp, x: xp.zeros((2, x.shape[1])) + x[0], "full": lambda xp, x: xp.full((x.shape[0], 3), 7.0) * x[:, :1],
         "eye": lambda xp, x: x @ xp.eye(x.shape[1], k=1), "arange": lambda xp, x: x + xp.arange(x.shape[1]), "pad": lambda xp, x: xp.pad(x, ((1, 2), (0, 1)), constant_values=4),
         "concatenate": lambda xp, x: xp.concatenate([x, xp.ones((1, x.shape[1]))], 0)}  # fmt: skip


@pytest.mark.parametrize("name", SIZED)
def test_constants_have_sizes_that_are_symbols(name):
    compiled = rlx.jit(lambda x: SIZED[name](jnp, x), dims={"x": {0: rlx.Dim("A", 9), 1: rlx.Dim("B", 9)}})
    differentiated = rlx.jit(rlx.grad(lambda x: (SIZED[name](jnp, x) ** 2.0).sum()), dims={"x": {0: rlx.Dim("A", 9), 1: rlx.Dim("B", 9)}})
    for shape in ((3, 4), (5, 2), (1, 7)):
        x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        compare(compiled(x), SIZED[name](np, x).astype(np.float32))
        compare(differentiated(x), rlx.grad(lambda x: (SIZED[name](jnp, x) ** 2.0).sum())(x))
    assert compiled.cache_size() == 1


def test_an_element_is_replaced_where_sizes_are_symbols():
    compiled = rlx.jit(lambda x: x.at[0].set(2.0), dims={"x": {0: rlx.Dim("A", 9), 1: rlx.Dim("B", 9)}})
    for shape in ((3, 4), (1, 7)):
        compare(compiled(np.ones(shape, np.float32)), np.concatenate([np.full((1, shape[1]), 2), np.ones((shape[0] - 1, shape[1]))]).astype(np.float32))
