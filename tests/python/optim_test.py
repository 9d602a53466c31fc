"""Optimisers against torch's, recorded by scripts/torch_layers.py, and against what their papers say."""
import json
import math
import os

import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import nn, optim

with open(os.path.join(os.environ["RLX_FIXTURES"], "python", "torch_layers.json"), encoding="utf-8") as file:
    RECORDED = json.load(file)["training"]

OPTIMIZERS = {
    "sgd": optim.sgd(0.1),
    "sgd_decay": optim.sgd(0.1, weight_decay=0.05),
    "momentum": optim.momentum(0.05),
    "nesterov": optim.sgd(0.05, momentum=0.9, nesterov=True),
    "adam": optim.adam(0.02),
    "adamw": optim.adamw(0.02, b1=0.8, b2=0.99, weight_decay=0.1),
    "clipped": optim.chain(optim.clip_by_global_norm(0.25), optim.sgd(0.1)),
    "cosine": optim.sgd(optim.cosine_schedule(0.1, 6)),
}


def array(values):
    return rlx.asarray(np.asarray(values, np.float32))


def net_of(weights):
    layers = [nn.Linear(3, 8, key=rlx.random.key(0)), jnp.tanh, nn.Linear(8, 1, key=rlx.random.key(0))]
    for i in (0, 2):
        layers[i] = layers[i].replace(weight=array(weights[f"{i}.weight"]), bias=array(weights[f"{i}.bias"]))
    return nn.Sequential(*layers)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_net_is_trained_as_by_torch(name):
    entry, optimizer = RECORDED[name], OPTIMIZERS[name]
    x, y = array(entry["x"]), array(entry["y"])

    @rlx.jit
    def step(net, state):
        loss, gradient = rlx.value_and_grad(lambda net: ((net(x) - y) ** 2).mean())(net)
        changes, state = optimizer.update(gradient, state, net)
        return loss, optim.apply(net, changes), state

    net, losses = net_of(entry["start"]), []
    state = optimizer.init(net)
    for _ in entry["losses"]:
        loss, net, state = step(net, state)
        losses.append(float(loss))
    assert np.allclose(losses, entry["losses"], rtol=2e-5) and step.cache_size() == 1
    for i in (0, 2):
        for part in ("weight", "bias"):
            assert np.allclose(getattr(net[i], part).numpy(), entry["end"][f"{i}.{part}"], rtol=1e-4, atol=2e-5)


def test_lion_takes_signs():
    params, gradients = {"w": array([1, -2])}, [array([0.5, -3]), array([-0.2, 0.1])]
    optimizer = optim.lion(0.1, weight_decay=0.01)
    state = optimizer.init(params)
    w, m = np.array([1.0, -2.0]), np.zeros(2)
    for gradient in gradients:
        changes, state = optimizer.update({"w": gradient}, state, params)
        params = optim.apply(params, changes)
        g = gradient.numpy().astype(np.float64)
        w, m = w - 0.1 * (np.sign(0.9 * m + 0.1 * g) + 0.01 * w), 0.99 * m + 0.01 * g
        assert np.allclose(params["w"].numpy(), w, rtol=1e-6)


def test_decay_can_be_masked():
    params = {"w": array([2.0]), "b": array([2.0])}
    for optimizer in (optim.adamw(0.1, weight_decay=0.5, mask={"w": True, "b": False}), optim.lion(0.1, weight_decay=0.5, mask=lambda p: {"w": True, "b": False})):
        changes, _ = optimizer.update({"w": array([0.0]), "b": array([0.0])}, optimizer.init(params), params)
        assert changes["w"].tolist() == pytest.approx([-0.1]) and changes["b"].tolist() == [0]
    with pytest.raises(rlx.Error, match="needs the parameters"):
        optim.sgd(0.1, weight_decay=0.1).update(params, optim.sgd(0.1).init(params))


def test_types_of_parameters_stay():
    params = {"w": jnp.ones(3, dtype="bfloat16")}
    optimizer = optim.adam(0.1)
    changes, _ = optimizer.update({"w": jnp.ones(3, dtype="bfloat16")}, optimizer.init(params))
    assert optim.apply(params, changes)["w"].dtype == rlx.bfloat16


def test_schedules_follow_their_curves():
    at = lambda schedule, step: float(schedule(rlx.array(step)))  # noqa: E731
    assert [at(optim.linear_schedule(1.0, 0.0, 4), i) for i in (0, 1, 4, 9)] == pytest.approx([1, 0.75, 0, 0])
    assert [at(optim.cosine_schedule(1.0, 8, 0.5), i) for i in (0, 4, 8, 9)] == pytest.approx([1, 0.75, 0.5, 0.5], abs=1e-6)
    assert at(optim.exponential_schedule(2.0, 10, 0.5), 5) == pytest.approx(2 * math.sqrt(0.5), rel=1e-6)
    both = optim.warmup_cosine_schedule(1.0, 4, 12)
    assert [at(both, i) for i in (0, 2, 4, 8, 12)] == pytest.approx([0, 0.5, 1, 0.5, 0], abs=1e-6)
    for schedule in (both, optim.exponential_schedule(2.0, 10, 0.5)):
        assert float(schedule(5)) == at(schedule, 5)  # of a number of Python


def test_the_norm_is_that_of_all():
    assert float(optim.global_norm({"a": array([3.0]), "b": [array([4.0])]})) == 5
    small = {"a": array([0.3])}
    assert optim.clip_by_global_norm(1.0).update(small, ())[0]["a"].tolist() == pytest.approx([0.3])


def test_gradients_divided_by_roots_of_squares():
    x, gradients = np.float32([1, -2, 3]), np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    expected, square, velocity, total = x.astype(float), 0.0, 0.0, 0.1
    other = expected.copy()
    for g in gradients.astype(float):
        square = 0.8 * square + 0.2 * g * g
        velocity = 0.5 * velocity + g / np.sqrt(square + 1e-8)
        total = total + g * g
        expected, other = expected - 0.1 * velocity, other - 0.1 * g / np.sqrt(total + 1e-7)
    for optimizer, wanted in ((optim.rmsprop(0.1, 0.8, momentum=0.5), expected), (optim.adagrad(0.1), other)):
        params, state = {"x": x}, optimizer.init({"x": x})
        for g in gradients:
            changes, state = rlx.jit(optimizer.update)({"x": g}, state, params)
            params = optim.apply_updates(params, changes)
        assert np.allclose(params["x"], wanted, rtol=1e-5)
    assert optim.clip(0.5).update({"x": np.float32([-2, 0.25])}, ())[0]["x"].tolist() == [-0.5, 0.25]
