"""Elementwise ops: how they are called, and what they save."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.tensor.tensor import live_tensors, tensor_of
from tests.cases import each
from tests.ways import taped, watching

V3 = np.array([0.5, -1.0, 2.0])


# -- calling ---------------------------------------------------------------------------------------


def test_an_op_takes_a_dtype_in_a_graph():
    double = cytape.function(lambda x: np.add(x, x, dtype="float32"))
    y = double(cytape.constant(V3))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y.numpy(), 2 * V3)


def test_plain_arrays_are_left_to_numpy():
    out = np.zeros(3)
    assert cnp.add(V3, 1.0, out) is out
    assert cnp.sin(V3, out=out, where=V3 > 0) is out
    assert type(cnp.sin(0.5)) is np.float64
    assert cnp.add([1, 2], 3).dtype == np.int64
    with pytest.raises(TypeError, match="bogus"):
        cnp.sin(V3, bogus=1)


@each("call", [
    lambda f: f.add(cytape.constant(V3)), lambda f: f.add(cytape.constant(V3), V3, V3, V3),
    lambda f: f.sin(cytape.constant(V3), V3, V3), lambda f: f.sin(),
    lambda f: f.add(x1=cytape.constant(V3), x2=1.0),
], ids=["too few", "too many", "too many of one", "none", "by name"])
@each("module", [np, cnp])
def test_a_wrong_number_of_arguments_is_an_error_of_every_op(call, module):
    with pytest.raises(TypeError):
        call(module)


@each("arguments", [{"out": np.zeros(3)}, {"out": (np.zeros(3),)}, {"where": V3 > 0}, {"bogus": 1}])
def test_arguments_that_tensors_do_not_take_are_named(arguments):
    (name,), x = arguments, cytape.constant(V3)
    with cytape.GradientTape() as tape, pytest.raises(TypeError, match=name):
        tape.watch(x)
        cnp.add(x, 1.0, **arguments)


@each(module=[np, cnp], arguments=[
    {"casting": "unsafe"}, {"order": "F"}, {"subok": False}, {"dtype": np.float32},
    {"dtype": np.float16, "casting": "unsafe", "order": "K"}, {"casting": "no"}])
def test_casts_are_numpys(module, arguments):
    x, y = np.float64([1.3, 2.7, -0.1]), np.float64([2.1, 0.2, 1.0])
    expected = np.add(x, y, **arguments)
    for result in (module.add(cytape.constant(x), y, **arguments),
                   cytape.function(lambda x: module.add(x, y, **arguments))(x)):
        result = np.asarray(result)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@each("arguments", [{"out": None}, {"where": True}, {"dtype": None}])
def test_defaults_may_be_spelt_out(arguments):
    for function in (np.add, cnp.add):
        result = function(cytape.constant(V3), 1.0, **arguments)
        np.testing.assert_array_equal(result.numpy(), V3 + 1)


@each("function, args", [
    ("sin", (V3,)), ("add", (V3, V3)), ("add", (V3, 1)), ("multiply", (2.0, V3))])
def test_a_dtype_may_be_asked_for_and_is_differentiable(function, args):
    expected = getattr(np, function)(*args, dtype="float32")
    for module in (np, cnp):
        tensors = [cytape.constant(x) if isinstance(x, np.ndarray) else x for x in args]
        sources = [t for t in tensors if isinstance(t, cytape.Tensor)]
        with watching(sources) as tape:
            result = getattr(module, function)(*tensors, dtype="float32")
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result.numpy(), expected)
        assert all(g.dtype == np.float64 for g in tape.gradient(result, sources))


@each("other", [V3, [0.5, -1.0, 2.0], V3.tolist(), 2.0, 2, np.float32(2)])
def test_an_operand_that_is_no_tensor_is_taken_as_it_was_when_the_op_ran(other):
    x = cytape.constant(V3)
    before = np.array(other)
    tape, y = taped(lambda x: x * other, x)
    if isinstance(other, np.ndarray):
        other += 100
    elif isinstance(other, list):
        other[0] = 100.0
    try:
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), before * np.ones(3))
    finally:
        if isinstance(other, np.ndarray):
            other -= 100


BESIDE = {  # with an array beside a tensor: the op, and the tensor's gradient
    "t * a": (lambda t, a: t * a, lambda t, a: a), "a * t": (lambda t, a: a * t, lambda t, a: a),
    "t + a": (lambda t, a: t + a, lambda t, a: 1), "a - t": (lambda t, a: a - t, lambda t, a: -1),
    "t - a": (lambda t, a: t - a, lambda t, a: 1),
    "t / a": (lambda t, a: t / a, lambda t, a: 1 / a),
    "a / t": (lambda t, a: a / t, lambda t, a: -a / t**2),
    "a ** t": (lambda t, a: a**t, lambda t, a: a**t * np.log(a)),
    "t ** a": (lambda t, a: t**a, lambda t, a: a * t ** (a - 1)),
    "maximum": (cnp.maximum, lambda t, a: t >= a),
    "maximum, the array first": (lambda t, a: cnp.maximum(a, t), lambda t, a: t > a),
    "NumPy's function": (lambda t, a: np.multiply(a, t), lambda t, a: a),
    "hypot": (np.hypot, lambda t, a: t / np.hypot(t, a)),
    "arctan2": (lambda t, a: np.arctan2(a, t), lambda t, a: -a / (a * a + t * t)),
    "remainder": (lambda t, a: t % a, lambda t, a: 1),
}


@each("lay_out", [lambda a: a, np.asfortranarray, lambda a: a[::-1], lambda a:
                  a[:1], lambda a: a[..., :1], lambda a: a[0]],
      ids=["contiguous", "fortran", "backwards", "row", "column", "fewer axes"])
@each(beside=BESIDE, shape=[(1, 1), (2, 3), (20, 30), (80, 130)])
def test_an_array_beside_a_tensor_may_change_after_the_op(shape, beside, lay_out):
    function, derivative = BESIDE[beside]
    rng = np.random.default_rng(0)
    x = cytape.constant(rng.uniform(0.5, 2, shape))
    array = lay_out(rng.uniform(0.5, 2, shape))
    before = array.copy()
    with watching(x, persistent=True) as tape:
        y = function(x, array)
        array[...] = 77
        recorded = tape.gradient(y, x)
    expected = np.asarray(function(x.numpy(), before))
    array[...] = -5
    np.testing.assert_array_equal(y.numpy(), expected)
    slope = derivative(x.numpy(), before) * np.ones(shape)
    for gradient in (recorded, tape.gradient(y, x)):
        np.testing.assert_allclose(gradient.numpy(), slope, 1e-12, 1e-13)


@each("size", [3, 3000, 30_000])
def test_an_array_may_change_without_recorders(size):
    x, array = cytape.constant(np.ones(size)), np.ones(size)
    results = [x + array, array * x, x - array[::-1], cnp.maximum(array, x)]
    array[:] = 9
    for result, expected in zip(results, (2, 1, 0, 1), strict=True):
        np.testing.assert_array_equal(result.numpy(), np.full(size, expected))


@each("size", [3, 3000])
def test_all_tapes_see_an_array_as_it_was(size):
    x, y, array = cytape.constant(np.ones(size)), cytape.constant(np.ones(size)), np.full(size, 2.0)
    with cytape.GradientTape() as outer, cytape.GradientTape() as inner:
        inner.watch(x)
        z = x * array
        outer.watch([y, z])
        w = z * array + y * array
    array[:] = 100
    np.testing.assert_array_equal(inner.gradient(w, x).numpy(), np.full(size, 4.0))
    by_y, by_z = outer.gradient(w, [y, z])
    np.testing.assert_array_equal(by_y.numpy(), np.full(size, 2.0))
    np.testing.assert_array_equal(by_z.numpy(), np.full(size, 2.0))


@each("other", [
    np.ones(3, np.float32), np.ones(3, np.int64), np.ones(3, bool), np.ones(3, complex),
    np.ones(3, ">f8"), np.ones(3, np.longdouble), np.float64(2),
], ids=lambda a: f"{type(a).__name__} {a.dtype.str}")
def test_other_arrays_beside_a_tensor(other):
    x = cytape.constant(V3)
    for function in (lambda a, b: a * b, lambda a, b: b - a):
        expected = np.asarray(function(V3, np.asarray(other)))
        result = function(x, other)
        assert result.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(result.numpy(), expected)


# -- saved values of an entry ----------------------------------------------------------------------


def saved(function, n_inputs, watched=None):
    """Which inputs, and whether the output, are still there when all handles are gone."""
    arrays = [np.full(5000, 1.5) for _ in range(n_inputs)]
    inputs_alive = [weakref.ref(array) for array in arrays]
    tensors = [tensor_of(array) for array in arrays]
    arrays.clear()
    with watching(tensors if watched is None else [tensors[i] for i in watched]) as tape:
        y = function(*tensors)
        result = y.numpy()
        output_alive = weakref.ref(result if result.base is None else result.base)
        z = cnp.positive(y)
    del result, y
    tensors.clear()
    gc.collect()
    found = tuple(alive() is not None for alive in inputs_alive), output_alive() is not None
    del tape, z
    gc.collect()
    assert not any(alive() is not None for alive in [*inputs_alive, output_alive])
    return found


@each("function, n_inputs, inputs, output", [
    (cnp.add, 2, (False, False), False), (cnp.subtract, 2, (False, False), False),
    (cnp.negative, 1, (False,), False), (cnp.multiply, 2, (True, True), False),
    (cnp.divide, 2, (False, True), True), (cnp.exp, 1, (False,), True),
    (cnp.tanh, 1, (False,), True), (cnp.sin, 1, (True,), False), (cnp.square, 1, (True,), False),
    (cnp.floor, 1, (False,), False), (cnp.maximum, 2, (True, True), False),
    (lambda x: x * 2.0, 1, (False,), False), (lambda x: 2.0 / x, 1, (True,), True)])
def test_only_what_a_partial_reads_is_kept(function, n_inputs, inputs, output):
    assert saved(function, n_inputs) == (inputs, output)


@each("watched, inputs", [([0], (False, True)), ([1], (True, False))])
def test_only_what_the_partials_of_followed_inputs_read_is_kept(watched, inputs):
    assert saved(cnp.multiply, 2, watched) == (inputs, False)


def test_an_op_that_the_fallback_computes_keeps_all():
    """Its partial cannot be traced, so its reads are unknown."""
    op = ElementwiseOp("Untraced", np.sin, (lambda y, x: np.clip(np.cos(x), -1, 1),))
    assert saved(op, 1) == ((True,), True)


def test_nothing_is_kept_without_recorders():
    assert saved(cnp.multiply, 2, []) == ((False, False), False)
    x = cytape.constant(V3)
    tape = cytape.GradientTape()
    with tape:
        tape.watch(x)
    y = x * x
    assert tape.gradient(y, x) is None


def test_no_handle_is_kept():
    x = cytape.constant(V3)
    with watching(x) as tape:
        before = live_tensors()
        y = cnp.exp(x) * cnp.sin(x) / cnp.tanh(x)
        assert live_tensors() == before + 1
    expected = cytape.grad(lambda x: np.sum(cnp.exp(x) * cnp.sin(x) / cnp.tanh(x)))(V3)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected)


def test_all_tapes_that_follow_an_input_record_each_for_itself():
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    with cytape.GradientTape() as a, cytape.GradientTape() as b, cytape.GradientTape() as c:
        a.watch(x)
        b.watch(y)
        c.watch([x, y])
        z = x * y
    gradients = [tape.gradient(z, [x, y]) for tape in (a, b, c)]
    assert [[None if g is None else float(g) for g in row] for row in gradients] == [
        [3.0, None], [None, 2.0], [3.0, 2.0]]


def test_a_number_that_overflows_is_noticed_every_time():
    x = cytape.constant(np.ones(3, np.float32))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert np.isinf((x + 2e300).numpy()).all()
