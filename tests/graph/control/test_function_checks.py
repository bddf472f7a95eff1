"""Results of functions of branches and loops: accepted ones, and errors."""

import numpy as np
import pytest

import cytape
from cytape.graph.control.function_checks import (
    as_count,
    as_predicate,
    as_tensor,
    check_structures,
    next_values,
    open_shape,
    require_function,
    without_gradients,
)
from tests.cases import each

FLOATS = cytape.Spec.of((2,), np.float32)


def test_predicates():
    for pred in (True, np.bool_(True), np.array(True), cytape.constant(True)):
        assert bool(as_predicate("p", pred))
    with pytest.raises(TypeError, match="p must be boolean, got float64"):
        as_predicate("p", 1.0)
    with pytest.raises(ValueError, match=r"p must be a scalar, got shape \(1,\)"):
        as_predicate("p", [True])


@each("x, dtype, expected", [
    (1, np.float32, np.float32), (1.5, np.float32, np.float32), (1.5, np.int32, np.float64),
    (1j, np.complex64, np.complex64), (True, np.int32, bool), (np.float64(1), np.float32, float),
    (1, None, np.int64),
])
def test_numbers_take_a_dtype_if_they_fit(x, dtype, expected):
    assert as_tensor(x, None if dtype is None else np.dtype(dtype)).dtype == expected


def test_next_values():
    [x] = next_values("f", ["x"], [np.ones(2, np.float32)], [FLOATS])
    assert isinstance(x, cytape.Tensor)
    [x] = next_values("f", ["x"], [1], [cytape.Spec.of((), np.float32)])
    assert x.dtype == np.float32
    open_spec = cytape.Spec.of((None,), np.float32)
    assert next_values("f", ["x"], [np.ones(5, np.float32)], [open_spec])[0].shape == (5,)
    with pytest.raises(TypeError, match="f changes the dtype of x from float32 to float64: conv"):
        next_values("f", ["x"], [np.ones(2)], [FLOATS])
    with pytest.raises(ValueError, match=r"f changes the shape of x from \(2,\) to \(3,\)$"):
        next_values("f", ["x"], [np.ones(3, np.float32)], [FLOATS])
    with pytest.raises(ValueError, match=r"to \(3,\): if that is meant, say \(None,\)$"):
        next_values("f", ["x"], [np.ones(3, np.float32)], [FLOATS], "say {}")
    with pytest.raises(ValueError, match="f returns None for x, which is a tensor of float32"):
        next_values("f", ["x"], [None], [FLOATS])


@each("shape, other, expected", [
    ((2, 3), (2, 4), (2, None)), ((2,), (2, 2), None), (None, (2,), None), ((), (), ()),
    ((None, 2), (3, 2), (None, 2)),
])
def test_open_shape(shape, other, expected):
    assert open_shape(shape, other) == expected


def test_structures():
    check_structures("both", [1, {"a": 2}], [3, {"a": 4}])
    with pytest.raises(ValueError, match="both must agree in structure, got .* and .*: structures"):
        check_structures("both", [1], (1,))


def test_functions_and_numbers_of_iterations():
    require_function("f", len)
    with pytest.raises(TypeError, match="f must be a function, got int"):
        require_function("f", 3)
    assert as_count("n", np.int64(1)) == 1
    assert repr(as_count("n", 1e3)) == "1000"
    for wrong, error in ((0, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)):
        with pytest.raises(error, match="n must be"):
            as_count("n", wrong)


def test_without_gradients():
    x = cytape.constant([1.0, 2.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = without_gradients({"y": x * 2.0, "n": cytape.constant(3), "none": None, "text": "t"})
        z = y["y"] * x
    assert tape.gradient(z, x).numpy().tolist() == [2.0, 4.0]
    assert (int(y["n"]), y["none"], y["text"]) == (3, None, "t")
