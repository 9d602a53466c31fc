"""Functions of single elements or of small arrays, on whole arrays."""
import functools
import re

from .._core import Error
from .._transforms import vmap
from ._base import array_of, public
from .arrangement import broadcast_shapes, broadcast_to, reshape


def _signature(text):
    """The core axes of arguments and results: "(n,m),(m)->(n)"."""
    sides = text.replace(" ", "").split("->")
    if len(sides) != 2 or not re.fullmatch(r"\([\w,]*\)(,\([\w,]*\))*", sides[0]):
        raise Error(f"vectorize: signature is {text!r} (allowed: such as '(n,m),(m)->(n)')")
    return [[axis for axis in each.split(",") if axis] for each in re.findall(r"\(([\w,]*)\)", sides[0])]


def vectorize(pyfunc=None, *, excluded=(), signature=None):
    """The function on arrays that broadcast against each other: of their elements, or of the last axes that `signature` names. It is called
    once, by vmap. `excluded` are places of arguments that stay as they are."""
    if pyfunc is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)

    @functools.wraps(pyfunc)
    def called(*args, **kwargs):
        places = [i for i in range(len(args)) if i not in excluded]
        arrays = [array_of(args[i]) for i in places]
        axes = _signature(signature) if signature else [[] for _ in places]
        if len(axes) != len(arrays):
            raise Error(f"vectorize: {len(arrays)} arrays for the signature {signature!r}")
        shape = broadcast_shapes(*[x.shape[: x.ndim - len(core)] for x, core in zip(arrays, axes)])
        arrays = [broadcast_to(x, (*shape, *x.shape[x.ndim - len(core) :])) for x, core in zip(arrays, axes)]

        def on(*given):
            full = list(args)
            for i, value in zip(places, given):
                full[i] = value
            return pyfunc(*full, **kwargs)

        for _ in shape:
            on = vmap(on)
        return on(*arrays)

    return called


__all__ = public(globals())
