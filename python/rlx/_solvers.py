"""Solutions of equations, whose derivatives are those of the equations and not of the steps that found them."""
from . import _trees
from ._custom import custom_jvp, custom_vjp

_ORDERS = 2  # corrections: each Newton step doubles the order up to which derivatives hold


def _no_change(residual):
    from .numpy import zeros_like

    return _trees.map(zeros_like, residual)


def _step(inverse, transposed):
    """A function of residuals, which vanish, and parameters: 0, with the derivative inverse(parameters, tangent) by the residuals, of which
    `transposed` is the transpose. Rules capture nothing by which they are differentiated, so that parameters are handed to them."""
    forward = custom_jvp(lambda residual, parameters: _no_change(residual))
    forward.defjvp(lambda primals, tangents: (_no_change(primals[0]), inverse(primals[1], tangents[0])))
    both = custom_vjp(lambda residual, parameters: forward(residual, parameters))
    both.defvjp(lambda residual, parameters: (both(residual, parameters), parameters), lambda parameters, change: (transposed(parameters, change), None))
    return both


def _split(solution, has_aux):
    return solution if has_aux else (solution, None)


def _still(tree):
    from ._transforms import stop_gradient

    return _trees.map(stop_gradient, tree)


def _minus(one, other):
    return _trees.map(lambda a, b: a - b, one, other)


def _plus(one, other):
    return _trees.map(lambda a, b: a + b, one, other)


def _transposed(linear, y):
    """The transpose of a linear map of y to what is like y."""
    from ._transforms import vjp

    return vjp(linear, _no_change(y))[1](y)[0]


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """x with matvec(x) = b by solve(matvec, b). Its derivatives are further solutions: those backward by transpose_solve(transposed matvec, y), or
    by `solve` with `symmetric`; without either they are the transpose of `solve`. With `has_aux` `solve` gives a pair of x and more."""
    solution = linear_solution(lambda _, x: matvec(x), (), b, solve, solve if symmetric else transpose_solve, symmetric, has_aux)
    return solution if has_aux else solution[0]


def _array(x):
    from .numpy._base import array_of

    return array_of(x)


def linear_solution(map_of, parameters, b, solve, back, symmetric=False, has_aux=False, orders=_ORDERS):
    """The same of x -> map_of(parameters, x), whose derivatives backward pass by the parameters."""
    b = _trees.map(_array, b)
    x, aux = _split(solve(lambda x: map_of(parameters, x), b), has_aux)
    if orders == 0:
        return x, aux
    x = _still(x)

    def inverse(parameters, change):
        return linear_solution(map_of, parameters, change, solve, back, symmetric, has_aux, orders - 1)[0]

    def transposed(parameters, change):
        other = map_of if symmetric else lambda parameters, y: _transposed(lambda x: map_of(parameters, x), y)
        return linear_solution(other, parameters, change, back, solve, symmetric, has_aux, orders - 1)[0]

    step = _step(inverse, transposed) if back else lambda residual, _: _split(solve(lambda x: map_of(parameters, x), residual), has_aux)[0]
    for _ in range(orders):
        x = _plus(x, step(_minus(b, map_of(parameters, x)), parameters))
    return x, aux


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """x with f(x) = 0 by solve(f, initial_guess). Its derivatives come from tangent_solve(g, y), which gives v with g(v) = y for the derivative g
    of f at x. With `has_aux` `solve` gives a pair of x and more."""
    from ._transforms import jvp

    x, aux = _split(solve(f, _trees.map(_array, initial_guess)), has_aux)
    x = _still(x)
    for _ in range(_ORDERS):
        x = _minus(x, tangent_solve(lambda v: jvp(f, (x,), (v,))[1], f(x)))  # noqa: B023
    return (x, aux) if has_aux else x
