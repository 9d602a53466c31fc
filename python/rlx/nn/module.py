"""What layers have in common."""
from .. import _trees
from .._array import Array
from .._core import Error
from .._dtypes import is_numpy


def _holds_arrays(value):
    """Whether an attribute is part of the tree; what is not is a static value."""
    if isinstance(value, (Array, Module)) or is_numpy(value):
        return True
    children = None if value is None else _trees.items(value)
    return children is not None and any(_holds_arrays(child) for child in children)


class _Construction(type):
    """Once a module is made, its attributes are sorted into children and static values."""

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        names = tuple(name for name, value in vars(made).items() if _holds_arrays(value))
        for name, value in vars(made).items():
            if name not in names:
                made._check_static(name, value)
        made._children = names
        return made


class Module(metaclass=_Construction):
    """A class whose attributes that hold arrays or modules are a container, as lists and dicts are; other attributes are static and need
    a hash. Modules do not change: `replace` gives a new one."""

    _children = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _trees.register(cls, _parts, lambda rest, children: _made(cls, rest, children))

    def _check_static(self, name, value):
        try:
            hash(value)
        except TypeError:
            raise Error(f"{type(self).__name__}.{name}: a {type(value).__name__} without arrays has no hash (allowed: a tuple)") from None

    def replace(self, **values):
        """A copy with other attributes."""
        copy = object.__new__(type(self))
        vars(copy).update(vars(self), **values)
        return copy

    def __repr__(self):
        static = {name: value for name, value in vars(self).items() if name not in self._children and name != "_children"}
        arrays = {name: _trees.map(lambda leaf: leaf._type_text() if isinstance(leaf, Array) else leaf, getattr(self, name)) for name in self._children}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in {**arrays, **static}.items())})"


def _parts(module):
    attributes = vars(module)
    names = module._children
    return tuple(attributes[name] for name in names), (names, tuple(item for item in attributes.items() if item[0] not in names and item[0] != "_children"))


def _made(cls, rest, children):
    names, static = rest
    module = object.__new__(cls)
    vars(module).update(static)
    vars(module).update(zip(names, children), _children=names)
    return module
