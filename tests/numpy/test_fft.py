"""cytape.numpy.fft: our functions before NumPy's."""

import numpy

import cytape
import cytape.numpy as np
from cytape.ops.submodules import fourier


def test_our_functions_come_first_and_the_rest_is_numpys():
    assert np.fft.rfft is fourier.rfft
    assert np.fft.fftfreq is numpy.fft.fftfreq
    assert set(fourier.__all__) | {"fftfreq", "rfftfreq"} <= set(dir(np.fft))


def test_plain_arrays_stay_plain():
    assert type(np.fft.fft(numpy.ones(2))) is numpy.ndarray
    assert isinstance(np.fft.fft(cytape.constant(numpy.ones(2))), cytape.Tensor)
