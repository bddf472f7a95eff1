"""Ops with rules: what a rule sees, what an entry keeps, and ops that are a Python closure."""

import gc
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import cytape
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.op_kinds import general
from cytape.tensor.tensor import live_tensors, tensor_of
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.forward_mode import tangent_of
from tests.ways import taped, watching

V3 = np.array([0.5, -1.0, 2.0])


def run(op, *inputs, watch=None, recorded=False, **attrs):
    """Gradients of the sum of an op's outputs in its inputs, or those of them that are watched."""
    tensors = [cytape.constant(x) if isinstance(x, np.ndarray) else x for x in inputs]
    sources = tensors if watch is None else [tensors[i] for i in watch]
    with watching(sources, persistent=True) as tape:
        y = op(*tensors, **attrs)
        if recorded:
            return tape.gradient(y, sources)
    return tape.gradient(y, sources)


# -- results ---------------------------------------------------------------------------------------


class Pair(NamedTuple):
    first: object
    second: object


@each("container", [tuple, list, lambda pair: Pair(*pair)])
def test_several_outputs_come_in_the_container_of_the_forward_function(container):
    op = GeneralOp("Several", lambda x: container((x * 2, x * 3)), lambda op, g, h: 2 * g + 3 * h)
    plain, tensors = op(V3), op(cytape.constant(V3))
    assert type(plain) is type(tensors) is type(container((1, 2)))
    assert all(type(y) is cytape.Tensor for y in tensors)
    check_grads(op, [V3])


def test_the_forward_function_gets_arrays_that_it_cannot_change():
    def forward(x, y):
        assert type(x) is np.ndarray and not x.flags.writeable
        x += 1

    with pytest.raises(ValueError, match="read-only"):
        GeneralOp("Changes", forward)(cytape.constant(V3), V3)


@each("result", [2.5, np.float32(2.5), [1.0, 2.0], (), np.ones((2, 0)), True])
def test_any_numbers_are_a_result(result):
    op = GeneralOp("Any", lambda x: result)
    found = op(cytape.constant(V3))
    if isinstance(result, list | tuple):
        assert [float(y) for y in found] == list(result)
    else:
        np.testing.assert_array_equal(found.numpy(), result)
        assert found.dtype == np.asarray(result).dtype


def test_a_result_without_numbers_is_an_error():
    with pytest.raises(TypeError, match="object"):
        GeneralOp("None", lambda x: None)(cytape.constant(V3))


@each("size", [3, 5000])
def test_a_result_does_not_change_with_an_array_that_was_passed_in(size):
    op = GeneralOp("PassOn", lambda x, y: (x, y[:], y.T))
    array = np.ones(size)
    results = op(cytape.constant(1.0), array)
    array[:] = 7
    for result in results[1:]:
        np.testing.assert_array_equal(result.numpy(), np.ones(size))


def test_an_error_in_the_forward_function_records_nothing():
    def forward(x):
        raise ArithmeticError

    op = GeneralOp("Fails", forward)
    x = cytape.constant(V3)
    before = live_tensors()
    with watching(x) as tape:
        with pytest.raises(ArithmeticError):
            op(x)
        y = x * x
    assert live_tensors() == before + 1
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 2 * V3)


# -- saved values of an entry ----------------------------------------------------------------------


@each("saved_inputs, inputs", [(None, (True, True)), ((), (False, False)), ((1,), (False, True))])
@each("saved_outputs, outputs", [((), (False, False)), ((1,), (False, True))])
def test_only_what_is_declared_is_kept(saved_inputs, inputs, saved_outputs, outputs):
    op = GeneralOp("Keeps", lambda x, y: (x + y, x - y), lambda op, g, h: (g + h, g - h),
                   saved_inputs=saved_inputs, saved_outputs=saved_outputs)
    arrays = [np.ones(5000), np.ones(5000)]
    alive = [weakref.ref(array) for array in arrays]
    gc.collect()
    before = live_tensors()
    tensors = [tensor_of(array) for array in arrays]
    arrays.clear()
    with watching(tensors) as tape:
        results = op(*tensors)
        alive += [weakref.ref(y.numpy().base) for y in results]
        ends = [y * 1.0 for y in results]
    del results
    tensors.clear()
    gc.collect()
    assert tuple(ref() is not None for ref in alive) == inputs + outputs
    assert live_tensors() == before + 2
    del ends
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    del tape


def test_attributes_are_kept_as_long_as_the_entry():
    class Attribute:
        pass

    op = GeneralOp("Attributed", lambda x, note: x * 2, lambda op, g: 2 * g)
    x, note = cytape.constant(V3), Attribute()
    alive = weakref.ref(note)
    with watching(x) as tape:
        y = op(x, note=note)
    del note
    assert alive() is not None
    del y
    assert alive() is None
    del tape


@each("other", [V3.copy(), V3.tolist()])
def test_an_operand_that_is_no_tensor_is_taken_as_it_was_when_the_op_ran(other):
    op = GeneralOp("Multiply", np.multiply, lambda op, g: (g * op.inputs[1], g * op.inputs[0]))
    x = cytape.constant(V3)
    tape, y = taped(lambda x: op(x, other), x)
    other[0] = 100.0
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), V3)


@each("name, outputs", [("integer result", 1), ("nondifferentiable", 1.0)])
def test_ops_without_gradient_are_not_recorded(name, outputs):
    op = GeneralOp(name, lambda x: np.full(3, outputs), lambda op, g: g,
                   differentiable=name != "nondifferentiable")
    assert run(op, V3) == [None]


# -- gradients that fit ----------------------------------------------------------------------------


@each(
    "gradient, expected",
    [
        (lambda g: g, [1, 1, 1]), (lambda g: [2.0, 3.0, 4.0], [2, 3, 4]),
        (lambda g: np.int8([1, 2, 3]), [1, 2, 3]), (lambda g: np.array([1 + 5j, 2, 3]), [1, 2, 3]),
        (lambda g: cytape.constant([1, 2, 3]), [1, 2, 3]),
        (lambda g: cytape.Variable([1.0, 2.0, 3.0]), [1, 2, 3]), (lambda g: None, None)],
    ids=["same", "list", "integers", "complex", "tensor of integers", "variable", "none"])
@each("recorded", [False, True])
def test_a_gradient_gets_the_dtype_of_its_input(gradient, expected, recorded):
    op = GeneralOp("Converts", np.positive, lambda op, g: (gradient(g),))
    (found,) = run(op, V3.astype("float32"), recorded=recorded)
    if expected is None:
        assert found is None
    else:
        assert type(found) is cytape.Tensor
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.numpy(), expected)


def test_the_gradient_of_an_input_that_needs_none_is_not_looked_at():
    op = GeneralOp("Careless", np.multiply, lambda op, g: (g * op.inputs[1], "not a gradient"))
    np.testing.assert_array_equal(run(op, V3, V3, watch=[0])[0].numpy(), V3)


@each("recorded", [False, True])
def test_a_gradient_may_be_sparse(recorded):
    def vjp(op, g):
        return cytape.IndexedSlices(g[None, 0], cytape.constant([2]), op.input_specs[0].shape)

    op = GeneralOp("Sparse", lambda x: x[2:], vjp)
    (gradient,) = run(op, V3, recorded=recorded)
    assert isinstance(gradient, cytape.IndexedSlices)
    np.testing.assert_array_equal(gradient.to_tensor().numpy(), [0, 0, 1])
    (gradient,) = run(lambda x: op(x * 2.0), V3, recorded=recorded)
    np.testing.assert_array_equal(gradient.numpy(), [0, 0, 2])


# -- forward mode ----------------------------------------------------------------------------------


def test_a_jvp_rule_sees_inputs_outputs_and_attributes():
    calls = []

    def jvp(op, dx, dy):
        calls.append((op.type, op.attrs, op.needs, len(op.inputs), len(op.outputs)))
        return dx * op.inputs[1] * op.attrs["scale"] + 0 * op.outputs[0]

    op = GeneralOp("Jvp", lambda x, y, scale: x * y * scale, jvp=jvp, saved_inputs=())
    tangent = tangent_of(op, (V3, np.ones(3)), (V3, None), scale=2.0)
    assert calls == [("Jvp", {"scale": 2.0}, (True, True), 2, 1)]
    np.testing.assert_array_equal(tangent.numpy(), 2 * V3)


@each("optional", [(), (1,), range(5)])
def test_a_jvp_rule_gets_none_for_zeros_where_it_says_so(optional):
    received = []

    def jvp(op, dx, dy, dn):
        received.extend([dy, dn])
        return dx

    op = GeneralOp("Jvp", lambda x, y, n: x + 0.0, jvp=jvp, optional_tangents=optional)
    tangent_of(op, (V3, V3), (2 * V3[:2], None), (np.arange(2), None))
    if optional:
        assert received == [None, None]
    else:
        np.testing.assert_array_equal(received[0], np.zeros(2))
        assert received[1] is None


def test_a_linear_op_gets_zeros_for_missing_tangents():
    op = GeneralOp("Linear", lambda x, y: 2 * x - y, lambda op, g: (2 * g, -g), linear=True)
    x = cytape.constant(V3)
    np.testing.assert_array_equal(tangent_of(op, (x, x), (V3, None)).numpy(), 2 * V3)
    np.testing.assert_array_equal(tangent_of(op, (V3, None), (x, x)).numpy(), -V3)
    np.testing.assert_array_equal(tangent_of(op, (np.arange(3), None), (x, x)).numpy(), -V3)


def test_integers_beside_the_tangent_of_a_linear_op_stand_still():
    x = cytape.constant(V3)
    with cytape.ForwardAccumulator(x, cytape.constant(V3)) as accumulator:
        y = np.stack([x, cytape.constant([1, 2, 3])])
    np.testing.assert_array_equal(accumulator.jvp(y).numpy(), [V3, np.zeros(3)])


@each(view=[
    lambda base: base[::-1], lambda base: base, lambda base: base.reshape(2, 3)[::-1].T,
    lambda base: base[4::-2]], part=[slice(1, 3), slice(None, None, -1), slice(-1, None)])
def test_results_in_the_memory_of_an_array_do_not_change_with_it(view, part):
    op = GeneralOp("Part", lambda a, b: a[part])
    base = np.arange(6.0)
    y = op(view(base), cytape.constant(1.0))
    base[:] = 99.0
    np.testing.assert_array_equal(y, view(np.arange(6.0))[part])


@each("saved", [{"saved_inputs": (0, -1)}, {"saved_outputs": (-1,)}])
def test_saved_positions_are_not_counted_from_the_end(saved):
    with pytest.raises(ValueError, match=r"counted from 0, got .*-1"):
        GeneralOp("FromTheEnd", lambda x, y: x + y, **saved)


def test_a_forward_ufunc_with_core_dimensions_is_called_in_plans():
    dots = GeneralOp("Dots", np.vecdot, shape_rule=lambda x, y: cytape.Spec.of(
        x.shape[:-1], x.dtype))
    x = np.arange(12.0).reshape(4, 3)
    f = cytape.function(lambda x: dots(x, x))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), np.vecdot(x, x))


@each("with_rule", [False, True])
def test_lists_among_attributes_reach_rule_and_forward_function_of_a_graph_as_tuples(with_rule):
    met = []

    def note(*lists):
        met.append(lists)

    def forward(x, axes):
        note(axes)
        return x * 2.0

    def rule(x, axes):
        note(axes)
        return x

    def vjp(op, g):
        note(op.attrs["axes"])
        return 2 * g

    op = general(
        f"DeclaredListed{with_rule}", forward, vjp, shape_rule=rule if with_rule else None)
    traced = cytape.function(cytape.grad(lambda x: np.sum(op(x, axes=[0, [1]]))))
    for _ in range(2):
        np.testing.assert_array_equal(traced(np.ones(3)), np.full(3, 2.0))
    cytape.function(lambda x: op(x, axes=[0, [1]]))(np.ones(3))
    assert set(met) == {((0, (1,)),)}
