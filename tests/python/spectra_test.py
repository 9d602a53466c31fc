"""Eigenvalues of matrices that are not symmetric, against NumPy and SciPy."""
import numpy as np
import pytest
import scipy.linalg

import rlx
import rlx.numpy as jnp
from rlx import lax

RNG = np.random.default_rng(3)
REAL, COMPLEX = RNG.normal(size=(2, 4, 4)), RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
CALLS = {"at once": lambda f: f, "compiled": rlx.jit, "in a batch": lambda f: lambda a: rlx.tree.map(lambda x: x[0], rlx.jit(rlx.vmap(f))(a[None]))}


@pytest.mark.parametrize("a", [REAL, COMPLEX, REAL.astype(np.float32), np.zeros((0, 0)), np.ones((1, 1), np.int32)], ids=lambda a: f"{a.dtype}{a.shape}")
@pytest.mark.parametrize("way", CALLS)
def test_eigenvectors_solve_their_equation(way, a):
    w, v = CALLS[way](jnp.linalg.eig)(a)
    tolerance = 1e-4 if a.dtype in (np.float32, np.int32) else 1e-10
    assert np.allclose(a @ v.numpy(), v.numpy() * w.numpy()[..., None, :], atol=tolerance) and np.allclose(w, np.linalg.eigvals(a), atol=tolerance)
    assert w.dtype == (rlx.complex128 if a.dtype in (np.float64, np.complex128) else rlx.complex64)


def test_derivatives_of_eigenvalues():
    norm = lambda a: abs(jnp.linalg.eigvals(a) ** 2).sum()  # noqa: E731
    gradient = rlx.jit(rlx.grad(norm))(REAL[0]).numpy()
    for i, j in np.ndindex(4, 4):
        step = np.zeros((4, 4))
        step[i, j] = 1e-6
        ends = [float(np.sum(abs(np.linalg.eigvals(REAL[0] + s * step) ** 2))) for s in (1, -1)]
        assert abs(gradient[i, j] - (ends[0] - ends[1]) / 2e-6) < 1e-5 * max(1, abs(gradient[i, j]))


def test_left_eigenvectors_and_matrices_that_are_not_finite():
    w, left, right = lax.linalg.eig(COMPLEX)
    assert np.allclose(left.numpy().conj().T @ COMPLEX, w.numpy()[:, None] * left.numpy().conj().T) and np.allclose(np.linalg.norm(right, axis=0), 1)
    assert len(lax.linalg.eig(COMPLEX, compute_left_eigenvectors=False)) == 2 and len(lax.linalg.eig(COMPLEX, compute_left_eigenvectors=False, compute_right_eigenvectors=False)) == 1
    broken = REAL.copy()
    broken[0, 0, 0] = np.nan
    w = jnp.linalg.eigvals(broken).numpy()
    assert np.isnan(w[0]).all() and np.allclose(w[1], np.linalg.eigvals(REAL[1]))
    with pytest.raises(rlx.Error, match=r"eig: f64\[4,3\] \(allowed: square matrices\)"):
        jnp.linalg.eig(REAL[0, :, :3])


@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur_factors(output):
    for a in (REAL, COMPLEX):
        for t, z in (rlx.scipy.linalg.schur(a, output), rlx.jit(lambda a: rlx.scipy.linalg.schur(a, output))(a)):
            z, t = z.numpy(), t.numpy()
            assert np.allclose(z @ t @ z.conj().swapaxes(-1, -2), a) and np.allclose(np.tril(t, -2), 0)
            assert output == "real" or np.allclose(np.tril(t, -1), 0)
    assert np.allclose(lax.linalg.schur(COMPLEX)[0], scipy.linalg.schur(COMPLEX)[0])


def test_roots_of_a_traced_polynomial():
    p = np.array([1, -3, 2.5, 1])
    assert np.allclose(np.sort_complex(rlx.jit(lambda p: jnp.roots(p, strip_zeros=False))(p)), np.sort_complex(np.roots(p)))
