"""Attention with several heads."""
from .. import ops, random
from .layers import Linear
from .module import Module


class Attention(Module):
    """Multi-head attention of x (batch, length, features) to itself or to `context`; runs of heads share one of `kv_heads` keys."""

    def __init__(self, features, heads, *, key, kv_heads=None, causal=False, bias=True):
        self.heads, self.kv_heads, self.causal = heads, kv_heads or heads, causal
        width = features // heads * self.kv_heads
        keys = [random.fold_in(key, i) for i in range(4)]
        self.query, self.key = Linear(features, features, key=keys[0], bias=bias), Linear(features, width, key=keys[1], bias=bias)
        self.value, self.output = Linear(features, width, key=keys[2], bias=bias), Linear(features, features, key=keys[3], bias=bias)

    def __call__(self, x, key=None, context=None, mask=None):
        context = x if context is None else context
        q, k, v = self._split(self.query(x), self.heads), self._split(self.key(context), self.kv_heads), self._split(self.value(context), self.kv_heads)
        y = ops.attention(q, k, v, causal=self.causal, mask=mask).transpose(0, 2, 1, 3)
        return self.output(y.reshape(y.shape[0], y.shape[1], -1))

    @staticmethod
    def _split(x, heads):
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)
