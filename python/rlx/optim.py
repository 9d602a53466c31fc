"""Optimisers: `init` makes a state for parameters, `update` gives the changes of the parameters and the next state. All are trees.

    optimizer = rlx.optim.adam(1e-3)
    state = optimizer.init(params)
    changes, state = optimizer.update(gradients, state, params)
    params = rlx.optim.apply(params, changes)

A rate is a number, or a function of the step, which counts from 0: a schedule."""
import collections
import math

from . import _trees, numpy as jnp, ops
from ._core import Error

Optimizer = collections.namedtuple("Optimizer", "init update")


def apply(params, changes):
    """The parameters after the changes, in their own types."""
    return _trees.map(lambda p, c: p + jnp.asarray(c).astype(jnp.asarray(p).dtype), params, changes)


apply_updates = apply  # as optax calls it


def chain(*optimizers):
    """What each makes of the changes of the one before."""

    def update(changes, states, params=None):
        next_states = []
        for each, state in zip(optimizers, states):
            changes, state = each.update(changes, state, params)
            next_states.append(state)
        return changes, tuple(next_states)

    return Optimizer(lambda params: tuple(each.init(params) for each in optimizers), update)


def global_norm(tree):
    """The root of the sum of all squares."""
    total = 0.0
    for leaf in _trees.leaves(tree):
        total = ops.sum_all(ops.square(leaf)) + total
    return jnp.sqrt(total)


def clip_by_global_norm(most):
    """Scales gradients down to this norm."""

    def update(gradients, state, params=None):
        norm = global_norm(gradients)
        scale = jnp.where(norm > most, most / norm, 1.0)
        return _trees.map(lambda g: g * scale, gradients), state

    return Optimizer(lambda params: (), update)


def clip(most):
    """Limits every element of gradients to -most .. most."""
    return Optimizer(lambda params: (), lambda gradients, state, params=None: (_trees.map(lambda g: jnp.clip(g, -most, most), gradients), state))


def _zeros(params):
    return _trees.map(jnp.zeros_like, params)


def _count():
    return jnp.zeros((), "int32")


def _rate(rate, count):
    return rate(count) if callable(rate) else rate


def _scaled(rate, count, changes):
    step = _rate(rate, count)
    return _trees.map(lambda c: -step * c, changes)


def _decayed(gradients, params, decay, mask=None):
    if decay == 0:
        return gradients
    if params is None:
        raise Error("optim: weight decay needs the parameters: update(gradients, state, params)")
    wanted = _trees.map(lambda p: True, params) if mask is None else mask(params) if callable(mask) else mask
    return _trees.map(lambda g, p, use: g + decay * p if use else g, gradients, params, wanted)


def sgd(rate, momentum=0.0, nesterov=False, weight_decay=0.0):
    """Gradient descent; with momentum as torch has it: v = momentum * v + g."""

    def init(params):
        return {"count": _count(), "velocity": _zeros(params) if momentum else None}

    def update(gradients, state, params=None):
        changes = _decayed(gradients, params, weight_decay)
        velocity = None
        if momentum:
            velocity = _trees.map(lambda v, g: momentum * v + g, state["velocity"], changes)
            changes = _trees.map(lambda v, g: momentum * v + g, velocity, changes) if nesterov else velocity
        return _scaled(rate, state["count"], changes), {"count": state["count"] + 1, "velocity": velocity}

    return Optimizer(init, update)


def momentum(rate, decay=0.9, nesterov=False):
    """Gradient descent with momentum."""
    return sgd(rate, decay, nesterov)


def _moments(params):
    return {"count": _count(), "mean": _zeros(params), "square": _zeros(params)}


def adamw(rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-2, mask=None):
    """Adam with decay of the weights that is no part of the gradient. `mask`, a tree of bool like the parameters or a function that gives it,
    says which decay."""

    def update(gradients, state, params=None):
        count = state["count"] + 1
        mean = _trees.map(lambda m, g: b1 * m + (1 - b1) * g, state["mean"], gradients)
        square = _trees.map(lambda v, g: b2 * v + (1 - b2) * ops.square(g), state["square"], gradients)
        steps = count.astype("float32")
        first, second = -jnp.expm1(steps * math.log(b1)) if b1 else 1.0, -jnp.expm1(steps * math.log(b2))
        changes = _trees.map(lambda m, v: (m / first) / (jnp.sqrt(v / second) + eps), mean, square)
        changes = _decayed(changes, params, weight_decay, mask)
        return _scaled(rate, state["count"], changes), {"count": count, "mean": mean, "square": square}

    return Optimizer(_moments, update)


def adam(rate, b1=0.9, b2=0.999, eps=1e-8):
    """Adam, with both moments corrected for their start at zero."""
    return adamw(rate, b1, b2, eps, weight_decay=0.0)


def lion(rate, b1=0.9, b2=0.99, weight_decay=0.0, mask=None):
    """The sign of the interpolated momentum."""

    def init(params):
        return {"count": _count(), "mean": _zeros(params)}

    def update(gradients, state, params=None):
        changes = _trees.map(lambda m, g: ops.sign(b1 * m + (1 - b1) * g), state["mean"], gradients)
        mean = _trees.map(lambda m, g: b2 * m + (1 - b2) * g, state["mean"], gradients)
        changes = _decayed(changes, params, weight_decay, mask)
        return _scaled(rate, state["count"], changes), {"count": state["count"] + 1, "mean": mean}

    return Optimizer(init, update)


def rmsprop(rate, decay=0.9, eps=1e-8, momentum=0.0, nesterov=False):
    """Gradients divided by the root of the running mean of their squares, plus eps; then as sgd."""
    descent = sgd(rate, momentum, nesterov)

    def update(gradients, state, params=None):
        square = _trees.map(lambda v, g: decay * v + (1 - decay) * ops.square(g), state["square"], gradients)
        changes, rest = descent.update(_trees.map(lambda g, v: g * ops.rsqrt(v + eps), gradients, square), state["descent"])
        return changes, {"square": square, "descent": rest}

    return Optimizer(lambda params: {"square": _zeros(params), "descent": descent.init(params)}, update)


def adagrad(rate, initial_accumulator_value=0.1, eps=1e-7):
    """Gradients divided by the root of the sum of all their squares, plus eps."""

    def init(params):
        return {"count": _count(), "square": _trees.map(lambda p: jnp.full_like(p, initial_accumulator_value), params)}

    def update(gradients, state, params=None):
        square = _trees.map(lambda v, g: v + ops.square(g), state["square"], gradients)
        changes = _trees.map(lambda g, v: jnp.where(v > 0, g * ops.rsqrt(v + eps), 0.0), gradients, square)
        return _scaled(rate, state["count"], changes), {"count": state["count"] + 1, "square": square}

    return Optimizer(init, update)


# Schedules: functions of the step.


def _progress(count, steps):
    return jnp.clip(jnp.asarray(count, "float32") / steps, 0.0, 1.0)


def linear_schedule(start, end, steps):
    """From `start` to `end` in so many steps."""
    return lambda count: start + (end - start) * _progress(count, steps)


def cosine_schedule(start, steps, end=0.0):
    """From `start` to `end` along half a cosine."""
    return lambda count: end + (start - end) * 0.5 * (1 + jnp.cos(math.pi * _progress(count, steps)))


def exponential_schedule(start, steps, factor):
    """Multiplied by `factor` every so many steps, smoothly."""
    return lambda count: start * jnp.exp(jnp.asarray(count, "float32") * (math.log(factor) / steps))


def warmup_cosine_schedule(peak, warmup, steps, end=0.0):
    """Linear from 0 to `peak` in `warmup` steps, then along a cosine to `end` at step `steps`."""
    rise, fall = linear_schedule(0.0, peak, warmup), cosine_schedule(peak, steps - warmup, end)
    return lambda count: jnp.where(count < warmup, rise(count), fall(count - warmup))
