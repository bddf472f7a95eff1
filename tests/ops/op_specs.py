"""The records that drive the op tests, one per op, and how to add yours.

Put the records of a family into `tests/ops/specs_<family>.py` as a list named `SPECS`;
`op_families.py` finds the file by its name. For example::

    from tests.ops.op_specs import OpSpec, case, distinct, uniform

    SPECS = [
        OpSpec("Sum", cnp.sum, np.sum, [case((3, 4)), case((3, 4), axis=1, keepdims=True)]),
        OpSpec("Max", cnp.max, np.max, [case((3, 4), axis=0)], domain=distinct()),
        OpSpec("Gather", lambda x, i: cnp.take(x, i, axis=0), lambda x, i: np.take(x, i, axis=0),
               [case((5, 2), np.array([0, 3, 3]))]),
        OpSpec("ArgMax", cnp.argmax, np.argmax, [case((3, 4), axis=1)], differentiable=False),
    ]

What is tested for each record, `fn` being the public cytape function and `ref` the same thing in
plain NumPy (any two callables with the same parameters; both may return a tuple):

- arrays in → plain arrays as `ref` gives them; tensors in → Tensors of that value, shape and dtype;
- the vjp against central differences of `ref`, one input at a time, in a random direction;
- the tangents that an accumulator computes against the same differences, and
  `<v, J u> = <vjp(v), u>` with no step;
- tangents by the op's own jvp, by transposing its vjp, and of a batch of directions in one pass;
- gradients have their input's shape and dtype, tangents their output's, in every dtype listed, and
  float64's value;
- strided, reversed, Fortran-ordered and read-only inputs give what a contiguous copy gives;
- second order, by nested tapes, against central differences of the first, and by every composition
  of the two modes;
- for functions of complex numbers the tangent against a step into the imaginary;
- `differentiable=False`: gradients and tangents are None.

An op with kinks names a domain that keeps away from them; what happens at a kink is stated in the
family's own test file. Put 0-d, empty and odd cases into the list: the cases are all that is run.
Every op needs a record, and may have several (say, with different domains). A function made of
several ops may have one too.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.ops.forward_mode import as_tuple

FLOATS = ("float64", "float32", "float16")
FLOATS_AND_COMPLEX = (*FLOATS, "complex128", "complex64")
SINGLE_AND_DOUBLE = ("float64", "float32")

Domain = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def uniform(low: float, high: float, avoid: Sequence[float] = (), margin: float = 0.1) -> Domain:
    """Draw uniform values, none of them within `margin` of a point in `avoid`."""

    def draw(rng, shape):
        values = rng.uniform(low, high, shape)
        for point in avoid:
            near = np.abs(values - point) < margin
            values = np.where(near, point + np.where(values < point, -margin, margin), values)
        return values

    return draw


def distinct(gap: float = 0.25, offset: float = 0.0) -> Domain:
    """Draw values in random order that lie at least `gap` apart, around `offset`."""

    def draw(rng, shape):
        size = int(np.prod(shape))
        return gap * (rng.permutation(size).reshape(shape) - size // 2) + offset

    return draw


def repeated(values: np.ndarray) -> Domain:
    """Take given values, as often as there is room; those that are 0 are so in complex dtypes."""
    return lambda rng, shape: np.resize(values, shape)


def integers(low: int, high: int) -> Domain:
    """Draw integers; such an input is passed as int64 and has no gradient."""
    return lambda rng, shape: rng.integers(low, high, shape)


@dataclass(frozen=True)
class Case:
    """The inputs of one call: a tuple is the shape of an array to draw, all else is as is."""

    inputs: tuple
    kwargs: dict[str, Any]

    def __str__(self):
        inputs = [str(x) if isinstance(x, tuple) else type(x).__name__ for x in self.inputs]
        return "-".join(inputs + [f"{key}={value}" for key, value in self.kwargs.items()])


def case(*inputs, **kwargs) -> Case:
    """Make a `Case`."""
    return Case(inputs, kwargs)


def once(method):
    """Call a method of a record for each case, dtype and seed once, for all tests."""
    found = {}

    @functools.wraps(method)
    def called(spec, case, dtype, seed=0):
        key = id(spec), id(case), dtype, seed
        if key not in found:
            found[key] = method(spec, case, dtype, seed), (spec, case)  # which keep their ids
        return found[key][0]

    return called


@dataclass(frozen=True)
class OpSpec:
    """One op under test."""

    op: str  # its name in cytape.ops.engine.op_kinds.OPS, or of a function made of several
    fn: Callable
    ref: Callable
    cases: Sequence[Case]
    domain: Domain | tuple[Domain, ...] = uniform(-2, 2)  # for all inputs, or one for each
    dtypes: Sequence[str] = FLOATS
    differentiable: bool | tuple[bool, ...] = True  # of the op, or of each input
    order: int = 2  # 1 where the vjp is linear code over an op that has no second derivative
    third: bool = True  # False where third derivatives are refused by name
    tolerance: float = 1.0  # multiplies the tolerance of every dtype

    def __str__(self):
        return self.op

    def draw(self, case: Case, dtype: str, seed: int = 0) -> list:
        """The inputs of one call of `fn`: arrays of `dtype`, and whatever the case passes as is."""
        return [np.copy(x) if isinstance(given, tuple) else x
                for given, x in zip(case.inputs, self._drawn(case, dtype, seed), strict=True)]

    @once
    def references(self, case: Case, dtype: str, seed: int = 0) -> list:
        """NumPy's results, which the caller must not change."""
        return self.results(case, self.draw(case, dtype, seed))

    def results(self, case: Case, inputs: list) -> list:
        """NumPy's results for other inputs."""
        return list(map(np.asarray, as_tuple(self.ref(*inputs, **case.kwargs))))

    @once
    def _drawn(self, case, dtype, seed):
        rng = np.random.default_rng(seed)
        inputs = []
        for position, given in enumerate(case.inputs):
            if not isinstance(given, tuple):
                inputs.append(given)
                continue
            values = np.array(self._domain(position)(rng, given))
            if values.dtype.kind == "f":
                if np.dtype(dtype).kind == "c":  # off the real axis, where the branch cuts are
                    imaginary = rng.uniform(0.1, 0.9, given) * rng.choice([-1, 1], given)
                    values = np.where(values == 0, 0, values + 1j * imaginary)
                values = np.array(values, dtype)
            inputs.append(values)
        return inputs

    def _domain(self, position):
        return self.domain[position] if isinstance(self.domain, tuple) else self.domain

    def has_gradient(self, position: int, x) -> bool:
        """Whether this input must get a gradient."""
        declared = self.differentiable
        if isinstance(declared, tuple):
            declared = declared[position]
        return declared and isinstance(x, np.ndarray) and x.dtype.kind in "fc"
