"""cytape.numpy.random: our functions before NumPy's."""

import numpy

import cytape
import cytape.numpy as np
from cytape.ops import random
from cytape.ops.submodules import distributions


def test_our_functions_come_first_and_the_rest_is_numpys():
    assert np.random.normal is random.normal
    assert np.random.default_rng is numpy.random.default_rng
    assert {"normal", "default_rng"} <= set(dir(np.random))
    assert set(random.__all__) <= set(dir(np.random))


def test_it_is_part_of_the_namespace():
    assert type(cytape.numpy.random.random()) is float


def test_what_is_imported_when_it_is_asked_for_is_there():
    for name in np.random._LATER:
        assert getattr(np.random, name) is getattr(distributions, name)
    assert set(np.random._LATER) == set(distributions.__all__) <= set(dir(np.random))
