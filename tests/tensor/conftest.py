"""A tensor, and a recorder that watches it."""

import numpy as np
import pytest

import cytape
from cytape.tensor.recording.state import Recorder


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
