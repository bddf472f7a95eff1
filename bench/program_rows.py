"""Rows about whole programs: their gradients, and the cost of a live tape in the forward pass.

Also the smallest programs, where the fixed costs dominate.
"""

import numpy as np

import cytape
from bench import reference_ops
from bench.report import Row, faster, multiple
from bench.timing import Effort, Program, best_seconds
from bench.workloads import small_array_workloads, workloads
from cytape.testing import numerical_jvp


def forward(workload, namespace, inputs, data=None):
    return workload.function(namespace, *inputs, *(workload.data if data is None else data))


def recorded(workload, inputs, data=None):
    with cytape.GradientTape() as tape:
        tape.watch(inputs)
        target = forward(workload, cytape.numpy, inputs, data)
    return tape, target


def gradients(workload, inputs, data=None):
    tape, target = recorded(workload, inputs, data)
    return tape.gradient(target, inputs)


def reference_gradients(workload, inputs):
    with reference_ops.ReferenceGradientTape() as tape:
        tape.watch(inputs)
        target = forward(workload, reference_ops, inputs)
    return tape.gradient(target, inputs)


def tensors(workload):
    return [cytape.constant(array) for array in workload.inputs]


def reference_tensors(workload):
    return [reference_ops.ReferenceTensor(array) for array in workload.inputs]


def check(workload):
    """Fail unless value and gradients are right: by NumPy, and by differences along a direction."""
    _, target = recorded(workload, tensors(workload))
    value = forward(workload, np, workload.inputs)
    np.testing.assert_allclose(target.numpy(), value, rtol=1e-10, atol=0)
    rng = np.random.default_rng(1)
    for i, actual in enumerate(gradients(workload, tensors(workload))):
        directions = [None] * len(workload.inputs)
        directions[i] = rng.normal(size=workload.inputs[i].shape)
        slope = numerical_jvp(
            lambda *inputs: forward(workload, np, inputs), workload.inputs, directions)
        terms = actual.numpy() * directions[i]
        np.testing.assert_allclose(
            terms.sum(), slope, rtol=0, atol=1e-6 * abs(terms).sum(),
            err_msg=f"{workload.name}: gradient {i} against differences")


def check_against_reference(workload):
    actual = gradients(workload, tensors(workload))
    expected = reference_gradients(workload, reference_tensors(workload))
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), e, rtol=1e-9)


def program_rows(smoke):
    """Yield all rows about whole programs."""
    effort = Effort(2, 0.001) if smoke else Effort(10, 0.1)
    small_arrays = small_array_workloads(smoke)
    for workload in workloads(smoke):
        check(workload)
    for workload in small_arrays:
        check_against_reference(workload)
    yield from rows_against_reference(small_arrays, effort)
    yield from rows_of_live_tapes(small_arrays, effort)
    yield from rows_of_one_op(effort)
    yield from rows_against_numpy(workloads(smoke), effort)


def call(function, *arguments):
    return Program(lambda _: function(*arguments))


def rows_against_reference(small_arrays, effort):
    for workload in small_arrays:
        slow, fast = best_seconds([
            call(reference_gradients, workload, reference_tensors(workload)),
            call(gradients, workload, tensors(workload)),
        ], effort)
        yield faster("whole gradient, against the same ops on the plain-Python tape",
                     workload.name, slow, fast, at_least=15)


def rows_of_live_tapes(small_arrays, effort):
    group = "forward pass with a live tape, as a multiple of the one without"
    for workload in small_arrays:
        inputs = tensors(workload)
        without, live, dropped = best_seconds([
            call(forward, workload, cytape.numpy, inputs),
            Program(lambda kept, w=workload, x=inputs: kept.append(recorded(w, x)), list),
            call(recorded, workload, inputs),
        ], effort)
        yield multiple(group, workload.name, without, live, at_most=1.25)
        yield multiple(group, f"{workload.name}, and the tape dropped", without, dropped)


def rows_of_one_op(effort):
    x, direction = np.linspace(0.1, 1.0, 10), np.ones(10)
    gradient = cytape.grad(lambda x: cytape.numpy.sum(x))
    jacobian = cytape.jacfwd(lambda x: cytape.numpy.sin(x))
    np.testing.assert_array_equal(gradient(x), np.ones(10))
    np.testing.assert_allclose(jacobian(x), np.diag(np.cos(x)), rtol=1e-12)
    for name, program, at_most in (
        ("grad", call(gradient, x), 4.0),
        ("jvp", call(cytape.jvp, lambda x: cytape.numpy.sin(x), (x,), (direction,)), 6.0),
        ("jacfwd", call(jacobian, x), 12.0),
    ):
        (seconds,) = best_seconds([program], effort)
        yield Row("a function of one op on 10 numbers, differentiated", name, 1e6 * seconds,
                  unit="us", at_most=at_most, details={"cytape_s": seconds})


def rows_against_numpy(all_workloads, effort):
    for workload in all_workloads:
        numpy_forward, whole = best_seconds([
            call(forward, workload, np, workload.inputs),
            call(gradients, workload, tensors(workload), workload.constants(cytape.constant)),
        ], effort)
        yield multiple("whole gradient, as a multiple of NumPy's forward pass",
                       workload.name, numpy_forward, whole, at_most=workload.at_most)
