"""Different elements. How many there are depends on the elements: arrays must be known."""
import collections

from .._array import asarray
from ._base import array_of, public

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


__all__ = public(globals())
