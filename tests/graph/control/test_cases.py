"""cytape.case and cytape.switch_case against Python's if."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.tables import table
from tests.ways import BODIES, check

BRANCHES = [
    lambda x: cnp.sum(x**2), lambda x: cnp.sum(cnp.sin(x)) * x[0], lambda x: cnp.prod(x),
    lambda x: cnp.exp(x[0] * x[1]), lambda x: cytape.constant(3.0) * x[1] ** 3,
]
X = np.array([0.3, -0.8])


@pytest.mark.parametrize("n", table([3], [1, 2, 5]))
@pytest.mark.parametrize("index", table([-1, 0, 2], [1, 4, 7]))
@pytest.mark.parametrize("with_default", [False, True])
def test_switch_case_everywhere(n, index, with_default):
    def default(x):
        return x[0] * x[1] ** 2

    def f(x):
        which = cytape.constant(index) + 0 * cnp.size(x)
        return cytape.switch_case(
            which, [lambda b=b: b(x) for b in BRANCHES[:n]],
            (lambda: default(x)) if with_default else None)

    other = default if with_default else BRANCHES[n - 1]
    check(f, BRANCHES[index] if 0 <= index < n else other, X)


@each("first", range(4))
def test_case_everywhere(first):
    bounds = [4.0 if first == i else -4.0 for i in range(3)]

    def f(x):
        pairs = [(cnp.sum(x) < bound, lambda b=b: b(x))
                 for bound, b in zip(bounds, BRANCHES, strict=False)]
        return cytape.case(pairs, default=lambda: BRANCHES[3](x))

    check(f, BRANCHES[first], X)


@each("way", BODIES)
def test_the_first_that_is_true(way):
    f = BODIES[way](lambda x: cytape.case(
        [(x[0] > 2, lambda: 1.0 * x[0]), (x[0] > 1, lambda: 2.0 * x[0]),
         (x[0] > 0, lambda: 3.0 * x[0])]))
    assert [float(f(cytape.constant([v]))) for v in (3.0, 1.5, 0.5)] == [3.0, 3.0, 1.5]
    with pytest.raises(ValueError, match="no predicate of case is true"):
        f(cytape.constant([-1.0]))


@each("way", BODIES)
def test_a_single_predicate_must_be_true(way):
    f = BODIES[way](
        lambda x: cytape.case([(x[0] > 2, lambda: {"y": x[0] * x[1], "none": None})])["y"])
    x = cytape.constant([3.0, 2.0])
    assert float(f(x)) == 6.0
    np.testing.assert_array_equal(cytape.grad(f)(x), [2.0, 3.0])
    for g in (f, cytape.grad(f), lambda x: cytape.jvp(f, (x,), (x,))):
        with pytest.raises(ValueError, match="no predicate of case is true"):
            g(cytape.constant([-1.0, 2.0]))


@each("way", BODIES)
def test_exclusive(way):
    f = BODIES[way](lambda x: cytape.case(
        [(x[0] > 2, lambda: 1.0 * x[0]), (x[0] > 1, lambda: 2.0 * x[0])], exclusive=True,
        default=lambda: 0.0))
    assert [float(f(cytape.constant([v]))) for v in (1.5, 0.0)] == [3.0, 0.0]
    with pytest.raises(ValueError, match=r"true together: \[0, 1\]"):
        f(cytape.constant([3.0]))


def test_only_one_function_runs():
    ran = []
    note = cytape.ops.engine.op_kinds.general(
        "DeclaredNoteCase", lambda x, *, who: ran.append(who) or x, shape_rule=lambda x, who: x)
    graph = cytape.Graph()
    i, x = graph.placeholder("int64", ()), graph.placeholder("float64", ())
    y = cytape.switch_case(i, [lambda k=k: note(x * k, who=k) for k in range(5)])
    session = cytape.Session(graph)
    assert [float(session.run(y, {i: k, x: 2.0})) for k in (3, 0, 9, 1)] == [6.0, 0.0, 8.0, 2.0]
    assert ran == [3, 0, 4, 1]
    called = []
    assert cytape.switch_case(1, [lambda: called.append(0), lambda: "one"]) == "one"
    assert cytape.case([(False, lambda: called.append(1)), (np.bool_(True), lambda: 2)]) == 2
    assert called == []


@each("traced", [False, True])
def test_structures_and_singletons(traced):
    def f(i):
        one = cytape.switch_case(i, [lambda: {"a": (1.0, None)}, lambda: {"a": (i * 2.0, None)}])
        pairs = [(i < 1, lambda: [cytape.constant(5)])]
        return one, cytape.case(pairs, lambda: [6]), cytape.case(pairs, lambda: [6], strict=True)

    one, unpacked, strict = (cytape.function(f) if traced else f)(cytape.constant(1))
    assert (float(one["a"][0]), one["a"][1], int(unpacked)) == (2.0, None, 6)
    assert isinstance(strict, list)


def test_dicts_and_pairs():
    fns = [lambda: "a", lambda: "b", lambda: "c"]
    for given_ in (fns, dict(enumerate(fns)), list(enumerate(fns))[::-1]):
        assert [cytape.switch_case(np.int32(i), given_) for i in (0, 1, 2, 3)] == list("abcc")
    graph = cytape.Graph()
    x = graph.placeholder("float64", ())
    y = cytape.case({x > 1: lambda: x, x <= 1: lambda: -x}, exclusive=True)
    assert cytape.Session(graph).run(y, {x: 0.5}) == -0.5


def test_errors():
    yes = np.True_
    with pytest.raises(ValueError, match="at least one pair"):
        cytape.case([])
    with pytest.raises(TypeError, match=r"list of pairs \(predicate, function\)"):
        cytape.case([yes, lambda: 1])
    with pytest.raises(TypeError, match="predicate 1 of .* must be boolean, got int64"):
        cytape.case([(yes, lambda: 1), (3, lambda: 1)])
    with pytest.raises(ValueError, match=r"predicate 0 .* be a scalar, got shape \(2,\): .*all"):
        cytape.case([(np.array([True, False]), lambda: 1)])
    with pytest.raises(TypeError, match="function 0 of pred_fn_pairs must be a function, got int"):
        cytape.case([(yes, 1)])
    with pytest.raises(TypeError, match="default must be a function"):
        cytape.case([(yes, lambda: 1)], default=1)
    with pytest.raises(TypeError, match="default must be a function"):
        cytape.switch_case(0, [lambda: 1], default=1)
    with pytest.raises(TypeError, match="branch_index must be an integer, got float64"):
        cytape.switch_case(0.0, [lambda: 1])
    with pytest.raises(ValueError, match=r"branch_index must be a scalar, got shape \(1,\)"):
        cytape.switch_case([0], [lambda: 1])
    with pytest.raises(ValueError, match=r"for 0, 1, ..., each index once, got \[0, 2\]"):
        cytape.switch_case(0, {0: lambda: 1, 2: lambda: 1})
    with pytest.raises(ValueError, match=r"each index once, got \[0, 0\]"):
        cytape.switch_case(0, [(0, lambda: 1), (0, lambda: 1)])
    with pytest.raises(ValueError, match="at least one pair"):
        cytape.switch_case(0, [])
    with pytest.raises(TypeError, match="function 1 of branch_fns must be a function, got int"):
        cytape.switch_case(0, {0: lambda: 1, 1: 1})
    graph = cytape.Graph()
    i = graph.placeholder("int64", ())
    with pytest.raises(TypeError, match="branch 1 and branch 2 .* result are int64 and float64"):
        cytape.switch_case(i, [lambda: 1, lambda: 1, lambda: 1.5])
    with pytest.raises(ValueError, match="branch 0 and branches 1 to 2 must agree in structure"):
        cytape.switch_case(i, [lambda: 1, lambda: (1,), lambda: (1,)])


@each("f", [lambda f: f, cytape.function])
@each("call, branch", [
    (lambda x: cytape.switch_case(x, [lambda: x, lambda x: x, lambda: x]), 1),
    (lambda x: cytape.case([(x > 0, lambda x: x)], default=lambda: x), 0),
    (lambda x: cytape.case([(x > 0, lambda x: x)]), 0),
])
def test_branches_that_take_arguments_are_named(f, call, branch):
    with pytest.raises(TypeError, match=rf"^branch {branch} must take no arguments, as lambda: f"):
        f(call)(cytape.constant(1))


@each("way", [lambda f: f, cytape.function])
def test_python_bools_choose_as_if_does(way):
    calls = []

    def f(x, *pairs, **options):
        def called(which):
            calls.append(which)
            return which * x

        named = [(pred, lambda which=i: called(which)) for i, pred in enumerate(pairs)]
        return cytape.case(named, **options)

    x = np.array(2.0)
    for pairs, chosen in (
            ((True,), 0), ((False, True), 1), ((False, True, True), 1), ((False, False, True), 2)):
        calls.clear()
        assert way(lambda x, pairs=pairs: f(x, *pairs))(x) == 2.0 * chosen
        assert calls == [chosen]
    calls.clear()
    assert way(lambda x: f(x, False, default=lambda: -x))(x) == -2.0
    assert way(lambda x: f(x, False, True, x > 0))(x) == 2.0  # later conditions are not evaluated
    assert calls == [1]
    assert way(lambda x: f(x, False, x > 0, True))(x) == 2.0
    assert way(lambda x: f(x, False, x < 0, True))(x) == 4.0
    for wrong, match, options in (
            ((False, False), "no predicate", {}), ((True, True), "together", {"exclusive": True})):
        with pytest.raises(ValueError, match=match):
            way(lambda x, wrong=wrong, options=options: f(x, *wrong, **options))(x)


CALLS = [
    lambda f: cytape.cond(True, f, f), lambda f: cytape.cond(np.array(False), f, f),
    lambda f: cytape.case([(True, f)], f),
    lambda f: cytape.case([(np.array(False), f), (np.array(True), f)]),
    lambda f: cytape.case([(np.array(True), f)]), lambda f: cytape.switch_case(0, [f]),
    lambda f: cytape.switch_case(1, [f, f, f]),
]


@each("call", CALLS)
@each("kind", [np.array, cytape.constant, cytape.Variable])
def test_writes_to_the_result_leave_what_the_function_took_from_elsewhere(call, kind):
    x = kind(np.ones(3))

    def called():
        return call(lambda: {"x": [x]})

    for way in called, cytape.function(called):
        result = way()["x"][0]
        result[0] = 7.0
        np.testing.assert_array_equal(x, np.ones(3))
        np.testing.assert_array_equal(result, [7.0, 1.0, 1.0])
