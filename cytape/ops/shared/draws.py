"""Draws of random numbers as ops, and the streams of numbers that they draw from."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops.engine.arguments import is_tensor, operand, values_of
from cytape.ops.engine.declare import general, nondifferentiable
from cytape.ops.shapes import shape_rules
from cytape.ops.shapes.shape_rules import broadcast, known_extents
from cytape.ops.shared.conform import broadcast_outline_op
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import UnknownShape, symbolic_spec
from cytape.tensor.state import current_graph, is_recorded
from cytape.tensor.tensor import Tensor, data_of, tensor_of

__all__ = ["Stream", "draw", "draw_shaped", "seed"]

MAX_SEED = 2**63 - 1

# Made when first asked: numpy.random is slow to import. Chooses seeds of graphs, and for dropout.
_default: np.random.Generator | None = None
_n_seedings = 0
drawing_functions: list = []  # of cytape.numpy.random: what calls them draws from NumPy's generator


class _Watchers(threading.local):
    """What this thread tells which streams it is about to draw from, each time."""

    def __init__(self) -> None:
        self.notes: tuple[Callable[[Stream], None], ...] = ()


watchers = _Watchers()


class Stream:
    """A generator that begins where its two seeds say, when it is first asked.

    Parameters
    ----------
    graph_seed : int or None
        None where the graph has none: the default generator chooses one then when the stream is
        first asked, and again after each call of `seed`, with which the stream begins anew.
    op_seed : int
    given : bool, optional
        Whether the user chose the op's seed: calls of the op share the stream then.

    Examples
    --------
    >>> bool(Stream(1, 2).generator.random() == Stream(1, 2).generator.random())
    True
    """

    def __init__(self, graph_seed: int | None, op_seed: int, given: bool = True):
        self.op_seed, self.given = op_seed, given
        self._graph_seed, self._is_chosen = graph_seed, graph_seed is None
        self._chosen_at = -1  # how often `seed` had been called
        self._generator: np.random.Generator | None = None

    @property
    def graph_seed(self) -> int:
        """The seed of the graph, or the one that stands for it."""
        if self._graph_seed is None or (
                self._is_chosen and self._chosen_at != _n_seedings):
            self._chosen_at, self._generator = _n_seedings, None
            self._graph_seed = int(default_generator().integers(MAX_SEED))
        return self._graph_seed

    @property
    def generator(self) -> np.random.Generator:
        """The generator, which goes on with each draw."""
        self.note()
        graph_seed = self.graph_seed
        if self._generator is None:
            self._generator = np.random.default_rng([graph_seed, self.op_seed])
        return self._generator

    def note(self) -> None:
        """Tell the watchers where the stream stands, before it goes on."""
        for note in watchers.notes:
            note(self)

    def restorer(self) -> Callable[[], None]:
        """Return a function that has the stream continue from where it is now.

        It begins anew with a call of `seed` if it would do so now.
        """
        before, n_before = (self._graph_seed, self._generator), self._chosen_at - _n_seedings
        state = None if self._generator is None else self._generator.bit_generator.state

        def restore() -> None:
            self._graph_seed, self._generator = before
            self._chosen_at = n_before + _n_seedings
            if self._generator is not None and state is not None:
                self._generator.bit_generator.state = state

        return restore

    def __reduce__(self):
        return Stream, (self.graph_seed, self.op_seed, self.given)

    def __repr__(self):
        return f"Stream({self._graph_seed}, {self.op_seed})"


def seed(value: int | None = None) -> None:
    """Set NumPy's generator back, as `numpy.random.seed`, and what graphs without a seed draw.

    Functions that are traced draw the same again, then; their draws with a `seed=` of their own
    and graphs with a seed go on. In a function that is traced it seeds once, while it is traced.

    Parameters
    ----------
    value : int or array_like, optional
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
    np.random.seed(value)  # noqa: NPY002
    _n_seedings += 1
    # In place: whoever draws something once more has set the generator back, and will again.
    default_generator().bit_generator.state = np.random.default_rng(value).bit_generator.state


def times_seeded() -> int:
    """Return how often `seed` has been called."""
    return _n_seedings


def default_generator() -> np.random.Generator:
    """Return the generator of what has no seed and is not NumPy's."""
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


def new_stream(graph, op_seed=None):
    """Return the stream of an op that is about to be added to a graph.

    Parameters
    ----------
    graph : SymbolicGraph
    op_seed : int, optional
        Which the user chose.

    Returns
    -------
    Stream
    """
    graph_seed, place, around = None, 0, graph
    while around is not None:  # a function, branch or loop is seeded by what it stands in
        if graph_seed is None:
            graph_seed = _checked_seed(getattr(around, "seed", None))
        place = place * 1_000_003 + around.n_nodes
        around = getattr(around, "outer_graph", None)
    if graph_seed is None and op_seed is not None:
        graph_seed = 0
    if op_seed is None:
        op_seed = place  # each call has another one, the same whenever it is built
        return Stream(graph_seed, op_seed, given=False)
    return Stream(graph_seed, op_seed)


# -- the draws -------------------------------------------------------------------------------------
#
# What an input is: for some the parameters of the distribution, for all others a tensor that has
# the shape of the result, where it is not known before.


def drawing(name, method, takes_parameters=False, dtype=None, casts=False, derivatives=None):
    """Declare the op that calls a method of a generator, which may not take a dtype (`casts`).

    Gradients end at its draws, unless there are `derivatives`: what `general` takes.
    """

    def forward(*inputs, stream, size, **options):
        generator = stream.generator
        if casts:
            size = inputs[0].shape if inputs else size
            return np.asarray(getattr(generator, method)(size=size), options["dtype"])
        if takes_parameters:
            return getattr(generator, method)(*inputs, size=size, **options)
        size = inputs[0].shape if inputs else size
        return getattr(generator, method)(size=size, **options)

    def shape_rule(*specs, stream, size, **options):
        drawn = np.dtype(options.get("dtype", dtype))
        if size is None and specs:
            return shape_rules.spec_like(shape_rules.broadcast_specs(specs, method), drawn)
        return symbolic_spec(shape_rules.as_shape(size), drawn)

    if derivatives is None:
        op = nondifferentiable(name, forward, shape_rule=shape_rule)
    else:
        op = general(name, forward, **derivatives, shape_rule=shape_rule)
    op.stateful = True
    return op


def _lost(function, parameter):
    return DetachedError(
        f"cytape.numpy.random.{function} has no derivative in {parameter}, a tensor that is being "
        f"recorded: its gradient would be lost. Pass cytape.stop_gradient({parameter}) if it "
        "should stop here, or draw from a distribution that has one (docs/functions.md)")


def _no_derivative(_):
    raise _lost("gamma", "shape")


# Raises when it runs, and not when it is built into a derivative of which this part is not needed.
no_derivative_op = nondifferentiable("NoDerivative", _no_derivative, shape_rule=lambda x: x)


def _is_recorded(x):
    if not isinstance(x, Tensor):
        return isinstance(x, list | tuple) and any(map(_is_recorded, x))
    try:
        np.asarray(x)
    except DetachedError:
        return True
    except SymbolicTensorError:  # a tape or accumulator may be in the function that is traced
        return is_recorded(x.id)
    return False


def refuse_recorded(function, **parameters):
    """Raise for parameters that are being recorded, in which a draw has no derivative."""
    for name, x in parameters.items():
        if _is_recorded(x):
            raise _lost(function, name)


uniform_op = drawing("RandomUniform", "random")
normal_op = drawing("RandomStandardNormal", "standard_normal")
exponential_op = drawing("RandomStandardExponential", "standard_exponential")
gamma_op = drawing(
    "RandomStandardGamma", "standard_gamma", takes_parameters=True,
    derivatives={
        "vjp": lambda op, g: no_derivative_op(op.inputs[0]),
        "jvp": lambda op, t: no_derivative_op(op.outputs[0]),
        "saved_inputs": (0,), "saved_outputs": (0,),
    })
poisson_op = drawing("RandomPoisson", "poisson", takes_parameters=True, dtype=np.int64)
binomial_op = drawing("RandomBinomial", "binomial", takes_parameters=True, dtype=np.int64)
integers_op = drawing("RandomIntegers", "integers")
COUNTS = {poisson_op: ("poisson", "lam"), binomial_op: ("binomial", "p")}  # without a derivative


def _positions(*likes, stream, population, axis, size, replace, p):
    if likes:
        population = likes[0].shape[axis]
    if size is None and p is None and not replace:
        return stream.generator.permutation(population)
    return np.asarray(stream.generator.choice(population, size, replace, p))


positions_op = nondifferentiable(
    "RandomPositions",
    _positions,
    shape_rule=lambda *likes, population, size, **_: symbolic_spec(
        (population,) if size is None else size, np.int64
    ),
)
positions_op.stateful = True


class _Default:
    """The default generator as a stream."""

    given = True

    @property
    def generator(self):
        return default_generator()


class _Numpys:
    """NumPy's global generator as a stream, with the methods of newer generators."""

    given = True
    generator = property(lambda self: self)

    def __getattr__(self, name):
        return getattr(np.random.mtrand._rand, name)

    def random(self, size, dtype):
        return np.asarray(np.random.random_sample(size), dtype)  # noqa: NPY002

    def standard_normal(self, size, dtype):
        return np.asarray(np.random.standard_normal(size), dtype)  # noqa: NPY002

    def standard_exponential(self, size, dtype):
        return np.asarray(np.random.standard_exponential(size), dtype)  # noqa: NPY002

    def standard_gamma(self, shape, size, dtype):
        return np.asarray(np.random.standard_gamma(shape, size), dtype)  # noqa: NPY002

    def integers(self, low, high, size, dtype, endpoint):
        low, high = (0, low) if high is None else (low, high)
        return np.random.randint(low, high + endpoint, size, dtype)  # noqa: NPY002


class _Seeded:
    """A stream for a single draw, from a seed."""

    given = True

    def __init__(self, value):
        self.generator = np.random.default_rng(value)


def is_numpys(seed, *parameters):
    """Return whether a draw is NumPy's business: of plain numbers, now, from its generator."""
    return seed is None and current_graph() is None and not any(map(is_tensor, parameters))


_default_stream, _numpys_stream = _Default(), _Numpys()  # nodes that share one run in order


def draw(op, *inputs, seed, default=_numpys_stream, **attrs):
    """Draw now, or build a node where a graph is being built or an input belongs to one."""
    seed = _checked_seed(seed)
    graph = current_graph()
    if graph is None:
        graph = next((x.graph for x in inputs if is_tensor(x) and x.graph is not None), None)
    at_once = graph is None or getattr(graph, "runs_once", False)
    stream = new_stream(graph, seed) if not at_once else default if seed is None else _Seeded(seed)
    if graph is not None:
        return graph.build(op, *inputs, stream=stream, **attrs)
    arrays = [data_of(x) if is_tensor(x) else x for x in inputs]
    drawn = op.forward(*arrays, stream=stream, **attrs)
    return tensor_of(np.asarray(drawn)) if any(map(is_tensor, inputs)) else drawn


def as_parameters(*free, **not_negative):
    """Return parameters of a distribution, lists as arrays; negative ones are NumPy's error."""
    for name, x in not_negative.items():
        values = values_of(x)
        if values is not None and (values < 0).any():
            raise ValueError(f"{name} < 0")
    return [operand(x) if isinstance(x, (list, tuple)) else x
            for x in (*free, *not_negative.values())]


def _extents(a):
    return a.shape if is_tensor(a) else np.shape(a)


def draw_shaped(op, parameters, size, dtype, seed, **default):
    """Draw as many numbers as a size says, or as the parameters have when broadcast."""
    if type(size) is UnknownShape and size.tensor is not None:
        outline = broadcast_outline_op(size.tensor())
        return draw(op, outline, size=None, dtype=dtype, seed=seed, **default)
    if size is not None:
        return draw(op, size=known_extents(size, "random numbers of"), dtype=dtype, seed=seed,
                    **default)
    shape = broadcast(*map(_extents, parameters), what=op.name)
    if shape is None or None in shape:
        outline = broadcast_outline_op(*map(convert_to_tensor, parameters))
        return draw(op, outline, size=None, dtype=dtype, seed=seed, **default)
    return draw(op, size=shape, dtype=dtype, seed=seed, **default)


def dtype_of(*parameters):
    """Return float32 if that is what all tensors among the parameters are, else float64."""
    dtypes = {x.dtype for x in parameters if is_tensor(x)}
    return np.dtype(np.float32 if dtypes == {np.dtype(np.float32)} else np.float64)


def is_number(x, value):
    return isinstance(x, int | float) and x == value


def size_of(size, *parameters):
    """Return the size for what takes parameters itself, None where these decide."""
    if size is not None:
        return known_extents(size, "random numbers of")
    shape = broadcast(*map(_extents, parameters), what="random")
    return None if shape is None or None in shape else shape


def random_in_shape_of(x, dtype, seed):
    """Draw uniformly from [0, 1), one number for each element of an array or tensor."""
    return draw_shaped(uniform_op, (x,), None, dtype, seed, default=_default_stream)
