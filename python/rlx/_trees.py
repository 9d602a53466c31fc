"""Nested containers of arrays: tuples, lists, dicts, named tuples, dataclasses and registered classes."""
from . import _core
from ._core import Error

_flatten: dict = {}  # by registered class
flatten, unflatten, tuple_tree = _core.flatten, _core.unflatten, _core.tuple_tree


def register(cls, flatten, unflatten):
    """Makes a class a container. `flatten` gives its children and anything else that is needed to make it again (hashable);
    `unflatten` makes one of both."""
    _core.register_tree(cls, flatten, unflatten)
    _flatten[cls] = flatten
    return cls


def register_dataclass(cls):
    """Makes a dataclass a container of its fields."""
    names = tuple(cls.__dataclass_fields__)
    return register(cls, lambda value: (tuple(getattr(value, name) for name in names), None), lambda _, children: cls(**dict(zip(names, children))))


def map(function, tree, *others):  # noqa: A001
    """The tree with `function` applied to its leaves, and to those of other trees of the same structure."""
    leaves, structure = flatten(tree)
    columns = [leaves]
    for other in others:
        more, its = flatten(other)
        if its != structure:
            raise Error(f"trees differ: {structure} and {its}")
        columns.append(more)
    return unflatten(structure, [function(*row) for row in zip(*columns)])


def items(value):
    """The children of a container, in order; None for a leaf."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    if type(value) in _flatten:
        return list(_flatten[type(value)](value)[0])
    return list(value) if isinstance(value, (tuple, list)) else None


def broadcast_prefix(prefix, tree, is_leaf):
    """One item of `prefix` for each leaf of the structure `tree`; an item stands for all leaves below it."""
    if is_leaf(prefix):
        return [prefix] * tree.leaf_count
    children, below = items(prefix), tree.children
    if children is None or tree.is_leaf or len(children) != len(below):
        raise Error(f"{prefix!r} is no prefix of the tree {tree}")
    return [item for each, child in zip(children, below) for item in broadcast_prefix(each, child, is_leaf)]


def leaves(tree):
    return flatten(tree)[0]


def structure(tree):
    return flatten(tree)[1]
