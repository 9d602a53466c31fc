"""Functions of nested containers, as jax.tree has them. Expected values are those of jax.tree 0.10."""
import collections
import dataclasses

import pytest

import rlx
from rlx import tree

P = collections.namedtuple("P", "a b")


def test_what_is_leaf_holds_for_is_a_leaf():
    assert tree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tree.map(lambda x: x is None, [None, 1], is_leaf=lambda x: x is None) == [True, False]
    assert tree.leaves({"a": (1, 2), "b": [3]}, is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert tree.map(len, {"a": (1, 2)}, is_leaf=lambda x: isinstance(x, tuple)) == {"a": 2}


def test_other_trees_may_go_on_below_the_leaves():
    assert tree.map(lambda x, d: d, {"a": 1, "b": 2}, {"a": {"x": 1}, "b": [2]}) == {"a": {"x": 1}, "b": [2]}
    assert tree.map(lambda x, y: x + y, P(1, (2,)), P(3, (4,))) == P(4, (6,))
    for other in ({"a": 1}, [1, 2], {"a": 1, "c": 2}, None):
        with pytest.raises(rlx.Error, match="trees differ"):
            tree.map(lambda x, y: x, {"a": 1, "b": 2}, other)
    with pytest.raises(rlx.Error, match="trees differ"):
        tree.map(lambda x, y: x, [1, None], [1, 2])


def test_a_named_tuple_may_have_a_length_of_its_own():
    class Longer(P):
        def __len__(self):
            return 19

        def __iter__(self):
            return iter(())

    assert tree.leaves(Longer(1, (2, 3))) == [1, 2, 3]
    assert tuple.__eq__(tree.map(lambda x: 2 * x, Longer(1, 2)), (2, 4))


def test_leaves_become_one():
    assert tree.reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]}) == 6 and tree.reduce(lambda a, b: a + b, [], 5) == 5
    assert tree.all({"a": True, "b": [1]}) is True and tree.all({"a": True, "b": [0]}) is False and tree.all(()) is True


def test_the_outer_structure_goes_inside():
    outer, inner = tree.structure((1, 1)), tree.structure({"a": 1, "b": 1})
    assert tree.transpose(outer, inner, ({"a": 1, "b": 2}, {"a": 3, "b": 4})) == {"a": (1, 3), "b": (2, 4)}
    with pytest.raises(rlx.Error, match="allowed: {'a': \\*, 'b': \\*}"):
        tree.transpose(outer, inner, ({"a": 1}, {"a": 3}))


@dataclasses.dataclass
class Data:
    w: object
    name: str


tree.register_dataclass(Data, data_fields=["w"], meta_fields=["name"])


@tree.register_pytree_node_class
class Node:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten(self):
        return (self.x, self.y), "rest"

    @classmethod
    def tree_unflatten(cls, rest, children):
        assert rest == "rest"
        return cls(*children)


def test_paths_name_leaves():
    value = {"b": P(1, [2]), "a": (Data(3, "n"), None), "c": Node(4, 5)}
    paths = tree.leaves_with_path(value)
    assert [(tree.keystr(path), leaf) for path, leaf in paths] == [("['a'][0].w", 3), ("['b'].a", 1), ("['b'].b[0]", 2), ("['c'][0]", 4), ("['c'][1]", 5)]
    assert paths[0][0][0].key == "a" and paths[1][0][1].key == "a" and tree.leaves_with_path(1) == [((), 1)]
    assert tree.map_with_path(lambda path, x, y: (tree.keystr(path), x + y), {"a": 1}, {"a": 2}) == {"a": ("['a']", 3)}
    assert tree.flatten_with_path(value)[1] == tree.structure(value)


def test_static_fields_are_part_of_the_structure():
    value = Data(1, "n")
    assert tree.leaves(value) == [1] and tree.map(lambda x: x + 1, value) == Data(2, "n")
    assert tree.structure(value) != tree.structure(Data(1, "m"))
    assert tree.leaves(tree.map(lambda x: x * 2, Node(1, (2,)))) == [2, 4]


def test_every_kind_of_dict_is_a_container():
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    counted = collections.defaultdict(list, {"b": 1, "a": 2})
    assert tree.leaves(ordered) == [1, 2] and tree.leaves(counted) == [2, 1]
    assert list(tree.map(lambda x: x, ordered)) == ["b", "a"] and tree.map(lambda x: x, counted)["c"] == []
    assert rlx.jit(lambda d: d["b"] + 1)(ordered).tolist() == 2
    assert rlx.vmap(lambda d: d["a"] * d["b"], in_axes=(collections.OrderedDict(b=0, a=None),))(collections.OrderedDict(b=rlx.array([1, 2]), a=3)).tolist() == [3, 6]


def test_a_structure_makes_its_containers_again():
    leaves, structure = rlx.tree_util.tree_flatten({"a": [1, None], "b": (2,)})
    assert structure.num_leaves == 2 and structure.unflatten(leaf + 1 for leaf in leaves) == {"a": [2, None], "b": (3,)}
