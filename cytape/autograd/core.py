"""Both modes for functions of one argument, rules of primitives, and vector spaces."""

import sys
import warnings
from functools import cache
from itertools import count

import numpy as np

from cytape.autodiff.custom import boxes
from cytape.autodiff.custom.boxes import SparseObject, vspace
from cytape.autodiff.forward_functional import pushed
from cytape.autodiff.recorded_call import RecordedCall
from cytape.autodiff.transform_arguments import as_array
from cytape.autograd.tracer import Box, Node, getval, isbox, subvals, toposort, trace
from cytape.autograd.vector_spaces import VSpace, sum_outgrads
from cytape.numpy import astype, broadcast_to, conj, reshape
from cytape.ops.adjoints.conform import cast, cast_op
from cytape.tensor.nest import flatten, flatten_up_to, map_structure, pack_sequence_as
from cytape.tensor.recording.state import possible_gradient_types
from cytape.tensor.tensor import Tensor, tensor_of

# ---- transforms


def sources_checked(x):
    """Return the classes of boxes of an argument's parts; TypeError if one has none."""
    return [boxes.box_class(leaf) for leaf in flatten(x)]


def exported(structure):
    """Return results as arrays and values, tensors and boxes where outer recorders track them."""
    return map_structure(
        lambda x: getval(x) if isbox(x) and not isinstance(x, Tensor)
        and not possible_gradient_types([boxes.token_of(x)]) else as_array(x), structure)


def make_vjp(fun, x):
    """Call a function and make its vector-Jacobian product.

    Parameters
    ----------
    fun : callable
        Of one argument.
    x : object
        An array, a number, a value of a registered class, or a list, tuple or dict of such.

    Returns
    -------
    vjp : callable
        Takes a gradient of the value; returns that of `x`, in autograd's complex convention.
    value : object
        Result of the call.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> from cytape.autograd.core import make_vjp
    >>> vjp, value = make_vjp(np.sin, 0.0)
    >>> float(vjp(2.0)), float(value)
    (2.0, 0.0)
    """
    leaves, kinds = flatten(x), sources_checked(x)
    tokens = [leaf if kind is boxes.ArrayBox else 0.0
              for leaf, kind in zip(leaves, kinds, strict=True)]

    def of_tokens(tokens):
        sources = flatten(tokens)
        for i, kind in enumerate(kinds):
            if kind is not boxes.ArrayBox:
                source = sources[i] = kind(getval(leaves[i]), 0, sources[i])
                if isbox(leaves[i]):
                    boxes.Call(_same, (leaves[i],), {}).record(source, [leaves[i]._node])
        return fun(pack_sequence_as(x, sources))

    call = RecordedCall(of_tokens, (pack_sequence_as(x, tokens),), {}, 0, False, True)
    ends = [(i, end) for i, end in enumerate(flatten(call.value))
            if isbox(end) and call.knows(boxes.token_of(end))]
    if not ends:
        warnings.warn("Output seems independent of input.", stacklevel=2)

    def vjp(g):
        if not ends:
            return vspace(x).zeros()
        seeds = flatten_up_to(call.value, g)
        converted = convention(call, np.result_type(*[
            getattr(x, "dtype", x) for i, end in ends for x in (boxes.token_of(end), seeds[i])
            if end is boxes.token_of(end)] or [float]))
        boxes.pending.passes.append({})
        try:
            found = call.gradients([boxes.token_of(end) for _, end in ends],
                                   [_seed(end, seeds[i]) for i, end in ends], True)
            found = [converted(gradient) if kind is boxes.ArrayBox
                     else boxes.pending.passes[-1].get(source.id, vspace(leaf).zeros())
                     for gradient, source, leaf, kind in zip(
                         flatten(found), call.sources, leaves, kinds, strict=True)]
        finally:
            boxes.pending.passes.pop()
        return exported(pack_sequence_as(x, found))

    return vjp, exported(call.value)


def convention(call, dtype):
    """Return the function from cytape's gradients of a recorded call to autograd's.

    These have the dtype of the call's value if it is wider than the argument's, unless the function
    casts by `astype`.
    """
    widens = dtype.kind == "f" and any([
        source.dtype.itemsize < dtype.itemsize for source in call.sources]) and all([
            name != cast_op.name for name, _, _ in call.recorder.recorded_ops()])

    def converted(gradient):
        if gradient.dtype.kind == "c":
            return conj(gradient)
        return astype(gradient, np.result_type(gradient.dtype, dtype)) if widens else gradient

    return converted


@boxes.primitive
def _same(x):
    return x


def _tensor(x):
    return x if isinstance(x, Tensor) else tensor_of(np.array(x))


def _seed(end, gradient):
    """Return the seed of a target, in its shape and dtype."""
    token = boxes.token_of(end)
    if end is not token:
        boxes.pending.add(token.id, gradient)
        return tensor_of(np.zeros(()))
    seed = boxes.conjugated(_tensor(gradient))
    if seed.shape != token.shape:
        seed = (reshape if seed.size == token.size else broadcast_to)(seed, token.shape)
    return cast(seed, token.dtype)


def make_jvp(fun, x):
    """Make the Jacobian-vector product of a function of one argument.

    Parameters
    ----------
    fun : callable
    x : object
        As for `make_vjp`.

    Returns
    -------
    callable
        Takes a tangent of `x`; returns the value of the function and its tangent.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> from cytape.autograd.core import make_jvp
    >>> value, tangent = make_jvp(np.sin, 0.0)(2.0)
    >>> float(value), float(tangent)
    (0.0, 2.0)
    """
    if set(sources_checked(x)) - {boxes.ArrayBox}:  # values of users' classes have no tangents
        pull_back, value = make_vjp(fun, x)
        push, _ = make_vjp(pull_back, vspace(value).zeros())
        return lambda g: (value, push(g))

    def jvp(g):
        directions = pack_sequence_as(x, [
            _direction(_tensor(tangent), _dtype_of_source(leaf))
            for tangent, leaf in zip(flatten_up_to(x, g), flatten(x), strict=True)])
        value, tangent, _ = pushed(fun, (x,), 0, directions, quiet=True)
        if tangent is None:
            warnings.warn("Output seems independent of input.", stacklevel=2)
            tangent = vspace(exported(value)).zeros()
        return exported(value), exported(tangent)

    return jvp


def _direction(tangent, dtype):
    if tangent.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("the tangent of a real argument must be real, got a complex one")
    return cast(tangent, dtype)


def _dtype_of_source(leaf):
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.dtype(type(leaf))
    return np.dtype(float) if dtype.kind in "biu" else dtype


class VJPNode(Node):
    """Name of autograd: nodes of reverse mode, which are entries of tapes here."""

    def initialize_root(self):  # noqa: D102
        pass


class JVPNode(Node):
    """Name of autograd: nodes of forward mode, which are tangents here."""


# ---- rules

primitive_vjps: dict = {}  # autograd's table; here rules are attributes of primitives


@cache
def _replacing(fun):
    """Put a primitive in the place of a function, in the modules where users look it up."""
    made = primitive(fun)
    defvjp_argnum(made, lambda argnum, ans, args, kwargs: make_vjp(
        lambda x: fun(*subvals(args, [(argnum, x)]), **kwargs), args[argnum])[0])
    places = [(module, name) for path, module in sys.modules.items()
              if path.startswith(("cytape.autograd.numpy", "cytape.autograd.scipy"))
              for name, value in vars(module).items() if value is fun]
    for module, name in places:
        setattr(module, name, made)
    if not places:
        warnings.warn(f"{made.name} is neither a primitive nor a function of "
                      "cytape.autograd.numpy or scipy: its calls ignore the rule", stacklevel=5)
    return made


def _primitive_of(fun):
    return fun if isinstance(fun, boxes.primitive) else _replacing(fun)


def defvjp_argnums(fun, vjpmaker, _makers=None):
    """Set the rule of reverse mode of a primitive, for any arguments together.

    Parameters
    ----------
    fun : primitive
        Or a function of ``cytape.autograd.numpy`` or `scipy`: a primitive takes its place there.
    vjpmaker : callable
        Called with a tuple of numbers of arguments, the result, the arguments and the keywords;
        returns a function of the result's gradient, of which it returns one per number.
    """
    _primitive_of(fun).set_vjps(vjpmaker, _makers)


def defvjp_argnum(fun, vjpmaker):
    """Set the rule of reverse mode of a primitive, for one argument at a time.

    Parameters
    ----------
    fun : primitive
    vjpmaker : callable
        Called with the number of an argument, the result, the arguments and the keywords; returns
        a function from the result's gradient to the argument's.
    """
    def vjp_argnums(argnums, *call):
        vjps = [vjpmaker(argnum, *call) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, vjp_argnums)


def _by_argnum(fun, kind, makers, argnums):
    """Return rules by the numbers of the arguments."""
    rules = dict(zip(count() if argnums is None else argnums, makers, strict=False))
    for maker in makers:
        if not (maker is None or callable(maker) or maker == "same" and kind == "JVP"):
            raise TypeError(f"Bad {kind} '{maker}' for '{fun.__name__}'")
    return rules


def _rule(fun, kind, rules, argnum):
    try:
        return rules[argnum]
    except KeyError:
        raise NotImplementedError(
            f"{kind} of {fun.__name__} wrt argnums {argnum} not defined") from None


def defvjp(fun, *vjpmakers, argnums=None):
    """Set the rules of reverse mode of a primitive, one per argument.

    Parameters
    ----------
    fun : primitive
    *vjpmakers : callable or None
        Each is called with the result and all arguments of the function; it returns a function from
        the result's gradient to the argument's. None: that gradient is zero.
    argnums : sequence of int, optional
        Numbers of the arguments that the rules are for; by default the first ones.

    Examples
    --------
    >>> from cytape.autograd.core import defvjp, make_vjp, primitive
    >>> @primitive
    ... def product(x, y):
    ...     return x * y
    >>> defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)
    >>> vjp, value = make_vjp(lambda y: product(2.0, y), 3.0)
    >>> float(value), float(vjp(1.0))
    (6.0, 2.0)
    """
    rules = _by_argnum(fun, "VJP", vjpmakers, argnums)

    def vjp_argnums(argnums, ans, args, kwargs):
        makers = [_rule(fun, "VJP", rules, argnum) for argnum in argnums]
        vjps = [maker and maker(ans, *args, **kwargs) for maker in makers]
        return lambda g: [vjp and vjp(g) for vjp in vjps]

    defvjp_argnums(fun, vjp_argnums, rules)


def defjvp_argnums(fun, jvpmaker):
    """Set the rule of forward mode of a primitive, for any arguments together.

    Parameters
    ----------
    fun : primitive
        Without such a rule forward mode transposes that of reverse mode.
    jvpmaker : callable
        Called with a tuple of numbers of arguments, their tangents, the result, the arguments and
        the keywords; returns the tangent of the result.
    """
    _primitive_of(fun).jvps = jvpmaker


def defjvp_argnum(fun, jvpmaker):
    """Set the rule of forward mode of a primitive, for one argument at a time.

    Parameters
    ----------
    fun : primitive
    jvpmaker : callable
        Called with the number of an argument, its tangent, the result, the arguments and the
        keywords; returns the tangent of the result.
    """
    def jvp_argnums(argnums, gs, *call):
        return sum_outgrads(
            jvpmaker(argnum, g, *call) for argnum, g in zip(argnums, gs, strict=True))

    defjvp_argnums(fun, jvp_argnums)


def defjvp(fun, *jvpmakers, argnums=None):
    """Set the rules of forward mode of a primitive, one per argument.

    Parameters
    ----------
    fun : primitive
    *jvpmakers : callable, "same" or None
        Each is called with the argument's tangent, the result and all arguments of the function; it
        returns the tangent of the result. "same": the function is linear in this argument. None:
        that tangent is zero.
    argnums : sequence of int, optional
        Numbers of the arguments that the rules are for; by default the first ones.
    """
    rules = _by_argnum(fun, "JVP", jvpmakers, argnums)

    def jvp_argnum(argnum, g, ans, args, kwargs):
        rule = _rule(fun, "JVP", rules, argnum)
        if rule is None:
            return vspace(ans).zeros()
        if rule == "same":
            return fun(*args[:argnum], g, *args[argnum + 1:], **kwargs)
        return rule(g, ans, *args, **kwargs)

    defjvp_argnum(fun, jvp_argnum)


def def_linear(fun):
    """Say that a primitive is linear in each argument, for forward mode."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(
        *args[:argnum], g, *args[argnum + 1:], **kwargs))


# ---- vector spaces

VSpace.register(SparseObject, lambda x: x.vs)


def _identity(argnums, *call):
    return lambda g: [g for _ in argnums]


defvjp_argnums(_same, _identity)
for _fun in (VSpace.add, VSpace.mut_add):
    defvjp_argnums(_fun, _identity)
defvjp(
    VSpace.inner_prod,
    None,
    lambda ans, vs, x, y: lambda g: vs.covector(vs.scalar_mul(y, g)),
    lambda ans, vs, x, y: lambda g: vs.covector(vs.scalar_mul(x, g)),
)
defvjp(VSpace.covector, None, lambda ans, vs, x: lambda g: vs.covector(g))
defvjp(
    VSpace.scalar_mul,
    None,
    lambda ans, vs, x, a: lambda g: vs.covector(vs.scalar_mul(vs.covector(g), a)),
    lambda ans, vs, x, a: lambda g: vs.inner_prod(g, vs.covector(x)),
)

# ---- methods that autograd deprecated


class primitive(boxes.primitive):  # noqa: D101
    __doc__ = boxes.primitive.__doc__

    def _add_rule(self, method, argnum, maker):
        if method != "defgrad":
            warnings.warn(f"The {method} method is deprecated: use autograd.extend", stacklevel=3)
        rules = self.__dict__.setdefault("_rules", {})
        rules[argnum] = maker
        defvjp(self, *rules.values(), argnums=list(rules))

    def defvjp(self, vjpmaker, argnum=0):
        """Set a rule of reverse mode; deprecated, see `cytape.autograd.extend.defvjp`."""
        self._add_rule("defvjp", argnum, lambda ans, *args, **kwargs: lambda g: vjpmaker(
            g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs))

    def defvjp_is_zero(self, argnums=(0,)):
        """Set derivatives to zero; deprecated, see `cytape.autograd.extend.defvjp`."""
        for argnum in argnums:
            self._add_rule("defvjp_is_zero", argnum, None)

    def defgrad(self, gradfun, argnum=0):
        """Set a rule of reverse mode, as ``defvjp``."""
        self._add_rule("defgrad", argnum, gradfun)
