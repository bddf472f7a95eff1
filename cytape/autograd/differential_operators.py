"""autograd's operators on functions, by the tape and the accumulators of cytape.

Complex gradients are the conjugates of cytape's. A gradient has the dtype of the function's value
where that is wider than the argument's.
"""

import warnings

import numpy as np

import cytape.numpy as functions
from cytape.autodiff.functional import require_real_for_real
from cytape.autodiff.jacobian_rows import element_seeds, stack_rows
from cytape.autodiff.recompute import recompute_grad
from cytape.autodiff.recorded_call import RecordedCall
from cytape.autodiff.transform_arguments import export
from cytape.autograd import core
from cytape.autograd.core import vspace
from cytape.autograd.util import subvals
from cytape.autograd.wrap_util import nary, unary_to_nary
from cytape.tensor.nest import flatten, map_structure, pack_sequence_as
from cytape.tensor.tensor import Tensor
from cytape.tensor.unconnected_gradients import UnconnectedGradients
from cytape.tensor.variable import Variable

__all__ = [
    "checkpoint", "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "jacobian",
    "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict",
    "tensor_jacobian_product", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip

# Types of arguments that a tape takes; integer arrays become float64.
_ARRAYS = frozenset((
    Tensor, Variable, np.ndarray, float, complex, np.float16, np.float32, np.float64, np.longdouble,
    np.complex64, np.complex128, np.clongdouble))


@unary_to_nary
def make_vjp(fun, x):
    """Make the function that returns the vector-Jacobian product at a point, and the value.

    Examples
    --------
    >>> pull_back, value = make_vjp(lambda x, y: x * y, 1)(2.0, 3.0)
    >>> float(value), float(pull_back(10.0))
    (6.0, 20.0)
    """
    return core.make_vjp(fun, x)


@unary_to_nary
def make_jvp(fun, x):
    """Make the function that returns the Jacobian-vector product at a point.

    The product takes a tangent; it returns the value and its tangent.

    Examples
    --------
    >>> value, tangent = make_jvp(lambda x, y: x * y, 1)(2.0, 3.0)(10.0)
    >>> float(value), float(tangent)
    (6.0, 20.0)
    """
    return core.make_jvp(fun, x)


def _chosen(args, argnum):
    return args[argnum] if isinstance(argnum, int) else tuple([args[i] for i in argnum])


def _value_and_gradient(fun, args, kwargs, argnum, check):
    """Return a function's value, whether the caller must export it, and the gradient of its sum.

    `check` raises for values that the operator does not apply to; one real number always passes.
    """
    x = args[argnum] if type(argnum) is int else _chosen(args, argnum)
    if type(x) not in _ARRAYS and not _ARRAYS.issuperset(map(type, flatten(x))):
        pull_back, value = make_vjp(fun, argnum)(*args, **kwargs)
        check(value)
        return value, False, pull_back(vspace(value).ones())
    call = RecordedCall(fun, args, kwargs, argnum, False, True)
    value, arrays_out = call.value, call.arrays_out
    is_real = call.knows_real_value()
    if not is_real or value.size != 1:
        check(value)
    if is_real:
        return value, arrays_out, export(call.gradients([value]), arrays_out)
    targets = [leaf for leaf in flatten(value) if isinstance(leaf, Tensor) and call.knows(leaf)]
    if not targets:
        warnings.warn("Output seems independent of input.", stacklevel=3)
        return value, arrays_out, vspace(x).zeros()
    convention = core.convention(call, targets[0].dtype)
    return value, arrays_out, export(map_structure(convention, call.gradients(targets)), arrays_out)


def _require_scalar(value, name="Grad"):
    if vspace(value).size != 1:
        raise TypeError(
            f"{name} only applies to real scalar-output functions. "
            "Try jacobian, elementwise_grad or holomorphic_grad.")


def _require_real(value):
    if vspace(value).iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")


@nary
def grad(fun, args, kwargs, argnum):
    """
    Returns a function which computes the gradient of a scalar-valued function.

    Parameters
    ----------
    fun : callable
        Returns a real number or an array with one element.
    argnum, argnums : int, tuple or list, optional
        Positions of the arguments to differentiate with respect to: arrays, floating point numbers,
        or lists, tuples and dicts of them. A list or a tuple gives a tuple of gradients.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns the gradient, structured as the argument.

    Raises
    ------
    TypeError
        In a call, if `fun` returns no such number, or an argument has a type without gradient, say
        int.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> from cytape.autograd import grad
    >>> grad(lambda x, y: np.sum(x**2 * y), argnum=[0, 1])(np.array([1.0, 2.0]), 3.0)
    (array([ 6., 12.]), np.float64(5.0))
    >>> complex(grad(np.abs)(3 + 4j))  # the conjugate of cytape's
    (0.6-0.8j)
    """  # noqa: D401
    return _value_and_gradient(fun, args, kwargs, argnum, _require_scalar)[2]


@nary
def value_and_grad(fun, args, kwargs, argnum):
    """Make the function that returns the value and the gradient of a scalar-valued function.

    Parameters and errors are those of `grad`.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> value, gradient = value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    value, arrays_out, gradient = _value_and_gradient(
        fun, args, kwargs, argnum, lambda value: _require_scalar(value, "value_and_grad"))
    return export(value, arrays_out), gradient


@nary
def elementwise_grad(fun, args, kwargs, argnum):
    """Make the function that returns the sums of the columns of a Jacobian, in one pass.

    They are the diagonal if each element of the result depends only on the same element of the
    argument. Parameters are those of `grad`; a complex result raises a TypeError.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> elementwise_grad(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return _value_and_gradient(fun, args, kwargs, argnum, _require_real)[2]


@nary
def grad_and_aux(fun, args, kwargs, argnum):
    """Make the function that returns the gradient of a function's first result, and its second.

    Examples
    --------
    >>> gradient, aux = grad_and_aux(lambda x: (x**2, "aux"))(3.0)
    >>> float(gradient), aux
    (6.0, 'aux')
    """
    results = []

    def first(*args, **kwargs):
        results[:] = fun(*args, **kwargs)
        return results[0]

    gradient = grad(first, argnum)(*args, **kwargs)
    return gradient, export(results[1], True)


@nary
def jacobian(fun, args, kwargs, argnum):
    """Make the function that computes the Jacobian of a function that returns an array.

    One backward pass is made for each element of the result.

    Parameters
    ----------
    fun : callable
        Returns an array: real, or complex if its argument is.
    argnum, argnums : int, tuple or list, optional
        As for `grad`.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns an array with the shape of the result and that of the
        argument, or a structure of such arrays.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    x = _chosen(args, argnum)
    core.sources_checked(x)
    call = RecordedCall(fun, args, kwargs, argnum, False, True)
    target = call.value
    if isinstance(target, (list, tuple, dict)):
        raise TypeError(
            f"Jacobian only applies to functions that return one array, got a "
            f"{type(target).__name__}. Join several by numpy.stack or numpy.concatenate.")
    if not isinstance(target, Tensor) or not call.knows(target):
        shape = vspace(target).shape
        warnings.warn("Output seems independent of input.", stacklevel=2)
        return map_structure(lambda leaf: np.zeros(shape + functions.shape(leaf)), x)
    require_real_for_real(fun, call, target)
    convention = core.convention(call, target.dtype)
    (rows,) = call.rows([target], [element_seeds(target)])
    gradients = [
        stack_rows(of_source, source, target.shape, 0, UnconnectedGradients.ZERO)
        for source, of_source in zip(call.sources, rows, strict=True)]
    gradients = map_structure(convention, pack_sequence_as(call.selected, gradients))
    return export(gradients, call.arrays_out)


@nary
def hessian(fun, args, kwargs, argnum):
    """Make the function that computes the Hessian of a function, in reverse over reverse mode.

    Parameters are those of `jacobian`. The result has the axes of the argument twice. It is not
    computed in forward mode, as rules of users may cut the derivative in the upstream gradient.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    return jacobian(jacobian(fun, argnum), argnum)(*args, **kwargs)


@unary_to_nary
def holomorphic_grad(fun, x):
    """Make the function that computes the derivative of a holomorphic function.

    Examples
    --------
    >>> complex(holomorphic_grad(lambda z: z**2)(1 + 2j))
    (2+4j)
    """
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda x: functions.real(fun(x)))(x)


@unary_to_nary
def deriv(fun, x):
    """Make the function that computes the sum of the rows of a Jacobian, in forward mode.

    Examples
    --------
    >>> float(deriv(lambda x: x**3)(2.0))
    12.0
    """
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def make_hvp(fun, x):
    """Make the function that returns the Hessian-vector product at a point, and the gradient.

    The gradient is recorded once for all products.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> product, gradient = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> gradient, product(np.array([1.0, 10.0]))
    (array([ 3., 12.]), array([  6., 120.]))
    """
    return core.make_vjp(grad(fun), x)


@unary_to_nary
def make_jvp_reversemode(fun, x):
    """Make the function that returns the Jacobian-vector product at a point.

    The call of `fun` is recorded once for all products, in two reverse passes.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> float(make_jvp_reversemode(np.sin)(0.0)(2.0))
    2.0
    """
    pull_back, value = core.make_vjp(fun, x)
    return core.make_vjp(pull_back, vspace(value).zeros())[0]


def make_ggnvp(f, g=lambda x: 0.5 * functions.sum(x**2, axis=-1), f_argnum=0):
    """Make the function that returns the generalised Gauss-Newton product at a point.

    Parameters
    ----------
    f : callable
    g : callable
        Takes the result of `f` and returns a scalar; by default half the sum of squares.
    f_argnum : int
        Which argument of `f` to differentiate with respect to.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> a = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> make_ggnvp(lambda x: np.dot(a, x))(np.zeros(2))(np.array([1.0, 0.0])), (a.T @ a)[:, 0]
    (array([1., 2.]), array([1., 2.]))
    """
    def products_at(f, x):
        pull_back, value = core.make_vjp(f, x)
        curve, _ = core.make_vjp(grad(g), value)
        push = make_jvp_reversemode(f)(x)
        return lambda v: pull_back(curve(push(v)))

    return unary_to_nary(products_at)(f, f_argnum)


def grad_named(fun, argname):
    """Make the gradient of a function with respect to the argument of a name.

    Examples
    --------
    >>> float(grad_named(lambda x, y: x * y, "y")(2.0, 3.0))
    2.0
    """
    import inspect

    return grad(fun, inspect.getfullargspec(fun).args.index(argname))


def multigrad_dict(fun):
    """Make the function that returns the gradients with respect to all arguments, by their names.

    Examples
    --------
    >>> gradients = multigrad_dict(lambda x, y=2.0: x * y)(3.0)
    >>> {name: float(gradient) for name, gradient in gradients.items()}
    {'x': 2.0, 'y': 3.0}
    """
    import inspect

    signature = inspect.signature(fun)

    def gradfun(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments):
            call = inspect.BoundArguments(signature, arguments)
            return fun(*call.args, **call.kwargs)

        return grad(of_dict)(dict(bound.arguments))

    return gradfun


def hessian_tensor_product(fun, argnum=0, argnums=None):
    """Make the function that multiplies a Hessian by a tensor of the argument's shape.

    Its result takes the arguments of `fun`, and then the tensor.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> product = hessian_tensor_product(lambda x: np.sum(x**3))
    >>> product(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([  6., 120.])
    """
    number = argnum if argnums is None else argnums

    def product(*args, **kwargs):
        *args, tensor = args
        return make_vjp(grad(fun, number), number)(*args, **kwargs)[0](tensor)

    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun, argnum=0, argnums=None):
    """Make the function that multiplies a tensor by a Jacobian.

    Its result takes the arguments of `fun`, and then the tensor, which has the first axes of the
    result of `fun`.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> tensor_jacobian_product(np.square)(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 2., 40.])
    """
    def product(*args, **kwargs):
        *args, tensor = args
        return functions.tensordot(tensor, fun(*args, **kwargs), axes=functions.ndim(tensor))

    return jacobian(product, argnum, argnums=argnums)


vector_jacobian_product = tensor_jacobian_product


def checkpoint(fun):
    """Make a function recompute its intermediates for the gradient; random draws are repeated.

    Examples
    --------
    >>> import cytape.autograd.numpy as np
    >>> float(grad(checkpoint(lambda x: np.sin(np.sin(x))))(0.0))
    1.0
    """
    return recompute_grad(fun)
