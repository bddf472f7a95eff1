"""Flat vectors, optimizers, fixed points, traces, checks of gradients, vector spaces, builtins."""

import collections

import numpy as np
import pytest

import cytape
import cytape.autograd.numpy as anp
from cytape.autograd import builtins, grad, jacobian, misc, util, wrap_util
from cytape.autograd.core import vspace
from cytape.autograd.extend import defvjp, primitive
from cytape.autograd.misc.fixed_points import fixed_point
from cytape.autograd.misc.flatten import flatten, flatten_func
from cytape.autograd.misc.optimizers import adam, rmsprop, sgd
from cytape.autograd.misc.tracers import const_graph, full_graph
from cytape.autograd.numpy.numpy_vspaces import ArrayVSpace, ComplexArrayVSpace
from cytape.autograd.test_util import check_equivalent, check_grads, combo_check

Point = collections.namedtuple("Point", "x y")
STRUCTURES = {
    "array": np.arange(6.0).reshape(2, 3), "number": 2.5, "list": [1.0, np.ones((2, 1))],
    "tuple": (np.zeros(2), (3.0,)), "dict": {"b": 1.0, "a": np.ones(2)}, "complex": 1j * np.ones(2),
    "mixed": [{"x": (1.0, 2j)}, np.arange(2.0)], "empty": [], "empty parts": (np.ones(2), (), [{}]),
    "float32": np.ones(2, np.float32), "named": Point(1.0, np.ones(2)),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_flat_vectors_and_back(name):
    value = STRUCTURES[name]
    vector, unflatten = flatten(value)
    assert vector.ndim == 1
    again = unflatten(vector)
    cytape.tensor.nest.assert_same_structure(value, again)
    for one, other in zip(*map(cytape.tensor.nest.flatten, (value, again)), strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.shape(one) == np.shape(other) and np.iscomplexobj(one) == np.iscomplexobj(other)


def test_flattening_keeps_dtypes_and_refuses_other_types():
    vector, unflatten = flatten([np.float32([1, 2]), np.ones(1, complex), 3.0])
    assert [x.dtype for x in unflatten(vector)] == [np.float32, complex, float]
    for value in "abc", [None, 1.0]:
        with pytest.raises(TypeError, match="Can't differentiate w.r.t. type <class '(str|None)"):
            flatten(value)


def test_flattening_is_differentiable():
    vector, unflatten = flatten([2.0, {"w": np.array([3.0, 4.0])}])
    assert flatten({"b": 1.0, "a": 2.0})[0].tolist() == [2.0, 1.0]

    def f(vector):
        scale, weights = unflatten(vector)
        return anp.sum(scale * weights["w"] ** 2)

    np.testing.assert_allclose(grad(f)(vector), [25.0, 12.0, 16.0])
    np.testing.assert_allclose(grad(lambda x, y: anp.sum(flatten([x, y])[0] ** 2))(3.0, 1.0), 6.0)
    check_grads(lambda x: flatten([x, [x * x]])[0])(np.array([1.0, 2.0]))


def test_functions_of_vectors():
    double, unflatten, vector = flatten_func(lambda p, n: {"a": n * p["a"]}, {"a": np.ones(2)})
    np.testing.assert_array_equal(double(vector, 3.0), [3.0, 3.0])
    np.testing.assert_array_equal(jacobian(double)(vector, 2.0), 2 * np.eye(2))
    np.testing.assert_array_equal(unflatten(vector)["a"], np.ones(2))


def quadratic(p, i):
    return anp.sum((p["x"] - 1.0) ** 2) + 2 * (p["y"] - 3.0) ** 2


@pytest.mark.parametrize("optimize, options", [
    (sgd, {"step_size": 0.1, "num_iters": 600, "mass": 0.5}),
    (rmsprop, {"step_size": 0.01, "num_iters": 800}),
    (adam, {"step_size": 0.1, "num_iters": 500})])
def test_optimizers_find_the_minimum(optimize, options):
    seen = []

    def callback(p, i, g):
        assert g.keys() == p.keys() == {"x", "y"}
        seen.append((i, quadratic(p, i)))

    start = {"x": np.zeros(2), "y": 0.0}
    found = optimize(grad(quadratic), start, callback=callback, **options)
    np.testing.assert_allclose(found["x"], 1.0, atol=0.03)
    np.testing.assert_allclose(found["y"], 3.0, atol=0.03)
    assert [i for i, _ in seen] == list(range(options["num_iters"]))
    assert seen[0][1] == quadratic(start, 0) and seen[-1][1] < 0.01
    assert optimize.__name__ in ("sgd", "rmsprop", "adam")


@pytest.mark.parametrize("optimize, expected", [
    (sgd, [0.96, 2.88]), (rmsprop, [0.8, 2.8]), (adam, [0.9, 2.9])])
def test_the_first_step_of_an_optimizer(optimize, expected):
    step = {"sgd": 0.1, "rmsprop": 0.1, "adam": 0.1}[optimize.__name__]
    found = optimize(grad(lambda x, i: 2 * anp.sum(x**2)), np.array([1.0, 3.0]), num_iters=1,
                     step_size=step)
    if optimize is rmsprop:
        g = 4 * np.array([1.0, 3.0])
        expected = [1.0, 3.0] - 0.1 * g / np.sqrt(0.9 + 0.1 * g**2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_optimizers_can_be_differentiated():
    def trained(rate):
        return sgd(grad(lambda x, i: anp.sum(x**2)), np.array([1.0]), None, 3, rate)[0]

    check_grads(trained, modes=["rev"], order=1)(0.1)


def newton_sqrt(a):
    return fixed_point(
        lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: abs(x - y), 1e-10)


def test_fixed_points():
    np.testing.assert_allclose(newton_sqrt(4.0), 2.0)
    np.testing.assert_allclose(grad(newton_sqrt)(4.0), 0.25)
    np.testing.assert_allclose(grad(grad(newton_sqrt))(4.0), -1 / 32, rtol=1e-6)

    def solved(p):  # x = b + 0.5 sin(w x)
        return anp.sum(fixed_point(
            lambda p: lambda x: p["b"] + 0.5 * anp.sin(p["w"] * x), p, np.zeros(2),
            lambda x, y: np.max(np.abs(x - y)), 1e-13))

    check_grads(solved, modes=["rev"], order=1)({"b": np.array([1.0, 2.0]), "w": 0.3})


def test_constant_graphs_run_the_function_once():
    runs = []

    def f(x, y, scale=1.0):
        runs.append(x)
        return scale * anp.sum(anp.sin(x) * y + grad(lambda z: anp.sum(z**2 * y))(x))

    x, y = np.array([0.3, 0.7]), np.array([1.0, 2.0])
    cached = const_graph(f, scale=2.0)
    for factor in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(cached(factor * x, y), f(factor * x, y, 2.0))
    assert len(runs) == 4 and cached.__name__ == "f"
    fixed = const_graph(f, x)
    np.testing.assert_allclose([fixed(y), fixed(2 * y)], [f(x, y), f(x, 2 * y)])
    with pytest.raises(Exception, match="independent"), pytest.warns(UserWarning):
        const_graph(lambda x: 3.0)(1.0)


def test_full_graphs_have_values_and_arguments():
    end = full_graph(lambda x, y: anp.exp(x) * y, 0.0, 2.0)
    fun, args, _, parents = end.recipe
    assert end.value == 2.0 and fun.__name__ == "multiply" and len(parents) == 2
    exponential = parents[0][1]
    assert exponential.recipe[0].__name__ == "exp" and exponential.value == 1.0


def test_sorted_graphs():
    graph = {"a": ["b", "c", "c"], "b": ["d"], "c": ["d", "b"], "d": []}
    order = list(util.toposort("a", graph.__getitem__))
    assert sorted(order) == sorted(graph)
    assert all(order.index(node) < order.index(parent) for node in graph for parent in graph[node])
    assert util.func(len) is len and util.subval([1, 2], 1, 5) == (1, 5)


def test_planted_errors_are_found():
    @primitive
    def doubled(x):
        return 2 * x

    defvjp(doubled, lambda ans, x: lambda g: 2.001 * g)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of doubled failed with arg 1.0"):
        check_grads(doubled, modes=["rev"])(1.0)
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_grads(lambda x: x * cytape.stop_gradient(x), modes=["fwd"])(2.0)
    with pytest.raises(AssertionError, match="VSpace mismatch"):
        check_equivalent(np.ones(2), np.ones(3))
    with pytest.raises(AssertionError):
        combo_check(lambda x, n: doubled(x) * n, modes=["rev"])([1.0], n=[1, 2])
    with pytest.raises(AssertionError):
        check_grads(anp.sin, modes=["sideways"])(1.0)
    with pytest.warns(UserWarning, match="deprecated"):
        util.quick_grad_check(lambda x, n: x**n, 2.0, (3,))


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name not in ("float32", "named")])
def test_axioms_of_vector_spaces(name):
    space = vspace(STRUCTURES[name])
    x, y, z = space.randn(), space.randn(), space.randn()
    assert vspace(x) == vspace(space.add(x, y)) == vspace(space.scalar_mul(x, 2.0)) == space
    assert vspace(space.zeros()) == vspace(space.ones()) == space
    basis = list(space.standard_basis())
    assert len(basis) == space.size and all(vspace(vector) == space for vector in basis)
    products = [[float(space.inner_prod(a, b)) for b in basis] for a in basis]
    np.testing.assert_array_equal(np.reshape(products, (space.size,) * 2), np.eye(space.size))
    total = space.zeros()
    for vector in basis:
        total = space.add(total, vector)
    check_equivalent(total, space.ones())
    check_equivalent(space.add(x, space.add(y, z)), space.add(space.add(x, y), z))
    check_equivalent(space.covector(space.covector(x)), x)
    mean = space.scalar_mul(space.add(x, y), 0.5)
    np.testing.assert_allclose(
        space.inner_prod(mean, z), 0.5 * (space.inner_prod(x, z) + space.inner_prod(y, z)))


def test_dicts_are_added_by_their_keys():
    space = vspace({"a": 1.0, "b": np.ones(2)})
    total = space.add({"b": np.ones(2), "a": 2.0}, {"a": 3.0, "b": np.zeros(2)})
    check_equivalent(total, {"a": 5.0, "b": np.ones(2)})
    assert space.inner_prod({"b": np.ones(2), "a": 2.0}, space.ones()) == 4.0


def test_derivatives_of_operations_of_vector_spaces():
    space = vspace([1.0, {"x": np.ones((2, 1))}])
    check_grads(space.add, (0, 1))(space.randn(), space.randn())
    check_grads(space.scalar_mul, (0, 1))(space.randn(), 0.7)
    check_grads(space.inner_prod, (0, 1))(space.randn(), space.randn())


def test_spaces_of_arrays():
    real, imaginary = vspace(np.ones((2, 3))), vspace(np.ones((2, 3), np.complex64))
    assert type(real) is ArrayVSpace and type(imaginary) is ComplexArrayVSpace
    assert (real.size, imaginary.size, real.ndim) == (6, 12, 2)
    assert imaginary.iscomplex and not real.iscomplex and real != imaginary
    assert imaginary.randn().dtype == imaginary.ones().dtype == np.complex64
    assert vspace(cytape.constant([1j])) == vspace(np.ones(1) * 1j)
    assert vspace(cytape.Variable([1.0])) == vspace(np.ones(1))
    assert cytape.function(lambda x: x * vspace(x).size)(np.ones(3)).tolist() == [3.0] * 3
    with pytest.raises(TypeError, match="Can't find vector space for value"):
        vspace(cytape.constant(1))
    eigen = np.linalg.eigh(np.eye(2))
    assert type(vspace(eigen).zeros()) is type(eigen)
    assert all(type(vector) is type(eigen) for vector in vspace(eigen).standard_basis())


def test_types_of_boxes():
    seen = []

    def f(p):
        seen.extend([builtins.type(p["x"]), builtins.type(p["y"]), builtins.type(p["z"])])
        assert builtins.isinstance(p, dict) and not builtins.isinstance(p["x"], float)
        assert builtins.isinstance(p["x"], np.ndarray) and builtins.isinstance(p["y"], float)
        assert builtins.isinstance(p["z"], (int, complex)) and isinstance(p, builtins.DictBox)
        assert isinstance([p["x"]], builtins.SequenceBox)
        assert not isinstance(p, builtins.SequenceBox)
        pair = builtins.tuple([p["x"], p["y"]])
        assert builtins.isinstance(pair, builtins.tuple) and builtins.type(pair) is tuple
        named = builtins.dict(a=builtins.list(pair)[1], b=builtins.make_sequence(tuple, p["z"]))
        return anp.sum(pair[0]) * named["a"] + anp.real(builtins.container_take(named["b"], 0))

    found = grad(f)({"x": np.ones(2), "y": 2.0, "z": 1j})
    assert seen == [np.ndarray, np.float64, np.complex128]
    np.testing.assert_array_equal(found["x"], [2.0, 2.0])
    assert found["y"] == 2.0 and found["z"] == 1.0
    assert cytape.function(lambda x: x * (builtins.type(x) is np.ndarray))(np.ones(1)) == 1.0
    assert builtins.isinstance(3, int) and builtins.type("a") is str


def test_names_are_made_of_other_functions():
    named = wrap_util.wraps(np.sin, "{fun}_{what}", "{doc}", what="x")(lambda x: x)
    assert named.__name__ == "sin_x" and named.__doc__ == np.sin.__doc__
    assert wrap_util.get_name(3) == "[unknown name]" and misc.flatten is flatten
