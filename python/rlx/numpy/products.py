"""Products of matrices and vectors."""
import operator

from .._core import Error
from ._base import array_of, call, place_of, products, public, rounded_to, sizes_of, widened, written
from .arrangement import moveaxis, reshape
from .elementwise import conj
from .reductions import sum


def matmul(x, y, precision=None, preferred_element_type=None):
    """The matrix product; leading axes broadcast."""
    return products("matmul", x, y, preferred_element_type)


def dot(x, y, precision=None, preferred_element_type=None):
    """NumPy's dot: of matrices their product, of numbers too."""
    x, y = array_of(x), array_of(y)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return tensordot(x, y, ([-1], [-2]) if y.ndim > 1 else 1, precision, preferred_element_type)


def vdot(x, y, precision=None, preferred_element_type=None):
    """The sum of the products of all elements, those of x conjugated."""
    x, y = array_of(x), array_of(y)
    if x.size != y.size:
        raise Error(f"vdot: {x._type_text()} and {y._type_text()} (allowed: as many elements)")
    x, y = widened((x, y), preferred_element_type)
    return rounded_to(preferred_element_type, sum(conj(reshape(x, -1)) * reshape(y, -1)))


def vecdot(x, y, axis=-1, precision=None, preferred_element_type=None):
    """The sum of products along an axis of each, the elements of x conjugated; the other axes broadcast."""
    x, y = moveaxis(array_of(x), axis, -1), moveaxis(array_of(y), axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise Error(f"vecdot: axis {axis} has size {x.shape[-1]} in x, {y.shape[-1]} in y (allowed: equal sizes)")
    x, y = widened((x, y), preferred_element_type)
    terms = conj(x) * y
    return rounded_to(preferred_element_type, sum(terms, axis=-1, dtype=terms.dtype))


def tensordot(x, y, axes=2, precision=None, preferred_element_type=None):
    """The sum of products over pairs of axes."""
    x, y = array_of(x), array_of(y)
    if isinstance(axes, int):
        axes = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    left, right = [[place_of(axis, z.ndim) for axis in sizes_of(each)] for z, each in zip((x, y), axes)]
    return products("dot", x, y, preferred_element_type, left, right)


def outer(x, y):
    """The products of all pairs of elements."""
    return reshape(x, (-1, 1)) * reshape(y, (1, -1))


def kron(x, y):
    """Kronecker's product."""
    x, y = array_of(x), array_of(y)
    rank = max(x.ndim, y.ndim)
    x, y = [reshape(each, (1,) * (rank - each.ndim) + each.shape) for each in (x, y)]
    pairs = [reshape(each, [size for n in each.shape for size in ((n, 1) if each is x else (1, n))]) for each in (x, y)]
    return reshape(pairs[0] * pairs[1], [a * b for a, b in zip(x.shape, y.shape)])


def einsum(subscripts, *operands, optimize="optimal", precision=None, preferred_element_type=None, out=None):
    """Sums of products named by labels: "bij,bjk->bik". Operands may also come each before the list of its labels, numbers."""
    if not isinstance(subscripts, str):
        subscripts, operands = _labelled(subscripts, *operands)
    return written(rounded_to(preferred_element_type, _einsum(subscripts, widened(operands, preferred_element_type))), out)


def _labelled(*args):
    """The text for operands that come each before their labels, with those of the result at the end, if any."""
    letter = {i: chr(ord("A") + i) if i < 26 else chr(ord("a") + i - 26) for i in range(52)}
    text = [["..." if i is Ellipsis else letter[operator.index(i)] for i in labels] for labels in args[1::2]]
    result = "->" + "".join("..." if i is Ellipsis else letter[operator.index(i)] for i in args[-1]) if len(args) % 2 else ""
    return ",".join("".join(each) for each in text) + result, args[: len(args) // 2 * 2 : 2]


def _einsum(equation, operands):
    return call("einsum", equation.replace(" ", ""), [array_of(x) for x in operands])


__all__ = public(globals())
