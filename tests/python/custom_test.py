"""Rules of one's own for derivatives, and derivatives that are kept as functions."""
import functools

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


def test_what_a_function_takes_from_around_it_becomes_arguments():
    @functools.partial(rlx.custom_vjp, nondiff_argnums=(0,))
    def root(function, x, *captured):
        for _ in range(6):
            x = x - function(x, *captured) / rlx.grad(lambda v: function(v, *captured))(x)
        return x

    def forward(function, x, *captured):
        y = root(function, x, *captured)
        return y, (y, captured)

    def backward(function, kept, cotangent):  # of the implicit function
        y, captured = kept
        slope = rlx.grad(lambda v: function(v, *captured))(y)
        pull_back = rlx.vjp(lambda *others: function(y, *others), *captured)[1]
        return (rlx.stop_gradient(y) * 0.0, *pull_back(-cotangent / slope))

    root.defvjp(forward, backward)
    counts = []

    def cube_root(p, scale):
        weights = {"p": p, "n": (p * 0).astype("int32") + 3}
        cubed = lambda x: rlx.cond(x > 0, lambda v: v**3.0 - weights["p"], lambda v: v + weights["n"], x) * scale.sum()  # noqa: E731
        converted, captured = rlx.closure_convert(cubed, 1.0)
        counts.append(len(captured))
        return root(converted, 2.0 + 0 * p, *captured)

    p, scale = np.float32(8), np.float32([1, 2])
    for function in (cube_root, rlx.jit(cube_root)):
        value, (by_p, by_scale) = rlx.value_and_grad(function, (0, 1))(p, scale)
        assert np.isclose(value, 2) and np.isclose(by_p, 1 / 12, rtol=1e-5) and np.allclose(by_scale, 0, atol=1e-6)
    assert set(counts) == {2}
    assert np.allclose(rlx.jit(rlx.vmap(rlx.grad(cube_root), (0, None)))(np.float32([8, 27]), scale), [1 / 12, 1 / 27], rtol=1e-5)


def test_converted_functions_take_other_values_and_know_their_number():
    def function(x, w):
        inner = lambda v: (w * v).sum() + w[0]  # noqa: E731
        converted, captured = rlx.closure_convert(inner, x)
        same, none = rlx.closure_convert(lambda v: v + 1, x)
        assert len(captured) == 1 and captured[0] is w and none == []
        return converted(x, w), converted(x, 2 * w), converted(x, *captured), inner(x), same(x)

    x, w = np.float32([1, 2]), np.float32([3, 4])
    assert [each.tolist() for each in rlx.jit(function)(x, w)] == [14, 28, 14, 14, [2, 3]]
    converted, captured = rlx.closure_convert(lambda v: v * w, x)  # nothing is traced
    assert captured == [] and converted(x).tolist() == [3, 8]
    with pytest.raises(rlx.Error, match="closure_convert of .*: 2 arguments .allowed: 1 and 0 captured ones"):
        converted(x, x)
