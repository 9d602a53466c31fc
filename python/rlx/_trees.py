"""Nested containers of arrays: tuples, lists, dicts, named tuples, dataclasses and registered classes. None has no leaves."""
import collections
import functools

from . import _core
from ._core import Error

_flatten: dict = {}  # by registered class
_fields: dict = {}  # of a registered class: the names of its children, if it has them as attributes
_keys_of: dict = {}  # of a registered class: a function that gives the keys of its children, if it has one
flatten, unflatten, tuple_tree = _core.flatten, _core.unflatten, _core.tuple_tree


def register(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes a class a container. `flatten_func` gives its children and anything else that is needed to make it again (hashable);
    `unflatten_func` makes one of both. `flatten_with_keys_func` gives pairs of a key and a child instead of the children."""
    if flatten_with_keys_func is not None:
        _keys_of[nodetype] = lambda value: [key for key, _ in flatten_with_keys_func(value)[0]]
    _core.register_tree(nodetype, flatten_func, unflatten_func)
    _flatten[nodetype] = flatten_func
    return nodetype


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes a dataclass a container of its fields, but for those of `meta_fields`, or whose metadata say `static`, which are static and need a
    hash. Those of `drop_fields` get their first values again."""
    fields = nodetype.__dataclass_fields__
    if meta_fields is None:
        meta_fields = tuple(name for name, field in fields.items() if field.metadata.get("static") and name not in drop_fields)
    names = tuple(name for name in fields if name not in (*meta_fields, *drop_fields)) if data_fields is None else tuple(data_fields)
    _fields[nodetype] = names

    def parts(value):
        return tuple(getattr(value, name) for name in names), tuple(getattr(value, name) for name in meta_fields)

    return register(nodetype, parts, lambda rest, children: nodetype(**dict(zip(names, children)), **dict(zip(meta_fields, rest))))


def register_pytree_node_class(cls):
    """Makes a class with the methods tree_flatten() and tree_unflatten(rest, children) a container."""
    return register(cls, cls.tree_flatten, cls.tree_unflatten)


register(collections.OrderedDict, lambda each: (tuple(each.values()), tuple(each)), lambda keys, children: collections.OrderedDict(zip(keys, children)))
register(collections.defaultdict, lambda each: (tuple(each[key] for key in sorted(each)), (each.default_factory, tuple(sorted(each)))),
         lambda rest, children: collections.defaultdict(rest[0], zip(rest[1], children)))  # fmt: skip


def map(f, tree, *others, is_leaf=None):  # noqa: A001
    """The tree with `f` applied to its leaves, and to what other trees, which begin with the same structure, have in their places."""
    leaves, structure = flatten(tree, is_leaf)
    columns = [leaves, *(_parts_at_leaves(tree, other, is_leaf) for other in others)]
    return unflatten(structure, [f(*row) for row in zip(*columns)])


def _parts_at_leaves(tree, other, is_leaf):
    """What `other` has where the tree has its leaves."""
    if is_leaf is not None and is_leaf(tree):
        return [other]
    (children, top), (parts, its) = [flatten(each, lambda part, whole=each: part is not whole) for each in (tree, other)]
    if top.is_leaf:
        return [other]
    if top != its:
        raise Error(f"trees differ: {structure(tree)} and {structure(other)}")
    return [part for pair in zip(children, parts) for part in _parts_at_leaves(*pair, is_leaf)]


_NOTHING = object()


def reduce(function, tree, initializer=_NOTHING, is_leaf=None):
    """function(function(first leaf, second), ...) of all leaves, behind `initializer` where that is given."""
    return functools.reduce(function, leaves(tree, is_leaf), *([] if initializer is _NOTHING else [initializer]))


def reduce_associative(operation, tree, *, identity=None, is_leaf=None):
    """operation(first half, second half) of all leaves, halves of halves alike; `identity` of a tree without leaves."""

    def total(values):
        half = len(values) // 2
        return values[0] if len(values) == 1 else operation(total(values[:half]), total(values[half:]))

    values = leaves(tree, is_leaf)
    if not values and identity is None:
        raise Error("reduce_associative: the tree has no leaves (allowed: with an identity)")
    return total(values) if values else identity


def broadcast(prefix_tree, full_tree, is_leaf=None):
    """A tree of the structure of `full_tree`, whose leaves are those of `prefix_tree` in the places below them."""
    ends = lambda part: items(part) is None or (is_leaf is not None and is_leaf(part))
    return unflatten(structure(full_tree, is_leaf), broadcast_prefix(prefix_tree, structure(full_tree, is_leaf), ends))


def all(tree, *, is_leaf=None):  # noqa: A001
    """Whether all leaves are true."""
    return reduce(lambda one, leaf: one and bool(leaf), tree, True, is_leaf=is_leaf)


def transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """A tree of the structure `outer_treedef` whose leaves have the structure `inner_treedef`, as one of `inner_treedef` whose leaves have that of `outer_treedef`."""
    rows = [flatten(each) for each in _parts_at_leaves(unflatten(outer_treedef, range(outer_treedef.leaf_count)), pytree_to_transpose, None)]
    for _, its in rows:
        if its != inner_treedef:
            raise Error(f"transpose: a leaf of the outer tree is {its} (allowed: {inner_treedef})")
    return unflatten(inner_treedef, [unflatten(outer_treedef, column) for column in zip(*(leaves for leaves, _ in rows))])


class Key(tuple):
    """A step of a path: that of a dict's key, of a place, or of an attribute. Its text is what is written behind the container."""

    __slots__ = ()

    def __new__(cls, text, key):
        return super().__new__(cls, (text, key))

    key = property(lambda self: self[1], doc="The key of a dict, the place in a sequence, or the name of an attribute.")

    def __str__(self):
        return self[0]


class _Step(Key):
    """A key whose text follows from it."""

    __slots__ = ()
    _text = "[{!r}]"

    def __new__(cls, key):
        return Key.__new__(cls, cls._text.format(key), key)

    def __reduce__(self):
        return type(self), (self.key,)


class DictKey(_Step):
    """A key of a dict."""


class SequenceKey(_Step):
    """A place in a sequence."""

    idx = Key.key


class GetAttrKey(_Step):
    """The name of an attribute."""

    _text, name = ".{}", Key.key


class FlattenedIndexKey(_Step):
    """A place among children without names."""

    _text = "[<flat index {}>]"


def _keys(value, count):
    """The steps to the children of a container."""
    if type(value) in _keys_of:
        return _keys_of[type(value)](value)
    names = _fields.get(type(value), getattr(value, "_fields", getattr(value, "_children", None)))
    if names is not None:
        return [GetAttrKey(name) for name in names]
    if not isinstance(value, dict):
        return [SequenceKey(place) for place in range(count)]
    return [DictKey(key) for key in (value if isinstance(value, collections.OrderedDict) else sorted(value))]


def leaves_with_path(tree, is_leaf=None):
    """Pairs of the path to a leaf, a tuple of keys, and the leaf."""
    children, top = flatten(tree, lambda part: part is not tree or (is_leaf is not None and is_leaf(part)))
    if top.is_leaf:
        return [((), tree)]
    return [((key, *path), leaf) for key, child in zip(_keys(tree, len(children)), children) for path, leaf in leaves_with_path(child, is_leaf)]


def flatten_with_path(tree, is_leaf=None):
    """The same, and the structure."""
    return leaves_with_path(tree, is_leaf), structure(tree, is_leaf)


def map_with_path(f, tree, *others, is_leaf=None):
    """As map: `f` gets the path to the leaf first."""
    paths, structure = flatten_with_path(tree, is_leaf)
    columns = [_parts_at_leaves(tree, other, is_leaf) for other in others]
    return unflatten(structure, [f(*path_and_leaf, *row) for path_and_leaf, *row in zip(paths, *columns)])


def keystr(keys, *, simple=False, separator=""):
    """The text of a path: ['w'][0].bias, or `simple` w0bias, with a separator between its steps."""
    return separator.join(str(key.key if simple else key) for key in keys)


def items(value):
    """The children of a container, in order; None for a leaf."""
    if type(value) in _flatten:
        return list(_flatten[type(value)](value)[0])
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return list(value) if isinstance(value, (tuple, list)) else None


def broadcast_prefix(prefix, tree, is_leaf):
    """One item of `prefix` for each leaf of the structure `tree`; an item stands for all leaves below it."""
    if is_leaf(prefix):
        return [prefix] * tree.leaf_count
    children, below = items(prefix), tree.children
    if children is None or tree.is_leaf or len(children) != len(below):
        raise Error(f"{prefix!r} is no prefix of the tree {tree}")
    return [item for each, child in zip(children, below) for item in broadcast_prefix(each, child, is_leaf)]


def leaves(tree, is_leaf=None):
    return flatten(tree, is_leaf)[0]


def structure(tree, is_leaf=None):
    return flatten(tree, is_leaf)[1]
