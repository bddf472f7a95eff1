"""cytape.numpy.random: our functions before NumPy's."""

import numpy

import cytape
import cytape.numpy as np
from cytape.ops import random


def test_our_functions_come_first_and_the_rest_is_numpys():
    assert np.random.normal is random.normal
    assert np.random.default_rng is numpy.random.default_rng
    assert {"normal", "default_rng"} <= set(dir(np.random))
    assert set(random.__all__) <= set(dir(np.random))


def test_it_is_part_of_the_namespace():
    assert isinstance(cytape.numpy.random.random(), cytape.Tensor)
