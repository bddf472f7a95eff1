"""`cytape.case` and `cytape.switch_case`: calls of one of several functions, chosen by tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cytape.graph.control.control_flow import call_now, either
from cytape.graph.control.function_checks import as_predicate, require_function
from cytape.graph.control.row_ops import confirmed_op
from cytape.ops.adjoints.conform import cast
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.elementwise import where
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec

__all__ = ["case", "switch_case"]


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Call the function of the first predicate that is true.

    If the predicates have values or are Python bools, only that function is called. In a graph or a
    traced function, all functions are traced, and each run of the graph runs one of them.

    Parameters
    ----------
    pred_fn_pairs : sequence of (bool or Tensor, callable), or dict of these
        Predicates are boolean scalars; functions take no arguments. Their results must agree in
        structure and dtypes, but not in shapes.
    default : callable, optional
        Called if no predicate is true.
    exclusive : bool, optional
        Whether it is an error if several predicates are true.
    strict : bool, optional
        Whether a list or tuple of one item is returned unchanged; otherwise its item is returned.
    name : str, optional
        Of the op in the graph.

    Returns
    -------
    Tensor or structure
        The function's result.

    Raises
    ------
    TypeError
        If a predicate is not boolean, a function is none, or they return different dtypes.
    ValueError
        If there are no pairs, a predicate is no scalar, the functions return different structures,
        no predicate is true and there is no default, or several are and they are exclusive. In a
        graph the last two are errors when it runs.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.function
    ... def hat(x):
    ...     return cytape.case(
    ...         [(x < -1, lambda: 0.0), (x < 0, lambda: 1 + x), (x < 1, lambda: 1 - x)],
    ...         default=lambda: 0.0)
    >>> [float(hat(np.array(x))) for x in (-2.0, -0.25, 0.25, 2.0)]
    [0.0, 0.75, 0.75, 0.0]
    >>> float(cytape.grad(hat)(np.array(0.25)))
    -1.0
    """
    pairs = _pairs("pred_fn_pairs", "(predicate, function)", pred_fn_pairs)
    preds, functions = [], []
    for i, (pred, f) in enumerate(pairs):
        preds.append(as_predicate(f"predicate {i} of pred_fn_pairs", pred))
        require_function(f"function {i} of pred_fn_pairs", f)
        functions.append(f)
    if default is not None:
        require_function("default", default)
        functions.append(default)
    first: Any = _first_known([pred for pred, _ in pairs], exclusive, default is not None)
    if first is not None:
        result = _chosen(first, functions, 0, name)
    else:
        result = _first_of_tensors(preds, functions, exclusive, default is not None, name)
    unpacked = not strict and isinstance(result, (list, tuple)) and len(result) == 1
    return result[0] if unpacked else result


def _first_known(preds: list, exclusive: bool, has_default: bool) -> int | None:
    """Return the position of the function that Python bools select, None if tensors decide."""
    first_true = next((i for i, pred in enumerate(preds) if pred is True), len(preds))
    decisive = preds if exclusive else preds[: first_true + 1]
    if not all(isinstance(pred, bool) for pred in decisive):
        return None
    return int(_first_true(*decisive, exclusive=exclusive, has_default=has_default))


def _first_of_tensors(
    preds: list[Tensor], functions: list, exclusive: bool, has_default: bool, name: str
) -> Any:
    """Call the function of the first predicate that is true."""
    if exclusive or not has_default:
        first = first_true_op(*preds, exclusive=bool(exclusive), has_default=has_default)
    else:
        first = convert_to_tensor(len(preds))
        for i in reversed(range(len(preds))):
            first = where(preds[i], i, first)
    first = convert_to_tensor(first)
    result = _chosen(first, functions, 0, name)
    if len(functions) == 1 and first.graph is not None:  # no branch checks the last predicate
        result = nest.map_structure(
            lambda x: None if x is None else confirmed_op(convert_to_tensor(x), first), result)
    return result


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:
    """Call the function at an index.

    If the index has a value, only that function is called. In a graph or a traced function, all
    functions are traced, and each run of the graph runs one of them.

    Parameters
    ----------
    branch_index : int or Tensor
        A scalar.
    branch_fns : sequence of callable, or of (int, callable), or dict of int to callable
        Functions without arguments, for 0, 1, ... Their results must agree in structure and dtypes,
        but not in shapes.
    default : callable, optional
        Called if there is no function for the index; by default the last one of `branch_fns`.
    name
        As for `case`, which also says what is returned.

    Raises
    ------
    TypeError
        If the index is no integer, a function is none, or they return different dtypes.
    ValueError
        If there are no functions, they are not for 0, 1, ..., the index is no scalar, or the
        functions return different structures.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.function
    ... def activated(which, x):
    ...     return cytape.switch_case(which, [lambda: np.tanh(x), lambda: np.maximum(x, 0.0)])
    >>> [float(activated(np.array(which), np.array(-3.0))) for which in (0, 1, 7)]
    [-0.9950547536867305, 0.0, 0.0]
    """
    functions = _indexed_functions(branch_fns)
    for i, f in enumerate(functions):
        require_function(f"function {i} of branch_fns", f)
    if default is not None:
        require_function("default", default)
        functions.append(default)
    index = convert_to_tensor(branch_index)
    if index.dtype.kind not in "iu":
        raise TypeError(f"branch_index must be an integer, got {index.dtype}")
    if not may_agree(index.shape, ()):
        raise ValueError(f"branch_index must be a scalar, got shape {index.shape}")
    last = len(functions) - 1
    index = cast(index, np.int64)
    known = where((index >= 0) & (index <= last), index, last)
    return _chosen(convert_to_tensor(known), functions, 0, name)


def _pairs(argument: str, of: str, given: Any) -> list[tuple[Any, Any]]:
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, Sequence) or not all(
            isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError(f"{argument} must be a list of pairs {of}, or a dict, got {given!r}")
    if not pairs:
        raise ValueError(f"{argument} must have at least one pair {of}")
    return list(pairs)


def _indexed_functions(given: Any) -> list[Callable[[], Any]]:
    if isinstance(given, Sequence) and given and all(map(callable, given)):
        return list(given)
    by_index = dict(_pairs("branch_fns", "(index, function)", given))
    if len(by_index) < len(given) or sorted(by_index) != list(range(len(by_index))):
        raise ValueError(
            "the functions of branch_fns must be for 0, 1, ..., each index once, got "
            f"{[index for index, _ in _pairs('branch_fns', '', given)]}"
        )
    return [by_index[i] for i in range(len(by_index))]


def _chosen(index: Any, functions: list, first: int, name: str) -> Any:
    """Call the function of an index; `first` is the index of the first function."""
    if len(functions) == 1:
        return call_now(_branches(functions, first), functions[0])
    middle = len(functions) // 2
    halves = (functions[:middle], first), (functions[middle:], first + middle)
    called = (_branches(*halves[0]), _branches(*halves[1]))
    is_first = index < first + middle
    return either(
        is_first if isinstance(is_first, bool) else convert_to_tensor(is_first),
        lambda: _chosen(index, *halves[0], name), lambda: _chosen(index, *halves[1], name), name,
        called)


def _branches(functions: list, first: int) -> str:
    last = first + len(functions) - 1
    return f"branch {first}" if first == last else f"branches {first} to {last}"


def _first_true(*preds: Any, exclusive: bool, has_default: bool) -> np.ndarray:
    true = [i for i, pred in enumerate(preds) if pred]
    if exclusive and len(true) > 1:
        raise ValueError(f"exclusive predicates of case are true together: {true}")
    if not true and not has_default:
        raise ValueError("no predicate of case is true, and it has no default")
    return np.asarray(true[0] if true else len(preds), np.int64)


first_true_op = nondifferentiable(
    "FirstTrue", _first_true, shape_rule=lambda *_, **__: Spec.of((), np.int64))
