"""Trees as one vector."""
from . import _trees
from . import numpy as jnp
from .numpy._base import array_of


def ravel_pytree(pytree):
    """All elements of a tree as one vector of the type that holds them, and the function that makes the tree of such a vector."""
    leaves, structure = _trees.flatten(pytree)
    arrays = [array_of(leaf) for leaf in leaves]

    def unravel(flat):
        parts, begin = [], 0
        for array in arrays:
            parts.append(flat[begin : begin + array.size].reshape(array.shape).astype(array.dtype))
            begin += array.size
        return _trees.unflatten(structure, parts)

    dtype = jnp.result_type(*arrays) if arrays else "float32"
    return jnp.concatenate([array.astype(dtype).reshape(-1) for array in arrays]) if arrays else jnp.zeros(0), unravel
