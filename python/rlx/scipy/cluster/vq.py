"""Functions of scipy.cluster.vq over rlx.Array."""
from ... import numpy as jnp
from ..._core import Error
from ...numpy.linalg import _of_one_type


def vq(obs, code_book, check_finite=True):
    """For each row of `obs` (or number) the place of the nearest row of `code_book`, and how far it is."""
    obs, code_book = _of_one_type(obs, code_book)
    if obs.ndim != code_book.ndim or obs.ndim not in (1, 2):
        raise Error(f"vq: {obs._type_text()} and {code_book._type_text()} (allowed: two matrices, or two vectors)")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    squares = jnp.sum((obs[:, None, :] - code_book[None, :, :]) ** 2, axis=-1)
    code = jnp.argmin(squares, axis=-1).astype("int32")
    nearest = jnp.take_along_axis(squares, code[:, None], axis=-1)[:, 0]
    apart = nearest > 0  # where it is 0 the derivative is
    return code, jnp.where(apart, jnp.sqrt(jnp.where(apart, nearest, 1.0)), 0.0)
