"""Rules of one's own for derivatives, and derivatives that are kept as functions."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.float32([0.5, -1, 2])


def test_a_forward_rule_is_used_by_both_modes():
    @rlx.custom_jvp
    def f(x, y):
        return {"r": x * y}

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), {"r": 10 * dx * y + dy}

    assert np.allclose(f(X, X)["r"].numpy(), X * X) and np.allclose(rlx.jit(f)(X, y=X)["r"].numpy(), X * X)
    _, change = rlx.jvp(f, (X, X), (np.ones(3, np.float32), np.zeros(3, np.float32)))
    assert np.allclose(change["r"].numpy(), 10 * X)
    gx, gy = rlx.grad(lambda x, y: f(x, y)["r"].sum(), argnums=(0, 1))(X, X)
    assert np.allclose(gx.numpy(), 10 * X) and np.allclose(gy.numpy(), 1)
    assert np.allclose(rlx.jit(rlx.vmap(rlx.grad(lambda x: f(x, x)["r"])))(X).numpy(), 10 * X + 1)


def test_a_rule_that_calls_the_function_holds_for_derivatives_of_derivatives():
    f = rlx.custom_jvp(lambda x: jnp.exp(x))

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), 2 * f(*primals) * tangents[0]

    second = rlx.grad(rlx.grad(lambda x: f(x)))
    assert float(second(0.5)) == pytest.approx(4 * np.exp(0.5), rel=1e-5)


def test_one_rule_for_each_argument():
    @rlx.custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda dx, result, x, y: dx * 3, None)
    gx, gy = rlx.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(X, X)
    assert np.allclose(gx.numpy(), 3) and np.allclose(gy.numpy(), 0)


def test_a_backward_rule_keeps_what_it_wants():
    @rlx.custom_vjp
    def clipped(x, limits):
        return jnp.sin(x)

    clipped.defvjp(lambda x, limits: (jnp.sin(x), {"cos": jnp.cos(x), "limits": limits}),
                   lambda kept, dy: (jnp.clip(dy * kept["cos"], *kept["limits"]), None))  # fmt: skip
    gradient = rlx.grad(lambda x: (5 * clipped(x, (-1.0, 1.0))).sum())
    assert np.allclose(gradient(X).numpy(), np.clip(5 * np.cos(X), -1, 1)) and np.allclose(rlx.jit(gradient)(X).numpy(), gradient(X).numpy())
    assert np.allclose(rlx.vmap(rlx.grad(lambda x: clipped(x, (-0.1, 0.1))))(X).numpy(), np.clip(np.cos(X), -0.1, 0.1))
    _, change = rlx.jvp(lambda x: clipped(x, (-1.0, 1.0)), (X,), (np.ones(3, np.float32),))
    assert np.allclose(change.numpy(), np.cos(X), rtol=1e-5)  # forward mode is that of the function


def test_static_arguments_come_first():
    def power(n, x):
        return x**n

    f = rlx.custom_vjp(power, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x**n, x), lambda n, x, dy: (dy * n * 100 * x ** (n - 1),))
    assert np.allclose(rlx.grad(lambda x: f(3, x).sum())(X).numpy(), 300 * X**2)
    g = rlx.custom_jvp(power, nondiff_argnums=[0])
    g.defjvp(lambda n, primals, tangents: (g(n, *primals), n * tangents[0]))
    assert np.allclose(rlx.grad(lambda x: g(4, x).sum())(X).numpy(), 4)


def test_integers_have_no_tangent():
    seen = []

    @rlx.custom_jvp
    def take(x, i):
        return x[i], i

    def rule(primals, tangents):
        seen.append(tangents[1])
        return take(*primals), (7 * tangents[0][primals[1]], None)

    take.defjvp(rule)
    assert rlx.grad(lambda x: take(x, rlx.array(1))[0])(X).tolist() == [0, 7, 0] and set(seen) == {None}


def test_rules_are_checked():
    f = rlx.custom_jvp(lambda x: x)
    with pytest.raises(rlx.Error, match="no rule"):
        f(X)
    f.defjvp(lambda primals, tangents: (primals[0], (tangents[0], tangents[0])))
    with pytest.raises(rlx.Error, match="custom_jvp: the rule gives"):
        f(X)
    g = rlx.custom_vjp(lambda x: x)
    with pytest.raises(rlx.Error, match="no rules"):
        g(X)
    g.defvjp(lambda x: x, lambda kept, dy: (dy,))
    with pytest.raises(rlx.Error, match="pair"):
        g(X)


def test_linearize_is_compiled_once():
    traced = []

    def f(x):
        traced.append(1)
        return jnp.sin(x) * x

    value, linear = rlx.linearize(f, X)
    assert np.allclose(value.numpy(), np.sin(X) * X, rtol=1e-5)
    for direction in np.eye(3, dtype=np.float32):
        assert np.allclose(linear(direction).numpy(), direction * (np.cos(X) * X + np.sin(X)), rtol=1e-4, atol=1e-6)
    assert len(traced) == 2
    assert np.allclose(rlx.jit(lambda x: rlx.linearize(f, x)[1](x))(X).numpy(), X * (np.cos(X) * X + np.sin(X)), rtol=1e-4)


def test_wrappers_of_wrappers_keep_their_own_functions():
    square = rlx.jit(lambda x: x * x)
    ruled = rlx.custom_jvp(lambda x: x * x)
    ruled.defjvps(lambda dx, y, x: 7 * dx * x)
    assert rlx.jit(rlx.grad(square))(3.0) == 6 and rlx.jit(rlx.grad(ruled))(3.0) == 21 and np.array_equal(rlx.jit(rlx.vmap(rlx.grad(square)))(X), 2 * X)
    with pytest.raises(rlx.Error, match="there is no rule"):
        rlx.custom_jvp(rlx.grad(ruled))(3.0)


def test_transposes_of_linear_functions():
    a = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    f = lambda x, y: {"r": a @ x + 2 * y}
    for zeros in ((np.zeros(2, np.float32), jnp.zeros(3)), (rlx.ShapeDtypeStruct((2,), "float32"), rlx.ShapeDtypeStruct((3,), "float32"))):
        transpose = rlx.linear_transpose(f, *zeros)
        for run in (transpose, rlx.jit(transpose)):
            x, y = run({"r": X})
            assert np.allclose(x, a.T @ X, atol=1e-6) and np.array_equal(y, 2 * X)
    rows = rlx.vmap(lambda y: rlx.linear_transpose(lambda x: a @ x, zeros[0])(y)[0])(np.eye(3, dtype=np.float32))
    assert np.array_equal(rows, a)


def test_a_function_may_give_its_own_gradient():
    one = rlx.custom_gradient(lambda x: (x * x, lambda g: 5 * g * x))
    pair = rlx.custom_gradient(lambda x, y: ((x * y, x), lambda g: (g[0] * y, 7 * g[1])))
    for run in (lambda f: f, rlx.jit):
        assert np.array_equal(one(X), X * X) and np.allclose(run(rlx.vmap(rlx.grad(one)))(X), 5 * X)
        assert np.array_equal(run(rlx.grad(lambda x, y: sum(pair(x, y)).sum(), argnums=(0, 1)))(X, 2 * X), [2 * X, [7] * 3])
    assert np.allclose(rlx.jacobian(one)(X), np.diag(5 * X))


def test_where_arrays_lie():
    tree = rlx.device_put({"a": X, "b": [2]}, "cpu")
    assert isinstance(tree["a"], rlx.Array) and int(tree["b"][0]) == 2 and isinstance(rlx.device_get(tree)["a"], np.ndarray)
    assert rlx.block_until_ready(tree) is tree and np.array_equal(jnp.asarray(X).block_until_ready(), X)
    assert np.array_equal(rlx.jit(lambda x: rlx.block_until_ready(x) * 2)(X), X * 2)
    with pytest.raises(rlx.Error, match="no device 'gpu'"):
        rlx.device_put(X, "gpu")


def test_known_numbers_may_be_computed_while_a_function_is_traced():
    known = jnp.asarray(X)

    @rlx.jit
    def f(x):
        with rlx.ensure_compile_time_eval():
            total = float(jnp.sum(known * 2))
        return x * total

    assert np.array_equal(f(X), X * 3)
