"""Special functions: `cytape.scipy.special`."""

from cytape.scipy.special import *  # noqa: F403
from cytape.scipy.special import __getattr__ as __getattr__
