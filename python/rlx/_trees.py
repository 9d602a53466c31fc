"""Nested containers of arrays: tuples, lists, dicts, named tuples, dataclasses and registered classes."""
from ._core import Error

LEAF = "leaf"
_registered = {}


def register(cls, flatten, unflatten):
    """Makes a class a container. `flatten` gives its children and anything else that is needed to make it again (hashable);
    `unflatten` makes one of both."""
    _registered[cls] = (flatten, lambda children, rest: unflatten(rest, children))
    return cls


def register_dataclass(cls):
    """Makes a dataclass a container of its fields."""
    names = tuple(cls.__dataclass_fields__)
    _registered[cls] = (
        lambda value: (tuple(getattr(value, name) for name in names), None),
        lambda children, _: cls(**dict(zip(names, children))),
    )
    return cls


def _sorted_keys(value):
    try:
        return tuple(sorted(value))
    except TypeError:
        raise Error(f"the keys of a dict do not compare: {list(value)}") from None


def _parts(value):
    """Kind, what is needed to make the container again, and its children; nothing for a leaf."""
    cls = type(value)
    if value is None:
        return "none", None, ()
    if cls is tuple or cls is list:
        return cls, None, value
    if cls is dict:
        keys = _sorted_keys(value)
        return dict, keys, tuple(value[key] for key in keys)
    if cls in _registered:
        children, rest = _registered[cls][0](value)
        return cls, rest, tuple(children)
    if isinstance(value, tuple) and hasattr(cls, "_fields"):
        return cls, "fields", value
    return None


def _make(kind, rest, children):
    if kind == "none":
        return None
    if kind is tuple or kind is list:
        return kind(children)
    if kind is dict:
        return dict(zip(rest, children))
    if rest == "fields":
        return kind(*children)
    return _registered[kind][1](children, rest)


def _walk(value, leaves):
    parts = _parts(value)
    if parts is None:
        leaves.append(value)
        return LEAF
    kind, rest, children = parts
    return (kind, rest, tuple([_walk(child, leaves) for child in children]))


def flatten(value):
    """The leaves of a tree, and its structure: a value that compares and has a hash."""
    leaves = []
    return leaves, _walk(value, leaves)


def _build(tree, leaves):
    if tree == LEAF:
        return next(leaves)
    kind, rest, children = tree
    return _make(kind, rest, [_build(child, leaves) for child in children])


def unflatten(tree, leaves):
    """The tree of that structure with these leaves."""
    return _build(tree, iter(leaves))


def leaf_count(tree):
    return 1 if tree == LEAF else sum(leaf_count(child) for child in tree[2])


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


def broadcast_prefix(prefix, tree, is_leaf):
    """One item of `prefix` for each leaf of the structure `tree`; an item stands for all leaves below it."""
    if is_leaf(prefix):
        return [prefix] * leaf_count(tree)
    parts = _parts(prefix)
    if parts is None or tree == LEAF or len(parts[2]) != len(tree[2]):
        raise Error(f"{prefix!r} is no prefix of the tree {tree}")
    return [item for child, below in zip(parts[2], tree[2]) for item in broadcast_prefix(child, below, is_leaf)]


def leaves(tree):
    return flatten(tree)[0]


def structure(tree):
    return flatten(tree)[1]
