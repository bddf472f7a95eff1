"""Unknowns and arguments of a user's function: structures to vectors and back, tensors apart."""

from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.wrapped_calls import Arguments
from cytape.tensor import nest
from cytape.tensor.tensor import Tensor


class Unknowns:
    """Vector of all numbers of a starting point, which is an array or a structure of arrays.

    A list or tuple of numbers is an array, as in SciPy.

    Attributes
    ----------
    vector : array_like or Tensor
        An array is left as it is: SciPy checks it.
    """

    def __init__(self, start: Any) -> None:
        leaves, self._structure = nest.flatten(start), None
        of_numbers = isinstance(start, (list, tuple)) and all([np.ndim(x) == 0 for x in leaves])
        if of_numbers or len(leaves) == 1 and leaves[0] is start:
            is_tensor = of_numbers and any([isinstance(leaf, Tensor) for leaf in leaves])
            self.vector = cnp.stack(start) if is_tensor else start
            return
        self._structure = nest.pack_sequence_as(start, [None] * len(leaves))
        self._shapes = [np.shape(leaf) for leaf in leaves]
        self._ends = np.cumsum([0, *map(np.size, leaves)]).tolist()
        self.vector = self.pack(start)

    @property
    def is_structure(self) -> bool:
        """Whether the starting point is a structure."""
        return self._structure is not None

    @property
    def outline(self) -> tuple | None:
        """Structure and shapes, None for an array."""
        return None if self._structure is None else (self._structure, self._shapes)

    def unpack(self, x: Any) -> Any:
        """Return a vector in the structure of the starting point."""
        if self._structure is None:
            return x
        return nest.pack_sequence_as(self._structure, [
            cnp.reshape(x[start:end], shape) if shape else x[start]
            for start, end, shape in zip(self._ends, self._ends[1:], self._shapes, strict=False)])

    def pack(self, structure: Any) -> Any:
        """Return a structure as a vector."""
        if self._structure is None:
            return structure
        leaves = [cnp.ravel(leaf) for leaf in nest.flatten(structure)]
        return cnp.concatenate(leaves) if leaves else np.zeros(0)

    def limits(self, bounds: Any) -> tuple:
        """Return vectors of lower and upper bounds, given in one of SciPy's forms.

        Bounds of a structure are a pair for each of its arrays.
        """
        if hasattr(bounds, "lb"):
            return bounds.lb, bounds.ub
        pairs = bounds
        if self._structure is not None:
            pairs = nest.flatten_up_to(self._structure, bounds)
        sides = []
        for side, free in enumerate((-np.inf, np.inf)):
            ends = [free if pair is None or pair[side] is None else pair[side] for pair in pairs]
            if self._structure is not None:
                ends = [cnp.ravel(cnp.broadcast_to(end, shape))
                        for end, shape in zip(ends, self._shapes, strict=True)]
                sides.append(cnp.concatenate(ends))
            else:
                sides.append(cnp.stack(ends))
        return tuple(sides)


def tuple_of(args: Any) -> tuple:
    """Return additional arguments as a tuple, as SciPy's functions do."""
    return args if isinstance(args, tuple) else (args,)


def separated(*structures: Any) -> Arguments:
    """Return arguments with their tensors apart."""
    return Arguments(structures, nest.flatten(structures))
