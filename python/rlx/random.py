"""Random numbers from keys: the same key gives the same numbers, on every machine."""
from ._array import _call
from ._conversions import _implicit, asarray
from ._core import Error
from ._dtypes import DType, as_dtype, is_numpy


def key(seed, impl=None):
    """A key from a number of 0..2^64-1, or an array of one. Numbers are Philox's, whatever `impl` says."""
    if hasattr(seed, "dtype"):
        wide = asarray(seed).astype("uint64")
        return _call("stack", [wide, wide >> 32]).astype("uint32")
    if not isinstance(seed, int) or not -(2**63) <= seed < 2**64:
        raise Error(f"key: {seed!r} (allowed: an integer of 0..2^64-1)")
    return asarray([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF], dtype="uint32")


def _checked(key):
    if not hasattr(key, "dtype"):
        seen = repr(key) if isinstance(key, (int, str)) or key is None else f"a {type(key).__name__}"
        raise Error(f"rlx.random: the key is {seen} (allowed: a key, which rlx.random.key(0) makes of the number 0)")
    key = _implicit(key)
    if key.dtype != DType.u32 or key.shape != (2,):
        raise Error(f"rlx.random: the key is {key._type_text()} (allowed: u32[2], which rlx.random.key(0) makes of the number 0)")
    return key


def _drawn(name, key, *rest):
    """A function of the registry of a key and more."""
    return _call(name, _checked(key), *rest)


def fold_in(key, data):
    """A key for the `data`-th of many independent streams."""
    return _drawn("random_key", key, asarray(data, dtype="uint32"))


def split(key, num=2):
    """Several independent keys, fold_in(key, 0), fold_in(key, 1), ..., along axis 0, or in a shape."""
    shape = tuple(num) if isinstance(num, (tuple, list)) else (num,)
    index = _call("iota", asarray(0.0), [_count(shape)], DType.u32, 0)
    zero = _call("zeros_like", index)
    words = _call("philox_4x32", _call("stack", [index, zero, zero, _call("ones_like", index)], 1), _checked(key))
    return words[:, :2].reshape(*shape, 2)


def bits(key, shape=(), dtype=DType.u32):
    """Random bits as unsigned integers of 8 to 64."""
    dtype = as_dtype(dtype)
    if dtype == DType.u64:
        words = _drawn("random_bits", key, [*shape, 2]).astype(dtype)
        return words[..., 0] + (words[..., 1] << 32)
    if dtype not in (DType.u8, DType.u16, DType.u32):
        raise Error(f"random.bits: {dtype} (allowed: uint8, uint16, uint32, uint64)")
    words = _drawn("random_bits", key, list(shape))
    return words if dtype == DType.u32 else (words >> (32 - int(dtype.name[1:]))).astype(dtype)


def _number_of(value):
    """A number of NumPy as one of Python; others as they are."""
    return value.item() if is_numpy(value) and value.ndim == 0 else value


def _are_numbers(*values):
    return all(isinstance(each, (int, float)) for each in values)


def uniform(key, shape=(), dtype=DType.f32, minval=0.0, maxval=1.0):
    """In minval..maxval without maxval; both may be arrays that broadcast to the shape."""
    low, high = _number_of(minval), _number_of(maxval)
    if _are_numbers(low, high):
        return _drawn("random_uniform", key, list(shape), dtype, low, high)
    low, high = [_call("broadcast_to", asarray(each, dtype), list(shape)) for each in (low, high)]
    return uniform(key, shape, dtype) * (high - low) + low


def normal(key, shape=(), dtype=DType.f32):
    """Of mean 0 and deviation 1."""
    return _drawn("random_normal", key, list(shape), dtype)


def randint(key, shape, minval, maxval, dtype=DType.i32):
    """Integers in minval..maxval - 1. These may be arrays that broadcast to the shape: where there is no integer between them it is
    minval, and none is drawn from minval + 2^32."""
    low, high = _number_of(minval), _number_of(maxval)
    if _are_numbers(low, high):
        return _drawn("random_integers", key, list(shape), low, high, dtype)
    low, high = [_call("broadcast_to", asarray(each, DType.i64), list(shape)) for each in (low, high)]
    count = (high - low).clip(0, 2**32).astype(DType.u64)
    return (low + (bits(key, shape).astype(DType.u64) * count >> 32).astype(DType.i64)).astype(dtype)


def gumbel(key, shape=(), dtype=DType.f32, mode=None):
    return _drawn("random_gumbel", key, list(shape), dtype)


def bernoulli(key, p=0.5, shape=None, mode=None):
    """True with probability p, a number or an array that broadcasts to the shape."""
    p, sizes = _number_of(p), _shape_of(shape, p)
    return _drawn("random_bernoulli", key, list(sizes), p) if _are_numbers(p) else uniform(key, sizes) < _call("broadcast_to", asarray(p), list(sizes))


def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None):
    """Positions along an axis, drawn with probability softmax(logits). `shape`, of which the last sizes are those of the other axes, says how many;
    without `replace` those of its first sizes differ."""
    if shape is None:
        return _drawn("categorical", key, logits, axis)
    logits = _call("move_axis", asarray(logits), axis, -1)
    first = len(shape) - (logits.ndim - 1)
    if replace:
        return _drawn("categorical", key, _call("broadcast_to", logits, [*shape, logits.shape[-1]]), -1)
    noisy = _call("broadcast_to", logits, [*shape[first:], logits.shape[-1]]) + gumbel(key, (*shape[first:], logits.shape[-1]), logits.dtype)
    found = _call("top_k", noisy, _count(shape[:first]), -1)[1].astype("int32")
    return _call("move_axis", found, -1, 0).reshape(tuple(shape))


def permutation(key, x, axis=0, independent=False):
    """The numbers 0 .. x - 1, or the slices of an array, in any order; with `independent` the elements of each line by themselves."""
    x = _numbers_of(x)
    axis %= x.ndim
    if independent:
        return _call("take_along_axis", x, _call("argsort", bits(key, x.shape), axis), axis)
    return _call("take", x, _call("argsort", bits(key, (x.shape[axis],)), 0), axis)


def _numbers_of(x):
    """0 .. x - 1 of a number, else the array."""
    x = _number_of(x)
    return _call("iota", asarray(0.0), [x], DType.i32) if isinstance(x, int) else asarray(x)


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Elements of 0 .. a - 1, or slices of an array, drawn with probabilities p (by themselves equal ones)."""
    a = _numbers_of(a)
    axis %= a.ndim
    n, count = a.shape[axis], _count(shape)
    if not replace and count > n:
        raise Error(f"choice: {count} of {n} without replacement")
    if replace and p is None:
        at = randint(key, shape, 0, n)
    elif replace:
        edges = _call("cumsum", asarray(p), 0)
        at = _call("searchsorted", edges, edges[-1] * (1 - uniform(key, shape, edges.dtype)), False)
    else:
        noise = gumbel(key, (n,)) if p is None else gumbel(key, (n,)) + _call("log", asarray(p))
        at = _call("argsort", -noise, 0)[:count].reshape(tuple(shape))
    return _call("take", a, at, axis)


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def _shape_of(shape, *parameters):
    """The given shape, or that of the parameters."""
    from .numpy import broadcast_shapes

    return tuple(shape) if shape is not None else broadcast_shapes(*[asarray(each).shape for each in parameters])


def _positive(key, shape, dtype):
    """Uniform in 0..1 without 0."""
    return 1.0 - uniform(key, shape, dtype)


def exponential(key, shape=(), dtype=DType.f32):
    """Of density e^-x."""
    return -_call("log", _positive(key, shape, dtype))


def laplace(key, shape=(), dtype=DType.f32):
    """Of density e^-|x| / 2."""
    first, second = split(key)
    return exponential(first, shape, dtype) * rademacher(second, shape, dtype)


def logistic(key, shape=(), dtype=DType.f32):
    """Of density e^-x / (1 + e^-x)^2."""
    first, second = split(key)
    return _call("log", exponential(first, shape, dtype) / exponential(second, shape, dtype))


def cauchy(key, shape=(), dtype=DType.f32):
    """Of density 1 / (pi (1 + x^2))."""
    return _call("tan", 3.141592653589793 * (uniform(key, shape, dtype) - 0.5))


def rademacher(key, shape=(), dtype=DType.i32):
    """-1 or 1."""
    return _call("cast", bernoulli(key, 0.5, shape), dtype) * 2 - 1


def lognormal(key, sigma=1.0, shape=None, dtype=DType.f32):
    """e to the power of normal numbers of deviation sigma."""
    return _call("exp", normal(key, _shape_of(shape, sigma), dtype) * sigma)


def rayleigh(key, scale=1.0, shape=None, dtype=DType.f32):
    """Of density x / scale^2 e^(-x^2 / (2 scale^2))."""
    return scale * _call("sqrt", 2.0 * exponential(key, _shape_of(shape, scale), dtype))


def pareto(key, b, shape=None, dtype=DType.f32):
    """Of density b / x^(b + 1) from 1."""
    return _call("exp", exponential(key, _shape_of(shape, b), dtype) / b)


def weibull_min(key, scale, concentration, shape=(), dtype=DType.f32):
    """scale times exponential numbers to the power of 1 / concentration."""
    return scale * exponential(key, shape, dtype) ** (1.0 / concentration)


def maxwell(key, shape=(), dtype=DType.f32):
    """The length of three normal numbers."""
    return _call("sqrt", _call("sum", _call("square", normal(key, (*shape, 3), dtype)), [-1]))


def triangular(key, left, mode, right, shape=None, dtype=DType.f32):
    """Of a density that rises from left to mode and falls to right."""
    u = uniform(key, _shape_of(shape, left, mode, right), dtype)
    rising, width = mode - left, right - left
    low, high = left + _call("sqrt", u * (rising * width)), right - _call("sqrt", (1.0 - u) * ((right - mode) * width))
    return _call("where", u * width < rising, low, high)


def truncated_normal(key, lower, upper, shape=None, dtype=DType.f32):
    """Normal numbers in lower..upper."""
    from .numpy import clip
    from .scipy.special import ndtr, ndtri

    lower, upper = [asarray(each, dtype) for each in (lower, upper)]
    sign = _call("where", lower > 0, -1.0, 1.0).astype(dtype)  # mirrored, as ndtr has no digits left where it is nearly 1
    ends = sign * lower, sign * upper
    low, high = [ndtr(each) for each in ends]
    x = ndtri(low + (high - low) * uniform(key, _shape_of(shape, lower, upper), dtype))
    return clip(sign * x, lower, upper)


def geometric(key, p, shape=None, dtype=DType.i32):
    """How often one tries until something of probability p happens."""
    u = _positive(key, _shape_of(shape, p), DType.f32)
    return _call("cast", _call("ceil", _call("log", u) / _call("log1p", -asarray(p, DType.f32))).clip(1.0), dtype)


def _gamma_factors(key, a, shape, dtype):
    """A gamma number of a, or of a + 1 where a < 1, and the logarithm of what makes it one of a; by rejection (Marsaglia & Tsang 2000)."""
    from ._control import while_loop

    a = asarray(a, dtype)
    sizes = _shape_of(shape, a)
    boosted = _call("where", a < 1, a + 1.0, a)
    d = boosted - 1 / 3
    c = _call("reciprocal", _call("sqrt", 9.0 * d))
    keys = split(key, 2)

    def missing(carry):
        return ~carry[1].all()

    def trial(carry):
        step, done, x = carry
        first, second = split(fold_in(keys[0], step))
        z = normal(first, sizes, dtype)
        v = 1 + c * z
        v = v * v * v
        safe = _call("where", v > 0, v, 1.0)
        taken = (v > 0) & (_call("log", _positive(second, sizes, dtype)) < 0.5 * z * z + d * (1 - safe + _call("log", safe)))
        return step + 1, done | taken, _call("where", ~done & taken, z, x)

    none = _call("broadcast_to", asarray(False), list(sizes))
    _, _, z = while_loop(missing, trial, (asarray(0), none, _call("full", asarray(0.0), list(sizes), 0, as_dtype(dtype))))
    v = 1 + c * z
    return d * v * v * v, _call("where", a < 1, _call("log", _positive(keys[1], sizes, dtype)) / a, 0.0)


def gamma(key, a, shape=None, dtype=DType.f32):
    """Of density x^(a - 1) e^-x / gamma(a). Its derivative by a is that of the numbers that were taken."""
    x, log_factor = _gamma_factors(key, a, shape, dtype)
    return x * _call("exp", log_factor)


def loggamma(key, a, shape=None, dtype=DType.f32):
    """The logarithm of gamma numbers, of a small a too, most of whose numbers are 0."""
    x, log_factor = _gamma_factors(key, a, shape, dtype)
    return _call("log", x) + log_factor


def beta(key, a, b, shape=None, dtype=DType.f32):
    """Of density x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    first, second = split(key)
    sizes = _shape_of(shape, a, b)
    return _call("sigmoid", loggamma(first, a, sizes, dtype) - loggamma(second, b, sizes, dtype))


def dirichlet(key, alpha, shape=None, dtype=DType.f32):
    """Vectors of gamma numbers divided by their sum."""
    alpha = asarray(alpha, dtype)
    return _call("softmax", loggamma(key, alpha, (*(alpha.shape[:-1] if shape is None else shape), alpha.shape[-1]), dtype), -1)


def chisquare(key, df, shape=None, dtype=DType.f32):
    """The sum of the squares of df normal numbers."""
    return 2.0 * gamma(key, asarray(df, dtype) / 2.0, shape, dtype)


def t(key, df, shape=(), dtype=DType.f32):
    """Student's distribution."""
    first, second = split(key)
    sizes, df = _shape_of(shape, df), asarray(df, dtype)
    return normal(first, sizes, dtype) * _call("sqrt", df / chisquare(second, df, sizes, dtype))


def f(key, dfnum, dfden, shape=None, dtype=DType.f32):
    """The quotient of two chi-square numbers, each over its degrees of freedom."""
    first, second = split(key)
    sizes = _shape_of(shape, dfnum, dfden)
    return (chisquare(first, dfnum, sizes, dtype) / dfnum) / (chisquare(second, dfden, sizes, dtype) / dfden)


def poisson(key, lam, shape=None, dtype=DType.i32):
    """How many events of rate lam there are: those of a thousand rates and more by the normal distribution."""
    from ._control import while_loop
    from .numpy import clip, floor

    lam = asarray(lam, DType.f32)
    sizes = _shape_of(shape, lam)
    first, second = split(key)
    small = _call("where", lam < 1000, lam, 0.0)

    def goes_on(carry):
        return (carry[1] < small).any()

    def event(carry):
        step, total, count = carry
        total = total + exponential(fold_in(first, step), sizes)
        return step + 1, total, count + (total < small).astype(DType.i32)

    zero = _call("full", asarray(0.0), list(sizes), 0, DType.f32)
    count = while_loop(goes_on, event, (asarray(0), zero, zero.astype(DType.i32)))[2]
    large = clip(floor(lam + _call("sqrt", lam) * normal(second, sizes) + 0.5), 0.0)
    return _call("where", lam < 1000, count, large.astype(DType.i32)).astype(dtype)


def binomial(key, n, p, shape=None, dtype=DType.f32):
    """How many of n tries of probability p succeed. The largest n must be known."""
    sizes = _shape_of(shape, n, p)
    n = asarray(n, DType.i32)
    most = int(_call("reduce_max", n.reshape(-1), [0])) if n.size else 0
    tries = uniform(key, (most, *sizes)) < asarray(p, DType.f32)
    counted = tries & (_call("iota", asarray(0.0), [most, *sizes], DType.i32, 0) < n)
    return _call("sum", counted.astype(DType.i32), [0]).astype(dtype)


def multivariate_normal(key, mean, cov, shape=None, dtype=DType.f32, method="cholesky"):
    """Normal vectors of a mean and covariances, whose roots are Cholesky's, or by `method` eigh or svd those of their eigenvalues, which may be 0."""
    mean, cov = asarray(mean, dtype), asarray(cov, dtype)
    sizes = tuple(shape) if shape is not None else cov.shape[:-2]
    z = normal(key, (*sizes, mean.shape[-1]), dtype)
    return mean + _call("matmul", _root(cov, method), z[..., None])[..., 0]


def _root(cov, method):
    if method not in ("cholesky", "eigh", "svd"):
        raise Error(f"multivariate_normal: method is {method!r} (allowed: cholesky, eigh, svd)")
    if method == "cholesky":
        return _call("cholesky", cov)
    values, vectors = _call("eigh", cov)
    return vectors * _call("sqrt", _call("max", values, 0.0))[..., None, :]


def orthogonal(key, n, shape=(), dtype=DType.f32, m=None):
    """Orthogonal (n, n) matrices, uniformly, or (n, m) ones with orthonormal rows or columns, whichever are fewer."""
    m = n if m is None else m
    q, r = _call("qr", normal(key, (*shape, max(n, m), min(n, m)), dtype))
    q = q * _call("sign", _call("diagonal", r, -2, -1))[..., None, :]
    return q.mT if n < m else q


def ball(key, d, p=2, shape=(), dtype=DType.f32):
    """Points in the ball of d dimensions, 1 around 0 by the p-norm, uniformly."""
    first, second, third = split(key, 3)
    size = gamma(first, 1.0 / p, (*shape, d), dtype) ** (1.0 / p)
    g = size * rademacher(second, (*shape, d), dtype)
    e = exponential(third, shape, dtype)
    return g / (_call("sum", _call("abs", g) ** float(p), [-1]) + e)[..., None] ** (1.0 / p)


def generalized_normal(key, p, shape=(), dtype=DType.f32):
    """Of density proportional to e^-|x|^p."""
    first, second = split(key)
    return rademacher(first, shape, dtype) * gamma(second, 1.0 / p, shape, dtype) ** (1.0 / p)


def double_sided_maxwell(key, loc, scale, shape=(), dtype=DType.f32):
    """loc plus or minus scale times the length of three normal numbers; the shape is followed by that of the parameters."""
    first, second = split(key)
    sizes = (*(shape or _shape_of(None, loc, scale)), *_shape_of(None, loc, scale))
    return rademacher(first, sizes, dtype) * maxwell(second, sizes, dtype) * scale + loc


def wald(key, mean, shape=None, dtype=DType.f32):
    """When a random walk of drift 1 first reaches `mean`, by Michael, Schucany and Haas (1976)."""
    first, second = split(key)
    sizes = _shape_of(shape, mean)
    mean = _call("broadcast_to", asarray(mean, dtype), list(sizes))
    y = _call("square", normal(first, sizes, dtype))
    # the smaller root of x^2 - (2 mean + mean^2 y) x + mean^2, whose terms would cancel
    x = 2.0 * mean / (2.0 + mean * y + _call("sqrt", 4.0 * mean * y + mean * mean * y * y))
    return _call("where", uniform(second, sizes, dtype) * (mean + x) <= mean, x, mean * mean / x)


def multinomial(key, n, p, *, shape=None, dtype=DType.f32):
    """How many of n draws fall on each position of the last axis of p, its probabilities. The largest n must be known."""
    n, p = asarray(n, DType.i32), asarray(p, DType.f32)
    sizes = tuple(shape)[:-1] if shape is not None else _shape_of(None, n, p[..., 0])
    most = int(_call("reduce_max", n.reshape(-1), [0])) if n.size else 0
    edges = _call("cumsum", p, -1)
    u = uniform(key, (most, *sizes))[..., None] * edges[..., -1:]
    at = _call("sum", (u >= edges[..., :-1]).astype(DType.i32), [-1])
    at = _call("where", _call("iota", at, [most, *sizes], DType.i32, 0) < n, at, -1)
    places = _call("iota", at, [p.shape[-1]], DType.i32)
    return _call("sum", (at[..., None] == places).astype(DType.i32), [0]).astype(dtype)


def key_data(keys):
    """The words of keys, which are arrays of them."""
    return asarray(keys)


def clone(key):
    """The key: nothing counts how often it is used."""
    return key


wrap_key_data = key_data
PRNGKey = key
