"""rlx.Array, and its elements as NumPy's."""
import threading

from . import _core
from ._core import Dim, DType, Error
from ._dtypes import NUMPY_NAMES, OF_NUMPY, PACKED, as_dtype, is_integer, is_numpy, numpy_dtype


active = threading.local()  # its `traces`: those of this thread that are in the making


def _call(name, *args, **kwargs):
    if getattr(active, "traces", None):
        lifted = _beside_sizes((*args, *kwargs.values()), active.traces[-1])
        args, kwargs = lifted[: len(args)], dict(zip(kwargs, lifted[len(args) :]))
    return _core.apply(name, args, kwargs)


def _beside_sizes(args, trace):
    """The arguments, where one is a symbolic size and no array is traced with the arrays as those of the trace: a run will have the size."""
    parts = [part for each in args for part in (each if isinstance(each, (tuple, list)) else [each])]
    if not any(isinstance(part, Dim) for part in parts) or _core.trace_of([part for part in parts if isinstance(part, Array)]) is not None:
        return args
    lift = lambda each: trace.lift(each) if isinstance(each, Array) else each  # noqa: E731
    return tuple([lift(part) for part in each] if isinstance(each, list) else lift(each) for each in args)


def _operand(value):
    """Whether an operator takes it; NumPy's arrays are taken, too."""
    return isinstance(value, (Array, bool, int, float, complex)) or is_numpy(value)


def _by_numpy(name):
    """Operators that are more than one function of the registry; the others are those of ArrayBase."""

    def forward(self, other):
        from . import numpy

        return getattr(numpy, name)(self, other) if _operand(other) else NotImplemented

    def backward(self, other):
        from . import numpy

        return getattr(numpy, name)(other, self) if _operand(other) else NotImplemented

    return forward, backward


class Array(_core.ArrayBase):
    """An array: elements that are known, or noted down and computed when they are read. In a traced function it stands for the elements
    that a run will have. Arrays never change."""

    __array_priority__ = 100  # NumPy leaves operators to it

    @property
    def dtype(self) -> DType:
        """The element type, one of rlx.float32 and the others."""
        return self._dtype

    @property
    def size(self):
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count = count * extent
        return count

    @property
    def itemsize(self):
        return numpy_dtype(self.dtype).itemsize

    @property
    def nbytes(self):
        return self.size * self.itemsize

    @property
    def T(self):
        """The axes in reverse order."""
        return _call("transpose", self, list(reversed(range(self.ndim))))

    @property
    def mT(self):
        """The last two axes exchanged."""
        return _call("swap_axes", self, -1, -2)

    @property
    def real(self):
        return _call("real", self) if self.dtype in (DType.c64, DType.c128) else self

    @property
    def imag(self):
        return _call("imag", self) if self.dtype in (DType.c64, DType.c128) else _call("zeros_like", self)

    @property
    def device(self):
        return "cpu"

    def to_device(self, device, stream=None):
        """The array itself, which lies in memory of the CPU."""
        check_device(device)
        return self

    def block_until_ready(self):
        """The array itself, which is computed, unless it is traced."""
        if not self._is_traced:
            self._bytes()
        return self

    def __array_namespace__(self, api_version=None):
        from . import numpy

        return numpy

    @property
    def at(self):
        """`x.at[index].set(values)` gives x with some elements changed; add, multiply, min and max combine them."""
        from ._indexing import At

        return At(self)

    def __array__(self, dtype=None, copy=None):
        import numpy

        self._check_known("functions of rlx.numpy take it; rlx.pure_callback calls those of NumPy")
        array = to_numpy(self)
        if dtype is not None and numpy.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def numpy(self):
        """The elements as a read-only array of NumPy, which shares their memory."""
        return to_numpy(self)

    def item(self, *index):
        """The only element as a number of Python, or the one at an index: of each axis, or a single one into the flat array."""
        if not index and self.size != 1:
            raise Error(f"item: the array has the shape {self.shape} (allowed: one element)")
        return to_numpy(self).item(*index)

    def tolist(self):
        return to_numpy(self).tolist()

    def astype(self, dtype):
        """The elements in another type, by the rules of rlx.cast."""
        return _call("cast", self, dtype)

    def __bool__(self):
        self._check_known("rlx.numpy.where and rlx.cond choose instead of `if`, rlx.while_loop runs instead of `while`")
        return bool(self.item())

    def __int__(self):
        return int(self._number())

    def __float__(self):
        return float(self._number())

    def __complex__(self):
        return complex(self._number())

    def _number(self):
        self._check_known("astype changes its type; static_argnums of rlx.jit makes an argument a number")
        return self.item()

    def __index__(self):
        if not is_integer(self.dtype):
            raise TypeError(f"an array of {self.dtype} is no index")
        self._check_known("rlx.lax.dynamic_slice and dynamic_update_slice take starts that are traced, rlx.fori_loop bounds; static_argnums of rlx.jit"
                          " makes an argument a number")  # fmt: skip
        return int(self.item())

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("an array without axes has no length")
        if isinstance(self.shape[0], Dim):
            from ._sizes import called_function

            raise Error(f"{called_function()}the length of {self._type_text()} is the symbol {self.shape[0]} on axis 0 (allowed: known sizes where an array "
                        "is a list)")  # fmt: skip
        return self.shape[0]

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]

    def __hash__(self):
        raise TypeError("arrays have no hash: == compares their elements")

    def __repr__(self):
        if self._is_traced:
            return f"Array({self._type_text()}, traced)"
        import numpy

        body = numpy.array2string(to_numpy(self), separator=", ", prefix="Array(")
        return f"Array({body}, dtype={self.dtype})"

    def __str__(self):
        return repr(self) if self._is_traced else str(to_numpy(self))

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    _file = None  # path, stamp and name in the file, of an array that is mapped

    def __reduce__(self):
        if self._file is not None:
            from . import _files, _pickling

            if _files.travels(self._file, _pickling.pickler()):
                return _files.array_of, self._file
        return _unpickled, (NUMPY_NAMES[self.dtype], self.shape, bytes(self._bytes()))

    def copy(self):
        """The array itself, which nobody can change."""
        return self

    def tobytes(self):
        return to_numpy(self).tobytes()

    def view(self, dtype):
        """The same bits as elements of another type; the last axis changes with its width."""
        return from_numpy(to_numpy(self).view(numpy_dtype(as_dtype(dtype))), False)

    @property
    def flat(self):
        return iter(self.reshape(-1))

    @property
    def weak_type(self):
        """Whether it is a number of Python, which takes the type of what it meets."""
        return self._weak

    def __contains__(self, value):
        return bool((self == value).any())

    def __round__(self, digits=0):
        from . import numpy

        return numpy.round(self, digits)

    def __setitem__(self, index, value):
        raise TypeError("arrays never change: x = x.at[index].set(value) gives a new one")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __getitem__(self, index):
        from ._indexing import get

        return get(self, index)

    __truediv__, __rtruediv__ = _by_numpy("divide")
    __floordiv__, __rfloordiv__ = _by_numpy("floor_divide")
    __mod__, __rmod__ = _by_numpy("remainder")
    __pow__, __rpow__ = _by_numpy("pow")
    __matmul__, __rmatmul__ = _by_numpy("matmul")
    def __neg__(self):
        return _call("neg", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self.dtype == DType["bool"] else _call("abs", self)

    def __invert__(self):
        return _call("logical_not", self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __getattr__(self, name):
        """Methods are the functions of rlx.numpy on this array: x.sum(axis=0), x.reshape(2, 3)."""
        if name in METHODS:
            from . import numpy

            function = getattr(numpy, name)
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        raise AttributeError(f"an array has no attribute {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *METHODS]

    def reshape(self, *shape, order="C"):
        """The same elements under another shape; one size may be -1. `order` F: the first axis runs fastest."""
        if order != "C":
            from . import numpy

            return numpy.reshape(self, shape[0] if len(shape) == 1 else shape, order)
        return _call("reshape", self, list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape))

    def transpose(self, *axes):
        """The axes in another order, by default the reverse."""
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        return _call("transpose", self, [place_of(axis, self.ndim) for axis in axes] or list(reversed(range(self.ndim))))


METHODS = ("all any argmax argmin argpartition argsort choose clip compress conj conjugate cumprod cumsum diagonal dot flatten max mean min nonzero "
           "prod ptp ravel repeat round searchsorted sort squeeze std sum swapaxes take trace var").split()  # fmt: skip


def _unpickled(name, shape, data):
    import numpy

    return _core.from_bytes(numpy.frombuffer(data, numpy.uint8), OF_NUMPY[name], list(shape), data)


PLAIN = "?bBhHiIlLefdFD"  # NumPy's own types: their arrays need no view as bytes


def to_numpy(array):
    dtype = array.dtype
    if dtype in PACKED:
        return to_numpy(_call("cast", array, PACKED[dtype])).astype(numpy_dtype(dtype))
    return array._bytes().view(numpy_dtype(dtype)).reshape(array.shape)


def from_numpy(array, copy):
    """An array that shares NumPy's memory where it can."""
    import numpy

    if not copy and array.dtype.char in PLAIN and array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
        return _core.from_dlpack(array, False)
    name = array.dtype.name
    if name not in OF_NUMPY:
        raise Error(f"an array of {array.dtype} has no element type here (allowed: {', '.join(OF_NUMPY)})")
    dtype, shape = OF_NUMPY[name], array.shape
    if dtype in PACKED:
        return _call("cast", from_numpy(array.astype(numpy_dtype(PACKED[dtype])), False), dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if copy or not (array.flags.c_contiguous and array.flags.aligned):
        array = numpy.array(array, order="C", copy=True)
    return _core.from_bytes(array.reshape(-1).view(numpy.uint8), dtype, list(shape), array)


def check_device(device):
    """Of a function that makes arrays: all lie in memory of the CPU."""
    if device not in (None, "cpu"):
        raise Error(f"there is no device {device!r} for arrays (allowed: cpu)")


class AxisError(Error, IndexError):
    """Of an axis that an array does not have; NumPy's is an IndexError, too."""


def place_of(axis, rank):
    """The axis counted from the front."""
    if not -rank <= axis < rank:
        raise AxisError(f"axis {axis} is out of range for an array of {rank} axes (allowed: {-rank}..{rank - 1})")
    return axis % rank
