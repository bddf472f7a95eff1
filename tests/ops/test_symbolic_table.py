"""Every op and function of the op table's records, called with symbolic tensors.

What a graph tells of the outputs' shapes and dtypes before it runs, what it computes, its gradient
and its tangents, against the same call of eager tensors: with known extents, and with none known.
"""

import warnings
from functools import partial

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.calls.tangents import fetch
from tests import ways
from tests.cases import each, grouped
from tests.ops.forward_mode import as_tuple, entered, recorder_of
from tests.ops.op_families import FAMILY_OF
from tests.ops.test_op_table import CASES, Call, dense

# Ops that cannot be built without some extent, with their error messages.
RAISES = {
    "pad": "needs to know the extent",
    "Unstack": "into how many parts is not known",
    "unstack": "into how many parts is not known",
    "split": "into how many parts is not known",  # at indices of which there are not known how many
    "apply_along_axis": "how many lines there are is not known",
    **dict.fromkeys(("convolve2d", "correlate2d"), "extents of both matrices must be known"),
    **dict.fromkeys(("ndimage convolve", "convolve1d"), "need to know the extents of the weights"),
    **dict.fromkeys(("shift", "zoom"), "needs to know the extents of the image"),
    "lfilter": "needs to know the numbers of coefficients",
    "correlate": "the lengths of both operands must be known",
    "delete": "delete: the length of axis",
    "ScipyLinalgRowOrder": "lu needs a matrix of known extents",
    "insert": "insert: the length of axis",
    "polyfit": "the number of points is not known",
    "resize": "the length of axis 0 is not known",
    **{name: "how many coefficients there are is not known" for name in (
        "poly", "polyadd", "polyder", "polyint", "polymul", "polysub", "polyval", "vander")},
}
# Ops that cannot be built at all: their shape or dtype depends on values.
NEEDS_VALUES = {
    "Roots": "", "arange": "depends on values", "polydiv": "depends on values",
    "roots": "depends on values", "trim_zeros": "is not known before a graph runs"}
# Ops with extents that depend on values of inputs, here of placeholders.
HAS_VALUES_IN_SHAPE = {
    "CompressedPositions", "ExtractedPositions", "GetItem at tensors", "Nonzero",
    "RepeatedPositions", "repeat", "split",
}
# Ops with unknown extents whatever their inputs are.
OF_VALUES = {
    "ARange", "BinCount", "FromFirst", "LeastSquares", "Nonzero", "PlacesOf", "SlicesOfReduceAt",
    "Unique", "UniquePositions", "WeightedBinCount", "unique", "unique_values"}


def records(keep=lambda spec: True, moving=0):
    """Make a test per family of ops, of whose cases it always meets the first two of each record.

    moving: how many inputs must have a gradient; the first case alone is always met then.
    """
    return grouped("spec, case", [
        (FAMILY_OF[id(spec)], partial("{}-{}".format, spec, case), (spec, case),
         not any(case is one for one in spec.cases[:1 if moving else 2]))
        for spec, case, n_moving, _ in CASES
        if keep(spec) and n_moving >= moving
    ])


class Symbolic:
    """A call in a graph of its own, with placeholders for its arrays."""

    def __init__(self, spec, case, extents):
        dtype = "float64" if "float64" in spec.dtypes else spec.dtypes[0]
        self.call = Call(spec, case, dtype)
        self.graph, self.feeds, self.extents = Graph(), [], extents
        self.inputs = [
            self.placeholder(x) if isinstance(x, np.ndarray) else x for x in self.call.inputs]

    def placeholder(self, array):
        with self.graph.as_default():
            tensor = self.graph.placeholder(array.dtype, self.extents(array))
        self.feeds.append((tensor, array))
        return tensor

    def outputs(self):
        with self.graph.as_default():
            return as_tuple(self.call.spec.fn(*self.inputs, **self.call.case.kwargs))

    def run(self, tensors):
        feeds = {self.graph.symbol_of(tensor): array for tensor, array in self.feeds}
        with np.errstate(all="ignore"):
            return run(self.graph, [self.graph.symbol_of(tensor) for tensor in tensors], feeds)

    def gradients(self):
        sources = [self.inputs[i] for i in self.call.positions]
        with self.graph.as_default():
            tape, outputs = ways.taped(lambda sources: self.outputs(), sources)
            seeded = [
                (y, self.placeholder(v))
                for y, v in zip(outputs, self.call.cotangents, strict=True) if v is not None
            ]
            gradients = tape.gradient(
                [y for y, _ in seeded], sources, output_gradients=[v for _, v in seeded])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of slices of unknown size
                return sources, [dense(gradient) for gradient in gradients]

    def tangents(self):
        """Return the outputs with their tangents, those that have one."""
        with self.graph.as_default():
            tangents = [t if t is None else self.placeholder(t) for t in self.call.tangents]
            recorder = recorder_of(self.inputs, tangents)
            with entered(recorder):
                outputs = self.outputs()
            return outputs, [fetch(recorder, y.id) for y in outputs]


def known(array):
    return array.shape


def unknown(array):
    return (None,) * array.ndim


EXTENTS = each("extents", [known, unknown])


def is_compatible(tensor, array):
    """Whether an array may be what a symbolic tensor stands for."""
    return (
        tensor.dtype == array.dtype
        and (tensor.shape is None or len(tensor.shape) == array.ndim)
        and all(n in (None, m) for n, m in zip(tensor.shape or (), array.shape, strict=False))
    )


def takes_counts(spec, case):
    """Whether the shape of the result may depend on the values of an array among the inputs."""
    if spec.op == "polyfit" and case.kwargs.get("cov") is True:
        return len(case.inputs[1]) == 2  # scaled by residuals: none where the rank is not full
    return spec.op in OF_VALUES or (
        spec.op in HAS_VALUES_IN_SHAPE and any(isinstance(x, np.ndarray) for x in case.inputs)
    )


def must_build(symbolic, build):
    """Call a function, which may raise an error for those in the list only."""
    name = symbolic.call.spec.op
    if name in NEEDS_VALUES:
        # Roots of complex coefficients are complex, whatever their values.
        if NEEDS_VALUES[name] and not any(map(np.iscomplexobj, symbolic.call.inputs)):
            with pytest.raises(SymbolicTensorError, match=NEEDS_VALUES[name]):
                build()
        pytest.skip("needs values")
    if symbolic.extents is unknown and name in RAISES:
        try:
            return build()
        except SymbolicTensorError as error:
            assert RAISES[name] in str(error)
            pytest.skip("needs a known extent")
    return build()


@records()
@EXTENTS
def test_shapes_and_values(spec, case, extents):
    symbolic = Symbolic(spec, case, extents)
    outputs = must_build(symbolic, symbolic.outputs)
    with np.errstate(all="ignore"):
        expected = symbolic.call.outputs()
    assert type(outputs) is type(expected)
    for tensor, actual, eager in zip(outputs, symbolic.run(outputs), expected, strict=True):
        assert isinstance(tensor, cytape.Tensor)
        assert tensor.graph is symbolic.graph
        assert is_compatible(tensor, eager.numpy()), (tensor, eager.spec)
        if extents is known and not takes_counts(spec, case):
            assert tensor.spec is eager.spec
        assert actual.dtype == eager.dtype
        np.testing.assert_array_equal(actual, eager.numpy())


@pytest.mark.filterwarnings("ignore:IndexedSlices of an unknown number:UserWarning")
@records(moving=1)
@EXTENTS
def test_gradients(spec, case, extents):
    symbolic = Symbolic(spec, case, extents)
    sources, gradients = must_build(symbolic, symbolic.gradients)
    for x, gradient in zip(sources, gradients, strict=True):
        assert gradient.dtype == x.dtype
        assert extents is unknown or gradient.shape == x.shape
    with np.errstate(all="ignore"):
        expected = symbolic.call.gradients()
    for actual, eager, x in zip(symbolic.run(gradients), expected, sources, strict=True):
        assert (actual.shape, actual.dtype) == (eager.shape, x.dtype)
        np.testing.assert_allclose(actual, eager, 1e-12, 1e-13)


@records(moving=1)
@EXTENTS
def test_tangents(spec, case, extents):
    symbolic = Symbolic(spec, case, extents)
    outputs, tangents = must_build(symbolic, symbolic.tangents)
    found = [(y, t) for y, t in zip(outputs, tangents, strict=True) if t is not None]
    with np.errstate(all="ignore"):
        expected = symbolic.call.jvp(symbolic.call.tangents)
    actual = iter(symbolic.run([t for _, t in found]))
    for y, tangent, eager in zip(outputs, tangents, expected, strict=True):
        if tangent is None:
            assert not eager.any()
            continue
        assert tangent.dtype == y.dtype
        values = next(actual)
        assert values.shape == eager.shape
        np.testing.assert_allclose(values, eager, 1e-12, 1e-13)


@records(lambda spec: spec.differentiable is False)
def test_step_functions_are_not_connected(spec, case):
    symbolic = Symbolic(spec, case, known)
    inputs = [x for x in symbolic.inputs if isinstance(x, cytape.Tensor) and x.spec.trainable]
    with symbolic.graph.as_default(), cytape.GradientTape() as tape:
        tape.watch(inputs)
        outputs = symbolic.outputs()
    with symbolic.graph.as_default():
        assert tape.gradient([*outputs], inputs) == [None] * len(inputs)


@each("shape", [(2, 3), (None, 3)])
def test_many_gradients_for_one_tensor(shape):
    graph = Graph()
    x = graph.placeholder(np.dtype(float), shape)
    second = ways.gradient(lambda x: ways.gradient(lambda x: (x * x * x * x * x).sum(), x), x)
    value = np.arange(6.0).reshape(2, 3)
    (found,) = run(graph, [graph.symbol_of(second)], {graph.symbol_of(x): value})
    np.testing.assert_allclose(found, 20 * value**3)
