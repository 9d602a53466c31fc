"""Arrays from nothing. The only device is the CPU; `device` is there for the array API standard."""
import builtins
import math

from .._array import Array, check_device
from .._conversions import asarray, usual_integer
from .._core import Dim, DType, Error
from .._dtypes import as_dtype, OF_PYTHON
from ._base import array_of, call, dtype_of, near, number_of, of_type, public, sizes_of
from .elementwise import where

_WHOLE = {DType[name] for name in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")}


def full(shape, fill_value, dtype=None, device=None):
    """An array of that shape whose elements are all `fill_value`."""
    check_device(device)
    usual = usual_integer if type(fill_value) is int else dtype_of
    wanted = as_dtype(dtype) if dtype is not None else usual(fill_value)
    if isinstance(fill_value, Array):
        return call("broadcast_to", fill_value.astype(wanted), sizes_of(shape))
    is_weak = dtype is None and type(fill_value) in (int, float, complex) and wanted == OF_PYTHON[type(fill_value)]  # takes the type of what it meets
    return call("broadcast_to", asarray(fill_value, None if is_weak else wanted), sizes_of(shape))


def zeros(shape, dtype=None, device=None):
    """Zeros, f32 by themselves."""
    return full(shape, 0, dtype or DType.f32, device)


def ones(shape, dtype=None, device=None):
    """Ones, f32 by themselves."""
    return full(shape, 1, dtype or DType.f32, device)


empty = zeros


def full_like(x, fill_value, dtype=None, shape=None, device=None):
    """As full, of the shape and type of x."""
    x = array_of(x)
    return full(x.shape if shape is None else shape, fill_value, dtype or x.dtype, device)


def zeros_like(x, dtype=None, shape=None, device=None):
    return full_like(x, 0, dtype, shape, device)


def ones_like(x, dtype=None, shape=None, device=None):
    return full_like(x, 1, dtype, shape, device)


empty_like = zeros_like


def arange(start, stop=None, step=1, dtype=None, device=None):
    """start, start + step, ... below stop. A size that is a Dim gives 0, 1, 2, ...."""
    check_device(device)
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = [x.item() if hasattr(x, "item") else x for x in (start, stop, step)]
    kinds = {type(x) for x in (start, stop, step)}
    wanted = None if dtype is None else as_dtype(dtype)
    if Dim in kinds:
        return _counted(start, stop, step, wanted or DType.i32)
    wanted = wanted or (DType.f32 if float in kinds else usual_integer(start, stop))
    count = builtins.max(0, math.ceil((stop - start) / step))
    if float not in kinds:
        return (call("iota", near(), [count], DType.i64) * step + start).astype(wanted)
    return (call("iota", near(), [count], DType.f64) * float(step) + float(start)).astype(wanted)


def _counted(start, stop, step, dtype):
    """arange between ends of which one is a symbol."""
    if step not in (1, -1):
        raise Error(f"arange: a step of {step} from {start} to {stop} (allowed where a size is a symbol: 1, -1)")
    return call("iota", near(), [(stop - start) * step], dtype) * step + asarray(start, dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, device=None):
    """`num` numbers at equal distances, with `retstep` also the distance. Arrays as ends give them along a new axis."""
    check_device(device)
    if not isinstance(start, (int, float)) or not isinstance(stop, (int, float)):
        return _between(array_of(start), array_of(stop), num, endpoint, retstep, dtype, axis)
    step = (stop - start) / _distances(num, endpoint)
    values = call("iota", near(), [num], DType.f64) * step + float(start)
    values = where(_is_end(num), float(stop), values) if endpoint else values
    values = _of_line(values, dtype or DType.f32)
    return (values, of_type(where(array_of(num) > 1, step, math.nan), DType.f32)) if retstep else values


def _distances(num, endpoint):
    """How many there are between so many numbers, or one."""
    if isinstance(num, Dim):
        return call("max", asarray(num) - int(endpoint), 1).astype(DType.f64)
    return float(builtins.max(num - 1 if endpoint else num, 1))


def _is_end(num):
    """Where the last of several places is."""
    places = call("iota", near(), [num], DType.i32)
    return call("logical_and", call("eq", places, number_of(num - 1)), call("gt", places, 0))


def _of_line(values, dtype):
    """Of a type; integers are those below, as in NumPy."""
    return (call("floor", values) if as_dtype(dtype) in _WHOLE else values).astype(dtype)


def _between(start, stop, num, endpoint, retstep, dtype, axis):
    """linspace between ends that are arrays: exactly `stop` at the end."""
    both = call("add", start, stop).dtype
    dtype = as_dtype(dtype) if dtype is not None else both if both not in _WHOLE else DType.f32
    wanted = dtype if dtype not in _WHOLE else both if both not in _WHOLE else DType.f64
    start, stop = start.astype(wanted), stop.astype(wanted)
    count = _distances(num, endpoint)
    shape = [num] + [1] * builtins.max(start.ndim, stop.ndim)
    t = (call("iota", near(), [num], DType.f64) / count).astype(wanted).reshape(shape)
    values = _of_line(call("move_axis", start * (1 - t) + stop * t, 0, axis), dtype)
    return (values, ((stop - start) / count).astype(wanted)) if retstep else values


def eye(N, M=None, k=0, dtype=None, device=None):
    """Ones on a diagonal, zeros elsewhere."""
    check_device(device)
    rows = call("iota", near(), [N, N if M is None else M], DType.i32, 0)
    columns = call("iota", near(), [N, N if M is None else M], DType.i32, 1)
    return call("eq", rows + k, columns).astype(dtype or DType.f32)


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """Ones at and below a diagonal."""
    return tril(ones((N, N if M is None else M), dtype), k)


def tril(x, k=0):
    """The lower triangle; zeros elsewhere."""
    return call("tril", array_of(x), k)


def triu(x, k=0):
    """The upper triangle; zeros elsewhere."""
    return call("triu", array_of(x), k)


def meshgrid(*xs, indexing="xy", sparse=False, copy=True):
    """A grid of each vector along its own axis; with `sparse` the other axes have the size 1."""
    if indexing not in ("xy", "ij"):
        raise Error(f"meshgrid: indexing {indexing!r} (allowed: xy, ij)")
    xs = [array_of(x) for x in xs]
    order = [1, 0, *range(2, len(xs))] if indexing == "xy" and len(xs) > 1 else range(len(xs))
    places = dict(zip(range(len(xs)), order))
    shape = [0] * len(xs)
    for i, x in enumerate(xs):
        shape[places[i]] = x.size
    if sparse:
        return [x.reshape([-1 if places[i] == axis else 1 for axis in range(len(xs))]) for i, x in enumerate(xs)]
    return [call("broadcast", x.reshape(-1), shape, [places[i]]) for i, x in enumerate(xs)]


__all__ = public(globals())
