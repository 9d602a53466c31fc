"""Control flow: branches and loops of the registry over trees of arrays."""
from . import _core, _trees
from ._array import Array
from ._conversions import asarray
from ._core import Error
from ._dtypes import DType, is_integer
from ._tracing import flat_outputs, in_trace, leaf_of, Traced


def _arrays(leaves):
    return [leaf_of(leaf) for leaf in leaves]


class _Branches:
    """What the branches of a choice give: all the same structure and types. What one gives as a number of Python takes the type that another has."""

    def __init__(self, what, names):
        self.what, self.names, self.wanted, self.seen = what, names, {}, []

    def checked(self, place, outputs, tree):
        """The outputs in the types that all branches need."""
        outputs = [_in_type(x, self.wanted.get(i, x._dtype)) for i, x in enumerate(outputs)]
        self.seen.append((tree, [(x._dtype, x._weak, x._type_text()) for x in outputs]))
        (tree_of_first, first), (_, here) = self.seen[0], self.seen[-1]
        if tree == tree_of_first:
            self._join(first, here)
        for part, one, other in [("the structure", tree_of_first, tree), *((f"result {i}", x[2], y[2]) for i, (x, y) in enumerate(zip(first, here)))]:
            if one != other:
                raise Error(f"rlx.{self.what}: {part} is {one} from {self.names[0]} and {other} from {self.names[place]} (allowed: the same of all)")
        return outputs

    def _join(self, first, here):
        joined = {i: _joined(x, y) for i, (x, y) in enumerate(zip(first, here)) if x[0] != y[0] and (x[1] or y[1])}
        if any(self.wanted.get(i) != dtype for i, dtype in joined.items()):
            raise _OtherTypes(joined)

    def run(self, choose):
        """choose(), again where branches need other types."""
        while True:
            try:
                results = list(choose())
            except _OtherTypes as other:
                self.wanted.update(other.args[0])
                self.seen = []
                continue
            for result, *of_branches in zip(results, *(types for _, types in self.seen)):
                if all(is_weak for _, is_weak, _ in of_branches):
                    result._set_weak()
            return results


def _in_type(x, dtype):
    """A number of Python in that type, and one still."""
    if not x._weak or x._dtype == dtype:
        return x
    made = _core.apply("cast", (x, dtype), {})
    made._set_weak()
    return made


def _joined(*types):
    """The type that arithmetic of both has."""
    arrays = [asarray(0, dtype) for dtype, _, _ in types]
    for array, (_, is_weak, _) in zip(arrays, types):
        if is_weak:
            array._set_weak()
    return _core.apply("select", (asarray(True), *arrays), {})._dtype


def _check_same(what, one, other):
    if one != other:
        raise Error(f"{what}: structures differ: {one} and {other}")


class _OtherTypes(Exception):
    """The types in which a step needs its carries."""


class _Carries:
    """The carries of a loop. Those that start as numbers of Python take the types that the step gives them, as in JAX."""

    def __init__(self, arrays):
        self.weak = [array._weak and array._dtype != DType["bool"] for array in arrays]
        self.first = [_core.apply("cast", (array, array._dtype), {}) if array._weak else array for array in arrays]

    def marked(self, group):
        for array, weak in zip(group, self.weak):
            if weak:
                array._set_weak()
        return group

    def checked(self, group, outputs):
        """The outputs of a step, unless it needs other types of carries that may change theirs."""
        needed = [_core.apply("select", (asarray(True), x, y), {})._dtype if weak else x._dtype for weak, x, y in zip(self.weak, group, outputs)]
        if needed != [x._dtype for x in group]:
            raise _OtherTypes(needed)
        return outputs

    def run(self, loop):
        """loop(first), again where the step needs other types, which then stay."""
        while True:
            try:
                return self.marked(list(loop(self.first)))
            except _OtherTypes as other:
                needed = other.args[0]
            self.weak = [weak and dtype == array._dtype for weak, dtype, array in zip(self.weak, needed, self.first)]
            self.first = [_core.apply("cast", (array, dtype), {}) for array, dtype in zip(self.first, needed)]


_ABSENT = object()


def _all_operands(operands, operand):
    """With JAX's single one by its name."""
    return operands if operand is _ABSENT else (*operands, operand)


def cond(pred, true_fun, false_fun, *operands, operand=_ABSENT):
    """The result of true_fun(*operands) where `pred`, a bool or a number other than 0, holds, else that of false_function; only
    one of them runs."""
    given = leaf_of(pred)
    if given.ndim != 0:
        raise Error(f"rlx.cond: the predicate is {given._type_text()} (allowed: rank 0; rlx.numpy.where chooses for each element)")
    truth = _core.apply("cast", (given, "bool"), {})  # also of -1 and 0.5
    index = _core.apply("cast", (truth, "int32"), {})
    return _chosen("cond", index, [false_fun, true_fun], ["false_fun", "true_fun"], _all_operands(operands, operand))


def switch(index, branches, *operands, operand=_ABSENT):
    """The result of branches[index](*operands); an index outside takes the nearest branch."""
    given, branches = leaf_of(index), list(branches)
    if given.ndim != 0 or not is_integer(given.dtype):
        raise Error(f"rlx.switch: the index is {given._type_text()} (allowed: an integer of rank 0)")
    if not branches:
        raise Error("rlx.switch: there are no branches (allowed: one or more)")
    return _chosen("switch", given, branches, [f"branches[{i}]" for i in range(len(branches))], _all_operands(operands, operand))


def _chosen(what, index, branches, names, operands):
    """The result of one branch; errors of `what` call them by `names`."""
    leaves, tree = _trees.flatten(operands)
    made = _Branches(what, names)

    def traced(trace, inputs):
        def of(place, branch):
            def called(group):
                outputs, out_tree = flat_outputs(branch(*_trees.unflatten(tree, group)))
                return [made.checked(place, outputs, out_tree)]

            return Traced(trace, called)

        functions = [of(place, branch) for place, branch in enumerate(branches)]
        return made.run(lambda: _core.apply("switch_case", (inputs[0], inputs[1:], functions), {}))

    results = in_trace(what, _arrays([index, *leaves]), traced)
    return _trees.unflatten(made.seen[0][0], results)


def while_loop(cond_fun, body_fun, init_val):
    """carry = body_fun(carry) as long as cond_fun(carry) holds. Differentiable in forward mode."""
    leaves, tree = _trees.flatten(init_val)
    carried = _trees.tuple_tree([tree])

    def traced(trace, inputs):
        carries = _Carries(inputs)

        def holds(group):
            return [flat_outputs(cond_fun(*_trees.unflatten(carried, carries.marked(group))))[0]]

        def step(group):
            outputs, out_tree = flat_outputs(body_fun(*_trees.unflatten(carried, carries.marked(group))))
            _check_same("while_loop", tree, out_tree)
            return [carries.checked(group, outputs)]

        return carries.run(lambda first: _core.apply("while_loop", (Traced(trace, holds), Traced(trace, step), first), {}))

    return _trees.unflatten(tree, in_trace("while_loop", _arrays(leaves), traced))


def fori_loop(lower, upper, body_fun, init_val, unroll=1):
    """carry = body_fun(i, carry) for i from `lower` to `upper` - 1: numbers of Python, a Dim, or arrays, which make it a while_loop."""
    if isinstance(lower, Array) or isinstance(upper, Array):
        last = leaf_of(upper)
        for bound in (leaf_of(lower), last):
            if bound.ndim != 0 or not is_integer(bound.dtype):
                raise Error(f"fori_loop: a bound is {bound._type_text()} (allowed: an integer)")
        first = _core.apply("cast", (leaf_of(lower), last.dtype), {})
        return while_loop(lambda state: state[0] < last, lambda state: (state[0] + 1, body_fun(*state)), (first, init_val))[1]

    def step(i, value):
        return body_fun(i + lower if lower else i, value)

    leaves, tree = _trees.flatten(init_val)
    count = upper - lower
    count = max(count, 0) if isinstance(count, int) else count  # as of arrays: none where upper lies below

    def traced(trace, inputs):
        carries = _Carries(inputs)

        def called(index, group):
            outputs, out_tree = flat_outputs(step(index[0], _trees.unflatten(tree, carries.marked(group))))
            _check_same("fori_loop", tree, out_tree)
            return [carries.checked(group, outputs)]

        return carries.run(lambda first: _core.apply("fori_loop", (count, Traced(trace, called), first), {}))

    return _trees.unflatten(tree, in_trace("fori_loop", _arrays(leaves), traced))


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    """Runs carry, y = f(carry, x) for the slices x of `xs` along axis 0. Gives the last carry, and every y stacked along a new axis 0.
    JAX's hint `unroll` changes nothing."""
    carried, carry_tree = _trees.flatten(init)
    slices, xs_tree = _trees.flatten(xs)
    trees = []

    def traced(trace, inputs):
        carries = _Carries(inputs[: len(carried)])

        def called(carry_group, x_group):
            result = f(_trees.unflatten(carry_tree, carries.marked(carry_group)), _trees.unflatten(xs_tree, x_group))
            if not isinstance(result, tuple) or len(result) != 2:
                raise Error(f"scan: the step gives a {type(result).__name__} (allowed: a pair of carry and y)")
            (outputs, tree), (ys, y_tree) = flat_outputs(result[0]), flat_outputs(result[1])
            _check_same("scan", carry_tree, tree)
            trees.append(y_tree)
            return [carries.checked(carry_group, outputs), ys]

        return carries.run(lambda first: _core.apply("scan", (Traced(trace, called), first, inputs[len(carried) :], length, reverse), {}))

    results = in_trace("scan", _arrays([*carried, *slices]), traced)
    return _trees.unflatten(carry_tree, results[: len(carried)]), _trees.unflatten(trees[0], results[len(carried) :])


def associative_scan(fn, elems, reverse=False, axis=0):
    """Element k along `axis` is what `fn` makes of the elements 0..k; it gets several elements at once, where the size is no number one."""
    leaves, tree = _trees.flatten(elems)
    if any(not isinstance(_size(leaf, axis), int) for leaf in leaves):
        return _scanned(fn, leaves, tree, axis, reverse)

    def traced(trace, inputs):
        def called(earlier, later):
            outputs, out_tree = flat_outputs(fn(_trees.unflatten(tree, earlier), _trees.unflatten(tree, later)))
            _check_same("associative_scan", tree, out_tree)
            return [outputs]

        return list(_core.apply("associative_scan", (Traced(trace, called), inputs, axis, reverse), {}))

    return _trees.unflatten(tree, in_trace("associative_scan", _arrays(leaves), traced))


def _size(x, axis):
    return x.shape[axis] if isinstance(x, Array) and -x.ndim <= axis < x.ndim else 0


def _scanned(combine, leaves, tree, axis, reverse):
    """associative_scan along an axis of any size, one element after another."""
    from .numpy import concatenate, expand_dims, flip, moveaxis

    fronts = [moveaxis(flip(x, axis) if reverse else x, axis, 0) for x in leaves]
    element = lambda slices: _trees.unflatten(tree, [expand_dims(x, axis) for x in slices])
    front = lambda outputs: [moveaxis(y, axis, 0)[0] for y in _trees.flatten(outputs)[0]]

    def step(carry, slices):
        outputs = combine(element(carry), element(slices))
        _check_same("associative_scan", tree, _trees.flatten(outputs)[1])
        return (carry := front(outputs)), carry

    first = [x[0] for x in fronts]
    later = scan(step, first, [x[1:] for x in fronts])[1]
    all_elements = [moveaxis(concatenate([expand_dims(x, 0), y], 0), 0, axis) for x, y in zip(first, later)]
    return _trees.unflatten(tree, [flip(y, axis) if reverse else y for y in all_elements])


def map(f, xs, *, batch_size=None):  # noqa: A001
    """The results of f(x) for the slices x of `xs` along axis 0, stacked: one after another, or `batch_size` of them by vmap."""
    if batch_size is None:
        return scan(lambda carry, x: (carry, f(x)), (), xs)[1]
    from ._transforms import vmap
    from .numpy import concatenate, reshape

    count = len(_trees.leaves(xs)[0])
    whole = count // batch_size * batch_size
    batches = _trees.map(lambda x: reshape(x[:whole], (-1, batch_size, *x.shape[1:])), xs)
    joined = _trees.map(lambda y: reshape(y, (whole, *y.shape[2:])), map(vmap(f), batches))
    if whole == count:
        return joined
    return _trees.map(lambda y, rest: concatenate([y, rest]), joined, vmap(f)(_trees.map(lambda x: x[whole:], xs)))
