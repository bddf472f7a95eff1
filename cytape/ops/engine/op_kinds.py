"""Kinds of ops: the functions that declare an op, and the table of declared ops.

A declaration names the mathematical kind of an op and puts its derivatives beside its forward
function. Reverse mode, forward mode and higher orders all follow from it.

- `elementwise`: one partial derivative per input, written as an expression of output and inputs.
- `structural`: pairs of regions, of the results and of the inputs that are copied to them.
- `linear`: only the transpose; the forward function is its own derivative.
- `multilinear`: products; a transpose for each operand.
- `general`: a vjp and a jvp.
- `nondifferentiable`: integers, comparisons, piecewise constants; gradients are None.
- A user's own op may leave its rules to `register_gradient` and `register_jvp`.

A user's op may be declared again, say by a notebook cell that runs twice; a warning is issued.
Calls that tapes or graphs recorded before keep the older declaration.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.engine.structural_op import StructuralOp
from cytape.ops.kernels.partial_tracer import declare_partials

# Positions of all outputs, however many: the last bit stands for all later ones.
ANY_OUTPUT = range(64)
OPS: dict[str, ElementwiseOp | GeneralOp] = {}
own_names: set[str] = set()  # of cytape's own ops
_replaced: list[Any] = []  # ops that are declared anew: tapes refer to them, but do not own them
rules_to_come: dict[str, dict[str, Callable]] = {}
rooms_to_come: list[str] = []  # modules with ops of cytape's own that are not imported yet
rooms_by_prefix: dict[str, str] = {}  # modules with ops whose names begin so, which need SciPy


def find(name):
    """Return the op of a name, None if there is none."""
    while name not in OPS and rooms_to_come:
        importlib.import_module(rooms_to_come.pop())
    prefix = max(filter(name.startswith, rooms_by_prefix), key=len, default=None)
    if prefix is not None and name not in OPS:
        with suppress(ModuleNotFoundError):  # the name may be that of a user's op
            importlib.import_module(rooms_by_prefix[prefix])
    return OPS.get(name)


def op_of_name(name):
    """Return the op of a name, for pickle."""
    op = find(name)
    if op is None:
        raise LookupError(f"no op is declared under the name {name!r}: {remedy(name)}")
    return op


def remedy(name):
    """Return advice about a name under which no op is declared."""
    if name.startswith(tuple(rooms_by_prefix)):
        return ("import the module that declares it; cytape's own ops of such names need SciPy, an "
                "optional dependency: pip install scipy")
    return "import the module that declares it"


def enter(op):
    """Put an op into the table, under its name."""
    is_own = _declares_own(sys._getframe(1))
    older = OPS.get(op.name) if is_own else find(op.name)
    if op.name in own_names:
        raise ValueError(f"an op named {op.name!r} is declared already, by cytape itself")
    if older is not None:
        _replaced.append(older)
        warnings.warn(
            f"an op named {op.name!r} was declared before: from now on the name means this "
            "declaration. Calls that were recorded, by tapes or in graphs, keep the older one",
            stacklevel=3,
        )
    elif is_own:
        own_names.add(op.name)
    OPS[op.name] = op
    if isinstance(op, GeneralOp):
        op.is_users = not is_own
    if isinstance(op.forward, np.ufunc) and (
        isinstance(op, ElementwiseOp) or not op.differentiable
    ):
        partials = getattr(op, "partials", (None,) * op.forward.nin)
        declare_partials(op.forward, partials, instead_of=getattr(older, "partials", None))
    for mode, rule in rules_to_come.pop(op.name, {}).items():
        op.define(**{mode: rule})
    return op


def _declares_own(frame):
    """Return whether a declaration is in one of cytape's modules, not in a user's."""
    while frame.f_globals is globals():
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").startswith("cytape.")


def elementwise(
    name: str, forward: Callable, *partials: Callable | None, together: Callable | None = None,
    **facts: Any,
) -> ElementwiseOp:
    """Declare an op that acts on each element (after broadcasting).

    Parameters
    ----------
    name : str
        The op type.
    forward : numpy.ufunc or callable
    *partials : callable or None
        One per input: the derivative of the output with respect to it, called with the output and
        the inputs. Written with operators and NumPy's ufuncs (or the ops of those names), which act
        on arrays, tensors and symbols alike. None: the output is not differentiable in this input.
        Inputs are passed in the output's dtype. A boolean result selects the gradient where it is
        true (multiplication would make 0 * inf NaN). A partial may also return a function that maps
        the gradient to the product.
    together : callable, optional
        Returns all partials, which share most of their computation. Called with arrays where the
        gradients of several inputs are wanted.
    **facts
        As for `linear`.

    Raises
    ------
    ValueError
        If an op of cytape has the name, there are more than four inputs, or a ufunc has several
        outputs, another number of inputs or a signature.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> logit = elementwise(
    ...     "DoctestLogit", lambda x: np.log(x) - np.log1p(-x), lambda y, x: 1 / (x * (1 - x)))
    >>> float(cytape.grad(logit)(0.5))
    4.0
    """
    if isinstance(forward, np.ufunc) and (
            forward.signature is not None or (forward.nin, forward.nout) != (len(partials), 1)):
        raise ValueError(
            f"op {name!r} was given {len(partials)} partial derivatives, one per input, but "
            f"{forward.__name__} has {forward.nin} inputs, {forward.nout} outputs and signature "
            f"{forward.signature}; functions of several outputs or with a signature must be "
            "declared as general"
        )
    op = ElementwiseOp(name, forward, partials).described(**facts)
    op.together = together
    return enter(op)


def linear(
    name: str,
    forward: Callable,
    transpose: Callable,
    batched: Callable | None = None,
    shape_rule: Callable | None = None,
    **facts: Any,
) -> GeneralOp:
    """Declare an op that is linear in all its inputs jointly.

    Parameters
    ----------
    name : str
        The op type.
    forward : callable
        Takes the inputs as positional, the attributes as keyword arguments.
    transpose : callable
        Called with an `OpCall` and the output's gradient (several outputs: their gradients);
        returns the gradient of the input (several inputs: a tuple).
    batched : callable, optional
        Called like the forward function, with inputs that all have an additional leading axis, of
        directions. Without it, or if it returns NotImplemented, forward mode computes the
        directions of a batch one by one.
    shape_rule : callable, optional
        Called with the specs of the inputs and the attributes; returns the spec of the output
        (several outputs: a tuple) for a graph in which the inputs have no values yet. Without it
        the forward function is called with ones.
    **facts
        Attributes of `Op` that graphs, plans and `vmap` read; all but `composition` are for
        cytape's own ops. `composition` computes the one output by simpler ops. Functions and graphs
        run these instead, which is faster if they need no Python (elementwise ops, sums, matrix
        products, views). Called with the inputs, nonempty tensors of float32 or float64 with known
        shapes, and the attributes; may return NotImplemented.

    Raises
    ------
    ValueError
        If the name is that of an op of cytape's own.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> rotate = linear("DoctestRotate", lambda x, steps: np.roll(x, steps),
    ...                 lambda op, g: rotate(g, steps=-op.attrs["steps"]))
    >>> cytape.grad(lambda x: np.sum(rotate(x, steps=1) * np.arange(3)))(np.ones(3))
    array([1., 2., 0.])
    """
    return enter(
        GeneralOp(name, forward, transpose, saved_inputs=(), batched=batched, linear=True,
                  shape_rule=shape_rule).described(**facts))


def multilinear(
    name: str,
    forward: Callable,
    *transposes: Callable | None,
    core: Sequence[int] | None = None,
    batched: Callable | None = None,
    shape_rule: Callable | None = None,
    **facts: Any,
) -> MultilinearOp:
    """Declare a product: an op that is linear in each of its inputs, the others held fixed.

    Parameters
    ----------
    name, forward, shape_rule, **facts
        As for `linear`, which also says when an error is raised.
    *transposes : callable or None
        One per input, a function that returns its gradient. It is called with an `OpCall` and the
        inputs, this one replaced by the output's gradient (several outputs: a tuple), the other
        complex ones conjugated. For two inputs: ``left(op, g, y)``, ``right(op, x, g)``. If it
        needs extents that are known only when a graph runs, it may return NotImplemented, and is
        called then. None: the op is not linear in this input (say indices), which has no gradient
        and is passed unchanged; integers need no None.
    core : sequence of int, optional
        For inputs that may be stacks, which broadcast against each other: per transpose the number
        of axes that are not of the stack. Gradients are summed over broadcast axes, and a batch of
        tangents is a stack.
    batched : callable, optional
        Returns the product if one input has an additional leading axis, of directions: called with
        an `OpCall`, the position of that input, and the inputs. Without it and `core`, or if it
        returns NotImplemented, forward mode computes the directions of a batch one by one.

    Raises
    ------
    TypeError
        If there is no transpose, or one is not a function.
    ValueError
        If `core` has not one number per transpose.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> cross = multilinear(
    ...     "DoctestCross", np.cross, lambda op, g, y: cross(y, g), lambda op, x, g: cross(g, x),
    ...     core=(1, 1))
    >>> cytape.grad(lambda x: cross(x, np.array([0.0, 1.0, 0.0]))[2])(np.ones(3))
    array([1., 0., 0.])
    """
    return enter(
        MultilinearOp(name, forward, transposes, core, batched, shape_rule).described(**facts))


def structural(
    name: str,
    forward: Callable,
    pieces: Callable | None,
    shape_rule: Callable,
    transpose: Callable | None = None,
    batched: Callable | None = None,
    views: bool = False,
    **facts: Any,
) -> StructuralOp:
    """Declare an op that only moves, repeats or omits elements.

    Parameters
    ----------
    name, forward, shape_rule, **facts
        As for `linear`, which also says when an error is raised.
    pieces : callable or None
        Called with a list of arrays for the results, one for the inputs, and the attributes; yields
        pairs of a view of a result and a view of an input, which is broadcast to the former. The
        arrays have no data. Elements that no pair covers are zero; overlapping pairs add up. None:
        the forward function returns a view of the one input.
    transpose : callable, optional
        As for `linear`; called if gradients are recorded or extents are unknown. The default
        exchanges the regions that are read and written.
    batched : callable, optional
        As for `linear`; called if tangents are recorded.
    views : bool
        Whether NumPy's result is a view of the operand, which must not be changed in place. Without
        `pieces` it always is.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> swap = structural(
    ...     "DoctestSwapHalves", lambda x: np.concatenate([x[2:], x[:2]]),
    ...     lambda results, operands: [(results[0][:2], operands[0][2:]),
    ...                                (results[0][2:], operands[0][:2])],
    ...     shape_rule=lambda x: x)
    >>> cytape.grad(lambda x: np.sum(swap(x) * np.arange(4)))(np.ones(4))
    array([2., 3., 0., 1.])
    """
    views = views or pieces is None
    if pieces is None:
        def pieces(results, operands, **attrs):
            part = forward(operands[0], **attrs)
            # For a 0-d array NumPy may return a number, which is not a view.
            scalar = results[0].ndim == operands[0].ndim == 0
            return [(results[0], operands[0] if scalar else part)]

    return enter(StructuralOp(
        name, forward, pieces, transpose, batched, shape_rule, views).described(**facts))


def general(
    name: str,
    forward: Callable,
    vjp: Callable | None = None,
    jvp: Callable | None = None,
    saved_inputs: tuple[int, ...] | None = None,
    saved_outputs: Sequence[int] = (),
    optional_gradients: Sequence[int] = (),
    optional_tangents: Sequence[int] = (),
    batched: Callable | None = None,
    shape_rule: Callable | None = None,
    **facts: Any,
) -> GeneralOp:
    """Declare an op with a rule for each mode.

    Parameters
    ----------
    name, forward, shape_rule, **facts
        As for `linear`, which also says when an error is raised.
    vjp : callable, optional
        Called with an `OpCall` and one gradient per output; returns the gradient of the input
        (several inputs: a tuple, None where there is none), or NotImplemented as a transpose of
        `multilinear` does.
    jvp : callable, optional
        Called with an `OpCall` and one tangent per input (zeros if it has none, None if it cannot
        have one, say an integer); returns the tangent of the output (several outputs: a tuple).
        Without it forward mode transposes the vjp.
    saved_inputs : tuple of int, optional
        Positions of the inputs that the rules read; by default all.
    saved_outputs : tuple of int, optional
        Positions of the outputs that the rules read.
    optional_gradients : tuple of int, optional
        Positions of the outputs whose gradient the vjp takes as None; `ANY_OUTPUT` for all.
    optional_tangents : tuple of int, optional
        Positions of the inputs whose tangent the jvp takes as None where it is zero.
    batched : callable, optional
        A jvp for tangents with an additional leading axis, of directions. Without it, or if it
        returns NotImplemented, forward mode computes the directions of a batch one by one.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> det = general(
    ...     "DoctestDet2", lambda m: m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0],
    ...     vjp=lambda op, g: g * np.flip(op.inputs[0]) * np.array([[1, -1], [-1, 1]]))
    >>> cytape.grad(det)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 4., -3.],
           [-2.,  1.]])
    """
    return enter(
        GeneralOp(
            name, forward, vjp, jvp, saved_inputs, saved_outputs, optional_gradients,
            optional_tangents, batched, shape_rule=shape_rule,
        ).described(**facts))  # fmt: skip


def passing(name: str, forward: Callable, shows: int = 0, **facts: Any) -> GeneralOp:
    """Declare an op of two inputs that returns one of them, with the derivative of the first."""
    return general(
        name, forward, lambda op, g: (g, None), lambda op, t, _: t, saved_inputs=(),
        optional_tangents=(1,), batched=lambda op, t, _: t, lowering="SHOWN", shows=shows, **facts)


def nondifferentiable(
    name: str, forward: Callable, shape_rule: Callable | None = None, **facts: Any
) -> GeneralOp:
    """Declare an op that is not differentiable: its gradients are None, not zero.

    Parameters
    ----------
    name, forward, shape_rule, **facts
        As for `linear`, which also says when an error is raised.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> quantise = nondifferentiable("DoctestQuantise", lambda x, step: np.round(x / step) * step)
    >>> float(cytape.grad(lambda x: x * quantise(x, step=0.5))(2.6))
    2.5
    """
    return enter(
        GeneralOp(name, forward, saved_inputs=(), differentiable=False, shape_rule=shape_rule)
        .described(**facts))
