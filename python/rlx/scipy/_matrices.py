"""Matrices of special forms. Those of numbers alone are f32."""
import math

from .. import numpy as jnp
from .._core import Error
from ..numpy._base import array_of, float_of
from ..numpy.elementwise import equal, where


def _numbers(rows, columns, element, dtype="float32"):
    return jnp.asarray([[element(i, j) for j in range(columns)] for i in range(rows)], dtype).reshape(rows, columns)


def _selected(values, rows, columns, place):
    """The matrix of the elements values[..., place(i, j)]; i and j are arrays of all rows and columns."""
    places = place(jnp.arange(rows)[:, None], jnp.arange(columns)[None, :])
    return jnp.take(values, places, axis=-1, mode="clip")


def toeplitz(c, r=None):
    """The matrix whose diagonals are constant: its first column and row."""
    c = array_of(c).reshape(-1)
    r = jnp.conj(c) if r is None else array_of(r).reshape(-1)
    n = c.shape[0]
    return _selected(jnp.concatenate([c[::-1], r[1:]]), n, r.shape[0], lambda i, j: n - 1 - i + j)


def hankel(c, r=None):
    """The matrix whose diagonals from below are constant: its first column and last row (zeros by itself), of which the first element is not read."""
    c = array_of(c).reshape(-1)
    r = jnp.zeros_like(c) if r is None else array_of(r).reshape(-1)
    return _selected(jnp.concatenate([c, r[1:]]), c.shape[0], r.shape[0], lambda i, j: i + j)


def circulant(c):
    """The matrix whose columns are the first one, c, turned by one more row each."""
    c = array_of(c)
    n = c.shape[-1]
    return _selected(c, n, n, lambda i, j: (i - j) % n)


def fiedler(a):
    """The matrix |a_i - a_j|."""
    a = array_of(a)
    return abs(a[..., :, None] - a[..., None, :])


def leslie(f, s):
    """The matrix with the first row f, and s below the diagonal."""
    f, s = array_of(f), array_of(s)
    if s.shape[-1] != f.shape[-1] - 1:
        raise Error(f"leslie: f has {f.shape[-1]} elements and s {s.shape[-1]} (allowed: one less)")
    dtype = jnp.result_type(f, s)
    n = f.shape[-1]
    values = jnp.concatenate([jnp.zeros_like(f[..., :1]).astype(dtype), f.astype(dtype), s.astype(dtype)], -1)
    return _selected(values, n, n, lambda i, j: where(equal(i, 0), j + 1, where(equal(i, j + 1), i + n, 0)))


def companion(a):
    """The matrix whose characteristic polynomial has these coefficients, the highest first."""
    a = float_of(a)
    if a.ndim < 1 or a.shape[-1] < 2:
        raise Error(f"companion: {a._type_text()} (allowed: two coefficients and more)")
    return leslie(-a[..., 1:] / a[..., :1], jnp.ones_like(a[..., 2:]))


def fiedler_companion(a):
    """The same with five diagonals."""
    a = float_of(a)
    n = a.shape[-1] - 1

    def place(i, j):
        """0: zero, 1: one, k + 1: minus the coefficient k."""
        first = where(equal(i, 0), 2, equal(i, 1))
        odd = where(equal(i, j - 1), j + 2, where(equal(i, j + 1), j + 3, equal(i, j + 2)))
        return where(equal(j, 0), first, where(equal(j % 2, 1), odd, equal(i, j - 2)))

    ones = jnp.ones_like(a[..., :1])
    return _selected(jnp.concatenate([ones * 0, ones, -a[..., 1:] / a[..., :1]], -1), n, n, place)


def convolution_matrix(a, n, mode="full"):
    """The matrix whose product with a vector of n elements is numpy.convolve(a, vector, mode)."""
    a = array_of(a)
    size = a.shape[-1]
    cuts = {"full": (0, 0), "same": ((min(n, size) - 1) // 2, min(n, size) // 2), "valid": (min(n, size) - 1, min(n, size) - 1)}
    if mode not in cuts:
        raise Error(f"convolution_matrix: mode is {mode!r} (allowed: full, same, valid)")
    before, behind = cuts[mode]
    values = jnp.concatenate([a, jnp.zeros_like(a[..., :1])], -1)
    within = lambda place: where((place >= 0) & (place < size), place, size)  # noqa: E731
    return _selected(values, n + size - 1 - before - behind, n, lambda i, j: within(i + before - j))


def hilbert(n):
    """1 / (i + j + 1)."""
    i = jnp.arange(n, dtype="float64")
    return (1 / (i[:, None] + i + 1)).astype("float32")


def invhilbert(n):
    """The inverse of hilbert."""
    comb = lambda m, k: math.comb(m, k)  # noqa: E731
    return _numbers(n, n, lambda i, j: float((-1) ** (i + j) * (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2))


def _kind(name, kind, symmetric, lower):
    """The element of the matrix of this kind."""
    kinds = {None: symmetric, "symmetric": symmetric, "lower": lower, "upper": lambda i, j: lower(j, i)}
    if kind not in kinds:
        raise Error(f"{name}: kind is {kind!r} (allowed: symmetric, lower, upper)")
    return kinds[kind]


def pascal(n, kind=None):
    """Binomial coefficients: comb(i + j, i) (symmetric), or those with comb(i, j) in a triangle (lower, upper)."""
    return _numbers(n, n, _kind("pascal", kind, lambda i, j: float(math.comb(i + j, i)), lambda i, j: float(math.comb(i, j))))


def invpascal(n, kind=None):
    """The inverse of pascal."""
    signed = lambda i, j: (-1) ** (i + j) * math.comb(i, j)  # noqa: E731
    symmetric = lambda i, j: float(sum(signed(k, i) * signed(k, j) for k in range(max(i, j), n)))  # noqa: E731
    return _numbers(n, n, _kind("invpascal", kind, symmetric, lambda i, j: float(signed(i, j))))


def helmert(n, full=False):
    """Orthonormal contrasts of n elements: row i is i equal ones against the next; with `full` the row of means in front."""
    row = lambda i, j: 1 / math.sqrt(n) if i == 0 else (1.0 if j < i else -float(i) if j == i else 0.0) / math.sqrt(i * (i + 1))  # noqa: E731
    return _numbers(n, n, row) if full else _numbers(n - 1, n, lambda i, j: row(i + 1, j))


def hadamard(n, dtype="int32"):
    """The matrix of 1 and -1 with orthogonal rows, by Sylvester; n is a power of two."""
    if n < 1 or n & (n - 1):
        raise Error(f"hadamard: n is {n} (allowed: a power of two)")
    return _numbers(n, n, lambda i, j: 1 - 2 * ((i & j).bit_count() & 1), dtype)


def dft(n, scale=None, *, dtype=None):
    """The matrix of the Fourier transform of n elements, divided by "n" or "sqrtn"."""
    if scale not in (None, "n", "sqrtn"):
        raise Error(f"dft: scale is {scale!r} (allowed: None, n, sqrtn)")
    size = {None: 1.0, "n": float(n), "sqrtn": math.sqrt(n)}[scale]
    angle = lambda i, j: 2 * math.pi * (i * j % n) / n  # noqa: E731
    return _numbers(n, n, lambda i, j: complex(math.cos(angle(i, j)), -math.sin(angle(i, j))) / size, dtype or "complex64")
