"""Results of traced functions: structures whose tensors are outputs of a trace."""

import numpy as np

from cytape.ops.calls.symbolic cimport SymbolicGraph, own_symbol
from cytape.tensor.nest cimport pack_sequence_as
from cytape.tensor.tensor cimport Tensor

from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.structures import leaves_of_result
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import UnknownShape

cdef tuple tensors_or_numbers = (Tensor, np.ndarray, np.generic, float, complex, int)


cdef class Results:
    """The result of a traced function: a structure with tensors in some places."""

    def __init__(self, SymbolicGraph graph, structure):
        cdef list leaves, tensors = []
        cdef Py_ssize_t place
        self.places = []
        self.kind = kind_of_row(structure)
        if self.kind is not None:
            tensors = list(structure)
        else:
            leaves = leaves_of_result(structure)
            self.single = len(leaves) == 1 and leaves[0] is structure
            for place, leaf in enumerate(leaves):
                if isinstance(leaf, tensors_or_numbers) and not isinstance(leaf, bool):
                    tensors.append(leaf)
                    leaves[place] = None
                elif isinstance(leaf, IndexedSlices):
                    slices = leaves[place] = Slices(leaf)
                    tensors += slices.tensors
                else:
                    continue
                self.places.append(place)
            self.leaves = leaves
            if not self.single:
                self.structure = pack_sequence_as(structure, [None] * len(leaves))
        self.symbols = tuple([
            own_symbol(graph, tensor if type(tensor) is Tensor else convert_to_tensor(tensor))
            for tensor in tensors])

    cdef pack(self, list results, converted=None):
        """Return the structure with converted results in the places of tensors."""
        if self.kind is not None:
            if converted is not None:
                results = [converted(x) for x in results]
            return results if self.kind is list else tuple(results)
        if self.single and len(results) == 1:
            return results[0] if converted is None else converted(results[0])
        cdef list leaves = list(self.leaves)
        remaining = iter(results)
        for place in self.places:
            leaf = leaves[place]
            if isinstance(leaf, Slices):
                leaves[place] = leaf.pack(remaining)
            else:
                leaf = next(remaining)
                leaves[place] = leaf if converted is None else converted(leaf)
        return leaves[0] if self.single else pack_sequence_as(self.structure, leaves)


cdef object kind_of_row(structure):
    """Return the type of a list or tuple of tensors only, None for other structures."""
    kind = type(structure)
    if kind is not list and kind is not tuple:
        return None
    for leaf in structure:
        if type(leaf) is not Tensor:
            return None
    return kind


def as_array(tensor):
    """Return a tensor as an array that the caller owns, a scalar as a number."""
    array = np.array(data_of(tensor))
    return array if array.ndim else array[()]


class Slices:
    """The place of indexed slices in a structure."""

    def __init__(self, slices):
        self.tensors = [slices.values, slices.indices]
        self._dense_shape = shape = slices.dense_shape
        self._has_like = False  # else the shape is that of a tensor, known at run time
        if isinstance(shape, UnknownShape) and shape.tensor is not None:
            self._has_like = True
            self._dense_shape = None
            self.tensors.append(shape.tensor())

    def pack(self, results):
        values, indices = next(results), next(results)
        shape = next(results).spec.extents if self._has_like else self._dense_shape
        return IndexedSlices(values, indices, shape)
