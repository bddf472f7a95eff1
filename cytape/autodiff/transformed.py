"""What transforms of functions share: callables, arguments as tensors, results as arrays."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops.creation import identity_op
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.tensor import Tensor

__all__ = [
    "Transformed",
    "call_followed",
    "checked_argnums",
    "export",
    "has_tensors",
    "name_of",
    "new_source",
    "new_tensor",
    "output_of",
    "replace_arguments",
    "require_result",
]


class Transformed:
    """A rule bound to the function it transforms. A class, so that it can be pickled.

    It is a descriptor, so that it can be a method as well.
    """

    __wrapped__: Callable

    def __init__(self, rule: Callable, fun: Callable, *options: Any) -> None:
        if not callable(fun):
            raise TypeError(f"only functions can be transformed, got {type(fun).__name__}")
        functools.update_wrapper(self, fun, updated=())
        self._rule = rule
        self._options = options

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Do with the function what the transform does."""
        return self._rule(self.__wrapped__, args, kwargs, *self._options)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> tuple:
        return Transformed, (self._rule, self.__wrapped__, *self._options)


def call_followed(fun: Callable, args: Sequence, kwargs: dict, has_aux: bool) -> tuple[Any, Any]:
    """Call a function that a recorder follows; return its value and what else it computed."""
    value, aux = fun(*args, **kwargs), None
    if has_aux:
        if not (isinstance(value, tuple) and len(value) == 2):
            raise TypeError(f"with has_aux=True {name_of(fun)} must return a pair, got {value!r}")
        value, aux = value
    return value, aux


def name_of(fun: Callable) -> str:
    """Name a callable, for messages."""
    return getattr(fun, "__name__", getattr(fun, "name", type(fun).__name__))


def has_tensors(structure: Any) -> bool:
    """Tell whether there is a tensor in a structure."""
    for leaf in nest.flatten(structure):  # noqa: SIM110  (a generator would take twice the time)
        if isinstance(leaf, Tensor):
            return True
    return False


def checked_argnums(argnums: Any) -> int | tuple[int, ...]:
    """Return argnums as an int or a tuple of ints, or raise."""
    try:
        return operator.index(argnums)
    except TypeError:
        pass
    try:
        argnums = tuple(map(operator.index, argnums))
    except TypeError:
        raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}") from None
    return argnums


def replace_arguments(
    fun: Callable, args: tuple, argnums: int | tuple, kwargs: Iterable[str] = ()
) -> tuple:
    """Return the chosen arguments, their leaves as new tensors, and all arguments with these."""
    if isinstance(argnums, int) and 0 <= argnums < len(args):
        positions = [argnums]
    else:
        positions = _positions(fun, args, argnums, kwargs)
    new_args = list(args)
    sources = []
    for i in positions:
        new = []
        for leaf in nest.flatten(args[i]):
            try:
                new.append(new_source(fun, i, leaf))
            except (TypeError, ValueError) as error:
                place = _place(args[i], len(new))
                if not place:
                    raise
                message = str(error).replace(f"argument {i} of", f"argument {i}{place} of", 1)
                raise type(error)(message) from error
        new_args[i] = nest.pack_sequence_as(args[i], new)
        sources += new
    selected = args[positions[0]] if isinstance(argnums, int) else tuple(args[i] for i in positions)
    return selected, sources, new_args


def _positions(
    fun: Callable, args: tuple, argnums: int | tuple, kwargs: Iterable[str]
) -> list[int]:
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    positions = [number + len(args) if number < 0 else number for number in numbers]
    if len(set(positions)) < len(positions) or any(not 0 <= i < len(args) for i in positions):
        if kwargs and len(set(positions)) == len(positions):
            raise ValueError(
                f"argnums {argnums} count positional arguments, of which {name_of(fun)} got "
                f"{len(args)}: pass what is to be differentiated by position, not by name "
                f"({', '.join(kwargs)})"
            )
        raise ValueError(
            f"argnums {argnums} must be different positions among the {len(args)} positional "
            f"arguments of {name_of(fun)}"
        )
    return positions


def _place(structure: Any, number: int) -> str:
    """Say where a structure has its leaf of a number, as an index of it."""
    numbered = nest.pack_sequence_as(structure, list(range(len(nest.flatten(structure)))))

    def find(part: Any, place: str) -> str | None:
        if not isinstance(part, (list, tuple, dict)):
            return place if part == number else None
        for key, child in part.items() if isinstance(part, dict) else enumerate(part):
            found = find(child, f"{place}[{key!r}]")
            if found is not None:
                return found
        return None

    return find(numbered, "") or ""


def new_tensor(fun: Callable, position: int, value: Any) -> Tensor:
    """Make a tensor of its own of an argument that is to be differentiated."""
    if isinstance(value, Tensor):
        return identity_op(value)
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        what = str(error)
        if _is_object(value):
            what = (
                f"it is an object of class {type(value).__name__}, not an array, a number or a "
                "list, tuple or dict of them. Pass its arrays, say in a dict, and make the object "
                f"of them inside of {name_of(fun)}"
            )
        raise type(error)(
            f"argument {position} of {name_of(fun)} cannot be differentiated: {what}"
        ) from error


def _is_object(value: Any) -> bool:
    """Tell whether something is an object to NumPy, other than an array of them."""
    return not isinstance(value, np.ndarray) and not hasattr(value, "__array__") and (
        np.asarray(value, object).ndim == 0
    )


def new_source(fun: Callable, position: int, value: Any) -> Tensor:
    """Make such a tensor, or raise if it can have no gradient."""
    tensor = new_tensor(fun, position, value)
    if not tensor.spec.trainable:
        raise TypeError(
            f"argument {position} of {name_of(fun)} has dtype {tensor.dtype}, which has no gradient"
            ": pass floating point numbers (3.0, not 3), or differentiate other arguments only"
        )
    return tensor


def require_result(f: Callable, result: Any) -> None:
    """Raise if a function returned nothing."""
    if result is None:
        raise ValueError(f"{name_of(f)} returned None: was the return statement forgotten?")


def output_of(fun: Callable, value: Any) -> Tensor:
    """Return what a function returned as a tensor."""
    try:
        output = convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name_of(fun)} must return arrays or tensors, got {value!r}") from error
    if output.dtype.kind not in "fciub":
        raise TypeError(f"{name_of(fun)} must return numbers, got {value!r}")
    return output


def export(structure: Any, arrays_out: bool) -> Any:
    """Return results as the caller of a transform gets them."""
    return nest.map_structure(_to_array, structure) if arrays_out else structure


def _to_array(leaf: Any) -> Any:
    """Return a tensor as a new array, a scalar as a number; itself if a tape is recording it."""
    if not isinstance(leaf, Tensor) or leaf.graph is not None:
        return leaf
    try:
        array = np.array(leaf)
    except (DetachedError, SymbolicTensorError):  # the latter of a variable, in a graph
        return leaf
    return array if array.ndim else array[()]
