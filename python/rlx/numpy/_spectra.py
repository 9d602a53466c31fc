"""Eigenvalues of square matrices of any kind: programs call LAPACK, by NumPy or SciPy, as they run."""
from .._core import DType, Error
from .._custom import custom_jvp
from .._dtypes import is_complex
from .._host import ShapeDtypeStruct, pure_callback
from ._base import call, float_of
from .arrangement import diagonal


def _square(name, a):
    """Matrices of a type that LAPACK has, and the complex one."""
    a = float_of(a)
    a = a if a.dtype in (DType.f32, DType.f64, DType.c64, DType.c128) else a.astype(DType.f32)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise Error(f"{name}: {a._type_text()} (allowed: square matrices)")
    return a, DType.c128 if a.dtype in (DType.f64, DType.c128) else DType.c64


def _or_nan(function, a):
    """function(a), with NaN wherever a matrix has elements that are not finite, of which LAPACK makes an error."""
    import numpy

    bad = ~numpy.isfinite(a).all((-2, -1))
    results = function(numpy.where(bad[..., None, None], numpy.eye(a.shape[-1], dtype=a.dtype), a))
    for each in results:
        each[bad] = numpy.nan
    return results


def _eig_of_numpy(a):
    import numpy

    return _or_nan(lambda a: [each.astype("D" if a.dtype.char in "dD" else "F") for each in numpy.linalg.eig(a)], a)


def eig(a):
    """Eigenvalues and eigenvectors, in columns of length 1; complex, in LAPACK's order."""
    a, dtype = _square("eig", a)
    like = ShapeDtypeStruct(a.shape[:-1], dtype), ShapeDtypeStruct(a.shape, dtype)
    return tuple(pure_callback(lambda a: tuple(_eig_of_numpy(a)), like, a))


@custom_jvp
def _eigenvalues(a):
    return eig(a)[0]


@_eigenvalues.defjvp
def _(primals, tangents):
    values, vectors = eig(primals[0])
    return values, diagonal(call("solve", vectors, tangents[0].astype(vectors.dtype) @ vectors), 0, -2, -1)


def eigvals(a):
    """The eigenvalues of eig, with derivatives, where they differ."""
    return _eigenvalues(_square("eigvals", a)[0])


def schur(a, output):
    """T and Z of a = Z T Z^H: T is upper triangular, or, of real matrices, has blocks of 2 x 2 for pairs of complex eigenvalues."""
    a, wide = _square("schur", a)
    if output not in ("real", "complex", "r", "c"):
        raise Error(f"schur: output is {output!r} (allowed: real, complex)")
    dtype = wide if output[0] == "c" or is_complex(a.dtype) else a.dtype

    def factors(a):
        try:
            from scipy.linalg import schur as of_matrix  # type: ignore[import-untyped]
        except ImportError:
            raise Error("schur: there is no SciPy, which has it (allowed: where SciPy is installed)") from None
        import numpy

        def of_all(a):
            pairs = [of_matrix(each, output) for each in a.reshape(-1, *a.shape[-2:])]
            return [numpy.array([pair[i] for pair in pairs]).reshape(a.shape) for i in (0, 1)]

        return tuple(_or_nan(of_all, a))

    like = ShapeDtypeStruct(a.shape, dtype)
    return tuple(pure_callback(factors, (like, like), a))
