"""Transforms in forward mode: products with Jacobians and Hessians.

Arrays in, arrays out; tensors in, tensors out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.forward_accumulator import (
    ForwardAccumulator,
    how_detached,
    require_same_structure,
)
from cytape.autodiff.functional import grad, vjp
from cytape.autodiff.seeds import zeros
from cytape.autodiff.transform_arguments import (
    Transformed,
    call_followed,
    checked_argnum,
    export,
    has_tensors,
    name_of,
    note_forward_leaks,
    note_kept_results,
    output_of,
    replace_arguments,
    report_unconnected,
    warn_of_leaks,
)
from cytape.autodiff.wrapped_calls import lent
from cytape.errors import SymbolicTensorError
from cytape.ops.joining import stack
from cytape.tensor import nest
from cytape.tensor.recording.leaked_tensors import watch_of_leaks
from cytape.tensor.structures import leaves_of_result, pack_parts, parts_of
from cytape.tensor.tensor import Tensor, another

__all__ = ["followed", "hessian_vector_product", "jvp", "make_ggnvp", "pushed"]


def jvp(
    fun: Callable,
    primals: Sequence,
    tangents: Sequence,
    has_aux: bool = False,
    use_batch: bool = False,
) -> tuple:
    """Compute a function and its Jacobian-vector product, in one pass.

    Parameters
    ----------
    fun : callable
        Returns an array or a structure of arrays.
    primals : tuple or list
        Its arguments: floating point or complex arrays, numbers or tensors, or structures of them.
        It is called with tensors in their place.
    tangents : tuple or list
        The direction in which to move them: structured as `primals`, each of its primal's shape;
        None for one that stands still.
    has_aux : bool
        Whether `fun` returns a pair: the result to differentiate, and auxiliary data.
    use_batch : bool
        Whether every tangent has a leading axis, of directions; so has every product then.

    Returns
    -------
    value
        Result of `fun`.
    tangent
        How it changes along the direction, structured as `value`.
    aux
        The auxiliary data; only with `has_aux`.

    Raises
    ------
    TypeError
        If the arguments are no tuple or list, a primal has no derivative (an integer, say), or
        `fun` does not return arrays.
    ValueError
        If the tangents do not fit the primals in structure or shape.

    See Also
    --------
    vjp : The product from the left, in reverse mode.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> value, tangent = cytape.jvp(lambda x, y: x * np.sin(y), (2.0, 0.0), (1.0, 10.0))
    >>> float(value), float(tangent)
    (0.0, 20.0)

    A Hessian-vector product, forward over reverse:

    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> cytape.jvp(cytape.grad(lambda x: np.sum(x**3)), (x,), (v,))
    (array([ 3., 12.]), array([6., 0.]))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primals and tangents must be tuples, with one entry per argument of "
            f"{name_of(fun)}; got {type(primals).__name__} and {type(tangents).__name__}"
        )
    arrays_out = not has_tensors((primals, tangents))
    primals, tangents = tuple(primals), tuple(tangents)
    everything = tuple(range(len(primals)))
    value, tangent, aux = pushed(fun, primals, everything, tangents, has_aux, use_batch,
                                 returned=not arrays_out)
    results = (value, tangent, aux) if has_aux else (value, tangent)
    return tuple([export(result, arrays_out) for result in results])


def hessian_vector_product(fun: Callable, argnum: int = 0) -> Callable[..., Any]:
    """Make the function that multiplies the Hessian of a scalar-valued function by a vector.

    The Hessian itself is never formed: the cost is a few times that of `fun`.

    Parameters
    ----------
    fun : callable
        Returns a scalar.
    argnum : int
        Which positional argument to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `fun`, then the vector: structured and shaped as the argument, and so
        is the product.

    Raises
    ------
    TypeError, ValueError
        As for `grad`; in a call, also as for `jvp`.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> product = cytape.hessian_vector_product(lambda x: np.sum(x**3))
    >>> product(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([  6., 120.])
    """
    return Transformed(_hessian_vector_product, fun, checked_argnum(argnum))


def _half_squared_norm(y: Any) -> Any:
    return 0.5 * (y * y).sum()


def make_ggnvp(
    f: Callable,
    g: Callable = _half_squared_norm,
    f_argnum: int = 0,
    use_batch: bool = False,
) -> Callable[..., Any]:
    """Make products with generalised Gauss-Newton matrices.

    For a loss g(f(x)), the matrix is J^T H J with the Jacobian J of `f` and the Hessian H of `g`.
    It is positive semidefinite if `g` is convex.

    Parameters
    ----------
    f : callable
        Returns an array, say a model's predictions.
    g : callable
        Takes the result of `f` and returns a scalar; by default half the sum of its squares.
    f_argnum : int
        Which positional argument of `f` to differentiate with respect to.
    use_batch : bool
        Whether vectors have a leading axis, of directions; so has the product then.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns the function that multiplies by the matrix: that
        takes a vector structured and shaped as the argument, and returns one. `f` runs once to make
        the function, whose intermediates are kept, and once forward in each product.

    Raises
    ------
    TypeError, ValueError
        As for `jvp` and `grad`, when the product is called.

    Notes
    -----
    N. N. Schraudolph, "Fast curvature matrix-vector products for second-order gradient descent",
    Neural Computation 14 (2002).

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> a = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> product = cytape.make_ggnvp(lambda x: a @ x)(np.array([5.0, 7.0]))
    >>> product(np.array([1.0, 0.0])), (a.T @ a)[:, 0]
    (array([1., 2.]), array([1., 2.]))
    """
    return Transformed(_ggnvp, f, grad(g), checked_argnum(f_argnum), use_batch)


def pushed(
    fun: Callable,
    args: tuple,
    argnums: int | tuple,
    tangents: Any,
    has_aux: bool = False,
    use_batch: bool = False,
    kwargs: dict | None = None,
    quiet: bool = False,
    returned: bool = False,
) -> tuple:
    """Call a function with tangents for chosen arguments; return value, tangents and aux.

    With `quiet`, integers among the chosen arguments become float64, and a result that does not
    depend on them is not reported: None stands for its tangents. `returned`: the user gets the
    value as tensors, which he may keep.
    """
    kwargs = kwargs or {}
    selected, sources, args = replace_arguments(fun, args, argnums, kwargs, quiet)
    require_same_structure(selected, tangents)
    directions = nest.flatten(tangents)
    moving = [i for i, tangent in enumerate(directions) if tangent is not None]
    return followed(
        fun, [sources[i] for i in moving], [directions[i] for i in moving], args, kwargs, has_aux,
        use_batch, quiet, returned)


def followed(
    fun: Callable,
    sources: list[Tensor],
    directions: list,
    args: Sequence,
    kwargs: dict,
    has_aux: bool,
    use_batch: bool,
    quiet: bool = False,
    returned: bool = False,
) -> tuple:
    """Call a function with tangents, given the tensors of the arguments."""
    with ForwardAccumulator(sources, directions, use_batch) as accumulator, (
            watch_of_leaks()) as tape:
        value, aux = call_followed(fun, args, kwargs, has_aux)
        outputs = [output_of(fun, leaf) for leaf in leaves_of_result(value)]
    if tape is not None:
        warn_of_leaks(fun, tape, outputs)
    note_forward_leaks(accumulator._recorder, sources, outputs, aux)
    if not returned:
        note_kept_results(accumulator._recorder, outputs, aux)
    value = nest.pack_sequence_as(value, outputs)
    parts = parts_of(value)
    found = accumulator.jvp(parts)
    connected = [tangent is not None for tangent in found]
    if quiet and not any(connected):
        return value, None, aux
    if not all(connected):
        if sources and not quiet:
            report_unconnected(fun, "its arguments", not any(connected), how_detached(accumulator))
        found = accumulator.jvp(parts, unconnected_gradients="zero")
    tangents = [another(tangent) for tangent in found]  # copies: they may be the caller's
    return value, pack_parts(value, tangents), aux


def _hessian_vector_product(fun: Callable, args: tuple, kwargs: dict, argnum: int) -> Any:
    if len(args) < 2:
        raise TypeError(f"expected the arguments of {name_of(fun)} and after them the vector, got "
                        f"{len(args)} in all")
    arrays_out = not has_tensors((args, kwargs))
    args, vector = args[:-1], args[-1]
    if argnum < len(args):
        try:
            require_same_structure(args[argnum], vector)
        except ValueError as error:
            error.add_note(f"the vector comes after the arguments of {name_of(fun)}, and has the "
                           f"structure of argument {argnum}")
            raise
    _, product, _ = pushed(grad(fun, argnum), args, argnum, vector, kwargs=kwargs)
    return export(product, arrays_out)


def _ggnvp(
    f: Callable, args: tuple, kwargs: dict, gradient_of_g: Callable, argnum: int, use_batch: bool
) -> Callable[..., Any]:
    selected, sources, own = replace_arguments(f, args, argnum, kwargs)
    specs = [source.spec for source in sources]
    argnum %= len(args)

    @functools.wraps(f)
    def of_argument(x: Any) -> Any:
        return f(*own[:argnum], x, *own[argnum + 1 :], **lent(kwargs))

    _, pull_back = vjp(of_argument, selected)

    def product(vector: Any) -> Any:
        arrays_out = not has_tensors((args, kwargs, vector))
        value, tangent, _ = pushed(f, args, argnum, vector, False, use_batch, kwargs)
        _, curved, _ = pushed(gradient_of_g, (value,), 0, tangent, False, use_batch)
        if not use_batch:
            return export(pull_back(curved)[0], arrays_out)
        n_directions = nest.flatten(tangent)[0].shape[0]
        if n_directions is None:
            raise SymbolicTensorError(
                "the product loops over the vectors of a batch, whose number is known only when "
                "the graph runs: give the batch a known first extent"
            )
        products = [
            pull_back(nest.map_structure(lambda batch, k=k: batch[k], curved))[0]
            for k in range(n_directions)
        ]
        if not products:
            products = [zeros((0, *spec.shape), spec.dtype) for spec in specs]
            return export(nest.pack_sequence_as(selected, products), arrays_out)
        return export(nest.map_structure(lambda *parts: stack(parts), *products), arrays_out)

    return product
