"""Records of distances between points; none without SciPy."""

import numpy as np

from tests.ops.op_specs import SINGLE_AND_DOUBLE, OpSpec, case, uniform

try:
    import scipy.spatial.distance as scipys

    import cytape.scipy.spatial.distance as ours
except ImportError:
    scipys = None


def off_the_grid(rng, shape):
    """Draw coordinates whose differences and sums are far from 0."""
    steps = rng.permutation(int(np.prod(shape))).reshape(shape)
    return 0.4 + 0.25 * steps + rng.uniform(0, 0.05, shape)


def table(op, metric, cases, **options):
    def fn(*args, **kwargs):
        return ours.cdist(*args, metric, **kwargs)

    def ref(*args, **kwargs):
        return scipys.cdist(*args, metric, **kwargs)

    return OpSpec(op, fn, ref, cases, dtypes=SINGLE_AND_DOUBLE, **options)


def condensed(x):
    return x[np.triu_indices(len(x), 1)]


TABLE = [case((4, 3), (2, 3)), case((1, 2), (1, 2))]
SPECS = [] if scipys is None else [
    table("ScipyDistanceEuclidean", "euclidean", [*TABLE, case((0, 3), (2, 3))]),
    table("ScipyDistanceEuclidean", "sqeuclidean", TABLE),
    *[table("ScipyDistanceTable", metric, [*TABLE[:1], *cases], domain=off_the_grid)
      for metric, cases in (
          ("cityblock", TABLE[1:]), ("chebyshev", ()), ("canberra", ()), ("braycurtis", ()),
          ("jensenshannon", ()), ("minkowski", [case((2, 3), (2, 3), p=3.5)]))],
    *[table("ScipyDistanceAngles", metric, TABLE[:1]) for metric in ("cosine", "correlation")],
    table("ScipyDistanceDiscrete", "hamming", TABLE[:1], differentiable=False),
    *[OpSpec("ScipyDistanceEuclideanPairs", lambda x, m=metric: ours.pdist(x, m),
             lambda x, m=metric: scipys.pdist(x, m), [case((4, 3)), case((2, 1)), case((1, 2))],
             dtypes=SINGLE_AND_DOUBLE) for metric in ("euclidean", "sqeuclidean")],
    OpSpec("ScipyDistancePairs", lambda x: ours.pdist(x, "cityblock"),
           lambda x: scipys.pdist(x, "cityblock"), [case((4, 3)), case((2, 1))], off_the_grid,
           dtypes=SINGLE_AND_DOUBLE),
    OpSpec("ScipyDistanceSquare", ours.squareform, scipys.squareform, [case((6,)), case((1,))],
           uniform(0, 2), dtypes=SINGLE_AND_DOUBLE),
    OpSpec("ScipyDistanceCondense", lambda x: ours.squareform(x, checks=False), condensed,
           [case((4, 4)), case((2, 2))], dtypes=SINGLE_AND_DOUBLE),
]
