"""rlx.debug: calls at once, and in programs as they run."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import debug

X = np.float32([1, 2])


def test_what_is_known_is_printed_at_once(capsys):
    debug.print("x = {} and {y:.1f}, {}", jnp.arange(3), "text", y=jnp.float32(0.25), ordered=True)
    assert capsys.readouterr().out == "x = [0 1 2] and 0.2, text\n"


def printed(capsys, function, *args):
    np.asarray(function(*args))
    return capsys.readouterr().out.split()


def test_programs_print_each_time_they_run(capsys):
    def loss(x):
        debug.print("{}", x[0])
        debug.print("{sum}", sum=x.sum())
        return (x**2.0).sum()

    for function in (rlx.jit(loss), rlx.jit(rlx.grad(loss)), rlx.grad(loss)):
        assert printed(capsys, function, X) == ["1.0", "3.0"] and printed(capsys, function, X + 1) == ["2.0", "5.0"]
    assert np.allclose(rlx.jit(rlx.grad(loss))(X), 2 * X) and capsys.readouterr().out
    assert printed(capsys, rlx.vmap(lambda x: (debug.print("{}", x), x)[1]), X) == ["1.0", "2.0"]


def test_branches_and_loops_print_what_they_compute(capsys):
    def step(total, x):
        debug.print("{}", x)
        return total + x, total

    assert printed(capsys, rlx.jit(lambda x: rlx.scan(step, 0.0, x)[0]), X) == ["1.0", "2.0"]
    assert printed(capsys, rlx.jit(lambda n: rlx.fori_loop(0, n, lambda i, v: step(v, i)[0], 0)), 3) == ["0", "1", "2"]
    either = rlx.jit(lambda x: rlx.cond(x > 0, lambda x: (debug.print("up"), x)[1], lambda x: (debug.print("down"), -x)[1], x))
    assert printed(capsys, either, np.float32(1)) == ["up"] and printed(capsys, either, np.float32(-1)) == ["down"]


def test_functions_are_called_with_trees_of_numpys_arrays():
    seen = []
    rlx.jit(lambda x: (debug.callback(lambda parts, kind: seen.append((parts["x"] * 2, kind)), {"x": x}, kind="twice"), x)[1])(X).numpy()
    assert len(seen) == 1 and np.array_equal(seen[0][0], 2 * X) and seen[0][1] == "twice"


def test_a_function_without_results_carries_nothing():
    with pytest.raises(rlx.Error, match="rlx.debug: a call in a traced function that gives no array"):
        rlx.jit(lambda x: debug.print("{}", x))(X)
