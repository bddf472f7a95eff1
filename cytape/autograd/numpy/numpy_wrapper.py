"""Functions that differ from those of `cytape.numpy`, and autograd's helpers to wrap functions."""

import numpy as _np

import cytape.numpy as _functions
from cytape.autodiff.custom.boxes import detached
from cytape.autograd.tracer import Box, getval, notrace_primitive, primitive
from cytape.tensor.tensor import Tensor

__all__ = [
    "Box", "array_from_args", "clip", "concatenate_args", "int16", "int32", "int64", "int8", "int_",
    "integer", "make_diagonal", "metadata", "ndarray", "notrace_functions", "notrace_primitive",
    "numpy_version", "parse_einsum_input", "primitive", "vectorize", "where", "wrap_intdtype",
    "wrap_namespace",
]  # fmt: skip

ndarray = _np.ndarray  # that of cytape.numpy has tensors as instances
numpy_version = _np.__version__
notrace_functions = [_np.ndim, _np.shape, _np.iscomplexobj, _np.result_type]
_BOUNDS = ("a_min", "a_max", "min", "max")


def __getattr__(name):
    return getattr(_functions, name)


def where(condition, *args, **kwargs):
    """Choose elements, as `numpy.where`; return a list or a number if no argument is an array.

    Examples
    --------
    >>> where([True, False], [1, 2], y=[3, 4])
    [1, 4]
    """
    args += tuple([kwargs.pop(name) for name in ("x", "y") if name in kwargs])
    chosen = _functions.where(condition, *args, **kwargs)
    if type(chosen) is not ndarray or not args or any(map(_has_arrays, (condition, *args))):
        return chosen
    return chosen.tolist()


def _has_arrays(x):
    if isinstance(x, (list, tuple)):
        return any(map(_has_arrays, x))
    return isinstance(x, (ndarray, _np.generic, Tensor))


def clip(a, *args, **kwargs):
    """Limit values to an interval, as `numpy.clip`; the derivative is 0 at the bounds.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda x: clip(x, 0.0, 1.0).sum())(_np.array([0.0, 0.5, 1.0]))
    array([0., 1., 0.])
    """
    clipped = _functions.clip(a, *args, **kwargs)
    bounds = [*args[:2], *[kwargs[name] for name in _BOUNDS if name in kwargs]]
    if not isinstance(a, Tensor) or any([isinstance(bound, Tensor) for bound in bounds]):
        return clipped
    values = detached(clipped)
    inside = _functions.logical_and(*[
        True if bound is None else values != bound for bound in bounds])
    if not isinstance(inside, Tensor) and inside.all():
        return clipped
    return _functions.where(inside, clipped, values)


class vectorize(_np.vectorize):
    """Make a function of arrays from one of numbers, as `numpy.vectorize`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda x: vectorize(lambda t: t**2)(x).sum())(_np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def __call__(self, *args, **kwargs):
        """Call the function for each element."""
        is_plain = not any([isinstance(x, Tensor) for x in args])
        if is_plain or kwargs or self.signature or self.excluded or self.otypes:
            return super().__call__(*args, **kwargs)
        arrays = _functions.broadcast_arrays(*args)
        results = list(map(self.pyfunc, *map(_functions.ravel, arrays)))
        return _functions.reshape(_functions.array(results), arrays[0].shape)


def wrap_intdtype(cls):
    """Make a type like one of NumPy's integer types, whose call takes tensors, too."""
    return _Integers(cls.__name__, (cls,), {})


class _Integers(type):
    def __call__(cls, *args):
        return cls.__base__(*map(getval, args))

    def __instancecheck__(cls, x):
        return isinstance(x, cls.__base__)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.__base__)


def wrap_namespace(old, new):
    """Copy the names of a module; functions become primitives, to be given derivatives.

    Examples
    --------
    >>> import math
    >>> names = {}
    >>> wrap_namespace(vars(math), names)
    >>> names["sin"](1.0) == math.sin(1.0), names["pi"] == math.pi
    (True, True)
    """
    wrapped = {}  # by the object's id: conj and conjugate stay one function
    for name, value in old.items():
        if id(value) not in wrapped:
            if value in notrace_functions:
                wrapped[id(value)] = notrace_primitive(value)
            elif callable(value) and type(value) is not type:
                wrapped[id(value)] = primitive(value)
            elif type(value) in (float, int, type(None), type):
                wrapped[id(value)] = value
            else:
                continue
        new[name] = wrapped[id(value)]


def _astype(A, dtype, order="K", casting="unsafe", subok=True, copy=True):
    return _functions.astype(A, dtype, copy=copy)


def array_from_args(array_args, array_kwargs, *args):
    """Return the array of some arrays or numbers."""
    return _functions.array(list(args), *array_args, **array_kwargs)


def concatenate_args(axis, *args):
    """Join arrays along an axis."""
    return _functions.concatenate(args, axis)


def make_diagonal(D, offset=0, axis1=0, axis2=1):
    """Return the matrices whose diagonals are the last axis of an array.

    Examples
    --------
    >>> make_diagonal(_np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError(
            "Currently make_diagonal only supports offset=0, axis1=-1, axis2=-2")
    return _functions.where(_np.eye(D.shape[-1], dtype=bool), D[..., None], 0.0)


def metadata(A):
    """Return the shape, the number of axes and the dtype of an array, and whether it is complex."""
    array = A if isinstance(A, Tensor) else _np.asarray(A)
    return array.shape, array.ndim, array.dtype, array.dtype.kind == "c"


def parse_einsum_input(*args):
    """Return the subscripts of the operands and of the result of `einsum`, and the operands."""
    from numpy._core.einsumfunc import _parse_einsum_input

    return _parse_einsum_input([detached(arg) for arg in args])


int8, int16, int32 = map(wrap_intdtype, (_np.int8, _np.int16, _np.int32))
int64, int_, integer = map(wrap_intdtype, (_np.int64, _np.int_, _np.integer))
