"""Different elements. How many there are depends on the elements: arrays must be known."""
import collections

from .._conversions import asarray
from ._base import array_of, public
from .elementwise import equal
from .reductions import any
from .types import result_type

UniqueAll = collections.namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = collections.namedtuple("UniqueCounts", "values counts")
UniqueInverse = collections.namedtuple("UniqueInverse", "values inverse_indices")


def unique_all(x):
    """The different elements in order, where each is first found, which one each element is, and how often each is there. Every NaN is
    another element."""
    import numpy

    x = array_of(x)
    values, first, inverse, counts = numpy.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    return UniqueAll(asarray(values), *[asarray(each.astype("int32")) for each in (first, inverse.reshape(x.shape), counts)])


def unique_counts(x):
    """The different elements, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x):
    """The different elements, and which one each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x):
    """The different elements."""
    return unique_all(x).values


def _padded(values, size, fill, axis=0):
    """The first `size` values along an axis, `fill` behind them where there are fewer."""
    import numpy

    values = numpy.moveaxis(values, axis, 0)
    if size is not None and len(values) != size:
        rest = numpy.broadcast_to(numpy.asarray(fill, values.dtype), (max(size - len(values), 0), *values.shape[1:]))
        values = numpy.concatenate([values[:size], rest])
    return asarray(numpy.moveaxis(values, 0, axis))


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, equal_nan=True, size=None, fill_value=None):
    """The different elements in order, or slices along `axis`, and what else is asked for, as unique_all has it. With `size` there are so many,
    `fill_value` (by itself the least) behind them."""
    import numpy

    given = array_of(x).numpy()
    parts = numpy.unique(given, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan)
    values, index, inverse, counts = parts
    at = axis or 0
    fill = fill_value if fill_value is not None else (values.take(0, at) if values.shape[at] else 0)
    shape = given.shape if axis is None else (-1,)
    more = [_padded(index.astype("int32"), size, index[0] if len(index) else 0)] * return_index
    more += [asarray(inverse.reshape(shape).astype("int32"))] * return_inverse + [_padded(counts.astype("int32"), size, 0)] * return_counts
    values = _padded(values, size, fill, at)
    return (values, *more) if more else values


def isin(element, test_elements, assume_unique=False, invert=False, method=None):
    """Whether each element is one of the others."""
    element = array_of(element)
    found = any(equal(element[..., None], array_of(test_elements).reshape(-1)), axis=-1)
    return ~found if invert else found


def _by_numpy(name, x, y, size, fill_value):
    import numpy

    x, y = array_of(x), array_of(y)
    values = getattr(numpy, name)(*[each.astype(result_type(x, y)).numpy() for each in (x, y)])
    return _padded(values, size, fill_value if fill_value is not None else (values[0] if len(values) else 0))


def union1d(x, ar2, size=None, fill_value=None):
    """The elements of either, in order."""
    return _by_numpy("union1d", x, ar2, size, fill_value)


def intersect1d(x, ar2, assume_unique=False, return_indices=False, size=None, fill_value=None):
    """The elements of both, in order, and with `return_indices` where each is first found in x and in ar2."""
    if return_indices:
        import numpy

        values, *places = numpy.intersect1d(array_of(x).numpy(), array_of(ar2).numpy(), return_indices=True)
        return (asarray(values), *[asarray(each.astype("int32")) for each in places])
    return _by_numpy("intersect1d", x, ar2, size, fill_value)


def setdiff1d(x, ar2, assume_unique=False, size=None, fill_value=None):
    """The elements of x that are not in ar2, in order."""
    import numpy

    values = numpy.setdiff1d(array_of(x).numpy(), array_of(ar2).numpy())
    return _padded(values, size, fill_value if fill_value is not None else (values[0] if len(values) else 0))


def setxor1d(x, ar2, assume_unique=False, size=None, fill_value=None):
    """The elements of one alone, in order."""
    return _by_numpy("setxor1d", x, ar2, size, fill_value)


__all__ = public(globals())
