"""Donated arguments and devices of compiled functions."""
import functools
import threading

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

N = 1 << 17


def address(array):
    return array.numpy().ctypes.data


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "params"}])
def test_results_take_the_place_of_donated_arguments(options):
    @rlx.jit(**options)
    def step(params, x):
        return {"w": params["w"] * 0.5 + x, "b": params["b"] + 1.0}, x.sum()

    params = {"w": rlx.array(np.full(N, 8, np.float32)), "b": rlx.array(np.zeros(3, np.float32))}
    x = np.ones(N, np.float32)
    params, _ = step(params, x)
    places = {name: address(array) for name, array in params.items()}
    for _ in range(3):
        params, total = step(params, x)
        assert {name: address(array) for name, array in params.items()} == places
    assert float(total) == N and step.cache_size() == 1
    w = 8.0
    for _ in range(4):
        w = w * 0.5 + 1
    assert np.array_equal(params["w"], np.full(N, w, np.float32)) and params["b"].tolist() == [4, 4, 4]


def test_a_donated_array_is_gone():
    step = rlx.jit(lambda p: p + 1, donate_argnums=0)
    p = rlx.array([1.0, 2.0])
    q = step(p)
    assert p.shape == (2,) and p.dtype == rlx.float32
    for use in (lambda: p.numpy(), lambda: p * 2, lambda: step(p), lambda: rlx.jit(lambda: p + 1)(), lambda: repr(p)):
        with pytest.raises(rlx.Error, match=r"f32\[2\] was donated"):
            use()
    assert q.tolist() == [2, 3]


def test_who_holds_elements_keeps_them():
    step = rlx.jit(lambda p: p + 1, donate_argnums=0)
    p = step(rlx.array(np.zeros(N, np.float32)))
    kept, noted = p.numpy(), p * 10
    q = step(step(p))
    assert kept[0] == 1 and noted[0] == 10 and q[0] == 3
    given = np.zeros(4, np.float32)
    assert step(given).tolist() == [1] * 4 and given.tolist() == [0] * 4


def test_donated_arguments_need_a_result_of_their_type():
    with pytest.raises(rlx.Error, match=r"donated argument f32\[3\] is the type of no result"):
        rlx.jit(lambda p: p.sum(), donate_argnums=0)(jnp.ones(3))
    with pytest.raises(rlx.Error, match="symbolic sizes"):
        rlx.jit(lambda p: p + 1, donate_argnums=0, dims={"p": {0: rlx.Dim("B", 8)}})(jnp.ones(3))


def test_threads_that_donate_do_not_meet():
    step = rlx.jit(lambda p, by: p + by, donate_argnums=0)
    right = []

    def work(by):
        p = rlx.array(np.zeros(1000, np.float32))
        for _ in range(50):
            p = step(p, by)
        right.append(np.array_equal(p, np.full(1000, 50 * by, np.float32)))

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4


def test_static_arguments_keep_their_places_beside_donated_ones():
    f = rlx.jit(lambda kind, p, q: (getattr(jnp, kind)(p, q), q), static_argnums=0, donate_argnums=1)
    p, q = jnp.ones(2), jnp.ones(2)
    assert f("add", p, q)[0].tolist() == [2, 2] and q.tolist() == [1, 1]
    with pytest.raises(rlx.Error, match="was donated"):
        p.numpy()


def test_functions_and_arrays_are_computed_on_the_device_that_is_named():
    device = list(rlx.devices())[-1]
    f = rlx.jit(lambda x: jnp.tanh(x) * 2, device=device)
    x = np.linspace(-1, 1, 50, dtype=np.float32)
    expected = np.tanh(x) * 2
    assert np.allclose(f(x), expected, atol=1e-6) and np.allclose(f(x), expected, atol=1e-6) and f.cache_size() == 1
    g = rlx.jit(lambda x: jnp.tanh(x) * 2)
    with rlx.default_device(device):
        assert np.allclose(jnp.tanh(rlx.array(x)) * 2, expected, atol=1e-6)
        assert np.allclose(g(x), expected, atol=1e-6)
        with rlx.default_device("cpu"):
            g(x)
    g(x)
    assert g.cache_size() == len({device, "cpu"})
    assert f.lower(x).dump("hir")
    with pytest.raises(rlx.Error, match="abacus"):
        with rlx.default_device("abacus"):
            pass
    with pytest.raises(rlx.Error, match="abacus"):
        rlx.jit(lambda x: x, device="abacus")(x)


def test_methods_of_modules_are_compiled_once():
    traced = []

    class Scaled(rlx.nn.Module):
        def __init__(self, factor, power):
            self.factor, self.power = factor, power

        @rlx.jit
        def __call__(self, x):
            traced.append(self.power)
            return self.factor * x**self.power

        @functools.partial(rlx.jit, static_argnums=1)
        def several(self, count, x):
            return [self.factor * x for _ in range(count)]

    x = rlx.array([1.0, 2.0])
    first = Scaled(rlx.array([3.0, 4.0]), 2)
    assert first(x).tolist() == first(x).tolist() == [3, 16] and traced == [2]
    assert first.replace(factor=rlx.array([5.0, 6.0]))(x).tolist() == [5, 24] and traced == [2]
    assert Scaled(first.factor, 3)(x).tolist() == [3, 32] and traced == [2, 3]
    assert [y.tolist() for y in first.several(2, x)] == [[3, 8]] * 2 and len(first.several(3, x)) == 3
    assert first.__call__.cache_size() == 2
    gradient = rlx.grad(lambda module: module(x).sum())(first)
    assert gradient.factor.tolist() == [1, 4]
