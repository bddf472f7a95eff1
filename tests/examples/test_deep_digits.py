import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cytape
from examples import deep_digits

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="needs Linux's limit of memory")


@pytest.mark.exhaustive
def test_a_model_larger_than_memory_is_trained_with_checkpoints():
    run = subprocess.run(
        [sys.executable, deep_digits.__file__], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    plain, planned = (int(re.search(r"(\d+) MiB", line)[1]) for line in lines[1:3])
    assert planned <= deep_digits.ROOM >> 20 < plain / 3
    before, after = (float(word) for word in lines[3].split() if word[0].isdigit() and "." in word)
    assert after < before / 2


def test_the_limit_is_lifted_again():
    before = resource.getrlimit(resource.RLIMIT_AS)
    with deep_digits.room_for(64 << 20):
        with pytest.raises(MemoryError):
            np.empty(128 << 20, np.uint8)
        np.empty(1 << 20, np.uint8)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    np.empty(128 << 20, np.uint8)


def test_gradients_are_the_plain_ones():
    inputs, loss, parameters = deep_digits.network(6)
    rng = np.random.default_rng(0)
    feeds = dict(zip(
        inputs, (rng.normal(size=inputs[0].shape), rng.integers(0, 10, inputs[1].shape)),
        strict=True))
    with loss.graph.as_default():
        ways = [cytape.gradients(loss, parameters, checkpoints=checkpoints)
                for checkpoints in (None, "auto")]
    session = cytape.Session(loss.graph)
    for plain, again in zip(*(session.run(way, feeds) for way in ways), strict=True):
        assert np.array_equal(plain, again)
