"""Elements around an array: pad in NumPy's modes."""
import builtins

from .._core import Dim, Error
from .._dtypes import is_integer, is_numpy
from ._base import array_of, call, of_type, public
from .arrangement import concatenate, take
from .creation import arange
from .elementwise import floor, round
from .reductions import max, mean, min
from .statistics import median

_REPEATED = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict = {"maximum": max, "mean": mean, "median": median, "minimum": min}
_MODES = ("constant", *_REPEATED, "linear_ramp", *_STATISTICS, "empty")


def pad(x, pad_width, mode="constant", constant_values=0, stat_length=None, end_values=0, reflect_type="even"):
    """Elements before and after along each axis. `pad_width` and the other numbers are one for all, a pair of those before and behind, or a
    pair for each axis; `pad_width` also a dict by axis. `stat_length` says of how many elements mean, median, minimum and maximum are."""
    x = array_of(x)
    if mode not in _MODES:
        raise Error(f"pad: mode {mode!r} (allowed: {', '.join(_MODES)})")
    if reflect_type not in ("even", "odd"):
        raise Error(f"pad: reflect_type {reflect_type!r} (allowed: even, odd)")
    widths = _widths(pad_width, x.ndim)
    fills = _pairs("constant_values", 0 if mode == "empty" else constant_values, x.ndim)
    ends, lengths = _pairs("end_values", end_values, x.ndim), _pairs("stat_length", stat_length, x.ndim)
    for axis, (low, high) in enumerate(widths):
        if (low, high) == (0, 0):
            continue
        if mode in _REPEATED:
            x = _repeated(x, axis, low, high, mode, reflect_type == "odd")
            continue
        if mode in _STATISTICS:
            around = [_statistic(x, axis, mode, length, behind) for length, behind in zip(lengths[axis], (False, True))]
        elif mode == "linear_ramp":
            around = [_ramp(x, axis, width, end, behind) for width, end, behind in zip((low, high), ends[axis], (False, True))]
        else:
            around = [of_type(fill, x.dtype) for fill in fills[axis]]
        before, behind = (call("broadcast_to", each, _with_size(x, axis, width)) for each, width in zip(around, (low, high)))
        x = concatenate([before, x, behind], axis)
    return x


def _with_size(x, axis, size):
    return [size if i == axis else each for i, each in enumerate(x.shape)]


def _pairs(name, given, rank):
    """What stands before and behind on each axis, as NumPy's broadcasting to (rank, 2) has it."""
    given = given.tolist() if is_numpy(given) else given
    if not isinstance(given, (tuple, list)):
        return [(given, given)] * rank
    if not builtins.any(isinstance(each, (tuple, list)) for each in given):
        given = [given]
    rows = [tuple(each) * 2 if len(each) == 1 else tuple(each) for each in given]
    rows = rows * rank if len(rows) == 1 else rows
    if len(rows) != rank or builtins.any(len(row) != 2 for row in rows):
        raise Error(f"pad: {name} {given} (allowed: a pair for each of {rank} axes)")
    return rows


def _widths(given, rank):
    if isinstance(given, dict):
        rows = [(0, 0)] * rank
        for axis, width in given.items():
            if not -rank <= axis < rank:
                raise Error(f"pad: axis {axis} (allowed: {-rank}..{rank - 1})")
            rows[axis] = _pairs("pad_width", width, 1)[0]
        given = rows
    rows = _pairs("pad_width", given, rank)
    for width in (width for row in rows for width in row):
        if not isinstance(width, Dim) and (int(width) != width or width < 0):
            raise Error(f"pad: a width of {width} (allowed: integers from 0)")
    return rows


def _part(x, axis, begin, end):
    return x[(slice(None),) * axis + (slice(begin, end),)]


def _statistic(x, axis, mode, length, behind):
    n = x.shape[axis]
    if length is not None and length < 1:
        raise Error(f"pad: a stat_length of {length} (allowed: integers from 1)")
    part = x if length is None or length >= n else _part(x, axis, n - length, n) if behind else _part(x, axis, 0, length)
    whole = is_integer(x.dtype) and mode in ("mean", "median")
    result = _STATISTICS[mode](part.astype("float64") if whole else part, axis=axis, keepdims=True)
    return (round(result) if whole else result).astype(x.dtype)


def _ramp(x, axis, width, end, behind):
    """From `end`, which is outermost, towards the last element."""
    n, whole = x.shape[axis], is_integer(x.dtype)
    edge = _part(x, axis, n - 1, n) if behind else _part(x, axis, 0, 1)
    kind = "float64" if whole else x.dtype
    steps = arange(width, 0, -1) if behind else arange(width)
    steps = (steps - 1 if behind else steps).reshape([-1 if i == axis else 1 for i in range(x.ndim)]).astype(kind)
    ramp = (edge.astype(kind) - end) * (steps / builtins.max(width, 1)) + end
    return (floor(ramp) if whole else ramp).astype(x.dtype)


def _repeated(x, axis, low, high, mode, odd):
    """Modes whose elements are those of x. Within its size, which may be symbolic, they are an op's; beyond it, or turned around the element
    at the border (`odd`), they are taken by position."""
    n = x.shape[axis]
    odd = odd and mode in ("reflect", "symmetric")
    most = n - 1 if mode == "reflect" else n
    if isinstance(n, Dim) or not odd and (mode == "edge" and n > 0 or low <= most and high <= most):
        return call("pad_mode", x, _with_zeros(x, axis, low), _with_zeros(x, axis, high), mode)
    if n == 0:
        raise Error(f"pad: axis {axis} is empty (allowed for mode {mode}: at least 1 element)")
    if mode == "wrap":
        return take(x, [p % n for p in range(-low, n + high)], axis)
    if mode == "reflect" and n == 1:
        return call("pad_mode", x, _with_zeros(x, axis, low), _with_zeros(x, axis, high), "edge")
    far = n - 1 if mode == "reflect" else n  # where the reflection begins; two of them are a period
    periods, places = zip(*[divmod(p, 2 * far) for p in range(-low, n + high)])
    back = [place >= n for place in places]
    inside = [2 * n - 1 - (mode == "reflect") - place if turned else place for place, turned in zip(places, back)]
    taken = take(x, inside, axis)
    if not odd:
        return taken
    column = lambda values: call("reshape", array_of(values).astype(x.dtype), [-1 if i == axis else 1 for i in range(x.ndim)])  # noqa: E731
    first, last = _part(x, axis, 0, 1), _part(x, axis, n - 1, n)
    signs, lasts = column([-1 if turned else 1 for turned in back]), column([2 if turned else 0 for turned in back])
    return taken * signs + last * lasts + (last - first) * column([2 * period for period in periods])


def _with_zeros(x, axis, width):
    return [width if i == axis else 0 for i in range(x.ndim)]


__all__ = public(globals())
