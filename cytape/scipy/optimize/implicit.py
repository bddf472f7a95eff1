"""Solutions of equations, differentiable in parameters by the implicit function theorem.

An `Equation` has a residual, a function of the unknowns x and of parameters that is zero at the
solution, and a solver. `solution` calls the solver in one op. Derivatives of all orders are
solutions of linear equations with the residual's Jacobian J in x, or its transpose. The Jacobian is
factorised once for all of them; above `LARGEST_DENSE` unknowns it is only multiplied with vectors.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.custom.bound_rule import bound, noting
from cytape.autodiff.custom.eager_derivatives import EagerCall
from cytape.autodiff.forward_functional import jvp
from cytape.autodiff.wrapped_calls import Arguments
from cytape.errors import DetachedError, NotDifferentiableError, SymbolicTensorError
from cytape.graph.tracing.kept_traces import Identity, kept
from cytape.ops.engine.op_kinds import general
from cytape.ops.python.python_ops import python_call_op
from cytape.scipy.optimize.exact_jacobians import (
    DIRECTIONS,
    gradients_of,
    jacobian_of,
    linearized_at,
    product_from_left,
    shapes_of,
)
from cytape.scipy.optimize.implicit_systems import Dense, Diagonal, MatrixFree, Refined
from cytape.scipy.optimize.stored_results import call_near
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.recording.state import building_into, current_graph
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.values.spec import symbolic_spec

LARGEST_DENSE = 2000  # unknowns; the Jacobian of as many takes 32 MB
# Largest step of Newton's method from a solution, relative to the largest unknown, after a failure
# of the solver and else.
NEGLIGIBLE, NEAR = 1e-6, 1e-2


class Last(threading.local):
    """Last point at which the Jacobian of an equation was computed, one for each thread.

    Attributes
    ----------
    point : tuple of ndarray
        The unknowns and the parameters.
    system
        The linear system of the Jacobian there, None if there is none.
    value : ndarray or None
        Of the residual there, if known.
    is_checked : bool
        Whether it is a solution.
    """

    def __init__(self) -> None:
        self.point: tuple = ()
        self.system: Any = None
        self.value: np.ndarray | None = None
        self.is_checked = False


class Equation:
    """Equation with parameters, and its solver.

    Parameters
    ----------
    name : str
        Name of the solver, for messages.
    residual : callable
        Takes the unknowns, a vector or a number, and the parameters, tensors or arrays. Returns an
        array of the shape of the unknowns, which is zero at the solution.
    solve : callable
        Takes the starting point and the parameters, arrays. Returns an `OptimizeResult` with the
        solution, `x`, and `success` and `message`.
    symmetric : bool
        Whether the Jacobian is symmetric.
    elementwise : bool
        Whether the Jacobian is diagonal.
    reads : Identity, optional
        Of all that `residual` reads, which holds no tensors then, so that its traces can be kept.
    rules : sequence of callable
        The user's functions that `residual` calls, as `held` returns them.
    """

    def __init__(
        self, name: str, residual: Callable, solve: Callable, symmetric: bool = False,
        elementwise: bool = False, reads: Identity | None = None, rules: Sequence = (),
    ) -> None:
        self._reads, self.rules = reads, rules
        self.name, self.solve = name, solve
        self.symmetric, self.elementwise = symmetric, elementwise
        self.result: Any = None  # of the last call of the solver
        self._residual = residual
        self._last = Last()

    def residual(self, x: Any, *parameters: Any) -> Any:
        """Return the residual."""
        return called_in_graph(self.name, self._residual, (x, *parameters), 0)

    def call(self, function: Callable, x: np.ndarray, parameters: Sequence, *arrays: Any) -> Any:
        """Call a function of the residual, the unknowns and parameters, which may be traced."""
        return kept(partial(function, self._residual), self._reads, shapes_of(x, parameters))(
            x, list(parameters), *arrays)

    def jacobian(self) -> np.ndarray:
        """Return the Jacobian at the last point."""
        x, *parameters = self._last.point
        if x.size > DIRECTIONS:
            return jacobian_of(self._of_vector(x, parameters), np.ravel(x), self._reads)
        value, jacobian = self.call(linearized_at, x, parameters)
        self._last.value = np.array(value)
        return np.array(jacobian)

    def system(self, x: np.ndarray, parameters: tuple) -> Any:
        """Return the linear system of the Jacobian at a point; the last one is kept."""
        if self._last.system is None or not all(
                map(np.array_equal, self._last.point, (x, *parameters))):
            x, *parameters = self._move_to(x, parameters)
            self.forget(x, *parameters)
            self._last.system = None  # also if there is none
            self._last.system = self.kind_of_system(x)(
                self, self._of_vector(x, parameters), np.ravel(x))
        return self._last.system

    def kind_of_system(self, x: np.ndarray) -> Callable:
        """Return the class of the linear system of the Jacobian."""
        if self.elementwise or x.ndim == 0:
            return Diagonal
        return Dense if x.size <= LARGEST_DENSE else MatrixFree

    def refine_system(self, x: np.ndarray, parameters: tuple) -> None:
        """Use the system of a point nearby, which is known, at another point."""
        x, *parameters = self._move_to(x, parameters)
        self._last.system = Refined(
            self, self._last.system, self._of_vector(x, parameters), np.ravel(x))

    def forget(self, *point: Any) -> None:
        """Call a residual that may store its last result at another point, as `forgetting` does."""
        if self._reads is None and all([getattr(x, "graph", None) is None for x in point]):
            x, *parameters = [data_of(x) if isinstance(x, Tensor) else x for x in point]
            call_near(self._residual, x, *parameters)

    def product(
        self, residual: Callable, x: np.ndarray, v: np.ndarray, transposed: bool
    ) -> np.ndarray:
        """Return the product of the Jacobian of a residual, or its transpose, and a vector."""
        self.forget(*self._last.point)
        v = np.ravel(v)
        return np.array(product_from_left(residual, x, v) if transposed else jvp(
            residual, (x,), (v,))[1])  # SciPy writes to it

    def _move_to(self, x, parameters):
        # Copies: graphs write the values of the next call to the same memory.
        self._last.point = tuple(map(np.array, (x, *parameters)))
        self._last.value, self._last.is_checked = None, False
        return self._last.point

    def _of_vector(self, x, parameters):
        return lambda vector: cnp.ravel(
            self.residual(cnp.reshape(vector, x.shape), *parameters))

    def system_at_solution(self, x: np.ndarray, parameters: tuple, is_solved: bool) -> Any:
        """Return the system; raise if Newton's step would move far, or at all after a failure.

        SciPy also reports a failure at a solution that rounding errors keep from tolerances.
        """
        try:
            system = self.system(x, parameters)
            if self._last.is_checked:
                return system
            if self._last.value is None:
                self._last.value = np.asarray(self.call(_residual_at, x, parameters), float).ravel()
            step = system.solve(self._last.value, False)
        except NotDifferentiableError:
            if is_solved:
                raise
            step = np.array(np.inf)
        size, scale = np.abs(step).max(initial=0), np.abs(x).max(initial=0)
        if not is_solved and not size <= NEGLIGIBLE * scale:
            raise NotDifferentiableError(
                f"{self.name} failed, so that its result has no derivative: {self.result.message}")
        if not size <= NEAR * max(1, scale):
            raise NotDifferentiableError(
                f"the solution of {self.name} is too inaccurate for derivatives: a step of "
                f"Newton's method moves it by {size:.1e}. Use smaller tolerances")
        self._last.is_checked = True
        return system


def _residual_at(residual, x, parameters):
    return residual(x, *parameters)


def _gradients_at(residual, x, parameters, weights):
    return gradients_of(
        lambda *parameters: residual(x, *parameters),
        list(map(convert_to_tensor, parameters)), weights)


def projected(gradient: Any, x: Any, bounds: Any) -> Any:
    """Return the residual of the conditions for a minimum within bounds.

    An unknown is at its bound if the bound is nearer than the unknown's gradient descent step.
    """
    return gradient if bounds is None else x - cnp.clip(x - gradient, *bounds)


def run(name: str, solve: Callable, *args: Any) -> Any:
    """Call a solver of arrays, of which no tape or graph knows."""
    try:
        with building_into(None):
            return solve(*args)
    except (DetachedError, SymbolicTensorError) as error:
        raise lost(name, error) from error


def held(name: str, functions: Sequence, given: Arguments) -> list:
    """Return the user's functions of a solver, which its derivatives call later, as they are now.

    Without tensors there are no derivatives.
    """
    return [bound(f"a function of {name}", f) if given.tensors and callable(f) else f
            for f in functions]


def require_no_captures(name: str, function: Callable, x: Any) -> None:
    """Raise if a function of arrays reads a tensor while a graph is built.

    It would be a constant of the graph, even if a tape outside of the graph records it.
    """
    if current_graph() is None:
        return
    try:
        with np.errstate(all="ignore"):
            leaves = nest.flatten(function(np.asarray(x, float)))
    except (DetachedError, SymbolicTensorError) as error:
        raise lost(name, error) from error
    except Exception:  # of a point outside of the domain; the solver finds others
        return
    if any([isinstance(leaf, Tensor) for leaf in leaves]):
        raise lost(name, TypeError("its result is a tensor for arrays"))


def _solve(x0, *parameters, equation):
    result = noting(equation.rules, run, equation.name, equation.solve, x0, *parameters)
    if np.iscomplexobj(result.x):
        raise TypeError(f"{equation.name}: only real solutions have derivatives, this is complex")
    equation.result = result  # until another thread replaces it
    return np.array(result.x, float).reshape(np.shape(x0)), np.array(result.success, bool)


def called_in_graph(name: str, function: Callable, inputs: tuple, spec: Any) -> Any:
    """Call a function; in a graph one that needs values becomes an op.

    The spec of its result is given, or the position of the input that has it.
    """
    try:
        return function(*inputs)
    except SymbolicTensorError:
        tensors = list(map(convert_to_tensor, inputs))
        if all([tensor.graph is None for tensor in tensors]):
            raise
        call = EagerCall(f"{name}'s function", function, [spec])
        return python_call_op(*tensors, call=call)[0]


def lost(name: str, error: Exception) -> DetachedError:
    """Return an error for a tensor that a user's function reads from its closure."""
    return DetachedError(
        f"{str(error).partition(chr(10))[0]}\n{name} differentiates the function: compute with "
        "cytape.numpy in it (np.exp, not math.exp), and pass other tensors that it reads in "
        "`args`, as args=(p,). If it takes no tensors, pass "
        f"{'x1' if name == 'newton' else 'jac=False'}: SciPy then takes differences")


def _solve_linear(b, x, is_solved, *parameters, equation, transposed):
    with building_into(None):
        system = equation.system_at_solution(x, parameters, bool(is_solved))
        solved = system.solve(b.ravel(), transposed)
        return solved.reshape(b.shape).astype(b.dtype, copy=False)


def _negative(gradients):
    return [None if gradient is None else -gradient for gradient in gradients]


def _vjp(op, g, _):
    (_, *parameters), (x, is_solved) = op.inputs, op.outputs
    equation = op.attrs["equation"]
    weights = linear_solution_op(
        g, x, is_solved, *parameters, equation=equation, transposed=True)
    equation.forget(x, *parameters)
    if not any(isinstance(value, Tensor) for value in (g, x, *parameters)):  # nothing records
        return (None, *_negative(equation.call(_gradients_at, x, parameters, np.asarray(weights))))
    return (None, *_negative(gradients_of(
        lambda *parameters: equation.residual(x, *parameters), parameters, weights)))


def _linear_vjp(op, h):
    (_, x, is_solved, *parameters), y = op.inputs, op.outputs[0]
    equation, transposed = op.attrs["equation"], op.attrs["transposed"]
    weights = linear_solution_op(
        h, x, is_solved, *parameters, equation=equation, transposed=not transposed)
    if not any(op.needs[1:]):
        return (weights, *[None] * (2 + len(parameters)))
    left, right = (y, weights) if transposed else (weights, y)
    equation.forget(x, *parameters)
    gradient, *gradients = _negative(gradients_of(
        lambda x, *parameters: product_from_left(
            lambda x: equation.residual(x, *parameters), x, left), (x, *parameters), right))
    return (weights, gradient, None, *gradients)


solution_op = general(
    "ScipyOptimizeSolution", _solve, vjp=_vjp, saved_outputs=(0, 1), optional_gradients=(1,),
    shape_rule=lambda x0, *_, **__: (
        symbolic_spec(x0.shape, np.float64), symbolic_spec((), np.bool_)))
linear_solution_op = general(
    "ScipyOptimizeLinearSolution", _solve_linear, vjp=_linear_vjp, saved_outputs=(0,),
    shape_rule=lambda b, *_, **__: b)


def solution(equation: Equation, x0: Any, parameters: list) -> tuple:
    """Return the solution of an equation, and whether the solver succeeded, as tensors.

    A tensor `x0` has no derivative, nor have integer parameters.
    """
    if np.iscomplexobj(x0):
        raise TypeError(f"{equation.name}: only real unknowns have derivatives, got complex ones")
    return solution_op(cnp.asarray(x0, float), *parameters, equation=equation)
