"""Ops that call Python functions, and how it is found out what these return."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.ops.python.python_ops import (
    PythonCall,
    attempted,
    checked_results,
    described,
    linear_transpose,
    specs_by_example,
)
from tests.cases import each

FLOATS = cytape.Spec.of((2, 3), float)


def test_results_are_checked_and_copied():
    array = np.ones((2, 3))
    [result] = checked_results("f", [array], [FLOATS])
    array[:] = 5.0
    assert result.tolist() == np.ones((2, 3)).tolist()
    open_spec = cytape.Spec.of((None, 3), float)
    assert checked_results("f", [np.ones((7, 3), ">f8")], [open_spec])[0].dtype.isnative
    assert checked_results("f", [2], [cytape.Spec.of((), np.float32)])[0].dtype == np.float32
    for wrong, spec in (
        (np.ones((3, 2)), FLOATS), (np.ones((7, 4)), open_spec), (np.ones(3), open_spec),
        (np.ones((2, 3), int), FLOATS), (0.5, cytape.Spec.of((), int)),
        (1j, cytape.Spec.of((), float)), (True, cytape.Spec.of((), int)),
    ):
        with pytest.raises(ValueError, match="result 1 of f has the shape"):
            checked_results("f", [np.ones((2, 3)), wrong], [FLOATS, spec])


def test_specs_are_described_without_what_they_belong_to():
    with cytape.Graph().as_default() as graph:
        p = graph.placeholder("float64", (None, 3))
    assert described(p.spec) == ((None, 3), np.float64)
    assert type(described(p.spec)[0]) is tuple
    assert described(graph.placeholder("int8").spec) == (None, np.int8)


# ---- examples


@each("function", [
    np.linalg.inv, np.linalg.cholesky, np.linalg.det, np.sqrt, np.log, np.arccos,
    np.linalg.eigvalsh, np.linalg.svd, lambda x: np.linalg.solve(x, x[..., 0:1])])
@each("shape", [(3, 3), (2, 3, 3), (None, None), (5, None, None)])
def test_made_up_matrices_suit_most_functions(function, shape):
    def called(x):
        with np.errstate(all="raise"):
            return tuple(np.asarray(y) for y in function(x.numpy())) if (
                function is np.linalg.svd) else function(x.numpy())

    structure, found = specs_by_example("f", called, [cytape.Spec.of(shape, float)])
    example = called(cytape.constant(np.broadcast_to(np.eye(3) + 1.0, [n or 3 for n in shape]) / 9))
    leaves = example if isinstance(example, tuple) else [example]
    assert len(leaves) == len(found)
    for spec, leaf in zip(found, leaves, strict=True):
        assert spec.dtype == leaf.dtype
        assert len(spec.shape) == leaf.ndim
        for extent, expected in zip(spec.shape, leaf.shape, strict=True):
            assert extent in (None, expected)
            assert (extent is None) <= (None in shape)


def test_structures_and_dtypes_of_examples():
    seen = []

    def f(x, n, b, z):
        seen.append((x.numpy(), n.numpy(), b.numpy(), z.dtype))
        return {"y": [x.numpy()[:, :2]], "n": 3, "sum": np.float32(x.numpy().sum())}

    specs = [cytape.Spec.of((None, 3), np.float32), cytape.Spec.of((2,), int),
             cytape.Spec.of((), bool), cytape.Spec.of((2, 2), complex)]
    structure, found = specs_by_example("f", f, specs)
    assert list(structure) == ["y", "n", "sum"]
    assert [(spec.shape, spec.dtype.name) for spec in found] == [
        ((), "int64"), ((), "float32"), ((None, 2), "float32")]
    for x, n, b, dtype in seen:
        assert x.dtype == np.float32
        assert 0 < x.min() <= x.max() < 1
        assert (n.tolist(), bool(b), dtype) == ([1, 1], True, complex)
    assert len(seen) == 3


@each("returned", [
    lambda x: [x[i] for i in range(min(3, len(x)))],
    lambda x: {str(i): x[i] for i in range(min(3, len(x)))},
    lambda x: x if len(x) < 3 else [x, x, x], lambda x: [x, x] if len(x) < 3 else [x, [x, x]]])
def test_an_example_may_be_too_small_for_all_results(returned):
    _, specs = specs_by_example("f", returned, [cytape.Spec.of((None,), float)])
    assert len(specs) == 3


@each("returned", [
    lambda x: [x[i] for i in range(len(x))], lambda x: [x] if len(x) < 30 else (x,),
    lambda x: {str(len(x)): x}])
def test_results_whose_number_is_not_known_say_what_to_do(returned):
    with pytest.raises(SymbolicTensorError, match="numpy_function.*another structure for other"):
        specs_by_example("f", returned, [cytape.Spec.of((None,), float)])


def test_examples_that_fail_say_what_to_do():
    def fails(x):
        raise KeyError("no such thing")

    with pytest.raises(SymbolicTensorError, match="numpy_function.*KeyError: 'no such thing'"):
        specs_by_example("f", fails, [FLOATS])
    with pytest.raises(SymbolicTensorError, match="number of axes of an argument is not known"):
        specs_by_example("f", fails, [cytape.Graph().placeholder("float64").spec])
    with cytape.Graph().as_default() as graph:
        w = graph.placeholder("float64", ())
    with pytest.raises(SymbolicTensorError, match="a tensor of the graph that is not among its"):
        specs_by_example("f", lambda x: x * w, [FLOATS])


def test_ranks_that_differ_are_not_known():
    def f(x):
        return np.ones((2,) * (1 + x.shape[0] % 24 // 12))

    _, [spec] = specs_by_example("f", f, [cytape.Spec.of((None,), float)])
    assert spec.shape is None


def test_attempts_that_need_values_leave_nothing_that_runs():
    v = cytape.Variable(1.0)
    graph = cytape.Graph()
    with graph.as_default():
        p = graph.placeholder("float64", ())

        def f():
            v.assign_add(p)
            return p.numpy()

        before = list(graph.stateful)
        assert attempted(graph, f) is NotImplemented
        assert graph.stateful == before
        assert attempted(graph, lambda: 5) == 5
        with pytest.raises(KeyError):
            attempted(graph, lambda: {}["missing"])


# ---- derivatives


def test_transposition():
    x = cytape.constant([1.0, 2.0, 3.0])
    specs = [x.spec, cytape.Spec.of((), int), cytape.Spec.of((), float)]

    def linear(args):
        a, none, b = args
        assert none is None
        return a * x, None, cnp.sum(a) + b

    found = linear_transpose(linear, specs, [x, x, cytape.constant(10.0)])
    assert found[0].numpy().tolist() == [11.0, 14.0, 19.0]
    assert (found[1], float(found[2])) == (None, 10.0)
    assert linear_transpose(linear, specs, [None, None, None])[0] is None


def test_transposition_of_what_left_cytape():
    x = cytape.constant([1.0, 2.0])
    foreign = [x.spec]
    with pytest.raises(DetachedError, match="left"):
        linear_transpose(lambda args: [cytape.constant(args[0].numpy())], foreign, [x], "it left")
    zero = cytape.constant(np.zeros(2))
    assert linear_transpose(lambda args: [zero], foreign, [x], "it left") == [None]
    assert linear_transpose(lambda args: [cytape.constant(args[0].numpy())], foreign, [x]) == [None]


def test_a_call_that_does_nothing():
    call = PythonCall()
    for method, args in (
        (call.run, ()), (call.result_specs, ([],)), (call.vjp, ([], [], None)),
        (call.jvp, ([], [], None)),
    ):
        with pytest.raises(NotImplementedError):
            method(*args)


@each("method", ["assign", "assign_add", "assign_sub"])
def test_trying_out_does_not_change_variables(method):
    v, others = cytape.Variable(1.0), cytape.Variable([1.0, 1.0])

    def leaves(x):
        getattr(v, method)(5.0)
        return cytape.constant(x.numpy())

    with pytest.raises(SymbolicTensorError, match=r"specs=.*made up"):
        specs_by_example("leaves", leaves, [FLOATS])
    with pytest.raises(SymbolicTensorError, match="made up"):
        specs_by_example("by a function", cytape.function(
            lambda x: others.assign(x[0, :2] * 7.0)), [FLOATS])
    assert (v.item(), others.tolist()) == (1.0, [1.0, 1.0])
    getattr(v, method)(5.0)
    assert v.item() != 1.0


def made_meanwhile(x):
    count = cytape.Variable(0.0, trainable=False)
    array = x.numpy()
    for _ in range(3):
        count.assign_add(1.0)
    count.assign(count * 2.0)
    return cytape.constant(array * count.item())


def test_variables_that_are_part_of_what_is_tried_out_may_change():
    assert specs_by_example("f", made_meanwhile, [FLOATS])[1][0].shape == (2, 3)
    f = cytape.custom_gradient(
        lambda x: (made_meanwhile(cytape.stop_gradient(x)), lambda dy: 6.0 * dy))
    traced = cytape.function(lambda x: f(x))
    branch = cytape.function(lambda x: cytape.cond(x > 0, lambda: f(x), lambda: x * 1.0))
    for x in 2.0, 2.0, np.float32(2.0):
        for call in f, traced, branch, cytape.function(traced):
            assert call(cytape.constant(x)).numpy() == 12.0
            assert cytape.grad(call)(x) == 6.0
    assert traced.experimental_get_tracing_count() == 2

    kept = []

    def keeping(x):
        kept.append(cytape.Variable(0.0))
        kept[0].assign(1.0)  # another call's from the second on
        return cytape.constant(x.numpy())

    with pytest.raises(SymbolicTensorError, match="made up"):
        specs_by_example("f", keeping, [cytape.Spec.of((None,), float)])


def test_trials_within_trials():
    v = cytape.Variable(1.0)

    def outer(x):
        own = cytape.Variable(0.0)
        own.assign(1.0)
        for variable in own, v:
            with pytest.raises(SymbolicTensorError, match="made up"):
                specs_by_example("f", lambda x, v=variable: v.assign(x.numpy().sum()), [FLOATS])
        specs_by_example("f", made_meanwhile, [FLOATS])
        own.assign(2.0)
        with pytest.raises(RuntimeError, match="made up"):
            v.assign(2.0)
        return x

    specs_by_example("f", outer, [FLOATS])
    assert v.item() == 1.0
    v.assign(2.0)


@each("make", [
    lambda rule: cytape.custom_gradient(rule),
    lambda rule: cytape.custom_jvp(lambda x: rule(x)[0])])
def test_tracing_does_not_change_variables(make):
    seen = cytape.Variable([7.0, 7.0])

    def rule(x):
        seen.assign(x.numpy() if isinstance(x, cytape.Tensor) else x)
        return cytape.constant(np.array(x)), lambda g: g

    f = make(lambda x: rule(cytape.stop_gradient(x)))
    if hasattr(f, "defjvp"):
        f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with pytest.raises(SymbolicTensorError, match="made up"):
        cytape.function(f)(np.ones(2))
    assert seen.tolist() == [7.0, 7.0]


def test_extents_that_are_bounded_are_not_known():
    rows = cytape.Spec.of((None, 3), float)
    for function, shape in (
        (lambda x: x[:5], (None, 3)), (lambda x: x[0], (3,)), (lambda x: x[:, :2], (None, 2)),
        (lambda x: cytape.constant(x.numpy()[10]), (3,)),  # fails with few rows
    ):
        [spec] = specs_by_example("f", function, [rows])[1]
        assert spec.shape == shape
    structure, [a, b] = specs_by_example("f", lambda x: {"a": x[:30], "b": 1.0}, [rows])
    assert (a.shape, b.shape, structure["a"].shape) == ((None, 3), (), (24, 3))
