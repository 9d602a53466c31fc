"""Names of scipy.sparse."""
from . import linalg as linalg
