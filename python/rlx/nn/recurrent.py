"""Cells that are called step by step, and what calls them."""
from .. import numpy as jnp, ops, random
from .._control import scan
from .layers import uniform_weights
from .module import Module


class LSTMCell(Module):
    """One step of long short-term memory: (h, c), y = cell((h, c), x), for x (batch, inputs); y is h."""

    def __init__(self, inputs, hidden, *, key):
        keys = [random.fold_in(key, i) for i in range(4)]
        self.input_weight = uniform_weights(keys[0], (4 * hidden, inputs), hidden)
        self.hidden_weight = uniform_weights(keys[1], (4 * hidden, hidden), hidden)
        self.input_bias, self.hidden_bias = uniform_weights(keys[2], (4 * hidden,), hidden), uniform_weights(keys[3], (4 * hidden,), hidden)

    def start(self, batch):
        """The state before the first step."""
        zero = jnp.zeros((batch, self.hidden_weight.shape[1]))
        return zero, zero

    def __call__(self, state, x):
        h, c = state
        gates = ops.linear(x, self.input_weight, self.input_bias) + ops.linear(h, self.hidden_weight, self.hidden_bias)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * jnp.tanh(g)
        h = ops.sigmoid(o) * jnp.tanh(c)
        return (h, c), h


def unroll(cell, xs, state=None):
    """Calls a cell for each step of xs (batch, length, ...). Gives its outputs (batch, length, ...) and the last state."""
    last, ys = scan(cell, cell.start(xs.shape[0]) if state is None else state, jnp.swapaxes(xs, 0, 1))
    return jnp.swapaxes(ys, 0, 1), last
