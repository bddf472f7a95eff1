"""Recursive linear filters along an axis: `lfilter`, `sosfilt`, `filtfilt` and their kin.

The filter ``a * y = b * x`` (convolutions) is differentiated as it is: ``a * dy = b * dx + db * x -
da * y``. So tangents come from the same filter, and gradients from the filter that runs backwards
(Giles, "Collected matrix derivative results" (2008), by the argument for linear systems).
"""

from typing import Any

import numpy as np
import scipy.signal as signal
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import is_tensor, operand, values_of
from cytape.ops.constants import zeros_like
from cytape.ops.cumulative import cumsum
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, multilinear
from cytape.ops.joining import concatenate, stack
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import flip, index_along
from cytape.ops.reductions import sum
from cytape.ops.shaping import moveaxis, ndim, reshape
from cytape.ops.signals.filter_products import fir_op, lags_op
from cytape.ops.submodules.cut_or_pad import cut_or_pad_op
from cytape.ops.submodules.least_squares import lstsq
from cytape.ops.submodules.matrix_parts import real_dtype, sum_of
from cytape.tensor.values.spec import spec_like

__all__ = [
    "filtfilt", "lfilter", "lfilter_zi", "sosfilt", "sosfilt_zi", "sosfiltfilt"]


def _part(x, axis, start, stop):
    return x[index_along(axis, slice(start, stop))]


def _resized(x, like, axis, n=None):
    """Return the first elements of x, followed by zeros, in the length of `like`, or n of them."""
    if n is None:
        longer = concatenate([x, zeros_like(like)], axis)
        return _part(longer, axis, None, -x.shape[axis] or None)
    shape = list(like.shape)
    shape[axis] = n
    longer = concatenate([x, np.zeros(shape, x.dtype)], axis)
    return _part(longer, axis, None, n)


def _first_coefficient(b):
    return np.ones(1, real_dtype(b.dtype))


# -- one filter ------------------------------------------------------------------------------------


def _lfilter(b, a, x, *zi, axis):
    return signal.lfilter(b, a, x, axis, *zi)[0] if zi else signal.lfilter(b, a, x, axis)


def _lfilter_vjp(op, g):
    axis, zi = op.attrs["axis"], op.inputs[3:]
    b, a, x = map(conj_if_complex, op.inputs[:3])
    back = flip(g, axis)
    if not any((*op.needs[:2], *op.needs[3:])):
        return (None, None, flip(lfilter_op(b, a, back, axis=axis), axis), *[None] * len(zi))
    if None in (b.shape[0], a.shape[0], *[each.shape[axis] for each in zi]):
        return NotImplemented
    back = lfilter_op(_first_coefficient(b), a, back, axis=axis)
    into = flip(back, axis)  # the gradient in b * x
    n_b, n_a = b.shape[0], a.shape[0]
    ga = -lags_op(into, conj_if_complex(op.outputs[0]), axis=axis, n_lags=n_a)
    gb = lags_op(into, x, axis=axis, n_lags=n_b)
    gx = flip(fir_op(b, back, axis=axis), axis)
    if not zi:
        return gb, ga, gx
    first = _resized(into, zi[0], axis, zi[0].shape[axis])
    of_first = reshape(sum(first * conj_if_complex(zi[0])), (1,))
    return gb, ga + cut_or_pad_op(of_first, axis=0, n=n_a), gx, first * a[0]


def _lfilter_jvp(op, tb, ta, tx, *tzi):
    axis, (b, a, x, *zi), y = op.attrs["axis"], op.inputs, op.outputs[0]
    changes = []
    if tb is not None:
        changes.append(fir_op(tb, x, axis=axis))
    if ta is not None:
        changes.append(-fir_op(ta, y, axis=axis))
        if zi:
            changes.append(ta[0] * _resized(zi[0], x, axis))
    if tzi and tzi[0] is not None:
        changes.append(a[0] * _resized(tzi[0], x, axis))
    terms = [None if tx is None else lfilter_op(b, a, tx, axis=axis)]
    if changes:
        terms.append(lfilter_op(_first_coefficient(b), a, sum_of(changes), axis=axis))
    return sum_of(terms)


def _in_batch(call):
    """Filter all members at once if they share the coefficients."""
    if call.mapped[0] or call.mapped[1]:
        return NotImplemented
    inputs = list(call.inputs)
    for place in range(2, len(inputs)):
        inputs[place] = call.inputs[place] if call.mapped[place] else broadcast_to(
            call.inputs[place], (call.extent, *call.input_specs[place].shape))
    return call.again(inputs, axis=call.attrs["axis"] + 1)


lfilter_op = general(
    "ScipySignalFilter", _lfilter, vjp=_lfilter_vjp, jvp=_lfilter_jvp, saved_outputs=(0,),
    optional_tangents=(0, 1, 2, 3),
    shape_rule=lambda b, a, x, *zi, axis: spec_like(
        x, np.result_type(*[each.dtype for each in (b, a, x, *zi)])),
    batch=_in_batch)


def _final_state(b, a, x, y, zi, axis):
    """Return the state after the last sample: what is left of the convolutions."""
    n, n_states = x.shape[axis], zi.shape[axis]
    padding = np.zeros([n_states if i == axis else m for i, m in enumerate(zi.shape)], zi.dtype)
    parts = []
    for c, signals in ((b, x), (a, y)):
        tail = _part(concatenate([padding, _part(signals, axis, -n_states, None)], axis),
                     axis, -n_states, None)
        tail = concatenate([tail, padding], axis)
        parts.append(_part(fir_op(c, tail, axis=axis), axis, n_states, None))
    state = (parts[0] - parts[1]) / a[0]
    if n is None or n < n_states:
        state = state + _part(concatenate([zi, zeros_like(x)], axis), axis, -n_states, None)
    return state


@numpy_function(signal.lfilter, "b", "a", "x", "zi")
def lfilter(b, a, x, axis=-1, zi=None) -> Any:
    """Filter signals along an axis, as `scipy.signal.lfilter`.

    Derivatives in the coefficients, the signal and the initial state.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import lfilter
    >>> cytape.grad(lambda a: lfilter([1.0], [1.0, a], np.ones(3))[-1])(-0.5)
    np.float64(-2.0)
    """
    b, a, x, zi = together(*[None if each is None else operand(each) for each in (b, a, x, zi)])
    b, a = (reshape(each, (1,)) if ndim(each) == 0 else each for each in (b, a))
    for name, each in (("b", b), ("a", a)):
        if ndim(each) != 1 or each.shape[0] == 0:
            raise ValueError(f"Parameter {name} is not a non-empty 1d array, since "
                             f"{name}.shape={each.shape}!")
    dtype = np.result_type(*[each.dtype for each in (b, a, x, zi) if each is not None])
    if dtype.char not in "fdgFDG":  # SciPy raises its error
        signal.lfilter(*np.ones((3, 1), dtype))
    axis = normalize_axis_index(axis, ndim(x))
    if zi is None:
        return lfilter_op(b, a, x, axis=axis)
    if b.shape[0] is None or a.shape[0] is None:
        raise SymbolicTensorError(
            "lfilter with a state needs to know the numbers of coefficients: give the placeholders "
            "shapes, or reshape the tensors to known ones")
    n_states = max(b.shape[0], a.shape[0]) - 1
    expected = tuple([n_states if i == axis else n for i, n in enumerate(x.shape)])
    if ndim(zi) != len(expected) or any(
            n is not None and m is not None and m != n and (m != 1 or i == axis)
            for i, (n, m) in enumerate(zip(expected, zi.shape, strict=True))):
        raise ValueError(
            f"Unexpected shape for parameter zi: expected {expected}, found {zi.shape}.")
    if zi.shape != expected:
        zi = broadcast_to(zi, expected)
    if not n_states:
        return lfilter_op(b, a, x, axis=axis), zi
    y = lfilter_op(b, a, x, zi, axis=axis)
    return y, _final_state(b, a, x, y, zi, axis)


@numpy_function(signal.lfilter_zi, "b", "a")
def lfilter_zi(b, a) -> Any:
    """Return the state of a filter after a long step, as `scipy.signal.lfilter_zi`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import lfilter_zi
    >>> cytape.grad(lambda b: lfilter_zi(b, [1.0, -0.5])[0])(np.array([1.0, 0.0]))
    array([1., 2.])
    """
    b, a = together(operand(b), operand(a))
    for name, each in (("Numerator", b), ("Denominator", a)):
        if ndim(each) != 1:
            raise ValueError(f"{name} b must be 1-D." if each is b else f"{name} a must be 1-D.")
    values = values_of(a)
    if values is not None and values[:1] == 0 and values.any():  # leading zeros do not count
        a = a[np.flatnonzero(values)[0]:]
    n = max(b.shape[0], a.shape[0])
    b, a = (cut_or_pad_op(each, axis=0, n=n) / a[0] for each in (b, a))
    steady = sum(b) / sum(a)
    # Each state is what the coefficients behind it have left of a constant signal.
    return flip(cumsum(flip(b - a * steady, 0)), 0)[1:]


# -- sections of second order ----------------------------------------------------------------------


sosfilt_op = multilinear(
    "ScipySignalSections",
    lambda sos, x, axis: signal.sosfilt(np.array(sos, order="C"), x, axis), None,
    lambda op, sos, g: flip(sosfilt_op(
        sos, flip(g, op.attrs["axis"]), axis=op.attrs["axis"]), op.attrs["axis"]),
    shape_rule=lambda sos, x, axis: spec_like(x, np.result_type(sos.dtype, x.dtype)),
    batch=lambda call: NotImplemented if call.mapped[0] else call.again(
        call.inputs, axis=call.attrs["axis"] + 1))


def _checked_sections(sos):
    """Return the coefficients as a matrix, or raise SciPy's errors."""
    sos = operand(sos)
    if ndim(sos) != 2 or sos.shape[1] != 6:
        signal.sosfilt(np.zeros(sos.shape), np.zeros(1))
    values = values_of(sos)
    if values is not None:
        signal.sosfilt(np.array(values, order="C"), np.zeros(1))
    return sos


@numpy_function(signal.sosfilt, "sos", "x", "zi")
def sosfilt(sos, x, axis=-1, zi=None) -> Any:
    """Filter signals by sections of second order, as `scipy.signal.sosfilt`.

    Derivatives in the coefficients, the signal and the initial state. If the coefficients or the
    state are tensors, the sections are filters of their own.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import sosfilt
    >>> sos = [[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]
    >>> cytape.grad(lambda x: sosfilt(sos, x)[-1])(np.ones(3))
    array([0.25, 0.5 , 1.  ])
    """
    sos, x = together(_checked_sections(sos), operand(x))
    axis = normalize_axis_index(axis, ndim(x))
    if zi is None and not is_tensor(sos):
        return sosfilt_op(sos, x, axis=axis)
    states = []
    if zi is not None:
        sos, x, zi = together(sos, x, operand(zi))
        expected = (sos.shape[0], *[2 if i == axis else n for i, n in enumerate(x.shape)])
        if zi.shape != expected:
            raise ValueError(
                f"Invalid zi shape. With axis={axis}, an input with shape {x.shape}, and an sos "
                f"array with {sos.shape[0]} sections, zi must have shape {expected}, got "
                f"{zi.shape}.")
    for i in range(sos.shape[0]):
        section = sos[i]
        if zi is None:
            x = lfilter_op(section[:3], section[3:], x, axis=axis)
        else:
            x, state = lfilter(section[:3], section[3:], x, axis, zi[i])
            states.append(state)
    return x if zi is None else (x, stack(states))


@numpy_function(signal.sosfilt_zi, "sos")
def sosfilt_zi(sos) -> Any:
    """Return the states of sections after a long step, as `scipy.signal.sosfilt_zi`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import sosfilt_zi
    >>> sosfilt_zi(cytape.constant([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])).numpy()
    array([[1., 0.]])
    """
    sos, gain, states = _checked_sections(sos), 1.0, []
    for i in range(sos.shape[0]):
        b, a = sos[i][:3], sos[i][3:]
        states.append(gain * lfilter_zi(b, a))
        gain = gain * sum(b) / sum(a)
    return stack(states)


# -- forward and backward --------------------------------------------------------------------------


def _both_ways(x, axis, padtype, padlen, n_taps, run, gain):
    """Filter an extended signal forward and backward, each time from a steady state.

    In a steady state, the filter returns a constant times its gain for the frequency 0.
    """
    if padtype not in ("even", "odd", "constant", None):
        raise ValueError(f"Unknown value '{padtype}' given to padtype.  padtype must be 'even', "
                         "'odd', 'constant', or None.")
    edge = 0 if padtype is None else 3 * n_taps if padlen is None else padlen
    n = x.shape[axis]
    if n is None:
        raise SymbolicTensorError(
            "filters that run forward and backward need to know the length of the signal: give "
            "the placeholder a shape, or reshape the tensor to a known one")
    if n <= edge:
        raise ValueError(
            f"The length of the input vector x must be greater than padlen, which is {edge}.")
    if edge > 0:
        mode = {"constant": {"mode": "edge"}, "even": {"mode": "reflect"},
                "odd": {"mode": "reflect", "reflect_type": "odd"}}[padtype]
        x = np.pad(x, [(edge, edge) if i == axis else (0, 0) for i in range(x.ndim)], **mode)
    for _ in range(2):
        first = _part(x, axis, None, 1)
        x = flip(run(x - first) + gain * first, axis)
    return _part(x, axis, edge, edge + n)


def _by_gustafsson(b, a, x, irlen):
    """Filter both ways from the initial states for which the order of the ways does not matter.

    Gustafsson, "Determining the initial states in forward-backward filtering" (1996). Names are
    those of SciPy: `observed` is the output of each initial state.
    """
    order, n = max(b.shape[0], a.shape[0]) - 1, x.shape[-1]
    if order == 0:
        return (b[0] / a[0])**2 * x
    if n is None:
        raise SymbolicTensorError("filtfilt needs to know the length of the signal")
    m = n if irlen is None or n <= 2 * irlen else irlen
    state = np.eye(1, order)[0]
    first = lfilter(b, a, np.zeros(m), zi=state)[0]
    observed = stack([concatenate([np.zeros(k), first[:m - k]]) for k in range(order)], -1)
    back = flip(observed, 0)
    filtered = lfilter(b, a, back, 0)
    filtered_back = flip(filtered, 0)

    def combined(left, right):
        if m == n:
            return concatenate([left, right], 1)
        zeros = np.zeros((m, order))
        return concatenate([concatenate([left, zeros], 1), concatenate([zeros, right], 1)])

    def ends(y):
        return y if m == n else concatenate([y[..., :m], y[..., -m:]], -1)

    forward_first = flip(lfilter(b, a, flip(lfilter(b, a, x), -1)), -1)
    backward_first = lfilter(b, a, flip(lfilter(b, a, flip(x, -1)), -1))
    differences = ends(backward_first - forward_first)
    states = lstsq(combined(filtered_back - observed, back - filtered),
                   reshape(differences, (-1, differences.shape[-1])).T, rcond=None)[0]
    moved = reshape((combined(filtered_back, back) @ states).T, differences.shape)
    if m < n:
        middle = np.zeros((*x.shape[:-1], n - 2 * m))
        moved = concatenate([moved[..., :m], middle, moved[..., m:]], -1)
    return forward_first + moved


@numpy_function(signal.filtfilt, "b", "a", "x")
def filtfilt(b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None) -> Any:
    """Filter signals forward and backward, as `scipy.signal.filtfilt`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import filtfilt
    >>> cytape.grad(lambda x: np.sum(filtfilt([1.0], [1.0, -0.5], x)))(np.ones(9)).shape
    (9,)
    """
    if method not in ("pad", "gust"):
        raise ValueError("method must be 'pad' or 'gust'.")
    b, a, x = together(*map(operand, (b, a, x)))
    b, a = (reshape(each, (1,)) if ndim(each) == 0 else each for each in (b, a))
    if method == "gust":
        return moveaxis(_by_gustafsson(b, a, moveaxis(x, axis, -1), irlen), -1, axis)
    return _both_ways(
        x, normalize_axis_index(axis, ndim(x)), padtype, padlen, max(b.shape[0], a.shape[0]),
        lambda x: lfilter(b, a, x, axis), sum(b) / sum(a))


@numpy_function(signal.sosfiltfilt, "sos", "x")
def sosfiltfilt(sos, x, axis=-1, padtype="odd", padlen=None) -> Any:
    """Filter signals by sections forward and backward, as `scipy.signal.sosfiltfilt`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import sosfiltfilt
    >>> sos = [[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]
    >>> cytape.grad(lambda x: np.sum(sosfiltfilt(sos, x)))(np.ones(9)).shape
    (9,)
    """
    sos, x = together(_checked_sections(sos), operand(x))
    n_taps = 2 * sos.shape[0] + 1
    if padlen is None and padtype is not None:
        values = values_of(sos)
        if values is None:
            raise SymbolicTensorError(
                "sosfiltfilt counts the coefficients that are zero to choose padlen: give padlen")
        n_taps -= min(np.sum(values[:, 2] == 0), np.sum(values[:, 5] == 0))
    gain = np.prod(sum(sos[:, :3], 1) / sum(sos[:, 3:], 1))
    return _both_ways(x, normalize_axis_index(axis, ndim(x)), padtype, padlen, n_taps,
                      lambda x: sosfilt(sos, x, axis), gain)
