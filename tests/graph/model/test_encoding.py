"""Static arguments as JSON."""

import json
import math

import numpy as np
import pytest

import cytape
from cytape.errors import GraphFileError
from cytape.graph.model.encoding import Decoder, Encoder, brief
from cytape.ops.neural.sliding_windows import Window
from cytape.ops.python.draws import Stream, default_stream, numpys_stream
from tests.cases import each


def round_trip(value):
    encoder = Encoder()
    code = json.loads(json.dumps(encoder.encode(value), allow_nan=False))
    arrays = [array.copy() for array in encoder.arrays]  # as a file would have them
    return Decoder(arrays, encoder.variables).decode(code)


@each("value", [
    None, True, False, 0, -3, 10**30, 1.5, -0.0, 1e-300, math.inf, -math.inf, "", "ä\n\"",
    1 + 2j, complex(math.inf, -0.0), (), (1, (2.0, None)), slice(None), slice(1, None, -2),
    (slice(0, 3), None, Ellipsis, 0), {}, {"a": 1, 2: (3,), None: {"b": "c"}},
    np.dtype("float32"), np.dtype("<U7"), np.dtype("bool"), np.dtype("M8[ns]"),
    np.float32, np.bool_, int, float, complex, bool,
])  # fmt: skip
def test_plain_values_come_back(value):
    result = round_trip(value)
    assert type(result) is type(value)
    assert result == value
    assert repr(result) == repr(value)


def test_nan_comes_back():
    assert math.isnan(round_trip(math.nan))


@each("array", [
    np.arange(6.0).reshape(2, 3), np.zeros((0, 3), np.int8), np.array(True),
    np.array(["a", "bc"]), np.array("2026-01-01", "M8[D]"), np.array([1 + 2j], np.complex64),
])  # fmt: skip
def test_arrays_come_back(array):
    result = round_trip(array)
    assert type(result) is np.ndarray
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(result, array)


def test_scalars_and_tensors_come_back():
    scalar, tensor = round_trip((np.float32(1.5), cytape.constant([1, 2])))
    assert type(scalar) is np.float32 and scalar == 1.5
    assert type(tensor) is cytape.Tensor and tensor.tolist() == [1, 2]
    assert tensor.dtype == np.int64


def test_random_numbers_begin_anew():
    stream = Stream(1, 2)
    first = stream.generator.random()
    assert round_trip(stream).generator.random() == first
    for unseeded in (numpys_stream, default_stream):
        assert round_trip(unseeded) is unseeded


def test_a_variable_is_the_same_wherever_it_occurs():
    v = cytape.Variable(1.0)
    first, second = round_trip((v, {"again": v}))
    assert first is second["again"] is v


class Mine(tuple):
    __slots__ = ()


@each("value", [
    object(), len, lambda: 0, [1], {1}, b"", Mine((1,)), np.array([None]), np.dtype("O"),
    np.dtype([("a", int)]), np.object_, dict, np.ma.array([1.0]), (1, (2, {"a": object()})),
    cytape.Graph().placeholder("float64"),
])  # fmt: skip
def test_other_values_are_refused(value):
    with pytest.raises(GraphFileError, match="cannot be saved"):
        Encoder().encode(value)


@each("code", [
    [], [1], {}, {"tuple": 3}, {"tuple": [], "dict": []}, {"no such": 1}, {"float": "1.0"},
    {"float": 1.0}, {"float": ["nan"]}, {"complex": [1.0]}, {"complex": ["a", "b"]},
    {"complex": [True, 0.0]}, {"slice": [1, 2]}, {"dict": [[1]]}, {"dict": [1]},
    {"dict": {"a": 1}}, {"dict": [[{"dict": []}, 1]]}, {"dict": [[{"array": 0}, 1]]},
    {"dtype": "O"}, {"dtype": "f8,f8"}, {"dtype": "(2,)<f8"}, {"dtype": 3}, {"dtype": "<f3"},
    {"dtype": "|V8"}, {"scalar type": "numpy.object_"}, {"scalar type": "builtins.eval"},
    {"scalar type": ["int"]}, {"array": 1}, {"array": -1}, {"array": True}, {"array": 0.0},
    {"array": "0"}, {"scalar": 0}, {"tensor": 7}, {"variable": 0},
    {"stream": [1]}, {"stream": [1, -1]},
    {"stream": [1, 2.0]}, {"stream": [True, 1]}, {"stream": "mine"}, math.nan, math.inf,
])  # fmt: skip
def test_other_codes_are_refused(code):
    with pytest.raises(GraphFileError):
        Decoder([np.ones(2)], []).decode(code)


def test_messages_are_brief():
    assert brief("x" * 1000) == "'" + "x" * 76 + "..."


@each("damage", [
    lambda w: w.__setitem__(0, {"tuple": [0, 1]}), lambda w: w.__setitem__(1, {"tuple": [1]}),
    lambda w: w.__setitem__(2, 3), lambda w: w.__setitem__(3, {"tuple": [{"tuple": [0, -1]}] * 2}),
    lambda w: w.__setitem__(3, {"tuple": []}),
    lambda w: w.__delitem__(slice(3, 5)), lambda w: w.__setitem__(4, 0),
    lambda w: w.__setitem__(1, {"tuple": [1.0, 1.0]}), lambda w: w.__setitem__(3, 1),
])
def test_windows_of_convolutions(damage):
    window = Window((3, 3), (1, 2), (1, 1), ((0, 1), (2, 0)))
    code = Encoder().encode(window)
    assert Decoder([], []).decode(code) == window
    damage(code["window"])
    with pytest.raises(GraphFileError):
        Decoder([], []).decode(code)


def test_windows_of_other_ranks_and_of_older_files():
    decoder = Decoder([], [])
    for window in (Window((3,), (1,), (2,), ((0, 1),), 4),
                   Window((1, 2, 3), (1, 1, 1), (1, 1, 1), ((0, 0),) * 3)):
        code = Encoder().encode(window)
        assert decoder.decode(code) == window
    code["window"].pop()  # groups
    assert decoder.decode(code) == window
