"""Errors of `jet`, and the memory that it releases."""

import gc
import math

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.op_kinds import OPS, elementwise, general
from cytape.tensor.recording.state import is_recorded
from cytape.tensor.tensor import live_tensors
from tests.cases import each


@each(("primals", "series", "error", "message"), [
    ((1.0, 2.0), ([1.0], [1.0, 0.0]), ValueError, "same order, got .1, 2."),
    ((1.0, 2.0), ([1.0],), ValueError, "2 primals, but series for 1"),
    (1.0, [], ValueError, "order 1 at least"), ((), (), ValueError, "order 1 at least"),
    (np.ones(2), [np.ones(3)], ValueError, r"primal 0 has shape \(3,\), the primal \(2,\)"),
    (np.ones(2), [1.0], ValueError, r"shape \(\), the primal \(2,\)"),
    (3, [1.0], TypeError, "dtype int64, which has no gradient"),
    (1.0, [1j], TypeError, "is complex128, the primal float64"),
    ("a", [1.0], TypeError, "cannot be differentiated|no gradient"),
    ([1.0, 2.0], [[1.0]], ValueError, "not packed like it"),
])
def test_bad_arguments(primals, series, error, message):
    with pytest.raises(error, match=message):
        cytape.jet(lambda *xs: xs[0], primals, series)


def test_bad_functions():
    with pytest.raises(ValueError, match="returned None"):
        cytape.jet(lambda x: None, 1.0, [1.0])
    with pytest.raises(TypeError, match="must return arrays"):
        cytape.jet(lambda x: object(), 1.0, [1.0])
    with pytest.raises(cytape.errors.DetachedError, match="plain array or number"):
        cytape.jet(lambda x: math.sin(x), 1.0, [1.0])
    opaque = general(f"DeclaredJetOpaque{len(OPS)}", lambda x: 2 * x)
    with pytest.raises(cytape.errors.NotDifferentiableError):
        cytape.jet(opaque, 1.0, [1.0])


def test_nothing_is_left_after_an_error_or_a_success():
    bad = elementwise(f"DeclaredJetBad{len(OPS)}", np.sin, lambda y, x: 1 / 0)

    def fails(x):
        cnp.exp(x)
        raise RuntimeError("stop")

    gc.collect()
    before = live_tensors()
    for f, error in ((fails, RuntimeError), (bad, ZeroDivisionError)):
        with pytest.raises(error):
            cytape.jet(f, 1.0, [1.0, 0.0])
    x = cytape.constant(1.0)
    y = x * x
    assert not is_recorded(y.id)
    with cytape.GradientTape() as tape:  # the stack is what it was
        tape.watch(x)
        with pytest.raises(ZeroDivisionError):
            cytape.jet(bad, x, [1.0, 0.0])
        y = x * x
    assert float(tape.gradient(y, x)) == 2.0
    del x, y, tape, error
    gc.collect()
    assert live_tensors() == before


def test_no_cycle_keeps_anything_alive():
    f = lambda x: cnp.sum(cnp.logaddexp(cnp.arcsin(x), x**x) * cytape.nn.softmax(x))  # noqa: E731
    x = np.array([0.3, 0.5])
    cytape.jet(f, x, [x, x, x])
    gc.collect()
    gc.disable()
    try:
        before = live_tensors()
        cytape.jet(f, x, [x, x, x])
        assert live_tensors() == before
    finally:
        gc.enable()


def test_a_long_custom_op_does_not_recurse_as_deep():
    def chain(x):
        for _ in range(1500):
            x = np.sin(x)
        return x

    value, derivatives = cytape.jet(cytape.recompute_grad(chain), 0.5, [1.0, 0.0])
    expected, of_chain = cytape.jet(chain, 0.5, [1.0, 0.0])
    assert value == expected
    np.testing.assert_allclose(derivatives, of_chain, rtol=1e-12)


def test_series_that_are_no_sequences_are_refused():
    with pytest.raises(ValueError, match="a sequence of derivatives for every primal"):
        cytape.jet(np.exp, 0.0, 1.0)
