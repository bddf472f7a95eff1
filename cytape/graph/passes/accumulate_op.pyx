cimport cython
from cytape.core.vspace cimport OpType
from cytape.ops.calls.dispatch cimport Lowering
from cytape.ops.engine.index_op cimport find_region
from cytape.ops.kernels.sums cimport add_loop_of
from cytape.ops.kernels.walk cimport MAX_AXES, broadcast_strides
from numpy cimport npy_intp

import numpy as np


@cython.final
cdef class AccumulateOp(Op):
    """A sum of terms, each added to the part of the result where it is not zero.

    Results equal sums of whole arrays, from left to right, except for signs of zeros.

    Parameters
    ----------
    spec : Spec
        Of the sum; floating or complex.
    operand_specs : sequence of Spec
        Of the same dtype.
    indices : sequence
        Per operand the part of the sum that it is added to: integers, slices, None and Ellipsis, in
        a tuple if there are many; or None for all of it.

    Raises
    ------
    ValueError
        If an operand does not fit its part of the sum.

    Examples
    --------
    >>> from cytape.tensor.values.spec import Spec
    >>> pair, triple = Spec.of((2,), float), Spec.of((3,), float)
    >>> op = AccumulateOp(triple, [pair, pair], [slice(0, 2), slice(1, 3)])
    >>> op.forward(np.array([1.0, 2.0]), np.array([10.0, 20.0]))
    array([ 1., 12., 20.])
    """

    def __init__(self, Spec spec not None, operand_specs, indices):
        cdef Region region
        self.op_type = OpType("Accumulate")
        self.lowering = Lowering.ACCUMULATED
        self.op_type.kind.owner = <void*>self
        self.spec = spec
        self.operand_specs = tuple(operand_specs)
        self.indices = tuple(indices)
        for operand, index in zip(self.operand_specs, self.indices):
            if not is_part(index, operand, spec, &region):
                raise ValueError(f"a term of shape {operand.shape} cannot be added to {index} of "
                                 f"an array of shape {spec.shape}")
        self.first_is_all = bool(self.indices) and self.indices[0] is None and (
            (<Spec>self.operand_specs[0]).size == spec.size)

    @property
    def __doc__(self) -> str:
        return f"Sum of {len(self.indices)} terms, each added to where it belongs."

    cdef object infer(self, list inputs, dict attrs):
        return self.spec

    def forward(self, *arrays):
        """Return the sum of arrays of the operands' specs."""
        total = np.zeros(self.spec.shape, self.spec.dtype)
        for x, index in zip(arrays, self.indices):
            total[... if index is None else index] += x
        return total


cdef bint is_part(index, Spec operand, Spec total, Region* region) except -1:
    cdef npy_intp strides[MAX_AXES]
    return (operand.known and total.known and operand.type_num == total.type_num
            and add_loop_of(total) != NULL
            and find_region(Ellipsis if index is None else index, NULL, total, region)
            and broadcast_strides(operand, NULL, region.ndim, region.dims, strides))
