"""Different elements. How many there are depends on the elements: arrays must be known."""
import collections

from .._array import asarray
from ._base import array_of, public
from .elementwise import equal
from .reductions import any

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


def unique(x, return_index=False, return_inverse=False, return_counts=False):
    """The different elements in order, and what else is asked for, as unique_all has it."""
    found = unique_all(x)
    wanted = [found.indices] * return_index + [found.inverse_indices] * return_inverse + [found.counts] * return_counts
    return (found.values, *wanted) if wanted else found.values


def isin(x, test_elements, invert=False):
    """Whether each element is one of the others."""
    x = array_of(x)
    found = any(equal(x[..., None], array_of(test_elements).reshape(-1)), axis=-1)
    return ~found if invert else found


def _by_numpy(name, *xs):
    import numpy

    return asarray(getattr(numpy, name)(*[array_of(x).numpy() for x in xs]))


def union1d(x, y):
    """The elements of either, in order."""
    return _by_numpy("union1d", x, y)


def intersect1d(x, y):
    """The elements of both, in order."""
    return _by_numpy("intersect1d", x, y)


def setdiff1d(x, y):
    """The elements of x that are not in y, in order."""
    return _by_numpy("setdiff1d", x, y)


def setxor1d(x, y):
    """The elements of one alone, in order."""
    return _by_numpy("setxor1d", x, y)


__all__ = public(globals())
