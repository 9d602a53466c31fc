"""Functions by the names of jax.lax. What is not here by itself is a function of the registry of the same name: lax.sin, lax.top_k."""
import enum
import functools
import itertools
import math
import operator

from . import _trees
from . import numpy as jnp
from ._array import place_of
from ._conversions import asarray
from ._control import associative_scan, cond, fori_loop, map, scan, switch, while_loop  # noqa: A004
from ._core import Error
from ._dtypes import as_dtype
from ._convolutions import (
    ConvDimensionNumbers as ConvDimensionNumbers, conv as conv, conv_dimension_numbers as conv_dimension_numbers, conv_general_dilated as conv_general_dilated,
    conv_general_dilated_patches as conv_general_dilated_patches, conv_transpose as conv_transpose, conv_with_general_padding as conv_with_general_padding,
    padtype_to_pads as padtype_to_pads,
)  # fmt: skip
from ._lax_shapes import (
    FftType as FftType, bitcast_convert_type as bitcast_convert_type, clamp as clamp, conj as conj, convert_element_type as convert_element_type,
    expand_dims as expand_dims, fft as fft, full_like as full_like, reshape as reshape, squeeze as squeeze, tile as tile, transpose as transpose,
)  # fmt: skip
from ._solvers import custom_linear_solve as custom_linear_solve, custom_root as custom_root
from ._places import (
    GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode, ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather, scatter as scatter, scatter_add as scatter_add, scatter_apply as scatter_apply, scatter_max as scatter_max,
    scatter_min as scatter_min, scatter_mul as scatter_mul, scatter_sub as scatter_sub,
)  # fmt: skip
from .numpy._base import array_of, call, integers_of, products, reduced
from .numpy.elementwise import bitwise_and, bitwise_invert, bitwise_or, bitwise_xor, nextafter, pow, where  # noqa: A004

bitwise_not, broadcast_shapes, empty, unstack = bitwise_invert, jnp.broadcast_shapes, jnp.empty, jnp.unstack
_SAME = {"logistic": "sigmoid", "erf_inv": "erf_inv", "shift_left": "shl",
         "shift_right_logical": "shr_logical", "bessel_i0e": "bessel_i0e", "bessel_i1e": "bessel_i1e",
         "regularized_incomplete_beta": "betainc"}  # fmt: skip


_COLLECTIVES = "all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute psum psum_scatter pswapaxes".split()


def __getattr__(name):
    from . import ops

    if name == "linalg":  # which is imported when it is used
        from . import _lax_linalg

        return _lax_linalg
    if name in _COLLECTIVES:
        raise AttributeError(f"module 'rlx.lax' has no attribute {name!r}: axes of rlx.vmap have no names (allowed: reductions of its results)")
    return getattr(ops, _SAME.get(name, name))


class RoundingMethod(enum.IntEnum):
    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):  # noqa: A001
    """The nearest integer: of halves the one away from 0, or as the method says the even one."""
    x = array_of(x)
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return call("round", x)
    whole = call("trunc", x)
    return where(jnp.greater_equal(jnp.abs(x - whole), 0.5), whole + jnp.sign(x), whole)


def select(pred, on_true, on_false):
    """on_true where the condition holds, else on_false."""
    return where(pred, on_true, on_false)


def select_n(which, *cases):
    """Of each place the element of the case that `which` names."""
    if len(cases) == 2 and array_of(which).dtype.name == "bool":
        return where(which, cases[1], cases[0])
    return jnp.choose(array_of(which).astype("int32"), list(cases))


def integer_pow(x, y):
    """x to the power of a number of Python."""
    return pow(x, y)


def shift_right_arithmetic(x, y):
    """x shifted right; the highest bit, also of unsigned types, fills the left side."""
    x, y = array_of(x), array_of(y)
    if x.dtype.name[0] != "u":
        return call("shr", x, y)
    signed = x.dtype.name.replace("u", "i")
    return call("bitcast", call("shr", call("bitcast", x, signed), call("bitcast", y.astype(x.dtype), signed)), x.dtype)


def concatenate(operands, dimension):
    return jnp.concatenate(operands, dimension)


def rev(x, dimensions):
    """The order along axes turned round."""
    return jnp.flip(x, list(dimensions))


def collapse(x, start_dimension, stop_dimension=None):
    """Neighbouring axes as one."""
    x = array_of(x)
    stop = x.ndim if stop_dimension is None else stop_dimension
    return x.reshape(*x.shape[:start_dimension], -1, *x.shape[stop:])


def iota(dtype, size):
    return jnp.arange(size, dtype=dtype)


def broadcasted_iota(dtype, shape, dimension):
    """0, 1, 2, ... along an axis, the same for all other positions."""
    return call("iota", asarray(0.0), list(shape), dtype, dimension)


def broadcast(x, sizes):
    """With new axes in front."""
    x = array_of(x)
    return jnp.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(x, shape, broadcast_dimensions):
    """The axes of x at these places of `shape`."""
    return call("broadcast", array_of(x), list(shape), list(broadcast_dimensions))


def full(shape, fill_value, dtype=None):
    return jnp.full(shape, fill_value, dtype)


def pad(x, padding_value, padding_config):
    """Elements (low, high, between) along each axis; negative numbers take away."""
    x, ends = array_of(x), [list(each) for each in zip(*padding_config)] or [[], [], []]
    if isinstance(padding_value, (int, float)) and float(padding_value) == padding_value:  # neither NaN nor too long
        return call("pad", x, *ends, float(padding_value))
    inside = call("pad", jnp.ones(x.shape, "bool"), *ends, 0.0)
    return where(inside, call("pad", x, *ends, 0.0), array_of(padding_value).astype(x.dtype))


def slice(x, start_indices, limit_indices, strides=None):  # noqa: A001
    """Elements start .. limit - 1 along each axis."""
    strides = strides or [1] * len(start_indices)
    return array_of(x)[tuple(_range(*each) for each in zip(start_indices, limit_indices, strides))]


def _range(start, limit, stride):
    import builtins

    return builtins.slice(start, limit, stride)


def slice_in_dim(x, start_index, limit_index, stride=1, axis=0):
    """The same along one axis."""
    x = array_of(x)
    return x[(_range(None, None, None),) * place_of(axis, x.ndim) + (_range(start_index, limit_index, stride),)]


def index_in_dim(x, index, axis=0, keepdims=True):
    """One slice along an axis."""
    result = jnp.take(x, asarray([index]), axis)
    return result if keepdims else jnp.squeeze(result, axis)


def _starts(starts):
    return [integers_of("dynamic_slice", each) for each in (starts if isinstance(starts, (tuple, list)) else list(array_of(starts)))]


def dynamic_slice(x, start_indices, slice_sizes):
    """A window of x, whose start is an array for each axis; moved so that it fits. Negative starts count from the end."""
    return call("dynamic_slice", array_of(x), _starts(start_indices), list(slice_sizes), True)


def dynamic_update_slice(x, update, start_indices):
    """x with a window replaced; as dynamic_slice."""
    x = array_of(x)
    return call("dynamic_update", x, array_of(update).astype(x.dtype), _starts(start_indices), True)


def _along(x, axis, index):
    zero = asarray(0, "int32")
    return [index if i == place_of(axis, x.ndim) else zero for i in range(x.ndim)]


def dynamic_slice_in_dim(x, start_index, slice_size, axis=0):
    """A window along one axis."""
    x = array_of(x)
    return dynamic_slice(x, _along(x, axis, start_index), [slice_size if i == place_of(axis, x.ndim) else size for i, size in enumerate(x.shape)])


def dynamic_index_in_dim(x, index, axis=0, keepdims=True):
    """One slice along an axis."""
    result = dynamic_slice_in_dim(x, index, 1, axis)
    return result if keepdims else jnp.squeeze(result, axis)


def dynamic_update_slice_in_dim(x, update, start_index, axis):
    """x with a window along one axis replaced."""
    x = array_of(x)
    return dynamic_update_slice(x, update, _along(x, axis, start_index))


def dynamic_update_index_in_dim(x, update, index, axis):
    """x with one slice along an axis replaced."""
    x, update = array_of(x), array_of(update)
    update = update if update.ndim == x.ndim else jnp.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(x, update, index, axis)


def dot(lhs, rhs, precision=None, preferred_element_type=None, dimension_numbers=None):
    """The product of vectors and matrices, or dot_general."""
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    return jnp.tensordot(lhs, rhs, 1, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None):
    return jnp.matmul(lhs, rhs)


def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None):
    """The sum of products over the contracted axes, for each index on the batch axes: ((lhs, rhs), (lhs, rhs)) of both."""
    contract, batch = dimension_numbers
    return products("dot", lhs, rhs, preferred_element_type, *[[int(i) for i in axes] for axes in (*contract, *batch)])


def sort(x, dimension=-1, is_stable=True, num_keys=1):
    """In order along an axis; of several arrays by the first `num_keys` of them."""
    several = isinstance(x, (tuple, list))
    results = call("sort", [array_of(each) for each in x] if several else [array_of(x)], num_keys, dimension)
    return tuple(results) if several else results[0]


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """Both in the order of the keys."""
    return sort((keys, values), dimension)


def _reduction(name, of):
    def function(x, axes):
        return reduced(of, array_of(x), list(axes), False)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"rlx.{of} over axes."
    return function


reduce_sum, reduce_max, reduce_min, reduce_prod, reduce_and, reduce_or = [
    _reduction(name, of) for name, of in (("reduce_sum", "sum"), ("reduce_max", "reduce_max"), ("reduce_min", "reduce_min"), ("reduce_prod", "prod"),
                                          ("reduce_and", "all"), ("reduce_or", "any"))]  # fmt: skip


def _pool_of(computation):
    """The function of the registry that does so in windows, if there is one."""
    from . import ops

    pools = {"sum_pool": (ops.add, jnp.add, operator.add), "prod_pool": (ops.mul, jnp.multiply, operator.mul), "max_pool": (ops.max, jnp.maximum)}
    return next((pool for pool, functions in pools.items() if computation in functions), None)


def reduce_window(operand, init_value, computation, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None):
    """`computation` of `init_value` and the elements of each window; padding, SAME, VALID or pairs, counts as `init_value`. The gradient of
    the largest element goes to the first of ties."""
    x = array_of(operand)
    ones = [1] * x.ndim
    strides, base, dilation = window_strides or ones, base_dilation or ones, window_dilation or ones
    spans = [(n - 1) * d + 1 for n, d in zip(window_dimensions, dilation)]
    if isinstance(padding, str):
        padding = padtype_to_pads(x.shape, spans, strides, padding)  # as in JAX, of x without what is between its elements
    x = pad(x, init_value, [(*ends, each - 1) for ends, each in zip(padding, base)])
    counts = [(n - span) // s + 1 if n >= span else 0 for n, span, s in zip(x.shape, spans, strides)]
    if 0 in counts:
        return jnp.zeros(counts, x.dtype)
    pool = _pool_of(computation)
    if pool and x.ndim:
        y = call(pool, x, list(window_dimensions), list(strides), [0] * x.ndim, list(dilation))
    else:
        firsts = itertools.product(*[range(0, span, d) for span, d in zip(spans, dilation)])
        y = functools.reduce(computation, [slice(x, at, [i + (n - 1) * s + 1 for i, n, s in zip(at, counts, strides)], strides) for at in firsts])
    return computation(asarray(init_value, x.dtype), y)


def reduce(operands, init_values, computation, dimensions):
    """`computation` of `init_values` and all elements along axes, for each other place; of arrays, or of trees of them."""
    leaves, structure = _trees.flatten(operands)
    starts = [asarray(start, array_of(leaf).dtype) for start, leaf in zip(_trees.leaves(init_values), leaves)]
    axes = sorted(place_of(axis, array_of(leaves[0]).ndim) for axis in dimensions)

    def lines(x):
        x = jnp.moveaxis(array_of(x), axes, list(range(len(axes))))
        return x.reshape(-1, *x.shape[len(axes) :])

    flat = [lines(leaf) for leaf in leaves]
    first = [jnp.broadcast_to(start, x.shape[1:]) for start, x in zip(starts, flat)]
    step = lambda carry, x: (_trees.leaves(computation(_trees.unflatten(structure, carry), _trees.unflatten(structure, x))), None)
    return _trees.unflatten(structure, scan(step, first, flat)[0])


def approx_max_k(operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True):
    """The k largest elements along an axis, the largest first, and their positions: all of them, whatever the target."""
    values, places = call("top_k", array_of(operand), k, reduction_dimension)
    return values, places.astype("int32")


def approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True):
    """The k least ones, the least first."""
    values, places = approx_max_k(-array_of(operand), k, reduction_dimension)
    return -values, places


def broadcast_to_rank(x, rank):
    """With axes of size 1 in front."""
    x = array_of(x)
    return broadcast(x, [1] * (rank - x.ndim))


def platform_dependent(*args, default=None, **per_platform):
    """The function for the CPU, or `default`, of the arguments."""
    function = per_platform.get("cpu", default)
    if function is None:
        raise Error(f"platform_dependent: there is a function for {', '.join(per_platform)} (allowed: one for the cpu, or a default)")
    return function(*args)


class Precision(enum.Enum):
    """In which numbers products are computed: a hint, for which rlx.Session has its own word."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def argmax(operand, axis, index_dtype="int32"):
    return jnp.argmax(operand, axis).astype(index_dtype)


def argmin(operand, axis, index_dtype="int32"):
    return jnp.argmin(operand, axis).astype(index_dtype)


def _cumulative(name):
    def function(x, axis=0, reverse=False):
        return call(name, array_of(x), axis, reverse=reverse)

    function.__name__ = function.__qualname__ = name
    return function


cumsum, cumprod, cummax, cummin = [_cumulative(name) for name in ("cumsum", "cumprod", "cummax", "cummin")]


def cumlogsumexp(x, axis=0, reverse=False):
    """log of the sum of e to the power of the elements up to each one."""
    return associative_scan(jnp.logaddexp, x, reverse, axis)


def polygamma(m, x):
    """The m-th derivative of digamma."""
    from .scipy import special

    return special.polygamma(m, x)


def mulhi(x, y):
    """The upper half of the bits of products of integers of one type."""
    x, y = array_of(x), array_of(y)
    name = x.dtype.name
    if x.dtype != y.dtype or name[0] not in "iu" or name in ("i4", "u4"):
        raise Error(f"mulhi: {x._type_text()} and {y._type_text()} (allowed: integers of 8 to 64 bits, both of one type)")
    if name[1:] != "64":
        wide = name[0] + "64"
        return call("shr", x.astype(wide) * y.astype(wide), asarray(int(name[1:]), wide)).astype(x.dtype)
    low, half = asarray(0xFFFFFFFF, "uint64"), asarray(32, "uint64")
    p, q = call("bitcast", x, "u64"), call("bitcast", y, "u64")
    parts = lambda each: (bitwise_and(each, low), call("shr_logical", each, half))
    (a, b), (c, d) = parts(p), parts(q)
    middle = a * d + call("shr_logical", a * c, half)
    cross = bitwise_and(middle, low) + b * c
    high = b * d + call("shr_logical", middle, half) + call("shr_logical", cross, half)
    if name == "i64":
        zero = asarray(0, "uint64")
        high = high - where(x < 0, q, zero) - where(y < 0, p, zero)
    return call("bitcast", high, name)


class RandomAlgorithm(enum.IntEnum):
    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(key, shape, dtype="uint32", algorithm=RandomAlgorithm.RNG_DEFAULT):
    """A key u32[4] for the next numbers, and unsigned integers of 8 to 64 random bits, by Philox4x32-10: the key is its own in two words, and
    how many blocks of 128 bits were drawn in two more."""
    key, dtype = array_of(key), as_dtype(dtype)
    if key.dtype.name != "u32" or key.shape != (4,):
        raise Error(f"rng_bit_generator: the key is {key._type_text()} (allowed: u32[4])")
    if dtype.name not in ("u8", "u16", "u32", "u64") or algorithm == RandomAlgorithm.RNG_THREE_FRY:
        raise Error(f"rng_bit_generator: {dtype.name} by {RandomAlgorithm(algorithm).name} (allowed: u8, u16, u32 and u64 by RNG_DEFAULT or RNG_PHILOX)")
    words_of = lambda wide: [wide.astype("uint32"), call("shr_logical", wide, asarray(32, "uint64")).astype("uint32")]
    count = math.prod(shape) * (2 if dtype.name == "u64" else 1)
    blocks = -(-count // 4)
    drawn = key[2].astype("uint64") + key[3].astype("uint64") * 2**32
    at = words_of(drawn + jnp.arange(blocks).astype("uint64"))
    counter = jnp.stack([*at, jnp.zeros_like(at[0]), jnp.full_like(at[0], 2)], -1)  # 0 and 1 at the end are the blocks of rlx.random
    words = call("philox_4x32", counter, key[:2]).reshape(-1)[:count]
    if dtype.name == "u64":
        words = words[::2].astype("uint64") + words[1::2].astype("uint64") * 2**32
    elif dtype.name != "u32":
        words = bitwise_and(words, 2 ** int(dtype.name[1:]) - 1).astype(dtype)
    return jnp.concatenate([key[:2], jnp.stack(words_of(drawn + blocks))]), words.reshape(tuple(shape))


def optimization_barrier(x):
    """x: order among ops is what their operands say."""
    return x


__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
           "nextafter", "pow"]  # fmt: skip
