cimport cython
cimport numpy as cnp
from cpython.object cimport Py_EQ, Py_GT, Py_LE, Py_LT, Py_NE, PyObject_Call
from cpython.ref cimport PyObject

from cytape.tensor.recording.conversion_guards cimport (
    converted, examined, graph_of, known_extent, seen, variable_type)
from cytape.tensor.values.plain_arrays cimport as_ndarray
from cytape.tensor.values.released_ids cimport Counts, counts, handle_died, handle_revived
from cytape.tensor.values.value cimport array_of, is_symbolic, symbol_of, value_of_array

from .operators cimport Operator, functions, operators
from .view_links cimport forget

import numpy as np

from cytape.tensor.pictures.html_text import described
from cytape.tensor.references import reference_to
from cytape.tensor.values.plain_arrays import install_tensor, refuse_masks

cnp.import_array()

cdef extern from "Python.h":
    ctypedef struct PySequenceMethods:
        void* sq_item

    ctypedef struct PyTypeObject:
        PySequenceMethods* tp_as_sequence

cdef extern from *:
    """
    /* Whether nothing but the expression that is being evaluated has an object. */
    #if PY_VERSION_HEX >= 0x030E0000
    #define cytape_is_temporary(x) PyUnstable_Object_IsUniqueReferencedTemporary(x)
    #else
    #define cytape_is_temporary(x) (Py_REFCNT(x) == 1)
    #endif
    """
    bint is_temporary "cytape_is_temporary"(PyObject* x) noexcept

cdef Counts* recorders = counts()
cdef Py_ssize_t live = 0
cdef bint making = False       # a tensor with a value, which Python code cannot


def live_tensors() -> int:
    """Return the number of tensors (handles, variables among them) alive in this process."""
    return live


@cython.no_gc
@cython.freelist(512)
@cython.c_api_binop_methods(True)
cdef class Tensor:
    """An array whose operations can be recorded.

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

    # Operators of pandas and of other arrays on the left defer to these.
    __array_priority__ = 10_000
    __pandas_priority__ = 10_000

    def __cinit__(self, *_, **__):
        if not making and type(self) is not variable_type:
            raise TypeError("make tensors with cytape.constant or cytape.convert_to_tensor")

    def __dealloc__(self):
        global live
        cdef Value value = self.held
        if self.link != NULL:
            leave(self)
        if value is not None:
            live -= 1
            value.handles -= 1
            # A graph can make another handle of a symbolic value at any time.
            if value.handles == 0 and recorders.tapes.count and not is_symbolic(value):
                handle_died(value.id)

    # ---- properties

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
        """Number of axes; None if it is unknown."""
        return self.held.spec.ndim if self.held.spec.ndim >= 0 else None

    @property
    def size(self) -> int:
        """Number of elements; None if it is unknown."""
        return self.held.spec.size if self.held.spec.known else None

    @property
    def nbytes(self) -> int:
        """Bytes of data; None if the shape is unknown."""
        return self.held.spec.nbytes if self.held.spec.known else None

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.held.spec.itemsize

    @property
    def graph(self):
        """The graph of a symbolic tensor; None for a tensor with a value."""
        return self.held.owner if is_symbolic(self.held) else None

    @property
    def op(self):
        """The operation whose output a symbolic tensor is."""
        return graph_of(self.held, "op").operation_of(symbol_of(self.held))

    @property
    def name(self) -> str:
        """The name of a variable; of a symbolic tensor, operation:position among its outputs."""
        return graph_of(self.held, "name").tensor_name_of(symbol_of(self.held))

    @property
    def value_index(self) -> int:
        """The position of a symbolic tensor among its operation's outputs."""
        return graph_of(self.held, "value_index").output_position(symbol_of(self.held))

    @property
    def device(self) -> str:
        """The device label of a symbolic tensor; "cpu" without one, and for other tensors."""
        return is_symbolic(self.held) and self.op.device or "cpu"

    def consumers(self) -> list:
        """Return the operations that take a symbolic tensor as an input.

        Returns
        -------
        list of Operation
        """
        return graph_of(self.held, "consumers").consumers_of(symbol_of(self.held))

    # ---- conversions by Python's protocols

    def __float__(self):
        return float(converted(self, self.held, "float()"))

    def __int__(self):
        return int(converted(self, self.held, "int()"))

    def __complex__(self):
        return complex(converted(self, self.held, "complex()"))

    def __bool__(self):
        return bool(examined(self, self.held, "bool()"))

    def __index__(self):
        return converted(self, self.held, "what wants an integer, as an index does,").__index__()

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
        return element in examined(self, self.held, "the operator in,")

    def __format__(self, spec):
        if is_symbolic(self.held):
            return examined(self, self.held, "a format") if spec else str(self)  # the first raises
        array = array_of(seen(self, self.held))
        return format(array[()] if array.ndim == 0 else array, spec)

    def __repr__(self):
        if is_symbolic(self.held):
            return f"<Tensor {self.held.owner.describe(symbol_of(self.held))}>"
        return as_text(type(self).__name__, array_of(seen(self, self.held)))

    def __str__(self):
        return repr(self) if is_symbolic(self.held) else str(array_of(seen(self, self.held)))

    def _repr_html_(self):
        about = getattr(self, "name", None) if type(self) is not Tensor else None
        about = f"{about or ''} {self.held.spec.dtype} {shape_text(self.held.spec)}".strip()
        return described(type(self).__name__, about, str(self))

    # ---- NumPy's protocols

    _data = property(refuse_masks)

    def __array_ufunc__(self, ufunc, method, *inputs, **arguments):
        if method != "__call__" or arguments.get("out") is not None or (
                ours := functions["version_of"](ufunc)) is None:
            return functions["array_ufunc"](ufunc, method, inputs, arguments)
        # In C, so that NumPy's warnings name the user's line; CPython's function, for vectorcalls.
        return PyObject_Call(ours, inputs, arguments)

    def __array_function__(self, function, types, args, arguments):
        return functions["array_function"](function, args, arguments)

    # ---- operators

    def __add__(x, y):
        return operators.add.call2(x, y)

    def __sub__(x, y):
        return operators.subtract.call2(x, y)

    def __mul__(x, y):
        return operators.multiply.call2(x, y)

    def __truediv__(x, y):
        return operators.divide.call2(x, y)

    def __matmul__(x, y):
        return operators.matmul.call2(x, y)

    def __pow__(x, y, modulus):
        if modulus is not None:
            return NotImplemented
        if type(y) is int and <object>y == 2:  # as in NumPy; its derivative is cheaper
            return operators.square.call1(x)
        return operators.power.call2(x, y)

    def __floordiv__(x, y):
        return operators.floor_divide.call2(x, y)

    def __mod__(x, y):
        return operators.remainder.call2(x, y)

    def __divmod__(x, y):
        quotient = operators.floor_divide.call2(x, y)
        if quotient is NotImplemented:
            return NotImplemented
        return quotient, operators.remainder.call2(x, y)

    def __neg__(self):
        return operators.negative.call1(self)

    def __pos__(self):
        return operators.positive.call1(self)

    def __abs__(self):
        return operators.absolute.call1(self)

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
            return operators.less.call2(self, other)
        if comparison == Py_LE:
            return operators.less_equal.call2(self, other)
        if comparison == Py_EQ or comparison == Py_NE:
            if other is None or isinstance(other, (str, bytes)):  # the ufuncs would refuse
                array = array_of(seen(self, (<Tensor>self).held))
                return tensor_of(array == other if comparison == Py_EQ else array != other)
            if comparison == Py_EQ:
                return operators.equal.call2(self, other)
            return operators.not_equal.call2(self, other)
        if comparison == Py_GT:
            return operators.greater.call2(self, other)
        return operators.greater_equal.call2(self, other)

    def __hash__(self):
        if is_symbolic(self.held):
            return hash(("cytape.Tensor", self.held.id))
        raise TypeError(
            f"unhashable type: {type(self).__name__!r}; tensor.ref() is hashable, and so is the "
            "number tensor.item(), by which to look something up")

    ref = reference_to

    def __getitem__(self, index):
        return operators.getitem.call2(self, index)

    def __setitem__(self, index, value):
        import_updates()
        if is_temporary(<PyObject*>self):
            functions["refuse_temporary"](self)
        operators.set_item.assign(self, index, value)

    def __delitem__(self, index):
        raise ValueError("cannot delete elements of a tensor: see cytape.numpy.delete")

    @property
    def at(self):
        """Updates of parts that return new tensors: ``x.at[index].set(value)``, ``add``, ..."""
        import_updates()
        return functions["at"](self)

    def __iadd__(self, y):
        return in_place(self, operators.add, y)

    def __isub__(self, y):
        return in_place(self, operators.subtract, y)

    def __imul__(self, y):
        return in_place(self, operators.multiply, y)

    def __itruediv__(self, y):
        return in_place(self, operators.divide, y)

    def __ifloordiv__(self, y):
        return in_place(self, operators.floor_divide, y)

    def __imod__(self, y):
        return in_place(self, operators.remainder, y)

    def __ipow__(self, y):
        return in_place(self, operators.power, y)

    def __imatmul__(self, y):
        return in_place(self, operators.matmul, y)

    def __iand__(self, y):
        return in_place(self, functions["bitwise_and"], y)

    def __ior__(self, y):
        return in_place(self, functions["bitwise_or"], y)

    def __ixor__(self, y):
        return in_place(self, functions["bitwise_xor"], y)

    def __ilshift__(self, y):
        return in_place(self, functions["left_shift"], y)

    def __irshift__(self, y):
        return in_place(self, functions["right_shift"], y)


install_tensor(Tensor)

# Otherwise NumPy would replace an error of `converted` by one about sequences.
(<PyTypeObject*>Tensor).tp_as_sequence.sq_item = NULL


def data_of(Tensor tensor not None):
    """Return the data of a tensor for a use without derivative; recorders do not note it."""
    return array_of(seen(tensor, tensor.held))


cdef Tensor new_tensor(Value value):
    global making
    cdef Tensor tensor
    making = True
    tensor = Tensor.__new__(Tensor)
    making = False
    hold(tensor, value)
    return tensor


cdef void hold(Tensor tensor, Value value) noexcept:
    """Set the value of a tensor (or variable) that has none."""
    global live
    live += 1
    tensor.held = value
    value.handles += 1


cdef object in_place(Tensor x, op, y):
    """Return the tensor that ``x op= y`` writes to: a new one for scalars, which are immutable."""
    if x.held.spec.ndim == 0 and x.link == NULL and type(x) is Tensor and isinstance(op, Operator):
        return (<Operator>op).call2(x, y)
    import_updates()
    return functions["in_place"](x, op, y, is_temporary(<PyObject*>x))


cdef int import_updates() except -1:
    if operators.set_item is None:
        functions["import_updates"]()
    return 0


def value_id(Tensor tensor not None) -> int:
    """Return the id of the present value of a tensor or variable; a write changes it."""
    return seen(tensor, tensor.held).id


cdef int take_on(Tensor tensor, Value value) except -1:
    cdef Value before = tensor.held
    value.handles += 1
    tensor.held = value
    before.handles -= 1
    if before.handles == 0 and recorders.tapes.count and not is_symbolic(before):
        handle_died(before.id)
    return 0


cdef void leave(Tensor tensor) noexcept:
    if tensor.link != NULL:
        forget(tensor.link)
        tensor.link = NULL


cdef Tensor another_handle(Value value):
    if value.handles == 0 and recorders.tapes.count and not is_symbolic(value):
        handle_revived(value.id)
    return new_tensor(value)


def without_handle(Tensor tensor not None):
    """Return the value of a tensor, for `restored`. It does not keep the trace alive."""
    return tensor.held


def restored(Value value not None) -> Tensor:
    """Return a tensor for a value that `without_handle` returned."""
    return another_handle(value)


def another(Tensor tensor not None) -> Tensor:
    """Return a second tensor of the same id; later writes to either do not affect the other."""
    return another_handle(tensor.held)


def is_part(Tensor tensor not None) -> bool:
    """Return whether a tensor would be a view in NumPy, which must not be changed in place."""
    return tensor.held.is_part


def layout(Tensor tensor not None):
    """Return an array with the strides of NumPy's result; None: C order, or unknown."""
    if tensor.link == NULL:
        return None
    import_updates()
    return functions["layout"](tensor)


def made_whole(Tensor tensor not None) -> Tensor:
    """Return a tensor without other owners, which may be changed in place."""
    tensor.held.is_part = False
    leave(tensor)
    return tensor


cdef str shape_text(spec):
    return "of unknown shape" if spec.shape is None else str(spec.shape)


cdef str as_text(str name, array):
    text = np.array2string(array, separator=", ", prefix=name + "(")
    if array.dtype == np.float64 or array.dtype == bool:
        return f"{name}({text})"
    return f"{name}({text}, dtype={array.dtype.name})"


def tensor_of(array) -> Tensor:
    """Return a tensor that shares an array; the array must not change afterwards."""
    return new_tensor(value_of_array(as_ndarray(array)))
