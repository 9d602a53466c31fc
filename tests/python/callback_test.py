"""Functions of Python within compiled programs, and what functions give without being computed."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
LIKE = rlx.ShapeDtypeStruct((3,), "float32")


def sorted_and_sum(x):
    assert isinstance(x, np.ndarray)
    return {"sorted": np.sort(x), "sum": x.sum()}


WANTED = {"sorted": LIKE, "sum": rlx.ShapeDtypeStruct((), "float32")}


def test_a_compiled_function_calls_python():
    def f(x):
        found = rlx.pure_callback(sorted_and_sum, WANTED, x * 2)
        return found["sorted"] + 1, found["sum"]

    for call in (f, rlx.jit(f)):
        first, second = call(X[0])
        assert np.allclose(first, np.sort(X[0] * 2) + 1) and np.allclose(second, X[0].sum() * 2, atol=1e-6)


def test_a_batch_calls_it_for_each_example():
    f = lambda x: rlx.pure_callback(lambda v: np.sort(v), LIKE, x)  # noqa: E731
    for call in (rlx.vmap(f), rlx.jit(rlx.vmap(f))):
        assert np.array_equal(call(X), np.sort(X, 1))
    both = rlx.vmap(lambda x, y: rlx.pure_callback(lambda a, b: a + b, LIKE, x, y), in_axes=(0, None))(X, X[0])
    assert np.allclose(both, X + X[0])
    assert np.array_equal(rlx.vmap(rlx.vmap(f))(np.stack([X, -X])), np.sort(np.stack([X, -X]), 2))


def test_results_may_be_like_an_operand():
    f = lambda v: rlx.pure_callback(np.sort, v, v)  # noqa: E731
    assert np.array_equal(rlx.jit(rlx.vmap(f))(X), np.sort(X, 1)) and rlx.eval_shape(f, X) == rlx.ShapeDtypeStruct((4, 3), "float32")


def test_loops_call_it():
    total, _ = rlx.scan(lambda c, x: (rlx.pure_callback(lambda a, b: a + b, LIKE, c, x), None), jnp.zeros(3), X)
    assert np.allclose(total, X.sum(0), atol=1e-5)


def test_a_rule_gives_it_a_derivative():
    @rlx.custom_jvp
    def sine(x):
        return rlx.pure_callback(lambda v: np.sin(v), LIKE, x)

    sine.defjvp(lambda x, dx: (sine(x[0]), dx[0] * jnp.cos(x[0])))
    gradient = rlx.jit(rlx.grad(lambda x: sine(x).sum()))(X[0])
    assert np.allclose(gradient, np.cos(X[0]), atol=1e-6)
    with pytest.raises(rlx.Error, match="custom_jvp"):
        rlx.grad(lambda x: rlx.pure_callback(lambda v: np.sin(v), LIKE, x).sum())(X[0])


def test_what_goes_wrong_is_said():
    def raising(x):
        raise KeyError("mine")

    for call in (lambda f: f, rlx.jit):
        with pytest.raises(KeyError, match="mine"):
            np.asarray(call(lambda x: rlx.pure_callback(raising, LIKE, x))(X[0]))
        with pytest.raises(rlx.Error, match="allowed: f32\\[3\\]"):
            np.asarray(call(lambda x: rlx.pure_callback(lambda v: v[:2], LIKE, x))(X[0]))
        with pytest.raises(rlx.Error, match="allowed: "):
            np.asarray(call(lambda x: rlx.pure_callback(lambda v: (v, v), LIKE, x))(X[0]))
    with pytest.raises(rlx.Error, match="ShapeDtypeStruct"):
        rlx.pure_callback(raising, 3, X)


def test_operands_may_be_kept():
    kept = []
    f = rlx.jit(lambda x: rlx.pure_callback(lambda v: kept.append(v) or v, LIKE, x + 1))
    f(X[0]), f(X[1])
    assert np.allclose(kept[0], X[0] + 1) and np.allclose(kept[1], X[1] + 1)


def test_shapes_are_known_without_computing():
    def f(x, y):
        return {"a": x @ y, "b": (x > 0, 1.0)}

    seen = rlx.eval_shape(f, rlx.ShapeDtypeStruct((2, 3), "bfloat16"), np.ones((3, 4), np.float32))
    assert seen["a"] == rlx.ShapeDtypeStruct((2, 4), rlx.float32) and seen["b"][0].dtype.name == "boolean" or seen["b"][0].shape == (2, 3)
    assert seen["a"].size == 8 and seen["a"].ndim == 2


def test_kernels_of_the_program_compute_ops_from_now_on():
    def sevenfold(x, **attributes):
        seen.append(attributes)
        return 7 * x

    seen, x, softmax = [], np.array([1.0, 2.0, 3.0], np.float32), rlx.jit(lambda v: rlx.softmax(v, 0))
    own = softmax(x).numpy()
    rlx.register_kernel("softmax", "cpu", sevenfold)
    try:
        assert np.array_equal(softmax(x), 7 * x)
        assert np.array_equal(rlx.softmax(x, 0), 7 * x) and seen[0]["axis"] == 0
    finally:
        rlx.register_kernel("softmax", "cpu", None)
    assert np.array_equal(softmax(x), own)


def test_kernels_of_the_program_that_cannot_be():
    for device, message in (("cup", "no device 'cup' .near: 'cpu'"), ("auto", "another one for each graph")):
        with pytest.raises(rlx.Error, match=message):
            rlx.register_kernel("softmax", device, lambda x, axis: x)
    with pytest.raises(rlx.Error, match="a kernel of type int"):
        rlx.register_kernel("softmax", "cpu", 3)
    rlx.register_kernel("softmax", "coreml", None)  # of a kind that is not here
