cimport numpy as cnp
from numpy cimport ndarray

from cytape.tensor.recording.conversion_guards cimport (
    ASKED, converted, detached, examined, require_unrecorded)
from cytape.tensor.recording.thread_stack cimport building
from cytape.tensor.values.plain_arrays cimport as_ndarray, plain_array, require_plain
from cytape.tensor.values.value cimport array_of, copy_of_array, value_of_array

from .noted_views cimport note_foreign
from .operators cimport functions
from .tensor cimport new_tensor

import sys

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.tensor.names_elsewhere import unexpected
from cytape.tensor.tensor import tensor_of
from cytape.tensor.tensor_methods import install_methods
from cytape.tensor.values.user_warnings import numpy_call, warn


def tensor_of_copy(array) -> Tensor:
    """Return a tensor with a copy of an array."""
    return new_tensor(copy_of_array(as_ndarray(array)))


def constant(value, dtype=None, name=None, **unknown) -> Tensor:
    """Return a new tensor with a copy of the given data.

    Parameters
    ----------
    value : array_like
        Numbers, nested sequences of numbers, an array or a tensor.
    dtype : dtype, optional
        By default NumPy's choice: Python floats become float64.
    name : str, optional
        Of the operation, where a graph is being built.

    Returns
    -------
    Tensor
        Where a graph is being built it is an output of that.

    Raises
    ------
    TypeError
        If the data are Python objects without a numeric type; for a keyword of another library.
    ValueError
        If nested sequences are ragged.
    DetachedError
        If the value is a tensor that is being recorded, whose gradient would be lost.
    SymbolicTensorError
        If it has no value yet, or is a variable and a graph is being built.

    See Also
    --------
    convert_to_tensor : Keeps the gradient of a tensor.

    Examples
    --------
    >>> from cytape import constant
    >>> constant([[1, 2], [3, 4]], dtype="float32")
    Tensor([[1., 2.],
            [3., 4.]], dtype=float32)
    """
    for keyword in unknown:
        raise unexpected("constant", keyword)
    return constant_of(value, dtype, name)


cdef Tensor constant_of(value, dtype, name=None):
    if isinstance(value, Tensor):
        array = examined(value, (<Tensor>value).held, "cytape.constant")
        require_unrecorded(value, (<Tensor>value).held, "cytape.constant")
        value = array
    tensor = new_tensor(copy_of_array(as_ndarray(plain_array(value, dtype))))
    graph = building()
    return tensor if graph is None else graph.constant(tensor, name)


cpdef Tensor convert_to_tensor(value, dtype=None):
    """Return a value as a tensor: a tensor unchanged, a variable's present value, a copy of data.

    The tensor made of a variable, and views of it, must not be written to; `Variable.value` returns
    a writable one.

    Parameters
    ----------
    value : Tensor, Variable or array_like
        Nested sequences may contain tensors; the result is then connected to them.
    dtype : dtype, optional
        The dtype of the result.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError, ValueError
        As for `constant`.

    Examples
    --------
    >>> x = constant(1.0)
    >>> convert_to_tensor(x) is x
    True
    """
    cdef Tensor tensor
    if type(value) is Tensor:
        return value if dtype is None or value.dtype == dtype else functions["astype"](value, dtype)
    if isinstance(value, Tensor):
        tensor = value.value()
        if tensor.held.spec.ndim != 0:  # not a scalar, which NumPy would copy
            note_foreign(tensor)
        return convert_to_tensor(tensor, dtype)
    if isinstance(value, (list, tuple)):
        array = functions["asarray"](value, dtype=dtype)
        return array if isinstance(array, Tensor) else tensor_of(as_ndarray(array))
    if type(value) is not ndarray and hasattr(value, "to_tensor"):
        return convert_to_tensor(value.to_tensor(), dtype)
    return constant_of(value, dtype)


def given(**arguments) -> dict:
    """Return the arguments that are not None: NumPy 2.0 knows few of them."""
    return {name: value for name, value in arguments.items() if value is not None}


def from_dlpack(x, /, *, device=None, copy=None) -> Tensor:
    """Return a tensor with the data of an object with the DLPack protocol, as numpy.from_dlpack.

    Parameters
    ----------
    x : object with ``__dlpack__`` and ``__dlpack_device__``
        An array of another library, in the memory of this machine's processor.
    device : {None, "cpu"}, optional
    copy : bool, optional
        If False, the tensor shares the memory, which must not change any more: gradients read it.
        By default and if True the data are copied.

    Returns
    -------
    Tensor

    Raises
    ------
    BufferError or RuntimeError
        If the data cannot be exported, or are on another device.

    Examples
    --------
    >>> import numpy as np
    >>> from_dlpack(np.arange(3.0))
    Tensor([0., 1., 2.])
    """
    if isinstance(x, ndarray):
        require_plain(x)
    array = as_ndarray(np.from_dlpack(x, **given(device=device, copy=None if copy else copy)))
    return new_tensor(value_of_array(array) if copy is False else copy_of_array(array))


# ---- methods of tensors: conversions, which are not recorded


def numpy(Tensor self not None):
    """Return the data as a read-only ndarray; computations with it are not recorded.

    Returns
    -------
    numpy.ndarray
        A view of the tensor's own data: nothing is copied. Write to a ``copy()`` of it.

    Examples
    --------
    >>> from cytape import constant
    >>> constant([1.0, 2.0]).numpy()
    array([1., 2.])
    """
    return detached(self, self.held, ASKED)


def item(Tensor self not None, *index):
    """Return one element as a Python scalar, as numpy.ndarray.item does.

    Parameters
    ----------
    *index : int or tuple of int
        Which element; may be left out if there is only one.

    Returns
    -------
    float, int, bool or complex

    Raises
    ------
    ValueError
        If no index is given, but the tensor does not have exactly one element.
    IndexError
        If the index is out of bounds.

    Examples
    --------
    >>> from cytape import constant
    >>> constant([[1.0, 2.0]]).item(0, 1)
    2.0
    """
    return detached(self, self.held, ASKED).item(*index)


def tolist(Tensor self not None):
    """Return the data as nested lists of Python scalars.

    Returns
    -------
    list or scalar
        Nested as deeply as the tensor has axes.

    Examples
    --------
    >>> from cytape import constant
    >>> constant([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return detached(self, self.held, ASKED).tolist()


cdef bint is_asked_by_sparse_product() except -1:
    """Return whether the caller is the product of a sparse matrix of SciPy, ``matrix @ tensor``."""
    frame = sys._getframe(0)
    return frame.f_code.co_name == "_matmul_dispatch" and frame.f_globals.get(
        "__name__", "").startswith("scipy.sparse")


def __array__(Tensor self not None, dtype=None, copy=None):
    if is_asked_by_sparse_product():  # it returns NotImplemented then, and Python calls the tensor
        array = np.empty((), object)
        array[()] = self
        return array
    try:
        array = converted(self, self.held, "NumPy")
    except SymbolicTensorError:
        if numpy_call() not in ("array_equal", "array_equiv"):
            raise
        if not self.held.spec.known:
            warn(f"{self} has no value yet, and so NumPy says that it differs from anything: call "
                 "cytape.numpy.array_equal or array_equiv")
            raise
        return np.full(self.shape, NoValue(self), object)  # NumPy hides errors here
    return np.array(array, dtype=dtype, copy=copy)


class NoValue:
    """An element of a symbolic tensor, which raises an error if it is compared."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __eq__(self, other):
        return bool(self.tensor)

    __ne__ = __eq__
    __hash__ = None


def __dlpack__(Tensor self not None, *, stream=None, max_version=None, dl_device=None, copy=None):
    """Export a copy of the data; if `copy` is False the data, shared and marked as read-only.

    Consumers may write to what they get: PyTorch ignores the mark. JAX cannot ask for shared data,
    but never writes to them, also not to those of donated arrays: it always shares.
    """
    cdef ndarray array = converted(self, self.held, "__dlpack__")
    consumer = sys._getframe(0).f_globals.get("__name__", "").partition(".")[0]
    if copy is False and min((<object>array).strides, default=0) < 0:
        raise BufferError(  # PyTorch would end the process
            "a tensor with a reversed axis is exported as a copy only: pass copy=True or None")
    if copy is None and consumer == "jax" and (<object>array).flags.forc:
        array = array.view()
        cnp.PyArray_ENABLEFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)  # NumPy exports no others to it
    elif copy is not False:
        array, copy = array.copy(), None
    return array.__dlpack__(**given(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy))


def __dlpack_device__(Tensor self not None):
    return array_of(self.held).__dlpack_device__()


def __reduce__(Tensor self not None):
    return tensor_of_copy, (converted(self, self.held, "pickle or copy"),)


install_methods({method.__name__: method for method in (
    numpy, item, tolist, __array__, __dlpack__, __dlpack_device__, __reduce__)})
