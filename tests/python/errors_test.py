"""What goes wrong is said with the caller's line."""
import dataclasses
import inspect
import os
import subprocess
import sys

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
    with pytest.raises(AttributeError, match="module 'rlx' has no attribute 'softmaks'"):
        rlx.softmaks
    with pytest.raises(TypeError, match=r"Conv: kernel 3 .* such as \(3, 3\)"):
        rlx.nn.Conv(1, 8, 3, key=rlx.random.key(0))


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


A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("x", [A[:, ::2], A.T, A[::-1], A[:, ::-1], np.zeros((0, 3), np.float32), np.array(2, np.float32), A.astype(">f4"), A[1:2, 3:]])
def test_arrays_of_any_layout_are_taken(x):
    for call in (lambda x: x * 2, rlx.jit(lambda x: x * 2), lambda x: rlx.asarray(x) + x):
        assert np.array_equal(call(rlx.asarray(x)), x * 2)
    read_only = x.copy()
    read_only.flags.writeable = False
    assert np.array_equal(rlx.jit(lambda x: x * 2)(read_only), x * 2) and np.array_equal(read_only, x)


@pytest.mark.parametrize("x", [np.array([1, None], object), np.array(["a"]), np.array(["2020-01-01"], "datetime64[D]"), np.zeros(2, np.longdouble),
                               np.zeros(2, [("a", "f4")]), "text", np.ma.array([1, 2], mask=[0, 1])])  # fmt: skip
def test_what_is_no_array_is_named(x):
    for call in (rlx.asarray, rlx.jit(lambda x: x)):
        assert "allowed: " in error_of(lambda: call(x))


@pytest.mark.parametrize("index", [5, 1.5, (0, 0, 0), np.array([True, False]), (slice(None), np.array([True] * 3)), (..., np.array([True] * 3)), "a",
                                   np.array([0.5])])  # fmt: skip
def test_wrong_indices_are_index_errors(index):
    with pytest.raises(IndexError):
        rlx.asarray(A)[index]


def test_masks_stand_for_their_axes():
    for index in ((..., A[0] > 1), (slice(None), A[0] > 1), A > 3, (None, A[:, 0] > 1), (A[:, 0] > 1, 0)):
        assert np.array_equal(rlx.asarray(A)[index], A[index])


def test_elements_of_leaked_arrays_name_the_function():
    leaked = []
    rlx.jit(lambda x: leaked.append(x) or x)(jnp.ones(3))
    assert "used outside of the function" in error_of(lambda: leaked[0].numpy())


def run(program):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(rlx.__file__))}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment, check=False)


PROGRAM = """
import os, signal, threading, time
import numpy as np, rlx, rlx.numpy as jnp
f = rlx.jit(lambda a: rlx.fori_loop(0, 200, lambda i, c: jnp.tanh(c @ a * 0.01), a))
x = np.ones((200, 200), np.float32)
f(x)
"""


def test_the_interpreter_may_end_while_runs_go_on():
    done = run(PROGRAM + """
for _ in range(3):
    threading.Thread(target=lambda: [f(x) for _ in range(100)], daemon=True).start()
time.sleep(0.05)
""")  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_a_long_trace():
    done = run(PROGRAM + """
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
def long(a):
    while True:
        a = jnp.sin(a)
try:
    rlx.jit(long)(x)
except KeyboardInterrupt:
    print(float(f(x).sum()) > 0)
""")  # fmt: skip
    assert done.stdout == "True\n", done.stderr


def test_branches_that_differ_are_named_as_their_caller_named_them():
    x = jnp.ones(3)
    message = error_of(lambda: rlx.cond(True, lambda v: v.astype("int32"), lambda v: v, x))
    assert message.startswith("rlx.cond: result 0 is f32[3] from false_fun and i32[3] from true_fun")
    message = error_of(lambda: rlx.jit(lambda i, v: rlx.switch(i, [lambda v: (v, v), lambda v: (v, v), lambda v: (v, v[:2])], v))(1, x))
    assert message.startswith("rlx.switch: result 1 is f32[3] from branches[0] and f32[2] from branches[2]")
    assert error_of(lambda: rlx.cond(True, lambda v: (v, v), lambda v: v, x)).startswith("rlx.cond: the structure is * from false_fun and (*, *) from true_fun")


def test_what_chooses_a_branch_is_a_scalar():
    same = [lambda v: v] * 2
    assert "rlx.cond: the predicate is bool[3] (allowed: rank 0; rlx.numpy.where" in error_of(lambda: rlx.cond(jnp.ones(3) > 0, *same, 1.0))
    assert "rlx.switch: the index is f32[] (allowed: an integer" in error_of(lambda: rlx.switch(1.5, same, 1.0))
    assert "rlx.switch: there are no branches" in error_of(lambda: rlx.switch(1, [], 1.0))


def test_what_needs_elements_of_a_traced_array_says_what_serves_instead():
    x, i = jnp.arange(5), 1
    ways = [(lambda x, i: x if x.sum() > 0 else -x, "bool[]", "rlx.numpy.where and rlx.cond choose instead of `if`"),
            (lambda x, i: x if x > 0 else -x, "bool[5]", "rlx.while_loop"),
            (lambda x, i: x[i : i + 2], "i32[]", "rlx.lax.dynamic_slice and dynamic_update_slice take starts that are traced"),
            (lambda x, i: x.at[:i].set(0), "i32[]", "dynamic_update_slice"), (lambda x, i: [each for each in range(i)], "i32[]", "rlx.fori_loop"),
            (lambda x, i: [1, 2][i], "i32[]", "static_argnums"), (lambda x, i: jnp.ones(i), "i32[]", "static_argnums"),
            (lambda x, i: x.reshape(i, -1), "i32[]", "rlx.Dim"), (lambda x, i: float(i), "i32[]", "astype changes its type"),
            (lambda x, i: np.sin(x), "i32[5]", "functions of rlx.numpy take it"), (lambda x, i: x[x > 2], "bool[5]", "rlx.numpy.where takes masks")]  # fmt: skip
    for way, seen, instead in ways:
        message = error_of(lambda: rlx.jit(way)(x, i))
        assert f"array of {seen} is being traced by" in message and "not while it is traced: " in message and instead in message, message


@dataclasses.dataclass
class Unknown:
    w: object


class Stranger:
    pass


def test_a_class_that_is_no_container_says_how_to_make_it_one():
    hint = "; rlx.tree_util.register_dataclass makes Unknown a container of arrays)"
    for call in (lambda: rlx.jit(lambda p: p.w)(Unknown(1.0)), lambda: rlx.jit(Unknown)(1.0), lambda: rlx.grad(lambda p: p.w)(Unknown(1.0)),
                 lambda: rlx.vmap(lambda p: p.w)(Unknown(jnp.ones(3)))):  # fmt: skip
        assert error_of(call).endswith(hint)
    assert error_of(lambda: rlx.jit(lambda p: p)([Stranger()])).endswith("; rlx.tree_util.register_pytree_node makes Stranger a container of arrays)")
    assert error_of(lambda: rlx.jit(lambda p: p)({1, 2})).endswith("or with DLPack)")
