"""Products of matrices and vectors."""
from ._base import array_of, call, public, sizes_of
from .arrangement import reshape
from .elementwise import conj
from .reductions import sum


def matmul(x, y):
    """The matrix product; leading axes broadcast."""
    return call("matmul", array_of(x), array_of(y))


def dot(x, y):
    """NumPy's dot: of matrices their product, of numbers too."""
    x, y = array_of(x), array_of(y)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return tensordot(x, y, ([-1], [-2])) if y.ndim > 1 else tensordot(x, y, 1)


def vdot(x, y):
    """The sum of the products of all elements, those of x conjugated."""
    return sum(conj(reshape(x, -1)) * reshape(y, -1))


def vecdot(x, y, axis=-1):
    """The sum of products along an axis, the elements of x conjugated."""
    products = conj(x) * array_of(y)
    return sum(products, axis=axis, dtype=products.dtype)


def tensordot(x, y, axes=2):
    """The sum of products over pairs of axes."""
    x, y = array_of(x), array_of(y)
    if isinstance(axes, int):
        axes = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    left, right = [[axis % z.ndim for axis in sizes_of(each)] for z, each in zip((x, y), axes)]
    return call("dot", x, y, left, right)


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


def einsum(equation, *operands):
    """Sums of products named by labels: "bij,bjk->bik"."""
    return call("einsum", equation.replace(" ", ""), [array_of(x) for x in operands])


__all__ = public(globals())
