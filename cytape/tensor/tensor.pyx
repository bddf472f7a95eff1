cimport cython
cimport numpy as cnp
from cpython.object cimport Py_EQ, Py_GT, Py_LE, Py_LT, Py_NE
from cpython.ref cimport PyObject

from .deaths cimport Counts, counts, handle_died, handle_revived
from .operators cimport (
    functions, op_absolute, op_add, op_divide, op_equal, op_floor_divide, op_getitem, op_greater,
    op_greater_equal, op_less, op_less_equal, op_matmul, op_multiply, op_negative, op_not_equal,
    op_positive, op_power, op_remainder, op_square, op_subtract)
from .state cimport building, followers_of, note_detachment
from .value cimport array_of, copy_of_array, is_symbolic, symbol_of, value_of_array

import numpy as np

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.tensor.references import TensorReference

cnp.import_array()

cdef extern from "Python.h":
    ctypedef struct PySequenceMethods:
        void* sq_item

    ctypedef struct PyTypeObject:
        PySequenceMethods* tp_as_sequence
        PyObject* tp_dict

    void PyType_Modified(type cls)

cdef Counts* recorders = counts()
cdef Py_ssize_t live = 0
cdef bint making = False       # a tensor with a value, which Python code cannot
cdef object variable_type = None


def install_variable(type variable):
    """Tell which subclass makes its own value."""
    global variable_type
    variable_type = variable


def install_methods(dict methods):
    """Give tensors methods; each is called with the tensor as its first argument.

    Parameters
    ----------
    methods : dict of str to function
    """
    (<dict>(<PyTypeObject*>Tensor).tp_dict).update(methods)
    PyType_Modified(Tensor)


def live_tensors() -> int:
    """Return the number of tensors (handles, variables among them) alive in this process."""
    return live


@cython.no_gc
@cython.freelist(512)
@cython.c_api_binop_methods(True)
cdef class Tensor:
    """An immutable array whose operations can be recorded.

    Tensors behave as NumPy arrays do: the same operators, methods, broadcasting, indexing and type
    promotion, and NumPy's own functions take them. Make one with `constant` or
    `convert_to_tensor`; ops make all others.

    Examples
    --------
    >>> import numpy as np, cytape
    >>> x = cytape.constant([1.0, 2.0])
    >>> np.sin(x) * x
    Tensor([0.84147098, 1.81859485])
    """

    # Operators of pandas and of other arrays on the left leave it to these.
    __array_priority__ = 10_000
    __pandas_priority__ = 10_000

    def __cinit__(self, *_, **__):
        if not making and type(self) is not variable_type:
            raise TypeError("make tensors with cytape.constant or cytape.convert_to_tensor")

    def __dealloc__(self):
        global live
        cdef Value value = self.held
        if value is not None:
            live -= 1
            value.handles -= 1
            # A graph can make another handle of a symbolic value at any time.
            if value.handles == 0 and recorders.tapes.count and not is_symbolic(value):
                handle_died(value.id)

    # ---- what it is

    @property
    def id(self) -> int:
        """The number under which tapes know this tensor."""
        return self.held.id

    @property
    def spec(self):
        """Shape and dtype as one shared object."""
        return self.held.spec

    @property
    def shape(self) -> tuple:
        """Extents of the axes."""
        return self.held.spec.shape

    @property
    def dtype(self):
        """The numpy.dtype."""
        return self.held.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of axes; None if it is not known."""
        return self.held.spec.ndim if self.held.spec.ndim >= 0 else None

    @property
    def size(self) -> int:
        """Number of elements; None if it is not known."""
        return self.held.spec.size if self.held.spec.known else None

    @property
    def nbytes(self) -> int:
        """Bytes of data; None if the shape is not known."""
        return self.held.spec.nbytes if self.held.spec.known else None

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.held.spec.itemsize

    @property
    def graph(self):
        """The graph that a symbolic tensor belongs to; None of a tensor that has a value."""
        return self.held.owner if is_symbolic(self.held) else None

    @property
    def op(self):
        """The operation whose output a symbolic tensor is."""
        return of_graph(self, "op").operation_of(symbol_of(self.held))

    @property
    def name(self) -> str:
        """The operation's name, a colon, and which of its outputs a symbolic tensor is."""
        return of_graph(self, "name").tensor_name_of(symbol_of(self.held))

    @property
    def value_index(self) -> int:
        """Which of its operation's outputs a symbolic tensor is."""
        return of_graph(self, "value_index").output_position(symbol_of(self.held))

    @property
    def device(self) -> str:
        """The label of where a symbolic tensor is to be computed, "" for anywhere."""
        return self.op.device if is_symbolic(self.held) else ""

    def consumers(self) -> list:
        """Return the operations that take a symbolic tensor as an input.

        Returns
        -------
        list of Operation
        """
        return of_graph(self, "consumers").consumers_of(symbol_of(self.held))

    @property
    def T(self):
        """The tensor with its axes reversed."""
        return functions["transpose"](self)

    @property
    def mT(self):
        """The tensor with its last two axes swapped."""
        return functions["matrix_transpose"](self)

    @property
    def real(self):
        """The real part."""
        return functions["real"](self)

    @property
    def imag(self):
        """The imaginary part."""
        return functions["imag"](self)

    # ---- out of the tape's sight: explicit conversions

    def numpy(self):
        """Return the data as a read-only ndarray; what is computed from it is not recorded.

        Returns
        -------
        numpy.ndarray
            A view of the tensor's own data: nothing is copied.

        Examples
        --------
        >>> constant([1.0, 2.0]).numpy()
        array([1., 2.])
        """
        return detached(self)

    def item(self, *index):
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
        >>> constant([[1.0, 2.0]]).item(0, 1)
        2.0
        """
        return detached(self).item(*index)

    def tolist(self):
        """Return the data as nested lists of Python scalars.

        Returns
        -------
        list or scalar
            Nested as deeply as the tensor has axes.

        Examples
        --------
        >>> constant([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return detached(self).tolist()

    # ---- conversions that Python and NumPy make on their own

    def __float__(self):
        return float(converted(self))

    def __int__(self):
        return int(converted(self))

    def __complex__(self):
        return complex(converted(self))

    def __round__(self, ndigits=None):
        return functions["round"](self, 0 if ndigits is None else ndigits)

    def __bool__(self):
        return bool(examined(self))

    def __index__(self):
        return converted(self).__index__()

    def __len__(self):
        if self.held.spec.ndim == 0:
            raise TypeError("len() of unsized object")
        known_extent(self.held)
        return self.held.spec.dims[0]

    def __iter__(self):
        if self.held.spec.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        known_extent(self.held)
        return (self[i] for i in range(self.held.spec.dims[0]))

    def __reversed__(self):
        return iter(self[::-1])

    def __contains__(self, element):
        return element in examined(self)

    def __format__(self, spec):
        if is_symbolic(self.held) and not spec:
            return str(self)
        array = array_of(self.held)
        return format(array[()] if array.ndim == 0 else array, spec)

    def __repr__(self):
        if is_symbolic(self.held):
            return f"<Tensor {self.held.owner.describe(symbol_of(self.held))}>"
        return as_text(type(self).__name__, array_of(self.held))

    def __str__(self):
        return repr(self) if is_symbolic(self.held) else str(array_of(self.held))

    def __reduce__(self):
        return tensor_of_copy, (converted(self),)

    def __copy__(self):
        return functions["copy"](self)

    def __deepcopy__(self, memo):
        return functions["copy"](self)

    def __dlpack__(self, **arguments):
        array = converted(self)
        # NumPy exports a read-only array only to consumers that can tell; the others get a copy.
        try:
            return array.__dlpack__(**arguments)
        except BufferError:
            return array.copy().__dlpack__(**arguments)

    def __dlpack_device__(self):
        return array_of(self.held).__dlpack_device__()

    # ---- NumPy's protocols

    def __array__(self, dtype=None, copy=None):
        return np.array(converted(self), dtype=dtype, copy=copy)

    @property
    def _data(self):
        """What operators and functions of masked arrays ask their other operand for.

        No AttributeError, which says that there is no such attribute (`hasattr` would be False):
        numpy.ma takes that for leave to convert the tensor, and to drop its gradient.
        """
        raise TypeError(
            "the operators of masked arrays and the functions of numpy.ma take no tensors. Call "
            f"the function of cytape.numpy of the same name; {NO_MASKS}")

    def __dir__(self):
        return [name for name in object.__dir__(self) if name != "_data"]

    def __array_ufunc__(self, ufunc, method, *inputs, **arguments):
        return functions["array_ufunc"](ufunc, method, inputs, arguments)

    def __array_function__(self, function, types, args, arguments):
        return functions["array_function"](function, args, arguments)

    # ---- operators

    def __add__(x, y):
        return op_add.call2(x, y)

    def __sub__(x, y):
        return op_subtract.call2(x, y)

    def __mul__(x, y):
        return op_multiply.call2(x, y)

    def __truediv__(x, y):
        return op_divide.call2(x, y)

    def __matmul__(x, y):
        return op_matmul.call2(x, y)

    def __pow__(x, y, modulus):
        if modulus is not None:
            return NotImplemented
        if type(y) is int and <object>y == 2:  # as NumPy does, and its derivative is cheaper
            return op_square.call1(x)
        return op_power.call2(x, y)

    def __floordiv__(x, y):
        return op_floor_divide.call2(x, y)

    def __mod__(x, y):
        return op_remainder.call2(x, y)

    def __divmod__(x, y):
        quotient = op_floor_divide.call2(x, y)
        if quotient is NotImplemented:
            return NotImplemented
        return quotient, op_remainder.call2(x, y)

    def __neg__(self):
        return op_negative.call1(self)

    def __pos__(self):
        return op_positive.call1(self)

    def __abs__(self):
        return op_absolute.call1(self)

    def __invert__(self):
        return functions["invert"](self)

    def __and__(x, y):
        return functions["bitwise_and"](x, y)

    def __or__(x, y):
        return functions["bitwise_or"](x, y)

    def __xor__(x, y):
        return functions["bitwise_xor"](x, y)

    def __lshift__(x, y):
        return functions["left_shift"](x, y)

    def __rshift__(x, y):
        return functions["right_shift"](x, y)

    def __richcmp__(self, other, int comparison):
        if comparison == Py_LT:
            return op_less.call2(self, other)
        if comparison == Py_LE:
            return op_less_equal.call2(self, other)
        if comparison == Py_EQ or comparison == Py_NE:
            if other is None or isinstance(other, (str, bytes)):  # the ufuncs would refuse
                array = array_of((<Tensor>self).held)
                return tensor_of(array == other if comparison == Py_EQ else array != other)
            return (op_equal if comparison == Py_EQ else op_not_equal).call2(self, other)
        if comparison == Py_GT:
            return op_greater.call2(self, other)
        return op_greater_equal.call2(self, other)

    def __hash__(self):
        if is_symbolic(self.held):
            return hash(("cytape.Tensor", self.held.id))
        raise TypeError(f"unhashable type: {type(self).__name__!r}; tensor.ref() is hashable")

    def ref(self):
        """Return a hashable reference, equal to all references to this tensor.

        Returns
        -------
        TensorReference

        Examples
        --------
        >>> x = constant(1.0)
        >>> {x.ref(): "x"}[x.ref()], x.ref().deref() is x
        ('x', True)
        """
        return TensorReference(self)

    def __getitem__(self, index):
        return op_getitem.call2(self, index)

    def __setitem__(self, index, value):
        raise TypeError("tensors are immutable: build the result with cytape.numpy.where, "
                        "concatenate or stack, or keep the data in a Variable and assign it")

    def __delitem__(self, index):
        raise TypeError("tensors are immutable")

    # ---- methods: those of ndarray, each the function of the same name

    def reshape(self, *shape, order="C", copy=None):
        """Return the tensor with another shape; see numpy.reshape.

        Parameters
        ----------
        *shape : int or tuple of int
            The extents; one may be -1 and follows from the others.
        order : {"C", "F", "A"}, optional
            In which order the elements are read and placed.
        copy : bool, optional
            As numpy.reshape takes it.

        Returns
        -------
        Tensor

        Raises
        ------
        ValueError
            If the new shape has another number of elements.

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
            For each axis of the result the axis it is taken from; by default all are reversed.

        Returns
        -------
        Tensor

        Raises
        ------
        ValueError
            If the axes are no permutation.

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

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import cytape
        >>> cytape.constant([1, 2]).astype("float32")
        Tensor([1., 2.], dtype=float32)
        """
        return functions["astype"](self, dtype, **arguments)


cdef object of_graph(Tensor tensor, str attribute):
    """The graph of a symbolic tensor."""
    if not is_symbolic(tensor.held):
        raise AttributeError(f"a tensor with a value has no {attribute!r}: only symbolic tensors, "
                             "of a graph, have")
    return tensor.held.owner


cdef int known_extent(Value value) except -1:
    """Raise if it is not known how many elements a symbolic tensor has along its first axis."""
    if value.spec.ndim < 0 or value.spec.dims[0] < 0:
        raise SymbolicTensorError(
            f"{value.owner.describe(symbol_of(value))} has an unknown first extent: it has no "
            "length, and cannot be iterated over, while its graph is built. "
            "cytape.numpy.size(tensor, 0) is its length, as a tensor; instead of a loop use "
            "functions of whole arrays, or cytape.while_loop")
    return 0


cdef bint is_read_on_its_own(Tensor tensor) except -1:
    """Whether tapes that watch the variables that are read would follow this one."""
    return type(tensor) is variable_type and tensor.trainable


cdef ndarray detached(Tensor tensor):
    """The data for somebody who asked for them; those who followed them take note."""
    cdef ndarray array = array_of(tensor.held)
    if recorders.entered and tensor.held.spec.trainable:
        note_detachment(tensor, tensor.id, tensor.held.id, is_read_on_its_own(tensor))
    return array


cdef ndarray examined(Tensor tensor):
    """The data for a decision, which has no derivative, but must not be made for a whole graph."""
    cdef ndarray array = array_of(tensor.held)
    if type(tensor) is variable_type and building() is not None:
        raise SymbolicTensorError(
            f"variable {tensor.name!r} was about to become a plain array or number, or to decide "
            "about a branch, while a graph is built, which would keep its present value for ever. "
            "Use cytape's functions instead (cytape.cond for a branch); or say variable.numpy() "
            "if the present value is meant")
    return array


cdef bint is_recorded(Tensor tensor) except -1:
    """Whether a recorder of this thread follows a tensor."""
    return recorders.entered and tensor.held.spec.trainable and bool(
        followers_of(tensor.id, tensor.held.id, is_read_on_its_own(tensor)))


cdef ndarray converted(Tensor tensor):
    """The data for somebody who may not know that they are a tensor's."""
    cdef ndarray array = examined(tensor)
    if is_recorded(tensor):
        raise DetachedError(
            "a tensor that is being recorded was about to become a plain array or number, which "
            "would lose its gradient. Make one tensor of those in a list with cytape.numpy.stack "
            "or array, not by assigning to elements of an array; use cytape.numpy (or a NumPy "
            "function that takes tensors), also for functions of the math module; print it with "
            "f'{tensor}'; or say tensor.numpy() or tensor.item() if the gradient should stop here")
    return array


def require_unrecorded(Tensor tensor not None, maker):
    """Raise if a tensor is being recorded, of which something is to be made that will not be.

    Parameters
    ----------
    tensor : Tensor
    maker : str
        The function that is to make it.

    Raises
    ------
    DetachedError
        In that case.
    """
    if is_recorded(tensor):
        raise DetachedError(
            f"{maker} was called with a tensor that is being recorded, but what it makes starts "
            "without a history, which would lose the gradient. Use cytape.convert_to_tensor or "
            "cytape.identity, which keep it; or say cytape.stop_gradient(tensor) or "
            "tensor.numpy() if the gradient should stop here")


def data_of(Tensor tensor not None):
    """Return the data of a tensor for what has no part in its derivative: nobody takes note."""
    return array_of(tensor.held)


# NumPy would hide what `converted` raises behind its complaint about sequences.
(<PyTypeObject*>Tensor).tp_as_sequence.sq_item = NULL

cdef Tensor new_tensor(Value value):
    global making
    cdef Tensor tensor
    making = True
    tensor = Tensor.__new__(Tensor)
    making = False
    hold(tensor, value)
    return tensor


cdef void hold(Tensor tensor, Value value) noexcept:
    """Make a value that of a tensor (or variable) without one."""
    global live
    live += 1
    tensor.held = value
    value.handles += 1


cdef Tensor another_handle(Value value):
    if value.handles == 0 and recorders.tapes.count and not is_symbolic(value):
        handle_revived(value.id)
    return new_tensor(value)


def without_handle(Tensor tensor not None):
    """Return what a tensor holds, for `restored`; it does not keep the tensor's trace alive."""
    return tensor.held


def restored(Value value not None) -> Tensor:
    """Return a tensor again of what `without_handle` returned."""
    return another_handle(value)


cdef str as_text(str name, array):
    text = np.array2string(array, separator=", ", prefix=name + "(")
    if array.dtype == np.float64 or array.dtype == bool:
        return f"{name}({text})"
    return f"{name}({text}, dtype={array.dtype.name})"


NO_MASKS = (
    "a masked array cannot be combined with tensors, which would lose its mask. Pass array.data "
    "and choose by the mask, as in cytape.numpy.where(array.mask, 0.0, x); or pass "
    "array.filled(value)")
cdef enum:
    MOST_AXES = 64  # NumPy's limit
cdef tuple HARMLESS = (ndarray, np.memmap)  # their data are all there is to them


cdef int require_plain(x) except -1:
    """Raise for an array, also in a list, whose class gives its data another meaning."""
    return require_plain_at(x, 0)


cdef int require_plain_at(x, int depth) except -1:
    if type(x) is list or type(x) is tuple:
        if depth == MOST_AXES:  # or it holds itself, and there is no end to it
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
        raise TypeError(
            f"an array of class {type(x).__name__} cannot be combined with tensors, which would "
            "lose what the class adds to its data. Pass numpy.asarray(array) if the data are all "
            "that is meant")
    elif not (cnp.PyArray_CheckAnyScalar(x) or isinstance(x, (ndarray, Tensor))):
        if hasattr(x, "__array__"):
            require_plain_at(np.asanyarray(x), depth)
        elif type(x).__module__.startswith("scipy.sparse"):  # an object, to NumPy
            raise TypeError(
                f"a sparse {type(x).__name__} of SciPy cannot be combined with tensors. Pass "
                "matrix.toarray() if that is small enough; or wrap the product with "
                "cytape.custom_gradient: matrix @ cytape.stop_gradient(x).numpy(), whose gradient "
                "is matrix.T @ dy")
    return 0


def plain_array(x, dtype=None):
    """Return what converts to an ndarray as one, but nothing that would lose its meaning by that.

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
        return np.asarray(x, dtype=dtype)
    if isinstance(x, (list, tuple, ndarray)):
        require_plain(x)
    array = np.asanyarray(x, dtype=dtype)
    if type(array) is not ndarray:  # an object may convert to what would not have been taken itself
        require_plain(array)
    return np.asarray(array)


cdef ndarray as_ndarray(x):
    if type(x) is ndarray and cnp.PyArray_ISNUMBER(x) and cnp.PyArray_ISNOTSWAPPED(x):
        return x
    array = plain_array(x)
    if array.dtype.hasobject or array.dtype.names is not None:
        raise TypeError("a tensor holds numbers (or booleans, strings, dates), "
                        f"not {array.dtype} data; got {type(x).__name__}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def tensor_of(array) -> Tensor:
    """Return a tensor that shares an array which will not change any more."""
    return new_tensor(value_of_array(as_ndarray(array)))


def tensor_of_copy(array) -> Tensor:
    """Return a tensor with a copy of an array."""
    return new_tensor(copy_of_array(as_ndarray(array)))


def constant(value, dtype=None, name=None) -> Tensor:
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
        If the data are Python objects without a numeric type.
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
    >>> constant([[1, 2], [3, 4]], dtype="float32")
    Tensor([[1., 2.],
            [3., 4.]], dtype=float32)
    """
    if isinstance(value, Tensor):
        array = examined(value)
        require_unrecorded(value, "cytape.constant")
        value = array
    tensor = tensor_of_copy(plain_array(value, dtype))
    graph = building()
    return tensor if graph is None else graph.constant(tensor, name)


def convert_to_tensor(value, dtype=None) -> Tensor:
    """Return the value as a tensor: a tensor as it is, a variable as it reads now, data as a copy.

    Parameters
    ----------
    value : Tensor, Variable or array_like
        Nested sequences may contain tensors; the result is then connected to them.
    dtype : dtype, optional
        What the result is cast to.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If the data are Python objects without a numeric type.
    ValueError
        If nested sequences are ragged.

    Examples
    --------
    >>> x = constant(1.0)
    >>> convert_to_tensor(x) is x
    True
    """
    if type(value) is Tensor:
        return value if dtype is None or value.dtype == dtype else functions["astype"](value, dtype)
    if isinstance(value, Tensor):
        return convert_to_tensor(value.value(), dtype)
    if isinstance(value, (list, tuple)):
        array = functions["asarray"](value, dtype=dtype)
        return array if isinstance(array, Tensor) else tensor_of(as_ndarray(array))
    if hasattr(value, "to_tensor"):
        return convert_to_tensor(value.to_tensor(), dtype)
    return constant(value, dtype)


def from_dlpack(exporter) -> Tensor:
    """Return a tensor with a copy of the data of any object that speaks DLPack.

    Parameters
    ----------
    exporter : object with ``__dlpack__`` and ``__dlpack_device__``
        An array of another library, say, in the memory of this machine's processor.

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
    require_plain(exporter)
    return tensor_of_copy(np.from_dlpack(exporter))
