"""Looking into functions while they run."""
import builtins

from . import _trees
from ._array import Array
from ._core import Error
from ._tracing import current_trace


def print(fmt, *args, ordered=False, **kwargs):  # noqa: A001
    """Prints fmt.format(*args, **kwargs). Not in a traced function, whose program has no effects; `ordered` changes nothing."""
    arrays = [leaf for leaf in _trees.leaves((args, kwargs)) if isinstance(leaf, Array)]
    if current_trace(arrays) is not None:
        raise Error(f"rlx.debug.print: {fmt!r} in a traced function, whose program has no effects (allowed: outside; give the value as a result,"
                    " or call the function without rlx.jit)")  # fmt: skip
    builtins.print(fmt.format(*args, **kwargs))
