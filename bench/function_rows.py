"""Rows about traced functions: gradients, first calls, and the construction of large graphs."""

import numpy as np

import cytape
from bench.program_rows import call, forward, gradients, tensors
from bench.report import Row, multiple
from bench.timing import Effort, Program, best_seconds
from bench.workloads import workloads


def traced(workload):
    """Return the gradient of a workload as a function that is traced."""
    return cytape.function(lambda *inputs: gradients(workload, list(inputs)))


def check(workload):
    """Fail unless replayed gradients are the eager ones, in the first call and in later ones."""
    function, inputs = traced(workload), tensors(workload)
    expected = gradients(workload, inputs)
    for _ in range(3):
        for actual, e in zip(function(*inputs), expected, strict=True):
            np.testing.assert_allclose(
                actual.numpy(), e.numpy(), rtol=1e-9, atol=1e-12 * abs(e.numpy()).max(),
                err_msg=f"{workload.name}: gradient by a traced function")


def function_rows(smoke):
    """Yield all rows about traced functions and graphs."""
    effort = Effort(2, 0.001) if smoke else Effort(10, 0.1)
    chosen = [workload for workload in workloads(smoke) if workload.function_at_most is not None]
    for workload in chosen:
        check(workload)
    for workload in chosen:
        yield row_of_replay(workload, effort)
    for workload in chosen:
        yield row_of_first_call(workload, effort)
    for workload in chosen:
        if workload.second_call_at_most is not None:
            yield row_of_second_call(workload, effort)
    yield row_of_large_graph(1_000 if smoke else 100_000)


def row_of_replay(workload, effort):
    function, inputs = traced(workload), tensors(workload)
    for _ in range(2):  # the trace, and its optimised plan in the second call
        function(*inputs)
    numpy_seconds, seconds = best_seconds(
        [call(forward, workload, np, workload.inputs), call(function, *inputs)], effort)
    return multiple(
        "whole gradient by cytape.function, as a multiple of NumPy's forward pass",
        workload.name, numpy_seconds, seconds, at_most=workload.function_at_most)


def row_of_first_call(workload, effort):
    inputs = tensors(workload)
    first_call = Program(lambda function: function(*inputs), setup=lambda: traced(workload))
    eager, seconds = best_seconds([call(gradients, workload, inputs), first_call], effort)
    return multiple(
        "first call (trace, gradient, plan, run), as a multiple of one eager gradient",
        workload.name, eager, seconds, at_most=3.0)


def row_of_second_call(workload, effort):
    inputs = tensors(workload)

    def called_once():
        function = traced(workload)
        function(*inputs)
        return function

    first, second = best_seconds(
        [Program(lambda function: function(*inputs), setup=setup)
         for setup in (lambda: traced(workload), called_once)], effort)
    return multiple(
        "second call (passes, plan, run), as a multiple of the first", workload.name, first, second,
        at_most=workload.second_call_at_most)


def build_with_gradients(n_ops):
    """Build a chain of ops in a new graph, and its gradient."""
    graph = cytape.Graph()
    with graph.as_default():
        x = y = graph.placeholder("float64", (8,))
        for _ in range(n_ops // 2):
            y = np.sin(y) * x
        cytape.gradients(y, x)
    return graph


def row_of_large_graph(n_ops):
    (seconds,) = best_seconds([call(build_with_gradients, n_ops)], Effort(3, 0.001))
    return Row(
        "building graphs", f"a graph of {n_ops:,} ops and its gradients, per op",
        1e6 * seconds / n_ops, unit="us", at_most=20.0, details={"cytape_s": seconds})
