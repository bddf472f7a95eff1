"""Declaring ops: the kinds, the op table, and rules that come later."""

import gc
import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cytape
import cytape.graph
from cytape.errors import GraphFileError, InvalidGradientError, NotDifferentiableError
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.engine.op_kinds import OPS, elementwise, general, linear, nondifferentiable
from cytape.ops.kernels.partial_tracer import partials_of
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.forward_mode import followed, tangent_of
from tests.ops.op_families import SPECS
from tests.ways import gradients, tangent, taped, watching

V3 = np.array([0.5, -1.0, 2.0])


COUNTER = itertools.count()


@pytest.fixture
def name():
    """A name of its own for the op of a test, which stays in the op table."""
    return f"Declared{next(COUNTER)}"


def gradient(function, x, **arguments):
    (result,) = gradients(lambda x: function(x, **arguments), x)
    return None if result is None else result.numpy()


# -- kinds -----------------------------------------------------------------------------------------


def test_elementwise(name):
    op = elementwise(name, np.arctan2, lambda z, y, x: x / (x * x + y * y),
                     lambda z, y, x: -y / (x * x + y * y))
    check_grads(op, [V3, V3[:, None] + 3], order=2)
    assert (op.name, op.n_inputs, len(op.partials)) == (name, 2, 2)


def test_elementwise_of_a_function_that_is_no_ufunc(name):
    op = elementwise(name, lambda x: 1 / (1 + x**2), lambda y, x: -2 * x * y**2)
    check_grads(op, [V3], order=2)
    assert isinstance(op(V3), np.ndarray)


def test_elementwise_with_an_input_that_it_does_not_depend_on_differentiably(name):
    op = elementwise(name, np.copysign, lambda z, x, y: np.sign(x) * np.sign(y), None)
    x, y = cytape.constant(V3), cytape.constant(-V3)
    by_x, by_y = gradients(op, x, y)
    np.testing.assert_array_equal(by_x.numpy(), -np.ones(3))
    assert by_y is None


@pytest.mark.parametrize("forward, inputs", [
    (np.sum, [np.ones(3)]), (np.outer, [np.ones(3), np.ones(3)]), (np.ravel, [np.ones((2, 2))]),
    (lambda x, y: x, [np.ones(3), np.ones(2)])])
def test_elementwise_of_a_function_that_is_not_elementwise(name, forward, inputs):
    """It was a gradient of None, or one of a wrong shape."""
    op = elementwise(name, forward, *[lambda *_: 1.0 for _ in inputs])
    with pytest.raises(ValueError, match=f"{name}' is declared elementwise, .* as general"):
        op(*map(cytape.constant, inputs))


@pytest.mark.parametrize("ufunc, n_partials", [(np.matmul, 2), (np.modf, 1), (np.add, 1)])
def test_elementwise_of_another_kind_of_ufunc(name, ufunc, n_partials):
    """Its inner loop would be called with what it does not take."""
    with pytest.raises(ValueError, match=f"{name}' was given {n_partials} .* {ufunc.__name__} has"):
        elementwise(name, ufunc, *[lambda *_: 1.0] * n_partials)


def test_elementwise_with_partials_of_several_inputs_together(name):
    calls = []

    def together(z, x, y):
        calls.append((x, y))
        return 3 * x, 5 * y  # not the partials below, to tell them apart

    op = elementwise(
        name, lambda x, y: x * y, lambda z, x, y: y, lambda z, x, y: x, together=together)
    x, y = cytape.constant(V3), cytape.constant(V3[:1])
    assert [g.tolist() for g in gradients(op, x, y)] == [(3 * V3).tolist(), [15 * 0.5]]
    assert len(calls) == 1
    assert cytape.grad(lambda x: np.sum(op(x, y)))(x).tolist() == [0.5] * 3
    check_grads(lambda x: op(x, x), (x,), order=2, modes=["forward"])
    assert len(calls) == 1


def test_elementwise_has_at_most_four_inputs(name):
    partial = lambda y, *xs: 1  # noqa: E731
    op = elementwise(name, lambda a, b, c, d: a + b + c + d, *4 * [partial])
    assert gradient(lambda x: op(x, x, x, x), V3).tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(ValueError, match="4 inputs"):
        elementwise(name + "b", lambda *xs: sum(xs), *5 * [partial])
    assert name + "b" not in OPS


def test_linear(name):
    op = linear(name, lambda x, n: np.repeat(x, n),
                lambda op, g: g.reshape(-1, op.attrs["n"]).sum(1))
    check_grads(lambda x: op(x, n=2), [V3], order=2)
    np.testing.assert_array_equal(tangent_of(op, (V3, V3), n=2).numpy(), np.repeat(V3, 2))
    assert op.linear and op.saved_inputs == ()


def test_linear_in_several_inputs_together(name):
    op = linear(name, lambda x, y, scale: scale * (x - y),
                lambda op, g: (op.attrs["scale"] * g, -op.attrs["scale"] * g))
    check_grads(lambda x, y: op(x, y, scale=3.0), [V3, 2 * V3], order=2)
    tangent = tangent_of(op, (V3, None), (V3, V3), scale=3.0)
    np.testing.assert_array_equal(tangent.numpy(), -3 * V3)


def test_general(name):
    op = general(
        name, lambda x, y: np.outer(x, y),
        vjp=lambda op, g: (g @ op.inputs[1], op.inputs[0] @ g),
        jvp=lambda op, dx, dy: sum(
            np.outer(a, b) for a, b in [(dx, op.inputs[1]), (op.inputs[0], dy)]
            if a is not None and b is not None))
    check_grads(op, [V3, V3[:2]], order=2)
    np.testing.assert_array_equal(tangent_of(op, (V3, V3), (V3, None)).numpy(), np.outer(V3, V3))


def test_general_with_several_outputs(name):
    op = general(
        name, lambda x: (np.sin(x), np.cos(x)),
        vjp=lambda op, ds, dc: ds * op.outputs[1] - dc * op.outputs[0],
        jvp=lambda op, dx: (dx * op.outputs[1], -dx * op.outputs[0]),
        saved_inputs=(), saved_outputs=(0, 1))
    check_grads(op, [V3], order=2)
    assert isinstance(op(V3), tuple)
    sine, cosine = op(cytape.constant(V3))
    np.testing.assert_array_equal(cosine.numpy(), np.cos(V3))
    _, tangents = followed(op, [cytape.constant(V3)], [np.ones(3)])
    np.testing.assert_array_equal(tangents[1].numpy(), -np.sin(V3))


@pytest.mark.parametrize("optional", [(), (1,)])
def test_general_with_an_output_gradient_that_may_be_none(name, optional):
    received = []

    def vjp(op, first, second):
        received.append(second)
        return first

    op = general(name, lambda x: (x + 0.0, x * 2), vjp, optional_gradients=optional)
    assert gradient(lambda x: op(x)[0], V3).tolist() == [1.0, 1.0, 1.0]
    if optional:
        assert received == [None]
    else:
        np.testing.assert_array_equal(np.asarray(received[0]), np.zeros(3))


def test_nondifferentiable(name):
    op = nondifferentiable(name, np.floor)
    assert gradient(op, V3) is None
    assert tangent_of(op, (V3, V3)) is None
    np.testing.assert_array_equal(op(cytape.constant(V3)).numpy(), np.floor(V3))


@pytest.mark.parametrize("declare", [
    lambda name: elementwise(name, np.sin, lambda y, x: np.cos(x)),
    lambda name: linear(name, np.negative, lambda op, g: -g), lambda name: general(name, np.sin),
    lambda name: nondifferentiable(name, np.floor)])
def test_a_declaration_enters_the_table_under_its_name(name, declare):
    op = declare(name)
    assert OPS[name] is op
    assert op.name == name
    assert repr(op) == f"<op {name}>"
    with pytest.warns(UserWarning, match=f"an op named '{name}' was declared before") as caught:
        again = declare(name)
    assert caught[0].filename == __file__
    assert OPS[name] is again is not op


def test_recorded_calls_keep_their_declaration(name):
    def declared(factor):
        return general(name, lambda x: factor * x, vjp=lambda op, g: factor * g)

    graph = cytape.Graph()
    x = cytape.constant(V3)
    first = declared(2.0)
    traced = cytape.function(lambda x: first(x))
    first_result = traced(x).numpy()
    with graph.as_default():
        p = graph.placeholder("float64", (3,))
        y = first(p)
    tape, eager = taped(first, x, persistent=True)
    with pytest.warns(UserWarning, match="declared before"):
        second = declared(5.0)
    first = None
    gc.collect()
    np.testing.assert_array_equal(eager, 2 * V3)
    for _ in range(2):
        np.testing.assert_array_equal(tape.gradient(eager, x), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(traced(x), first_result)
    np.testing.assert_array_equal(cytape.grad(lambda x: np.sum(traced(x)))(V3), [2.0, 2.0, 2.0])
    with graph.as_default():
        [dp] = cytape.gradients(y, p)
        z = second(p)
    found = cytape.Session(graph).run([y, dp, z], {p: V3})
    np.testing.assert_array_equal(found, [2 * V3, [2.0, 2.0, 2.0], 5 * V3])
    assert gradient(second, V3).tolist() == [5.0, 5.0, 5.0]
    with pytest.raises(GraphFileError, match="is not declared under that name"):
        graph.save("nowhere")


def test_partials_that_are_declared_again(name):
    """Also the derivatives of derivatives, which look them up by the ufunc."""
    cube = np.frompyfunc(lambda x: x**3, 1, 1)
    assert isinstance(cube, np.ufunc)
    for warned in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            op = elementwise(name, cube, lambda y, x, n=3.0 if warned else 4.0: n * x * x)
        assert bool(caught) is warned
    assert partials_of[cube] is op.partials
    sine = partials_of[np.sin]
    elementwise(f"{name}Sine", np.sin, lambda y, x: 0 * x)
    with pytest.warns(UserWarning, match="declared before"):
        elementwise(f"{name}Sine", np.sin, lambda y, x: 1 * x)
    assert partials_of[np.sin] is sine


def test_ops_that_are_imported_late_are_declared_already():
    script = (
        "import sys, cytape\n"
        "from cytape.ops.declare import disable_gradient, general, gradient_rule\n"
        "assert 'cytape.ops.submodules' not in sys.modules\n"
        "for declare in (general, lambda name, f: disable_gradient(name)):\n"
        "    try: declare('SVD', lambda x: x)\n"
        "    except ValueError as error: print(error)\n"
        "print(gradient_rule('FFT').__name__)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "an op named 'SVD' is declared already, by cytape itself", "op 'SVD' has a vjp already",
        "_fft_transpose"]


@each("taken", ["Sin", "Sum", "MatMul", "While", "StopGradient"])
def test_cytape_s_own_ops_are_not_declared_again(taken):
    op = OPS[taken]
    for declare in (general, nondifferentiable):
        with pytest.raises(ValueError, match=f"'{taken}' is declared already, by cytape itself"):
            declare(taken, np.sin)
    with pytest.raises(ValueError, match=taken):
        elementwise(taken, np.sin, lambda y, x: x)
    assert OPS[taken] is op


def test_arrays_in_arrays_out_tensors_in_tensors_out(name):
    op = general(name, lambda x, axis: np.flip(x, axis), lambda op, g: np.flip(g, op.attrs["axis"]))
    assert type(op(V3, axis=0)) is np.ndarray
    assert type(op(cytape.constant(V3), axis=0)) is cytape.Tensor
    assert type(op(cytape.Variable(V3), axis=0)) is cytape.Tensor


# -- rules that come later -------------------------------------------------------------------------


def test_an_op_without_a_gradient_names_itself_and_the_remedies(name):
    op = general(name, np.square)
    x = cytape.constant(V3)
    for persistent in (False, True):
        with cytape.GradientTape(persistent) as tape:
            tape.watch(x)
            y = op(x) * 2.0
        with pytest.raises(NotDifferentiableError,
                           match=f"{name}.*register_gradient.*stop_gradient") as caught:
            tape.gradient(y, x)
        assert isinstance(caught.value, LookupError)


def test_the_remedy_helps(name):
    op = general(name, np.square)
    assert gradient(lambda x: cytape.stop_gradient(op(x)) * x, V3).tolist() == (V3**2).tolist()


def test_an_op_without_a_gradient_is_no_trouble_where_none_is_wanted(name):
    op = general(name, np.square)
    x, other = cytape.constant(V3), cytape.constant(V3)
    with watching(x, other) as tape:
        y = op(x)
        z = other * 2.0
    assert tape.gradient(z, [x, other])[0] is None
    assert y.shape == (3,)


# -- rules that are wrong --------------------------------------------------------------------------


@pytest.mark.parametrize("returned, message", [
    (lambda g: (g, g, g), "expected 2, got 3"), (lambda g: g, "expected 2, got 1"),
    (lambda g: (), "expected 2, got 0")])
def test_the_wrong_number_of_gradients(name, returned, message):
    op = general(name, np.multiply, lambda op, g: returned(g))
    with pytest.raises(InvalidGradientError, match=f"{name}.*{message}"):
        gradient(lambda x: op(x, x), V3)


@pytest.mark.parametrize("wrong", ["text", object(), {"a": 1}])
def test_a_gradient_that_is_no_array(name, wrong):
    op = general(name, np.square, lambda op, g: wrong)
    with pytest.raises((TypeError, ValueError)):
        gradient(op, V3)


def test_an_error_in_a_rule_comes_out_and_leaves_nothing_broken(name):
    def rule(op, g):
        raise ArithmeticError("from the rule")

    op = general(name, np.square, rule)
    with pytest.raises(ArithmeticError, match="from the rule"):
        gradient(op, V3)
    assert gradient(np.square, V3).tolist() == (2 * V3).tolist()


def test_a_rule_that_takes_a_gradient_is_transposed_in_functions(name):
    def rule(op, g):
        return gradients(lambda a: cytape.grad(lambda x: x * a / 3)(2.0), op.inputs[0],
                         output_gradients=cytape.convert_to_tensor(g))[0]

    op = general(name, lambda a: a / 3, rule, shape_rule=lambda a: a)
    for f in (op, cytape.function(op)):
        np.testing.assert_allclose(tangent(f, cytape.constant(5.0)), 1 / 3)


# -- the table -------------------------------------------------------------------------------------


# Their vjps record other ops, which forward mode transposes, as it does the vjps of `composed` ops.
RUN_OTHERS = {"DeferredVjp", "ScipyOptimizeSolution", "ScipyOptimizeLinearSolution"}
OF_TESTS = ("Declared", "Doctest", "HowTo")  # how names begin that tests and examples declare


def test_every_op_of_the_package_has_the_rules_of_its_kind():
    package = {name: op for name, op in OPS.items() if not name.startswith(OF_TESTS)}
    assert len(package) > 150
    for name, op in package.items():
        assert op.name == name
        assert callable(op.forward)
        if hasattr(op, "partials"):
            assert len(op.partials) == op.n_inputs
        elif op.differentiable:
            assert op.vjp is not None, name
            follows = (
                op.linear or isinstance(op, MultilinearOp) or name in RUN_OTHERS
                or op.vjp.__qualname__.startswith("composed."))
            assert follows or op.jvp is not None, name
            assert name not in RUN_OTHERS or op.jvp is None, f"{name} has a jvp"


def test_names_are_written_in_camel_case():
    for name in OPS:
        assert name[0].isupper() and name.isalnum(), name


def test_an_op_without_a_gradient_says_where_it_was_recorded(name):
    op = general(name, np.square, shape_rule=lambda x: x)
    line = sys._getframe().f_lineno + 3

    def f(x):
        return op(x) * 2

    def tangent(x):
        return cytape.jvp(f, (x,), (x,))

    words = f"op '{name}' has no gradient, and was recorded in .*test_op_kinds.py, line "
    for differentiated in cytape.grad(f), cytape.function(cytape.grad(f)), tangent:
        with pytest.raises(NotDifferentiableError, match=f"{words}{line}: register one"):
            differentiated(2.0)
    line = sys._getframe().f_lineno + 2
    with pytest.raises(NotDifferentiableError, match=f"{words}{line}: register one"):
        cytape.grad(cytape.function(f))(2.0)


def test_every_op_has_a_record():
    # In a process of its own: other tests declare ops too.
    script = (
        "import cytape; from cytape.ops.engine.op_kinds import find\n"
        "find(''), find('Scipy'), find('ScipyLinalg')  # all of them\n"
        "print(*[name for name, op in cytape.ops.OPS.items() if not op.stateful])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Parts of graphs only: tests/ops/python/test_python_ops.py, adjoints/test_tangent_batches.py.
    of_graphs = {
        "BatchOutline", "Constant", "GivenResults", "MissingDerivative",
        "NoDerivative", "UnitDirections", "WithoutDerivative"}
    assert set(run.stdout.split()) - {spec.op for spec in SPECS} == of_graphs
