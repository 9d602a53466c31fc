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
    rlx.jit(lambda x: leaked.append(x * 2) or x)(jnp.ones(3))
    assert "outside of the function" in error_of(lambda: leaked[0] + 1)
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
