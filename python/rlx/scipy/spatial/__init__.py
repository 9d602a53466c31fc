"""Names of scipy.spatial."""
from . import transform as transform
