"""`solve_bvp` of tensors.

SciPy chooses the mesh. On it the solution is the root of the collocation equations, which is
differentiated by the implicit function theorem: Kierzenka and Shampine, "A BVP solver based on
residual control and the Matlab PSE" (2001). The Jacobian of the equations is sparse.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate as _scipys
from scipy import sparse
from scipy.optimize import OptimizeResult

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import noting
from cytape.autodiff.forward_functional import jvp
from cytape.errors import NotDifferentiableError
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.calls.symbolic import graph_for
from cytape.scipy.integrate.graph_calls import call_in_graph
from cytape.scipy.interpolate import CubicHermiteSpline
from cytape.scipy.optimize.implicit import Equation, held, require_no_captures, run, solution
from cytape.scipy.optimize.implicit_systems import not_isolated
from cytape.scipy.optimize.unknowns import separated, tuple_of
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import symbolic_spec


def solve_bvp(
    fun: Callable, bc: Callable, x: Any, y: Any, p: Any = None, S: Any = None,
    fun_jac: Callable | None = None, bc_jac: Callable | None = None, tol: float = 1e-3,
    max_nodes: int = 1000, verbose: int = 0, bc_tol: float | None = None, *, args: Any = (),
) -> Any:
    """Solve a boundary value problem, as `scipy.integrate.solve_bvp`.

    Has derivatives in the tensors in `args`, a tuple of any structures, and in both ends of `x`.
    All functions get `args` after SciPy's arguments; tensors that they read must be among `args`.
    `x`, `y`, `yp`, `p` of the result and ``sol(t)`` are tensors if an argument is one. Without
    `success`, their derivatives raise an error. `y` and `p`, the guesses, have no derivative.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> from cytape.scipy.integrate import solve_bvp
    >>> def slope(rate, end):  # of y'' = rate y, y(0) = 0, y(1) = end
    ...     return solve_bvp(
    ...         lambda x, y, rate, end: [y[1], rate * y[0]],
    ...         lambda ya, yb, rate, end: [ya[0], yb[0] - end],
    ...         np.linspace(0, 1, 5), np.ones((2, 5)), tol=1e-8, args=(rate, end)).y[1, 0]
    >>> [d.round(6) for d in cytape.grad(slope, argnums=(0, 1))(1.0, 2.0)]  # end / sinh(1)
    [np.float64(-0.266367), np.float64(0.850918)]
    """
    args, x, y, p = tuple_of(args), joined(x), joined(y), joined(p)
    options = {"tol": tol, "max_nodes": max_nodes, "verbose": verbose, "bc_tol": bc_tol}
    given = [leaf for leaf in (x, y, p, *nest.flatten(args)) if is_tensor(leaf)]
    functions = fun, bc, fun_jac, bc_jac
    if is_tensor(S) or given and S is not None:
        raise TypeError("solve_bvp of tensors takes no singular term S")
    if not given:
        n_unknown = () if p is None else (p,)
        require_no_captures("solve_bvp", lambda x: fun(x, np.asarray(y), *n_unknown, *args), x)
        return run("solve_bvp", _by_scipy, functions, x, y, p, args, {**options, "S": S})
    call = partial(_solved, options=options)
    graph = graph_for(given)
    if graph is None:
        return call(functions, x, y, p, args)
    return _in_graph(graph, call, functions, x, y, p, args)


def _by_scipy(functions: Sequence, x: Any, y: Any, p: Any, args: tuple, options: dict) -> Any:
    fun, bc, fun_jac, bc_jac = [
        f if f is None or not args else lambda *given, f=f: f(*given, *args) for f in functions]
    return _scipys.solve_bvp(fun, bc, x, y, p, fun_jac=fun_jac, bc_jac=bc_jac, **options)


def _solved(functions: Sequence, x: Any, y: Any, p: Any, args: tuple, *, options: dict) -> Any:
    """Solve a problem with eager tensors."""
    given = separated(args)
    plain, rules = given.without_tensors(copies=True), held("solve_bvp", functions[:2], given)
    fun, bc = rules
    x, (y, p) = cnp.asarray(x, float), (
        data_of(z) if is_tensor(z) else z for z in (y, p))
    values = nest.map_structure(
        lambda leaf: data_of(convert_to_tensor(leaf))[()] if is_tensor(leaf) else leaf, args)
    found = noting(rules, run, "solve_bvp", _by_scipy, functions, data_of(convert_to_tensor(x)),
                   y, p, values, options)
    (n, m), k = found.y.shape, 0 if p is None else len(found.p)
    places = (found.x - found.x[0]) / (found.x[-1] - found.x[0])

    def mesh(ends: Any) -> Any:
        return ends[0] + (ends[1] - ends[0]) * places

    def split(z: Any) -> tuple:
        return cnp.reshape(z[:n * m], (m, n)).T, () if p is None else (z[n * m:],)

    def slopes(x: Any, y: Any, *others: Any) -> Any:
        return cnp.reshape(cnp.array(fun(x, y, *others)), (n, -1))  # `fun` may reuse a buffer

    def residual(z: Any, ends: Any, *tensors: Any) -> Any:
        x, (y, of_p), (args,) = mesh(ends), split(z), plain.packed(tensors)
        others = (*of_p, *args)
        f, h = slopes(x, y, *others), x[1:] - x[:-1]
        middle = (y[:, 1:] + y[:, :-1]) / 2 - h / 8 * (f[:, 1:] - f[:, :-1])
        f_middle = slopes(x[:-1] + h / 2, middle, *others)
        defects = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * f_middle)
        at_ends = cnp.asarray(bc(y[:, 0], y[:, -1], *others))
        return cnp.concatenate([cnp.ravel(defects.T), at_ends])

    def known(z0: Any, *parameters: Any) -> OptimizeResult:
        return OptimizeResult(x=z0, success=found.success, message=found.message)

    equation = Collocation("solve_bvp", residual, known)
    equation.shape = n, m, k
    ends = cnp.stack([x[0], x[-1]])
    z0 = np.concatenate([found.y.T.ravel(), () if p is None else found.p])
    z, _ = solution(equation, z0, [ends, *given.tensors])
    found.y, of_p = split(z)
    found.x = mesh(ends) if is_tensor(ends) else found.x
    found.p = of_p[0] if of_p else None
    found.yp = slopes(found.x, found.y, *of_p, *args)
    if np.all(np.isfinite(data_of(convert_to_tensor(found.yp)))):  # else SciPy's own one is NaN
        found.sol = CubicHermiteSpline(found.x, found.y, found.yp, axis=1)
    return found


def _in_graph(
    graph: Any, call: Callable, functions: tuple, x: Any, y: Any, p: Any, args: tuple,
) -> Any:
    def solved(*arguments: Any) -> list:
        found = call(*arguments)
        if not found.success:
            raise RuntimeError(f"solve_bvp failed: {found.message}")
        # In loops, lengths may differ along the first axis only.
        return [found.x, found.y.T, found.yp.T, *(() if p is None else (found.p,))]

    real, n = np.dtype(float), np.shape(y)[0]
    of_p = () if p is None else (symbolic_spec(np.shape(p), real),)
    x, y, yp, *others = call_in_graph(graph, "solve_bvp", solved, functions, (x, y, p, args), [
        symbolic_spec((None,), real), *[symbolic_spec((None, n), real)] * 2, *of_p])
    return OptimizeResult(
        x=x, y=cnp.transpose(y), yp=cnp.transpose(yp), p=others[0] if others else None, sol=None,
        success=True)


class Collocation(Equation):
    """Collocation equations: the defects of all intervals, then the boundary conditions.

    Attributes
    ----------
    shape : tuple of int
        Numbers of components, of nodes, and of unknown parameters.
    """

    shape: tuple = ()

    def kind_of_system(self, x: np.ndarray) -> Callable:
        """Return the class of the linear system."""
        return Blocks

    def system_at_solution(self, x: np.ndarray, parameters: tuple, is_solved: bool) -> Any:
        """Return the system if SciPy succeeded: a root on a coarse mesh is no solution."""
        if not is_solved:
            raise NotDifferentiableError(
                f"solve_bvp failed, so that its result has no derivative: {self.result.message}")
        return super().system_at_solution(x, parameters, is_solved)


class Blocks:
    """System of the collocation equations, whose Jacobian has two blocks per interval."""

    def __init__(self, equation: Collocation, residual: Callable, z: np.ndarray) -> None:
        n, m, k = equation.shape
        # Columns of one group have no row in common: nodes of even numbers, those of odd ones, and
        # the last one, since the boundary conditions read it with the first.
        group = np.append(np.arange(m - 1) % 2, 2)
        groups = np.append(np.add.outer(group * n, np.arange(n)), 3 * n + np.arange(k))
        seeds = np.zeros((3 * n + k, z.size))
        seeds[groups, np.arange(z.size)] = 1
        products = np.asarray(jvp(residual, (z,), (seeds,), use_batch=True)[1])
        columns, defects = np.arange(z.size), (m - 1) * n
        pairs = [  # rows and columns of the blocks
            (columns[:defects, None], columns[:defects, None] // n * n + np.arange(2 * n)),
            (columns[:defects, None], columns[m * n:]),
            (columns[defects:, None], np.append(columns[:n], columns[defects:]))]
        i, j = (np.concatenate(parts) for parts in zip(*[
            map(np.ravel, np.broadcast_arrays(*pair)) for pair in pairs], strict=True))
        matrix = sparse.csc_array((products[groups[j], i], (i, j)), shape=(z.size, z.size))
        try:
            self._factors = sparse.linalg.splu(matrix)
        except (RuntimeError, ValueError) as error:
            raise not_isolated(equation, "singular or not finite") from error

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve for one right-hand side."""
        return self._factors.solve(b, "T" if transposed else "N")
