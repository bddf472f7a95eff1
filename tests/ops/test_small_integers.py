"""NumPy's small integers as arguments: axes, counts and offsets mean the same as Python's."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each, grouped
from tests.ops.op_families import FAMILY_OF, SPECS, is_sampled
from tests.ops.test_op_table import as_tuple
from tests.ways import PLACES, forward, reverse


def small(value):
    """Return what is given with small integers, unsigned if they can be, for Python's."""
    if type(value) is int:
        if -128 <= value < 256:
            return np.uint8(value) if value >= 0 else np.int8(value)
    elif type(value) in (tuple, list):
        return type(value)(map(small, value))
    return value


def takes_small(case):
    """Return whether any of a call's arguments can be a small integer."""
    values = [x for x in case.inputs if not isinstance(x, tuple)] + list(case.kwargs.values())
    return any(repr(small(value)) != repr(value) for value in values)


# These take shapes, which are of Python's integers; or values, which a graph does not have yet.
LEFT_OUT = {"AvgPoolGrad", "Conv2DBackpropInput", "trim_zeros"}
RECORDS = [(spec, case) for spec in SPECS if spec.op not in LEFT_OUT
           for case in spec.cases if takes_small(case)]
PLACES_IN_TURN = [*PLACES]  # of which one is tried, of every other record
CALLS = [(FAMILY_OF[id(spec)], f"{spec}-{case}-{place}", (spec, case, place),
          number % 2 > 0 or not is_sampled(spec)
          or place != PLACES_IN_TURN[number // 2 % len(PLACES_IN_TURN)])
         for number, (spec, case) in enumerate(RECORDS) for place in PLACES]


@grouped("spec, case, place", CALLS)
def test_the_whole_table(spec, case, place):
    inputs = spec.draw(case, spec.dtypes[0])
    given = [x if isinstance(of, tuple) else small(x)
             for x, of in zip(inputs, case.inputs, strict=True)]
    options = {name: small(value) for name, value in case.kwargs.items()}
    arrays = [i for i, x in enumerate(inputs)
              if isinstance(x, np.ndarray) and isinstance(case.inputs[i], tuple)]
    trainable = [i for i in arrays if inputs[i].dtype.kind in "fc"]
    if not trainable:
        return
    try:
        with np.errstate(all="ignore"):
            spec.ref(*given, **options)
    except Exception:
        return  # NumPy takes no such integer there
    ts = [np.asarray(np.cos(np.arange(inputs[i].size)).reshape(inputs[i].shape), inputs[i].dtype)
          for i in trainable]

    def called(arguments, kwargs):
        def f(*xs):
            values = list(arguments)
            for i, x in zip(trainable, xs, strict=True):
                values[i] = x
            ys = [y for y in as_tuple(spec.fn(*values, **kwargs)) if y.dtype.kind in "fc"]
            return sum([cnp.sum(cnp.real(y)) for y in ys], cytape.constant(0.0))

        return f

    for mode in reverse, forward:
        xs = [inputs[i] for i in trainable]
        with np.errstate(all="ignore"):
            expected = PLACES[place](mode, called(inputs, case.kwargs), xs, ts)
            actual = PLACES[place](mode, called(given, options), xs, ts)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=mode.__name__)


@each(("function", "x"), [
    (lambda x, k: np.trace(x, offset=k), np.ones((301, 302))),
    (lambda x, k: np.diagonal(x, k), np.ones((301, 302))),
    (lambda x, k: np.diag(x, k), np.ones((301, 302))),
    (lambda x, k: np.var(x, ddof=k), np.arange(300.0)),
    (lambda x, k: cnp.std(x, correction=k), np.arange(300.0)),
    (lambda x, k: np.choose(k, [x, 2 * x]), np.arange(300.0))])
@each("traced", [False, True])
def test_extents_that_a_small_integer_cannot_hold(function, x, traced):
    def gradient(k):
        f = cytape.function(lambda x: cnp.sum(function(x, k))) if traced else (
            lambda x: cnp.sum(function(x, k)))
        return cytape.grad(f)(x)

    np.testing.assert_array_equal(gradient(np.uint8(1)), gradient(1))


def test_extents_are_integers_of_pythons_whatever_shapes_are_told():
    np.trace(cytape.constant(np.ones((317, 317))), offset=np.uint16(1))
    cytape.Spec.of((np.uint8(251), np.int16(3)), float)
    spec = cytape.Spec.of((np.uint8(249), None), float)
    for shape in (cytape.constant(np.arange(316.0)).shape, spec.shape,
                  cytape.constant(np.ones((251, 3))).shape):
        assert {type(extent) for extent in shape} <= {int, type(None)}
    assert cytape.Spec.of((np.uint8(249), None), float).shape[0] * 2 == 498


@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning")
def test_more_degrees_of_freedom_than_elements():
    with np.errstate(all="ignore"):
        for ddof in 7, np.uint8(7):
            assert np.var(cytape.constant(np.arange(6.0)), ddof=ddof) == np.inf
            gradient = cytape.grad(lambda x, d=ddof: np.var(x, ddof=d))(np.arange(6.0))
            assert np.all(np.isinf(gradient))
