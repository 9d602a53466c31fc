"""jit, derivatives, batches and control flow of Python functions: against NumPy, finite differences and loops."""
import collections
import dataclasses
import functools
import threading

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

RNG = np.random.default_rng(2)
X = RNG.normal(size=(3, 4)).astype(np.float32)
W = RNG.normal(size=(4, 2)).astype(np.float32)


def network(params, x):
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return {"out": hidden, "loss": (hidden**2).mean()}


PARAMS = {"w": W, "b": np.float32([0.1, -0.2])}


def numpy_loss(w, b):
    return (np.tanh(X.astype(np.float64) @ w + b) ** 2).mean()


def differences(function, x, step=1e-5):
    x = np.asarray(x, np.float64)
    result = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        result[i] = (function(high) - function(low)) / (2 * step)
    return result


def test_jit_takes_and_gives_trees():
    compiled = rlx.jit(network)
    result = compiled(PARAMS, X)
    assert np.allclose(result["out"].numpy(), np.tanh(X @ W + PARAMS["b"]), rtol=1e-5)
    compiled(PARAMS, X + 1)
    assert compiled.cache_size() == 1
    compiled(PARAMS, X[:2])
    assert compiled.cache_size() == 2


def test_jit_calls_the_function_once_for_each_signature():
    calls = []

    @rlx.jit
    def double(x):
        calls.append(x.shape)
        return x * 2

    for shape in ((2,), (3,), (2,)):
        double(np.zeros(shape, np.float32))
    assert calls == [(2,), (3,)]


def test_the_object_of_a_method_may_be_static():
    class Power:
        by = 3

        @functools.partial(rlx.jit, static_argnums=(0, 2), donate_argnums=0)
        def of(self, x, kind):
            return getattr(jnp, kind)(x**self.by)

    x = rlx.array([1.0, 2.0])
    assert Power().of(x, "sum") == 9 and Power().of(x, "max") == 8


@pytest.mark.parametrize("number", [0, 1, 2, -1, 0.5, -0.0, float("nan"), np.float32(0.25), np.int64(2**32), True, False])
def test_any_number_but_0_chooses_the_first_branch(number):
    choose = lambda given: rlx.cond(given, lambda: 1, lambda: 2)  # noqa: E731
    for given in (number, rlx.asarray(number)):
        assert int(choose(given)) == int(rlx.jit(choose)(given)) == (1 if number else 2)


def test_static_arguments_are_handed_over_as_they_are():
    power = rlx.jit(lambda x, n, kind="sum": getattr(jnp, kind)(x**n), static_argnums=1, static_argnames="kind")
    assert float(power(np.float32([1, 2]), 2)) == 5 and float(power(np.float32([1, 2]), 3, kind="max")) == 8
    with pytest.raises(rlx.Error, match="static argument"):
        power(X, [1])


def test_symbolic_sizes_compile_once():
    compiled = rlx.jit(lambda x, w: (x @ w).sum(axis=1), dims={"x": {0: rlx.Dim("B", 100)}})
    for rows in (1, 2, 7):
        x = RNG.normal(size=(rows, 4)).astype(np.float32)
        assert np.allclose(compiled(x, W).numpy(), (x @ W).sum(1), rtol=1e-4, atol=1e-5)
    assert compiled.cache_size() == 1
    with pytest.raises(rlx.Error, match="100"):
        compiled(np.zeros((101, 4), np.float32), W)


def test_closures_see_large_and_small_arrays():
    large, small = rlx.asarray(RNG.normal(size=(4, 50)).astype(np.float32)), rlx.array(2.0)
    assert np.allclose(rlx.jit(lambda x: x @ large * small)(X).numpy(), X @ large.numpy() * 2, rtol=1e-4, atol=1e-5)


def test_numbers_of_python_stay_weak_in_compiled_functions():
    half = np.float16([1, 2])
    assert rlx.jit(lambda x, s: x * s)(half, 2.0).dtype == rlx.float16
    assert rlx.jit(lambda s: s)(2).dtype == rlx.int32


def test_gradients_are_those_of_finite_differences():
    value, gradients = rlx.value_and_grad(lambda p: network(p, X)["loss"])(PARAMS)
    assert abs(float(value) - numpy_loss(W, PARAMS["b"])) < 1e-6
    assert np.allclose(gradients["w"].numpy(), differences(lambda w: numpy_loss(w, PARAMS["b"]), W), atol=1e-5)
    assert np.allclose(gradients["b"].numpy(), differences(lambda b: numpy_loss(W, b), PARAMS["b"]), atol=1e-5)
    compiled = rlx.jit(rlx.grad(lambda p: network(p, X)["loss"]))(PARAMS)
    assert np.allclose(compiled["w"].numpy(), gradients["w"].numpy(), rtol=1e-5, atol=1e-7)


def test_grad_by_several_arguments_with_more_results():
    def loss(x, w, scale):
        y = x @ w * scale
        return y.sum(), {"y": y}

    (gx, gw), aux = rlx.grad(loss, argnums=(0, 1), has_aux=True)(X, W, 2.0)
    assert np.allclose(gx.numpy(), np.broadcast_to(2 * W.sum(1), X.shape), rtol=1e-5) and aux["y"].shape == (3, 2)
    assert np.allclose(gw.numpy(), np.broadcast_to(2 * X.sum(0)[:, None], W.shape), rtol=1e-4, atol=1e-5)


def test_higher_derivatives_do_not_confuse_levels():
    cube = lambda x: (x**3.0).sum()  # noqa: E731
    x = np.float32([1, 2])
    assert np.allclose(rlx.hessian(cube)(x).numpy(), np.diag(6 * x))
    assert np.allclose(rlx.hvp(cube, (x,), (np.float32([1, 0]),)).numpy(), [6, 0])
    outer = rlx.grad(lambda a: rlx.grad(lambda z: (z * a).sum())(a).sum())
    assert outer(x).tolist() == [1, 1]
    assert float(rlx.grad(rlx.grad(lambda v: jnp.sin(v)))(1.0)) == pytest.approx(-np.sin(1), rel=1e-5)
    assert np.allclose(rlx.jacfwd(jnp.tanh)(x).numpy(), rlx.jacrev(jnp.tanh)(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, rlx.jit])
def test_results_that_do_not_depend_on_the_arguments_have_zero_derivatives(wrap):
    x, known, large = np.float32([1, 2]), jnp.asarray([3.0, 4.0]), jnp.asarray(X)
    both = lambda x: (known, x * x, large, 1.0)
    value, change = wrap(lambda x: rlx.jvp(both, (x,), (x,)))(x)
    assert np.array_equal(value[0], [3, 4]) and np.array_equal(change[1], [2, 8]) and np.array_equal(value[2], X)
    assert [np.asarray(each).tolist() for each in change[::2]] == [[0, 0], np.zeros((3, 4)).tolist()] and float(change[3]) == 0
    assert np.array_equal(wrap(lambda x: rlx.vjp(both, x)[1]((known, x, large, jnp.asarray(1.0))))(x)[0], [2, 8])
    assert np.array_equal(wrap(lambda x: rlx.linearize(both, x)[1](x)[1])(x), [2, 8])
    for single in (lambda x: known, lambda x: large, lambda x: jnp.asarray(2.0)):
        size = np.asarray(single(x)).shape
        assert not np.asarray(wrap(lambda x: rlx.jvp(single, (x,), (x,))[1])(x)).any()
        assert not np.asarray(wrap(rlx.jacfwd(single))(x)).any() and np.asarray(wrap(rlx.jacrev(single))(x)).shape == (*size, 2)
        assert np.array_equal(wrap(rlx.vmap(single))(X), np.broadcast_to(np.asarray(single(x)), (3, *size)))
    scalar = lambda x: jnp.asarray(2.0)
    assert float(wrap(lambda x: rlx.value_and_grad(scalar)(x)[0])(x)) == 2 and not np.asarray(wrap(rlx.grad(scalar))(x)).any()
    assert not np.asarray(wrap(rlx.hessian(scalar))(x)).any() and not np.asarray(wrap(lambda x: rlx.hvp(scalar, (x,), (x,)))(x)).any()
    assert not np.asarray(wrap(rlx.vmap(rlx.grad(scalar)))(X)).any()


def test_jvp_and_vjp_are_transposes():
    direction = np.ones_like(X)
    value, change = rlx.jvp(lambda x: jnp.sin(x) @ W, (X,), (direction,))
    assert np.allclose(change.numpy(), np.cos(X) @ W, rtol=1e-4, atol=1e-5)
    value, back = rlx.vjp(lambda x: jnp.sin(x) @ W, X)
    (gradient,) = back(np.ones((3, 2), np.float32))
    assert np.allclose(gradient.numpy(), np.cos(X) * W.sum(1), rtol=1e-4, atol=1e-5)
    assert np.allclose(value.numpy(), np.sin(X) @ W, rtol=1e-4, atol=1e-5)
    with pytest.raises(rlx.Error, match="trees differ"):
        back((1, 2))


def test_vmap_is_a_loop():
    batch = RNG.normal(size=(5, 3, 4)).astype(np.float32)
    single = lambda x, p: {"y": x @ p["w"], "s": x.sum()}  # noqa: E731
    result = rlx.vmap(single, in_axes=(0, None))(batch, PARAMS)
    assert np.allclose(result["y"].numpy(), batch @ W, rtol=1e-4, atol=1e-5) and result["s"].shape == (5,)
    assert np.allclose(rlx.vmap(lambda x: x * 2, in_axes=1, out_axes=1)(X).numpy(), X * 2)
    assert np.allclose(rlx.vmap(rlx.grad(lambda x: (x**2).sum()))(X).numpy(), 2 * X)
    assert np.allclose(rlx.jit(rlx.vmap(rlx.vmap(lambda a, b: a * b)))(X, X).numpy(), X * X)
    assert rlx.vmap(lambda x, y: x + y["a"], in_axes=(0, {"a": 1}))(X, {"a": X.T}).shape == X.shape
    with pytest.raises(rlx.Error, match="no argument has a batch"):
        rlx.vmap(lambda x: x, in_axes=None)(X)


def test_checkpoint_changes_no_number():
    layer = lambda x: jnp.tanh(x @ W).sum()  # noqa: E731
    for save in ("everything", "dots", "nothing"):
        assert np.allclose(rlx.grad(rlx.checkpoint(layer, save))(X).numpy(), rlx.grad(layer)(X).numpy(), rtol=1e-6)


def ops_of_gradient(layer, policy, x, w, atol=1e-8):
    """Products and sines of a value and its gradient, which has the numbers of the function without checkpoint."""
    step = rlx.jit(rlx.value_and_grad(rlx.checkpoint(layer, policy=policy), (0, 1)))
    assert all(np.allclose(mine, other, rtol=1e-6, atol=atol) for mine, other in zip(step(x, w)[1], rlx.grad(layer, (0, 1))(x, w)))
    text = step.lower(x, w).dump("mir")
    return text.count(" = dot("), text.count(" = sin(")


def test_checkpoint_policies_say_what_is_computed_again():
    layer = lambda x, w: jnp.tanh(jnp.sin(x @ w) @ w).sum()  # noqa: E731
    square, policies = np.float32(np.eye(4) * 0.5 + 0.1), rlx.checkpoint_policies

    def times(policy):
        return ops_of_gradient(layer, policy, X, square)

    forward_and_back, sines = times(policies.everything_saveable)
    assert times(policies.dots_saveable) == (forward_and_back, sines + 1) == times(policies.checkpoint_dots)
    assert times(policies.nothing_saveable) == (forward_and_back + 2, sines + 1) == times(None)
    with pytest.raises(rlx.Error, match="a policy of type function"):
        rlx.checkpoint(layer, policy=lambda *_: True)
    with pytest.raises(rlx.Error, match="save='dots' and policy='nothing' .allowed: one of them."):
        rlx.checkpoint(layer, "dots", policy=policies.nothing_saveable)


def test_checkpoint_keeps_products_without_batches():
    def layer(x, w):
        scores = jnp.sin(x @ w)  # a plain product, then one with a batch axis
        return jnp.tanh(jnp.einsum("bij,bkj->bik", scores, scores)).sum()

    x, w, policies = np.sin(np.arange(24, dtype=np.float32)).reshape(2, 3, 4), np.float32(np.eye(4) * 0.5 + 0.1), rlx.checkpoint_policies
    ops = lambda policy: ops_of_gradient(layer, policy, x, w, atol=1e-6)  # noqa: E731  sums of terms around 1 that cancel: a few ulp of those
    dots, sines = ops(policies.dots_saveable)
    assert ops(policies.dots_with_no_batch_dims_saveable) == (dots + 1, sines)
    assert ops(policies.nothing_saveable) == (dots + 2, sines)


def test_checkpoint_keeps_what_has_a_name():
    def named(name):
        def layer(x, w):
            hidden = rlx.jit(lambda a: rlx.checkpoint_name({"hidden": a @ w}, name))(x)["hidden"]
            return jnp.tanh(jnp.sin(hidden) @ w).sum()  # whose derivative needs `hidden`, which has a name

        return layer

    square, only = np.float32(np.eye(4) * 0.5 + 0.1), rlx.checkpoint_policies.save_only_these_names
    dots, sines = ops_of_gradient(named("other"), only("hidden", "more"), X, square)
    assert ops_of_gradient(named("hidden"), only("more", "hidden"), X, square) == (dots - 1, sines)
    assert ops_of_gradient(named("hidden"), only(), X, square) == (dots, sines)
    batched = lambda x, w: rlx.vmap(named("hidden"), (0, None))(x, w).sum()  # noqa: E731
    assert ops_of_gradient(batched, only("hidden"), X, square)[0] == ops_of_gradient(batched, only(), X, square)[0] - 1
    assert np.array_equal(rlx.checkpoint_name(X, "hidden"), X)
    for wrong in ("", "a,b"):
        with pytest.raises(rlx.Error, match="allowed: one that is not empty, without commas"):
            rlx.grad(rlx.checkpoint(named(wrong)))(X, square)
    with pytest.raises(rlx.Error, match="save_only_these_names: .* .allowed: words"):
        only(["hidden"])


def test_checkpoint_takes_what_jax_takes():
    @rlx.remat(policy=rlx.checkpoint_policies.dots_saveable, static_argnums=(1,))
    def powers(x, kind="sin", scale=1.0):
        return {"y": getattr(jnp, kind)(x * scale).sum()}

    assert np.allclose(rlx.grad(lambda x: powers(x, "sin", scale=2.0)["y"])(X), 2 * np.cos(2 * X), rtol=1e-5)
    for call in (lambda x: powers(x), lambda x: powers(x=x)):  # without the static argument
        assert np.allclose(rlx.grad(lambda x: call(x)["y"])(X), np.cos(X), rtol=1e-5)


def test_branches():
    choose = rlx.jit(lambda i, x: rlx.switch(i, [lambda v: v + 1, lambda v: v * 2, lambda v: v - 3], x))
    for i, expected in ((0, X + 1), (1, X * 2), (2, X - 3), (7, X - 3), (-1, X + 1)):
        assert np.allclose(choose(i, X).numpy(), expected)
    clipped = lambda x: rlx.cond(x.sum() > 0, lambda v: {"r": v}, lambda v: {"r": -v}, x)  # noqa: E731
    assert np.allclose(clipped(jnp.ones(2))["r"].numpy(), 1) and np.allclose(rlx.jit(clipped)(-jnp.ones(2))["r"].numpy(), 1)
    with pytest.raises(rlx.Error, match="from false_fun and . from true_fun"):
        rlx.cond(True, lambda v: v, lambda v: (v, v), X)


def test_loops():
    total, squares = rlx.scan(lambda c, x: (c + x, {"s": c * x}), jnp.zeros(4), X)
    assert np.allclose(total.numpy(), X.sum(0), rtol=1e-5, atol=1e-6)
    assert np.allclose(squares["s"].numpy(), np.cumsum(np.vstack([np.zeros(4), X[:-1]]), 0) * X, rtol=1e-4, atol=1e-5)
    assert rlx.scan(lambda c, _: (c * 2, c), 1, length=4)[1].tolist() == [1, 2, 4, 8]
    assert rlx.fori_loop(2, 6, lambda i, c: c + i, 0).tolist() == 14
    assert rlx.fori_loop(3, 0, lambda i, c: c + 1, 5).tolist() == rlx.fori_loop(rlx.array(3), 0, lambda i, c: c + 1, 5).tolist() == 5
    assert rlx.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2, c[1] + 1), (1, 0))[1].tolist() == 7
    assert np.allclose(rlx.associative_scan(lambda a, b: a + b, X).numpy(), np.cumsum(X, 0), rtol=1e-5, atol=1e-6)
    assert np.allclose(rlx.map(lambda x: x.sum(), X).numpy(), X.sum(1), rtol=1e-5, atol=1e-6)
    gradient = rlx.grad(lambda x: rlx.scan(lambda c, v: (c * v, c), jnp.ones(4), x)[0].sum())(X)
    assert np.allclose(gradient.numpy(), differences(lambda x: x.prod(0).sum(), X), atol=1e-4)


def test_carries_that_are_numbers_take_the_types_of_the_step():
    """Recorded from JAX: strict arrays keep theirs."""
    half = jnp.ones((), rlx.float16)
    cases = [(rlx.fori_loop(0, 5, lambda i, c: c + half.astype(rlx.float32) * 1.5, 0), rlx.float32, 7.5), (rlx.fori_loop(0, 5, lambda i, c: c * 1.5, 1), rlx.float32, 7.59375),
             (rlx.fori_loop(0, 5, lambda i, c: c + half, 0.0), rlx.float16, 5), (rlx.scan(lambda c, x: (c + x, c), 0, jnp.arange(3.0))[0], rlx.float32, 3),
             (rlx.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + half.astype(rlx.float32) * 2), (0, 0))[1], rlx.float32, 6)]  # fmt: skip
    for seen, dtype, value in cases:
        assert (seen.dtype, seen.tolist()) == (dtype, value)
    assert rlx.jit(lambda: rlx.fori_loop(0, 5, lambda i, c: c + half, 0))().dtype == rlx.float16
    assert rlx.grad(lambda b: rlx.fori_loop(0, 5, lambda i, c: c + b * b, 0))(jnp.full((), 3.0)) == 30
    assert rlx.vmap(lambda b: rlx.fori_loop(0, 5, lambda i, c: rlx.fori_loop(0, 2, lambda j, d: d + b, c), 0))(jnp.arange(3.0)).tolist() == [0, 10, 20]
    for start, dtype in ((jnp.zeros((), rlx.int32), "i32"), (True, "bool")):
        with pytest.raises(rlx.Error, match=f"carry 0 is {dtype}"):
            rlx.fori_loop(0, 5, lambda i, c: c + 1.5, start)


def test_loops_and_compiled_functions_may_capture_what_is_traced():
    rows = rlx.asarray(X)

    def loss(w):
        total = rlx.scan(lambda c, row: (c + (row * w).sum(), None), 0.0, rows)[0]
        return total + rlx.jit(lambda x: (x * w).sum())(rows) + rlx.cond(True, lambda: w.sum(), lambda: 0.0 * w.sum())

    w = np.float32([1, 2, 3, 4])
    for gradient in (rlx.grad(loss), rlx.jit(rlx.grad(loss))):
        assert np.allclose(gradient(w).numpy(), 2 * X.sum(0) + 1, rtol=1e-5)


Point = collections.namedtuple("Point", "x y")


@rlx.tree.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: object
    bias: object


def test_trees_of_any_kind():
    value = {"b": [1, (2, None)], "a": Point(3, Layer(4, 5))}
    leaves, structure = rlx.tree.flatten(value)
    assert leaves == [3, 4, 5, 1, 2] and rlx.tree.unflatten(structure, leaves) == value
    assert hash(structure) == hash(rlx.tree.structure(value)) and rlx.tree.map(lambda a, b: a + b, value, value)["b"] == [2, (4, None)]
    with pytest.raises(rlx.Error, match="trees differ"):
        rlx.tree.map(lambda a, b: a, value, {"b": 1})
    layer = Layer(rlx.asarray(W), rlx.array([0.0, 1.0]))
    gradient = rlx.jit(rlx.grad(lambda p: (X @ p.weight + p.bias).sum()))(layer)
    assert isinstance(gradient, Layer) and gradient.bias.tolist() == [3, 3]


def test_a_step_of_training():
    @rlx.jit
    def step(params, x, y):
        loss, gradient = rlx.value_and_grad(lambda p: ((x @ p["w"] + p["b"] - y) ** 2).mean())(params)
        return loss, rlx.tree.map(lambda p, g: p - 0.1 * g, params, gradient)

    x = RNG.normal(size=(64, 3)).astype(np.float32)
    y = x @ np.float32([[1], [-2], [0.5]]) + 0.3
    params = {"w": jnp.zeros((3, 1)), "b": jnp.zeros(1)}
    for _ in range(300):
        loss, params = step(params, x, y)
    assert float(loss) < 1e-6 and np.allclose(params["w"].numpy().ravel(), [1, -2, 0.5], atol=1e-3)


def test_threads_call_one_function():
    compiled = rlx.jit(lambda x: jnp.sin(x) @ W)
    expected = compiled(X).numpy()
    wrong = []

    def work():
        for _ in range(50):
            if not np.array_equal(compiled(X).numpy(), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_vmap_takes_arguments_by_name_and_gives_results_without_a_batch():
    assert np.array_equal(rlx.vmap(lambda x, *, k: x * k)(X, k=np.arange(len(X), dtype=np.float32)), X * np.arange(len(X))[:, None])
    total, y = rlx.vmap(lambda x, y: (x + y, y * 2), in_axes=(0, None), out_axes=(1, None))(X, X[0])
    assert np.array_equal(total, (X + X[0]).T) and np.array_equal(y, X[0] * 2)


def test_jacobians_are_trees_like_arguments_and_results():
    a, b = np.float32([1, 2]), np.float32([3, 5, 7])

    def f(p, c):
        return {"outer": p["a"][:, None] * p["b"] * c, "sum": p["a"].sum() * c}

    for jacobian in (rlx.jacfwd, rlx.jacrev):
        by_p, by_c = jacobian(f, argnums=(0, 1))({"a": a, "b": b}, 2.0)["outer"]
        assert np.array_equal(by_p["a"], 2 * np.eye(2)[:, None, :] * b[None, :, None]) and np.array_equal(by_p["b"], 2 * a[:, None, None] * np.eye(3))
        assert np.array_equal(by_c, np.outer(a, b)) and jacobian(f)({"a": a, "b": b}, 2.0)["sum"]["b"].tolist() == [0, 0, 0]
    second = rlx.hessian(lambda p: (p["a"] * p["b"][:2]).sum() + (p["a"] ** 3.0).sum())({"a": a, "b": b})
    assert np.array_equal(second["a"]["a"], np.diag(6 * a)) and np.array_equal(second["b"]["a"], np.eye(3, 2)) and not second["b"]["b"].numpy().any()


def test_vjp_gives_what_the_function_gives_beside():
    value, pull_back, beside = rlx.vjp(lambda v: ((v * v).sum(), {"twice": v * 2}), X, has_aux=True)
    assert np.allclose(value, (X * X).sum()) and np.allclose(beside["twice"], X * 2) and np.allclose(pull_back(1.0)[0], 2 * X)
    inside = rlx.jit(lambda v: rlx.vjp(lambda u: (u * v, v + 1), v, has_aux=True)[2])(X)
    assert np.allclose(inside, X + 1)


def test_trees_are_constants_of_derivatives():
    gradient = rlx.grad(lambda v: (v * rlx.stop_gradient({"k": (v, 2.0)})["k"][0]).sum())(X)
    assert np.allclose(gradient, X) and np.allclose(rlx.lax.stop_gradient(rlx.asarray(X)), X)


def test_loops_between_ends_that_are_arrays():
    def powers(first, last, x):
        return rlx.fori_loop(first, last, lambda i, state: (state[0] * x, state[1] + i), (x, rlx.asarray(np.int32(0))))

    x = rlx.asarray(np.float32([2, 3]))
    for first, last in ((0, 3), (2, 4), (3, 1)):
        seen, total = rlx.jit(powers)(np.int32(first), np.int32(last), x)
        steps = range(first, last)
        assert np.array_equal(seen, x.numpy() ** (len(steps) + 1)) and int(total) == sum(steps)
    seen, total = rlx.vmap(powers, in_axes=(None, 0, 0))(1, np.int32([4, 1]), x)
    assert np.array_equal(seen, [16, 3]) and np.array_equal(total, [6, 0])
    _, slope = rlx.jvp(lambda x: powers(0, rlx.asarray(np.int32(2)), x)[0], (x,), (rlx.ones_like(x),))
    assert np.array_equal(slope, 3 * x.numpy() ** 2)
    for bound, text in ((np.float32(3), r"f32\[\]"), (np.int32([1, 2]), r"i32\[2\]")):
        with pytest.raises(rlx.Error, match=rf"fori_loop: a bound is {text} \(allowed: an integer\)"):
            powers(0, rlx.asarray(bound), x)
