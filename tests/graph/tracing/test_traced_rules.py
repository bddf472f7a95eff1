"""Custom gradients in traces that are built again: in other functions, branches and loops."""

import gc
import importlib
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError
from cytape.graph.tracing import traced_rules
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each


@cytape.custom_gradient
def square(x):
    return x * x, lambda g: g * 2.0 * x


with_own_gradient = cytape.function(lambda x: x * x, grad_func=lambda x, g: g * 2.0 * x)
recomputed = cytape.recompute_grad(lambda x: x * x)


def in_a_function(f, x):
    return cytape.function(f)(x * 1.0)


def in_functions(f, x):
    inner = cytape.function(f)
    return cytape.function(lambda x: inner(x * 1.0))(x * 1.0)


def in_a_branch(f, x):
    y = x * 1.0
    return cytape.cond(y > 0, lambda: f(y * 1.0), lambda: y)


def in_a_loop(f, x):
    return cytape.while_loop(lambda v: v < 5, lambda v: f(v * 1.0), x)


def in_a_loop_with_draws(f, x):
    def body(v):
        return f(v) + 0.0 * cnp.random.uniform()

    return cytape.while_loop(lambda v: v < 5, body, x)


@each("around", [in_a_function, in_functions, in_a_branch, in_a_loop, in_a_loop_with_draws])
@each("f", [square, with_own_gradient, recomputed])
def test_custom_gradients_are_right_wherever_they_are_built(f, around):
    traced = cytape.function(lambda x: around(f, x))
    x = cytape.constant(3.0)
    assert float(traced(x)) == 9.0
    assert float(cytape.grad(traced)(x)) == 6.0
    assert float(cytape.grad(cytape.grad(traced))(x)) == 2.0


def test_two_calls_have_substitutes_of_their_own():
    inner = cytape.function(square)
    outer = cytape.function(lambda x: inner(inner(x)))
    x = cytape.constant(3.0)
    assert float(cytape.grad(outer)(x)) == 108.0  # of x**4
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        [dx] = cytape.gradients(inner(inner(x)), x)
    assert cytape.Session(graph).run(dx, {x: 3.0}) == 108.0


@each("order", [1, 2, 3])
def test_gradient_functions_may_use_tensors_from_anywhere_around(order):
    outside = cytape.constant(2.0)

    def f(x):
        around = x * 5.0

        @cytape.custom_gradient
        def weighted(v):
            inside = v * v
            still = cytape.stop_gradient(around)
            return still * outside * v**3, lambda g: g * 3.0 * around * outside * inside

        _, y = cytape.while_loop(
            lambda i, _: i < 1, lambda i, v: (i + 1, weighted(v)), (np.array(0), x))
        return cytape.cond(y < 1e9, lambda: y + weighted(x), lambda: y)

    derivative = cytape.function(f)
    for _ in range(order):
        derivative = cytape.grad(derivative)
    # The gradient is 2 * 3 * 5x * 2 * x**2, whose derivatives are known in their turn.
    expected = {1: 60.0 * 1.5**3, 2: 180.0 * 1.5**2, 3: 360.0 * 1.5}[order]
    assert float(derivative(cytape.constant(1.5))) == pytest.approx(expected, rel=1e-12)


def test_a_gradient_function_runs_once_when_its_call_is_traced():
    calls = []

    @cytape.custom_gradient
    def doubled(x):
        def grad_fn(g):
            calls.append(g)
            return 2.0 * g

        return 2.0 * x, grad_fn

    f = cytape.function(lambda x: doubled(x))
    for _ in range(3):
        assert float(f(cytape.constant(1.0))) == 2.0
    assert len(calls) == 1
    assert float(cytape.grad(f)(1.0)) == 2.0
    assert float(cytape.grad(cytape.grad(f))(1.0)) == 0.0
    assert len(calls) == 1


def test_errors_of_a_gradient_function_are_those_of_who_differentiates():
    def refusing(x):
        def grad_fn(g):
            raise KeyError("no derivative here")

        return x * 2.0, grad_fn

    def miscounting(x):
        return x * 2.0, lambda g: (g, g)

    def misshaping(x):
        return x * 2.0, lambda g: cnp.stack([g, g])

    x = cytape.constant(np.ones(3))
    for function, kind, message in (
        (refusing, KeyError, "no derivative here"),
        (miscounting, InvalidGradientError, "grad_fn of miscounting must return 1 gradients"),
        (misshaping, InvalidGradientError, r"misshaping.* input 0 has shape \(2, 3\)"),
    ):
        f = cytape.function(cytape.custom_gradient(function))
        np.testing.assert_array_equal(f(x), 2 * np.ones(3))
        for _ in range(2):
            with pytest.raises(kind, match=message):
                cytape.grad(lambda x, f=f: cnp.sum(f(x)))(x)
        np.testing.assert_array_equal(f(x), 2 * np.ones(3))


class PeculiarError(Exception):
    """Cannot be made from its `args`."""

    def __init__(self, x, y):
        super().__init__(f"{x} and {y}")
        self.pair = x, y


def with_a_cause():
    try:
        {}["missing"]
    except KeyError as error:
        raise PeculiarError(1, 2) from error


@each("kind, grad_fn", [
    (NameError, lambda dy: dy * undefined_name),  # noqa: F821
    (PeculiarError, lambda dy: with_a_cause()),
])
@each("around", [in_a_function, in_functions, in_a_branch])
def test_an_error_of_a_gradient_function_tells_its_line_each_time(around, kind, grad_fn):
    bad = cytape.custom_gradient(lambda x: (x * x, grad_fn))
    f = cytape.function(lambda x: around(bad, x))
    errors = []
    for _ in range(2):
        with pytest.raises(kind) as info:
            cytape.grad(f)(2.0)
        errors.append(info.value)
    place = f"test_traced_rules.py:{grad_fn.__code__.co_firstlineno} in <lambda>"
    for error in errors:
        assert [place in note for note in error.__notes__] == [True]
    assert errors[0] is not errors[1]
    if kind is PeculiarError:
        assert str(errors[1]) == "1 and 2" and errors[1].pair == (1, 2)
        assert "test_traced_rules.py" in errors[1].__notes__[0].split("in <lambda>")[1]
        assert type(errors[1].__cause__) is KeyError
    assert errors[1].__traceback__ is not None


def test_an_integer_output_takes_no_part():
    @cytape.custom_gradient
    def f(x):
        return (x * 2.0, np.argmax(x)), lambda g, zero: g * 3.0 + zero

    def total(x):
        y, n = f(x)
        return cnp.sum(y) * n

    x = np.array([1.0, 5.0, 2.0])
    assert cytape.grad(cytape.function(total))(x).tolist() == [3.0, 3.0, 3.0]
    only_integers = cytape.custom_gradient(lambda x: (np.argmax(x), lambda g: None))
    assert int(cytape.function(only_integers)(x)) == 1


@each("around", [lambda f: f, cytape.function])
def test_gradient_functions_of_integers_are_never_called(around):
    rounded = cytape.custom_gradient(lambda x: (cnp.rint(x).astype(int), lambda g: None))
    calls = []

    def total(x):
        scaled = cytape.custom_gradient(lambda n: (n * cytape.stop_gradient(x), calls.append))
        return cnp.sum(scaled(rounded(x)) + x)

    x = np.array([1.0, 2.0])
    assert cytape.grad(around(total))(x).tolist() == [1.0, 1.0]
    value, slope = around(lambda x: cytape.jvp(total, (x,), (np.ones(2),)))(x)
    assert (float(value), float(slope)) == (8.0, 2.0)
    assert not calls


def traces_of(f, differentiated):
    """Trace, call, differentiate and drop a function; return references to what must go."""
    traced = cytape.function(cytape.grad(f) if differentiated else f)
    x = cytape.constant(2.0)
    ways.gradient(traced, x)
    return weakref.ref(traced.get_concrete_function(x).graph)


def by_numpy(x):
    return cytape.numpy_function(np.square, x, specs=x.spec, grad_func=lambda x, g: 2.0 * x * g)


@cytape.custom_gradient
def square_by_numpy(x):
    return np.square(cytape.stop_gradient(x).numpy()), lambda g: g * 2.0 * x


@cytape.custom_jvp
def square_with_jvp(x):
    return np.square(x.numpy())


@square_with_jvp.defjvp
def square_jvp(primals, tangents):
    return None, 2.0 * primals[0] * tangents[0]


@each("differentiated", [False, True])
@each(
    "f",
    [square, with_own_gradient, recomputed, by_numpy, square_by_numpy, square_with_jvp],
    ids=["custom_gradient", "grad_func", "recompute_grad", "numpy_function",
         "custom_gradient-numpy", "custom_jvp-numpy"])
def test_nothing_is_left_of_traces_that_are_dropped(f, differentiated):
    traces_of(f, differentiated)
    gc.collect()
    before = live_tensors()
    graphs = [traces_of(f, differentiated) for _ in range(3)]
    gc.collect()
    assert live_tensors() == before
    assert [graph() for graph in graphs] == [None, None, None]


class ByKeyword(Exception):
    def __new__(cls, *, reason):
        return super().__new__(cls)

    def __init__(self, *, reason):
        super().__init__(f"it was {reason}")
        self.reason = reason


class Slotted(ValueError):
    __slots__ = ("axis", "_empty")

    def __init__(self, axis):
        self.axis = axis

    def __str__(self):
        return f"axis {self.axis}"


class NeverTwice(OSError):
    made = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args)
        self.made += 1

    def __setattr__(self, name, value):
        if hasattr(self, name) and name == "number":
            raise RuntimeError(name)
        super().__setattr__(name, value)


def opened():
    open("/there/is/no/such/file")


def decoded():
    b"abc\xff".decode()


def imported():
    importlib.import_module("cytape.there_is_no_such_module")


def compiled():
    compile("a b", "some.py", "exec")


def raised(error):
    raise error


ERRORS = [
    opened, decoded, imported, compiled, lambda: raised(ByKeyword(reason="late")),
    lambda: raised(Slotted(3)), lambda: raised(np.exceptions.AxisError(5, 2)),
    lambda: raised(NeverTwice(2, "m", "file")), lambda: {}["key"], lambda: cytape.no_such_name,
    lambda: raised(OSError(2, "m", "one", None, "two")), lambda: next(iter([])),
    lambda: raised(ExceptionGroup("both", [ValueError(1), KeyError(2)])),
    lambda: raised(InvalidGradientError("text")), lambda: raised(UnicodeEncodeError(
        "ascii", "text", 1, 2, "why")),
]
MEMBERS = [
    "args", "filename", "filename2", "errno", "strerror", "reason", "start", "end", "object",
    "encoding", "name", "path", "msg", "lineno", "text", "axis", "ndim", "value", "obj",
    "exceptions", "message", "made", "__notes__", "__cause__", "__suppress_context__"]


@each("fail", ERRORS)
def test_an_error_of_a_gradient_function_loses_nothing(fail):
    original = None

    def grad_fn(g):
        nonlocal original
        try:
            fail()
        except Exception as error:
            original = error
            raise

    f = cytape.custom_gradient(lambda x: (x * 1.0, grad_fn))
    trace = cytape.function(lambda x: f(x))
    errors = []
    for _ in range(3):
        with pytest.raises(type(original) if original else Exception) as info:
            cytape.grad(trace)(1.0)
        errors.append(info.value)
    assert len(set(map(id, errors))) == 3 and original not in errors
    assert original.__traceback__ is None
    for error in errors:
        assert type(error) is type(original)
        assert str(error) == str(original)
        assert repr(error) == repr(original)
        for name in MEMBERS:
            mine, theirs = getattr(error, name, None), getattr(original, name, None)
            assert mine is theirs or mine == theirs, name
        assert len(error.__notes__) == 1


def test_an_error_that_cannot_be_copied_is_raised_itself():
    error = ValueError(1)
    assert traced_rules._copy_of(error) is not error

    class Odd(Exception):
        @property
        def __dict__(self):
            raise TypeError

    error = Odd(1)
    assert traced_rules._copy_of(error) is error


def test_errors_that_belong_to_an_error_keep_no_frames_either():
    def failed(error):
        try:
            raise error
        except Exception as caught:
            return caught

    first, second, third = map(failed, [KeyError(1), ValueError(2), TypeError(3)])
    group = failed(ExceptionGroup("", [third]))
    second.__cause__, second.__context__, first.__context__ = first, group, second
    traced_rules._without_frames(second)
    assert [e.__traceback__ for e in (first, second, third, group)] == [None] * 4


def test_a_function_that_changes_its_argument_leaves_what_its_gradient_is_given_to():
    x = np.array([1.0, 2.0, 3.0])

    @cytape.custom_gradient
    def doubled(t):
        t *= 2.0
        return t * 1.0, lambda g: 5.0 * g

    def f(t):
        return np.sum(doubled(t) * t)

    with cytape.Graph().as_default() as graph:
        p = graph.placeholder("float64", (3,))
        [in_graph] = cytape.gradients(f(p), p)
    for gradient in (
        cytape.grad(f)(x), cytape.function(cytape.grad(f))(x), cytape.grad(cytape.function(f))(x),
        cytape.Session(graph).run(in_graph, {p: x}),
    ):
        np.testing.assert_array_equal(gradient, 7.0 * x)  # 5 x by the rule, 2 x by the product
