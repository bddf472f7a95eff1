"""Ill-formed values of NumPy's parameters: what eager calls refuse is refused wherever code runs.

Calls are those of the op table, each with one parameter changed. Errors are compared by their
types; where a list is refused, by their words, too.
"""

import inspect
import itertools
import warnings

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.errors import SymbolicTensorError
from tests.cases import case, each
from tests.ops.op_families import SPECS
from tests.ops.test_sampled_keywords import caller, functions, is_moving
from tests.tables import table
from tests.ways import run_in_graph

VALUES = [
    [0], [0, 0], [[0]], 0.5, "0", 9, -9, None, True, (), (0, 0), (0, 9), (0.5,), ("a",), (None,),
    1j, np.array([0]), np.array(0.5)]
PARAMETERS = {
    "axes", "axis", "axis1", "axis2", "axisa", "axisb", "axisc", "decimals", "destination",
    "indices_or_sections", "k", "keepdims", "kth", "m", "n", "new_shape", "num", "offset",
    "pad_width", "repeats", "reps", "s", "shape", "shift", "source", "start"}
CALLS = 2  # of each function, with each parameter
WAYS = {
    "function": lambda call, arrays: cytape.function(call)(*arrays),
    "unknown extents": lambda call, arrays: cytape.function(call, input_signature=[
        cytape.Spec.of((None,) * x.ndim, x.dtype) for x in arrays])(*arrays),
    "graph": lambda call, arrays: run_in_graph(call, *arrays),
    "vmap": lambda call, arrays: cytape.vmap(call)(*[x[None] for x in arrays]),
    "branch": lambda call, arrays: cytape.function(lambda *xs: cytape.cond(
        np.sum(xs[0].real) < np.inf, lambda: call(*xs), lambda: call(*xs)))(*arrays),
}


def outcome(function, *arguments):
    """Return the error that a call raises, or None."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(*arguments)
        except Exception as error:
            return error


def changed_calls(theirs, records):
    """Yield calls of a function of which NumPy's parameters say how, with one of them changed."""
    parameters = inspect.signature(theirs).parameters
    names, n_calls = list(parameters), 0
    for spec, sample in records:
        inputs = spec.draw(sample, "float64" if "float64" in spec.dtypes else spec.dtypes[0], 0)
        if n_calls == CALLS or not any(map(is_moving, inputs)):
            continue
        n_calls += 1
        for place, name in enumerate(names):
            positional = place < len(inputs) and (
                parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY)
            if name in PARAMETERS and not (positional and is_moving(inputs[place])):
                for value in VALUES:
                    args, keywords = list(inputs), dict(sample.kwargs)
                    if positional:
                        args[place] = value
                    else:
                        keywords[name] = value
                    if not is_moving(value):
                        yield name, value, args, keywords


FUNCTIONS = {name: found for name, found in functions().items() if type(found[0]) is not np.ufunc}
for spec in SPECS:
    if inspect.isfunction(spec.fn) and getattr(nn, spec.fn.__name__, None) is spec.fn:
        FUNCTIONS[f"nn.{spec.fn.__name__}"] = spec.fn, spec.fn, [(spec, x) for x in spec.cases]


@pytest.mark.parametrize("n_ways", table([2], [len(WAYS)]))
@each("name", FUNCTIONS)
def test_arguments_that_eager_calls_refuse_are_refused_in_every_way(name, n_ways):
    """Each call in some of the ways, in turn."""
    (theirs, ours, records), ways = FUNCTIONS[name], itertools.cycle(WAYS.items())
    for parameter, value, args, keywords in changed_calls(theirs, records):
        arrays = [x for x in args if is_moving(x)]
        call = caller(ours, args, keywords)
        error = outcome(call, *map(cytape.constant, arrays))
        if theirs is not ours and parameter != "k":  # the constants of polyint, joined otherwise
            with case(f"{name}(..., {parameter}={value!r})".strip):
                refused = outcome(caller(theirs, args, keywords), *arrays)
                assert (refused is None) == (error is None), (refused, error)
        for way, run in itertools.islice(ways, n_ways) if error is not None else ():
            text = f"{name}(..., {parameter}={value!r}), {way}"
            with case(text.strip):
                refused_alike(error, outcome(run, call, arrays), way)


def refused_alike(error, found, way):
    if way != "unknown extents" or not isinstance(found, SymbolicTensorError):
        kinds = (TypeError, ValueError)
        assert isinstance(found, kinds if isinstance(error, kinds) else type(error)), (error, found)
        assert "'list'" in str(found) or "'list' object cannot" not in str(error), (error, found)


@each("call", [
    lambda x: np.reshape(x, None), lambda x: x.reshape(None), lambda x: np.reshape(x, (-2, 3)),
    lambda x: np.reshape(x, -7), lambda x: np.reshape(x, None, "F")])
def test_shapes_that_numpy_accepts_are_accepted_in_every_way(call):
    x = np.arange(6.0).reshape(2, 3)
    for way, run in WAYS.items():
        with case(way.strip):
            found = np.asarray(run(call, [x]))
            np.testing.assert_array_equal(found[0] if way == "vmap" else found, call(x))


@each("shape", [{2, 3}, (True, 2), [False], {2: 3}, "23"])
@each("function", [np.zeros_like, np.ones_like, np.empty_like])
def test_shapes_that_numpy_refuses_are_refused_in_every_way(function, shape):
    for way, run in WAYS.items():
        with case(way.strip), pytest.raises((TypeError, ValueError)):
            run(lambda x: function(x, shape=shape), [np.ones(2)])


@each("call, error", [
    (lambda x: np.sum(x, axis=[0]), TypeError), (lambda x: np.max(x, axis=[0]), TypeError),
    (lambda x: np.mean(x, axis=0.5), TypeError), (np.histogram, SymbolicTensorError)])
def test_calls_with_a_tensor_of_unknown_rank_are_refused(call, error):
    with pytest.raises(error):
        cytape.function(call, input_signature=[cytape.Spec.of(None, float)])(np.ones(3))
