"""Reductions of rlx.lax.linalg against LAPACK, and derivatives against finite differences in f64."""
import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import lapack

import rlx
from rlx import lax

RNG = np.random.default_rng(11)


def matrix(*shape, kind=float):
    real = RNG.normal(size=shape)
    return real + 1j * RNG.normal(size=shape) if kind is complex else real


def near(seen, expected):
    return np.allclose(seen, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_hessenberg_and_tridiagonal_forms_are_those_of_lapack(n, kind):
    a = matrix(n, n, kind=kind)
    packed, taus = rlx.jit(lax.linalg.hessenberg)(a)
    expected, factors, _ = (lapack.zgehrd if kind is complex else lapack.dgehrd)(a)
    assert near(packed, expected) and taus.shape == (n - 1,) and near(taus, factors[: n - 1])
    h, q = rlx.scipy.linalg.hessenberg(a, calc_q=True)
    assert near(q @ h @ q.conj().mT, a) and near(q @ q.conj().mT, np.eye(n)) and not np.tril(h, -2).any() and near(rlx.scipy.linalg.hessenberg(a), h)
    for lower in (True, False):
        expected = (lapack.zhetrd if kind is complex else lapack.dsytrd)(a + a.conj().T, lower=int(lower))
        for each, its in zip(lax.linalg.tridiagonal(a + a.conj().T, lower=lower), expected):
            assert near(each, its[: n - 1] if len(each) < n else its)
        one = np.tril(a + a.conj().T) if lower else np.triu(a + a.conj().T)  # the other triangle is not read
        assert near(lax.linalg.tridiagonal(one, lower=lower)[1], expected[1])


def test_forms_of_large_small_and_reduced_matrices():
    a = matrix(5, 5).astype(np.float32)
    for size in (2.0**100, 2.0**-100):
        (packed, taus), (large, its) = [lax.linalg.hessenberg(each) for each in (a, a * np.float32(size))]
        assert np.array_equal(taus, its) and np.array_equal(np.triu(large, -1), np.triu(packed, -1) * np.float32(size))
    reduced = np.triu(a, -1)
    packed, taus = lax.linalg.hessenberg(reduced)
    assert np.array_equal(packed, reduced) and not taus.numpy().any()
    stack = matrix(3, 5, 5)
    for batched in (lax.linalg.hessenberg(stack), rlx.vmap(lax.linalg.hessenberg)(stack)):
        assert near(batched[0][1], lax.linalg.hessenberg(stack[1])[0]) and near(batched[1][1], lax.linalg.hessenberg(stack[1])[1])


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("m,n", [(5, 5), (6, 3), (4, 1)])
def test_products_of_reflections_are_those_of_lapack(m, n, kind):
    a = matrix(m, n, kind=kind)
    (packed, taus), _ = scipy.linalg.qr(a, mode="raw")
    assert near(lax.linalg.householder_product(packed, taus), (lapack.zungqr if kind is complex else lapack.dorgqr)(packed, taus)[0])
    whole = lax.linalg.householder_product(np.pad(packed, ((0, 0), (0, m - n))), taus)
    assert near(whole @ whole.conj().mT, np.eye(m)) and near(rlx.vmap(lax.linalg.householder_product)(packed[None], taus[None])[0], whole[:, :n])


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("m", [1, 2, 3, 40])
def test_tridiagonal_systems_are_solved_with_pivots(m, kind):
    dl, d, du, b = [matrix(2, m, kind=kind) for _ in range(3)] + [matrix(2, m, 3, kind=kind)]
    d[:, m // 2] = 0  # where elimination without pivots ends
    t = [np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1) for i in range(2)]
    d, t = (d + (m == 1), [each + (m == 1) for each in t])
    x = rlx.jit(lax.linalg.tridiagonal_solve)(dl, d, du, b)
    assert np.allclose(x, [np.linalg.solve(*pair) for pair in zip(t, b)], rtol=1e-9, atol=1e-9) and x.shape == b.shape
    assert near(rlx.vmap(lax.linalg.tridiagonal_solve)(dl, d, du, b), x)


def test_derivatives_are_those_of_finite_differences():
    a, b, step = matrix(4, 4), matrix(4, 2), 1e-6
    diagonals = [matrix(4) for _ in range(3)]
    functions = [(lambda x: lax.linalg.hessenberg(x)[0], a), (lambda x: rlx.scipy.linalg.hessenberg(x, True)[1], a), (lambda x: lax.linalg.tridiagonal(x + x.mT)[1], a),
                 (lambda x: lax.linalg.householder_product(x, diagonals[0]), a), (lambda x: lax.linalg.householder_product(a, x), diagonals[0]),
                 (lambda x: lax.linalg.tridiagonal_solve(*diagonals, x), b), *((lambda x, i=i: lax.linalg.tridiagonal_solve(*diagonals[:i], x, *diagonals[i + 1 :], b), diagonals[i])
                                                                               for i in range(3))]  # fmt: skip
    for function, x in functions:
        direction = matrix(*x.shape)
        expected = (function(rlx.asarray(x + step * direction)).numpy() - function(rlx.asarray(x - step * direction)).numpy()) / (2 * step)
        assert np.allclose(rlx.jvp(function, (x,), (direction,))[1], expected, rtol=1e-5, atol=1e-6)
        weights = matrix(*expected.shape)
        assert np.isclose((rlx.grad(lambda v: (function(v) * weights).sum())(x).numpy() * direction).sum(), (expected * weights).sum(), rtol=1e-5)


def test_shapes_that_do_not_fit_are_named():
    for call, text in ((lambda: lax.linalg.hessenberg(matrix(2, 3)), r"hessenberg: f64\[2,3\] \(allowed: square"), (lambda: lax.linalg.tridiagonal(matrix(3)), r"f64\[3\]"),
                       (lambda: lax.linalg.tridiagonal_solve(matrix(3), matrix(3), matrix(2), matrix(3, 1)), r"f64\[2\], f64\[3,1\] \(allowed: "),
                       (lambda: lax.linalg.tridiagonal_solve(matrix(3), matrix(3), matrix(3), matrix(3)), r"allowed: .*, \[..., m, k\]")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()
