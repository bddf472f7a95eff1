"""Samples of the keywords of NumPy's functions: what NumPy makes of arrays, or its error.

Calls are those of the op table, with keywords drawn from a list of values for each name. Through
NumPy and cytape's namespace, eager and in a function: value, shape and dtype; and the gradients
against central differences. What differs on purpose is named in `OTHERWISE`.
"""

import inspect
import random
import re
import warnings

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests.cases import grouped
from tests.ops.op_families import FAMILY_OF, SPECS

SAMPLES, FIRST = 12, 2  # of each function: all, and those that are always run
NAMESPACES = {"": (np, cnp), "linalg.": (np.linalg, cnp.linalg), "fft.": (np.fft, cnp.fft)}
HALF = ("float16", "complex64")
METHODS = [
    "linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased",
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "normal_unbiased", "unknown"]
FLAGS = (
    "bias compute_uv cov density endpoint full full_matrices hermitian include_initial increasing "
    "keepdims left overwrite_input return_counts returned right rowvar subok upper").split()
DTYPES = [None, float, np.float32, np.complex128, int, np.float16]
VALUES = {
    **dict.fromkeys(FLAGS, [True, False]), **dict.fromkeys(["axis1", "axis2"], [0, 1, -1]),
    **dict.fromkeys(["axisa", "axisb", "axisc"], [0, -1]),
    **dict.fromkeys(["k", "offset"], [0, 1, -1, 2]),
    **dict.fromkeys(["rcond", "rtol", "tol"], [None, 1e-10, 1e-3]), "UPLO": ["L", "U", "l", "X"],
    "axes": [None, (0, 1), (-1,), (1, 0), [0]], "axis": [None, 0, -1, 1, (0, 1), (0, -1), -2, ()],
    "casting": ["same_kind", "unsafe", "safe", "no"], "correction": [0, 1], "ddof": [0, 1, 2],
    "decimals": [0, 1, -1], "discont": [None, 1.0], "dtype": DTYPES, "dx": [1.0, 0.5],
    "edge_order": [1, 2], "indexing": ["xy", "ij"], "initial": [0.0, 1.5, 2],
    "kind": [None, "stable"], "kth": [0, 1, -1, (0, 1)], "method": METHODS,
    "mode": ["full", "valid", "same", "raise", "wrap", "clip", "reduced", "complete", "r", "edge"],
    "n": [None, 1, 2, 3, 6, 0], "norm": [None, "ortho", "forward", "backward", "unknown"],
    "ord": [None, 1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc", 3, 0], "order": ["C", "F"],
    "period": [None, 3.0], "s": [None, (3,), (2, 3), (4, 5)]}
# Patterns of calls that are right otherwise, or of which NumPy's result is none.
OTHERWISE = {
    "array": "of a symbol NumPy's own needs a value, and copy=False is for arrays",
    "cumprod.*dtype=<class 'int'>|prod.*dtype=<class 'int'>": "integers hold no derivative",
    r"(var|std|nanvar|nanstd).*dtype=(<class 'int'>|.*16)": "NumPy's mean is cut to integers",
    r"(nanvar|nanstd).*float32.*dtype=": "NumPy subtracts in single precision",
    r"cov.*dtype=<class 'int'>": "other errors come first",
    r"(linspace|geomspace|logspace).*dtype=": "in steps of NumPy's own",
    r"linalg\.svd.*full_matrices=True|linalg\.qr.*mode='(full|complete)'": (
        "the basis of what is left is arbitrary, and that mode no more NumPy's"),
    r"fft\.": "what begins with no elements is not initialised",
    r"polydiv|roots|trim_zeros": "shapes depend on values, which symbols do not have",
    r"linalg\.pinv.*hermitian": "of a matrix that is not",
    r"polyfit.*full=True": "rcond is a number"}


def functions():
    """Return for each function of NumPy's cytape's version and the records that call it."""
    found = {}
    for spec in SPECS:
        name = getattr(spec.fn, "__name__", "")
        for prefix, (theirs, ours) in NAMESPACES.items():
            if getattr(ours, name, None) is spec.fn and hasattr(theirs, name):
                found.setdefault(prefix + name, (getattr(theirs, name), spec.fn, []))[2].extend(
                    (spec, case) for case in spec.cases)
                break
    return found


def samples():
    for name, (theirs, ours, records) in functions().items():
        rng = random.Random(name)
        is_ufunc = isinstance(theirs, np.ufunc)
        parameters = {} if is_ufunc else inspect.signature(theirs).parameters
        names = ["dtype", "order", "casting", "subok"] if is_ufunc else list(parameters)
        for sample in range(SAMPLES):
            spec, case = rng.choice(records)
            dtype = rng.choice([d for d in spec.dtypes if d not in HALF] or ["float64"])
            inputs = spec.draw(case, dtype, seed=sample)
            shape = next((x.shape for x in inputs if is_moving(x)), None)
            if shape is None:
                continue
            free = [n for i, n in enumerate(names) if n in (*VALUES, "where") and (
                is_ufunc or i >= len(inputs)
                or parameters[n].kind is inspect.Parameter.KEYWORD_ONLY)]
            keywords = dict(case.kwargs)
            for n in rng.sample(free, min(len(free), rng.choice([1, 2, 2, 3]))):
                if n == "where":
                    keywords[n] = np.random.default_rng(sample).random(shape) > 0.3
                else:
                    keywords[n] = rng.choice(VALUES[n])
            label = name + "".join(f" {dtype}" for _ in inputs[:1]) + "".join(
                f" {n}={'mask' if n == 'where' else repr(x)}" for n, x in keywords.items())
            if not any(re.match(pattern, label) for pattern in OTHERWISE):
                yield FAMILY_OF[id(records[0][0])], f"{label} {sample}", (
                    theirs, ours, spec, inputs, keywords), sample >= FIRST


def is_moving(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def leaves(result):
    return [y for part in result for y in leaves(part)] if isinstance(result, (list, tuple)) else [
        result]


def caller(function, inputs, keywords):
    """Return the function of those inputs that move."""
    def call(*moving):
        given = iter(moving)
        return function(*[next(given) if is_moving(x) else x for x in inputs], **keywords)
    return call


def assert_like(found, expected):
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        narrow = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}.get(x.dtype.name, 1e-9)
        np.testing.assert_allclose(x, y, narrow, narrow)


@grouped("theirs, ours, spec, inputs, keywords", list(samples()))
def test_keywords_are_numpys(theirs, ours, spec, inputs, keywords):
    moving = [x for x in inputs if is_moving(x)]
    tensors = list(map(cytape.constant, moving))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected, error = theirs(*inputs, **keywords), None
        except Exception as raised:  # noqa: BLE001
            error = raised
        for function in (theirs, ours):
            call = caller(function, inputs, keywords)
            for way in (call, cytape.function(call)):
                if error is None:
                    assert_like(way(*tensors), expected)
                else:
                    assert_raises_alike(error, way, tensors)
        if error is None and is_smooth(spec, expected, moving):
            call = caller(ours, inputs, keywords)
            check_grads(lambda *xs: [y for y in leaves(call(*xs)) if y.dtype.kind in "fc"],
                        moving, order=1)


def assert_raises_alike(error, way, tensors):
    alike = (TypeError, ValueError)
    try:
        result = way(*tensors)
    except Exception as raised:  # noqa: BLE001
        assert isinstance(raised, alike if isinstance(error, alike) else type(error)), raised
    else:
        raise AssertionError(f"NumPy raises {error!r}, here the result is {result}")


def is_smooth(spec, expected, moving):
    results = [y for y in map(np.asarray, leaves(expected)) if y.dtype.kind in "fc"]
    flags = spec.differentiable if isinstance(spec.differentiable, tuple) else (
        spec.differentiable,)
    return all(flags) and bool(results) and all(
        x.dtype in (np.float64, np.complex128) for x in (*results, *moving)) and all(
        np.isfinite(y).all() for y in results)
