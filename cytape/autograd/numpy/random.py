"""Random numbers from NumPy's streams: `cytape.numpy.random`."""

from cytape.numpy.random import __dir__, __getattr__, seed  # noqa: F401
