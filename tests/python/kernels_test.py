"""Ops of one's own: bodies of ops, and kernels in C beside them."""
import shutil

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
SNAKE = """
#include <math.h>
#include <stdint.h>
void snake(const float* x, const float* a, float* y, const int64_t* sizes) {
  for (int64_t i = 0; i < sizes[0]; ++i) { float s = sinf(a[0] * x[i]); y[i] = x[i] + s * s / a[0]; }
}
"""
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def body(x, a):
    return x + jnp.sin(a * x) ** 2.0 / a


def test_a_body_of_ops_is_an_op():
    snake = rlx.op(body)
    assert np.allclose(snake(X[0], 2.0), X[0] + np.sin(2 * X[0]) ** 2 / 2, atol=1e-6) and snake.__name__ == "body"


@needs_compiler
def test_a_kernel_computes_what_its_body_means():
    snake = rlx.op(body, c=SNAKE, name="snake")
    x, a = X[:, 0].copy(), np.float32(2)
    expected = x + np.sin(2 * x) ** 2 / 2
    assert np.allclose(snake(x, a), expected, atol=1e-6) and np.allclose(rlx.jit(snake)(x, a), expected, atol=1e-6)
    both = [rlx.jit(rlx.grad(lambda x, a: (f(x, a) ** 2.0).sum(), (0, 1)))(x, a) for f in (snake, body)]
    for one, other in zip(*both):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-5)
    v = np.ones_like(x)
    assert np.allclose(rlx.hvp(lambda x: snake(x, a).sum(), (x,), (v,)), rlx.hvp(lambda x: body(x, a).sum(), (x,), (v,)), rtol=1e-4, atol=1e-5)
    assert np.allclose(rlx.vmap(snake, in_axes=(0, None))(X, a), body(rlx.asarray(X), 2.0), atol=1e-6)


@needs_compiler
def test_several_results_and_integers():
    text = """
    #include <stdint.h>
    void pick(const double* x, const int32_t* i, double* y, int32_t* n, const int64_t* s) { *y = x[i[0]] * 2; *n = (int32_t)s[0]; }
    """
    pick = rlx.op(lambda x, i: (x[i] * 2.0, (x > -1e9).sum()), c=text, name="pick")
    y, n = rlx.jit(pick)(np.float64([1, 2, 3]), np.int32(1))
    assert float(y) == 4 and int(n) == 3
    assert rlx.grad(lambda x: pick(x, np.int32(2))[0])(np.float64([1, 2, 3])).tolist() == [0, 0, 2]


@needs_compiler
def test_a_wrong_kernel_is_found():
    wrong = rlx.op(body, c=SNAKE.replace("x[i] + s", "x[i] - s"), name="snake")
    for call in (wrong, rlx.jit(wrong)):
        with pytest.raises(rlx.Error, match="differs from its body"):
            call(X[0], np.float32(1))
    with pytest.raises(rlx.Error, match="refuses the kernel"):
        rlx.op(body, c="void snake(", name="snake")(X[0], np.float32(1))
    with pytest.raises(rlx.Error, match="no function of that name"):
        rlx.op(body, c=SNAKE, name="worm")
    with pytest.raises(rlx.Error, match="symbolic"):
        rlx.jit(rlx.op(body, c=SNAKE, name="snake"), dims={"x": {0: rlx.Dim("B", 8)}})(X[0], np.float32(1))
