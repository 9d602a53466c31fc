"""Functions of scipy.optimize over rlx.Array."""
from typing import Any, NamedTuple

from .. import numpy as jnp
from .._control import while_loop
from .._core import Error
from .._transforms import value_and_grad
from ..numpy._base import float_of


class OptimizeResults(NamedTuple):
    """What minimize found: `status` 0 is a gradient small enough, 1 too many steps, 3 a direction in which nothing gets less."""

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


_LESS, _FLATTER = 1e-4, 0.9  # of Wolfe's conditions


def _line_search(along, value, slope, most):
    """A step with Wolfe's weak conditions, by doubling and halving (Lewis and Overton 2013), which keep the curvature positive. Where rounding hides
    that values get less, slopes say it (Hager and Zhang 2005). Gives the step, the value, the gradient, how many were tried, and whether it is one."""
    noise = 4 * jnp.finfo(value.dtype).eps * abs(value)

    def body(state):
        low, high, step, tried, *_ = state
        fun, gradient, here = along(step)
        hidden = (fun <= value + noise) & (here <= (2 * _LESS - 1) * slope)
        too_far = ~((fun <= value + _LESS * step * slope) | hidden)
        too_near = ~too_far & (here < _FLATTER * slope)
        low, high = jnp.where(too_near, step, low), jnp.where(too_far, step, high)
        done = ~too_far & ~too_near
        after = jnp.where(high < jnp.inf, 0.5 * (low + high), 2.0 * step)
        return low, high, jnp.where(done, step, after), tried + 1, fun, gradient, done

    zero = jnp.zeros_like(value)
    fun, gradient, _ = along(zero)
    start = (zero, zero + jnp.inf, zero + 1.0, jnp.asarray(0, "int32"), fun, gradient, jnp.asarray(False))
    _, _, step, tried, fun, gradient, done = while_loop(lambda state: ~state[-1] & (state[3] < most), body, start)
    return step, fun, gradient, tried, done


def minimize(fun, x0, args=(), *, method, tol=None, options=None):
    """The least value of fun(x, *args), a float, near the vector x0, by the method BFGS with the gradient of `fun`. Options: gtol (1e-5, or `tol`),
    below which is the largest element of the gradient, or with `norm` its norm of that order; maxiter (200 for each element);
    line_search_maxiter (40). Works in compiled functions."""
    given = {"gtol": 1e-5 if tol is None else tol, "norm": jnp.inf, "maxiter": None, "line_search_maxiter": 40}
    if method.lower() != "bfgs" or not isinstance(args, tuple) or set(options or {}) - set(given):
        raise Error(f"minimize: method is {method!r}, args a {type(args).__name__}, options {sorted(options or {})} (allowed: BFGS, a tuple, {', '.join(given)})")
    given.update(options or {})
    x0 = float_of(x0)
    if x0.ndim != 1:
        raise Error(f"minimize: x0 is {x0._type_text()} (allowed: a vector)")
    n, both = x0.shape[0], value_and_grad(lambda x: fun(x, *args))
    most = n * 200 if given["maxiter"] is None else given["maxiter"]
    small = lambda gradient: jnp.linalg.norm(gradient, ord=given["norm"]) < given["gtol"]  # noqa: E731
    one = jnp.eye(n, dtype=x0.dtype)

    def body(state):
        x, value, gradient, inverse, count, calls, _ = state
        direction = -(inverse @ gradient)

        def along(step):
            fun, gradient = both(x + step * direction)
            return fun, gradient, gradient @ direction

        step, value, after, tried, found = _line_search(along, value, gradient @ direction, given["line_search_maxiter"])
        moved, change = step * direction, after - gradient
        curvature = moved @ change
        usable = found & (curvature > 0)
        scale = jnp.where(usable, 1.0 / jnp.where(usable, curvature, 1.0), 0.0)
        turned = one - scale * jnp.outer(moved, change)
        inverse = jnp.where(usable, turned @ inverse @ turned.T + scale * jnp.outer(moved, moved), inverse)
        kept = lambda new, old: jnp.where(found, new, old)  # noqa: E731
        return kept(x + moved, x), kept(value, state[1]), kept(after, gradient), inverse, count + 1, calls + tried + 1, ~found

    value, gradient = both(x0)
    start = (x0, value, gradient, one, jnp.asarray(0, "int32"), jnp.asarray(1, "int32"), jnp.asarray(False))
    going = lambda state: ~small(state[2]) & ~state[-1] & (state[4] < most)  # noqa: E731
    x, value, gradient, inverse, count, calls, stuck = while_loop(going, body, start)
    success = small(gradient)
    status = jnp.where(success, 0, jnp.where(stuck, 3, 1)).astype("int32")
    return OptimizeResults(x, success, status, value, gradient, inverse, calls, calls, count)


__all__ = ["OptimizeResults", "minimize"]
