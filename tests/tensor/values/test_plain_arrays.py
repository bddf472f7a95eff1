"""Attacks with arrays that mean more than their data: masks, matrices, units, tables."""

import operator

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape import nn
from cytape.errors import InvalidGradientError
from tests.cases import each, sampled
from tests.ways import gradient

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")


class Tagged(np.ndarray):
    """A subclass of which nothing is known."""


class Converts:
    """Becomes an array that would not have been taken itself."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


def masked():
    return np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[True, False], [False, False]])


def matrix():
    return np.matrix([[1.0, 2.0], [3.0, 4.0]])


def tagged():
    return np.array([[1.0, 2.0], [3.0, 4.0]]).view(Tagged)


KINDS = {"masked array": masked, "matrix": matrix, "subclass": tagged}
ADVICE = {
    "masked array": r"filled\(0.0\).*NaN", "matrix": r"numpy\.asarray",
    "subclass": r"numpy\.asarray"}
ONES = np.ones((2, 2))
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul, operator.mod,
    operator.floordiv, operator.lt, operator.eq, operator.ne, np.add, np.multiply, np.arctan2,
    np.maximum, np.matmul, cnp.add, cnp.multiply, cnp.arctan2, cnp.maximum, cnp.matmul]
FUNCTIONS = {
    "dot": np.dot, "inner": np.inner, "kron": np.kron,
    "where": lambda t, a: np.where([True, False], t, a), "clip": lambda t, a: np.clip(t, a, 3.0),
    "concatenate": lambda t, a: np.concatenate([t, a]), "stack": lambda t, a: cnp.stack([a, t]),
    "vstack": lambda t, a: np.vstack([t, a]), "einsum": lambda t, a: np.einsum("ij,ij", t, a),
    "array": lambda t, a: cnp.array([t, a]),
    "convert_to_tensor of a list": lambda t, a: cytape.convert_to_tensor([t, a]),
    "a function without derivative": lambda t, a: np.union1d(t, a),
    "out": lambda t, a: np.add(t, 1.0, out=a), "power": lambda t, a: t**a, "outer": np.outer,
    "outer, left": lambda t, a: np.outer(a, t), "vdot": np.vdot,
    "vecdot": lambda t, a: np.vecdot(a, t), "append": np.append,
    "append, left": lambda t, a: np.append(a, t),
    "append along an axis": lambda t, a: np.append(t, a, axis=0),
    "column_stack": lambda t, a: np.column_stack([t, a]), "dstack": lambda t, a: np.dstack([a, t]),
    "index": lambda t, a: t[a > 0], "repeat": lambda t, a: np.repeat(t, a.astype(int).ravel()),
    "take": lambda t, a: np.take(t, a.astype(int), mode="clip"),
    "values of slices": lambda t, a: cytape.IndexedSlices(a, t),
    "indices of slices": lambda t, a: cytape.IndexedSlices(t, a),
    "result of numpy_function": lambda t, a: cytape.numpy_function(lambda x: a, t, specs=t.spec),
    "converts": lambda t, a: t * Converts(a), "converts, left": lambda t, a: Converts(a) * t,
    "constant of what converts": lambda t, a: cytape.constant(Converts(a)),
    "list of what converts": lambda t, a: cytape.constant([Converts(a)])}
ENTRIES = {
    "constant": cytape.constant, "constant with a dtype": lambda a: cytape.constant(a, "float32"),
    "constant of a list": lambda a: cytape.constant([a, a]),
    "convert_to_tensor": cytape.convert_to_tensor, "from_dlpack": cytape.from_dlpack,
    "Variable": cytape.Variable, "assign": lambda a: cytape.Variable(ONES).assign(a),
    "assign_add": lambda a: cytape.Variable(ONES).assign_add(a),
    "assign_sub": lambda a: cytape.Variable(ONES).assign_sub(a),
    "grad": lambda a: cytape.grad(cnp.sum)(a),
    "a part of an argument": lambda a: cytape.grad(lambda p: cnp.sum(p["a"]))({"a": a}),
    "another argument": lambda a: cytape.grad(lambda x, y: cnp.sum(x * y))(ONES, a),
    "vjp": lambda a: cytape.vjp(cnp.square, a),
    "weights": lambda a: cytape.vjp(cnp.square, ONES)[1](a),
    "jvp": lambda a: cytape.jvp(cnp.square, (a,), (ONES,)),
    "tangent": lambda a: cytape.jvp(cnp.square, (ONES,), (a,)),
    "jet": lambda a: cytape.jet(cnp.square, a, [ONES]),
    "output_gradients": lambda a: gradient_with_weights(a),
    "closure": lambda a: cytape.grad(lambda x: cnp.sum(x * a))(ONES),
    "closure, left": lambda a: cytape.jacfwd(lambda x: a * x)(ONES),
    "function": lambda a: cytape.function(cnp.square)(a),
    "captured": lambda a: cytape.function(lambda x: x * a)(ONES),
    "captured, left": lambda a: cytape.function(lambda x: a * x)(ONES),
    "returned": lambda a: cytape.function(lambda x: a)(ONES),
    "branch": lambda a: cytape.function(
        lambda x: cytape.cond(cnp.sum(x) > 0, lambda: x * a, lambda: x))(ONES),
    "result of a branch": lambda a: cytape.function(
        lambda x: cytape.cond(cnp.sum(x) > 0, lambda: a, lambda: x))(ONES),
    "loop": lambda a: cytape.function(
        lambda x: cytape.while_loop(lambda y: cnp.sum(y) < 9, lambda y: (y + a,), (x,)))(ONES),
    "loop variable": lambda a: cytape.function(
        lambda x: cytape.while_loop(lambda y: cnp.sum(y) < 9, lambda y: (y + x,), (a,)))(ONES),
    "graph constant": lambda a: cytape.Graph().constant(a),
    "initializer": lambda a: cytape.Graph().get_variable("v", initializer=a),
    "feed": lambda a: fed(a), "placeholder": lambda a: placeholder() * a,
    "placeholder, right": lambda a: a * placeholder(),
    "placeholder and ufunc": lambda a: np.add(a, placeholder()),
}


def placeholder():
    return cytape.Graph().placeholder("float64", (2, 2))


def fed(a):
    x = placeholder()
    return cytape.Session(x.graph).run(x * 2.0, {x: a})


def gradient_with_weights(a):
    x = cytape.constant(ONES)
    return gradient(lambda x: x * x, x, output_gradients=a)


def beside(t, recorded, function):
    """Call a function of a tensor, while that is recorded or not."""
    with cytape.GradientTape() as tape:
        if recorded:
            tape.watch(t)
        return function(t)


@each(kind=KINDS, op=BINARY, recorded=[False, True], make=[cytape.constant, cytape.Variable])
def test_operands_are_refused_on_either_side(kind, op, recorded, make):
    for call in (lambda t: op(t, KINDS[kind]()), lambda t: op(KINDS[kind](), t)):
        with pytest.raises(TypeError, match=ADVICE[kind]):
            beside(make(ONES), recorded, call)


@each("kind", KINDS)
@each("function", FUNCTIONS.values(), ids=FUNCTIONS)
@each("recorded", [False, True])
def test_arguments_of_functions_are_refused(kind, function, recorded):
    with pytest.raises(TypeError, match=ADVICE[kind]):
        beside(cytape.constant(ONES), recorded, lambda t: function(t, KINDS[kind]()))


@each("kind", KINDS)
@each("enter", ENTRIES.values(), ids=ENTRIES)
def test_they_enter_nowhere(kind, enter):
    with pytest.raises((TypeError, InvalidGradientError), match=ADVICE[kind]):
        enter(KINDS[kind]())


@each(function=[np.ma.multiply, np.ma.add, operator.iadd, operator.imul], recorded=[False, True])
def test_functions_of_masked_arrays_refuse_tensors(function, recorded):
    with pytest.raises(TypeError, match="filled"):
        beside(cytape.constant(ONES), recorded, lambda t: function(masked(), t))


def test_functions_of_masked_arrays_name_themselves():
    with pytest.raises(TypeError, match=r"numpy\.ma.*cytape\.numpy"):
        np.ma.log(cytape.constant(ONES))


def test_their_advice_works():
    x, a = cytape.constant(ONES), masked()
    assert np.where(a.mask, 0.0, x * a.data).numpy().tolist() == [[0.0, 2.0], [3.0, 4.0]]
    assert (x * a.filled(0.0)).numpy().tolist() == [[0.0, 2.0], [3.0, 4.0]]
    assert (x @ np.asarray(matrix())).numpy().tolist() == [[4.0, 6.0], [4.0, 6.0]]


def test_alone_they_are_numpy_s():
    assert isinstance(cnp.multiply(masked(), masked()), np.ma.MaskedArray)
    assert cnp.sum(masked()) == 9.0
    assert cnp.multiply(matrix(), 2.0).tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_a_file_s_array_is_an_array(tmp_path):
    a = np.memmap(tmp_path / "a", dtype=float, shape=2, mode="w+")
    a[:] = [1.0, 2.0]
    assert cytape.grad(lambda x: np.sum(x * a))(a).tolist() == [1.0, 2.0]


def test_functions_that_refuse_masked_arrays_are_not_listed():
    assert "_data" not in dir(cytape.constant(ONES))


# -- lists without end -----------------------------------------------------------------------------


def within_itself():
    endless = [1.0]
    endless.append(endless)
    return endless


def twice_within_itself():
    endless = []
    endless += [endless, endless]
    return endless


def very_deep():
    nested = [1.0]
    for _ in range(100_000):
        nested = [nested]
    return nested


@sampled(3, make=[within_itself, twice_within_itself, very_deep], use=[
    cytape.constant, cytape.convert_to_tensor, cytape.Variable, cytape.from_dlpack, cnp.array,
    cnp.asarray, lambda a: cytape.constant(1.0) + a, lambda a: a + cytape.constant(1.0),
    lambda a: np.add(a, cytape.constant(1.0)), lambda a: cytape.constant([1.0, 2.0])[a],
    lambda a: cytape.Variable(1.0).assign(a), lambda a: cnp.array([cytape.constant(1.0), a])])
def test_lists_without_end_are_refused(make, use):
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError, RecursionError)):
        use(make())


@each("make", [within_itself, twice_within_itself, very_deep])
def test_indices_without_end_are_refused_where_graphs_are_built(make):
    with cytape.Graph().as_default() as graph:
        symbol = graph.placeholder("float64", (2,))
    with pytest.raises((IndexError, RecursionError, ValueError)):
        cytape.constant([1.0, 2.0])[make()]
    with pytest.raises((IndexError, RecursionError, ValueError)):
        symbol[make()]


def test_lists_as_deep_as_arrays_can_be():
    nested = 1.0
    for _ in range(64):
        nested = [nested]
    assert cytape.constant(nested).ndim == cnp.array(nested).ndim == 64
    with pytest.raises(ValueError, match="64 axes"):
        cytape.constant([nested])


# -- tables ----------------------------------------------------------------------------------------


class Table:
    """Works as pandas objects do: converts, and yields to what has a higher priority."""

    __array_priority__ = 1000
    __pandas_priority__ = 3000

    def __init__(self, data):
        self.data = np.asarray(data, float)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype, copy=copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **arguments):
        if any(getattr(x, "__array_priority__", 0) > self.__array_priority__ for x in inputs):
            return NotImplemented
        return Table(getattr(ufunc, method)(*map(np.asarray, inputs), **arguments))

    def __add__(self, other):
        return self._by(np.add, other)

    def __mul__(self, other):
        return self._by(np.multiply, other)

    def __truediv__(self, other):
        return self._by(np.divide, other)

    def __radd__(self, other):
        return self._by(np.add, other)

    def _by(self, ufunc, other):
        if getattr(other, "__pandas_priority__", 0) > self.__pandas_priority__:
            return NotImplemented
        return Table(ufunc(self.data, np.asarray(other)))


def series(data):
    return pytest.importorskip("pandas").Series(data, index=["a", "b"])


def frame(data):
    return pytest.importorskip("pandas").DataFrame({"a": data, "b": data})


@each("table", [Table, series, frame])
@each(
    "op", [operator.add, operator.mul, operator.truediv, np.add, np.multiply, np.arctan2, cnp.add])
@each("recorded", [False, True])
def test_tables_are_arrays_on_either_side(table, op, recorded):
    data, x = table([1.0, 2.0]), cytape.constant([3.0, 5.0])
    for call in (lambda a, t: op(a, t), lambda a, t: op(t, a)):
        found = beside(x, recorded, lambda t, call=call: call(data, t))
        assert type(found) is cytape.Tensor
        assert found.numpy().tolist() == call(np.asarray(data), x.numpy()).tolist()


@each("table", [Table, series])
def test_gradients_beside_tables(table):
    data = table([1.0, 2.0])
    expected = [2.0, 8.0]
    assert cytape.grad(lambda x: np.sum(data * x * x))(np.array([1.0, 2.0])).tolist() == expected
    assert cytape.grad(lambda x: np.sum(x * data * x))(np.array([1.0, 2.0])).tolist() == expected
    assert cytape.grad(lambda x: np.sum(x * x))(data).tolist() == [2.0, 4.0]
    assert cytape.constant(data).tolist() == [1.0, 2.0]
    assert cytape.function(lambda x: data * x)(np.ones(2)).tolist() == [1.0, 2.0]


@each("table", [Table, series, frame])
def test_tables_are_traced_as_arrays(table):
    double = cytape.function(lambda x, scale: x * scale["by"])
    for data in ([1.0, 2.0], [5.0, 7.0]):
        values = np.asarray(table(data))
        assert double(table(data), {"by": 2.0}).tolist() == (values * 2).tolist()
        assert double(2.0, {"by": table(data)}).tolist() == (values * 2).tolist()
    slope = cytape.function(cytape.grad(lambda x: np.sum(x * x)))
    assert slope(table([1.0, 2.0])).tolist() == (2 * np.asarray(table([1.0, 2.0]))).tolist()


@each(function=[
    lambda x, m: np.average(x, weights=m), lambda x, m: np.linspace(x, m, 3),
    lambda x, m: np.logspace(x, 1.0, 3, base=m), lambda x, m: np.polyval(x[0], m),
    lambda x, m: np.polyint(x[0], 1, m[0, :1]), lambda x, m: np.choose(m.astype(int), [x] * 5),
    lambda x, m: np.select([m > 1], [x]), lambda x, m: np.linalg.multi_dot([x, m]),
    lambda x, m: np.interp(x, m[0], m[0]), lambda x, m: np.pad(x, 1, "linear_ramp", end_values=m),
    lambda x, m: cnp.r_[x, m], lambda x, m: np.insert(x, 0, m, axis=0),
    lambda x, m: np.delete(x, m[0].astype(int)), lambda x, m: np.pad(x, 1, constant_values=m),
    lambda x, m: np.take_along_axis(x, m.astype(int) * 0, 0), lambda x, m: np.extract(m > 1, x),
    lambda x, m: np.compress(m[0] > 1, x), lambda x, m: np.cov(x, fweights=m[0]),
    *[lambda x, m, f=f: f(m) for f in (nn.softmax, nn.log_softmax, nn.logsumexp)],
    lambda x, m: nn.softmax_cross_entropy_with_logits(m, np.asarray(m)),
    lambda x, m: nn.fused_batch_norm(m, np.ones(2), np.ones(2))], kind=["masked array", "matrix"])
def test_functions_made_of_others_refuse_them_too(function, kind):
    with pytest.raises(TypeError, match=ADVICE[kind]):
        function(cytape.constant(ONES), KINDS[kind]())


def test_arrays_alone_are_numpys():
    np.testing.assert_array_equal(cnp.kron(masked(), ONES).mask, np.kron(masked(), ONES).mask)
    assert isinstance(cnp.cumsum(matrix()), np.matrix)


def test_objects_are_refused_by_the_names_of_their_classes():
    class State:
        pass

    for make in (cytape.constant, lambda x: cytape.while_loop(lambda x: False, lambda x: x, [x])):
        with pytest.raises(TypeError, match="not object data; got .* of State$"):
            make(State())
    with pytest.raises(TypeError, match="got ndarray of NoneType, int$"):
        cytape.constant([1, None])
