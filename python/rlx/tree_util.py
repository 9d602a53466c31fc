"""rlx.tree by the names of jax.tree_util."""
import functools

from . import _trees
from ._core import tuple_tree as treedef_tuple
from ._trees import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr, register_dataclass, register_pytree_node_class
from ._trees import all as tree_all, broadcast as tree_broadcast, flatten as tree_flatten, flatten_with_path as tree_flatten_with_path
from ._trees import leaves as tree_leaves, leaves_with_path as tree_leaves_with_path, map as tree_map, map_with_path as tree_map_with_path
from ._trees import reduce as tree_reduce, reduce_associative as tree_reduce_associative, register as register_pytree_node, structure as tree_structure
from ._trees import transpose as tree_transpose, unflatten as tree_unflatten


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """As register_pytree_node; `flatten_with_keys` gives pairs of a key and a child."""

    def children(value):
        pairs, rest = flatten_with_keys(value)
        return tuple(child for _, child in pairs), rest

    return _trees.register(nodetype, flatten_func or children, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls):
    """Makes a class with the methods tree_flatten_with_keys() and tree_unflatten(rest, children) a container."""
    return register_pytree_with_keys(cls, cls.tree_flatten_with_keys, cls.tree_unflatten, getattr(cls, "tree_flatten", None))


def register_static(cls):
    """Makes a class a container without leaves: its values are static."""
    return _trees.register(cls, lambda value: ((), value), lambda value, _: value)


class Partial(functools.partial):
    """functools.partial as a container of its arguments."""


_trees.register(Partial, lambda each: ((each.args, each.keywords), each.func), lambda func, parts: Partial(func, *parts[0], **parts[1]))


def all_leaves(iterable, is_leaf=None):
    """Whether none is a container."""
    return all(_trees.structure(each, is_leaf).is_leaf for each in iterable)


def treedef_children(treedef):
    return treedef.children


def treedef_is_leaf(treedef):
    return treedef.leaf_count == 1 and treedef.is_leaf


__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "SequenceKey", "all_leaves", "keystr", "register_dataclass", "register_pytree_node",
           "register_pytree_node_class", "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
           "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
           "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple"]  # fmt: skip
