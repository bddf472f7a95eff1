"""Rules that users write, called so that a derivative that a rule loses is an error, not zero.

A rule may compute with plain arrays. Its results are right then, but recorders do not see how they
depend on tensors. `call_rule` has such results refuse the derivatives that are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from cytape.core.vspace import VSpace
from cytape.ops.shared.conform import stand_in
from cytape.ops.shared.missing_derivatives import without_derivative
from cytape.tensor import nest
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
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.variable import followed_as

__all__ = ["Trail", "call_rule", "reads_arrays"]

HARMLESS = bool, bytes, int, str, type, type(None), type(...), np.dtype, slice, range, ModuleType


class Trail:
    """Ids and specs of tensors, which recorders may follow after their values have gone."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._known = [(x.id, x.spec) for x in tensors]

    def tensors(self) -> list[Tensor]:
        """Return tensors that whoever follows the originals follows; their values are zero."""
        return [followed_as(id, stand_in(spec)) for id, spec in self._known]


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
        What messages call the rule.
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


def reads_arrays(rule: Callable, maker: Callable, arguments: Sequence[Any]) -> bool:
    """Return whether a function reads arrays or numbers that the call computed which made it.

    Parameters
    ----------
    rule : callable
    maker : callable
        Whose call returned `rule`.
    arguments : sequence
        Of that call: the leaves.
    """
    known: list = [*arguments, maker]
    while isinstance(maker, partial | MethodType):
        if isinstance(maker, partial):
            known += [*maker.args, *maker.keywords.values()]
            maker = maker.func
        else:
            known.append(maker.__self__)
            maker = maker.__func__
    cells: tuple = ()
    if isinstance(maker, FunctionType):
        cells = maker.__closure__ or ()
        scope = maker.__globals__
        known += [*maker.__code__.co_consts, *_contents(cells),
                  *(scope[name] for name in maker.__code__.co_names if name in scope)]
    return _reads(rule, set(map(id, known)) | set(map(id, cells)))


def _reads(x: Any, seen: set[int]) -> bool:
    """Return whether an array or a number is, or is read by, something not seen before."""
    if id(x) in seen or isinstance(x, HARMLESS):
        return False
    seen.add(id(x))
    parts: list | tuple
    if isinstance(x, Tensor):
        return x.spec.trainable and not is_recorded(x.id)
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind in "fcO"
    if isinstance(x, FunctionType):
        cells = [cell for cell in x.__closure__ or () if id(cell) not in seen]
        parts = [*_contents(cells), *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    elif isinstance(x, partial):
        parts = x.func, *x.args, *x.keywords.values()
    elif isinstance(x, list | tuple | dict):
        parts = nest.flatten(x)
    else:
        return isinstance(x, MethodType) or not callable(x)
    return any(_reads(part, seen) for part in parts)


def _contents(cells: Iterable) -> list:
    found = []
    for cell in cells:
        with suppress(ValueError):  # empty: the name is not bound yet
            found.append(cell.cell_contents)
    return found


def _detached(what: str) -> str:
    return (
        f"the derivative of {what} is not known: it computes with arrays or numbers that left "
        "their tensors. Have it compute with the arguments, which are tensors, by cytape.numpy; or "
        "make the function by cytape.elementwise or cytape.custom_jvp")


def _constant(what: str) -> str:
    return (
        f"{what} is not linear in what it is called with: it returns something that does not "
        "depend on that, or computes it with values that left their tensors. Have it multiply its "
        "argument by the derivative")
