"""Plans against the plain-Python executor: every op of the table, and whole programs."""

import numpy as np

import cytape
from bench.workloads import more_workloads, workloads
from cytape.graph.model.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.run.plan import Plan
from tests.cases import each
from tests.graph.plans import assert_as_reference, symbols
from tests.ops.forward_mode import as_tuple
from tests.ops.test_op_table import calls
from tests.ops.test_symbolic_table import NEEDS_VALUES


@calls(keep=lambda spec: spec.op not in NEEDS_VALUES)
def test_every_op_alone(spec, case, dtype):
    inputs = spec.draw(case, dtype)
    graph = Graph()
    arrays = {i: x for i, x in enumerate(inputs) if isinstance(x, np.ndarray)}
    numbers = [i for i, x in arrays.items() if x.dtype.kind in "fc"]  # the others are indices
    fed = {i: graph.placeholder(arrays[i].dtype, arrays[i].shape) for i in numbers or arrays}
    with np.errstate(all="ignore"):
        outputs = as_tuple(spec.fn(*[fed.get(i, x) for i, x in enumerate(inputs)], **case.kwargs))
        outputs = [y for y in outputs if isinstance(y, cytape.Tensor) and y.graph is graph]
        assert outputs or not fed
        assert_as_reference(graph, list(fed.values()), outputs, [inputs[i] for i in fed])


@each("workload", workloads(True) + more_workloads(True), ids=lambda w: w.name)
def test_gradients_of_programs_run_without_python(workload):
    graph = Graph()
    with graph.as_default():
        inputs = [graph.placeholder(x.dtype, x.shape) for x in workload.inputs]
        with cytape.GradientTape() as tape:
            for x in inputs:
                tape.watch(x)
            y = workload.function(cytape.numpy, *inputs, *workload.constants(cytape.constant))
        gradients = tape.gradient(y, inputs)
    plan = assert_as_reference(graph, inputs, [y, *gradients], workload.inputs)
    assert plan.n_calls == 0
    expected = plan.run(workload.inputs)
    plan = Plan(optimise(Subgraph(graph, symbols(graph, inputs), symbols(graph, [y, *gradients]))))
    assert plan.n_calls == 0
    for result, other in zip(plan.run(workload.inputs), expected, strict=True):
        rtol = 64 * np.finfo(other.dtype).eps
        np.testing.assert_allclose(result.numpy(), other.numpy(), rtol=rtol, atol=rtol)
