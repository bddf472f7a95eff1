from cytape.core.accumulator cimport tangent_of
from cytape.core.op_store cimport is_known
from cytape.tensor.values.released_ids cimport Counts, counts
from cytape.tensor.values.value cimport array_of, is_symbolic, no_value, symbol_of

from .entered_blocks cimport departures
from .recorders cimport Recorder, TangentRecorder
from .state cimport followers_everywhere, note_detachment
from .thread_stack cimport ThreadState, building, this_thread

from importlib import import_module
from threading import get_ident, local

from numpy import asarray

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.tensor.values.plain_arrays import no_sparse
from cytape.tensor.values.user_warnings import (
    is_asked_by_user, library_call, numpy_call, scipy_call, user_call, user_line, user_step)

cdef Counts* recorders = counts()
branches = local()  # `outcome`: decides about conditions of symbolic tensors in this thread
cdef str TO_FILL = (
    "To store it, make the array by cytape.numpy.zeros(shape) inside of the tape or function, of "
    "floats (an array of integers takes no tensor): simplest is `import cytape.numpy as np` in the "
    "whole file. Fill cytape.constant(array) "
    "instead of another array, such as eye(n); or write x.at[index].set(tensor).\n")
cdef str POSITION = "For an index, which has no derivative, write int(tensor.numpy()).\n"
cdef str NUMBER = (
    "Compute with functions of cytape.numpy, not of the math module; print with f'{tensor}'.\n")
# Advice for conversions, by the converting function or the function of NumPy.
cdef dict ADVICE = {
    "NumPy":
        "Write cytape.numpy.array([...]) or cytape.numpy.stack([...]) for a list of tensors: "
        "simplest is `import cytape.numpy as np` in the whole file. Call functions that take "
        "tensors, not a method of an array: np.dot(array, tensor), not array.dot(tensor).\n",
    "NumPy, to store it in an array,": TO_FILL,
    "float()": NUMBER,
    "float(), to store it in an array,": TO_FILL,
    "int()": POSITION + NUMBER,
    "int(), to store it in an array,":
        "An array of integers takes no tensor: make it by cytape.numpy.zeros(shape).\n",
    "complex()": NUMBER,
    "pickle or copy": "Copy it with tensor.copy().\n",
    "a format":
        "f'{tensor}', without a format, is its name; to print its value when the graph runs, print "
        "in a function that cytape.numpy_function calls, with specs=().\n",
}
# Advice by the function of NumPy, or the method of an array, which the user's program called.
cdef str DRAW = (
    "Write mean + scale * rng.normal(size=n), with numbers that do not depend on tensors; or call "
    "cytape.numpy.random, which draws others.\n")
cdef dict INSTEAD = {
    **dict.fromkeys(("fill", "itemset", "put", "setitem"), TO_FILL),
    **dict.fromkeys(("normal", "uniform", "exponential", "laplace", "logistic", "gumbel"), DRAW),
    **dict.fromkeys(("choice", "permutation"),
                    "Draw positions: x[rng.permutation(len(x))], or x[rng.choice(len(x), n)].\n"),
    "ndenumerate": "Loop over numpy.ndindex(x.shape), and read x[i].\n",
    "testing": "Compare tensor.numpy().\n",
    "arange": "Write start + step * np.arange(n), or np.linspace(start, stop, n).\n",
    "as_strided": "Call numpy.lib.stride_tricks.sliding_window_view, not as_strided.\n",
    "vectorize": "Call cytape.vmap, not numpy.vectorize; of a function with an if, "
                 "cytape.numpy.array([f(x) for x in xs]).\n",
    "full": "Call cytape.numpy.full, which makes a tensor.\n",
    "fill_diagonal":
        "Call it with a tensor to write to: cytape.numpy.zeros makes one inside of the tape or "
        "function, cytape.constant(array), too.\n",
    "c_": "Call cytape.numpy.c_, not numpy.c_.\n",
    "r_": "Call cytape.numpy.r_, not numpy.r_.\n",
    "polynomial":
        "The functions of numpy.polynomial that evaluate take tensors as points: write "
        "polyval(x, p.coef) or chebval(x, p.coef), not p(x). For coefficients that are tensors "
        "call numpy.polyval and its kin, which have the highest power first: "
        "numpy.polyval(coefficients[::-1], x); or write chebvander(x, n) @ coefficients.\n",
}
cdef str BRANCH = (
    "if, while, assert, in, min() and max() ask for it, and and, or, not and a < x < b. Choose by "
    "cytape.numpy.where, for more by cytape.cond and cytape.while_loop; write &, | and ~ (or "
    "cytape.numpy.logical_and, logical_or and logical_not) instead of and, or and not, and "
    "(a < x) & (x < b).\n")
cdef str EXTENT = (
    "For an extent, as in eye(n) or size=n, call functions of a tensor x that has it: "
    "ones(x.shape), diag(ones(x.shape)), random.normal(size=x.shape).\n")
cdef str INDEX = (
    "For an array at such an index write cytape.constant(array)[i] or cytape.gather(array, i).\n")
cdef str INTEGER = INDEX + (
    "Call cytape.while_loop instead of a loop over range(n); or pass a Python int: the function is "
    "traced for each of its values.\n") + EXTENT
cdef str MASK = "For an array where a mask holds write cytape.constant(array)[mask].\n"
# Advice for symbolic tensors, which have no value.
cdef dict OF_SYMBOLIC = {
    "int()": INTEGER + NUMBER,
    "what wants an integer, as an index does,": INTEGER,
    "cytape.constant":
        "cytape.convert_to_tensor and cytape.identity take it as it is.\n",
}
cdef str PLOT = (
    "Plot tensor.numpy(), or plot after the function that is differentiated or traced.\n")
cdef str WRAP = (
    "A call of another library's function has a derivative if cytape.custom_gradient wraps it: "
    "docs/how_to/torch_and_jax.md has the lines for PyTorch and JAX.\n")
# Advice for conversions in other libraries, by the library that the user's program called.
cdef dict OF_LIBRARIES = {
    "jax": WRAP, "torch": WRAP,
    "matplotlib": PLOT, "mpl_toolkits": PLOT, "plotly": PLOT, "seaborn": PLOT,
    "pandas":
        "A table of pandas holds plain numbers. Operators give tensors: tensor * series, "
        "tensor @ frame; write frame.to_numpy() @ tensor instead of frame @ tensor.\n",
    "xarray":
        "DataArray.data is the tensor; values, item(), float() and coordinates are conversions.\n",
}
# Advice for functions of SciPy, by the end of their name.
cdef dict OF_SCIPY = {
    "expect": "Call cytape.scipy.integrate.quad(lambda x, *p: f(x) * d.pdf(x, *p), lower, upper, "
              "args=parameters) of a distribution d of cytape.scipy.stats.\n",
    "fit": "Minimise -sum(d.logpdf(data, *parameters)), d of cytape.scipy.stats, by "
           "cytape.scipy.optimize.minimize: the solution has derivatives in the data.\n",
    "median": "Call d.ppf(0.5) of a distribution d of cytape.scipy.stats.\n",
    "interval": "Call d.ppf((1 - p) / 2) and d.ppf((1 + p) / 2) of a distribution d of "
                "cytape.scipy.stats.\n",
    "ksone": "Its probabilities are alternating sums without a rule. Call cytape.scipy.special."
             "smirnov(n, x), which is ksone.sf(x, n) with a derivative in x.\n",
    "kstwo": "Its probabilities are powers of matrices without a rule. Call cytape.scipy.special."
             "kolmogorov(sqrt(n) * x), the limit of kstwo.sf(x, n) for large n.\n",
}
IN_A_RULE = (
    "Say tensor.numpy(): the rule of custom_gradient or custom_jvp has the derivative with respect "
    "to arguments")
# Functions of NumPy without a derivative, which convert lists to arrays.
COMPARISONS = ("allclose", "array_equal", "array_equiv", "isclose")
SUBSCRIPTS = ("BINARY_SUBSCR", "BINARY_OP")  # instructions for array[index], by Python's version
ASKED = "numpy(), item() or tolist()"
ASSIGNED = "an assignment to a variable"
variable_type = None
views = {}


def install_variable(type variable):
    """Set the class of variables."""
    global variable_type
    variable_type = variable


cdef Value value_in_view(tensor, Value held):
    if type(tensor) is not variable_type:
        return held
    cdef dict view = views.get(get_ident())
    found = None if view is None else view.get(tensor.id)
    return held if found is None else found[0]


cdef object graph_of(Value held, str attribute):
    if not is_symbolic(held):
        raise AttributeError(f"a tensor with a value has no {attribute!r}: only symbolic tensors, "
                             "of a graph, have")
    return held.owner


cdef int known_extent(Value value) except -1:
    if value.spec.ndim < 0 or value.spec.dims[0] < 0:
        raise SymbolicTensorError(
            f"{value.owner.describe(symbol_of(value))} has an unknown first extent: it has no "
            "length, and cannot be iterated over, while its graph is built. "
            "cytape.numpy.size(tensor, 0) is its length, as a tensor; instead of a loop use "
            "functions of whole arrays, or cytape.while_loop")
    return 0


cdef bint is_read_on_its_own(tensor) except -1:
    """Return whether a tape that watches variables when they are read would track this one."""
    return type(tensor) is variable_type and tensor.trainable


cdef bint is_covered(tensor, str how) except -1:
    """Report a tensor whose value is taken to a block of `departures`; return whether it covers it.

    how is None for conversions.
    """
    cdef ThreadState thread = this_thread()
    return thread.departures is not None and (<departures>thread.departures).note(tensor, how)


cdef int note_in_trace(tensor, bint asked) except -1:
    """Report a value that becomes a constant to the trace that this thread builds."""
    graph = building()
    if graph is not None and type(tensor) is not variable_type:
        graph.value_left(tensor, asked)
    return 0


cdef ndarray detached(tensor, Value held, str how):
    held = seen(tensor, held)
    cdef ndarray array = array_of(held)
    if not held.spec.trainable:
        return array
    if recorders.entered:
        if not is_covered(tensor, how):
            note_detachment(tensor, tensor.id, held.id, is_read_on_its_own(tensor), how)
    if how is ASKED:
        note_in_trace(tensor, True)
    return array


cdef ndarray examined(tensor, Value held, str cause):
    cdef ndarray array
    held = seen(tensor, held)
    if is_symbolic(held):
        outcome = getattr(branches, "outcome", None)
        if outcome is not None and cause == "bool()":
            return asarray(outcome(tensor))
        cause = with_purpose(cause)
        instead = instead_of_value(held, cause)
        raise SymbolicTensorError(no_value(held, asker(cause), instead))
    array = array_of(held)
    if type(tensor) is variable_type and building() is not None:
        raise SymbolicTensorError(
            f"variable {tensor.name!r} was about to become a plain array or number, or to decide "
            "about a branch, while a graph is built, which would keep its present value for ever. "
            "Use cytape's functions instead (cytape.cond for a branch); or say variable.numpy() "
            "if the present value is meant")
    return array


cdef bint is_recorded(tensor, Value held) except -1:
    """Return whether a recorder of this thread, also outside of traces, tracks a tensor."""
    return recorders.entered and held.spec.trainable and bool(
        followers_everywhere(tensor.id, seen(tensor, held).id, is_read_on_its_own(tensor)))


cdef bint is_of_call_elsewhere(Value held) except -1:
    """Return whether a value is of a function that runs, and is differentiated, in another thread.

    GradientTape only follows its own thread; its values are constants elsewhere.
    """
    cdef ThreadState thread = this_thread()
    cdef Recorder tape
    cdef TangentRecorder accumulator
    cdef int i
    for i in range(recorders.tapes.count):
        tape = <Recorder>recorders.tapes.members[i]
        if tape.detached is not None and tape.entry is not None and (
                tape.entry.thread is not thread and is_known(tape, held.id)):
            return True
    for i in range(recorders.accumulators.count):
        accumulator = <TangentRecorder>recorders.accumulators.members[i]
        if accumulator.reads is None and accumulator.entry is not None and (
                accumulator.entry.thread is not thread
                and tangent_of(accumulator, held.id) != NULL):
            return True
    return False


cdef str with_purpose(str cause):
    """Return the name of a conversion, with its purpose if that is an assignment."""
    stores = cause in ("float()", "int()", "NumPy") and user_step() == "STORE_SUBSCR" and (
        numpy_call() is None)
    return f"{cause}, to store it in an array," if stores else cause


cdef str asker(str cause):
    """Return the name of the function that converts a tensor, if it can be found."""
    caller = scipy_call()
    if caller is not None:
        return f"{caller}, which takes plain arrays,"
    library = library_call()
    if library in OF_LIBRARIES:
        return f"{library}, which takes plain arrays and numbers,"
    if cause != "NumPy":
        return cause
    caller = numpy_call()
    return f"{cause if caller is None else f'numpy.{caller}'}, which asks for an array,"


def is_in_custom_rule() -> bool:
    """Return whether a function with a `custom_gradient` or `custom_jvp` is running."""
    return this_thread().departures is not None


cdef str instead_of_scipy(str caller):
    """Return advice: the replacement for a call of a function of SciPy."""
    if caller.endswith(("_array", "_matrix")):
        return no_sparse(caller.rpartition(".")[2]) + "\n"
    _, module, *names = caller.split(".")
    try:
        found = import_module(f"cytape.scipy.{module}")
        for name in names:
            found = vars(found)[name]
    except (ImportError, KeyError, TypeError):
        found = None
    if found is not None and not getattr(found, "refuses_tensors", False):
        return f"Call cytape.{caller}, which has a derivative.\n"
    for name in names:
        if name in OF_SCIPY:
            return OF_SCIPY[name]
    return (f"Call {caller} in a function that is decorated with cytape.custom_jvp, and write the "
            "rule for its derivative.\n")


cdef str instead_of(str cause):
    """Return advice that replaces the conversion of a tensor."""
    library = library_call()
    if library in OF_LIBRARIES:
        return OF_LIBRARIES[library]
    caller = (numpy_call() if cause == "NumPy" else None) or user_call()
    return INSTEAD.get(caller.partition(".")[0]) or ADVICE.get(cause, "")


cdef str instead_of_value(Value held, str cause):
    """Return advice for a request for the value of a symbolic tensor."""
    scipy = scipy_call()
    if scipy is not None:
        return instead_of_scipy(scipy)
    if cause in ("bool()", "the operator in,"):
        return BRANCH if is_asked_by_user() else BRANCH + EXTENT
    if cause in OF_SYMBOLIC:
        return OF_SYMBOLIC[cause]
    kind = held.spec.dtype.kind
    if cause == "NumPy" and kind in "biu" and user_step() in SUBSCRIPTS:
        return MASK if kind == "b" else INDEX
    return MASK * (kind == "b") + instead_of(cause) + INTEGER * (kind in "iu")


cdef str lost_by(tensor, str cause):
    """Return the message for a conversion that loses a gradient, with advice."""
    cause = with_purpose(cause)
    what = (
        f"a tensor that is being recorded (shape {tensor.shape}) was about to "
        f"become a plain array or number, by {asker(cause)} {user_line()}: "
        "its gradient would be lost.\n")
    scipy = scipy_call()
    if is_in_custom_rule():
        return what + IN_A_RULE
    if scipy is not None:
        return what + instead_of_scipy(scipy).rstrip()
    is_index = cause == "NumPy" and user_step() in SUBSCRIPTS and numpy_call() is None
    return (f"{what}{POSITION if is_index else instead_of(cause)}"
            "If the gradient should stop here, say tensor.numpy() or tensor.item()")


cdef ndarray converted(tensor, Value held, str cause):
    cdef ndarray array = examined(tensor, held, cause)
    if not held.spec.trainable or not recorders.entered and building() is None:
        return array
    if numpy_call() not in COMPARISONS:
        if is_recorded(tensor, held):
            raise DetachedError(lost_by(tensor, cause))
        if recorders.entered:
            if is_of_call_elsewhere(held):
                raise DetachedError(
                    f"{lost_by(tensor, cause)}\nThe function that is differentiated runs in "
                    "another thread: results of processes and other threads are constants. Compute "
                    "in its thread")
            is_covered(tensor, None)
        note_in_trace(tensor, False)
    return array


cdef int require_unrecorded(tensor, Value held, str maker) except -1:
    if is_recorded(tensor, held):
        raise DetachedError(
            f"{maker} was called with a tensor that is being recorded, but what it makes starts "
            "without a history, which would lose the gradient. Use cytape.convert_to_tensor or "
            "cytape.identity, which keep it; or say cytape.stop_gradient(tensor) or "
            "tensor.numpy() if the gradient should stop here")
    if held.spec.trainable and not is_symbolic(held):
        note_in_trace(tensor, False)
    return 0
