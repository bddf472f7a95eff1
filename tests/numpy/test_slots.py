"""Slots that lower rooms leave to the ops: each is filled, and methods reach their functions."""

import re
import statistics
from pathlib import Path

import numpy as np
import pytest

import cytape

PACKAGE = Path(cytape.__file__).parent


@pytest.mark.skipif(not (PACKAGE / "ops/calls/dispatch.pxd").exists(), reason="no sources here")
def test_every_slot_of_the_engine_is_filled_in_one_place():
    slots = (PACKAGE / "ops/calls/dispatch.pxd").read_text().partition("class Conforming:")[2]
    names = re.findall(r"cdef public (?:object|Op) ([^#\n]+)", slots)
    declared = {name.strip() for each in names for name in each.split(",")}
    text = (PACKAGE / "numpy/slots.py").read_text()
    assert declared == set(re.findall(
        r"(\w+)=", text.partition("install_conform(")[2].partition("\ninstall(")[0]))
    fillers = [path for path in PACKAGE.rglob("*.py") if "install_conform(" in path.read_text()]
    assert fillers == [PACKAGE / "numpy" / "slots.py"]


def test_the_statistics_module_is_told_apart():
    x = cytape.constant([3.0, 1.0, 2.0])
    for call in (statistics.mean, lambda x: statistics.stdev([x[0], x[1]])):
        with pytest.raises(TypeError) as caught:
            call(x)
        assert "call mean, median, var or std of cytape.numpy" in str(caught.value.__context__)


def test_methods_whose_function_has_the_array_elsewhere():
    x, which = cytape.constant([[3.0, 1.0], [2.0, 4.0]]), np.array([1, 0])
    np.testing.assert_array_equal(x.compress([False, True], axis=1), [[1], [4]])
    np.testing.assert_array_equal(
        x.argpartition(1, axis=None), x.numpy().argpartition(1, axis=None))
    np.testing.assert_array_equal(cytape.constant(which).choose(x.numpy()), which.choose(x.numpy()))
