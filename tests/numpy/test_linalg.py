"""cytape.numpy.linalg: our functions before NumPy's."""

import numpy

import cytape
import cytape.numpy as np
from cytape.ops.submodules import linear_algebra


def test_our_functions_come_first_and_the_rest_is_numpys():
    assert np.linalg.solve is linear_algebra.solve
    assert np.linalg.LinAlgError is numpy.linalg.LinAlgError
    assert set(linear_algebra.__all__) | {"LinAlgError"} <= set(dir(np.linalg))


def test_plain_arrays_stay_plain():
    assert type(np.linalg.inv(numpy.eye(2))) is numpy.ndarray
    assert isinstance(np.linalg.inv(cytape.constant(numpy.eye(2))), cytape.Tensor)
