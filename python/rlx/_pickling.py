"""How functions with something beside them are pickled: by name where that leads to them, as functions of Python are, else by what they are
made of."""
import sys

from . import _core


def pickler():
    """The module that pickles the object whose __reduce__ asks: the arrays of a file go to another process by its path."""
    return sys._getframe(2).f_globals.get("__name__", "")


def _is_named(value):
    """Whether its name leads to it."""
    found = sys.modules.get(value.__module__)
    for name in getattr(value, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is value


class Pickled:
    """A class whose objects are made again by `cls(*value._parts())` and the attributes `_added`, or are found by their names. Copies of them
    are the object itself."""

    _added: tuple = ()

    def __reduce__(self):
        # cloudpickle, that of Ray and others included, takes a function of __main__ by value: the worker has another __main__.
        if "cloudpickle" not in pickler() and _is_named(self):
            return self.__qualname__
        return type(self), self._parts(), {name: vars(self)[name] for name in self._added if name in vars(self)} or None

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def dim_of(terms):
    """A size from what it is pickled as. Functions of the module itself have no names that pickle follows."""
    return _core.dim_of(terms)
