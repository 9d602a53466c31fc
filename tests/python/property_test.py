"""Random arrays and programs: rlx.numpy is NumPy, compiled is eager, gradients are differences, batches are loops."""
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

import rlx
import rlx.numpy as jnp

FEW = settings(max_examples=25, deadline=None, derandomize=True, database=None)  # each new shape is compiled
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
SMALL = st.floats(-4, 4, width=32)

UNARY = "abs negative sign floor ceil trunc round square exp expm1 sin cos tanh arctan arcsinh isfinite signbit positive".split()
BINARY = ("add subtract multiply divide floor_divide remainder maximum minimum equal less greater_equal logical_and logaddexp hypot arctan2 "
          "copysign").split()  # fmt: skip
REDUCTIONS = "sum prod mean std var max min any all argmax count_nonzero".split()


def same(seen, expected, rtol=2e-5, atol=2e-5):
    seen, expected = np.asarray(seen), np.asarray(expected)
    assert seen.shape == expected.shape
    assert np.allclose(seen.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)


def floats(shape):
    return hnp.arrays(np.float32, shape, elements=SMALL)


@FEW
@given(st.sampled_from(UNARY), SHAPES.flatmap(floats))
def test_functions_of_each_element(name, x):
    same(getattr(jnp, name)(x), getattr(np, name)(x))


@FEW
@given(st.sampled_from(BINARY), hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3), st.data())
def test_operands_broadcast(name, shapes, data):
    x, y = [data.draw(floats(shape)) for shape in shapes.input_shapes]
    if name in ("divide", "floor_divide", "remainder"):
        y = np.where(np.abs(y) < 0.1, np.float32(0.75), y)
        x = np.round(x * 8) / 8 + np.float32(0.03)  # away from whole quotients, which the last bit decides
        y = np.round(y * 8) / 8 + np.float32(0.25) * (np.round(y * 8) == 0)
    with np.errstate(all="ignore"):
        same(getattr(jnp, name)(x, y), getattr(np, name)(x, y))


@FEW
@given(st.sampled_from(REDUCTIONS), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3).flatmap(floats), st.booleans(), st.data())
def test_reductions(name, x, keepdims, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    same(getattr(jnp, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims), 1e-4, 1e-4)


@FEW
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), st.data())
def test_indices(shape, data):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    same(rlx.asarray(x)[index], x[index])
    rows = data.draw(hnp.arrays(np.int32, st.integers(0, 3), elements=st.integers(-shape[0], shape[0] - 1)))
    same(rlx.asarray(x)[rows], x[rows])
    mask = data.draw(hnp.arrays(bool, shape))
    same(rlx.asarray(x)[mask], x[mask])


@FEW
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3).flatmap(floats), st.data())
def test_arrangements(x, data):
    order = data.draw(st.permutations(range(x.ndim)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shift = data.draw(st.integers(-4, 4))
    for name, args in (("transpose", (order,)), ("flip", (axis,)), ("roll", (shift, axis)), ("expand_dims", (axis,)), ("sort", (axis,)), ("cumsum", (axis,)),
                       ("repeat", (2, axis)), ("reshape", (-1,)), ("tile", ((2,),))):  # fmt: skip
        same(getattr(jnp, name)(x, *args), getattr(np, name)(x, *args), 1e-4, 1e-4)


# Programs: steps that keep the shape and stay small.
STEPS = {
    "sin": lambda xp, a, b: xp.sin(a),
    "tanh of the sum": lambda xp, a, b: xp.tanh(a + b),
    "product": lambda xp, a, b: a * b * 0.5,
    "mean taken off": lambda xp, a, b: a - b.mean(),
    "sums": lambda xp, a, b: xp.cumsum(a, axis=0) * 0.25,
    "turned round": lambda xp, a, b: xp.flip(a, 0) + b,
    "chosen": lambda xp, a, b: xp.where(a > 0.1, a, b),
    "root": lambda xp, a, b: xp.sqrt(a * a + 0.5),
}
PROGRAMS = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6)


def run(xp, program, x):
    values = [x, x * 0.5 + 0.25]
    for name, i, j in program:
        values.append(STEPS[name](xp, values[-1 - i % len(values)], values[-1 - j % len(values)]))
    return values[-1]


@FEW
@given(PROGRAMS, hnp.arrays(np.float32, (4, 3), elements=st.floats(-1, 1, width=32)))
def test_programs_are_the_same_everywhere(program, x):
    expected = run(np, program, x.astype(np.float64))
    same(run(jnp, program, rlx.asarray(x)), expected, 1e-3, 1e-4)
    same(rlx.jit(lambda x: run(jnp, program, x))(x), expected, 1e-3, 1e-4)
    same(rlx.vmap(lambda row: run(jnp, program, row))(x.T), np.stack([run(np, program, row.astype(np.float64)) for row in x.T]), 1e-3, 1e-4)


@FEW
@given(PROGRAMS, hnp.arrays(np.float64, (3,), elements=st.floats(-1, 1)), hnp.arrays(np.float64, (3,), elements=st.floats(-1, 1)))
def test_derivatives_are_differences(program, x, direction):
    loss = lambda xp, x: (run(xp, program, x) ** 2).sum()  # noqa: E731
    gradient = rlx.grad(lambda x: loss(jnp, x))(x).numpy()
    _, change = rlx.jvp(lambda x: loss(jnp, x), (x,), (direction,))
    assert np.isclose(float(change), gradient @ direction, rtol=1e-6, atol=1e-8)
    step = 1e-6
    high, low = loss(np, x + step * direction), loss(np, x - step * direction)
    close = np.isclose(float(change), (high - low) / (2 * step), rtol=1e-4, atol=1e-5)
    assert close or any(name == "chosen" for name, _, _ in program)  # a step over the border of a choice has no derivative


TREES = st.recursive(st.integers(1, 3).map(lambda n: np.ones(n, np.float32)) | st.none(),
                     lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3), max_leaves=6)  # fmt: skip


@FEW
@given(TREES)
def test_trees_of_any_shape(tree):
    leaves, structure = rlx.tree.flatten(tree)
    assert rlx.tree.structure(rlx.tree.unflatten(structure, leaves)) == structure
    assert rlx.tree.structure(rlx.jit(lambda t: rlx.tree.map(lambda a: a + 1, t))(tree)) == structure
