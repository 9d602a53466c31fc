"""What goes wrong is said with the caller's line."""
import inspect

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp


def error_of(action):
    with pytest.raises(rlx.Error) as caught:
        action()
    return str(caught.value)


def test_errors_name_the_callers_line():
    x = jnp.ones((2, 3))
    line = inspect.currentframe().f_lineno + 1
    message = error_of(lambda: x @ x)
    assert message.startswith("rlx.matmul: ") and message.endswith(f", built at {__file__}:{line}")
    assert "[2,3]" in message


def test_errors_in_traced_functions_name_their_line():
    def wrong(x):
        return rlx.softmax(x, axis=5)

    line = inspect.getsourcelines(wrong)[1] + 1
    for function in (wrong, rlx.jit(wrong), rlx.vmap(wrong), rlx.jit(rlx.grad(lambda x: wrong(x).sum()))):
        message = error_of(lambda: function(jnp.ones((2, 3))))
        assert "axis 5" in message and message.endswith(f"{__file__}:{line}"), message


def test_unknown_names_and_arguments_say_what_is_allowed():
    x = jnp.ones(3)
    assert "near: 'softmax'" in error_of(lambda: rlx.ops.call("softmaks", x))
    assert "allowed: x, axis, zero_empty" in error_of(lambda: rlx.softmax(x, axes=0))
    assert "allowed: none, mean, sum" in error_of(lambda: rlx.mse(x, x, reduction="median"))
    assert "allowed: float32" in error_of(lambda: x.astype("float33"))
    with pytest.raises(AttributeError):
        rlx.softmaks


def test_elements_of_traced_arrays_are_not_known():
    for read in (float, bool, np.asarray, lambda x: x.tolist()):
        assert "traced" in error_of(lambda: rlx.jit(lambda x: read(x.sum()))(jnp.ones(3)))


def test_leaked_arrays_are_found():
    leaked = []

    def leaks(x):
        leaked.append(x)
        leaked.append(x * 2)
        return x

    line = inspect.getsourcelines(leaks)[1] + 2
    rlx.jit(leaks)(jnp.ones(3))
    message = error_of(lambda: leaked[1] + 1)
    assert "f32[3] is used outside of the function in which it was traced" in message
    assert "leaks, made at" in message and f"{__file__}:{line}" in message
    assert "leaks, made at" in error_of(lambda: leaked[0] + 1)
    rlx.grad(lambda x: leaked.append(x) or x.sum())(jnp.ones(3))
    assert "traced" in repr(leaked[2]) and "outside of the function" in error_of(lambda: leaked[2] + 1)
    assert "traced" in repr(leaked[0])


def test_grad_says_what_it_takes():
    assert "float of rank 0" in error_of(lambda: rlx.grad(lambda x: x * 2)(jnp.ones(3)))
    assert "allowed: floats" in error_of(lambda: rlx.grad(lambda x: x.sum())(jnp.arange(3)))


def test_exceptions_of_functions_come_out_as_they_are():
    def broken(x):
        raise KeyError("mine")

    for function in (rlx.jit(broken), rlx.grad(broken), rlx.vmap(broken), lambda x: rlx.scan(lambda c, v: broken(v), x, x)):
        with pytest.raises(KeyError, match="mine"):
            function(jnp.ones(3))


def explained(caplog, action):
    caplog.clear()
    with rlx.explain_cache_misses():
        action()
    return [record.getMessage() for record in caplog.records]


def test_cache_misses_are_explained_when_asked(caplog):
    @rlx.jit
    def scaled(params, x, factor=1):
        return params["w"][0] * x * factor

    call = lambda w, x, **more: scaled({"w": [w]}, x, **more)  # noqa: E731
    (first,) = explained(caplog, lambda: call(jnp.ones(3), jnp.ones(3)))
    assert "scaled" in first and "its first call" in first and __file__ in first
    assert explained(caplog, lambda: call(jnp.ones(3), jnp.ones(3))) == []
    (second,) = explained(caplog, lambda: call(jnp.ones((2, 3)), jnp.ones(3)))
    assert second.endswith("is traced: params['w'][0]: f32[3] -> f32[2,3]")
    (third,) = explained(caplog, lambda: call(jnp.ones(3), 2.0))
    assert third.endswith("x: f32[3] -> f32[] (a number of Python)")
    (fourth,) = explained(caplog, lambda: call(jnp.ones(3), jnp.ones(3), factor=jnp.ones(3)))
    assert "structure: " in fourth
    caplog.clear()
    call(jnp.ones(4), jnp.ones(4))
    assert not caplog.records


def test_changes_of_static_arguments_are_explained(caplog):
    power = rlx.jit(lambda n, x: x**n, static_argnums=0)
    power(2, jnp.ones(3))
    (message,) = explained(caplog, lambda: power(3, jnp.ones(3)))
    assert message.endswith("static argument 0: 2 -> 3")
