"""Lists of tensors are arrays to every function, wherever they are built; see the op table, too."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError
from tests.cases import each, sampled

PROGRAMS = {
    "a sum": lambda t, u: cnp.sum([t, u * t]),
    "an operator": lambda t, u: cnp.sum(cnp.asarray(t + 0 * u) * [u, 1.0, t]),
    "the list first": lambda t, u: cnp.sum([u, 1.0, t] * cnp.asarray(t + 0 * u)),
    "an op of one operand": lambda t, u: cnp.sum(cnp.exp([t, u])),
    "two lists": lambda t, u: cnp.sum(cnp.multiply([t, u], [u, u])),
    "with a keyword": lambda t, u: cnp.sum(cnp.multiply([t, u], [u, u], dtype=np.float64)),
    "nested": lambda t, u: cnp.prod(cnp.mean([[t, 1.0], (u, t)], axis=0)),
    "pieces": lambda t, u: cnp.sum(cnp.concatenate([[t], [u, 2.0], np.ones(2)]) ** 2),
    "beside tensors": lambda t, u: cnp.sum(cnp.concatenate([cnp.stack([t, u]), [t, u]]) ** 2),
    "a product": lambda t, u: cnp.dot([t, u], [u, 2.0]) + cnp.matmul([[t, u]], [t, u])[0],
    "appended": lambda t, u: cnp.sum(cnp.append([t], [u, t * u])),
    "a choice": lambda t, u: cnp.sum(cnp.where([True, False], [t, u], [u, t]))}
PLACES = {
    "eager": lambda f: f, "function": cytape.function,
    "branch": lambda f: lambda t, u: cytape.cond(t > -10.0, lambda: f(t, u), lambda: t),
    "loop": lambda f: cytape.function(lambda t, u: cytape.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y + 0.5 * f(t, u)), (0, 0.0 * t))[1]),
}


@sampled(4, place=PLACES, name=PROGRAMS)
def test_they_are_right_in_both_modes_to_second_order(name, place):
    f = PLACES[place](PROGRAMS[name])
    t, u = np.float64(0.7), np.float64(-1.3)
    cytape.testing.check_grads(f, (t, u), order=2)


@each("name", PROGRAMS)
def test_a_list_has_what_symbols_it_holds(name):
    graph = cytape.Graph()
    with graph.as_default():
        t, u = graph.placeholder("float64", ()), graph.placeholder("float64", ())
        y = PROGRAMS[name](t, u)
        gradients = cytape.gradients(y, [t, u])
    with cytape.graph.Session(graph) as session:
        results = session.run([y, *gradients], {t: 0.7, u: -1.3})
    y, gradients = cytape.value_and_grad(PROGRAMS[name], (0, 1))(0.7, -1.3)
    np.testing.assert_allclose(results, [y, *gradients])


@each("compare", [np.array_equal, np.array_equiv, np.allclose, np.isclose])
def test_comparisons_take_lists_of_what_is_recorded(compare):
    for x in (np.array(2.0), np.array([2.0, 3.0])):
        t, other = cytape.constant(x), cytape.constant(x + 1.0)
        with cytape.GradientTape() as tape:
            tape.watch([t, other])
            for pair in ([t], [t]), ([t], [x]), ([x], [t]), ([t, other], [t, other]):
                assert np.all(compare(*pair))
            assert not np.any(compare([t], [other]))


@each("compare", [np.array_equal, np.array_equiv, np.allclose, np.isclose])
def test_comparisons_of_lists_of_symbols_are_refused(compare):
    v = cytape.Variable([2.0, 3.0])

    @cytape.function
    def f(t, x):
        for pair in ([t], [t]), ([t], [2.0]), ([2.0], [t]), ([x, x], [x, x]), ([v], [v]):
            with pytest.raises(SymbolicTensorError, match="cytape"):
                compare(*pair)
        return t

    assert float(f(np.array(2.0), np.array([2.0, 3.0]))) == 2.0


@each("compare", [np.array_equal, np.array_equiv])
def test_comparisons_of_lists_of_symbols_of_any_shape_say_so(compare):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (None,))
        with pytest.warns(UserWarning, match=r"cytape\.numpy\.array_equal"):
            assert not compare([x], [x])


@each("f", [
    lambda t: np.sum([t, t]), lambda t: np.array([t, 1.0]), lambda t: np.concatenate([[t], [t]]),
    lambda t: np.mean([[t], [t]]), lambda t: np.append([t], [t])])
def test_numpys_own_functions_refuse_them(f):
    with pytest.raises(DetachedError, match=r"Write cytape\.numpy\.array"):
        cytape.grad(lambda t: cnp.sum(f(t)))(2.0)
