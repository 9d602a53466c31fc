"""What NumPy reads and writes: files of arrays, bytes, text."""
from .._conversions import asarray
from ._base import array_of, public


def load(file, *args, **kwargs):
    """The array of an .npy file, or a dict of those of an .npz file."""
    import numpy

    found = numpy.load(file, *args, **kwargs)
    return {name: asarray(found[name]) for name in found.files} if hasattr(found, "files") else asarray(found)


def save(file, arr):
    """Writes an array as an .npy file."""
    import numpy

    numpy.save(file, array_of(arr).numpy())


def _known(args, kwargs):
    return [array_of(x).numpy() for x in args], {name: array_of(x).numpy() for name, x in kwargs.items()}


def savez(file, *args, **kwargs):
    """Writes arrays as an .npz file: arr_0, arr_1, ..., and those by name."""
    import numpy

    args, kwargs = _known(args, kwargs)
    numpy.savez(file, *args, **kwargs)


def frombuffer(buffer, dtype="float32", count=-1, offset=0):
    """The elements that lie in memory of Python; a copy."""
    import numpy

    return asarray(numpy.frombuffer(buffer, _numpy_dtype(dtype), count, offset), copy=True)


def fromfile(file, dtype="float32", count=-1, sep="", offset=0):
    """The elements in a file."""
    import numpy

    return asarray(numpy.fromfile(file, _numpy_dtype(dtype), count, sep, offset=offset))


def fromiter(iterable, dtype="float32", count=-1):
    """The items of an iterator."""
    import numpy

    return asarray(numpy.fromiter(iterable, _numpy_dtype(dtype), count))


def fromstring(string, dtype="float32", count=-1, *, sep):
    """The numbers in a text, with `sep` between them."""
    import numpy

    return asarray(numpy.fromstring(string, _numpy_dtype(dtype), count, sep=sep))


def _numpy_dtype(dtype):
    from .._dtypes import as_dtype, numpy_dtype

    return numpy_dtype(as_dtype(dtype))


def array_repr(x, *args, **kwargs):
    """The text of an array with its type."""
    return repr(array_of(x))


def array_str(x, *args, **kwargs):
    """The text of the elements."""
    return str(array_of(x))


def _options(name):
    def called(*args, **kwargs):
        import numpy

        return getattr(numpy, name)(*args, **kwargs)

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"numpy.{name}: how arrays are printed, ours too."
    return called


set_printoptions, get_printoptions, printoptions = map(_options, ("set_printoptions", "get_printoptions", "printoptions"))

__all__ = public(globals())
