"""Second derivatives of every record of the op table, and Jacobians mapped over a batch."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor import nest
from tests.cases import case as named
from tests.graph.batching.test_vmap_of_table import is_refused
from tests.ops.forward_mode import as_tuple
from tests.ops.op_families import NUMBER_OF
from tests.ops.test_op_table import DOUBLE, NARROWER, Call, calls

MOST = 24  # elements of the arguments and of the results
TOLERANCES = {"float16": 0.05, "float32": 1e-3, "complex64": 1e-3}
WIDE = {"e": float, "f": float, "F": complex}
UNKNOWN = {"LeastSquares", "polyfit"}  # results have extents that depend on values
TRANSFORMS = {
    "jacfwd": lambda f, loss: cytape.jacfwd(f),
    "jacrev": lambda f, loss: cytape.jacrev(f),
    "jacfwd(grad)": lambda f, loss: cytape.jacfwd(cytape.grad(loss)),
    "jacrev(grad)": lambda f, loss: cytape.jacrev(cytape.grad(loss))}


class Program:
    """A record as a function of some of its inputs.

    Attributes
    ----------
    arguments : list of ndarray
    """

    def __init__(self, call, positions, dtype):
        self.call, self.positions, self.dtype = call, positions, dtype
        self.arguments = [call.inputs[i] for i in positions]
        self.is_real = all(x.dtype.kind == "f" for x in self.arguments)

    def outputs(self, *arguments):
        """Return the outputs that have derivatives; complex ones of real arguments in parts."""
        inputs = list(self.call.inputs)
        for i, x in zip(self.positions, arguments, strict=True):
            inputs[i] = x
        outputs = as_tuple(self.call.spec.fn(*inputs, **self.call.case.kwargs))
        return [
            part for y in outputs if y.dtype.kind in "fc"
            for part in ([y.real, y.imag] if self.is_real and y.dtype.kind == "c" else [y])]

    def loss(self, arguments):
        return sum(cnp.sum(cnp.real(y * y * (0.5 + k) + y))
                   for k, y in enumerate(self.outputs(*arguments)))


def assert_alike(found, expected, tolerance):
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, tolerance, tolerance * size)


def differentiated(function, *arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [np.asarray(x) for x in nest.flatten(function(*arguments))]


@calls(NARROWER, moving=1, turn=0)
def test_hessians_in_every_dtype(spec, case, dtype):
    call = Call(spec, case, dtype)
    if sum(call.inputs[i].size for i in call.positions) > MOST:
        pytest.skip("large")
    wide = Call(spec, case, dtype, inputs=[
        x.astype(WIDE.get(x.dtype.char, x.dtype)) if isinstance(x, np.ndarray) else x
        for x in call.inputs])
    found, expected = (
        differentiated(cytape.jacfwd(cytape.grad(program.loss)), program.arguments)
        for program in [Program(one, call.positions, dtype) for one in (call, wide)])
    for one, other in zip(found, expected, strict=True):
        if np.abs(other).max(initial=0.0) < 1e-2 * np.finfo(dtype).max:  # else sums may overflow
            assert_alike(one, other, TOLERANCES[dtype])


def check_members(program, position, name, counts):
    """Compare Jacobians mapped over members with those of one member after the other."""
    call, loss = program.call, lambda x: program.loss([x])
    function = TRANSFORMS[name](program.outputs, loss)
    members = [call.spec.draw(call.case, program.dtype, seed)[position]
               for seed in range(max(counts, default=0))]
    rows = [differentiated(function, x) for x in members]
    for n in counts:
        with named(lambda n=n: f"{name}, input {position}, {n} members"):
            batch = np.stack(members[:n])
            found = differentiated(cytape.vmap(function), batch)
            for column, *of_members in zip(found, *rows[:n], strict=True):
                assert_alike(column, np.stack(of_members), 1e-7)
            if name == "jacfwd(grad)" and batch.size <= MOST:
                (whole,) = differentiated(cytape.jacfwd(cytape.vmap(cytape.grad(loss))), batch)
                for i, row in enumerate(rows[:n]):
                    block = np.take(whole[i], i, axis=batch.ndim - 1)
                    assert_alike(block, row[0], 1e-7)


def check_all(spec, case, dtype, counts, names_for=lambda position: TRANSFORMS):
    """Check Jacobians; `counts` returns numbers of members for a number of directions."""
    call = Call(spec, case, dtype)
    n_out = sum(y.size for y in call.references if y.dtype.kind in "fc")
    for position in call.positions:
        program = Program(call, [position], dtype)
        for name in names_for(position):
            if name == "jacrev" and spec.op.startswith("GetItem") and any(
                    np.asarray(x).dtype == bool for x in call.inputs):
                continue  # the number of elements under a mask depends on values
            if spec.order < 2 and "grad" in name:
                continue
            n = n_out if name == "jacrev" else program.arguments[0].size
            check_members(
                program, position, name, [k for k in counts(n) if 0 < k <= MOST])


def is_mapped(spec):
    return not is_refused(spec) and spec.op not in UNKNOWN


@calls(["float64"], moving=1, keep=is_mapped, one_case=True, turn=0)
def test_as_many_members_as_directions(spec, case, dtype):
    """By one of the transforms for each argument, in turn: the next test takes all of them."""
    names = [*TRANSFORMS]
    check_all(spec, case, dtype, lambda n: [n] if n <= 6 else [],
              lambda position: [names[(NUMBER_OF[id(spec)] + position) % len(names)]])


@pytest.mark.exhaustive
@calls(DOUBLE, moving=1, keep=is_mapped)
def test_any_number_of_members(spec, case, dtype):
    check_all(spec, case, dtype, lambda n: [2, n] if n <= 12 else [2])
