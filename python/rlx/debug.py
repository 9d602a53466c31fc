"""Looking into functions while they run."""
import builtins

from . import _trees
from ._array import Array, active, to_numpy
from ._effects import carrying
from ._tracing import current_trace


def print(fmt, *args, ordered=False, **kwargs):  # noqa: A001
    """Prints fmt.format(*args, **kwargs), as callback does."""
    callback(lambda *args, **kwargs: builtins.print(fmt.format(*args, **kwargs)), *args, **kwargs)


def callback(callback, *args, ordered=False, **kwargs):
    """Calls callback(*args, **kwargs) with NumPy's arrays: at once, or where it is traced each time that the program, a branch or a step of a
    loop is computed for its first result; under vmap for each example. Calls are in the order of their text. Derivatives pass it by, and may
    compute it again."""
    leaves, tree = _trees.flatten((args, kwargs))
    known = {place: leaf for place, leaf in enumerate(leaves) if not isinstance(leaf, Array)}  # as they are: also text
    arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]

    def called(given):
        rest = iter(given)
        args, kwargs = _trees.unflatten(tree, [known[place] if place in known else to_numpy(next(rest)) for place in range(len(leaves))])
        callback(*args, **kwargs)

    if current_trace(arrays) is None:
        called(arrays)
    else:
        active.effects.append(lambda result: carrying(called, result, arrays))
