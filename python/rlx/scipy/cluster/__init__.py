"""Names of scipy.cluster."""
from . import vq as vq
