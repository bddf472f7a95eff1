"""Checks of parameters."""

import numpy as np
import pytest

import cytape
from cytape.optimizers import SGD
from tests.cases import each

READ_ONLY = np.ones(2)
READ_ONLY.flags.writeable = False
REFUSED = [
    (cytape.constant([1.0]), TypeError, "is a Tensor, which cannot be changed"),
    (1.0, TypeError, "^the parameter is a float"),
    (np.ones(2, int), TypeError, "dtype int64"),
    (np.ones(2, complex), TypeError, "the real and the imaginary part"),
    (np.ones(2, ">f8"), TypeError, "dtype >f8"),
    (READ_ONLY, ValueError, "read-only"),
    ([], ValueError, "no parameters"),
    ([READ_ONLY.copy()] * 2, ValueError, "are the same object"),
]


@each("parameters, error, message", REFUSED)
def test_parameters_that_are_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        SGD().update(parameters, parameters)
