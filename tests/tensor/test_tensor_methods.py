"""Attributes that tensors do not have: what an error names instead, and what is listed."""

import re

import numpy as np
import pytest

import cytape
from cytape.numpy.slots import _OF_OTHER_LIBRARIES
from tests.cases import each


@each("name, words", [
    ("sort", "np.sort"), ("partition", "np.partition"), ("resize", "np.resize"), ("flat", "ravel"),
    ("fill", r"x\[\.\.\.\] = value"), ("put", r"x\[index\] = values"), ("view", "astype"),
    ("strides", r"x.numpy\(\)")])
def test_attributes_of_memory_name_their_replacement(name, words):
    x = cytape.constant([3.0, 1.0, 2.0])
    with pytest.raises(AttributeError, match=f"no '{name}'.*{words}"):
        getattr(x, name)
    assert not hasattr(x, name) and name not in dir(x)


@each("name", list(_OF_OTHER_LIBRARIES))
def test_attributes_of_other_libraries_name_their_replacement(name):
    x, v = cytape.constant([3.0, 1.0]), cytape.Variable([1.0, 2.0])
    names = {"np": np, "cytape": cytape, "x": x, "y": x, "v": v, "f": np.sum, "axis": 0,
             "axes": [0], "shape": (1, 2), "dtype": int, "index": np.array([0]), "indices": 2,
             "k": 1, "mask": x > 0, "n": 2, "reps": 2, "values": 0.0}
    for tensor in (x, v):
        with pytest.raises(AttributeError, match=f"no '{name}', which .* other libraries") as error:
            getattr(tensor, name)
        with pytest.raises(AttributeError, match=f"no '{name}'"):
            setattr(tensor, name, True)
        assert not hasattr(tensor, name) and name not in dir(tensor)
    calls = r"(?:write|or) ((?:np|cytape|x|v)\b[^;, ]*(?:(?:, \w+)+\))?)"
    for instead in re.findall(calls, str(error.value)):
        eval(instead, names)


@each("name", ["assign", "assign_add", "assign_sub", "name", "op", "value_index"])
def test_attributes_of_some_tensors_are_listed_for_them_alone(name):
    with cytape.Graph().as_default():
        v = cytape.Variable(1.0)
        symbolic, assigned = cytape.placeholder("float64", ()), v.assign(2.0)
    for x in (cytape.constant(1.0), v, symbolic, assigned):
        assert (name in dir(x)) == hasattr(x, name)
    assert "assign" not in dir(cytape.constant(1.0)) and "assign" in dir(assigned)
