"""Linear algebra: `cytape.scipy.linalg`."""

from cytape.scipy.linalg import *  # noqa: F403
from cytape.scipy.linalg import __getattr__ as __getattr__
