"""The examples of NumPy's own documentation: an expression must have the same value by rlx.numpy. What has no place here (assignment to
elements, `out`, records, texts) ends the examples of its function."""
import doctest
import warnings

import numpy as np

import rlx.numpy as jnp

# Functions of which an example differs, and why.
DIFFERENT = {
    "arange": "a step of 0.5 among integers",
    "bitwise_invert bitwise_not invert conj conjugate": "asks whether two names are one object",
    "can_cast": "complex is complex64 here",
    "empty empty_like": "what lay in memory",
    "fill_diagonal place put put_along_axis": "arrays do not change: there is a new one",
    "geomspace": "f32 rounds to other integers",
    "promote_types result_type": "types meet as in JAX: a float keeps its width",
    "allclose isclose logaddexp logaddexp2 nan_to_num nextafter spacing tan prod": "f32 and i32 where NumPy takes 64 bits",
    "isscalar": "an array without axes is a scalar, as in JAX",
    "partition": "all elements are in order",
    "ravel": "order A asks how NumPy's memory lies",
    "trim_zeros": "vectors alone",
    "unique_values": "in order",
}
WORDS = ("import ", "print(", "random", "empty(", "%timeit", "plt.", "help(")


def value_of(source, names):
    try:
        code = compile(source, "example", "eval")
    except SyntaxError:
        return exec(compile(source, "example", "exec"), names)
    return eval(code, names)


def parts_of(value):
    return [part for each in value for part in parts_of(each)] if isinstance(value, (tuple, list)) else [value]


def is_same(seen, expected):
    seen, expected = parts_of(seen), parts_of(expected)
    if len(seen) != len(expected):
        return False
    for one, other in zip(seen, expected):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            return False
        if not (np.allclose(one.astype(complex), other.astype(complex), rtol=1e-4, atol=1e-5, equal_nan=True) if other.dtype.kind in "biufc" else np.array_equal(one, other)):
            return False
    return True


def compare(function, counts):
    """The first example that differs, as text."""
    theirs, ours = {"np": np}, {"np": jnp}
    for example in doctest.DocTestParser().get_examples(function.__doc__):
        if any(word in example.source for word in WORDS):
            continue
        try:
            expected = value_of(example.source, theirs)
            seen = value_of(example.source, ours)
        except Exception:
            return None
        if expected is None or isinstance(expected, (str, type)):
            continue
        if not is_same(seen, expected):
            return f"{example.source.strip()}: {seen} instead of {expected}"
        counts.append(example)
    return None


def test_examples_have_the_same_values():
    allowed = {name for names in DIFFERENT for name in names.split()}
    counts, wrong = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mine, module in ((jnp, np), (jnp.linalg, np.linalg), (jnp.fft, np.fft)):
            for name in sorted(set(dir(mine)) & set(dir(module))):
                function = getattr(module, name)
                if name[0] == "_" or not callable(function) or isinstance(function, type) or not function.__doc__:
                    continue
                difference = compare(function, counts)
                if difference and name not in allowed:
                    wrong[name] = difference
    assert not wrong, wrong
    assert len(counts) > 600, len(counts)
