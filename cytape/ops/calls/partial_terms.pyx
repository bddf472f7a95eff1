from cytape.tensor.tensor cimport Tensor

from .dispatch cimport conform, restored, spec_of_ref

import numpy as np


cdef object operand(x, Spec out, bint plain):
    """Return a saved input in the output's dtype, in which the op computed with it.

    In its own dtype partials would differ: -x wraps for unsigned integers, and the logarithm of an
    8-bit integer has half precision. A complex input of a real output is not cast.
    """
    cdef Spec spec = spec_of_ref(x)
    found = restored(x, plain)
    if found is None or spec.type_num == out.type_num or (
            spec.dtype.kind == "c" and out.dtype.kind != "c"):
        return found
    return found.astype(out.dtype) if plain else conform.cast(found, out.dtype)


def operands(Tensor output not None, list inputs) -> list:
    """Return the inputs of an elementwise op as its partials read them.

    Parameters
    ----------
    output : Tensor
    inputs : list of Tensor

    Returns
    -------
    list of Tensor
    """
    return [operand((<Tensor>x).held, output.held.spec, False) for x in inputs]


cdef object times(gradient, partial):
    """Multiply by a partial derivative.

    A boolean one selects, for 0 * inf is NaN; a function is called, for the same reason.
    """
    if partial is 1:
        return gradient
    if callable(partial):
        return partial(gradient)
    if getattr(partial, "dtype", None) == bool:
        return np.where(partial, gradient, 0)
    return gradient * partial


cdef object conjugate(partial):
    dtype = getattr(partial, "dtype", None)
    return partial.conj() if dtype is not None and dtype.kind == "c" else partial


cdef object unknown_batch(tuple partials, output, list inputs, Value out, list tangents):
    """Return a batch of tangents of a symbolic output; extents or directions may be unknown."""
    total = None
    fits = False  # whether an input with a tangent is known to have the output's shape
    for partial, tangent, x in zip(partials, tangents, inputs):
        if tangent is None or partial is None:
            continue
        if out.spec.shape is None or tangent.ndim is None:
            return NotImplemented
        fits |= x.spec.extents is out.spec.extents or x.spec.known and x.shape == out.spec.shape
        if tangent.ndim <= out.spec.ndim:
            aligned_one = conform.broadcast_batch_like(tangent, restored(out, False))
        else:
            aligned_one = tangent
        term = times(aligned_one, partial(output, *inputs))
        total = term if total is None else total + term
    if total is None or fits:
        return total
    return conform.broadcast_batch_like(total, restored(out, False))
