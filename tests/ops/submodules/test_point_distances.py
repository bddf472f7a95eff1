"""Distances: SciPy's values, derivatives at equal points, operands, pairs of points, errors."""

import tracemalloc

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.spatial.distance")
ours = pytest.importorskip("cytape.scipy.spatial.distance")

X = np.array([[0.3, 1.4, 2.6], [3.2, 0.7, 1.9], [2.2, 2.9, 0.2], [1.1, 3.6, 3.3]])
Y = np.array([[1.7, 0.9, 0.5], [0.6, 2.1, 3.9]])
W = np.array([1.0, 2.0, 0.5])
METRICS = {
    **{name: {} for name in (
        "euclidean", "sqeuclidean", "cityblock", "chebyshev", "canberra", "braycurtis", "cosine",
        "correlation", "jensenshannon", "mahalanobis", "seuclidean")},
    "minkowski": {"p": 3}}
SHAPED = {"mahalanobis": {"VI": np.diag(W) + 0.1}, "seuclidean": {"V": W}}
WEIGHTED = {name: {"w": W} for name in (
    "euclidean", "sqeuclidean", "cityblock", "chebyshev", "canberra", "braycurtis")}
CASES = [*METRICS.items(), *SHAPED.items(), *WEIGHTED.items(),
         ("minkowski", {"p": 1.5, "w": W}), ("minkowski", {"p": np.inf})]


@each("metric, options", CASES)
def test_values_and_derivatives(metric, options):
    for alias in (metric, metric.upper(), getattr(scipys, metric)):
        np.testing.assert_allclose(
            ours.cdist(cytape.constant(X), Y, alias, **options),
            scipys.cdist(X, Y, metric, **options), 1e-13)
    check_grads(lambda x, y: ours.cdist(x, y, metric, **options), [X, Y], order=1)
    np.testing.assert_allclose(
        ours.pdist(cytape.constant(X), metric, **options), scipys.pdist(X, metric, **options),
        1e-13)
    check_grads(lambda x: ours.pdist(x, metric, **options), [X])
    for name in ("V", "VI", "w") if metric != "chebyshev" else ():
        if name in options:
            check_grads(lambda x: ours.cdist(X, Y, metric, **options | {name: x}),  # noqa: B023
                        [options[name]], order=1)


@each("metric, options", CASES)
def test_derivatives_at_equal_points_are_finite(metric, options):
    points = np.concatenate([X, X[:2]])
    points[0, 0] = points[4, 0] = 0
    if metric in ("cosine", "correlation"):
        options = {}

    def of_table(x):
        return cnp.sum(ours.cdist(x, x, metric, **options))

    def of_pairs(x):
        return 2 * cnp.sum(ours.pdist(x, metric, **options))

    first, second = cytape.grad(of_table)(points), cytape.hessian(of_table)(points)
    assert np.isfinite(first).all() and np.isfinite(second).all()
    if options or metric not in SHAPED:  # which otherwise count the points of a table twice
        np.testing.assert_allclose(cytape.grad(of_pairs)(points), first, 1e-9, 1e-12)
        np.testing.assert_allclose(cytape.hessian(of_pairs)(points), second, 1e-9, 1e-9)
    assert (cytape.grad(lambda x: ours.cdist(x, X[:1], metric, **options)[0, 0])(X) == 0).all() or (
        metric in ("cosine", "correlation", "mahalanobis", "seuclidean"))


@each("metric", ["euclidean", "cityblock", "cosine", lambda x, y: cnp.sum(x * y)])
def test_no_points_have_no_distances(metric):
    points = np.ones((0, 3))
    assert ours.pdist(cytape.constant(points), metric).shape == (0,)
    for function in (lambda f: f, cytape.function):
        gradient = function(cytape.grad(lambda x: cnp.sum(ours.pdist(x, metric))))(points)
        assert gradient.shape == (0, 3)


def test_one_point_of_zeros_has_derivatives():
    points = X[:3] * [[0], [1], [1]]
    expected = np.sum([cytape.hessian(lambda x, i=i, j=j: cnp.sum(ours.cdist(
        x[i:i + 1], x[j:j + 1], "braycurtis")))(points) for i, j in ((0, 1), (0, 2), (1, 2))], 0)
    np.testing.assert_allclose(
        cytape.hessian(lambda x: cnp.sum(ours.pdist(x, "braycurtis")))(points), expected, 1e-12)


@each("metric", ["euclidean", "cityblock", "cosine", "mahalanobis"])
def test_derivatives_on_all_ways(metric):
    def f(x):
        return cnp.sum(ours.cdist(x, Y, metric) ** 2) + cnp.sum(ours.pdist(x, metric) ** 3)

    def plain(x):
        def distances(x, y):
            d = cnp.expand_dims(x, 1) - y
            if metric == "cityblock":
                return cnp.sum(cnp.abs(d), -1)
            if metric == "cosine":
                return 1 - x @ y.T / cnp.outer(
                    cnp.sqrt(cnp.sum(x**2, 1)), cnp.sqrt(cnp.sum(y**2, 1)))
            both = x if y is x else cnp.concatenate([x, y])
            form = np.eye(3) if metric == "euclidean" else cnp.linalg.inv(cnp.cov(both.T))
            square = cnp.sum(cnp.matmul(d, form) * d, -1)
            return cnp.sqrt(square + (np.eye(len(x)) if y is x else 0))

        return cnp.sum(distances(x, Y) ** 2) + cnp.sum(
            distances(x, x)[np.triu_indices(len(X), 1)] ** 3)

    some = ways.WAYS if metric in ("euclidean", "cityblock") else ways.OF_KNOWN_EXTENTS
    ways.check(f, plain, X, rtol=1e-8, atol=1e-8,
               ways=[way for way in some if way != "unknown extents"])


def test_pairs_of_points():
    u, v = X[0], X[1]
    for metric, options in [*CASES, ("jensenshannon", {"base": 2.0})]:
        if metric in SHAPED and not options:
            continue
        theirs, function = getattr(scipys, metric), getattr(ours, metric)
        found = function(cytape.constant(u), v, **options)
        np.testing.assert_allclose(found, theirs(u, v, **options), 1e-13)
        check_grads(lambda u, v: function(u, v, **options), [u, v], order=1)  # noqa: B023
        assert function(u, v, **options) == theirs(u, v, **options)
    along = ours.jensenshannon(cytape.constant(X), X[::-1], axis=1, keepdims=True)
    np.testing.assert_allclose(along, scipys.jensenshannon(X, X[::-1], axis=1, keepdims=True))
    assert ours.minkowski([cytape.constant(0.0), 3.0], [4.0, 0.0], 2).numpy() == 5


def test_functions_as_metrics():
    def metric(u, v, scale=1.0):
        return scale * cnp.sum(cnp.abs(u - v))

    for distances, args in ((ours.cdist, (X, Y)), (ours.pdist, (X,))):
        expected = 2 * distances(*args, "cityblock")
        found = distances(*map(cytape.constant, args), metric, scale=cytape.constant(2.0))
        np.testing.assert_allclose(found, expected)
    slope = cytape.grad(lambda s: cnp.sum(ours.cdist(X, Y, metric, scale=s)))(1.0)
    np.testing.assert_allclose(slope, np.sum(scipys.cdist(X, Y, "cityblock")))


def test_square_forms():
    matrix = scipys.squareform(np.arange(1.0, 7.0))
    check_grads(ours.squareform, [np.arange(1.0, 7.0)])
    check_grads(lambda x: ours.squareform(x, checks=False), [matrix])
    ways.check(lambda x: cnp.sum(ours.squareform(x) ** 3),
               lambda x: 2 * cnp.sum(x**3), np.arange(1.0, 7.0))
    assert ours.squareform(cytape.constant(matrix)).numpy().tolist() == [1, 2, 3, 4, 5, 6]
    for wrong, match in ((np.ones((2, 3)), "square"), (np.ones(4), "Incompatible"),
                         (np.arange(9.0).reshape(3, 3), "symmetric|zero")):
        with pytest.raises(ValueError, match=match):
            ours.squareform(cytape.constant(wrong))


def test_gradients_do_not_hold_all_differences():
    x = cytape.constant(np.random.default_rng(0).uniform(size=(400, 50)))
    for metric in ("euclidean", "cityblock"):
        slope = cytape.grad(lambda x: cnp.sum(ours.cdist(x, x, metric)))  # noqa: B023
        slope(x)
        tracemalloc.start()
        slope(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 400 * 400 * 50 * 8 / 4


def test_errors_are_scipys():
    x = cytape.constant(X)
    cases = [
        (ours.cdist, (x, Y[:, :2])), (ours.cdist, (x, Y[0])), (ours.cdist, (x, Y, "nonsense")),
        (ours.cdist, (x, Y, 3)), (ours.pdist, (x[0],)), (ours.pdist, (x[:3], "mahalanobis")),
        (ours.euclidean, (x, Y[0])), (ours.euclidean, (x[0], Y[0], None, 3))]
    for function, args in cases:
        theirs = getattr(scipys, function.__name__)
        plain = [arg.numpy() if isinstance(arg, cytape.Tensor) else arg for arg in args]
        with pytest.raises(Exception) as expected:  # noqa: PT011
            theirs(*plain)
        with pytest.raises(expected.type) as found:
            function(*args)
        assert str(found.value) == str(expected.value)
    for metric in ("cosine", "correlation"):
        with pytest.raises(TypeError, match="does not take w"):
            ours.cdist(x, Y, metric, w=W)
    for distances in (lambda x: ours.cdist(x, Y, out=np.zeros((4, 2))),
                      lambda x: ours.pdist(x, out=np.zeros(6))):
        with pytest.raises(TypeError, match="does not take out"):
            distances(x)
    for distances in (
            lambda z: ours.cdist(z, Y), lambda z: ours.cdist(Y, z, "cosine"), ours.pdist,
            lambda z: ours.cdist(X, Y, "mahalanobis", VI=z[:3]),
            lambda z: ours.euclidean(z[0], Y[0]), lambda z: ours.jensenshannon(z[0], Y[0])):
        for call in (distances, cytape.function(distances)):
            with pytest.raises(TypeError, match="expected real points.*complex128"):
                call(cytape.constant(X + 1j))
    assert ways.gradients(lambda x: ours.cdist(x, Y, "hamming"), X) == [None]
    assert ours.directed_hausdorff is scipys.directed_hausdorff and "cdist" in dir(ours)


def test_distances_that_overflow_have_no_derivative():
    points = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]) * [[1e200], [1.0], [1.0]]
    for options in ({}, {"metric": "minkowski", "p": 3}):
        gradient = cytape.grad(lambda x, options=options: np.sum(
            ours.cdist(x, np.ones((1, 2)), **options)))(points)
        assert np.isnan(gradient[0]).all() and np.isfinite(gradient[1:]).all()


def test_squareform_of_a_number():
    found = ours.squareform(cytape.constant(0.5))
    np.testing.assert_array_equal(found, scipys.squareform(0.5))


@each("options", [
    {"metric": "seuclidean", "V": np.ones(1)}, {"metric": "seuclidean", "V": np.ones((3, 1))},
    {"metric": "mahalanobis", "VI": np.ones((1, 3))}, {"metric": "minkowski", "w": np.ones(2)}])
def test_weights_of_other_shapes_are_refused(options):
    with pytest.raises(ValueError, match="must have the shape .* for points of 3 coordinates"):
        ours.cdist(cytape.constant(X), Y, **options)


def test_points_of_other_dimensions_are_refused():
    for x, y in ((X[:, :1], Y), (X, Y[0])):
        with pytest.raises(ValueError, match="number of columns|2-dimensional"):
            ours.cdist(cytape.constant(x), y, "seuclidean", V=np.ones(3))
