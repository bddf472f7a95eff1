"""Rules that users write, called so that a derivative that a rule loses is an error, not zero.

A rule may compute with plain arrays. Its results are right then, but recorders do not see how they
depend on tensors. `call_rule` has such results refuse the derivatives that are not known.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from cytape.core.vspace import VSpace
from cytape.errors import TapeStateError
from cytape.ops.shared.conform import stand_in
from cytape.ops.shared.missing_derivatives import without_derivative
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.state import (
    Origins,
    TangentRecorder,
    anybody_records,
    current_graph,
    departures,
    is_recorded,
)
from cytape.tensor.tensor import Tensor, data_of, is_written_since, n_writes
from cytape.tensor.variable import followed_as

__all__ = ["BoundRule", "Known", "Trail", "call_rule"]

HARMLESS = bool, bytes, int, str, type, type(None), type(...), np.dtype, slice, range, ModuleType
MOST_LOOKED_AT = 1000  # elements of a list, tuple or dict
MOST_COMPARED = 1 << 14  # elements of an array


class Trail:
    """Ids and specs of tensors, which recorders may follow after their values have gone."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._known = [(x.id, x.spec) for x in tensors]

    def tensors(self) -> list[Tensor]:
        """Return zeros that the recorders of the original tensors follow in their place."""
        return [followed_as(id, stand_in(spec)) for id, spec in self._known]


class BoundRule:
    """A user's rule as of a call, for derivatives that are taken later.

    Closures, globals and defaults are as they were then (see `Bindings`). A tensor that the rule
    finds elsewhere, in an attribute or a list, must not be written to meanwhile.

    Parameters
    ----------
    what : str
        Name of the rule in messages.
    rule : callable

    Raises
    ------
    TapeStateError
        In a call, if such a tensor was written to.
    """

    __slots__ = ("_bindings", "_n_writes", "_what", "rule")

    def __init__(self, what: str, rule: Callable) -> None:
        from cytape.ops.shared.bindings import Bindings  # numpy.random is slow to import

        self.rule, self._what, self._bindings = rule, what, Bindings(rule, replays=False)
        self._n_writes = n_writes()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the rule."""
        rule = self._bindings.function()
        if n_writes() != self._n_writes and any(
                type(x) is Tensor and is_written_since(x, self._n_writes)
                for x in reached(rule).values()):
            raise TapeStateError(
                f"{self._what} finds a tensor, in an attribute or a container, that was written to "
                "since the call: its derivative would be that of other numbers. Write to a copy "
                "(x = x.copy()), or have the rule close over the tensor itself")
        return rule(*args, **kwargs)


def call_rule(
    what: str,
    rule: Callable[[], Sequence[Any]],
    seeds: Sequence[Any],
    primals: Callable[[], Sequence[Tensor]],
    reads_arrays: bool = False,
) -> list:
    """Call a user's rule; return its results, which refuse derivatives that it lost.

    Parameters
    ----------
    what : str
        Name of the rule in messages.
    rule : callable
        Takes no arguments, and returns tensors, arrays, slices or None.
    seeds : sequence of Tensor or None
        What the results are linear in.
    primals : callable
        Returns the tensors that the results may depend on besides.
    reads_arrays : bool, optional
        Whether the rule reads arrays that were computed from the primals.

    Returns
    -------
    list
    """
    if current_graph() is None and not anybody_records():
        return list(rule())
    moving = [seed for seed in seeds if seed is not None and seed.spec.trainable]
    origins = Origins(moving)
    with TangentRecorder(VSpace(), reads=origins), departures(moving) as left:
        results = list(rule())
    lost = list(primals()) if left.any or reads_arrays else []

    def refusing(result: Any) -> Tensor:
        tensor = convert_to_tensor(result)
        if not origins.follows(tensor.id) and (
                tensor.graph is not None or np.any(data_of(tensor))):
            tensor = without_derivative(tensor, moving, _constant(what), [tensor])
        return without_derivative(tensor, lost, _detached(what), moving)

    return [
        result if result is None or callable(result)
        else IndexedSlices(refusing(result.values), result.indices, result.dense_shape)
        if isinstance(result, IndexedSlices)
        else refusing(result) for result in results]


class Known:
    """Objects that functions, structures and objects refer to, as they are now.

    Parameters
    ----------
    *roots
        Where to begin. Constants in the code of functions count, too.
    """

    def __init__(self, *roots: Any) -> None:
        self._objects = list(reached(*roots, constants=True).values())
        self._owners = {id(_owner(x)) for x in self._objects}
        self._written_to = any(
            _writes(x.__code__) for x in self._objects if isinstance(x, FunctionType))
        # Arrays that can be written to, by the owner of their memory, each with its content.
        self._contents: dict[int, tuple[np.ndarray, tuple]] = {}
        for x in self._objects:
            if isinstance(x, np.ndarray) and _holds_values(x):
                owner = _owner(x)
                array = owner if isinstance(owner, np.ndarray) else x
                if array.flags.writeable:
                    self._contents[id(owner)] = array, _content(array)

    def is_new_in(self, *roots: Any) -> bool:
        """Tell whether objects refer to arrays or numbers that are new, or may be written to."""
        return any(map(self._is_new, reached(*roots).values()))

    def _is_new(self, x: Any) -> bool:
        owner = id(_owner(x))
        if owner in self._contents:
            array, content = self._contents[owner]
            return self._written_to or content != _content(array)
        return owner not in self._owners and _holds_values(x)


def _content(array: np.ndarray) -> tuple:
    """Return what tells an array's elements from others; of a large one, every n-th element's."""
    step = 1 + array.size // MOST_COMPARED
    return array.shape, hash(array.ravel(order="K")[::step].tobytes())


@lru_cache(maxsize=1024)
def _writes(code: CodeType) -> bool:
    """Tell whether code assigns to parts of objects, or passes `out=`.

    A buffer may then be filled with what it held before, which its content does not show.
    """
    return any(x.opname == "STORE_SUBSCR" for x in dis.get_instructions(code)) or any(
        isinstance(x, tuple) and "out" in x or isinstance(x, CodeType) and _writes(x)
        for x in code.co_consts)


def _owner(x: Any) -> Any:
    """Return the owner of an array's memory; any other object as it is."""
    return x if not isinstance(x, np.ndarray) or x.base is None else x.base


def reached(*roots: Any, constants: bool = False) -> dict[int, Any]:
    """Return the objects that functions, structures and objects refer to, by id.

    The constants in the code of functions are among them if asked for.
    """
    found: dict[int, Any] = {}
    left = list(roots)
    while left:
        x = left.pop()
        if id(x) not in found and not isinstance(x, HARMLESS):
            found[id(x)] = x
            left += _parts(x)
            if constants and isinstance(x, FunctionType):
                left += x.__code__.co_consts
    return found


def _holds_values(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.spec.trainable and not is_recorded(x.id)
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind in "fcO"
    if isinstance(x, list | tuple | dict):
        return len(x) > MOST_LOOKED_AT
    return not callable(x) and not hasattr(x, "__dict__")


def _parts(x: Any) -> Iterable:
    if isinstance(x, Tensor | np.ndarray | np.generic):
        return ()
    if isinstance(x, FunctionType):
        scope = x.__globals__
        values = [scope[name] for name in x.__code__.co_names if name in scope]
        return [
            *_contents(x.__closure__ or ()), *(x.__defaults__ or ()),
            *(x.__kwdefaults__ or {}).values(),
            *(value for value in values if not callable(value))]
    if isinstance(x, partial):
        return x.func, *x.args, *x.keywords.values()
    if isinstance(x, list | tuple | dict):
        return () if len(x) > MOST_LOOKED_AT else x.values() if isinstance(x, dict) else x
    if isinstance(x, MethodType):
        return x.__func__, x.__self__
    if isinstance(x, BuiltinMethodType | MethodWrapperType):
        return [x.__self__]
    if type(x).__module__.startswith("cytape."):
        return [getattr(x, "__wrapped__", None)]
    return list(getattr(x, "__dict__", {}).values())


def _contents(cells: Iterable) -> list:
    found = []
    for cell in cells:
        with suppress(ValueError):  # empty: the name is not bound yet
            found.append(cell.cell_contents)
    return found


def _detached(what: str) -> str:
    return (
        f"the derivative of {what} is not known: it computes with arrays or numbers that left "
        "their tensors. Have it compute with the arguments, which are tensors, by cytape.numpy (a "
        "comparison of tensors is a mask); or make the function by cytape.elementwise or "
        "cytape.custom_jvp")


def _constant(what: str) -> str:
    return (
        f"{what} is not linear in what it is called with: it returns something that does not "
        "depend on that, or computes it with values that left their tensors. Have it multiply its "
        "argument by the derivative")
