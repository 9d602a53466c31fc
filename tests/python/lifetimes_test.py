"""Signals, the end of the interpreter, garbage and exceptions, whenever they come."""
import gc
import os
import subprocess
import sys
import threading
import weakref

import models_test
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)

BEGIN = """
import os, signal, sys, threading, time
import numpy as np, rlx, rlx.numpy as jnp
x = np.ones((2, 3), np.float32)
asked = []
def interrupt():
    asked.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
def expect_interrupt(work):
    threading.Timer(0.3, interrupt).start()
    try:
        work()
    except KeyboardInterrupt:
        print("after", time.process_time() - asked[0])
"""


def run(program, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(rlx.__file__)), "RLX_CACHE": ""}
    done = subprocess.run([sys.executable, "-c", BEGIN + program, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def delay(lines):
    """The seconds of all threads from Ctrl-C to its exception; others may take the CPUs."""
    return float(lines[0].removeprefix("after "))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return models_test.folder_of_words(tmp_path_factory.mktemp("llama"))


LONG = """
def long(a, count):
    for i in range(count):
        a = jnp.sort(jnp.tanh(a * (1.0 + i)), 1) - i
    return a
"""


def test_ctrl_c_ends_a_long_compilation():
    lines = run(LONG + """
def traced(a):
    result = long(a, 3000)
    threading.Timer(0.3, interrupt).start()
    return result
f = rlx.jit(traced)
try:
    f(x)
except KeyboardInterrupt:
    print("after", time.process_time() - asked[0])
print(np.allclose(rlx.jit(lambda x: long(x, 2))(x), np.tanh(2 * np.tanh(x)) - 1), f.cache_size())
""")  # fmt: skip
    assert delay(lines) < 1 and lines[1] == "True 0"


def test_ctrl_c_ends_the_compilation_of_what_was_noted_down():
    lines = run(LONG + """
noted = long(rlx.asarray(x), 3000)
expect_interrupt(lambda: noted.numpy())
print((rlx.asarray(x) * 2).tolist() == (x * 2).tolist())
""")  # fmt: skip
    assert delay(lines) < 1 and lines[1] == "True"


@pytest.mark.parametrize("work", ["model.answers(['w1 w2 w3'] * 100000, max_tokens=20)", "model.perplexity(' '.join(['w1 w2 w3'] * 300000), context=32)",
                                  "[list(model.generate('w1', max_tokens=100)) for _ in range(10**6)]"])  # fmt: skip
def test_ctrl_c_ends_the_work_of_a_model(folder, work):
    lines = run(f"""
model = rlx.Model.open(sys.argv[1], threads=1)
expect_interrupt(lambda: {work})
print(len(model.answers(['w1'], max_tokens=3)[0].ids), len(list(model.generate('w1 w2', max_tokens=3))))
""", folder)  # fmt: skip
    assert delay(lines) < 1 and lines[1] == "3 3"


@pytest.mark.parametrize("work", ["model.answers(['w1 w2 w3'] * 1000, max_tokens=20)", "model.perplexity(' '.join(['w1'] * 3000), context=32, progress=lambda done, total: None)",
                                  "list(model.generate('w1', max_tokens=50))", "f(x)", "rlx.jit(lambda a: long(a, 300))(x)"])  # fmt: skip
def test_the_interpreter_may_end_while_threads_work(folder, work):
    run(LONG + f"""
model = rlx.Model.open(sys.argv[1], threads=1)
f = rlx.jit(lambda a: rlx.fori_loop(0, 50, lambda i, c: rlx.pure_callback(np.cos, c, c), a))
def forever():
    while True:
        {work}
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.5)
""", folder)  # fmt: skip


def test_a_child_of_a_process_that_has_computed_computes(folder):
    lines = run("""
model = rlx.Model.open(sys.argv[1], threads=2)
f = rlx.jit(lambda a: rlx.fori_loop(0, 20, lambda i, c: jnp.tanh(c @ a), a))
a = np.full((300, 300), 0.01, np.float32)
expected = f(a).numpy()
thread = threading.Thread(target=f, args=(a,))
thread.start()
thread.join()
for _ in range(5):
    if os.fork() == 0:
        signal.alarm(60)
        right = np.array_equal(f(a), expected) and np.array_equal(rlx.jit(lambda a: a + 1)(x), x + 1)
        right = right and np.allclose(rlx.array(a) @ a, a @ a)
        right = right and len(list(model.generate("w1 w2", max_tokens=3))) == 3
        os._exit(0 if right else 1)
    print(os.wait()[1])
""", folder)  # fmt: skip
    assert lines == ["0"] * 5


@pytest.mark.parametrize("work", ["f(x)", "list(model.generate('w1 w2', max_tokens=50))", "rlx.jit(lambda a: long(a, 100))(x)", "model.answers(['w1 w2'], max_tokens=50)"])
def test_a_child_of_a_process_whose_threads_work_says_that_it_cannot(folder, work):
    lines = run(LONG + f"""
model = rlx.Model.open(sys.argv[1], threads=2)
f = rlx.jit(lambda a: rlx.fori_loop(0, 200_000, lambda i, c: jnp.tanh(c), a))
def forever():
    while True:
        {work}
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
for _ in range(20):
    time.sleep(0.01)
    if os.fork() == 0:
        signal.alarm(20)
        try:
            {work}
            code = 3  # nobody worked at the fork
        except rlx.Error as error:
            code = 4 if "forked while another thread" in str(error) else 1
        sys.exit(code)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
""", folder)  # fmt: skip
    assert len(lines) == 20 and set(lines) <= {"3", "4"} and "4" in lines


def test_what_others_are_made_of_may_go_first(folder):
    model = rlx.Model.open(folder, threads=1)
    generation = model.generate("w1 w2", max_tokens=4)
    graph = rlx.Graph("g")
    value = graph.input("x", (3,)) * 2
    graph.output("y", value)
    executable = rlx.Session(threads=1).compile(graph)
    array = rlx.asarray(np.arange(3, dtype=np.float32))
    view, noted = array.numpy(), array * 2
    f = rlx.jit(lambda x: x + array)
    expected = f(X)
    del model, graph, value, array
    gc.collect()
    assert "".join(generation) and executable.run({"x": X[0]})["y"].tolist() == [0, 2, 4]
    assert view.tolist() == [0, 1, 2] and noted.tolist() == [0, 2, 4] and np.array_equal(f(X), expected)


def test_what_a_compiled_function_holds_goes_with_it():
    class Kept:
        by = 2.0

    def made():
        kept = Kept()
        f = rlx.jit(lambda x: x * kept.by)
        f.itself = f  # a circle
        assert np.array_equal(f(X), X * 2)
        return weakref.ref(kept)

    gone = made()
    gc.collect()
    assert gone() is None


def test_garbage_is_collected_by_any_thread():
    def work():
        for i in range(200):
            circle = [rlx.asarray(np.full(1000, i, np.float32)) * 2]
            circle.append(circle)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        gc.collect()
    for thread in threads:
        thread.join()


def raises(*_):
    raise KeyError("mine")


class Broken:
    def __init__(self, value):
        self.value = value


rlx.tree.register(Broken, raises, lambda rest, children: Broken(children[0]))


class Unmade:
    def __init__(self, value):
        self.value = value


rlx.tree.register(Unmade, lambda each: ((each.value,), None), raises)


class Unequal:
    __hash__ = lambda self: 1  # noqa: E731
    __eq__ = raises


@rlx.custom_jvp
def ruled(x):
    return x * 2


ruled.defjvp(raises)


@rlx.custom_vjp
def ruled_back(x):
    return x * 2


ruled_back.defvjp(lambda x: (x * 2, None), raises)

CALLS = {
    "jvp": lambda x: rlx.jvp(raises, (x,), (x,)),
    "vjp": lambda x: rlx.vjp(raises, x),
    "linearize": lambda x: rlx.linearize(raises, x),
    "hessian": lambda x: rlx.hessian(raises)(x),
    "checkpoint": lambda x: rlx.grad(lambda v: rlx.checkpoint(raises)(v).sum())(x),
    "cond": lambda x: rlx.cond(True, raises, lambda v: v, x),
    "switch": lambda x: rlx.switch(0, [lambda v: v, raises], x),
    "while condition": lambda x: rlx.while_loop(raises, lambda v: v, x),
    "while body": lambda x: rlx.while_loop(lambda v: v.sum() > 0, raises, x),
    "fori": lambda x: rlx.fori_loop(0, 3, raises, x),
    "associative_scan": lambda x: rlx.associative_scan(raises, x),
    "map": lambda x: rlx.map(raises, x),
    "a jvp rule": lambda x: rlx.grad(lambda v: ruled(v).sum())(x),
    "a vjp rule": lambda x: rlx.jit(rlx.grad(lambda v: ruled_back(v).sum()))(x),
    "eval_shape": lambda x: rlx.eval_shape(raises, x),
    "a class taken apart": lambda x: rlx.jit(lambda b: x)(Broken(x)),
    "a class made again": lambda x: rlx.jit(lambda b: b)(Unmade(x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_exceptions_come_out_and_leave_nothing_behind(name):
    for wrapped in (lambda x: CALLS[name](x), rlx.jit(lambda x: CALLS[name](x)), rlx.vmap(lambda x: CALLS[name](x))):
        with pytest.raises(KeyError, match="mine"):
            wrapped(jnp.ones((2, 3)))
        assert np.array_equal(rlx.jit(lambda x: x * 2)(X), X * 2) and (rlx.asarray(X) + 1).tolist() == (X + 1).tolist()


def test_an_exception_of_a_static_argument_comes_out():
    static = rlx.jit(lambda x, n: x, static_argnums=1)
    static(X, Unequal())
    with pytest.raises(KeyError, match="mine"):
        static(X, Unequal())
