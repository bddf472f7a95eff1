from cytape.tensor.values.spec cimport Spec

from cytape.ops.calls.dispatch cimport conform, restored, shape_may_be
from cytape.ops.calls.op_call cimport OpCall

import sys

import numpy as np

from cytape.errors import InvalidGradientError
from cytape.ops.engine import batch_axis


cdef str STACKS = ("if operands are stacks that broadcast, declare core=, how many axes of each "
                   "operand are not of a stack")


cdef class MultilinearOp(GeneralOp):
    def __init__(self, str name, forward, transposes, core=None, batched=None, shape_rule=None):
        self.transposes = tuple(transposes)
        self.core = None if core is None else tuple(core)
        linear_in = [i for i, transpose in enumerate(self.transposes) if transpose is not None]
        if not linear_in or not all([callable(self.transposes[i]) for i in linear_in]):
            raise TypeError(f"op {name!r} needs a transpose, a function, for each operand in which "
                            f"it is linear, None for others; got {self.transposes}")
        if core is not None and len(self.core) != len(self.transposes):
            raise ValueError(f"op {name!r} has {len(self.transposes)} transposes, but core has "
                             f"entries for {len(self.core)} operands")
        # No rule reads the only differentiable operand.
        saved = range(1, sys.maxsize) if linear_in == [0] else None
        GeneralOp.__init__(self, name, forward, gradients_of_factors, None, saved, batched=batched,
                           shape_rule=shape_rule)
        if core is not None:
            self.batch = batch_axis.product
        elif batched is not None:
            self.batch = batch_axis.of_factor(batched)

    cpdef bint is_linear_in(self, Py_ssize_t i):
        return i < len(self.transposes) and self.transposes[i] is not None

    cdef bint may_move(self, Py_ssize_t i) except -1:
        """Return `is_linear_in`; raise if the declaration does not cover operand i."""
        if i >= len(self.transposes):
            raise InvalidGradientError(
                f"op {self.name!r} was declared with {len(self.transposes)} transposes, but is "
                f"differentiated with respect to its input {i}: declare a transpose for it, too, "
                "or None if it has no gradient")
        return self.transposes[i] is not None

    cdef bint has_jvp(self) noexcept:
        return True

    cdef bint takes_batches(self) noexcept:
        return self.batch is not None

    cdef object tangents(self, list inputs, list outputs, dict attrs, list tangents, bint plain,
                         bint batched):
        """Return the tangent by the product rule, over the operands with a tangent."""
        cdef Py_ssize_t i
        cdef list factors
        total = None
        for i, tangent in enumerate(tangents):
            if tangent is None or not self.may_move(i):
                continue
            factors = [restored(value, plain) for value in inputs]
            factors[i] = tangent
            if not batched:
                term = self(*factors, **attrs)
            elif self.batched is not None:
                term = self.batched(
                    self.view_of(inputs, outputs, attrs, tangents, plain), i, *factors)
            else:
                term = self.in_batch(inputs, outputs, attrs, factors,
                                     [j == i for j in range(len(factors))])
            if term is NotImplemented:
                return term
            total = term if total is None else sum_of(total, term)
        return [None] * len(outputs) if total is None else total


def gradients_of_factors(OpCall op not None, *gradients) -> list:
    """Return the gradients of a product's operands, made by the transposes."""
    cdef MultilinearOp product = op.op
    cdef Py_ssize_t i, j
    cdef list factors, results = [None] * len(op.needs)
    cdef tuple inputs = op.inputs
    for i in range(len(results)):
        if not op.needs[i] or not product.may_move(i):
            continue
        factors = list(inputs)
        factors[i] = gradients if len(gradients) > 1 else gradients[0]
        for j, x in enumerate(inputs):
            if j != i and product.is_linear_in(j) and x.dtype.kind == "c":
                factors[j] = np.conj(x)
        try:
            gradient = product.transposes[i](op, *factors)
        except ValueError as error:
            if product.core is None:
                error.add_note(f"in the transpose of op {product.name!r} in input {i}; {STACKS}")
            raise
        if gradient is None:
            raise InvalidGradientError(f"the transpose of op {product.name!r} in its input {i} "
                                       "returned None, not a gradient")
        if product.core is not None and gradient is not NotImplemented and (
                was_broadcast(op.input_specs[i], getattr(gradient, "shape", ()))):
            gradient = conform.sum_to(gradient, op.input_specs[i])
        elif product.core is None and not shape_may_be(
                getattr(gradient, "shape", None), op.input_specs[i]):
            raise InvalidGradientError(
                f"the transpose of op {product.name!r} in its input {i} returned the shape "
                f"{gradient.shape}, but the input has shape {op.input_specs[i].shape}; {STACKS}")
        results[i] = gradient
    return results


cdef object sum_of(x, y):
    if isinstance(x, (tuple, list)):
        return [sum_of(a, b) for a, b in zip(x, y)]
    return x + y


cdef bint was_broadcast(Spec spec, shape) except -1:
    """Return whether an operand of this spec may have been broadcast to a shape."""
    if shape is None or spec.shape is None:
        return True
    return len(shape) >= spec.ndim and all([
        n == m or n is None or m is None or m == 1
        for n, m in zip(shape[len(shape) - spec.ndim:], spec.shape)])
