"""The arrays of files, which stay mapped."""
import functools
import os

from . import _core
from ._core import Error


def _stamp(path):
    """What changes with the file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _marked(arrays, path):
    path = os.path.abspath(path)
    stamp = _stamp(path)
    for name, array in arrays.items():
        array._file = path, stamp, name
    return arrays


def load_safetensors(path):
    """The arrays of a file by name, which stay mapped. In another process to which cloudpickle or multiprocessing takes them they are mapped,
    too, from the same path: the machine has the file in memory once."""
    return _marked(_core.load_safetensors(path), path)


def load_graph(path):
    """A graph and its weights by name, as save_graph wrote them. The weights stay mapped, as those of load_safetensors."""
    from ._graphs import _made

    graph, weights = _core.load_graph(path)
    return _made(graph), _marked(weights, path)


def travels(file, pickler):
    """Whether an array goes to another process, and is in its file still."""
    return ("cloudpickle" in pickler or pickler == "multiprocessing.reduction") and _stamp(file[0]) == file[1]


@functools.lru_cache(maxsize=1)  # the arrays of a file come one after another
def _mapped(path, stamp):
    if _stamp(path) != stamp:
        raise Error(f"{path}: the file whose arrays another process sent is not there, or has changed")
    return load_safetensors(path)


def array_of(path, stamp, name):
    return _mapped(path, stamp)[name]
