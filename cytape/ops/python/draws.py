"""Draws of random numbers as ops, and the streams that they draw from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops.adjoints.conform import broadcast_outline_op
from cytape.ops.calls.operands import is_tensor, operand, values_of
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.shapes import shape_rules
from cytape.ops.shapes.shape_rules import broadcast, known_extents
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import current_graph, is_recorded
from cytape.tensor.tensor import Tensor, data_of, tensor_of
from cytape.tensor.values.spec import UnknownShape, symbolic_spec

__all__ = ["Stream", "default_stream", "draw", "draw_of", "numpys_stream", "seed"]

MAX_SEED = 2**63 - 1
_Function = TypeVar("_Function", bound=Callable[..., Any])

# Generator of `cytape.nn.dropout`, made at first use: numpy.random is slow to import.
_default: np.random.Generator | None = None
_n_seedings = 0
drawing_functions: dict[str, Callable] = {}  # functions of cytape.numpy.random that draw, by name


class _Watchers(threading.local):
    """Callback of this thread, called with each stream before a draw."""

    def __init__(self) -> None:
        self.notes: tuple[Callable[[Any], None], ...] = ()


watchers = _Watchers()


def note(stream: Any) -> None:
    """Pass a stream to the watchers before its state changes."""
    for watcher in watchers.notes:
        watcher(stream)


class Stream:
    """A random generator with two seeds, created at the first draw.

    Parameters
    ----------
    graph_seed : int
        Of the graph, 0 where it has none.
    op_seed : int
    given : bool, optional
        Whether the user chose the op's seed: calls of the op share the stream then.

    Examples
    --------
    >>> bool(Stream(1, 2).generator.random() == Stream(1, 2).generator.random())
    True
    """

    def __init__(self, graph_seed: int, op_seed: int, given: bool = True):
        self.graph_seed, self.op_seed, self.given = graph_seed, op_seed, given
        self._generator: np.random.Generator | None = None

    @property
    def generator(self) -> np.random.Generator:
        """The generator, whose state each draw advances."""
        note(self)
        if self._generator is None:
            self._generator = np.random.default_rng([self.graph_seed, self.op_seed])
        return self._generator

    @property
    def unseeded(self):
        """The stream of an op without a seed, in a graph without one."""
        return numpys_stream

    def restorer(self) -> Callable[[], None]:
        """Return a function that restores the present state of the stream."""
        generator = self._generator
        state = None if generator is None else generator.bit_generator.state

        def restore() -> None:
            self._generator = generator
            if generator is not None and state is not None:
                generator.bit_generator.state = state

        return restore

    def __reduce__(self):
        return Stream, (self.graph_seed, self.op_seed, self.given)

    def __repr__(self):
        return f"Stream({self.graph_seed}, {self.op_seed})"


class _DefaultStream:
    """The default generator as a stream of all ops that have no seed."""

    given = False
    unseeded = property(lambda self: self)
    generator = property(lambda self: default_generator())

    def __reduce__(self):
        return "default_stream"


class _NumpysStream:
    """NumPy's global generator as a stream, with the methods of newer generators."""

    given = False
    unseeded = property(lambda self: self)

    @property
    def generator(self):
        note(np.random.mtrand._rand)
        return self

    def __reduce__(self):
        return "numpys_stream"

    def __getattr__(self, name):
        bound = getattr(np.random.mtrand._rand, name)
        setattr(self, name, bound)  # later lookups do not call __getattr__
        return bound

    def random(self, size, dtype):
        return np.asarray(np.random.random_sample(size), dtype)  # noqa: NPY002

    def standard_normal(self, size, dtype):
        return np.asarray(np.random.standard_normal(size), dtype)  # noqa: NPY002

    def standard_exponential(self, size, dtype):
        return np.asarray(np.random.standard_exponential(size), dtype)  # noqa: NPY002

    def standard_gamma(self, shape, size, dtype):
        return np.asarray(np.random.standard_gamma(shape, size), dtype)  # noqa: NPY002

    def integers(self, low, high, size, dtype, endpoint):
        if endpoint:
            high = np.add(high, 1, dtype=object)  # also for the largest integer
        return np.random.randint(low, high, size, dtype)  # noqa: NPY002


default_stream, numpys_stream = _DefaultStream(), _NumpysStream()


def seed(seed: int | None = None) -> None:
    """Seed NumPy's generator, as `numpy.random.seed`; traces and graphs draw from it, too.

    Also seeds `cytape.nn.dropout`. Draws with a `seed=` and graphs with a seed are not affected.
    In a traced function it takes effect once, during tracing.

    Parameters
    ----------
    seed : int or array_like, optional
        Without it the operating system chooses.

    Examples
    --------
    >>> from cytape.numpy import random
    >>> random.seed(3)
    >>> first = random.normal(size=2)
    >>> random.seed(3)
    >>> bool(np.all(first == random.normal(size=2)))
    True
    """
    global _n_seedings
    np.random.seed(seed)  # noqa: NPY002
    _n_seedings += 1
    # In place, since repeated draws hold the generator.
    default_generator().bit_generator.state = np.random.default_rng(seed).bit_generator.state


def times_seeded() -> int:
    """Return the number of calls of `seed`."""
    return _n_seedings


def default_generator() -> np.random.Generator:
    """Return the generator of ops without a seed that NumPy does not have, such as dropout."""
    global _default
    if _default is None:
        _default = np.random.default_rng()
    return _default


def _checked_seed(value):
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"a seed must be an integer that is not negative, got {value!r}")
    return int(value)


def new_stream(graph, op_seed=None, unseeded=numpys_stream):
    """Return the stream for an op that is about to be added to a graph.

    Parameters
    ----------
    graph : SymbolicGraph
    op_seed : int, optional
        Which the user chose.
    unseeded : optional
        The stream if neither the user nor a graph chose a seed, NumPy's or the default one.

    Returns
    -------
    Stream or `unseeded`
    """
    graph_seed, place, around = None, 0, graph
    while around is not None:  # a body uses the seed of the graph around it
        if graph_seed is None:
            graph_seed = _checked_seed(getattr(around, "seed", None))
        place = place * 1_000_003 + around.n_nodes
        around = getattr(around, "outer_graph", None)
    if op_seed is not None:
        return Stream(graph_seed or 0, op_seed)
    if graph_seed is None:
        return unseeded
    # Each call has its own seed, the same in every build.
    return Stream(graph_seed, place, given=False)


# -- the draws -------------------------------------------------------------------------------------
#
# Inputs: the parameters of the distribution first; then, if the shape of the result is unknown, a
# tensor of that shape.


def drawing(
    name, method, n_parameters=0, dtype=None, casts=False, derivatives=None, is_vector=False,
    **facts
):
    """Declare the op that calls a method of a generator.

    casts: whether the method lacks a dtype parameter. Gradients are None unless `derivatives` are
    given, keywords of `general`. Each draw may be a vector of the length of the last parameter.
    """

    def forward(*inputs, stream, size, **options):
        generator = stream.generator
        if len(inputs) > n_parameters:
            size = inputs[-1].shape
            inputs = inputs[:-1]
        drawn = getattr(generator, method)
        if casts:
            return np.asarray(drawn(*inputs, size=size), options["dtype"])
        return drawn(*inputs, size=size, **options)

    def shape_rule(*specs, stream, size, **options):
        drawn = np.dtype(options.get("dtype", dtype))
        parameters, outline = specs[:n_parameters], specs[n_parameters:]
        if is_vector:
            return _vectors(parameters[-1], outline, size, drawn)
        if size is None and specs:
            return shape_rules.spec_like(
                shape_rules.broadcast_specs(outline or parameters, method), drawn)
        return symbolic_spec(shape_rules.as_shape(size), drawn)

    facts |= {"shape_rule": shape_rule, "stateful": True}
    if derivatives is None:
        return nondifferentiable(name, forward, **facts)
    return general(name, forward, **derivatives, **facts)


def _vectors(parameter, outline, size, dtype):
    """Infer the spec of `size` vectors of the length of a parameter."""
    before = outline[0].shape if outline else () if size is None else shape_rules.as_shape(size)
    if before is None or parameter.shape is None:
        return symbolic_spec(None, dtype)
    return symbolic_spec((*before, *parameter.shape[-1:]), dtype)


def _lost(function, parameter):
    return DetachedError(
        f"cytape.numpy.random.{function} has no derivative in {parameter}, a tensor that is being "
        f"recorded: its gradient would be lost. Pass cytape.stop_gradient({parameter}) if it "
        "should stop here, or draw from a distribution that has one (docs/functions.md)")


def _no_derivative(_, function="gamma", parameter="shape"):
    raise _lost(function, parameter)


# Raises when it runs, not when it is built, since that part of a derivative may be unused.
no_derivative_op = nondifferentiable(
    "NoDerivative", _no_derivative, shape_rule=lambda x, **_: x)


def without_derivative(function, *parameters):
    """Return rules of an op that raise an error for a derivative in any parameter."""

    def vjp(op, g):
        gradients = [no_derivative_op(x, function=function, parameter=parameter)
                     for x, parameter in zip(op.inputs, parameters, strict=False)]
        gradients += [None] * (len(op.inputs) - len(gradients))  # the shape
        return gradients[0] if len(gradients) == 1 else tuple(gradients)

    def jvp(op, *tangents):
        moving = next(parameter for parameter, tangent in zip(parameters, tangents, strict=False)
                      if tangent is not None)
        return no_derivative_op(op.outputs[0], function=function, parameter=moving)

    places = tuple(range(len(parameters)))
    return {"vjp": vjp, "jvp": jvp, "saved_inputs": places, "saved_outputs": (0,),
            "optional_tangents": places}


def _is_recorded(x):
    if not isinstance(x, Tensor):
        return isinstance(x, list | tuple) and any(map(_is_recorded, x))
    try:
        np.asarray(x)
    except DetachedError:
        return True
    except SymbolicTensorError:  # a traced function may contain a recorder
        return is_recorded(x.id)
    return False


def refuse_recorded(function, **parameters):
    """Raise if parameters are recorded, since a draw has no derivative in them."""
    for name, x in parameters.items():
        if _is_recorded(x):
            raise _lost(function, name)


def _in_batch(call):
    """Draw for all members in one call; a draw with a seed continues its stream."""
    stream, (drawn,) = call.attrs["stream"], call.output_specs
    if any(call.mapped) or call.extent is None or stream.given or not drawn.known:
        return NotImplemented
    attrs = {**call.attrs, "size": (call.extent, *drawn.shape)}
    del attrs["stream"]
    return convert_to_tensor(
        draw(call.op, *call.inputs, seed=None, unseeded=stream.unseeded, **attrs))


uniform_op = drawing("RandomUniform", "random", batch=_in_batch)
normal_op = drawing("RandomStandardNormal", "standard_normal", batch=_in_batch)
exponential_op = drawing("RandomStandardExponential", "standard_exponential", batch=_in_batch)
standard_gamma_op, gamma_op = [
    drawing(name, "standard_gamma", 1, derivatives=without_derivative(function, "shape"))
    for name, function in (("RandomStandardGamma", "standard_gamma"), ("RandomGamma", "gamma"))]


def drawing_counts(name, method, *parameters, is_vector=False):
    """Declare the op that draws integers, which have no derivative."""
    return drawing(name, method, len(parameters), np.int64, is_vector=is_vector,
                   counts=(method, parameters))


integers_op = drawing("RandomIntegers", "integers", 2, batch=_in_batch)


def _drawing_positions(name, n_probabilities, **facts):
    """Declare the op that chooses positions, with or without probabilities as its first input.

    Further inputs: the population, if its size is unknown, and a tensor in the shape of the result,
    if that is unknown.
    """

    def forward(*inputs, stream, population, axis, size, replace, p):
        p = inputs[0] if n_probabilities else p
        others = list(inputs[n_probabilities:])
        if population is None:
            population = others.pop(0).shape[axis]
        size = others[0].shape if others else size
        if size is None and p is None and not replace:
            return stream.generator.permutation(population)
        return np.asarray(stream.generator.choice(population, size, replace, p))

    def shape_rule(*specs, population, size, **_):
        others = specs[n_probabilities + (population is None):]
        if others:
            return shape_rules.spec_like(others[0], np.dtype(np.int64))
        return symbolic_spec((population,) if size is None else size, np.int64)

    return nondifferentiable(name, forward, shape_rule=shape_rule, stateful=True, **facts)


positions_op = _drawing_positions("RandomPositions", 0)
weighted_positions_op = _drawing_positions(
    "RandomWeightedPositions", 1, counts=("choice", ("p",)))


class _Seeded:
    """A stream for a single draw, from a seed."""

    given = True

    def __init__(self, value):
        self.generator = np.random.default_rng(value)


def drawing_function(function: _Function) -> _Function:
    """Decorate a function that becomes part of `cytape.numpy.random`."""
    drawing_functions[function.__name__] = function
    return function


def is_numpys(seed, *parameters):
    """Return whether NumPy draws: eagerly, with plain parameters, from its own generator."""
    return seed is None and current_graph() is None and not any(map(is_tensor, parameters))


def draw(op, *inputs, seed, unseeded=numpys_stream, **attrs):
    """Draw, or add a node if a graph is being built or an input is symbolic."""
    seed = _checked_seed(seed)
    graph = current_graph()
    if graph is None:
        graph = next((x.graph for x in inputs if is_tensor(x) and x.graph is not None), None)
    if graph is not None and not getattr(graph, "runs_once", False):
        stream = new_stream(graph, seed, unseeded)
    else:
        stream = unseeded if seed is None else _Seeded(seed)
    if graph is not None:
        return graph.build(op, *inputs, stream=stream, **attrs)
    arrays = [data_of(x) if is_tensor(x) else x for x in inputs]
    drawn = op.forward(*arrays, stream=stream, **attrs)
    if any(map(is_tensor, inputs)):
        return tensor_of(np.asarray(drawn))
    return drawn if np.ndim(drawn) else np.asarray(drawn)[()]  # a NumPy scalar


def as_parameters(*parameters):
    """Return parameters of a distribution, lists as arrays."""
    return [operand(x) if isinstance(x, (list, tuple)) else x for x in parameters]


def require_not_negative(name, x):
    """Raise NumPy's error for a negative parameter, if its values are known."""
    values = values_of(x)
    if values is not None and (values < 0).any():
        raise ValueError(f"{name} < 0")


def require_valid(function, *parameters):
    """Raise NumPy's error for parameters that it refuses, if their values are known."""
    values = [values_of(x) for x in parameters]
    if all(x is not None for x in values):
        getattr(np.random.RandomState(0), function)(*values)  # noqa: NPY002


def _extents(a):
    return a.shape if is_tensor(a) else np.shape(a)


def draw_of(op, *parameters, beside=(), size, seed, is_vector=False, **attrs):
    """Draw by an op with these parameters of a distribution.

    The default shape is the broadcast shape of these and of the parameters `beside` them.
    """
    outline = ()
    if size is not None:
        outline, size = outline_and_size(size)
    elif not is_vector:
        size = broadcast(*map(_extents, (*parameters, *beside)), what=op.name)
        if size is not None and None in size:
            size = None
        if size is None and beside:
            outline = (broadcast_outline_op(*map(convert_to_tensor, (*parameters, *beside))),)
    # As arrays, since a number would get the dtype of another parameter.
    parameters = [x if is_tensor(x) else np.asarray(x) for x in parameters]
    return draw(op, *parameters, *outline, size=size, seed=seed, **attrs)


def outline_and_size(size):
    """Return an input in the requested shape, if that is unknown, and the size."""
    if type(size) is UnknownShape and size.tensor is not None:
        return (broadcast_outline_op(size.tensor()),), None
    return (), known_extents(size, "random numbers of")


def dtype_of(*parameters):
    """Return float32 if all tensors among the parameters have it, else float64."""
    dtypes = {x.dtype for x in parameters if is_tensor(x)}
    return np.dtype(np.float32 if dtypes == {np.dtype(np.float32)} else np.float64)


def is_number(x, value):
    return isinstance(x, int | float) and x == value


def random_in_shape_of(x, dtype, seed):
    """Draw uniformly from [0, 1), one number for each element of an array or tensor."""
    return draw_of(
        uniform_op, beside=(x,), size=None, dtype=dtype, seed=seed, unseeded=default_stream)
