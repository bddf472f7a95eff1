"""Tensors as keyword arguments: differentiated, or an error; never just numbers in silence."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape import nn
from cytape.errors import DetachedError
from cytape.numpy import random
from tests.cases import each
from tests.ways import gradient, tangent, watching

A = np.array([[0.3, 0.5, 0.8], [0.4, 0.7, 0.6]])

# The derivative of the sum of the result with respect to t = 0.6.
DIFFERENTIATED = {
    "clip min": (lambda a, t: cnp.clip(a, min=t), 3.0),
    "clip max": (lambda a, t: cnp.clip(a, max=t), 2.0),
    "full_like fill_value": (lambda a, t: cnp.full_like(a, fill_value=t), 6.0),
    "full fill_value": (lambda a, t: cnp.full((2, 2), fill_value=t), 4.0),
    "append values": (lambda a, t: cnp.append(a, values=t), 1.0),
    "sum initial": (lambda a, t: cnp.sum(a, initial=t), 1.0),
    "prod initial": (lambda a, t: cnp.prod(a, initial=t), A.prod()),
    "max initial": (lambda a, t: cnp.max(a, axis=0, initial=t), 1.0),
    "min initial": (lambda a, t: cnp.min(a, axis=0, initial=t), 0.5),
    "var mean": (lambda a, t: cnp.var(a, mean=t), 2 * 0.6 - 2 * A.mean()),
    "pad constant_values": (lambda a, t: cnp.pad(a, (1, 0), constant_values=t), 6.0),
    "pad end_values": (lambda a, t: cnp.pad(a, (1, 0), "linear_ramp", end_values=t), 6.0),
    "normal loc": (lambda a, t: random.normal(loc=t, size=5), 5.0)}
REFUSED = {
    **{
        f"{name} {parameter}": lambda a, t, name=name, parameter=parameter: (
            getattr(cnp, name)(a, **{parameter: t}))
        for name, parameters in {
            "std": ("ddof", "correction"), "var": ("ddof", "correction"),
            "sum": ("where", "axis"), "prod": ("where", "axis"), "max": ("where", "axis"),
            "mean": ("where", "axis"), "round": ("decimals",),
            "roll": ("shift",), "repeat": ("repeats",), "trace": ("offset",), "diag": ("k",),
            "diagonal": ("axis1",), "reshape": ("shape",), "expand_dims": ("axis",),
            "argmax": ("axis",),
        }.items()
        for parameter in parameters
    },
    "isclose rtol": lambda a, t: cnp.isclose(a, a, rtol=t),
    "allclose atol": lambda a, t: cnp.allclose(a, a, atol=t),
    "tensordot axes": lambda a, t: cnp.tensordot(a, a, axes=t),
    "add where": lambda a, t: cnp.add(a, a, where=t),
    "pad stat_length": lambda a, t: cnp.pad(a, 1, mode="mean", stat_length=t),
    "nan_to_num nan": lambda a, t: cnp.nan_to_num(a, nan=t),
    "take mode": lambda a, t: cnp.take(a, [0], mode=t),
    "softmax axis": lambda a, t: nn.softmax(a, axis=t),
}


@pytest.fixture(params=["array", "tensor"])
def data(request):
    return A if request.param == "array" else cytape.constant(A)


@pytest.mark.parametrize("call", DIFFERENTIATED)
def test_a_tensor_as_a_keyword_is_differentiated(data, call):
    function, expected = DIFFERENTIATED[call]
    t = cytape.constant(0.6)
    assert gradient(lambda t: function(data, t), t).item() == pytest.approx(expected)
    assert cnp.sum(tangent(lambda t: function(data, t), t, 1.0)).item() == pytest.approx(expected)


@each("recorder", ["tape", "accumulator"])
@pytest.mark.parametrize("call", REFUSED)
def test_a_recorded_tensor_that_an_op_has_no_derivative_for_is_an_error(data, call, recorder):
    t = cytape.constant(0.6)
    with cytape.GradientTape() as tape, cytape.ForwardAccumulator(t, 1.0):
        if recorder == "tape":
            tape.watch(t)
        with pytest.raises((DetachedError, TypeError, ValueError)) as raised:
            REFUSED[call](data, t)
    assert not isinstance(raised.value, RecursionError)


def test_the_error_names_op_and_argument(data):
    t = cytape.constant(0.6)
    with watching(t):
        with pytest.raises(DetachedError, match=r"'Std' .* 'ddof'.*ddof.numpy\(\)"):
            cnp.std(data, ddof=t)


def test_an_untracked_tensor_is_a_number(data):
    one = cytape.constant(1)
    found = [cnp.std(data, ddof=one), cnp.round(data, one), cnp.roll(data, one, axis=one)]
    expected = [np.std(A, ddof=1), np.round(A, 1), np.roll(A, 1, axis=1)]
    for actual, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(actual), e)


def test_a_keyword_without_a_value_is_an_error():
    with cytape.Graph().as_default():
        t = cytape.placeholder("float64", ())
        for call in ("std ddof", "round decimals", "isclose rtol"):
            with pytest.raises(cytape.errors.SymbolicTensorError):
                REFUSED[call](A, t)
            with pytest.raises(cytape.errors.SymbolicTensorError):
                REFUSED[call](cytape.constant(A), t)
