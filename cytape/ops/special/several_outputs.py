"""Ufuncs of several outputs, and those whose partial derivatives are computed at once."""

import functools
import operator

import numpy as np

from cytape.ops.adjoints.conform import broadcast_batch_to, broadcast_to, sum_to
from cytape.ops.adjoints.missing_derivatives import ANY_INPUTS
from cytape.ops.adjoints.tangent_batches import broadcast_batch_like, is_known
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import ANY_OUTPUT, elementwise, general
from cytape.ops.shapes import shape_rules
from cytape.tensor.values.spec import spec_like


def with_slopes(name, ufunc, slopes):
    """Declare an elementwise op by a function that returns all its partial derivatives."""
    partials = [lambda *given, i=i: slopes(*given)[i] for i in range(ufunc.nin)]
    return elementwise(name, ufunc, *partials, together=slopes)


def several(name, ufunc, *rows):
    """Declare an op of several outputs, which acts on each element (after broadcasting).

    Parameters
    ----------
    name : str
    ufunc : numpy.ufunc
    *rows : callable
        One per input: called with the outputs and the inputs, it returns the derivatives of the
        outputs with respect to this input. As in `elementwise`, a derivative may be a function that
        maps the gradient to the product.

    Returns
    -------
    GeneralOp
    """

    def vjp(op, *gradients):
        found = [None] * len(rows)
        for i, row in enumerate(rows):
            if op.needs[i]:
                total = None
                for g, partial in zip(gradients, row(op.outputs, *op.inputs), strict=True):
                    if g is not None:
                        term = _times(g, _conjugate(partial))
                        total = term if total is None else total + term
                found[i] = sum_to(total, op.input_specs[i])
        return found if len(rows) > 1 else found[0]

    def jvp(op, *tangents):
        out = op.output_specs[0]
        return [broadcast_to(total, out.extents) for total in _totals(op, tangents)]

    def batched(op, *tangents):
        out = op.output_specs[0]
        known = out.known and all(t is None or is_known(t) for t in tangents)
        return _totals(op, [
            None if t is None else broadcast_batch_to(t, out.shape) if known
            else broadcast_batch_like(t, out) for t in tangents])

    def _totals(op, tangents):
        terms = [[_times(t, partial) for partial in row(op.outputs, *op.inputs)]
                 for row, t in zip(rows, tangents, strict=True) if t is not None]
        return [functools.reduce(operator.add, column) for column in zip(*terms, strict=True)]

    def shape_rule(*specs):
        shaped = shape_rules.broadcast_specs(specs, ufunc.__name__)
        with np.errstate(all="ignore"):
            examples = ufunc(*[np.ones((), spec.dtype) for spec in specs])
        return tuple([spec_like(shaped, example.dtype) for example in examples])

    return general(
        name, ufunc, vjp, jvp, saved_outputs=range(ufunc.nout), optional_gradients=ANY_OUTPUT,
        optional_tangents=ANY_INPUTS, batched=batched, shape_rule=shape_rule,
        batch=batch_axis.aligned)


def _times(x, partial):
    return partial(x) if callable(partial) else x * partial


def _conjugate(partial):
    dtype = getattr(partial, "dtype", None)
    return partial if dtype is None or dtype.kind != "c" else np.conj(partial)
