"""x[index] and x.at[index] with what NumPy takes: integers, slices, None, ..., arrays of integers or bool."""
import math

from . import _core
from ._array import Array, _call
from ._conversions import asarray
from ._core import DType, Dim, Error
from ._dtypes import is_integer


def _entries(index):
    return list(index) if isinstance(index, tuple) else [index]


def _is_list(entry):
    return isinstance(entry, (list, Array)) or hasattr(entry, "__array__")


def _is_truth(index):
    return isinstance(index, bool) or (_is_list(index) and not isinstance(index, list) and asarray(index).ndim == 0 and asarray(index).dtype == DType["bool"])


def _unmasked(entries, shape):
    """Arrays of bool become the positions of their true elements, one array for each of their axes; they must be known."""
    result, axis = [], 0
    for place, entry in enumerate(entries):
        if entry is Ellipsis:
            axis = len(shape) - sum(_axes_of(each) for each in entries[place + 1 :])
        if _is_list(entry) and asarray(entry).dtype == DType["bool"]:
            mask = asarray(entry)
            mask._check_known("rlx.numpy.where takes masks that are traced; a selection has a size that is known")
            if mask.shape != shape[axis : axis + mask.ndim]:
                raise IndexError(f"an index of {mask._type_text()} for axes of the sizes {shape[axis : axis + mask.ndim]}")
            result.extend(asarray(positions.astype("int32")) for positions in mask.numpy().nonzero())
        elif isinstance(entry, bool):
            raise IndexError("a bool is no index")
        elif _is_list(entry):
            array = asarray(entry)
            if not is_integer(array.dtype):
                raise IndexError(f"an array of {array.dtype} is no index (allowed: integers, bool)")
            result.append(array)
        else:
            result.append(entry)
        axis += _axes_of(entry)
    return result


def _axes_of(entry):
    """How many axes it stands for."""
    if entry is None or entry is Ellipsis:
        return 0
    return asarray(entry).ndim if _is_list(entry) and asarray(entry).dtype == DType["bool"] else 1


def _with_all_axes(array, entries):
    """One entry for each axis, and None for new ones."""
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if used > array.ndim:
        raise IndexError(f"{used} indices for an array of {array._type_text()}")
    whole = [slice(None)] * (array.ndim - used)
    if any(entry is Ellipsis for entry in entries):
        at = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
        if any(entry is Ellipsis for entry in entries[at + 1 :]):
            raise IndexError("an index holds ... twice")
        return entries[:at] + whole + entries[at + 1 :]
    return entries + whole


def _with_integers(array, entries):
    """Integers beside arrays count as arrays. That matters where these are not neighbours: then their axes come first, as in NumPy."""
    at = [i for i, entry in enumerate(entries) if entry is not None and not isinstance(entry, slice)]
    if at == list(range(at[0], at[0] + len(at)) if at else at) or not any(isinstance(entry, Array) for entry in entries):
        return entries
    for i in at:
        if not isinstance(entries[i], Array):
            axis = sum(entry is not None for entry in entries[:i])
            _Basic().add(axis, array.shape[axis], entries[i])  # which says what is wrong with it
            entries[i] = asarray(entries[i].__index__())
    return entries


class _Basic:
    """What integers and slices take of each axis: a range with a step, turned round where the step is negative."""

    def __init__(self):
        self.start, self.limit, self.stride, self.reversed, self.dropped = [], [], [], [], []

    def add(self, axis, size, entry):
        if isinstance(entry, slice):
            self.add_slice(axis, size, entry)
        elif isinstance(entry, Array):
            self.add_range(0, size, 1)
        else:
            if not hasattr(entry, "__index__"):
                raise IndexError(f"a {type(entry).__name__} is no index (allowed: integers, slices, ..., None, arrays of integers or bool)")
            self.add_integer(axis, size, entry if isinstance(entry, Dim) else entry.__index__())

    def add_range(self, start, limit, stride):
        self.start.append(start), self.limit.append(limit), self.stride.append(stride)

    def add_integer(self, axis, size, at):
        if isinstance(size, int) and not -size <= at < size:
            raise IndexError(f"index {at} is outside of axis {axis} with size {size}")
        at = at + size if at < 0 else at
        self.add_range(at, at + 1, 1)
        self.dropped.append(axis)

    def add_slice(self, axis, size, entry):
        if isinstance(size, Dim):
            return self.add_symbolic(axis, size, entry)
        begin, end, step = entry.indices(size)
        count = len(range(begin, end, step))
        if step < 0:
            self.reversed.append(axis)
            begin, step = begin + (count - 1) * step if count else 0, -step
        self.add_range(begin if count else 0, begin + (count - 1) * step + 1 if count else 0, step)

    def add_symbolic(self, axis, size, entry):
        if entry == slice(None, None, -1):
            self.reversed.append(axis)
            return self.add_range(0, size, 1)
        if entry.step not in (None, 1):
            from ._sizes import called_function

            raise Error(f"{called_function()}a slice of axis {axis} of size {size} has the step {entry.step} (allowed: 1, and -1 over the whole axis)")
        ends = [0 if entry.start is None else entry.start, size if entry.stop is None else entry.stop]
        self.add_range(*[size + end if isinstance(end, int) and end < 0 else end for end in ends], 1)

    def of(self, array):
        if any(start != 0 for start in self.start) or list(array.shape) != self.limit or any(step != 1 for step in self.stride):
            array = _call("slice", array, self.start, self.limit, self.stride)
        return _call("reverse", array, self.reversed) if self.reversed else array


def widened(index):
    """Of a type that has room for sums. What int64 does not hold lies behind every axis."""
    if index.dtype in (DType.u8, DType.u16, DType.u32, DType.u64):
        index = index.astype("int64")
        return _call("select", _call("lt", index, 0), 2**62, index)
    return index if index.dtype in (DType.i32, DType.i64) else index.astype("int32")


def number_of(size, dtype, array):
    """A size as what indices are compared with and added to. One of a symbol is known when the program of `array`, which has it, runs."""
    if not isinstance(size, Dim):
        return size
    least = min(-(-size).upper, 0)  # a difference of sizes may be negative
    number = _call("dim_value", array, size - least, dtype)
    return _call("add", number, least) if least else number


def wrapped(index, size, array):
    """Negative indices into an axis of the array count from the end."""
    index = widened(index)
    return _call("select", _call("lt", index, 0), _call("add", index, number_of(size, index.dtype, array)), index)


def _type_of_places(count):
    """What holds the places of so many elements, and the one behind them."""
    return "int32" if isinstance(count, int) and count < 2**31 else "int64"


def _flat_position(indices, array, mode):
    """The place of an element on the joined first axes, row by row; with mode fill one behind the last where an index is outside."""
    position, inside, count = None, None, math.prod(array.shape[: len(indices)])
    for index, size in zip(indices, array.shape):
        index = wrapped(index, size, array)
        index = index.astype("int64") if _type_of_places(count) == "int64" else index
        number = number_of(size, index.dtype, array)
        within = _call("logical_and", _call("ge", index, 0), _call("lt", index, number))
        inside = within if inside is None else _call("logical_and", inside, within)
        index = _call("min", _call("max", index, 0), number - 1)
        position = index if position is None else _call("add", _call("mul", position, number), index)
    if mode == "fill":
        position = _call("select", inside, position, number_of(count, position.dtype, array))
    return position, count


def _gathered(array, axes, indices, mode):
    """The elements at the indices of several axes; the axes of the indices come first."""
    rest = [axis for axis in range(array.ndim) if axis not in axes]
    front = _call("transpose", array, axes + rest)
    position, count = _flat_position(indices, front, mode)
    return _call("take", _call("reshape", front, [count, *front.shape[len(axes) :]]), position, 0, mode)


def _advanced(array, entries, mode):
    """`entries` has an array or None for each axis."""
    axes = [axis for axis, entry in enumerate(entries) if entry is not None]
    if len(axes) == 1:
        index = entries[axes[0]] if mode == "fill" else wrapped(entries[axes[0]], array.shape[axes[0]], array)  # take wraps by itself then
        return _call("take", array, index, axes[0], mode)
    taken = _gathered(array, axes, [entries[axis] for axis in axes], mode)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return taken  # arrays that are not neighbours: their axes stay in front, as in NumPy
    count = taken.ndim - (array.ndim - len(axes))
    order = [*range(count, count + axes[0]), *range(count), *range(count + axes[0], taken.ndim)]
    return _call("transpose", taken, order)


def get(array, index, mode="clip"):
    """The elements at an index. Positions in arrays that lie outside are moved inside, or with mode fill read as the least integer or NaN."""
    if _is_truth(index):  # all or nothing, along a new axis
        return array[None] if index else array[None][:0]
    entries = _with_integers(array, _with_all_axes(array, _unmasked(_entries(index), array.shape)))
    basic, axis = _Basic(), 0
    for entry in entries:
        if entry is not None:
            basic.add(axis, array.shape[axis], entry)
            axis += 1
    array = basic.of(array)
    shape, arrays, axis = [], [], 0  # after integers have left and new axes have come
    for entry in entries:
        if entry is None:
            shape.append(1), arrays.append(None)
            continue
        if axis not in basic.dropped:
            shape.append(array.shape[axis]), arrays.append(entry if isinstance(entry, Array) else None)
        axis += 1
    if list(array.shape) != shape:
        array = _call("reshape", array, shape)
    return _advanced(array, arrays, mode) if any(entry is not None for entry in arrays) else array


def _placed(mode):
    """JAX's mode as ours."""
    modes = {"drop": "fill", "fill": "fill", "clip": "clip", "promise_in_bounds": "clip"}
    if mode not in modes:
        raise Error(f"at: there is no mode {mode!r} (allowed: {', '.join(modes)})")
    return modes[mode]


class At:
    """x.at: changed copies of x. What lies outside is left out, as in JAX."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return AtIndex(self.array, index)


class AtIndex:
    """The elements at an index. `mode` says what becomes of places outside: drop or fill leaves them out, clip moves them inside; JAX's hints
    indices_are_sorted and unique_indices change nothing."""

    def __init__(self, array, index):
        self.array = array
        self.index = tuple(asarray(entry) if type(entry) is int else entry for entry in _entries(index))  # a plain integer outside is an error

    def get(self, mode="clip", fill_value=None, **_hints):
        """The elements. With mode fill those outside are `fill_value`, by itself NaN or the least integer."""
        if _placed(mode) == "clip" or fill_value is None:
            return get(self.array, self.index, _placed(mode))
        return _call("where", _call("ge", self._places("fill"), 0), get(self.array, self.index), asarray(fill_value, self.array.dtype))

    def set(self, values, **options):
        """The array with the elements at the index replaced."""
        return self._scattered(values, "set", **options)

    def add(self, values, **options):
        return self._scattered(values, "add", **options)

    def subtract(self, values, **options):
        return self.add(-asarray(values), **options)

    def multiply(self, values, **options):
        return self._scattered(values, "mul", **options)

    mul = multiply

    def divide(self, values, **options):
        return self.array / self._factors(values, **options)

    def power(self, values, **options):
        return self.array ** self._factors(values, **options)

    def min(self, values, **options):
        return self._scattered(values, "min", **options)

    def max(self, values, **options):
        return self._scattered(values, "max", **options)

    def apply(self, function, **options):
        """The array with `function` of the elements at the index in their places."""
        return self.set(function(get(self.array, self.index)), **options)

    def _factors(self, values, **options):
        """The product of the values of each element, 1 for all others."""
        return AtIndex(_call("ones_like", self.array), self.index).multiply(values, **options)

    def _places(self, mode):
        """Where the elements lie in the array, row by row; those outside below 0 with mode fill."""
        array = self.array
        return get(_call("reshape", _call("iota", array, [array.size], _type_of_places(array.size)), list(array.shape)), self.index, mode)

    def _scattered(self, values, kind, mode="fill", **_hints):
        from .numpy._base import of_type

        array, places = self.array, self._places(_placed(mode))
        values = _call("broadcast_to", of_type(values, array.dtype), list(places.shape))
        if array.size == 0:
            return array
        flat = _core.apply(
            "scatter",
            (_call("reshape", array, [array.size]), _call("reshape", places, [places.size, 1]), _call("reshape", values, [places.size])),
            {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,), "kind": kind, "mode": "fill"},
        )
        return _call("reshape", flat, list(array.shape))
