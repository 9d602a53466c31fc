"""Layers against torch's, recorded by scripts/torch_layers.py, and as containers."""
import json
import os

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import nn

with open(os.path.join(os.environ["RLX_FIXTURES"], "python", "torch_layers.json"), encoding="utf-8") as file:
    RECORDED = json.load(file)["layers"]
KEY = rlx.random.key(3)


def array(values):
    values = np.asarray(values)
    return rlx.asarray(values.astype(np.float32 if values.dtype.kind == "f" else np.int32))


def linear_with(weight, bias):
    return nn.Linear(*weight.shape[::-1], key=KEY).replace(weight=weight, bias=bias)


def attention_with(w):
    inner = nn.Attention(4, 2, key=KEY, causal=True)
    parts = zip(jnp.split(w["inner.in_proj_weight"], 3), jnp.split(w["inner.in_proj_bias"], 3))
    q, k, v = [linear_with(*part) for part in parts]
    return inner.replace(query=q, key=k, value=v, output=linear_with(w["inner.out_proj.weight"], w["inner.out_proj.bias"]))


def attention_gradients(g):
    join = lambda what: jnp.concatenate([getattr(getattr(g, name), what) for name in ("query", "key", "value")])  # noqa: E731
    return {"inner.in_proj_weight": join("weight"), "inner.in_proj_bias": join("bias"), "inner.out_proj.weight": g.output.weight,
            "inner.out_proj.bias": g.output.bias}  # fmt: skip


def lstm_with(w):
    cell = nn.LSTMCell(4, 3, key=KEY)
    return cell.replace(input_weight=w["weight_ih_l0"], hidden_weight=w["weight_hh_l0"], input_bias=w["bias_ih_l0"], hidden_bias=w["bias_hh_l0"])


# The module with the weights of torch's, its call, and gradients under torch's names where these are others.
CASES = {
    "linear": (lambda w: linear_with(**w), None, None),
    "conv": (lambda w: nn.Conv(4, 6, (3, 2), key=KEY, stride=(2, 1), padding=1, groups=2).replace(**w), None, None),
    "conv1d": (lambda w: nn.Conv(5, 3, (2,), key=KEY, dilation=2).replace(**w), None, None),
    "layer_norm": (lambda w: nn.LayerNorm(4).replace(**w), None, None),
    "rms_norm": (lambda w: nn.RMSNorm(4).replace(**w), None, None),
    "group_norm": (lambda w: nn.GroupNorm(2, 4).replace(**w), None, None),
    "batch_norm": (lambda w: nn.BatchNorm(4).replace(weight=w["weight"], bias=w["bias"]), lambda m, x: m.train(x)[0], None),
    "embedding": (lambda w: nn.Embedding(7, 4, key=KEY).replace(**w), None, None),
    "attention": (attention_with, None, attention_gradients),
    "lstm": (lstm_with, lambda m, x: nn.unroll(m, x)[0],
             lambda g: {"weight_ih_l0": g.input_weight, "weight_hh_l0": g.hidden_weight, "bias_ih_l0": g.input_bias, "bias_hh_l0": g.hidden_bias}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_that_of_torch(name):
    make, call, named = CASES[name]
    entry = RECORDED[name]
    module, x = make({key: array(value) for key, value in entry["weights"].items()}), array(entry["inputs"][0])
    call = call or (lambda m, x: m(x))
    result = rlx.jit(call)(module, x)
    assert np.allclose(result.numpy(), entry["result"], rtol=2e-5, atol=1e-5)
    gradient = rlx.jit(rlx.grad(lambda m: (call(m, x) ** 2).sum()))(module)
    seen = named(gradient) if named else {key: getattr(gradient, key) for key in entry["gradients"]}
    assert set(seen) == set(entry["gradients"])
    for key, expected in entry["gradients"].items():
        assert np.allclose(seen[key].numpy(), expected, rtol=2e-4, atol=2e-4), key
    if entry["input_gradient"]:
        by_input = rlx.grad(lambda x: (call(module, x) ** 2).sum())(x)
        assert np.allclose(by_input.numpy(), entry["input_gradient"], rtol=2e-4, atol=2e-4)


def test_batch_norm_keeps_what_it_saw():
    entry = RECORDED["batch_norm"]
    x = array(entry["inputs"][0])
    _, seen = rlx.jit(lambda m, x: m.train(x))(nn.BatchNorm(4), x)
    assert np.allclose(seen.mean.numpy(), entry["after"]["running_mean"], atol=1e-6)
    assert np.allclose(seen.var.numpy(), entry["after"]["running_var"], rtol=1e-5)
    expected = (x.numpy() - seen.mean.numpy()[:, None, None]) / np.sqrt(seen.var.numpy()[:, None, None] + 1e-5)
    assert np.allclose(seen(x).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_modules_are_containers():
    net = nn.Sequential(nn.Linear(3, 4, key=KEY), jnp.tanh, nn.Dropout(0.25), nn.Linear(4, 2, key=KEY, bias=False))
    leaves, structure = rlx.tree.flatten(net)
    assert len(leaves) == 3 and rlx.tree.structure(rlx.tree.unflatten(structure, leaves)) == structure
    doubled = rlx.tree.map(lambda w: w * 2, net)
    assert np.allclose(doubled[0].weight.numpy(), net[0].weight.numpy() * 2) and doubled[2].rate == 0.25 and len(doubled) == 4
    assert structure != rlx.tree.structure(nn.Sequential(*net.layers[:2], nn.Dropout(0.5), net[3]))
    assert "weight=f32[4,3]" in repr(net[0])
    with pytest.raises(rlx.Error, match="sizes: a list without arrays has no hash"):
        class Wrong(nn.Module):
            def __init__(self):
                self.sizes = [1, 2]

        Wrong()


def test_modules_of_ones_own():
    class Residual(nn.Module):
        def __init__(self, width, key, scale=0.5):
            self.layers = {"up": nn.Linear(width, 2 * width, key=key), "down": nn.Linear(2 * width, width, key=key)}
            self.scale, self.name = scale, "residual"

        def __call__(self, x):
            return x + self.scale * self.layers["down"](rlx.gelu(self.layers["up"](x)))

    module = Residual(3, KEY)
    compiled = rlx.jit(lambda m, x: m(x))
    x = np.float32([[1, 2, 3]])
    assert np.allclose(compiled(module, x).numpy(), module(x).numpy(), rtol=1e-5) and compiled.cache_size() == 1
    compiled(module.replace(scale=0.25), x)
    assert compiled.cache_size() == 2
    batched = rlx.vmap(lambda m, x: m(x), in_axes=(None, 0))(module, np.repeat(x, 4, 0))
    assert np.allclose(batched.numpy(), module(x).numpy().repeat(4, 0), rtol=1e-5)


def test_dropout_needs_a_key():
    x = jnp.ones((100, 100))
    layer = nn.Dropout(0.25)
    y = layer(x, key=KEY).numpy()
    assert np.array_equal(layer(x).numpy(), x.numpy()) and abs((y == 0).mean() - 0.25) < 0.02 and np.allclose(y[y != 0], 4 / 3)
    net = nn.Sequential(layer, layer)
    assert abs((net(x, key=KEY).numpy() == 0).mean() - 0.4375) < 0.02


def test_keys_of_keys_are_the_same_noted_down_and_read():
    def bits(between):
        keys = rlx.random.split(rlx.random.key(0), 12)
        return np.asarray(rlx.random.normal(between(rlx.random.split(between(keys[1]), 3)[2]), (8, 8)))

    np.testing.assert_array_equal(bits(lambda key: key), bits(lambda key: rlx.array(np.asarray(key))))
