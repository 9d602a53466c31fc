"""Parameters with the names, the order and the meaning that they have in NumPy and JAX. Expected values are NumPy's."""
import dataclasses
import functools

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import lax, nn, random

RNG = np.random.default_rng(0)
X, KEY = RNG.normal(size=(3, 4)), random.key(0)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "nanmean"])
def test_reductions_take_numpys_order(name):
    out = np.zeros((1, 4))
    assert np.allclose(getattr(jnp, name)(X, 0, None, None, True), getattr(np, name)(X, 0, None, None, True))
    assert getattr(jnp, name)(X, 0, np.float64, out, True) is out and np.allclose(out, getattr(np, name)(X, 0, keepdims=True))


def test_more_reductions_take_numpys_order():
    for name in ("max", "min", "all", "any", "argmax", "ptp", "nanmax", "nanmin"):
        if name != "argmax":
            assert np.allclose(getattr(jnp, name)(X, 0, None, True), getattr(np, name)(X, 0, None, True)), name
    for name in ("var", "std", "nanvar", "nanstd"):
        assert np.allclose(getattr(jnp, name)(X, 0, None, None, 1, True), getattr(np, name)(X, 0, None, None, 1, True)), name
        assert np.allclose(getattr(jnp, name)(X, 1, mean=X.mean(1, keepdims=True)), X.var(1) if "var" in name else X.std(1)), name
    for name in ("median", "nanmedian"):
        assert np.allclose(getattr(jnp, name)(X, 0, None, False, True), getattr(np, name)(X, 0, None, False, True)), name
    assert jnp.mean(X, dtype=int).dtype == rlx.int32 and np.allclose(jnp.nan_to_num(np.float32([np.nan]), True, 5.0), [5])
    assert np.allclose(jnp.histogram(X, 3, (-1, 1), X * X)[0], np.histogram(X, 3, (-1, 1), weights=X * X)[0])
    assert np.allclose(jnp.eye(N=3, M=4, k=1), np.eye(3, 4, 1)) and np.allclose(jnp.tri(N=3, M=4), np.tri(3, 4))
    assert np.allclose(jnp.select(condlist=[X > 0], choicelist=[X], default=7), np.select([X > 0], [X], 7))


METHODS = ("linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull "
           "median_unbiased normal_unbiased").split()  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_by_every_method(method):
    for n in (1, 2, 5, 8):
        x, q = RNG.normal(size=(2, n)), np.array([0, 0.25, 0.5, 0.125, 0.9, 1])
        assert np.allclose(jnp.quantile(x, q, axis=1, method=method), np.quantile(x, q, axis=1, method=method)), n
        holes = np.concatenate([x, x * np.nan], 1)
        assert np.allclose(jnp.nanquantile(holes, q, 1, method=method), np.quantile(x, q, axis=1, method=method)), n


def test_control_flow_by_names():
    assert lax.cond(pred=True, true_fun=lambda x: x + 1, false_fun=lambda x: x, operand=1.0) == 2 and lax.switch(0, [lambda x: x], operand=3) == 3
    assert lax.while_loop(cond_fun=lambda x: x < 9, body_fun=lambda x: x * 2, init_val=1) == 16
    assert lax.fori_loop(lower=0, upper=3, body_fun=lambda i, x: x + i, init_val=0, unroll=True) == 3
    assert np.allclose(lax.scan(f=lambda c, x: (c + x, c), init=0.0, xs=X[0])[0], X[0].sum())
    assert np.allclose(lax.associative_scan(jnp.add, X, True, 1), np.cumsum(X[:, ::-1], 1)[:, ::-1])
    for size in (1, 2, 3):
        assert np.allclose(lax.map(lambda row: (row * 2, row.sum()), X, batch_size=size)[1], X.sum(1))


def test_transforms_by_names():
    power = lambda x: ((x**3).sum(), x + 1)  # noqa: E731
    for result in (rlx.jvp(power, (X[0],), (X[1],), has_aux=True)[2], rlx.linearize(power, X[0], has_aux=True)[2], rlx.jacfwd(power, has_aux=True)(X[0])[1],
                   rlx.jacrev(power, has_aux=True)(X[0])[1], rlx.hessian(power, has_aux=True)(X[0])[1]):  # fmt: skip
        assert np.allclose(result, X[0] + 1)
    assert np.allclose(rlx.hessian(power, has_aux=True)(X[0])[0], np.diag(6 * X[0]))
    assert np.allclose(rlx.grad(lambda z: z**3, holomorphic=True)(np.complex128(1 + 2j)), 3 * (1 + 2j) ** 2)
    with pytest.raises(rlx.Error, match="the holomorphic function gives f"):
        rlx.grad(lambda z: abs(z), holomorphic=True)(np.complex128(1))
    assert rlx.vmap(lambda: jnp.ones(2), axis_size=3)().shape == (3, 2) and rlx.vmap(lambda x: x, axis_name="i")(X).shape == (3, 4)

    @functools.partial(rlx.custom_vjp, nondiff_argnames=("n",))
    def power(x, n):
        return x**n

    power.defvjp(fwd=lambda x, n: (x**n, x), bwd=lambda n, x, dy: (dy * 100 * n,))
    assert rlx.grad(power)(2.0, 3) == 300 and rlx.grad(lambda x: power(x, n=3))(2.0) == 300


def test_trees_by_names():
    assert rlx.tree_util.tree_reduce(lambda a, b: a + b, tree=[1, [2]], initializer=10) == 13 and rlx.tree_util.tree_map(f=lambda x: x + 1, tree=[1]) == [2]

    @rlx.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        x: object
        n: int = dataclasses.field(metadata={"static": True}, default=3)

    path, leaf = rlx.tree_util.tree_leaves_with_path({"a": [State(1.0)]})[0]
    assert leaf == 1 and rlx.tree_util.keystr(path, simple=True, separator="/") == "a/0/x"


def test_keys_and_draws():
    keys = random.split(KEY, num=5)
    assert [key.tolist() for key in keys] == [random.fold_in(KEY, i).tolist() for i in range(5)] and random.split(KEY, (2, 3)).shape == (2, 3, 2)
    logits = np.log(np.float32([[0.2, 0.8, 1e-9], [0.5, 0.25, 0.25]]))
    drawn = random.categorical(KEY, logits, shape=(4000, 2)).numpy()
    assert drawn.shape == (4000, 2) and np.allclose([np.bincount(column, minlength=3) / 4000 for column in drawn.T], np.exp(logits), atol=0.04)
    others = random.categorical(KEY, logits[1], shape=(3,), replace=False)
    assert sorted(others.tolist()) == [0, 1, 2] and random.categorical(KEY, logits, 0, (4, 3)).shape == (4, 3)
    assert [random.bits(KEY, (3,), name).dtype.name for name in ("uint8", "uint16", "uint64")] == ["u8", "u16", "u64"]
    assert np.allclose(np.cov(random.multivariate_normal(KEY, np.zeros(2), np.ones((2, 2)), (4000,), method="eigh").numpy().T), 1, atol=0.1)
    q = random.orthogonal(KEY, 3, m=5).numpy()
    assert q.shape == (3, 5) and np.allclose(q @ q.T, np.eye(3), atol=1e-6)
    he = nn.initializers.he_normal(in_axis=(0, 1), batch_axis=2, dtype="float16")(KEY, (8, 8, 4, 5))
    assert he.dtype == rlx.float16 and abs(he.numpy().astype(float).std() - np.sqrt(2 / 64)) < 0.01


def test_shapes_and_transforms_of_lax():
    assert lax.full_like(X, 2, dtype="int32", shape=(2,)).dtype == rlx.int32 and lax.expand_dims(X, dimensions=(0, -1)).shape == (1, 3, 4, 1)
    assert np.array_equal(lax.reshape(X, new_sizes=(12,), dimensions=(1, 0)), X.T.reshape(12)) and lax.squeeze(X[None], dimensions=(0,)).shape == (3, 4)
    assert np.array_equal(lax.transpose(X, permutation=(1, 0)), X.T) and lax.tile(X, reps=(2, 1)).shape == (6, 4) and lax.conj(X).dtype == rlx.complex128
    assert np.allclose(lax.fft(X, "FFT", (3, 4)), np.fft.fft2(X)) and np.allclose(lax.fft(X, fft_type=lax.FftType.RFFT, fft_lengths=(4,)), np.fft.rfft(X))
    assert np.allclose(lax.clamp(min=0.0, x=X, max=1.0), X.clip(0, 1)) and lax.convert_element_type(X, new_dtype="int8").dtype == rlx.int8
    assert np.allclose(lax.dot(X, X.T, dimension_numbers=(((1,), (0,)), ((), ()))), X @ X.T)
    with pytest.raises(AttributeError, match="axes of rlx.vmap have no names"):
        lax.psum  # noqa: B018


def attention(q, k, v, seen):
    scores = np.where(seen, np.einsum("tnh,snh->nts", q, k) / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
    return np.einsum("nts,snh->tnh", weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30), v)


def test_attention_by_lengths_and_windows():
    q, k, v = RNG.normal(size=(3, 2, 5, 2, 4))
    rows, columns = np.mgrid[:5, :5]
    result = nn.dot_product_attention(q, k, v, query_seq_lengths=np.array([3, 5]), key_value_seq_lengths=np.array([2, 4]))
    for i, (queries, keys) in enumerate([(3, 2), (5, 4)]):
        assert np.allclose(result[i], attention(q[i], k[i], v[i], (rows < queries) & (columns < keys)))
    window = nn.dot_product_attention(q[0], k[0], v[0], local_window_size=(1, 2), mask=columns[None, None] > 0)
    assert np.allclose(window, attention(q[0], k[0], v[0], (columns >= rows - 1) & (columns <= rows + 2) & (columns > 0)))


def test_softmax_over_several_axes():
    e = np.exp(X) / np.exp(X).sum()
    assert np.allclose(nn.softmax(X, axis=None), e) and np.allclose(nn.softmax(X, (0, 1)), e) and np.allclose(nn.log_softmax(X, (1, 0)), np.log(e))
    some = np.where(X > 0, np.exp(X), 0)
    assert np.allclose(nn.softmax(X, (0, 1), where=X > 0), some / some.sum()) and np.allclose(nn.logmeanexp(X, where=X > 0), np.log(some.sum() / (X > 0).sum()))
