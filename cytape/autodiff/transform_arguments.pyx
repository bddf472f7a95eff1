"""Common parts of function transforms: argnums, arguments as tensors, results as arrays."""

from cytape.core.op_store cimport is_known
from cytape.tensor.recording.conversion_guards cimport examined, is_recorded
from cytape.tensor.recording.leaked_tensors cimport (
    LEAKS, ids_with_tangents, note_leaks, origins)
from cytape.tensor.recording.recorders cimport TangentRecorder
from cytape.tensor.recording.thread_stack cimport accumulating, building, recording
from cytape.tensor.making cimport convert_to_tensor
from cytape.tensor.nest cimport composition_of, flatten, pack_sequence_as, rules_of
from cytape.tensor.tensor cimport Tensor, another_handle
from cytape.tensor.values.value cimport is_symbolic
cimport numpy as cnp

import functools
import inspect
import operator
import types

import numpy as np

from cytape.autodiff.wrapped_calls import lent
from cytape.errors import (
    DetachedError, LeakedTensorWarning, SymbolicTensorError, UnconnectedGradientWarning)
from cytape.ops.creation import identity_op
from cytape.tensor.names_elsewhere import advise
from cytape.tensor.nest import map_structure, paths
from cytape.tensor.structures import leaves_of_result, register_dataclasses
from cytape.tensor.values.user_warnings import warn

cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object x) noexcept

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_NewCopy(cnp.ndarray array, cnp.NPY_ORDER order)


cdef frozenset IMMUTABLE = frozenset((type(None), bool, int, float, complex, str))


cdef class Transformed:
    """A rule bound to the function it transforms. A class, so that it can be pickled.

    It is a descriptor, so that it can be a method as well.
    """

    is_derivative = True  # read by traces

    def __init__(self, rule, fun, *options):
        if not callable(fun):
            raise TypeError(f"only functions can be transformed, got {type(fun).__name__}")
        functools.update_wrapper(self, fun, updated=())
        self.rule = rule
        self.fun = fun
        self._options = options

    def __call__(self, *args, **kwargs):
        """Apply the transform's rule to the function."""
        return self.rule(self.fun, args, kwargs, *self._options)

    def __get__(self, instance, owner):
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self):
        inner = repr(self.fun) if isinstance(self.fun, Transformed) else name_of(self.fun)
        return f"<{self.rule.__name__.strip('_')} of {inner}>"

    def __reduce__(self):
        return Transformed, (self.rule, self.fun, *self._options)


cpdef tuple call_followed(fun, args, dict kwargs, bint has_aux):
    """Call a function while a recorder is active; return its value and auxiliary data."""
    aux = None
    if kwargs:
        kwargs = {word: own_argument(x) for word, x in kwargs.items()}
    try:
        value = fun(*args, **kwargs)
    except Exception as error:
        advise(error)
        note_lists(error, fun, args)
        if str(error) == "Error setting single item of array.":  # NumPy's, for a DetachedError
            error.add_note("assign to x[i] of a tensor, not to x.flat[i] of an array")
        note = str(error.__cause__)  # SciPy's optimizers raise an error of their own from it
        if isinstance(error.__cause__, DetachedError) and not isinstance(
                error, DetachedError) and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
    if has_aux:
        if not (isinstance(value, tuple) and len(value) == 2):
            raise TypeError(f"with has_aux=True {name_of(fun)} must return a pair, got {value!r}")
        value, aux = value
    if not isinstance(value, Tensor):
        value = pack_sequence_as(value, flatten(value))  # TensorArrays stack elements, recorded
    return value, aux


cdef int note_lists(error, fun, args) except -1:
    """Add advice about lists of numbers, which are not arrays, to an error of a function."""
    for i, x in enumerate(args):
        if type(x) not in (list, tuple) or not all([
                isinstance(item, Tensor) or type(item) in (list, tuple) for item in x]):
            continue
        leaves = flatten(x)
        note = (f"argument {i} of {name_of(fun)} is a {type(x).__name__} of {len(leaves)} numbers, "
                "which is a structure of as many scalars, not an array: for an array pass "
                "numpy.array(...)")
        if len(leaves) and note not in getattr(error, "__notes__", ()) and all([
                isinstance(leaf, Tensor) and (<Tensor>leaf).held.spec.ndim == 0
                for leaf in leaves]):
            error.add_note(note)
    return 0


def name_of(fun):
    """Return the name of a callable, for messages."""
    return getattr(fun, "__name__", getattr(fun, "name", type(fun).__name__))


cpdef bint has_tensors(structure) except -1:
    """Return whether a structure contains a tensor."""
    for leaf in flatten(structure):
        if isinstance(leaf, Tensor):
            return True
    return False


def checked_argnums(argnums):
    """Return argnums as an int or a tuple of ints, or raise."""
    try:
        return operator.index(argnums)
    except TypeError:
        pass
    try:
        argnums = tuple(map(operator.index, argnums))
    except TypeError:
        raise TypeError(
            f"argnums must be an int or a sequence of ints, got {argnums!r}. " + (
                "They are positions of arguments, not names" if isinstance(argnums, str) else
                "To differentiate f at x, call the function that is returned: write grad(f)(x), "
                "not grad(f, x)")) from None
    return argnums


def checked_argnum(argnum) -> int:
    """Return an argnum as an int, or raise."""
    checked = checked_argnums(argnum)
    if isinstance(checked, tuple):
        raise TypeError(f"argnum must be one integer, got {argnum!r}")
    return checked


cpdef tuple replace_arguments(fun, tuple args, argnums, kwargs=(), bint as_float=False):
    """Return the chosen arguments, their leaves as new tensors, and all arguments with these.

    The function may write to the other arguments, which are copies. as_float: see `new_source`.
    """
    cdef list positions, new, sources = [], new_args = list(args)
    if isinstance(argnums, int) and 0 <= argnums < len(args):
        positions = [argnums]
    else:
        positions = positions_of(fun, args, argnums, kwargs)
    for i in positions:
        new = []
        for leaf in flatten(args[i]):
            try:
                new.append(new_source(fun, i, leaf, as_float))
            except (TypeError, ValueError) as error:
                if register_dataclasses([leaf]):
                    return replace_arguments(fun, args, argnums, kwargs, as_float)
                refuse_arrays(
                    args[i], f"argument {i} of {name_of(fun)} {{}} a TensorArray, which cannot be "
                    "differentiated: pass tensors, and write them to one inside")
                place = place_of(args[i], len(new))
                if not place:
                    raise
                message = str(error).replace(f"argument {i} of", f"argument {i}{place} of", 1)
                raise type(error)(message + advice_on_members(args[i])) from error
        # The function may write to its arguments, but not to the tensors of the derivative.
        new_args[i] = pack_sequence_as(
            args[i], [another_handle((<Tensor>tensor).held) for tensor in new])
        sources += new
    if len(positions) < len(args):
        for i, x in enumerate(args):
            if i not in positions:
                new_args[i] = own_argument(x)
    selected = args[positions[0]] if isinstance(argnums, int) else tuple([
        args[i] for i in positions])
    return selected, sources, new_args


cpdef own_argument(x):
    """Return an argument that a function may write to: writable arrays are copied."""
    if type(x) in IMMUTABLE or isinstance(x, np.ndarray) and not x.flags.writeable:
        return x
    for leaf in flatten(x):
        if isinstance(leaf, (np.ndarray, Tensor)):
            return lent(x)
    return x


cdef list positions_of(fun, tuple args, argnums, kwargs):
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    positions = [number + len(args) if number < 0 else number for number in numbers]
    if len(set(positions)) < len(positions) or not set(positions) <= set(range(len(args))):
        if kwargs and len(set(positions)) == len(positions):
            raise ValueError(
                f"argnums {argnums} count positional arguments, of which {name_of(fun)} got "
                f"{len(args)}: pass the arguments to differentiate by position, not by name "
                f"({', '.join(kwargs)})"
            )
        defaulted = [name for i, name in enumerate(positional_parameters(fun))
                     if i >= len(args) and i in positions]
        what = "" if args else ": it was called without any"
        if args and defaulted:
            what = f", counted from 0: pass {' and '.join(defaulted)} as well, by position"
        raise ValueError(
            f"argnums {argnums} must be different positions among the {len(args)} positional "
            f"arguments of {name_of(fun)}{what}"
        )
    return positions


cdef list positional_parameters(fun):
    """Return the names of a function's positional parameters, if it has a signature."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [x.name for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]


def refuse_arrays(structure, str message):
    """Raise if a structure is or contains a TensorArray."""
    for leaf in flatten(structure, False):
        if rules_of(leaf) is not None:
            raise TypeError(message.format("is" if leaf is structure else "has"))


cdef str place_of(structure, Py_ssize_t number):
    """Return the index of the leaf with a number in a structure, as text."""
    return paths(structure, "")[number]


cdef str advice_on_members(structure):
    """Return advice about components without derivative."""
    if type(structure) in (list, tuple) and all([isinstance(x, (int, float)) for x in structure]):
        return (f". A {type(structure).__name__} of numbers is a structure of as many scalars, not "
                "an array: for an array pass numpy.array(..., float)")
    return (". Pass members that are not differentiated in another argument; or make them static "
            "fields of a dataclass (see cytape.register_structure)")


cpdef Tensor new_tensor(fun, position, value):
    """Return a new tensor for an argument that is differentiated."""
    if isinstance(value, Tensor):
        return identity_op(value)
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        what = str(error)
        if isinstance(value, dict) or composition_of(value) is not None:
            what = (
                f"it is a {type(value).__name__}, a structure, but must be one array or tensor: "
                "use cytape.grad, jvp or vjp, which take structures"
            )
        elif value is None:
            what = "it is None, not an array or a number"
        elif is_object(value):
            what = (
                f"it is an object of class {type(value).__name__}, not an array, a number or a "
                "list, tuple or dict of them: register its class by cytape.register_structure; or "
                f"pass its arrays, and make the object of them in {name_of(fun)}"
            )
        raise type(error)(
            f"argument {position} of {name_of(fun)} cannot be differentiated: {what}"
        ) from error


cdef bint is_object(value) except -1:
    """Return whether NumPy would convert a value to an object array."""
    return not isinstance(value, np.ndarray) and not hasattr(value, "__array__") and (
        np.asarray(value, object).ndim == 0)


cpdef Tensor new_source(fun, position, value, bint as_float=False):
    """Return such a tensor, or raise if it can have no gradient.

    as_float: integers and booleans become float64, and objects of subclasses of arrays arrays.
    """
    if as_float and isinstance(value, np.ndarray):
        value = np.asarray(value)
    cdef Tensor tensor = new_tensor(fun, position, value)
    if as_float and not tensor.held.spec.trainable and tensor.dtype.kind in "biu":
        tensor = convert_to_tensor(tensor, np.dtype(float))
    if not tensor.held.spec.trainable:
        raise TypeError(
            f"argument {position} of {name_of(fun)} has dtype {tensor.dtype}, which has no gradient"
            ": " + "pass floating point numbers (3.0, not 3), or " * (tensor.dtype.kind in "iu") +
            "differentiate other arguments only"
        )
    return tensor


def require_result(f, result):
    """Raise if a function returned nothing."""
    if result is None:
        raise ValueError(f"{name_of(f)} returned None: was the return statement forgotten?")


cpdef Tensor output_of(fun, value):
    """Return a function's result as a tensor."""
    cdef Tensor output
    try:
        output = convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        if isinstance(value, np.ndarray) and value.size == 1:  # SciPy's array of a result
            require_result(fun, value.item())
        raise TypeError(f"{name_of(fun)} must return arrays or tensors, got {value!r}") from error
    if not output.held.spec.trainable and output.dtype.kind not in "fciub":
        raise TypeError(f"{name_of(fun)} must return numbers, got {value!r}")
    return output


cpdef export(structure, bint arrays_out):
    """Return results in the caller's form: arrays or tensors."""
    if not arrays_out:
        return structure
    return as_array(structure) if isinstance(structure, Tensor) else map_structure(
        as_array, structure)


cpdef as_array(leaf):
    """Return a tensor as a new array, a scalar as a number; unchanged if a tape records it."""
    cdef cnp.ndarray array
    if not isinstance(leaf, Tensor) or is_symbolic((<Tensor>leaf).held) or (
            is_recorded(leaf, (<Tensor>leaf).held)):
        return leaf
    try:
        array = examined(leaf, (<Tensor>leaf).held, "")
    except SymbolicTensorError:  # a variable in a graph
        return leaf
    return PyArray_NewCopy(array, cnp.NPY_KEEPORDER) if cnp.PyArray_NDIM(array) else array[()]


cpdef int warn_of_leaks(fun, Recorder recorder, list targets) except -1:
    """Warn if results of a function depend on tensors of earlier calls, which are constants."""
    if recorder.leaks is not None and origins(recorder, [x.id for x in targets]) & LEAKS:
        lines = ", and ".join(dict.fromkeys(filter(None, recorder.leaks.values())))
        warn(
            f"{name_of(fun)} uses a tensor that was kept from an earlier differentiated call, "
            f"{lines}: it is a constant now, and its part of the derivative is missing. Compute it "
            "in each call (a cache may return results for arrays only, see isinstance(x, "
            "cytape.Tensor)); if a constant is meant, keep cytape.stop_gradient(tensor) or "
            "tensor.numpy()", LeakedTensorWarning)
    return 0


cdef int note_other_leaks(set ids, results) except -1:
    """Note the leaks of a call by the ids of tensors that are alive; not its results."""
    return note_leaks(ids.difference([
        (<Tensor>x).held.id for x in leaves_of_result(results) if isinstance(x, Tensor)]))


cpdef int note_kept_results(recorder, list results, aux) except -1:
    """Note results as leaks if the function kept them and its caller does not get the tensors."""
    cdef Tensor tensor
    cdef set ids = None
    if building() is not None or recording() is not None or accumulating() is not None:
        return 0
    for tensor in results:
        # References of the list, of the function's value and of this loop.
        if Py_REFCNT(tensor) > 3 or tensor.held.handles > 1:
            ids = set() if ids is None else ids
            ids.add(tensor.held.id)
    if aux is not None:
        ids = set() if ids is None else ids
        ids.update([(<Tensor>x).held.id for x in leaves_of_result(aux) if isinstance(x, Tensor)])
    if ids:
        if type(recorder) is TangentRecorder:
            ids.intersection_update(ids_with_tangents(recorder))
        else:
            ids = {id for id in ids if is_known(<Recorder>recorder, id)}
        note_leaks(ids)
    return 0


def note_forward_leaks(TangentRecorder recorder, list sources, list outputs, aux):
    """Note the leaks of a call in forward mode, which has two handles of each source itself."""
    cdef Tensor tensor
    cdef set ids
    if building() is None and recording() is None:  # tapes save values without handles
        ids = ids_with_tangents(recorder)
        for tensor in sources:
            if tensor.held.handles <= 2:
                ids.discard(tensor.held.id)
        for tensor in outputs:
            ids.discard(tensor.held.id)
        if ids:
            note_other_leaks(ids, aux)


def report_unconnected(fun, str what, bint wholly, str detached, str unsure=None):
    """Raise or warn because a function's result does not depend on its differentiated arguments.

    Parameters
    ----------
    fun : callable
    what : str
        Names the arguments.
    wholly : bool
        Whether it depends on no part of them.
    detached : str or None
        How a value that depends on them left its tensor; None: none did.
    unsure : str or None, optional
        How one did that may depend on them.
    """
    left = f"a value left its tensor by {detached or unsure}"
    advice = (
        "Compute with the tensors themselves, by cytape.numpy; to stop the derivative, take the "
        "value of cytape.stop_gradient(tensor)")
    if wholly and detached is not None:
        raise DetachedError(
            f"the result of {name_of(fun)} does not depend on {what}, because {left}: the "
            f"derivative was lost there. {advice}")
    if wholly and not isinstance(fun, Transformed):  # derivatives often vanish
        warn(
            f"the result of {name_of(fun)} does not depend on {what} by differentiable functions "
            "(functions with steps, as round and comparisons, have slope 0; arrays from a cache "
            "and results from another thread are constants): the derivative is zero" + (
                "" if unsure is None else f", unless it was lost where {left}. {advice}"),
            UnconnectedGradientWarning)
    elif detached is not None or unsure is not None:
        warn(
            f"some derivatives of {name_of(fun)} are zero, perhaps because {left}. {advice}",
            UnconnectedGradientWarning)
