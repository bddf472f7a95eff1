from cpython.ref cimport PyObject

from .operators cimport functions
from .tensor cimport Tensor

from functools import partial

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict
        const char* tp_name

    void PyType_Modified(type cls)

# Attributes that only variables, tensors of graphs or results of assignments there have.
cdef tuple OF_SOME = ("assign", "assign_add", "assign_sub", "name", "op", "value_index")
cdef bytes class_name = b""  # kept, as the class has only its address
cdef dict refused = {}         # attributes of other libraries' tensors, with their replacements


def install_methods(dict methods):
    """Give tensors methods; each is called with the tensor as its first argument.

    Parameters
    ----------
    methods : dict of str to function
    """
    (<dict>(<PyTypeObject*>Tensor).tp_dict).update(methods)
    PyType_Modified(Tensor)


def name_class(str name):
    """Give the class of tensors another name.

    Parameters
    ----------
    name : str
        With its module: other libraries choose functions by ``type(x).__module__``.
    """
    global class_name
    class_name = name.encode()
    (<PyTypeObject*>Tensor).tp_name = class_name
    PyType_Modified(Tensor)


def install_refusals(dict instead):
    """Register the replacements that errors about missing attributes name.

    Parameters
    ----------
    instead : dict of str to str
        Begins with what the attribute does, after "which".
    """
    refused.update(instead)
    install_methods({  # also if assigned to
        name: property(*[partial(refuse, name)] * 2, None, f"Not here: what {text}.")
        for name, text in instead.items()})


def refuse(str name, tensor, value=None):
    raise AttributeError(f"a tensor has no {name!r}, which {refused[name]}")


# ---- methods that take their arguments in more ways than the functions of the same names

def reshape(self, *shape, order="C", copy=None):
    """Return the tensor with another shape; see numpy.reshape.

    Parameters
    ----------
    *shape : int or tuple of int
        The extents, of as many elements; one may be -1 and follows from the others.
    order : {"C", "F", "A"}, optional
        In which order the elements are read and placed.
    copy : bool, optional
        As numpy.reshape takes it.

    Examples
    --------
    >>> import cytape
    >>> cytape.constant([1, 2, 3, 4]).reshape(2, -1)
    Tensor([[1, 2],
            [3, 4]], dtype=int64)
    """
    new_shape = shape[0] if len(shape) == 1 else shape
    return functions["reshape"](self, new_shape, order=order, copy=copy)


def transpose(self, *axes):
    """Return the tensor with its axes permuted; see numpy.transpose.

    Parameters
    ----------
    *axes : int or tuple of int
        For each axis of the result the axis it is taken from, a permutation; by default all are
        reversed.

    Examples
    --------
    >>> import cytape
    >>> cytape.constant([[1, 2, 3]]).transpose().shape
    (3, 1)
    """
    return functions["transpose"](self, (axes[0] if len(axes) == 1 else axes) if axes else None)


def astype(self, dtype, **arguments):
    """Return the tensor with another dtype; see numpy.ndarray.astype.

    Parameters
    ----------
    dtype : dtype
        Gradients flow through the cast if this and the tensor's own are floating or complex.
    **arguments
        As numpy.ndarray.astype takes them.

    Examples
    --------
    >>> import cytape
    >>> cytape.constant([1, 2]).astype("float32")
    Tensor([1., 2.], dtype=float32)
    """
    return functions["astype"](self, dtype, **arguments)


def __dir__(self):
    names = [x for x in object.__dir__(self) if x != "_data" and x not in refused]
    return [x for x in names if x not in OF_SOME or hasattr(self, x)]


install_methods({method.__name__: method for method in (astype, reshape, transpose, __dir__)})
