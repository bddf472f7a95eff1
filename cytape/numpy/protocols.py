"""NumPy's protocols on tensors: ufuncs, and functions that NumPy dispatches."""

import functools
import importlib
import sys
from types import FunctionType

import numpy as np

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.numpy import families
from cytape.ops.calls.dispatch import UFUNC_ATTRIBUTES, UFUNC_METHODS
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.op_kinds import rooms_by_prefix, rooms_to_come
from cytape.tensor import nest
from cytape.tensor.recording.conversion_guards import IN_A_RULE, is_in_custom_rule
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.user_warnings import numpy_call, user_line


def _versions(ours, package):
    """Return functions of a package of NumPy that tensors override, and cytape's versions."""
    found = {}
    for name, function in vars(ours).items():
        theirs = getattr(package, name, None)
        if isinstance(theirs, np.ufunc) or hasattr(theirs, "_implementation"):
            found[theirs] = function
    return found


NUMPY_FUNCTIONS = _versions(families, np)
for _name in ("empty", "full", "ones", "zeros"):  # tensors override them by like= alone
    NUMPY_FUNCTIONS[getattr(np, _name)] = getattr(families, _name)
# Modules of NumPy whose functions are imported when the first of them meets a tensor.
_SUBMODULES = {
    "fft": "cytape.ops.submodules.fourier",
    "lib.stride_tricks": "cytape.ops.submodules.stride_tricks",
    "linalg": "cytape.ops.submodules.linear_algebra"}
rooms_to_come.extend([
    *_SUBMODULES.values(), "cytape.ops.sampling.distributions",
    "cytape.ops.submodules.stack_correlation"])
UPDATES = "cytape.ops.updates.in_place"  # imported when something is updated first
rooms_to_come.append(UPDATES)
_SPECIAL = "cytape.ops.special"  # imported when a tensor meets a ufunc of scipy.special
rooms_by_prefix["Scipy"] = _SPECIAL
rooms_by_prefix.update({
    "ScipyDistance": "cytape.ops.submodules.point_distances",
    "ScipyFft": "cytape.ops.signals.cosine_transforms",
    "ScipyLinalg": "cytape.ops.scipy_linalg",
    "ScipyLinalgFun": "cytape.scipy.linalg.general_functions",
    "ScipyLinalgIndependent": "cytape.scipy.linalg.general_functions",
    "ScipyLine": "cytape.ops.probabilities.line_integrals",
    "ScipyNdimage": "cytape.ops.images.correlations",
    "ScipyNdimageInterp": "cytape.ops.images.splines",
    "ScipyNdimageSp": "cytape.ops.images.splines",
    "ScipySignal": "cytape.ops.signals.linear_filters",
    "ScipySignalConv": "cytape.ops.signals.convolutions",
    "ScipySignalDe": "cytape.ops.signals.resampling",
    "ScipySignalOverlap": "cytape.ops.signals.spectra",
    "ScipySignalSeg": "cytape.ops.signals.spectra",
    "ScipySignalUp": "cytape.ops.signals.resampling",
    "ScipySparse": "cytape.ops.sparse_matrices",
    "ScipyStats": "cytape.ops.sampling.quantile_functions",
    "ScipyStatsSolved": "cytape.scipy.stats.solved_quantiles",
    "ScipyTail": "cytape.ops.probabilities.log_probabilities"})
# Functions by the module that is imported at the first call or look-up of one of them.
_MODULES = {
    "calculus.binary_fractions": "frexp ldexp modf",
    "calculus.signal_convolution": "convolve correlate",
    "calculus.differences":
        "cumulative_prod cumulative_sum diff ediff1d gradient trapezoid unwrap",
    "calculus.interpolation": "interp",
    "calculus.polynomials":
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander",
    "calculus.sequences": "arange geomspace linspace logspace",
    "calculus.bessel": "i0 kaiser",
    "calculus.vector_products": "cross matvec vecmat",
    "choosing.along_axes": "apply_along_axis apply_over_axes",
    "choosing.piecewise": "choose piecewise select",
    "choosing.array_conversions":
        "asanyarray asarray_chkfinite ascontiguousarray asfortranarray real_if_close require",
    "choosing.insertion": "block delete diagflat insert resize trim_zeros",
    "choosing.padding": "pad",
    "choosing.array_writers": "copyto fill_diagonal place put put_along_axis putmask",
    "statistics.averages": "average corrcoef cov ptp",
    "statistics.bin_counts": "bincount histogram histogram2d histogramdd",
    "statistics.nan_reductions":
        "nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "statistics.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "statistics.sorting":
        "partition sort sort_complex unique unique_all unique_counts unique_inverse unique_values",
}
LATER = {
    name: f"cytape.ops.{module}" for module, names in _MODULES.items() for name in names.split()
}
# NumPy's objects without dispatch.
_OBJECTS = dict.fromkeys(("c_", "r_"), "cytape.ops.choosing.index_tricks")
rooms_to_come.extend([f"cytape.ops.{module}" for module in [*_MODULES, "calculus.ufunc_methods"]])
# Functions whose results have no derivative: dtypes, positions that depend on shapes, whether
# memory is shared, and text.
_OF_DTYPES = (np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj, np.result_type)
_OF_SHAPES = (
    np.diag_indices_from, np.einsum_path, np.tril_indices_from, np.triu_indices_from)
_OF_DATA = (
    np.array2string, np.array_repr, np.array_str, np.may_share_memory, np.min_scalar_type,
    np.shares_memory)

_WRITTEN = {  # functions that write to their first parameter
    np.copyto: "dst", np.fill_diagonal: "a", np.place: "arr", np.put: "a",
    np.put_along_axis: "arr", np.putmask: "a"}


def later(name):
    """Return a function that is imported on first use, None if there is none."""
    module = LATER.get(name) or _OBJECTS.get(name)
    if module is None:
        return None
    function = getattr(importlib.import_module(module), name)
    _with_members(function, getattr(np, name))
    return function


def _with_members(function, ufunc):
    """Add the methods and attributes of a NumPy ufunc to a function that replaces it."""
    if isinstance(ufunc, np.ufunc) and isinstance(function, FunctionType):
        names = (*UFUNC_METHODS, *UFUNC_ATTRIBUTES)
        function.__dict__.update({x: getattr(ufunc, x) for x in names if not x.startswith("_")})


@functools.cache
def functions_of(name):
    """Return the functions of a submodule of NumPy and cytape's versions of them."""
    package = importlib.import_module(f"numpy.{name}")
    return _versions(importlib.import_module(_SUBMODULES[name]), package)


def ufunc_method(op, method, *inputs, **arguments):
    """Call a method of the ufunc for which an op is cytape's version."""
    methods = importlib.import_module("cytape.ops.calculus.ufunc_methods").METHODS
    return methods[method](op, *inputs, **arguments)


# Ufuncs that functions of `scipy.special` call, and these functions.
_CALLED = {"_lambertw": "lambertw", "_riemann_zeta": "zeta", "_zeta": "zeta"}


def _is_special(function):
    name = function.__name__
    module = "scipy.special._ufuncs" if name in _CALLED else "scipy.special"
    return getattr(sys.modules.get(module), name, None) is function


def version_of(function):
    """Return cytape's version of a NumPy function, None if there is none."""
    ours = NUMPY_FUNCTIONS.get(function)
    if ours is None and isinstance(function, np.ufunc) and function.__name__ == "clip":
        return version_of(np.clip)  # of the method of arrays
    if ours is None and getattr(np, function.__name__, None) is function:
        ours = later(function.__name__)
        if ours is not None:
            NUMPY_FUNCTIONS[function] = ours
    elif ours is None and _is_special(function):
        name = _CALLED.get(function.__name__, function.__name__)
        ours = getattr(importlib.import_module(_SPECIAL), name, None)
    elif ours is None:
        package, _, name = getattr(function, "__module__", "").partition(".")
        if package == "numpy" and name in _SUBMODULES:
            return functions_of(name).get(function)
    return ours


def numpy_functions():
    """Return the functions of NumPy that accept tensors, and cytape's versions of them."""
    for name in LATER:
        version_of(getattr(np, name))
    return NUMPY_FUNCTIONS


def _plain(x, convert=np.asarray):
    """Return x with all tensors in it converted; raises for recorded ones."""
    if isinstance(x, Tensor):
        return convert(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_plain(item, convert) for item in x)
    if isinstance(x, dict):
        return {key: _plain(item, convert) for key, item in x.items()}
    return x


def _of_its_dtype(tensor):
    return np.empty((), tensor.dtype)


def _of_its_shape(tensor):
    if tensor.shape is None or None in tensor.shape:
        raise SymbolicTensorError(
            f"positions depend on the shape of a tensor, and that of {tensor!r} is not known: give "
            "the placeholder a shape, or reshape the tensor to a known one")
    return np.broadcast_to(_of_its_dtype(tensor), tensor.shape)


_SAVES = (np.savez, np.savez_compressed)  # any word names an array, such as out
_QUESTIONS = {
    **dict.fromkeys(_OF_DTYPES, _of_its_dtype), **dict.fromkeys(_OF_SHAPES, _of_its_shape),
    **dict.fromkeys(_OF_DATA, data_of)}


def _without_gradient(name, function, args, arguments):
    """Call a NumPy function without a version in cytape; raise if a gradient would be lost."""
    advice = (
        "Write it with functions that have one (docs/functions.md); or wrap it with "
        "cytape.custom_jvp or custom_gradient"
    )
    writes = True
    if arguments.get("out") is not None and function not in _SAVES:
        name += " with out= (or as an operator like +=)"
        advice = (
            "As it is written to, make it with cytape.numpy.zeros (or ones, full, empty) inside of "
            "the tape or function; or write `u = u + x` instead of `u += x`"
        )
    elif function is np.copyto and (caller := numpy_call()) is not None:
        name = f"numpy.{caller}"  # full_like, say, which fills an array of NumPy's
        advice = f"Call cytape.{name}, which makes a tensor"
    elif function in _WRITTEN:
        advice = (
            "Make the array a tensor with cytape.constant(array), and call "
            f"{name} again, or write x[index] = values; or x.at[index].set(values)"
        )
    else:
        writes = False
    for x in nest.flatten((args, arguments)):
        if isinstance(x, np.ndarray):
            plain_array(x)
    try:
        return function(*_plain(args), **_plain(arguments))
    except DetachedError as error:
        why = (
            f"{name} was called {user_line()} to write a tensor that is being recorded to an array "
            "of NumPy's, which cannot hold its derivative") if writes else (
            f"{name} has no derivative in cytape, but was called {user_line()} with a tensor that "
            "is being recorded")
        if not writes and is_in_custom_rule():
            raise DetachedError(f"{why}. {IN_A_RULE}") from error
        raise DetachedError(
            f"{why}. {advice}; or pass tensor.numpy() if the derivative should stop here"
        ) from error
    except SymbolicTensorError as error:
        if writes:
            message = (
                f"{name} was called {user_line()} to write a symbolic tensor, which has no value "
                f"yet, to an array of NumPy's. {advice}")
        else:
            message = (
                f"{name} has no version in cytape, and a symbolic tensor has no value yet to call "
                f"it with. {advice}; or call it through cytape.numpy_function")
        raise SymbolicTensorError(message) from error


def array_ufunc(ufunc, method, inputs, arguments):
    """Implement `Tensor.__array_ufunc__`, which itself calls cytape's versions of ufuncs."""
    ours = version_of(ufunc)
    out = arguments.get("out")
    if out is not None and any(isinstance(x, Tensor) for x in out):
        is_call = method == "__call__"
        function = ufunc if is_call else getattr(ufunc, method)
        return _into(function, inputs, arguments, broadcast=is_call)
    if method == "at" or method != "__call__" and out is None and (
            isinstance(ours, ElementwiseOp) or method == "outer" and ours is not None):
        return ufunc_method(ours or ufunc, method, *inputs, **arguments)
    module = "numpy." if getattr(np, ufunc.__name__, None) is ufunc else ""
    if _is_special(ufunc):
        module = "scipy.special."
    name = module + ufunc.__name__ + ("" if method == "__call__" else f".{method}")
    return _without_gradient(name, getattr(ufunc, method), inputs, arguments)


def _into(function, args, arguments, *, broadcast):
    """Call a NumPy function with a tensor as `out`."""
    updates = importlib.import_module(UPDATES)
    if broadcast:  # as ufuncs do
        return updates.into(function, args, dict(arguments))
    arguments = dict(arguments)
    out = arguments.pop("out")
    out = out[0] if isinstance(out, tuple) else out
    return updates.replaced(out, function(*args, **arguments), function)


@functools.cache
def _names_from_out(function):
    """Return the names of a function's parameters from `out` on, and the number before it."""
    import inspect  # takes long

    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of C, without one
        parameters = ()
    names = [each.name for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
    place = names.index("out") if "out" in names else sys.maxsize
    return names[place:], place


def array_function(function, args, arguments):
    """Implement `Tensor.__array_function__`."""
    if len(args) > 1 and len(args) > (from_out := _names_from_out(function))[1]:
        names, place = from_out
        arguments = {**dict(zip(names, args[place:], strict=False)), **arguments}
        args = args[:place]
    ours = version_of(function)
    out = None if function in _SAVES else arguments.get("out")
    if isinstance(out, Tensor):
        return _into(ours or function, args, arguments, broadcast=False)
    if function in _WRITTEN and not isinstance(
            args[0] if args else arguments.get(_WRITTEN[function]), Tensor):
        ours = None  # NumPy's array cannot hold a tensor
    convert = _QUESTIONS.get(function)
    if convert is not None:
        return function(*_plain(args, convert), **_plain(arguments, convert))
    if ours is None or out is not None:
        name = f"{function.__module__}.{function.__name__}"
        return _without_gradient(name, function, args, arguments)
    return ours(*args, **arguments)


for _theirs, _ours in NUMPY_FUNCTIONS.items():
    _with_members(_ours, _theirs)
