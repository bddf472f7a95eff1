"""Tensors in NumPy's hands: what is differentiated, what is refused, and never a silent loss."""

import copy
import io
import math
import operator
import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.numpy.protocols import NUMPY_FUNCTIONS, functions_of, numpy_functions
from tests.cases import each
from tests.ways import taped, watching

V3 = np.array([0.5, -1.0, 2.0])
V23 = np.array([[1.0, 2.0, 3.0], [-4.0, 5.0, -6.0]])


def gradient(function, x):
    x = cytape.constant(x)
    tape, y = taped(function, x)
    assert type(y) is cytape.Tensor
    return tape.gradient(y, x).numpy()


# -- NumPy's functions -----------------------------------------------------------------------------


def test_the_table_leads_from_numpys_functions_to_those_of_the_same_name():
    for theirs, ours in numpy_functions().items():
        assert callable(ours)
        if getattr(np, theirs.__name__, None) is theirs:
            assert getattr(cnp, theirs.__name__) is ours
    assert {np.sin, np.sum, np.where, np.matmul, np.concatenate} <= set(NUMPY_FUNCTIONS)


@each("name", ["fft", "linalg"])
def test_the_functions_of_a_submodule_lead_to_those_of_the_same_name(name):
    found = functions_of(name)
    assert len(found) > 10
    for theirs, ours in found.items():
        assert getattr(getattr(np, name), theirs.__name__) is theirs
        assert getattr(getattr(cnp, name), theirs.__name__) is ours


# -- methods of ufuncs -----------------------------------------------------------------------------


def test_at_is_refused_for_arrays_that_tensors_are_added_to():
    x, array = cytape.constant(V3), V3.copy()
    with watching(x):
        with pytest.raises(DetachedError, match="add.at"):
            np.add.at(array, [0, 1, 2], x * x)
    np.testing.assert_array_equal(array, V3)


# -- never a silent detachment ---------------------------------------------------------------------


def test_a_number_may_be_stored_explicitly():
    x, array = cytape.constant([1.0, 2.0]), np.zeros(3)
    with watching(x):
        y = x * x
        array[0] = math.sqrt(y[1].item())
        array[1] = y[1].item()
        array[2:] = y.numpy()[:1]
    assert array.tolist() == [2.0, 4.0, 1.0]


def test_integers_and_booleans_are_never_in_the_way():
    x, array = cytape.constant(V3), np.zeros(3)
    with watching(x):
        y = x * x
        array[:] = y > 1
        assert array.tolist() == [0.0, 0.0, 1.0]
        assert V3[np.asarray(y > 1)].tolist() == [2.0]
        assert V3[y > 1].tolist() == [2.0]
        assert np.zeros(3)[np.argmax(y)] == 0
        array[0] = np.argmax(y)


@each("lose, words", [
    (np.asarray, r"cytape\.numpy\.array.*not a method of an array.*tensor\.numpy\(\)"),
    (lambda y: operator.setitem(np.zeros(3), ..., y),
     r"To store it, make the array by cytape\.numpy\.zeros.*constant\(array\).*tensor\.numpy\(\)"),
    (lambda y: np.union1d(y, y), r"numpy\.union1d .*custom_gradient.*tensor\.numpy\(\)"),
    (lambda y: np.nextafter.reduce(y), r"numpy\.nextafter\.reduce "),
    (lambda y: np.add(y, 1.0, out=np.zeros(3)), r"numpy\.add with out="),
    (lambda y: np.sum(y, out=np.zeros(())), r"numpy\.sum with out="),
    (lambda y: np.place(np.zeros(3), V3 > 1, y), r"numpy\.place .*constant\(array\).*x\[index\]")])
def test_the_message_says_what_was_called_and_what_to_do(lose, words):
    x = cytape.constant(V3)
    with watching(x):
        with pytest.raises(DetachedError, match=f"(?s){words}"):
            lose(x * x)


def test_functions_without_a_rule_see_through_structures():
    x = cytape.constant(V3)
    np.testing.assert_array_equal(np.lexsort((x, [0, 0, 0])), np.lexsort((V3, [0, 0, 0])))
    np.testing.assert_array_equal(np.union1d(x, [7.0]), np.union1d(V3, [7.0]))
    with watching(x):
        with pytest.raises(DetachedError, match="union1d"):
            np.union1d(x * x, [7.0])
        np.testing.assert_array_equal(
            np.lexsort((x * x, [0, 0, 0])), np.lexsort((V3 * V3, [0, 0, 0])))
        with pytest.raises(DetachedError, match="histogram_bin_edges"):
            np.histogram_bin_edges(x * 1.0)


def test_results_of_functions_without_a_rule_are_plain():
    assert type(np.spacing(cytape.constant(V3))) is np.ndarray
    np.testing.assert_array_equal(np.spacing(cytape.constant(V3)), np.spacing(V3))
    array = np.zeros(3)
    assert np.add(cytape.constant(V3), 1.0, out=array) is array
    np.testing.assert_array_equal(array, V3 + 1)


def test_errors_of_functions_without_a_rule_are_numpys():
    with pytest.raises(TypeError):
        np.union1d(cytape.constant(V3), V3, bogus=1)


# -- symbolic tensors ------------------------------------------------------------------------------


@pytest.fixture
def symbol():
    graph = Graph()
    return graph.placeholder(np.dtype(float), (3,))


@pytest.mark.parametrize("use", [
    float, int, bool, lambda x: x[0].item(), lambda x: x.tolist(),
    lambda x: 1.0 in x, lambda x: x == None, lambda x: x != "a", pickle.dumps,  # noqa: E711
    lambda x: range(x[0].astype(int)), lambda x: np.asarray(x), lambda x: x.numpy(), sorted,
    lambda x: np.array([x[0], 1.0]),
    lambda x: math.sqrt(x[0]), lambda x: f"{x:.3f}", lambda x: x and 1, max,
])
def test_a_value_is_not_there_yet(use, symbol):
    with pytest.raises(SymbolicTensorError, match="symbolic"):
        use(symbol)


@pytest.mark.parametrize("function", [np.spacing, np.nextafter, np.union1d, np.setdiff1d])
def test_functions_that_there_is_no_op_of_say_what_to_do(function, symbol):
    arguments = (symbol,) if function is np.spacing else (symbol, symbol)
    with pytest.raises(SymbolicTensorError, match="has no version in cytape"):
        function(*arguments)


@each("wrap, error", [(cytape.grad, DetachedError), (cytape.function, SymbolicTensorError)])
def test_an_array_that_cannot_be_added_to_says_what_to_make_instead(wrap, error):
    def total(x):
        u = np.zeros(5)
        u[1:-1] += x
        return cnp.sum(u)

    with pytest.raises(error, match="make it with cytape.numpy.zeros.*u = u [+] x"):
        wrap(total)(np.ones(3))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_is_another_tensor_of_the_same_graph(duplicate, symbol):
    other = duplicate(symbol)
    assert other is not symbol and other.graph is symbol.graph
    found = run(symbol.graph, [symbol.graph.symbol_of(other)], {symbol.graph.symbol_of(symbol): V3})
    np.testing.assert_array_equal(found[0], V3)


@pytest.mark.parametrize("call", [
    lambda x: np.stack([x, x]), lambda x: x[::-1], lambda x: np.clip(x, x[1], 1.0),
    lambda x: np.maximum(x, 0.5), lambda x: np.linalg.norm(x), lambda x: np.linalg.norm(x, np.inf),
    lambda x: np.where(x > 0, x, 0.0), lambda x: abs(x),
    lambda x: cnp.array([[x[0], 1.0], [2.0, x[2]]]), lambda x: cnp.full((2,), x[0]),
    lambda x: np.full_like(x, 2.0), lambda x: divmod(x, 2.0)[1], lambda x: round(x, 1),
    lambda x: np.add.reduce(x), lambda x: np.add.outer(x, x), lambda x: np.add.accumulate(x),
    lambda x: cytape.constant(V3) * x, lambda x: V3 - x, lambda x: 2.0 ** x, lambda x: x.T @ V3,
    lambda x: sum(x), lambda x: np.sort(V3) * x, lambda x: [*x][1], lambda x: np.nan_to_num(x)])
def test_functions_made_of_ops_build_them(call, symbol):
    graph = symbol.graph
    expected = np.asarray(call(cytape.constant(V3)))
    y = call(symbol)
    assert (y.graph, y.shape, y.dtype) == (graph, expected.shape, expected.dtype)
    (found,) = run(graph, [graph.symbol_of(y)], {graph.symbol_of(symbol): V3})
    np.testing.assert_array_equal(found, expected)


@each("call, advice", [
    (lambda t: np.add.at(np.zeros(3), [0, 1, 1], t), r"x\.at\[indices\]\.add\(values\)"),
    (lambda t: np.full_like(np.ones(2), t[0]),
     r"numpy\.full_like was called .*cytape\.numpy\.full_like"),
    (lambda t: np.sum([t, t]), r"lost\.\nWrite cytape\.numpy\.array.* or cytape\.numpy\.stack"),
    (lambda t: np.sum(t, where=[1, 0, 1]), "where=mask != 0"),
])
def test_an_error_names_the_way_out(call, advice):
    with pytest.raises((TypeError, ValueError), match=advice):
        cytape.grad(lambda t: np.sum(call(t)))(np.ones(3))
    if "full" in advice:
        with pytest.raises(TypeError, match=advice):
            cytape.function(call)(np.ones(3))


def test_other_operations_of_sparse_matrices_are_refused_by_name():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.eye(3))
    says = "sparse csr_array of SciPy cannot be combined with tensors in this way.*matrix @ tensor"
    for call in (lambda t: t * matrix, lambda t: np.add(matrix, t)):
        with pytest.raises(TypeError, match=says):
            call(cytape.constant([1.0, 2.0, 3.0]))
    for transform in (cytape.grad, cytape.function):
        with pytest.raises(TypeError, match=f"(?s)test_protocols.py, line.*{says}"):
            transform(lambda t: np.sum(matrix * t))(np.ones(3))


def test_functions_of_scipy_are_named_with_the_line_that_calls_them_and_one_remedy():
    linalg, special = pytest.importorskip("scipy.linalg"), pytest.importorskip("scipy.special")
    stats = pytest.importorskip("scipy.stats")
    for call, name, remedy in (
        (lambda t: linalg.schur(t), "scipy.linalg.schur", "custom_jvp"),
        (lambda t: linalg.expm(t), "scipy.linalg.expm", "cytape.scipy.linalg.expm"),
        (lambda t: special.logsumexp(t), "scipy.special.logsumexp",
         "cytape.scipy.special.logsumexp"),
        (lambda t: stats.norm.pdf(t), "scipy.stats.norm.pdf", "cytape.scipy.stats.norm.pdf"),
        (lambda t: stats.ksone.pdf(t, 10), "scipy.stats.ksone.pdf", "special.smirnov"),
        (lambda t: stats.kstwo.cdf(t, 10), "scipy.stats.kstwo.cdf", "special.kolmogorov"),
        (lambda t: stats.crystalball.fit_loc_scale(t, 1.5, 3.0),
         "scipy.stats.crystalball.fit_loc_scale", "custom_jvp"),
        (lambda t: stats.norm(0.0, 1.0).pdf(t), "scipy.stats.norm.pdf",
         "Call cytape.scipy.stats.norm.pdf"),
        (lambda t: stats.norm.fit(t), "scipy.stats.norm.fit, which", "optimize.minimize"),
    ):
        for transform in (cytape.grad, cytape.function):
            with pytest.raises((DetachedError, SymbolicTensorError)) as error:
                transform(lambda t: np.sum(call(t)))(np.eye(2))  # noqa: B023
            message = str(error.value)
            assert name in message and remedy in message
            assert "scipy/" not in message
            assert transform is cytape.function or "test_protocols.py, line" in message
            assert transform is cytape.function or len(message) < 400


@each("convert", [np.asarray, lambda x: pytest.importorskip("scipy.linalg").expm(x)])
def test_within_a_function_with_its_own_gradient_the_remedy_is_numpy(convert):
    def call(x):
        @cytape.custom_gradient
        def f(a):
            return np.asarray(x(a)).sum(), lambda g: g * np.ones((2, 2))
        return cytape.grad(f)(np.eye(2))

    with pytest.raises(DetachedError, match=r"\sSay tensor\.numpy\(\): the rule of custom_"):
        call(convert)
    np.testing.assert_array_equal(call(lambda a: convert(a.numpy())), np.ones((2, 2)))


def test_the_length_of_what_has_an_unknown_one():
    signature = [cytape.Spec.of((None,), float)]
    for f in (len, lambda x: sum(a for a in x)):
        with pytest.raises(TypeError, match=r"cytape\.numpy\.size\(tensor, 0\)"):
            cytape.function(f, input_signature=signature)(np.ones(3))


def test_warnings_of_ufuncs_name_the_line_of_the_call():
    v = cytape.Variable([0.0])
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        np.log(v)
        np.log(v, out=None)
        cnp.log(v)
    lines = [warning.lineno for warning in caught]
    assert [warning.filename for warning in caught] == 3 * [__file__]
    assert lines == [lines[0], lines[0] + 1, lines[0] + 2]


@each("save", [np.savez, np.savez_compressed])
def test_an_array_named_out_is_saved(save):
    file = io.BytesIO()
    save(file, out=cytape.Variable(np.ones(2)), w=cytape.constant(2.0))
    file.seek(0)
    found = np.load(file)
    np.testing.assert_array_equal(found["out"], 1)
    assert found["w"] == 2


@each(traced=[False, True], dtype=[np.int8, np.uint64, np.float32], call=[
    lambda x: np.dot(x, 300), lambda x: np.dot(2.5, x), lambda x: np.inner(x, 2),
    lambda x: np.tensordot(x, 2, 0), lambda x: x.dot(2), lambda x: x.clip(2),
    lambda x: x.clip(max=2), lambda x: np.insert(x, 1, 2.5), lambda x: np.max(x, initial=101)])
def test_numbers_of_python_count_as_numpy_counts_them(call, dtype, traced):
    x = np.array([100, 3, 1], dtype)
    given = cytape.function(call) if traced else call
    result = given(cytape.constant(x)).numpy()
    assert result.dtype == call(x).dtype
    np.testing.assert_array_equal(result, call(x))


@each(traced=[False, True], call=[
    lambda x: np.insert(x, 1, 300), lambda x: np.piecewise(x, [x > 1], [300, 2]),
    lambda x: np.max(x, initial=300)])
def test_numbers_of_python_that_a_dtype_cannot_hold_raise(call, traced):
    x = np.array([100, 3, 1], np.int8)
    for argument in x, cytape.constant(x):
        with pytest.raises(OverflowError, match="out of bounds for int8"):
            (cytape.function(call) if traced else call)(argument)
