"""Rows about forward mode: derivatives in one direction, in many at once, and of gradients."""

import numpy as np

import cytape
from bench.program_rows import call, forward, gradients, tensors
from bench.report import multiple
from bench.timing import Effort, best_seconds
from bench.workloads import forward_mode_workloads
from cytape.testing import numerical_jvp

BATCH = 16  # tangents


def jvp(workload, inputs, tangents, data=None, use_batch=False):
    """Return the value, and its derivative along the tangents."""
    with cytape.ForwardAccumulator(inputs, tangents, use_batch=use_batch) as accumulator:
        value = forward(workload, cytape.numpy, inputs, data)
    return value, accumulator.jvp(value)


def hvp(workload, inputs, tangents, data=None):
    """Return the gradients, and their derivatives along the tangents: forward over reverse."""
    with cytape.ForwardAccumulator(inputs, tangents) as accumulator:
        found = gradients(workload, inputs, data)
    return found, accumulator.jvp(found)


def tangent_tensors(workload, *batch):
    return [cytape.constant(array) for array in workload.tangents(*batch)]


def check(workload):
    """Fail unless JVPs agree with the gradients, and HVPs with differences of the gradients."""
    inputs = tensors(workload)
    by_reverse = [gradient.numpy() for gradient in gradients(workload, inputs)]
    value, slope = jvp(workload, inputs, tangent_tensors(workload))
    np.testing.assert_allclose(
        value.numpy(), forward(workload, np, workload.inputs), rtol=1e-10, atol=0)
    _, slopes = jvp(workload, inputs, tangent_tensors(workload, BATCH), use_batch=True)
    for actual, tangents in (slope, workload.tangents()), (slopes, workload.tangents(BATCH)):
        np.testing.assert_allclose(
            actual.numpy(),
            sum(np.tensordot(t, g, g.ndim) for t, g in zip(tangents, by_reverse, strict=True)),
            rtol=1e-9, atol=0, err_msg=f"{workload.name}: JVP against gradients")

    def gradient_arrays(*arrays):
        found = gradients(workload, [cytape.constant(array) for array in arrays])
        return [gradient.numpy() for gradient in found]

    found, products = hvp(workload, inputs, tangent_tensors(workload))
    differences = numerical_jvp(gradient_arrays, workload.inputs, workload.tangents(), step=1e-4)
    for i, (gradient, product, difference) in enumerate(
            zip(found, products, differences, strict=True)):
        np.testing.assert_allclose(gradient.numpy(), by_reverse[i], rtol=1e-9)
        np.testing.assert_allclose(
            product.numpy(), difference, rtol=0, atol=1e-6 * abs(difference).max(),
            err_msg=f"{workload.name}: HVP {i} against differences")


def forward_mode_rows(smoke):
    """Yield all rows about forward mode."""
    effort = Effort(2, 0.001) if smoke else Effort(10, 0.1)
    chosen = forward_mode_workloads(smoke)
    for workload in chosen:
        check(workload)
    yield from rows_against_numpy(
        "JVP by forward mode, as a multiple of NumPy's forward pass",
        jvp, [(workload, workload.jvp_at_most) for workload in chosen], effort)
    yield from rows_against_numpy(
        "Hessian-vector product, forward over reverse, as a multiple of NumPy's forward pass",
        hvp, [(workload, workload.hvp_at_most) for workload in chosen], effort)
    yield from rows_of_batches(
        [workload for workload in chosen if workload.batch_at_most is not None], effort)


def rows_against_numpy(group, product, targets, effort):
    for workload, at_most in targets:
        numpy_forward, whole = best_seconds([
            call(forward, workload, np, workload.inputs),
            call(product, workload, tensors(workload), tangent_tensors(workload),
                 workload.constants(cytape.constant)),
        ], effort)
        yield multiple(group, workload.name, numpy_forward, whole, at_most=at_most)


def rows_of_batches(batched_workloads, effort):
    for workload in batched_workloads:
        inputs, data = tensors(workload), workload.constants(cytape.constant)
        one, many = best_seconds([
            call(jvp, workload, inputs, tangent_tensors(workload), data),
            call(jvp, workload, inputs, tangent_tensors(workload, BATCH), data, True),
        ], effort)
        yield multiple(f"JVP of {BATCH} tangents at once, as a multiple of the JVP of one",
                       workload.name, one, many, at_most=workload.batch_at_most)
