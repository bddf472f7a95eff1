"""Plans of gradients in less memory, made and shown before a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.errors import MemoryBudgetError
from cytape.graph.checkpoint.checkpoint_choice import chosen
from cytape.graph.checkpoint.gradient_model import GradientModel
from cytape.graph.checkpoint.recompute_schedule import Schedule, live_bytes, plain
from cytape.graph.checkpoint.schedule_curve import FINE, Planner, Point
from cytape.graph.differentiation.graph_gradients import as_list, flat, graph_of
from cytape.graph.model.operation import Operation
from cytape.ops.python.checkpoint_policy import check_budget
from cytape.tensor.pictures.html_text import size_text, table
from cytape.tensor.pictures.memory_timeline import timeline
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.cached_property import cached_property

__all__ = [
    "MOST_TIME",
    "Checkpoints",
    "Plan",
    "check_no_budget",
    "is_planned",
    "kept_values",
    "plan_of",
    "planned",
    "tensors_of",
]

MOST_TIME = 1.33  # of the plain gradient's, without a budget


class Checkpoints(list):
    """The tensors that a plan keeps; passed as `checkpoints` they mean the whole plan.

    Parameters
    ----------
    tensors : list of Tensor
    schedule : Schedule
    gradient : tuple
        The gradient that the schedule is for, as `_gradient_of` tells it from others.
    """

    def __init__(self, tensors: list[Tensor], schedule: Schedule, gradient: tuple) -> None:
        super().__init__(tensors)
        self.schedule = schedule
        self.gradient = gradient


class Plan:
    """The values that a gradient keeps and recomputes, with its memory and time.

    Attributes
    ----------
    peak_bytes : int
        The most bytes of intermediate and fetched values at a time, as the executor will count
        them where the gradients are fetched.
    plain_peak_bytes : int
        The same if everything is kept.
    recomputed_ops : list of Operation
        The recomputed ops, in order, repeated ops repeatedly. Runs recompute nothing if fusion
        alone saves as much memory.
    checkpoints : list of Tensor
        Tensors of the forward pass that are kept until the backward pass reads them. Given as
        `checkpoints` they make the same plan.
    seconds, plain_seconds : float
        How long it is guessed to take, and if everything is kept.
    """

    def __init__(
        self, planning: Planning, schedule: Schedule, peak_bytes: int, recomputed: list[int],
        checkpoints: list[Tensor],
    ) -> None:
        model = planning.model
        self._planning = planning
        self.schedule = schedule
        self.peak_bytes = peak_bytes
        self.plain_peak_bytes = model.peak_bytes(plain(model.program))
        self.plain_seconds = model.seconds
        self.seconds = model.seconds + sum(map(model.seconds_of, recomputed))
        self.recomputed_ops: list[Operation] = list(map(planning.graph.operation_at, recomputed))
        self.checkpoints = checkpoints

    def __repr__(self) -> str:
        return (f"Plan(peak_bytes={self.peak_bytes}, plain_peak_bytes={self.plain_peak_bytes}, "
                f"{len(self.checkpoints)} checkpoints, {len(self.recomputed_ops)} recomputed ops)")

    def _repr_html_(self) -> str:
        return table(
            ["plan", "peak", "seconds (guessed)", "kept tensors", "recomputed operations"],
            [["everything kept", size_text(self.plain_peak_bytes), f"{self.plain_seconds:.3g}",
              "", "0"],
             ["this plan", size_text(self.peak_bytes), f"{self.seconds:.3g}",
              str(len(self.checkpoints)), str(len(self.recomputed_ops))]]) + self.picture() + (
                "<p>The picture counts all results; runs fuse operations and may need less.</p>")

    def pareto(self) -> list[tuple[int, float]]:
        """List the trade-off between memory and time.

        Returns
        -------
        list of (int, float)
            Estimated peaks in bytes and seconds, from the fastest plan to the smallest.
        """
        planning, model = self._planning, self._planning.model
        plans = [
            *((model.seconds + point.seconds, model.peak_bytes(point.schedule))
              for point in planning.planner.curve()),
            *((plan.seconds, plan.peak_bytes) for plan in planning.simple)]
        while smaller := planning.smaller(min(peak for _, peak in plans)):
            plans.append((smaller.seconds, smaller.peak_bytes))
        found: list[tuple[int, float]] = []
        for seconds, peak in sorted(plans):
            if not found or peak < found[-1][0]:
                found.append((peak, seconds))
        return found

    def picture(self) -> str:
        """Return a drawing of the bytes in memory over time, and of those if everything is kept.

        Returns
        -------
        str
            SVG. Bytes are those of values, by the sizes of results; passes over the graph may need
            fewer.
        """
        program = self._planning.model.program
        return timeline({
            "everything kept": live_bytes(program, plain(program)),
            "this plan": live_bytes(program, self.schedule)})


def tensors_of(checkpoints: Any) -> Any:
    """Return the checkpoints of a plan, or the argument if it is not one."""
    return checkpoints.checkpoints if isinstance(checkpoints, Plan) else checkpoints


def check_no_budget(memory_budget: Any) -> None:
    """Raise if there is a budget without a choice to make."""
    if memory_budget is not None:
        raise ValueError("memory_budget needs checkpoints='auto', which chooses the tensors to "
                         "keep")


def is_planned(checkpoints: Any) -> bool:
    """Return whether checkpoints request a plan, or are those of a schedule."""
    return isinstance(checkpoints, Checkpoints) or (
        isinstance(checkpoints, str) and checkpoints == "auto")


def _gradient_of(planning: Planning) -> tuple:
    return planning.graph, planning.model.values, planning.model.arrivals


def kept_values(model: GradientModel, schedule: Schedule) -> list[int]:
    """List the values whose first copies the backward pass reads.

    Parameters
    ----------
    model : GradientModel
    schedule : Schedule

    Returns
    -------
    list of int
    """
    program = model.program
    made: set[int] = set()
    found: set[int] = set()
    for values, reads in zip(schedule, program.reads, strict=True):
        for value in values:
            found.update(x for x in program.inputs[value] if x not in made)
            made.add(value)
        found.update(x for x in reads if x not in made)
    return sorted(found)


class Planning:
    """Plans of one gradient.

    Parameters
    ----------
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    least_size : int
        As `chosen` takes it.
    options : dict
        Further arguments of `cytape.gradients`.
    """

    def __init__(
        self, ys: Any, xs: Any, grad_ys: Any, least_size: int, options: dict[str, Any]
    ) -> None:
        self.graph = graph_of(flat(as_list(ys)) + flat(as_list(xs)))
        self._arguments = ys, xs, grad_ys
        self._least_size, self._options = least_size, options
        self.model = GradientModel(self.graph, ys, xs, grad_ys, options)
        self.planner = Planner(self.model.program)

    def chosen(self, checkpoints: Any) -> list[int]:
        """Return the tensors of the graph to keep, as symbols."""
        return chosen(*self._arguments, checkpoints, self._least_size, self._options)

    def keeping(self, symbols: list[int]) -> Plan:
        """Return the plan that keeps some tensors."""
        graph, model = self.graph, self.model
        kept = {graph.node_of(symbol) for symbol in symbols}
        peak_bytes, again = model.kept(symbols)
        return Plan(
            self, self.planner.keeping({i for i, node in enumerate(model.values) if node in kept}),
            peak_bytes, again, [graph.tensor_at(symbol) for symbol in symbols])

    def following(self, schedule: Schedule) -> Plan:
        """Return the plan that follows a schedule."""
        graph, model = self.graph, self.model
        return Plan(
            self, schedule, model.peak_bytes(schedule),
            [model.values[value] for values in schedule for value in values],
            Checkpoints(
                [graph.tensor_at(symbol) for value in kept_values(model, schedule)
                 for symbol in graph.outputs_of(model.values[value])],
                schedule, _gradient_of(self)))

    def smaller(self, peak_bytes: int) -> Plan | None:
        """Return a plan of fewer bytes, if one is found between the points of the curve."""
        planner = self.planner
        i = _first(planner, lambda point: self.model.peak_bytes(point.schedule) < peak_bytes)
        return None if i == planner.n_points else self.following(planner.at(i).schedule)

    @cached_property
    def simple(self) -> list[Plan]:
        """The plans that need no search, if there is anything to keep."""
        found = []
        for checkpoints in ("memory", "speed"):
            try:
                found.append(self.keeping(self.chosen(checkpoints)))
            except ValueError:
                continue
        return found


def planned(
    ys: Any, xs: Any, grad_ys: Any, checkpoints: Any, memory_budget: Any, least_size: int,
    options: dict,
) -> tuple[Plan, GradientModel]:
    """Return a plan and the planning objects behind it.

    Parameters
    ----------
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    checkpoints : "auto" or Checkpoints
    memory_budget : int, float or None
    least_size : int
        As `chosen` takes it.
    options : dict
        Further arguments of `cytape.gradients`.

    Returns
    -------
    Plan, GradientModel
        The plan's checkpoints are `Checkpoints` if it is a schedule, else `rewrite` follows it.
    """
    check_budget(memory_budget)
    if isinstance(checkpoints, Checkpoints):
        check_no_budget(memory_budget)
    planning = Planning(ys, xs, grad_ys, least_size, options)
    model = planning.model
    if isinstance(checkpoints, Checkpoints):
        if checkpoints.gradient != _gradient_of(planning):
            raise ValueError(
                "checkpoints is the plan of another gradient: make a plan for this one, or pass "
                "list(checkpoints) to keep the same tensors")
        made = planning.following(checkpoints.schedule)
    elif memory_budget is None:
        made = _smallest_in_time(planning)
    else:
        budget = memory_budget
        if isinstance(budget, (float, np.floating)):
            budget = int(budget * model.peak_bytes(plain(model.program)))
        made = _fastest_within(planning, int(budget))
    return made, model


def _smallest_in_time(planning: Planning) -> Plan:
    planner, model = planning.planner, planning.model
    most = (MOST_TIME - 1) * model.seconds
    first = _first(planner, lambda point: point.seconds > most)
    points = [planner.at(i) for i in {0, *range(max(first - 2, 0), first)}]
    best = min(points, key=lambda point: (model.peak_bytes(point.schedule), point.seconds))
    simple = [plan for plan in planning.simple if plan.seconds <= model.seconds + most]
    plans = [planning.following(best.schedule), *simple]
    return min(plans, key=lambda plan: (plan.peak_bytes, plan.seconds))


def _fastest_within(planning: Planning, budget: int) -> Plan:
    """Return the fastest plan that is found whose measured peak is within a budget."""
    planner, model = planning.planner, planning.model
    first = _first(planner, lambda point: model.peak_bytes(point.schedule) <= budget)
    if first == 0:
        return planning.following(planner.at(0).schedule)
    # Plans are not optimal: one for a smaller budget may be faster, and one for a larger budget may
    # be within this one when it is measured.
    points = planner.curve() if first == planner.n_points else [
        *map(planner.at, range(max(first - FINE, 0), min(first + FINE, planner.n_points))),
        *planner.others(first)]
    plans = [*(planning.following(point.schedule) for point in points), *planning.simple]
    while (smallest := min(plan.peak_bytes for plan in plans)) > budget:
        smaller = planning.smaller(smallest)
        if smaller is None:
            raise MemoryBudgetError(
                f"no plan was found for memory_budget={budget} bytes: the smallest takes "
                f"{smallest}, the plain gradient {model.peak_bytes(plain(model.program))}",
                smallest)
        plans.append(smaller)
    return min((plan for plan in plans if plan.peak_bytes <= budget), key=lambda x: x.seconds)


def _first(planner: Planner, is_beyond: Callable[[Point], bool]) -> int:
    """Return the first of a planner's schedules with a property that all later ones have, too."""
    below, enough = -1, planner.n_points
    while below + 1 < enough:
        middle = (below + enough) // 2
        if is_beyond(planner.at(middle)):
            enough = middle
        else:
            below = middle
    return enough


def plan_of(
    ys: Any, xs: Any, grad_ys: Any, checkpoints: Any, memory_budget: Any, least_size: int,
    options: dict,
) -> Plan:
    """Return a plan for any kind of checkpoints."""
    checkpoints = tensors_of(checkpoints)
    if is_planned(checkpoints):
        return planned(ys, xs, grad_ys, checkpoints, memory_budget, least_size, options)[0]
    check_no_budget(memory_budget)
    symbols = chosen(ys, xs, grad_ys, checkpoints, least_size, options)
    return Planning(ys, xs, grad_ys, least_size, options).keeping(symbols)
