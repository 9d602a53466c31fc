"""Convolutions by the names of jax.lax."""
import math
from typing import NamedTuple

from . import numpy as jnp
from ._core import Error
from .numpy._base import array_of, call, rounded_to, widened


def _conv_words(numbers, rank):
    """Dimension numbers as three words, in which each axis has a letter, and the letters of space in the order of strides and padding."""
    spatial = [chr(ord("a") + i) for i in range(rank - 2)]
    if numbers is None:
        numbers = [range(rank)] * 3
    if all(isinstance(word, str) for word in numbers):  # their order in the kernel
        return numbers, [letter for letter in numbers[1] if letter not in "OI"]
    return ["".join(letter for _, letter in sorted(zip(axes, [*first, *spatial]))) for axes, first in zip(numbers, ("NC", "OI", "NC"))], spatial


def conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, feature_group_count=1,
                         batch_group_count=1, precision=None, preferred_element_type=None):  # fmt: skip
    """A convolution. `padding` is SAME, VALID or pairs; `dimension_numbers` are three words, such as ("NHWC", "HWIO", "NHWC"), or JAX's numbers.
    Strides, padding and dilations are in the order of the kernel's axes. With `batch_group_count` each part of the batch has its features."""
    lhs, rhs = widened((lhs, rhs), preferred_element_type)
    words, spatial = _conv_words(dimension_numbers, lhs.ndim)
    x = jnp.transpose(lhs, [words[0].index(letter) for letter in ["N", "C", *spatial]])
    w = jnp.transpose(rhs, [words[1].index(letter) for letter in ["O", "I", *spatial]])
    if batch_group_count > 1:
        if feature_group_count != 1 or x.shape[0] % batch_group_count:
            raise Error(f"conv_general_dilated: batch_group_count is {batch_group_count} for a batch of {x.shape[0]} with feature_group_count "
                        f"{feature_group_count} (allowed: a divisor of the batch, with feature_group_count 1)")  # fmt: skip
        n, c = x.shape[0] // batch_group_count, x.shape[1]
        x = jnp.moveaxis(x.reshape(batch_group_count, n, *x.shape[1:]), 0, 1).reshape(n, batch_group_count * c, *x.shape[2:])
        feature_group_count = batch_group_count
    ones = [1] * len(spatial)
    lhs_dilation, rhs_dilation = lhs_dilation or ones, rhs_dilation or ones
    if isinstance(padding, str):
        padding = padtype_to_pads([(n - 1) * d + 1 for n, d in zip(x.shape[2:], lhs_dilation)], [(n - 1) * d + 1 for n, d in zip(w.shape[2:], rhs_dilation)],
                                  window_strides, padding)  # fmt: skip
    low, high = [[pair[end] for pair in padding] for end in (0, 1)]
    y = call("conv_general", x, w, strides=list(window_strides), padding_lo=low, padding_hi=high, lhs_dilation=list(lhs_dilation),
             rhs_dilation=list(rhs_dilation), feature_group_count=feature_group_count)  # fmt: skip
    return jnp.transpose(rounded_to(preferred_element_type, y), [["N", "C", *spatial].index(letter) for letter in words[2]])


class ConvDimensionNumbers(NamedTuple):
    """Axes of the operands and the result of a convolution: the batch and features, or those of results and operands in a kernel, then space."""

    lhs_spec: tuple
    rhs_spec: tuple
    out_spec: tuple


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """Three words, or None, as numbers."""
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    words, spatial = _conv_words(dimension_numbers, len(lhs_shape))
    firsts = ("NC", "OI", "NC")
    return ConvDimensionNumbers(*[tuple(word.index(letter) for letter in (*first, *spatial)) for word, first in zip(words, firsts)])


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None, preferred_element_type=None):
    """conv_general_dilated of axes in their usual order."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, precision=None,
                                 preferred_element_type=None):  # fmt: skip
    """The windows that a convolution would see, as features: those of one feature of lhs beside each other."""
    lhs = array_of(lhs)
    numbers = conv_dimension_numbers(lhs.shape, (1, 1, *filter_shape), dimension_numbers)
    features, count = lhs.shape[numbers.lhs_spec[1]], math.prod(filter_shape)
    each = jnp.tile(jnp.eye(count, dtype=lhs.dtype), (features, 1)).reshape(features * count, 1, *filter_shape)
    order = [numbers.rhs_spec.index(axis) for axis in range(lhs.ndim)]
    return conv_general_dilated(lhs, jnp.transpose(each, order), window_strides, padding, lhs_dilation, rhs_dilation, numbers, features,
                                preferred_element_type=preferred_element_type)  # fmt: skip


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """Pairs for SAME, SAME_LOWER and VALID."""
    if padding.upper() == "VALID":
        return [(0, 0)] * len(in_shape)
    if padding.upper() not in ("SAME", "SAME_LOWER"):
        raise Error(f"padding is {padding!r} (allowed: SAME, SAME_LOWER, VALID)")
    totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(in_shape, window_shape, window_strides)]
    return [(t // 2, t - t // 2) if padding.upper() == "SAME" else (t - t // 2, t // 2) for t in totals]


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """conv_general_dilated without dilation, of axes in their usual order."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type)


def _transposed_ends(size, stride, padding):
    """What SAME and VALID of a convolution are for its transpose."""
    if padding.upper() not in ("SAME", "VALID"):
        raise Error(f"padding is {padding!r} (allowed: SAME, VALID, pairs)")
    if padding.upper() == "VALID":
        return size - 1, stride - 1 + max(size - stride, 0)
    total = size + stride - 2
    low = size - 1 if stride > size - 1 else -(-total // 2)
    return low, total - low


def conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None, transpose_kernel=False, precision=None,
                   preferred_element_type=None):  # fmt: skip
    """A convolution of lhs with `strides` - 1 zeros between its elements: the transpose of one with these strides if `transpose_kernel` turns the
    kernel round. By itself the features of all come last."""
    lhs, rhs = array_of(lhs), array_of(rhs)
    if dimension_numbers is None:
        space = "DHW"[3 - (lhs.ndim - 2) :] if lhs.ndim != 3 else "H"
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    space = list(numbers.rhs_spec[2:])
    if isinstance(padding, str):
        sizes = [(rhs.shape[axis] - 1) * rate + 1 for axis, rate in zip(space, rhs_dilation or [1] * len(space))]
        padding = [_transposed_ends(size, stride, padding) for size, stride in zip(sizes, strides)]
    if transpose_kernel:
        rhs = jnp.swapaxes(jnp.flip(rhs, space), *numbers.rhs_spec[:2])
    return conv_general_dilated(lhs, rhs, [1] * len(space), padding, strides, rhs_dilation, numbers, preferred_element_type=preferred_element_type)
