"""NumPy's functions over rlx.Array: names, arguments and results as there, but f32 and i32 where NumPy takes 64 bits by itself."""
import math

from .. import _dtypes
from .._array import Array as ndarray
from .._conversions import array, asarray, from_dlpack
from . import fft, linalg
from .arrangement import *
from .bits import *
from .creation import *
from .elementwise import *
from .files import *
from .grids import *
from .information import *
from .kinds import *
from .linalg import cross
from .numbers import *
from .padding import *
from .parts import *
from .polynomials import *
from .positions import *
from .products import *
from .reductions import *
from .sets import *
from .statistics import *
from .types import *
from .vectorized import *

pi, e, inf, nan, newaxis, euler_gamma = math.pi, math.e, math.inf, math.nan, None, 0.5772156649015329
bool_ = _dtypes.OF_NUMPY["bool"]
globals().update(_dtypes.OF_NUMPY)
__array_api_version__ = "2024.12"

TYPE_CHECKING = False
if TYPE_CHECKING:  # names that are made from tables
    from typing import Any

    def __getattr__(name) -> Any: ...
