"""Random numbers from NumPy's streams: `cytape.numpy.random`."""

from cytape.numpy import random as _random

__getattr__ = _random.__getattr__
globals().update({name: getattr(_random, name) for name in dir(_random)})
