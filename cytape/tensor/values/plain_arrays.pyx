cimport numpy as cnp

import numpy as np

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ndarray array_of_scalar "PyArray_FromScalar"(object scalar, void* dtype)

cdef type tensor_type = None


def install_tensor(type tensor):
    """Set the class of tensors."""
    global tensor_type
    tensor_type = tensor


NO_MASKS = (
    "a masked array cannot be combined with tensors, which would lose its mask. Pass "
    "array.filled(0.0), say (array.data may hold NaN, and then gradients are NaN), and choose by "
    "the mask, as in cytape.numpy.where(array.mask, 0.0, x)")


def no_sparse(str kind):
    """Return advice for an operation of a tensor and a sparse matrix of some class."""
    return (
        f"a sparse {kind} of SciPy cannot be combined with tensors in this way, but in products, "
        "as matrix @ tensor, and by the functions of cytape.scipy.sparse.linalg. Pass "
        "matrix.toarray() if that is small enough")


cdef enum:
    MOST_AXES = 64  # NumPy's limit
cdef tuple NUMBERS = (np.number, np.bool_)  # NumPy's scalars
cdef tuple HARMLESS = (ndarray, np.memmap)  # without metadata
box_types = {}  # the classes of boxes by the types of values; arrays of these types are data


cdef int require_plain(x) except -1:
    """Raise for an array, also in a list, whose class gives its data another meaning."""
    return require_plain_at(x, 0)


cdef int require_plain_at(x, int depth) except -1:
    if type(x) is list or type(x) is tuple:
        if depth == MOST_AXES:  # deeper, or a list that holds itself
            raise ValueError(f"lists are nested more deeply than the {MOST_AXES} axes that an "
                             "array can have")
        for item in x:
            if type(item) is not float and type(item) is not int:
                require_plain_at(item, depth + 1)
    elif isinstance(x, ndarray) and type(x) not in HARMLESS:
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(NO_MASKS)
        if isinstance(x, np.matrix):
            raise TypeError(
                "a numpy.matrix cannot be combined with tensors, for which `*` is no matrix "
                "product. Pass numpy.asarray(matrix), and multiply with `@`")
        if type(x) in box_types:
            return 0
        raise TypeError(
            f"an array of class {type(x).__name__} cannot be combined with tensors, which would "
            "lose what the class adds to its data. Pass numpy.asarray(array) if the data are all "
            "that is meant")
    elif not (cnp.PyArray_CheckAnyScalar(x) or isinstance(x, (ndarray, tensor_type))):
        if hasattr(x, "__array__"):
            require_plain_at(np.asanyarray(x), depth)
        elif type(x).__module__.startswith("scipy.sparse"):  # NumPy would make an object array
            raise TypeError(no_sparse(type(x).__name__))
    return 0


def refuse_masks(tensor):
    """Raise an error for the attribute `_data`, which numpy.ma reads from the other operand.

    Not an AttributeError, which would mean a missing attribute: numpy.ma would then convert the
    tensor and drop its gradient.
    """
    raise TypeError(
        "the operators of masked arrays and the functions of numpy.ma take no tensors. Call "
        f"the function of cytape.numpy of the same name; {NO_MASKS}")


cpdef ndarray plain_array(x, dtype=None):
    """Convert to an ndarray; raise for objects that would lose their meaning.

    Parameters
    ----------
    x : array_like
    dtype : dtype, optional

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    TypeError
        For masked arrays, matrices and the like.
    DetachedError
        For a tensor that is being recorded.

    Examples
    --------
    >>> plain_array([1, 2], float)
    array([1., 2.])
    """
    if type(x) is ndarray:
        return x if dtype is None else np.asarray(x, dtype=dtype)
    if isinstance(x, (list, tuple, ndarray)):
        require_plain(x)
    array = np.asanyarray(x, dtype=dtype)
    if type(array) is not ndarray:  # an object may convert to an array that is not plain
        require_plain(array)
    return np.asarray(array)


cdef ndarray as_ndarray(x):
    if type(x) is ndarray and cnp.PyArray_ISNUMBER(x) and cnp.PyArray_ISNOTSWAPPED(x):
        return x
    if isinstance(x, NUMBERS):
        return array_of_scalar(x, NULL)
    array = plain_array(x)
    if array.dtype.hasobject or array.dtype.names is not None:
        of = ", ".join(sorted({type(item).__name__ for item in array.flat[:5]}))
        raise TypeError("a tensor holds numbers (or booleans, strings, dates), "
                        f"not {array.dtype} data; got {type(x).__name__}" + (of and f" of {of}"))
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
