"""Functions of rlx.lax: convolutions and reductions. Expected values are loops of NumPy."""
import itertools

import numpy as np
import pytest

import rlx
from rlx import lax
from rlx.nn import initializers

RNG = np.random.default_rng(7)
X = RNG.normal(size=(2, 3, 7, 6))


def convolved(x, w, strides, ends, lhs_dilation=(1, 1), rhs_dilation=(1, 1)):
    """By its definition, of NCHW and OIHW."""
    wide = np.zeros((*x.shape[:2], *[(n - 1) * d + 1 for n, d in zip(x.shape[2:], lhs_dilation)]))
    wide[:, :, :: lhs_dilation[0], :: lhs_dilation[1]] = x
    wide = np.pad(wide, [(0, 0), (0, 0), *ends])
    spans = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], rhs_dilation)]
    counts = [(n - span) // s + 1 for n, span, s in zip(wide.shape[2:], spans, strides)]
    y = np.zeros((x.shape[0], w.shape[0], *counts))
    for i, j in itertools.product(*map(range, counts)):
        at = [slice(k * s, k * s + span, d) for k, s, span, d in zip((i, j), strides, spans, rhs_dilation)]
        y[:, :, i, j] = np.einsum("nchw,ochw->no", wide[:, :, at[0], at[1]], w)
    return y


def test_windows_become_features():
    patches = lax.conv_general_dilated_patches(X, (3, 2), (2, 1), [(1, 2), (0, 1)], rhs_dilation=(1, 2))
    w = RNG.normal(size=(4, 3, 3, 2))
    expected = convolved(X, w, (2, 1), [(1, 2), (0, 1)], rhs_dilation=(1, 2))
    assert np.allclose(np.einsum("npij,op->noij", patches, w.reshape(4, -1)), expected)
    last = lax.conv_general_dilated_patches(X.transpose(0, 2, 3, 1), (3, 2), (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    assert np.allclose(np.moveaxis(last.numpy(), -1, 1), lax.conv_general_dilated_patches(X, (3, 2), (2, 1), "SAME"))
    assert np.allclose(rlx.jit(rlx.vmap(lambda x: lax.conv_general_dilated_patches(x[None], (3, 2), (2, 1), "SAME")[0]))(X), np.moveaxis(last.numpy(), -1, 1))


def test_convolutions_in_short():
    w = RNG.normal(size=(4, 3, 2, 2))
    assert np.allclose(lax.conv(X, w, (1, 2), "VALID"), convolved(X, w, (1, 2), [(0, 0), (0, 0)]))
    seen = lax.conv_with_general_padding(X, w, (1, 2), [(1, 0), (0, 2)], (1, 2), (2, 1))
    assert np.allclose(seen, convolved(X, w, (1, 2), [(1, 0), (0, 2)], (1, 2), (2, 1)))
    numbers = lax.conv_dimension_numbers(X.shape, w.shape, ("HWNC", "OIHW", "NHWC"))
    assert numbers == ((2, 3, 0, 1), (0, 1, 2, 3), (0, 3, 1, 2))


def test_transposed_convolutions():
    """The transpose of a convolution is what its gradient does; the sizes of others are JAX's."""
    x, w = RNG.normal(size=(2, 4, 5, 3)), RNG.normal(size=(3, 3, 2, 3))
    forward = lambda y: lax.conv_general_dilated(y, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    expected = rlx.vjp(forward, np.zeros((2, 9, 11, 2)))[1](x)[0]
    for function in (lax.conv_transpose, rlx.jit(lax.conv_transpose, static_argnums=(2, 3), static_argnames="transpose_kernel")):
        assert np.allclose(function(x, w, (2, 2), "VALID", transpose_kernel=True), expected)
    for padding, strides, sizes in (("SAME", (2, 3), (8, 15)), ("VALID", (2, 3), (9, 15)), ("VALID", (1, 5), (6, 25)), ([(1, 1), (0, 2)], (3, 1), (10, 5))):
        assert lax.conv_transpose(x, np.swapaxes(w, 2, 3), strides, padding).shape == (2, *sizes, 2)
    assert lax.conv_transpose(x[:, 0], np.swapaxes(w, 2, 3)[0], (2,), "SAME").shape == (2, 10, 2)
    with pytest.raises(rlx.Error, match="'EVEN' .allowed: SAME, VALID"):
        lax.conv_transpose(x, w, (1, 1), "EVEN")


def test_reductions_by_a_function():
    assert np.allclose(rlx.jit(lambda x: lax.reduce(x, 1.5, lambda a, b: a + b, (1, -1)))(X), X.sum((1, 3)) + 1.5)
    largest, total = lax.reduce((X, X * 2), (-np.inf, 0.0), lambda a, b: (lax.max(a[0], b[0]), a[1] + b[1]), (0, 2))
    assert np.allclose(largest, X.max((0, 2))) and np.allclose(total, 2 * X.sum((0, 2)))
    assert np.allclose(rlx.grad(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0, 1, 2, 3)))(X[:1, :1, :2, :2]), X[:1, :1, :2, :2].prod() / X[:1, :1, :2, :2])


def test_the_largest_and_least():
    ascending = np.sort(X, axis=2)
    values, places = lax.approx_max_k(X, 2, reduction_dimension=2)
    assert np.allclose(values, ascending[:, :, :-3:-1]) and np.allclose(np.take_along_axis(X, places.numpy(), 2), values) and places.dtype == rlx.int32
    assert np.allclose(lax.approx_min_k(X, 2, reduction_dimension=2)[0], ascending[:, :, :2])


def test_small_helpers():
    assert lax.broadcast_to_rank(X, 6).shape == (1, 1, *X.shape) and lax.broadcast_shapes((1, 2), (3, 1)) == (3, 2)
    assert lax.platform_dependent(3, cpu=lambda x: x + 1, tpu=None) == 4 and lax.platform_dependent(3, default=lambda x: x) == 3
    with pytest.raises(rlx.Error, match="for cuda .allowed"):
        lax.platform_dependent(3, cuda=lambda x: x)
    kernel = initializers.delta_orthogonal()(rlx.random.key(0), (3, 3, 4, 5)).numpy()
    assert np.allclose(kernel[1, 1] @ kernel[1, 1].T, np.eye(4), atol=1e-6) and np.count_nonzero(kernel) == 20


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_upper_halves_of_products(name):
    ends = np.iinfo(name)
    x = np.concatenate([RNG.integers(ends.min, ends.max, 50, name, endpoint=True), np.array([ends.min, ends.max, 0, 1], name)])
    y = x[::-1].copy()
    expected = np.array([int(a) * int(b) >> ends.bits for a, b in zip(x, y)], name)
    for run in (lax.mulhi, rlx.jit(lax.mulhi), rlx.vmap(lax.mulhi)):
        assert np.array_equal(run(x, y), expected)
    with pytest.raises(rlx.Error, match="both of one type"):
        lax.mulhi(x, x.astype(np.float32))


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64", "int8", "int64"])
def test_the_highest_bit_fills_arithmetic_shifts(name):
    ends = np.iinfo(name)
    x, signed = np.array([ends.max, ends.max // 2, 5, ends.min], name), name.replace("uint", "int")
    assert np.array_equal(lax.shift_right_arithmetic(x, np.full(4, 3, name)), (x.view(signed) >> 3).view(name))


def test_bits_of_other_widths_are_words():
    x = np.float32([1.5, -2.25, 1e-30])
    assert np.array_equal(lax.bitcast_convert_type(x, "uint8"), x.view(np.uint8).reshape(3, 4))
    assert np.array_equal(lax.bitcast_convert_type(x.view(np.int16).reshape(3, 2), "float32"), x)


def test_factors_by_the_names_of_lax():
    a, b = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 3))
    whole = a @ a.T + np.eye(4)
    r = np.linalg.cholesky(whole).T
    assert np.allclose(lax.linalg.cholesky(whole), r.T) and np.allclose(rlx.jit(lax.linalg.cholesky_update)(r, b[:, 0]), np.linalg.cholesky(whole + np.outer(b[:, 0], b[:, 0])).T)
    v, w = lax.linalg.eigh(whole)
    assert np.allclose(w, np.linalg.eigvalsh(whole)) and np.allclose(whole @ v, v * w) and lax.linalg.eigh(whole, subset_by_index=(1, 3))[0].shape == (4, 2)
    assert np.allclose(lax.linalg.eigh(a, lower=False, symmetrize_input=False)[1], np.linalg.eigvalsh(a, "U"))
    factors, pivots, rows = lax.linalg.lu(a)
    assert np.allclose((np.tril(factors, -1) + np.eye(4)) @ np.triu(factors), a[rows.numpy()]) and np.array_equal(lax.linalg.lu_pivots_to_permutation(pivots, 4), rows)
    for full in (True, False):
        q, r = lax.linalg.qr(b, full_matrices=full)
        u, s, vh = lax.linalg.svd(b, full_matrices=full)
        assert q.shape == u.shape == (4, 4 if full else 3) and np.allclose(q @ r, b) and np.allclose(u[:, :3] * s @ vh, b)
    assert np.allclose(lax.linalg.svd(b, compute_uv=False, subset_by_index=(0, 2)), np.linalg.svd(b)[1][:2]) and lax.linalg.svd(b, subset_by_index=(0, 2))[0].shape == (4, 2)
    assert np.allclose(lax.linalg.symmetric_product(b, a, alpha=2.0, beta=0.5), 2 * b @ b.T + a / 2)
    for lower, transposed, unit in itertools.product((False, True), repeat=3):
        t = np.tril(whole) if lower else np.triu(whole)
        t = t - np.diag(np.diag(t)) + np.eye(4) if unit else t
        t = t.T if transposed else t
        options = {"lower": lower, "transpose_a": transposed, "unit_diagonal": unit}
        assert np.allclose(t @ lax.linalg.triangular_solve(whole, b, left_side=True, **options), b) and np.allclose(lax.linalg.triangular_solve(whole, b.T, **options) @ t, b.T)
        assert np.allclose(t @ rlx.vmap(lambda each: lax.linalg.triangular_solve(whole, each, left_side=True, **options), 1, 1)(b), b)
    assert np.allclose(lax.polygamma(1.0, np.float64([1.0])), np.pi**2 / 6)


def test_names_of_dtypes():
    from rlx import dtypes

    assert dtypes.canonicalize_dtype("float64") == rlx.float64 and dtypes.bfloat16 is rlx.bfloat16 and dtypes.result_type(rlx.float32, rlx.float64) == rlx.float64
    assert [dtypes.itemsize_bits(each) for each in ("int4", "bool", "float8_e4m3fn", "bfloat16", "complex128")] == [4, 8, 8, 16, 128]
    assert [dtypes.scalar_type_of(each) for each in (True, 1, rlx.numpy.zeros(2), np.complex64(1))] == [bool, int, float, complex]


def philox(counter, key):
    """Philox4x32-10 of Salmon et al. 2011 on integers."""
    for i in range(10):
        (a, b), (c, d) = [divmod(factor * word, 2**32) for factor, word in ((0xD2511F53, counter[0]), (0xCD9E8D57, counter[2]))]
        keys = [(word + i * step) % 2**32 for word, step in zip(key, (0x9E3779B9, 0xBB67AE85))]
        counter = [c ^ counter[1] ^ keys[0], d, a ^ counter[3] ^ keys[1], b]
    return counter


def test_bits_are_blocks_of_philox_and_the_key_counts_them():
    assert philox([0] * 4, [0, 0]) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # of the paper's authors
    key = np.uint32([0x243F6A88, 0x85A308D3, 0xFFFFFFFF, 7])  # its count goes on in the other word
    expected = philox([0xFFFFFFFF, 7, 0, 2], key[:2].tolist()) + philox([0, 8, 0, 2], key[:2].tolist())
    for draw in (lax.rng_bit_generator, rlx.jit(lax.rng_bit_generator, static_argnums=(1, 2))):
        after, bits = draw(key, (3, 2))
        assert bits.dtype == rlx.uint32 and bits.tolist() == np.reshape(expected[:6], (3, 2)).tolist() and after.tolist() == [*key[:2].tolist(), 1, 8]
        assert draw(key, (3,), "uint64")[1].tolist() == [low + high * 2**32 for low, high in zip(expected[:6:2], expected[1:6:2])]
        assert draw(key, (5,), "uint8")[1].tolist() == [word % 256 for word in expected[:5]] and draw(key, (5,), "uint16")[1].dtype == rlx.uint16
    assert lax.rng_bit_generator(after, ())[1] == philox([1, 8, 0, 2], key[:2].tolist())[0]
    for call, text in ((lambda: lax.rng_bit_generator(rlx.random.key(0), (3,)), r"u32\[2\] \(allowed: u32\[4\]\)"), (lambda: lax.rng_bit_generator(key, (3,), "f32"), "f32 by"),
                       (lambda: lax.rng_bit_generator(key, (3,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY), "by RNG_THREE_FRY")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()
