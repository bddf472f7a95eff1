"""`odeint` of tensors."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate as _scipys

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import noting
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.python.python_ops import LEAVES_CYTAPE
from cytape.scipy.integrate.graph_calls import call_in_graph, reads_others
from cytape.scipy.integrate.linearized_rhs import RightHandSide
from cytape.scipy.integrate.trajectories import Trajectory
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import symbolic_spec

RTOL = ATOL = 1.49012e-8  # odeint's


def odeint(func: Callable, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    """Integrate a system of ordinary differential equations, as `scipy.integrate.odeint`.

    Has derivatives in `y0`, `t` and the tensors in `args`, by the adjoint equation along the
    solution, to the tolerances of the call. Tensors that `func` reads must be among `args`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.integrate import odeint
    >>> def decayed(rate):
    ...     return odeint(lambda y, t, rate: -rate * y, 1.0, [0.0, 1.0], (rate,))[-1, 0]
    >>> cytape.grad(decayed)(2.0).round(6)  # -exp(-2)
    np.float64(-0.135335)
    """
    args = args if isinstance(args, tuple) else (args,)
    y0, t = joined(y0), joined(t)
    given = [x for x in (y0, t, *nest.flatten(args)) if is_tensor(x)]
    if not given:
        try:
            return _scipys.odeint(func, y0, t, args, **options)
        except LEAVES_CYTAPE as error:
            raise reads_others("odeint", error) from None  # its advice is wrong here
    if options.get("full_output"):
        raise TypeError("odeint of tensors does not take full_output")
    graph = graph_for(given)
    users = func, options.pop("Dfun", None)
    call = partial(_solved, options=options)
    if graph is None:
        return call(users, y0, t, args)
    n = y0.size if is_tensor(y0) and y0.spec.known else None if is_tensor(y0) else np.size(y0)
    spec = symbolic_spec((np.shape(t)[0], n), np.dtype(float))
    return call_in_graph(graph, "odeint", call, users, (y0, t, args), [spec])[0]


def _solved(users: Sequence, y0: Any, t: Any, args: tuple, *, options: dict) -> Any:
    """Solve a problem with eager tensors."""
    y0 = convert_to_tensor(cnp.ravel(cnp.asarray(y0, float)))
    t = convert_to_tensor(cnp.asarray(t, float))
    options, (func, jacobian) = dict(options), users
    tfirst = options.pop("tfirst", False)
    rhs = RightHandSide("odeint", func, args, False, state_first=not tfirst)
    if callable(jacobian):
        options["Dfun"] = rhs.of_values(jacobian, rhs.tensors)
    start, times = data_of(y0), data_of(t)

    def solved(function: Callable, times: np.ndarray) -> Any:
        return _scipys.odeint(function, start, times, tfirst=tfirst, **options)

    def states(at: np.ndarray) -> np.ndarray:
        sign = 1.0 if times[-1] >= times[0] else -1.0
        points, places = np.unique(sign * np.append(at, times[0]), return_inverse=True)
        return solved(rhs.of_values(rhs.function, rhs.tensors, True), sign * points)[places[:-1]]

    found = noting([rhs.function], solved, rhs.of_values(func, rhs.tensors), times)
    trajectory = Trajectory(
        rhs, states, times, options.get("rtol") or RTOL,
        np.asarray(options.get("atol") or ATOL))
    return trajectory.at(y0, t[0], t, rhs.tensors, found)
