"""Drawings of tapes: recorded ops are boxes, tensors arrows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cytape.ops.calls.recorded_calls import Operand, recorded_calls
from cytape.tensor.pictures.diagram import Diagram
from cytape.tensor.pictures.diagram_parts import Arrow, Box

__all__ = ["diagram_of_tape"]

MOST_SHOWN = 200       # operations that a notebook draws
LEFT_OUT = "left_out"  # the box that stands for the middle of a long tape


def diagram_of_tape(
    recorder: Any, names: Mapping[str, Any], most_ops: int | None = None
) -> Diagram:
    """Return the ops on a tape as a diagram.

    Parameters
    ----------
    recorder : Recorder or None
        None: it was freed, as the gradient has been taken.
    names : mapping of str to Tensor
    most_ops : int, optional
        Of a longer tape, half as many operations at each end are drawn.
    """
    if not isinstance(names, Mapping):
        raise TypeError(
            "names must be a dict of str to Tensor, as in tape.draw({'loss': loss}), got "
            f"{type(names).__name__}; without names the whole tape is drawn")
    calls = [] if recorder is None else recorded_calls(recorder)
    named = {} if recorder is None else {x.id: x.name for x in recorder.variables}
    variables = set(named)
    named |= {x.id: name for name, x in names.items()}
    read = {operand.id for call in calls for operand in call.inputs}
    diagram = Diagram(
        "tape whose gradient has been taken: draw before it, or use persistent=True"
        if recorder is None else
        f"tape of {len(calls)} operations" if calls else "tape without operations")
    places: dict[int, str] = {}
    end = len(calls) if most_ops is None or len(calls) <= most_ops else most_ops // 2
    left_out = range(end, len(calls) - end)
    if left_out:
        diagram.boxes.append(Box(LEFT_OUT, f"{len(left_out):,} operations\nare left out"))
        places |= {x.id: LEFT_OUT for i in left_out for x in calls[i].outputs if x.id is not None}
        between = {x.id for i in left_out for x in calls[i].inputs}
    for i, call in enumerate(calls):
        if i in left_out:
            continue
        key = f"op{i}"
        attrs = ", ".join(
            f"{name}={_short(value)}" for name, value in call.attrs.items()
            if value is not None and value is not False)
        label = f"{call.name}({attrs})" if attrs else call.name
        given = [named[x.id] for x in call.outputs if x.id in named]
        is_result = not any(x.id in read for x in call.outputs)
        for k, operand in enumerate(call.inputs):
            start = places.get(operand.id) if operand.id is not None else f"{key}_{k}"
            if start is None:
                start = places[operand.id] = f"x{len(places)}"
                kind = "variable" if operand.id in variables else (
                    "input" if recorder.is_known(operand.id) else "constant")
                word = {"variable": "variable", "input": "watched", "constant": "constant"}[kind]
                name = named.get(operand.id)
                diagram.boxes.append(Box(
                    start, f"{name}\n{word}" if name else word, kind, _text(operand)))
            elif operand.id is None:
                diagram.boxes.append(
                    Box(start, operand.number, "number") if operand.number
                    else Box(start, "constant", "constant", _text(operand)))
            diagram.arrows.append(Arrow(start, key, _text(operand)))
        diagram.boxes.append(Box(
            key, "\n".join([*given, label]), "result" if is_result else "op",
            "\n".join(map(_text, call.outputs))))
        for operand in call.outputs:
            if operand.id is not None:
                places[operand.id] = key
            if left_out and i < end and operand.id in between:
                diagram.arrows.append(Arrow(key, LEFT_OUT, _text(operand)))
    return diagram


def _text(operand: Operand) -> str:
    if operand.spec is None:
        return "?"
    shape = operand.spec.shape
    return f"{operand.spec.dtype} {'?' if shape is None else tuple(shape)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 30 else text[:27] + "..."
