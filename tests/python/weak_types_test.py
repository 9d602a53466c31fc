"""Numbers of Python, and what is computed of them alone, take the type of what they meet, as in JAX."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import lax, nn

H = np.float16([1, 2])
WEAK = {
    "asarray": lambda: jnp.asarray(2.0), "sqrt": lambda: jnp.sqrt(2.0), "of an integer": lambda: jnp.exp(1), "of two": lambda: jnp.maximum(1.0, 2),
    "arithmetic": lambda: -jnp.sqrt(2.0) * 3 / jnp.sqrt(3), "where": lambda: jnp.where(True, 1.0, 2.0), "shape": lambda: jnp.broadcast_to(2.0, (2,)),
    "full": lambda: jnp.full((2,), 2.0), "stack": lambda: jnp.stack([jnp.sqrt(2.0), jnp.sqrt(3.0)]), "sigmoid": lambda: nn.sigmoid(1.0),
    "integers times a number": lambda: jnp.arange(2) * 0.5, "jit": lambda: rlx.jit(lambda x: jnp.sin(x) * 2)(2.0), "cond": lambda: rlx.cond(True, lambda: 1.0, lambda: 2.0),
    "fori_loop": lambda: rlx.fori_loop(0, 2, lambda i, x: x * 2.0, 1.0), "scan": lambda: rlx.scan(lambda c, _: (c * 2, c), 1.0, length=2)[0],
    "while_loop": lambda: rlx.while_loop(lambda x: x < 9, lambda x: x * 2, 1.0), "lax": lambda: lax.exp(2.0) + lax.max(1, 2.5),
}  # fmt: skip
STRONG = {
    "a type": lambda: jnp.asarray(2.0, "float32"), "cast": lambda: jnp.sqrt(2.0).astype("float32"), "a list": lambda: jnp.asarray([1.0, 2]), "ones": lambda: jnp.ones(()),
    "float32": lambda: jnp.float32(2), "quotient": lambda: jnp.arange(2) / 2, "mean": lambda: jnp.mean(jnp.ones(3)), "linspace": lambda: jnp.linspace(0, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", [*WEAK, *STRONG])
def test_what_meets_an_array_of_another_type(name):
    value = (WEAK if name in WEAK else STRONG)[name]
    expected = rlx.float16 if name in WEAK else rlx.float32
    for run in (lambda h: h * value(), rlx.jit(lambda h: h * value())):
        assert run(H).dtype == expected and np.allclose(run(H), H * np.asarray(value()).astype(np.float32), rtol=1e-3)
    assert value().weak_type == (name in WEAK) and value().dtype == rlx.float32


def test_small_integers_and_carries():
    assert (jnp.uint8(3) * jnp.asarray(2)).dtype == rlx.uint8 and (jnp.asarray(2) * jnp.asarray(3)).dtype == rlx.int32 and jnp.result_type(H, jnp.asarray(2.0)) == rlx.float16
    half = rlx.scan(lambda c, x: (c + x * jnp.sqrt(2.0), c), jnp.float16(0), H)[0]  # a step that keeps the type of its carry
    assert half.dtype == rlx.float16 and not jnp.argmax(jnp.full((2,), 2.0)).weak_type and not (jnp.asarray(2.0) > 1).weak_type
    f = rlx.jit(lambda x: x * 2)
    assert f(f(1.0)) == 4 and f.cache_size() == 1


def test_branches_take_the_type_that_one_has():
    for x in (np.float32(3), np.float16(3)):
        for result in (rlx.cond(False, lambda x: x, lambda x: 0, x), rlx.cond(True, lambda x: 0.0, lambda x: x, x), lax.switch(1, [lambda x: 0, lambda x: 0.0, lambda x: x], x),
                       rlx.jit(lambda x: rlx.cond(x > 5, lambda x: (x, 1), lambda x: (0, x), x)[0])(x)):  # fmt: skip
            assert result == 0 and result.dtype == x.dtype
    assert rlx.cond(True, lambda: 1, lambda: 2.0).dtype == rlx.float32 and rlx.jit(rlx.grad(lambda x: rlx.cond(x > 0, lambda: x * x, lambda: 0)))(3.0) == 6
    with pytest.raises(rlx.Error, match=r"result 0 is i32\[\] from false_fun and f32\[\] from true_fun"):
        rlx.cond(True, lambda x: x, lambda x: x.astype("int32"), np.float32(1))


def test_types_are_those_of_numpy():
    dtype = jnp.ones(2).dtype
    assert dtype == np.float32 and dtype == "float32" and dtype == np.dtype("float32") and np.dtype("float32") == dtype and dtype == rlx.float32 and dtype == float
    assert dtype != np.float64 and dtype != "int32" and dtype != rlx.Array and dtype != None and dtype != 3 and {rlx.float32: 1}[dtype] == 1  # noqa: E711
    assert jnp.ones(2, bool).dtype == bool and jnp.ones(2, "bfloat16").dtype == "bfloat16" and dtype in (np.float32,)
