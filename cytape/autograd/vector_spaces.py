"""Base class of vector spaces, whose elements are gradients, and sums of gradients."""

from functools import reduce

from cytape.autodiff.custom import boxes
from cytape.autodiff.custom.boxes import vspace


def sum_outgrads(gradients):
    """Return the sum of gradients of one value."""
    return reduce(lambda a, b: vspace(a).add(a, b), gradients)


class VSpace:
    """Base class of vector spaces, whose elements are gradients.

    A subclass is the space of the values whose class it is registered for.

    Parameters
    ----------
    value : object
        An element.
    """

    __slots__ = []
    mappings = boxes.vspaces
    iscomplex = False

    def __init__(self, value):
        pass

    def zeros(self):
        """Return the zero of the space."""
        raise NotImplementedError(repr(self))

    ones = standard_basis = randn = zeros

    @boxes.primitive
    def mut_add(self, x_prev, x_new):
        """Add in place to an element, None for zero; return the sum."""
        return self._mut_add(self.zeros() if x_prev is None else x_prev, x_new)

    @boxes.primitive
    def add(self, x_prev, x_new):
        """Return the sum of two elements."""
        return self._add(x_prev, x_new)

    @boxes.primitive
    def scalar_mul(self, x, a):
        """Return the product with a number."""
        return self._scalar_mul(x, a)

    @boxes.primitive
    def inner_prod(self, x, y):
        """Return the inner product of two elements."""
        return self._inner_prod(x, y)

    @boxes.primitive
    def covector(self, x):
        """Return the linear function of an element, as an element."""
        return self._covector(x)

    def _add(self, x, y):
        return x + y

    def _mut_add(self, x, y):
        x += y
        return x

    def _scalar_mul(self, x, a):
        return x * a

    def _inner_prod(self, x, y):
        raise NotImplementedError(repr(self))

    def _covector(self, x):
        return x

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr__(self):
        return f"{type(self).__name__}_{self.__dict__}"

    @classmethod
    def register(cls, value_type, vspace_maker=None):
        """Make this the space of values of a type, or another function of a value."""
        VSpace.mappings[value_type] = vspace_maker or cls
