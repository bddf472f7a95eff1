"""Fourier transforms, differentiable: `cytape.numpy.fft`."""

from cytape.numpy.fft import *  # noqa: F403
from cytape.numpy.fft import __dir__, __getattr__  # noqa: F401
