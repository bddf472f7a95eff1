"""Every record of the op table, its calls mapped over a batch: against a loop over the members."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.graph.batching import members
from tests import ways
from tests.cases import each
from tests.ops import specs_symbolic
from tests.ops.forward_mode import as_tuple
from tests.ops.op_families import SPECS
from tests.ops.test_op_table import DOUBLE, Call, assert_close, calls, dense, differentiable
from tests.ops.test_symbolic_table import NEEDS_VALUES

N = 3
# Ops whose shapes depend on values: an error, if members differ in shape.
RAGGED = {
    "ARange", "BinCount", "CompressedPositions", "ExtractedPositions", "FromFirst", "Nonzero",
    "RepeatedPositions", "Unique", "UniquePositions", "WeightedBinCount", "repeat", "split",
    "unique", "unique_values",
}  # fmt: skip

# Ops that vmap calls for one member after the other.
LOOPED = {
    "Conv2D": "filters of each member's own: a product of matrices for each",
    "Conv2DBackpropFilter": "gradients of filters that all share, for each member: the same",
    "Conv2DBackpropInput": "filters of each member's own",
    "SetItem of slices": "parts of each member's own size",
    **dict.fromkeys([
        "Fold", "FoldAtExtrema", "ProductsBack", "ProductsCurvature", "ProductsTangent", "ReduceAt",
        "SpreadOverSlices", "SpreadToExtrema", "SumsOfSlices"], "slices of each member's own"),
    "StackCorrelation": "windows of each member's own: a product of matrices for each",
    "ScipyLinalgSolveToeplitz": "SciPy solves one system at a time",
    **dict.fromkeys([
        "ScipyNdimageCorrelate", "ScipySignalConvolve", "convolve1d", "convolve2d", "correlate1d",
        "correlate2d", "ndimage convolve"], "SciPy takes one array of weights for all images"),
    **dict.fromkeys(["maximum_filter", "median_filter"], "elements of each member's own windows"),
    "ScipyNdimageWindowSums": "gradients of weights that all share, for each member",
    **dict.fromkeys([
        "ScipySignalFilter", "ScipySignalFir", "ScipySignalUpfirdn", "lfilter"],
        "SciPy takes the coefficients of one filter at a time"),
    "ScipySignalLags": "gradients of coefficients that all share, for each member",
    **dict.fromkeys([
        "ScipySparseDeflatedSolve", "ScipySparseEigsh", "ScipySparseIterativeSolve",
        "ScipySparseProduct", "ScipySparseSolve"], "SciPy takes one sparse matrix at a time"),
    "ScipySparseSampledProduct": "gradients of the elements of a sparse matrix of each member",
    **dict.fromkeys([
        "ScipyDistanceAngles", "ScipyDistanceCondense", "ScipyDistanceEuclidean",
        "ScipyDistanceEuclideanPairs", "ScipyDistancePairs", "ScipyDistanceSquare",
        "ScipyDistanceTable"],
        "SciPy makes one table at a time"),
    "LeastSquares": "NumPy solves one system at a time, and the rank tells how many squares it has",
    "LeastSquaresBack": "the same",
    "polyfit": "the same",
    "Poly": "in graphs a polynomial is made of ops: this one is eager",
    "PutAlong like": "in graphs of unknown extents only",
    "ToFirst": "the first of equal elements are looked for in one array at a time",
    "Quantile": "NumPy has one q for all lines: there is a rule where members share it",
    "quantile": "the same",
    "percentile": "the same",
    "piecewise": "how many elements a condition selects depends on values",
}
IN_GRAPHS = {spec.op for spec in specs_symbolic.SPECS}  # of extents that only a run tells


@pytest.fixture
def loops(monkeypatch):
    """The names of ops that are called for one member after the other."""
    names, one_by_one = [], members._one_by_one

    def noted(graph, nodes, *rest):
        names.extend(graph.ops[node].name for node in nodes)
        return one_by_one(graph, nodes, *rest)

    monkeypatch.setattr(members, "_one_by_one", noted)
    return names


class Batch:
    """Calls of a function, one per member of a batch; each has its own of some of the inputs."""

    def __init__(self, spec, case, dtype, alone=None):
        self.spec, self.case = spec, case
        self.calls = [Call(spec, case, dtype, seed=seed) for seed in range(N)]
        first = self.calls[0].inputs
        self.mapped = [
            i for i, x in enumerate(first) if isinstance(x, np.ndarray)
            and not (spec.op == "delete" and x.dtype == bool)  # the length must be known
        ]
        if alone is not None:
            self.mapped = self.mapped[alone : alone + 1]
        for call in self.calls:
            call.inputs = [x if i in self.mapped else first[i] for i, x in enumerate(call.inputs)]
        self.axes = [0 if i in self.mapped else None for i in range(len(first))]

    def stacked(self):
        columns = zip(*[call.inputs for call in self.calls], strict=True)
        return [np.stack(column) if i in self.mapped else column[0]
                for i, column in enumerate(columns)]  # fmt: skip

    def fn(self, *inputs):
        return as_tuple(self.spec.fn(*inputs, **self.case.kwargs))

    def tensors(self):
        return [cytape.constant(x) if isinstance(x, np.ndarray) else x for x in self.stacked()]

    def outputs(self):
        with np.errstate(all="ignore"):
            return cytape.vmap(self.fn, self.axes)(*self.tensors())


def is_refused(spec):
    """Return whether a graph cannot tell the shape or dtype of the function's result."""
    return spec.op in NEEDS_VALUES or spec.op in RAGGED


def assert_members(actual, expected, spec):
    for column, *rows in zip(actual, *expected, strict=True):
        assert_close(column.numpy(), np.stack(rows), spec)


def checked(batch):
    with np.errstate(all="ignore"):
        expected = [[y.numpy() for y in call.outputs()] for call in batch.calls]
    assert_members(batch.outputs(), expected, batch.spec)


@calls(DOUBLE, keep=lambda spec: not is_refused(spec), axes=True, turn=0)
def test_values(spec, case, dtype):
    checked(Batch(spec, case, dtype))


@calls(["float64"], keep=lambda spec: not is_refused(spec), axes=True, turn=0)
@each("alone", [0, 1])
def test_values_where_members_share_all_inputs_but_one(spec, case, dtype, alone):
    batch = Batch(spec, case, dtype, alone)
    if batch.mapped:
        checked(batch)


@calls(DOUBLE, keep=lambda spec: not is_refused(spec), moving=1, axes=True, turn=1)
def test_gradients(spec, case, dtype, loops):
    """The gradient of what is mapped, and the gradients of members, mapped."""
    batch = Batch(spec, case, dtype)
    positions = batch.calls[0].positions
    cotangents = [v if v is None else np.stack([call.cotangents[k] for call in batch.calls])
                  for k, v in enumerate(batch.calls[0].cotangents)]  # fmt: skip
    expected = [call.gradients() for call in batch.calls]

    tensors = batch.tensors()
    sources = [tensors[i] for i in positions]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # of slices of unknown size
        tape, outputs = ways.taped(
            lambda sources: cytape.vmap(batch.fn, batch.axes)(*tensors), sources)
        seeded = [(y, v) for y, v in zip(outputs, cotangents, strict=True) if v is not None]
        gradients = tape.gradient(
            [y for y, _ in seeded], sources,
            output_gradients=[cytape.constant(v) for _, v in seeded])
        assert_members(map(dense, gradients), expected, spec)

        def gradient(inputs, seeds):
            moving = [inputs[i] for i in positions]
            tape, outputs = ways.taped(lambda moving: batch.fn(*inputs), moving)
            kept = [y for y, v in zip(outputs, cotangents, strict=True) if v is not None]
            return [dense(g) for g in tape.gradient(kept, moving, output_gradients=seeds)]

        seeds = [v for v in cotangents if v is not None]
        del loops[:]
        assert_members(cytape.vmap(gradient, (batch.axes, 0))(tensors, seeds), expected, spec)
        assert not loops or spec.op in LOOPED or spec.op in IN_GRAPHS, loops


@calls(["float64"], keep=lambda spec: not is_refused(spec), moving=1, one_case=True, axes=True,
       turn=0)
def test_in_a_function(spec, case, dtype):
    batch = Batch(spec, case, dtype)
    with np.errstate(all="ignore"):
        expected = [[y.numpy() for y in call.outputs()] for call in batch.calls]
        actual = cytape.function(lambda *xs: cytape.vmap(batch.fn, batch.axes)(*xs))(
            *batch.tensors())
    assert_members(actual, expected, spec)


@calls(DOUBLE, keep=lambda spec: not is_refused(spec), moving=1, axes=True, turn=0)
def test_tangents(spec, case, dtype):
    """The tangent of what is mapped, and the tangents of members, mapped."""
    batch = Batch(spec, case, dtype)
    positions = [i for i in batch.calls[0].positions if i in batch.mapped]
    if not positions:
        return
    moving = [np.stack([call.tangents[i] for call in batch.calls]) for i in positions]
    expected = [call.jvp([t if i in positions else None for i, t in enumerate(call.tangents)])
                for call in batch.calls]  # fmt: skip
    tensors = batch.tensors()

    def tangents(function, inputs, directions):
        with cytape.ForwardAccumulator([inputs[i] for i in positions], directions) as accumulator:
            outputs = function(*inputs)
        return accumulator.jvp(outputs, unconnected_gradients="zero")

    with np.errstate(all="ignore"):
        assert_members(tangents(cytape.vmap(batch.fn, batch.axes), tensors, moving), expected, spec)
        assert_members(cytape.vmap(
            lambda inputs, directions: tangents(batch.fn, inputs, directions), (batch.axes, 0))(
                tensors, moving), expected, spec)


# -- ops called for one member after the other -----------------------------------------------------

def gradients(batch, *inputs):
    moving = [inputs[i] for i in batch.calls[0].positions]
    tape, outputs = ways.taped(
        lambda moving: [y for y in batch.fn(*inputs) if y.dtype.kind in "fc"], moving)
    return [dense(g) for g in tape.gradient(outputs, moving, unconnected_gradients="zero")]


def test_which_functions_and_gradients_of_functions_are_computed_in_a_loop(loops):
    """All of those that are listed; that there are no others is seen in the gradients of all."""
    found = set()
    for spec in SPECS:
        for case in spec.cases[:2] if spec.op in LOOPED and differentiable(spec) else ():
            batch = Batch(spec, case, spec.dtypes[0])
            if not batch.mapped or not batch.calls[0].positions:
                continue
            del loops[:]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", UserWarning)
                batch.outputs()
                cytape.vmap(lambda *xs: gradients(batch, *xs), batch.axes)(*batch.tensors())  # noqa: B023
            if loops:
                found.add(spec.op)
    assert found == set(LOOPED)
