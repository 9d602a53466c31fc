"""Layers without memory of their own."""
from .. import ops, random
from .module import Module


def uniform_weights(key, shape, inputs):
    """As torch initialises them: uniform within 1 / sqrt(inputs)."""
    bound = inputs**-0.5
    return random.uniform(key, shape, minval=-bound, maxval=bound)


class Linear(Module):
    """x w^T + bias, for x (..., inputs) and w (outputs, inputs)."""

    def __init__(self, inputs, outputs, *, key, bias=True):
        weight_key, bias_key = random.split(key)
        self.weight = uniform_weights(weight_key, (outputs, inputs), inputs)
        self.bias = uniform_weights(bias_key, (outputs,), inputs) if bias else None

    def __call__(self, x, key=None):
        return ops.linear(x, self.weight, self.bias)


class Conv(Module):
    """Convolution of x (batch, inputs, spatial...) with windows of the size `kernel`, a tuple that has a number for each spatial axis."""

    def __init__(self, inputs, outputs, kernel, *, key, stride=1, padding=0, dilation=1, groups=1, bias=True):
        if isinstance(kernel, int):
            raise TypeError(f"Conv: kernel {kernel} (allowed: a tuple with a size for each spatial axis, such as ({kernel}, {kernel}))")
        weight_key, bias_key = random.split(key)
        seen = inputs // groups
        for size in kernel:
            seen *= size
        self.weight = uniform_weights(weight_key, (outputs, inputs // groups, *kernel), seen)
        self.bias = uniform_weights(bias_key, (outputs,), seen) if bias else None
        self.stride, self.padding, self.dilation = [each if isinstance(each, int) else tuple(each) for each in (stride, padding, dilation)]
        self.groups = groups

    def __call__(self, x, key=None):
        axes = self.weight.ndim - 2
        lists = [[each] * axes if isinstance(each, int) else list(each) for each in (self.stride, self.padding, self.dilation)]
        y = ops.conv(x, self.weight, *lists, self.groups)
        return y if self.bias is None else y + self.bias.reshape(-1, *[1] * axes)


class Embedding(Module):
    """Rows of a table (count, features) at integers."""

    def __init__(self, count, features, *, key):
        self.weight = random.normal(key, (count, features))

    def __call__(self, ids, key=None):
        return ops.embedding(self.weight, ids)


class Dropout(Module):
    """Zeroes elements with probability `rate` and divides the others by 1 - rate; without a key it gives x."""

    def __init__(self, rate=0.5):
        self.rate = rate

    def __call__(self, x, key=None):
        return x if key is None or self.rate == 0 else ops.dropout(x, random.uniform(key, x.shape), self.rate)


class Function(Module):
    """A function without weights as a layer."""

    def __init__(self, function):
        self.function = function

    def __call__(self, x, key=None):
        return self.function(x)


class Sequential(Module):
    """Layers one behind another; functions are layers, too. A key is split among them."""

    def __init__(self, *layers):
        self.layers = tuple(layer if isinstance(layer, Module) else Function(layer) for layer in layers)

    def __call__(self, x, key=None):
        for i, layer in enumerate(self.layers):
            x = layer(x, key=None if key is None else random.fold_in(key, i))
        return x

    def __getitem__(self, i):
        return self.layers[i]

    def __len__(self):
        return len(self.layers)
