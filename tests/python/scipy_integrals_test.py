"""Integrals and series of rlx.scipy.special against SciPy, and derivatives against finite differences in f64."""
import numpy as np
import pytest
import scipy.special

import rlx
import rlx.numpy as jnp
from rlx.scipy import special

RNG = np.random.default_rng(8)
WIDE = np.concatenate([10.0 ** np.linspace(-10, 2.5, 200), [1, 1.5, 2, 4, 0.5]])
BOTH = np.concatenate([WIDE, -WIDE, [0]])
H, SLOPE = np.meshgrid(np.linspace(-9, 9, 19), np.concatenate([np.linspace(-5, 5, 20), [0, 1, -1, 0.999, 1.001, 100, 1e5]]))
A, B, X = np.meshgrid([0.3, 1, 2.5, -0.5], [0.5, 1.2, 4, 11], np.concatenate([np.linspace(-20, 40, 31), [250]]))
A2, B2, C2, X2 = np.meshgrid([0.3, 1, 2.5, -2, -0.5], [0.5, 1.2], [4.3, 5], np.concatenate([np.linspace(-3, 0.97, 20), [-40, 1]]))
SMALL = np.array([0.3, 0.9, 1.4, 2.7, 5.3])

CASES = [("spence", lambda f: f.spence, (np.append(WIDE, [0, -1, np.nan]),)),
         *((f"{name} {i}", lambda f, name=name, i=i: lambda x: getattr(f, name)(x)[i], (x,)) for i in (0, 1) for name, x in (("sici", WIDE), ("fresnel", BOTH))),
         ("dawsn", lambda f: f.dawsn, (BOTH,)), ("owens_t", lambda f: f.owens_t, (H, SLOPE)), ("hyp1f1", lambda f: f.hyp1f1, (A, B, X)),
         ("hyp2f1", lambda f: f.hyp2f1, (A2, B2, C2, X2))]  # fmt: skip
SLOPES = [("spence", lambda f: f.spence, (SMALL,)),
          *((f"{name} {i}", lambda f, name=name, i=i: lambda x: getattr(f, name)(x)[i], (SMALL,)) for i in (0, 1) for name in ("sici", "fresnel")),
          ("dawsn", lambda f: f.dawsn, (SMALL,)), ("owens_t", lambda f: f.owens_t, (SMALL, SMALL[::-1] - 1)), ("hyp1f1", lambda f: f.hyp1f1, (SMALL, 1 + SMALL[::-1], SMALL - 2)),
          ("hyp2f1", lambda f: f.hyp2f1, (SMALL, SMALL[::-1], 3 + SMALL, SMALL / 6 - 0.3))]  # fmt: skip


@pytest.mark.parametrize("name,of,args", CASES, ids=[case[0] for case in CASES])
def test_integrals_and_series(name, of, args):
    assert np.allclose(rlx.jit(of(special))(*args), of(scipy.special)(*args), rtol=2e-13, atol=1e-15 if name[:4] == "sici" else 1e-40, equal_nan=True)
    given = [x.astype(np.float32) for x in args]
    expected, seen = of(scipy.special)(*[x.astype(np.float64) for x in given]), of(special)(*given)
    normal = np.isnan(expected) | ((abs(expected) > 1e-37) & (abs(expected) < 1e38))
    assert seen.dtype == rlx.float32 and np.allclose(seen.numpy()[normal], expected[normal], rtol=1.2e-7, atol=0, equal_nan=True)


@pytest.mark.parametrize("name,of,args", SLOPES, ids=[case[0] for case in SLOPES])
def test_derivatives(name, of, args):
    mine, theirs, h = of(special), of(scipy.special), 1e-3
    for place, x in enumerate(args):
        moved = lambda step: theirs(*args[:place], x + step, *args[place + 1 :])  # noqa: B023
        expected = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
        backward = rlx.jit(rlx.vmap(rlx.grad(mine, argnums=place)))(*args)
        tangents = [np.ones_like(each) if i == place else np.zeros_like(each) for i, each in enumerate(args)]
        assert np.allclose(backward, expected, rtol=1e-7, atol=1e-9) and np.allclose(rlx.jvp(mine, args, tangents)[1], backward, rtol=1e-9, atol=1e-14)


def test_complex_error_functions():
    grid = np.linspace(-12, 12, 49)
    z = (grid[:, None] + 1j * grid[None, grid > -5]).reshape(-1)
    for at in (z, np.array([1e-9 + 1j, 1e5 + 1e-5j, 300 + 200j, 1e-8j, 0, 7.0, -3.0])):
        assert np.allclose(rlx.jit(special.wofz)(at), scipy.special.wofz(at), rtol=3e-14, atol=0)
    assert special.wofz(np.float32([1])).dtype == rlx.complex64
    assert np.allclose(rlx.vmap(rlx.grad(lambda y: special.wofz(lax_complex(0.5 * y, y)).real))(SMALL), slope_of_wofz(SMALL), rtol=1e-6)


def lax_complex(x, y):
    return rlx.lax.complex(x, y)


def slope_of_wofz(y, h=1e-6):
    return (scipy.special.wofz((0.5 + 1j) * (y + h)).real - scipy.special.wofz((0.5 + 1j) * (y - h)).real) / (2 * h)


def test_bessel_functions_of_all_orders():
    z, orders = np.concatenate([np.linspace(-30, 30, 61), [1e-8, 1e-3]]), np.arange(6)[:, None]
    assert np.allclose(rlx.jit(lambda z: special.bessel_jn(z, v=5))(z), scipy.special.jv(orders, z), rtol=1e-12, atol=1e-15)
    assert np.allclose(special.bessel_jn(z.astype(np.float32), v=5), scipy.special.jv(orders, z.astype(np.float32).astype(np.float64)), rtol=2e-7, atol=1e-9)
    assert np.allclose(special.bessel_jn(np.float64(90), v=2, n_iter=130), scipy.special.jv([0, 1, 2], 90), rtol=1e-11)
    slopes = rlx.vmap(rlx.jacrev(lambda z: special.bessel_jn(z, v=5)))(z)
    assert np.allclose(slopes.T, scipy.special.jvp(orders, z), rtol=1e-9, atol=1e-14)
    assert np.allclose(rlx.grad(rlx.grad(lambda z: special.bessel_jn(z, v=1)[1]))(2.5), scipy.special.jvp(1, 2.5, 2), rtol=1e-5)


def test_outside_of_their_ranges():
    assert jnp.isnan(special.hyp1f1(1.0, 2.0, 301.0)) and jnp.isnan(special.hyp2f1(0.5, 1.0, 2.0, np.float32([0.99, -60, 2]))).all()
    assert np.allclose(special.hyp2f1(-2.0, 1.0, 2.0, np.float64([7, -80])), scipy.special.hyp2f1(-2, 1, 2, [7, -80]))
    assert special.hyp2f1(0.5, 1.0, 1.2, 1.0) == np.inf and jnp.isnan(special.sici(-1.0)[1])
    at_the_end = [each.tolist() for each in (special.sici(np.float64([np.inf, -np.inf]))[0], special.dawsn(np.float64([np.inf])), special.fresnel(np.float64([np.inf, -np.inf]))[0])]
    assert np.allclose(at_the_end[0], [np.pi / 2, -np.pi / 2]) and at_the_end[1] == [0] and np.allclose(at_the_end[2], [0.5, -0.5])


def test_spherical_harmonics():
    n, m = np.array([(n, m) for n in range(7) for m in range(-n - 1, n + 2)], np.int32).T
    theta, phi = RNG.uniform(0, np.pi, len(n)), RNG.uniform(-3, 3, len(n))
    expected = scipy.special.sph_harm_y(n, m, theta, phi)
    run = lambda n, m, theta, phi: special.sph_harm_y(n, m, theta, phi, n_max=6)
    for function in (special.sph_harm_y, rlx.jit(run), rlx.vmap(run)):
        assert np.allclose(function(n, m, theta, phi), expected, rtol=1e-12, atol=1e-14)
    assert special.sph_harm_y(2, 1, np.float32(0.3), 0.2).dtype == rlx.complex64
    assert np.allclose(special.sph_harm_y(40, 30, theta, phi), scipy.special.sph_harm_y(40, 30, theta, phi), rtol=1e-10, atol=1e-14)
    by_theta = rlx.jvp(lambda t: run(n, m, t, phi), (theta,), (np.ones_like(theta),))[1]
    steps = [scipy.special.sph_harm_y(n, m, theta + h, phi) for h in (1e-6, -1e-6)]
    assert np.allclose(by_theta, (steps[0] - steps[1]) / 2e-6, atol=1e-8)
    with pytest.raises(rlx.Error, match="diff_n is 1"):
        special.sph_harm_y(2, 1, 0.3, 0.2, diff_n=1)
