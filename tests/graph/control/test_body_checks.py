"""Checks that arguments of branches and loops fit their bodies."""

import numpy as np
import pytest

import cytape
from cytape.errors import GraphError
from cytape.graph.control.body_checks import (
    LoopAttributes,
    check_branches,
    check_call,
    check_loop,
    is_ragged,
)
from cytape.tensor.values.spec import Spec, symbolic_spec
from tests.cases import each

COUNT, BOOL = Spec.of((), np.int64), Spec.of((), np.bool_)
SCALAR, ROW = Spec.of((), np.float64), Spec.of((3,), np.float64)
MATRIX, ROWS = Spec.of((5, 3), np.float64), symbolic_spec((None, 3), np.float64)


def traced(f, *specs):
    return cytape.function(f).get_concrete_function(*specs)


INCREASED = traced(lambda v, row: [v + row.sum(), row * v], SCALAR, ROW)
SUMMED = traced(lambda v, row: [v, row.sum()], SCALAR, ROW)
MATCHED = traced(lambda v: [v > 1.0], SCALAR)
ROW_MATCHED = traced(lambda v: [v > 1.0], ROW)
RAGGED = traced(lambda v, rows: [v + rows.sum(), rows * v], SCALAR, ROWS)

LOOP = {
    "specs": [COUNT, SCALAR, MATRIX], "body": INCREASED, "condition": MATCHED, "n_variables": 1,
    "n_stacks": 1, "body_inputs": (), "condition_inputs": (), "reverse": False,
    "ragged_stacks": (), "ragged_kept": (), "assigned": None}
RAGGED_LOOP = {
    **LOOP, "specs": [COUNT, SCALAR, ROWS, symbolic_spec((None,), np.int64)], "body": RAGGED,
    "ragged_stacks": (0,), "ragged_kept": (0,)}


def check(specs, **attrs):
    check_loop(specs, LoopAttributes(**attrs))


def test_values_that_fit():
    check(**LOOP)
    check(**{**LOOP, "condition": None, "reverse": True})
    check(**{**LOOP, "specs": [COUNT, SCALAR, ROWS]})
    check(**{**LOOP, "specs": [COUNT, SCALAR, ROW], "n_stacks": 0, "body_inputs": (2,)})
    check(**RAGGED_LOOP)
    check(**{**LOOP, "ragged_kept": (0,)})
    check_branches([BOOL, SCALAR, ROW], (INCREASED, INCREASED), ((1, 2), (1, 2)), None)
    check_branches([BOOL, SCALAR], (MATCHED, MATCHED), ((1,), (1,)), (cytape.Variable(1.0),))
    check_branches([BOOL, SCALAR], (ROW_MATCHED, MATCHED), ((1,), (1,)), None)


@each("loop", [LOOP, RAGGED_LOOP], ids=["rows", "ragged"])
@each(("changes", "message"), [
    ({"specs": []}, "there are 0 inputs"),
    ({"specs": [SCALAR, SCALAR, ROWS, COUNT]}, "iterations must be an integer, got float64"),
    ({"specs": [Spec.of((0,), np.int64), SCALAR, ROWS, COUNT]}, r"an integer, got .*\(0,\)"),
    ({"body": None}, "the body is not a function"),
    ({"body": MATCHED}, "the body takes 1 operands"),
    ({"condition": INCREASED}, "the condition takes 2 operands"),
    ({"condition": traced(lambda v: [v], SCALAR)}, "boolean scalar, got float64"),
    ({"condition": traced(lambda v: [v > 1, v], SCALAR)}, "does not return one tensor"),
    ({"condition": 3}, "the condition is not a function"),
    ({"n_variables": True}, "not a number"), ({"n_variables": 10**30}, "less than variables"),
    ({"n_stacks": -1}, "not a number"), ({"n_stacks": 1.0}, "not a number"),
    ({"body_inputs": [1]}, "no positions|not positions"), ({"body_inputs": (4,)}, "not positions"),
    ({"body_inputs": (-1,)}, "not positions"), ({"condition_inputs": (True,)}, "not positions"),
    ({"condition_inputs": (1,)}, "the condition takes 1 operands, got 2"),
    ({"reverse": 1}, "reverse must be"), ({"ragged_stacks": (1,)}, "not positions among 1"),
    ({"ragged_kept": (1,)}, "not positions among 1"), ({"assigned": (1,)}, "tuple of variables"),
    ({"assigned": 3}, "tuple of variables"),
])  # fmt: skip
def test_loops_that_do_not_fit(loop, changes, message):
    with pytest.raises(GraphError, match=message):
        check(**{**loop, **changes})


@each(("loop", "changes", "message"), [
    (LOOP, {"specs": [COUNT, SCALAR, SCALAR]}, "a stack is a scalar"),
    (LOOP, {"specs": [COUNT, SCALAR, Spec.of((5, 4), np.float64)]}, r"shape \(3,\) in place 1"),
    (LOOP, {"specs": [COUNT, SCALAR, Spec.of((5, 3), np.float32)]}, "got float32"),
    (LOOP, {"specs": [COUNT, Spec.of((), np.float32), MATRIX]}, "got float32"),
    (LOOP, {"body": traced(lambda v, row: [row, row], SCALAR, ROW)}, "the loop carries"),
    (LOOP, {"body": traced(lambda v, row: [], SCALAR, ROW)}, "the body returns 0 tensors"),
    (RAGGED_LOOP, {"specs": [COUNT, SCALAR, ROWS, ROW]}, "lengths are int64"),
    (RAGGED_LOOP, {"specs": [COUNT, SCALAR, ROWS]}, "there are 3 inputs"),
    (LOOP, {"ragged_kept": (0,), "body": SUMMED}, r"\(0,\) are not places of kept values"),
    (RAGGED_LOOP, {"ragged_kept": (0, 0)}, r"\(0, 0\) are not places"),
    (RAGGED_LOOP, {"ragged_stacks": (0, 0)}, "its lengths in two places"),
])  # fmt: skip
def test_specs_that_do_not_fit(loop, changes, message):
    with pytest.raises(GraphError, match=message):
        check(**{**loop, **changes})


@each(("specs", "branches", "positions", "message"), [
    ([], (MATCHED, MATCHED), ((), ()), "no predicate"),
    ([SCALAR], (MATCHED, MATCHED), ((0,), (0,)), "boolean scalar, got float64"),
    ([BOOL, SCALAR], (MATCHED,), ((1,), (1,)), "not two branches"),
    ([BOOL, SCALAR], MATCHED, ((1,), (1,)), "not two branches"),
    ([BOOL, SCALAR], (MATCHED, 3), ((1,), (1,)), "a branch is not a function: 3"),
    ([BOOL, SCALAR], (MATCHED, MATCHED), ((1,), (2,)), "not positions among 2"),
    ([BOOL, SCALAR], (MATCHED, MATCHED), ((1,), (0,)), "a branch takes float64"),
    ([BOOL, MATRIX], (MATCHED, ROW_MATCHED), ((1,), (1,)), r"float64 of shape \(\) in place 0"),
    ([BOOL, SCALAR], (MATCHED, MATCHED), ((1,), ()), "takes 1 operands, got 0"),
    ([BOOL, SCALAR], (MATCHED, traced(lambda v: [v], SCALAR)), ((1,), (1,)), "the same dtypes"),
])  # fmt: skip
def test_branches_that_do_not_fit(specs, branches, positions, message):
    with pytest.raises(GraphError, match=message):
        check_branches(specs, branches, positions, None)


def test_inputs_of_stateful_nodes_are_returned():
    v = cytape.Variable(1.0)

    def assigning(x):
        v.assign(x)
        return []

    body = traced(assigning, SCALAR)
    body.release_captures()
    specs = [body.graph.spec_of(symbol) for symbol in body.input_symbols]
    positions = tuple(range(1, 1 + len(specs)))
    with pytest.raises(GraphError, match="do not return what their nodes found"):
        check_branches([BOOL, *specs], (body, body), (positions, positions), (v,))
    check_branches([BOOL, *specs], (body, body), (positions, positions), None)


def test_calls():
    check_call("it", MATCHED, [SCALAR])
    check_call("it", MATCHED, [symbolic_spec(None, np.float64)])
    with pytest.raises(GraphError, match="it takes float64 of shape"):
        check_call("it", MATCHED, [ROW])


def test_ragged():
    assert is_ragged(ROWS)
    assert not is_ragged(symbolic_spec((3, None), np.float64))
    assert not is_ragged(symbolic_spec(None, np.float64))
