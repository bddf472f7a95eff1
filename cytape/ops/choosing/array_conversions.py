"""NumPy's conversions to arrays, such as `asanyarray`; tensors stay tensors."""

from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.memory_order import is_contiguous, with_memory
from cytape.ops.calls.operands import is_tensor, values_of
from cytape.ops.creation import asarray, in_order
from cytape.ops.elementwise import absolute, imag, real
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.shaping import atleast_1d
from cytape.tensor import Tensor, convert_to_tensor

__all__ = [
    "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "real_if_close",
    "require",
]  # fmt: skip


def asanyarray(a, dtype=None, order=None, **options) -> Any:
    """Return a tensor unchanged, or make one of nested sequences, as `numpy.asanyarray`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.asanyarray([1.0])
    array([1.])
    """
    if type(a) is Tensor and dtype is None and order is None and not options:
        return a
    return (asarray if is_tensor(a) else np.asanyarray)(a, dtype, order, **options)


@numpy_function(np.asarray_chkfinite)
def asarray_chkfinite(a, dtype=None, order=None) -> Any:
    """Return a tensor after a check that it has no NaN and no infinity.

    As `numpy.asarray_chkfinite`; symbolic tensors are not checked.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.asarray_chkfinite([1.0])
    array([1.])
    """
    a = asarray(a, dtype, order)
    values = values_of(a)
    if values is not None and a.dtype.kind in "fc" and not np.all(np.isfinite(values)):
        raise ValueError("array must not contain infs or NaNs")
    return a


def _laid_out(name, order):
    numpy_function = getattr(np, name)

    def function(a, dtype=None, **options):
        if type(a) is Tensor and dtype is None and a.ndim and not options and (
                is_contiguous(a, order)):
            return a
        if not is_tensor(a):
            return numpy_function(a, dtype, **options)
        if options:
            numpy_function(0, **options)  # raises NumPy's error
        return atleast_1d(asarray(a, dtype, order))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return a tensor of at least one axis, as `numpy.{name}`.

    It is a copy where NumPy's is.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.{name}([1.0])
    array([1.])
    """
    return function


ascontiguousarray = _laid_out("ascontiguousarray", "C")
asfortranarray = _laid_out("asfortranarray", "F")


@numpy_function(np.require)
def require(a, dtype=None, requirements=None, **options) -> Any:
    """Return a tensor that meets requirements, as `numpy.require`: a copy where NumPy's is.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.require([1.0], "float32")
    array([1.], dtype=float32)
    """
    np.require(np.zeros(1), None, requirements, **options)  # raises NumPy's error
    letters = {x[0].upper() for x in requirements or ()}
    order = "F" if "F" in letters else "C" if "C" in letters else "A"
    a = asarray(a, dtype, order)
    flags = with_memory(a).flags
    return a if all(flags[x] for x in letters & {"O", "W"}) else in_order(a, order)


@numpy_function(np.real_if_close)
def real_if_close(a, tol=100) -> Any:
    """Return the real part if all imaginary parts are close to 0, as `numpy.real_if_close`.

    Symbolic tensors raise an error, since values are unknown.

    Examples
    --------
    >>> import cytape
    >>> np.real_if_close(cytape.constant([1.0 + 0.0j])).numpy()
    array([1.])
    """
    a = convert_to_tensor(a)
    if a.dtype.kind != "c":
        return a
    if tol > 1:
        tol = np.finfo(a.dtype).eps * tol
    if a.graph is not None:
        raise SymbolicTensorError(
            "real_if_close: whether it drops the imaginary part depends on values, which symbolic "
            "tensors do not have yet; take tensor.real or tensor itself")
    close = np.all(absolute(imag(a)) < tol)
    return real(a) if bool(close) else a
