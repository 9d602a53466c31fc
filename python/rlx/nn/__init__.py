"""Layers as containers of their weights: functions take a module among their arguments, and `grad` gives a module of gradients.

What a module computes is what torch's of the same name does, with weights of the same shapes."""
from . import functions, initializers
from .attention import Attention
from .functions import *  # noqa: F403
from .layers import Conv, Dropout, Embedding, Function, Linear, Sequential
from .module import Module
from .norms import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from .recurrent import LSTMCell, unroll

__all__ = ["Attention", "BatchNorm", "Conv", "Dropout", "Embedding", "Function", "GroupNorm", "LSTMCell", "LayerNorm", "Linear", "Module", "RMSNorm",
           "Sequential", "initializers", "unroll", *functions.__all__]  # fmt: skip
