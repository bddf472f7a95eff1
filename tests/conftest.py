"""What holds for all tests."""

import gc

import numpy as np
import pytest


def pytest_collection_finish():
    """Keep the garbage collector from looking at the tests themselves, tens of thousands.

    Hundreds of tests collect garbage, and would look at them each time.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item, nextitem):
    """The same for what the tests of a file leave in caches."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def rng():
    """Numbers that are the same whichever tests ran before, or in other processes."""
    return np.random.default_rng(0)
