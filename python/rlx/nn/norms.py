"""Layers that normalise."""
from .. import numpy as jnp, ops
from .module import Module


class LayerNorm(Module):
    """Normalises the last axis, which has `features` elements."""

    def __init__(self, features, *, eps=1e-5, bias=True):
        self.weight, self.bias, self.eps = jnp.ones(features), jnp.zeros(features) if bias else None, eps

    def __call__(self, x, key=None):
        return ops.layer_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """Divides the last axis by the root of its mean square."""

    def __init__(self, features, *, eps=1e-6):
        self.weight, self.eps = jnp.ones(features), eps

    def __call__(self, x, key=None):
        return ops.rms_norm(x, self.weight, eps=self.eps)


class GroupNorm(Module):
    """Normalises groups of channels, axis 1."""

    def __init__(self, groups, channels, *, eps=1e-5):
        self.weight, self.bias, self.groups, self.eps = jnp.ones(channels), jnp.zeros(channels), groups, eps

    def __call__(self, x, key=None):
        return ops.group_norm(x, self.groups, self.weight, self.bias, eps=self.eps)


class BatchNorm(Module):
    """Normalises each channel, axis 1, with the statistics of what it has seen. `train` uses those of the batch instead."""

    def __init__(self, channels, *, eps=1e-5, momentum=0.1):
        self.weight, self.bias, self.eps, self.momentum = jnp.ones(channels), jnp.zeros(channels), eps, momentum
        self.mean, self.var = jnp.zeros(channels), jnp.ones(channels)

    def __call__(self, x, key=None):
        mean, var = ops.stop_gradient(self.mean), ops.stop_gradient(self.var)
        return ops.batch_norm(x, mean, var, self.weight, self.bias, eps=self.eps)

    def train(self, x):
        """The batch normalised by itself, and the layer that has seen it."""
        y, mean, var = ops.batch_norm_training(x, self.mean, self.var, self.weight, self.bias, momentum=self.momentum, eps=self.eps)
        return y, self.replace(mean=ops.stop_gradient(mean), var=ops.stop_gradient(var))
