"""rlx.scipy.linalg's special matrices and functions of matrices against SciPy, and derivatives against finite differences in f64."""
import numpy as np
import pytest
import scipy.linalg

import rlx
import rlx.numpy as jnp
from rlx.scipy import linalg

RNG = np.random.default_rng(5)
A, B, C = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3))
POSITIVE = A @ A.T + np.eye(4)
ROOTED = A + 4 * np.eye(4)  # its eigenvalues are right of 0
TALL, WIDE = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 5))

MATRICES = [("circulant", (A[0],)), ("fiedler", (A[0],)), ("leslie", (A[0], B[0])), ("companion", (A[0],)), ("companion", (B[0, :2],)), ("hankel", (A[0],)),
            ("hankel", (A[0], B[1])), ("toeplitz", (A[0], B[1])), ("fiedler_companion", (A[0],)), ("fiedler_companion", (RNG.normal(size=7),)), ("fiedler_companion", (B[0, :2],)),
            *(("convolution_matrix", (a, n, mode)) for a in (A[0], RNG.normal(size=5)) for n in (3, 4, 8) for mode in ("full", "same", "valid")),
            ("hilbert", (6,)), ("invhilbert", (5,)), ("pascal", (6,)), ("pascal", (5, "lower")), ("pascal", (5, "upper")), ("invpascal", (5,)), ("invpascal", (5, "lower")),
            ("invpascal", (5, "upper")), ("helmert", (5,)), ("helmert", (4, True)), ("hadamard", (8,)), ("hadamard", (1,)), ("dft", (5,)), ("dft", (4, "n")),
            ("dft", (6, "sqrtn"))]  # fmt: skip


@pytest.mark.parametrize("name,args", MATRICES, ids=[f"{i}-{case[0]}" for i, case in enumerate(MATRICES)])
def test_matrices_of_special_forms(name, args):
    expected, given = getattr(scipy.linalg, name)(*args), [isinstance(each, np.ndarray) for each in args]
    function = lambda *arrays: getattr(linalg, name)(*arrays, *args[len(arrays) :])
    arrays = args[: sum(given)]
    for run in (function, rlx.jit(function)):
        seen = run(*arrays)
        assert seen.shape == expected.shape and np.allclose(seen, expected, rtol=1e-14 if arrays else 1e-6, atol=1e-15 if arrays else 1e-6)


def test_special_matrices_of_batches_and_their_derivatives():
    stack = RNG.normal(size=(2, 4))
    for name in ("circulant", "fiedler", "companion", "fiedler_companion"):
        assert np.allclose(rlx.vmap(getattr(linalg, name))(stack), [getattr(scipy.linalg, name)(row) for row in stack])
    assert np.array_equal(rlx.grad(lambda c: linalg.circulant(c)[0].sum())(A[0]), [1] * 4)
    for call, text in ((lambda: linalg.hadamard(6), "n is 6"), (lambda: linalg.pascal(3, "left"), "kind is 'left'"), (lambda: linalg.dft(3, "m"), "scale is 'm'"),
                       (lambda: linalg.leslie([1.0, 2], [3.0, 4]), "2 elements and s 2"), (lambda: linalg.companion([1.0]), "two coefficients")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()


def slope(function, x, direction, h=1e-6):
    return (np.asarray(function(x + h * direction)) - np.asarray(function(x - h * direction))) / (2 * h)


FUNCTIONS = [("sqrtm", linalg.sqrtm, scipy.linalg.sqrtm, ROOTED), ("sqrtm of a Hermitian", linalg.sqrtm, scipy.linalg.sqrtm, POSITIVE),
             ("sqrtm of wide range", linalg.sqrtm, scipy.linalg.sqrtm, np.diag([1e-6, 1.0, 1e3, 1e7]) + np.triu(A, 1)),
             *((f"polar {i} {side}", lambda a, i=i, side=side: linalg.polar(a, side)[i], lambda a, i=i, side=side: scipy.linalg.polar(a, side)[i], x)
               for i in (0, 1) for side, x in (("right", A), ("left", A), ("right", TALL), ("left", WIDE), ("right", np.eye(3) * 2))),
             ("sylvester by A", lambda a: linalg.solve_sylvester(a, B, C), lambda a: scipy.linalg.solve_sylvester(a, B, C), ROOTED),
             ("sylvester by C", lambda c: linalg.solve_sylvester(A, B, c), lambda c: scipy.linalg.solve_sylvester(A, B, c), C),
             ("expm_frechet", lambda a: linalg.expm_frechet(a, A)[1], lambda a: scipy.linalg.expm_frechet(a, A)[1], POSITIVE / 4),
             ("generalized eigh", lambda a: linalg.eigh(a, POSITIVE)[0], lambda a: scipy.linalg.eigh(a, POSITIVE)[0], A + A.T),
             ("eigh_tridiagonal", lambda d: linalg.eigh_tridiagonal(d, B[0], eigvals_only=True), lambda d: scipy.linalg.eigh_tridiagonal(d, B[0], True), A[0]),
             ("qr_multiply", lambda c: linalg.qr_multiply(TALL, c)[0], lambda c: scipy.linalg.qr_multiply(TALL, c)[0], WIDE)]  # fmt: skip


@pytest.mark.parametrize("name,mine,theirs,x", FUNCTIONS, ids=[case[0] for case in FUNCTIONS])
def test_functions_of_matrices(name, mine, theirs, x):
    assert np.allclose(mine(x), theirs(x), rtol=1e-9, atol=1e-10) and np.allclose(rlx.jit(rlx.vmap(mine))(np.stack([x, 1.1 * x]))[1], theirs(1.1 * x), rtol=1e-9, atol=1e-10)
    assert np.allclose(mine(x.astype(np.float32)), theirs(x.astype(np.float32).astype(np.float64)), rtol=2e-4, atol=2e-4)
    direction = RNG.normal(size=x.shape)
    direction = direction + direction.T if name == "generalized eigh" else direction
    expected, seen = slope(theirs, x, direction), rlx.jvp(mine, (x,), (direction,))[1]
    if "wide" not in name:
        assert np.allclose(seen, expected, rtol=1e-5, atol=1e-6)
    weights = RNG.normal(size=expected.shape)
    assert np.allclose((rlx.jit(rlx.grad(lambda v: (mine(v) * weights).sum()))(x).numpy() * direction).sum(), (seen * weights).sum(), rtol=1e-6)


def test_square_roots_that_are_not_there_are_nan():
    assert jnp.isnan(linalg.sqrtm(np.diag([1.0, -4.0]))).all() and jnp.isnan(linalg.sqrtm(np.zeros((2, 2)))).all()
    root = np.array([[1 + 2j, 0.5], [0.3j, 2 - 1j]])
    assert np.allclose(linalg.sqrtm(root @ root), root, atol=1e-12)
    with pytest.raises(rlx.Error, match="f64.3,5. .allowed: square"):
        linalg.sqrtm(WIDE)


def test_factors_and_eigenvalues():
    for mode in ("full", "economic"):
        q, r = linalg.qr(TALL, mode=mode)
        expected = scipy.linalg.qr(TALL, mode=mode)
        assert q.shape == expected[0].shape and r.shape == expected[1].shape and np.allclose(q @ r, TALL)
    assert linalg.qr(TALL, mode="r")[0].shape == (5, 3) and np.allclose(linalg.qr_multiply(TALL, C.T, "left")[0], scipy.linalg.qr_multiply(TALL, C.T, "left")[0])
    symmetric = A + A.T
    w, v = linalg.eigh(symmetric, POSITIVE)
    assert np.allclose(w, scipy.linalg.eigh(symmetric, POSITIVE)[0]) and np.allclose(symmetric @ v, POSITIVE @ v * w) and np.allclose(v.T @ POSITIVE @ v, np.eye(4))
    assert np.allclose(linalg.eigh(symmetric, lower=False, eigvals_only=True), scipy.linalg.eigh(symmetric, eigvals_only=True))
    w, v = linalg.eigh_tridiagonal(A[0], B[0], select="i", select_range=(1, 2))
    assert np.allclose(w, scipy.linalg.eigh_tridiagonal(A[0], B[0])[0][1:3]) and v.shape == (4, 2)
    bounds = (float(w[0]) - 1e-9, float(w[1]) + 1e-9)
    assert np.allclose(linalg.eigh_tridiagonal(A[0], B[0], eigvals_only=True, select="v", select_range=bounds), w)
    assert np.allclose(jnp.stack(linalg.expm_frechet(B, B.T)), scipy.linalg.expm_frechet(B, B.T))
