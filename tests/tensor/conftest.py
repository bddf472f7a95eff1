"""A tensor, a recorder that watches it, and a check that no block stays entered."""

import gc

import numpy as np
import pytest

import cytape
from cytape.tensor.recording.state import Recorder, current_graph
from cytape.tensor.tensor import live_tensors


@pytest.fixture
def x():
    return cytape.constant(np.ones(3))


@pytest.fixture
def recorder(x):
    """A recorder that watches x and is entered."""
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    yield recorder
    if recorder.active:
        recorder.pop()


@pytest.fixture
def nothing_stays_entered():
    """Eager code before and after: neither recorded nor built."""
    before = live_tensors()
    yield
    y = cytape.constant(2.0) * 2.0
    assert y.graph is None and current_graph() is None and float(y) == 4.0
    del y
    if live_tensors() > before + 1:  # the fixture's
        gc.collect()
        assert live_tensors() <= before + 1
