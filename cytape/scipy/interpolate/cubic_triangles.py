"""Cubic interpolation of tensors in triangles, by the method of Clough and Tocher.

The interpolant is linear in the values: its slopes at the points solve a sparse linear system, and
each triangle has a polynomial of barycentric coordinates for each of its three parts. Alfeld, "A
trivariate Clough-Tocher scheme for tetrahedral data" (1984), has the coefficients.
"""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.interpolate as _scipys
import scipy.sparse as sparse

import cytape.numpy as cnp
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.shaping import extents
from cytape.ops.sparse_matrices.sparse_solves import splu
from cytape.scipy.interpolate.tensor_data import (
    coordinates,
    looked_up,
    outside,
    plain,
    tensors_of,
)


class CloughTocher2DInterpolator(_scipys.CloughTocher2DInterpolator):
    """Cubic interpolation in triangles, as `scipy.interpolate.CloughTocher2DInterpolator`.

    Has derivatives in the values and the points of a call. Slopes for values that are tensors are
    exact, while SciPy's iterations stop at `tol`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.interpolate import CloughTocher2DInterpolator
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> f = CloughTocher2DInterpolator(points, points @ [2.0, 3.0])
    >>> cytape.grad(lambda x: f(x)[0])(np.array([[0.25, 0.5]])).round(6)
    array([[2., 3.]])
    """

    def __init__(
        self, points: Any, values: Any, fill_value: Any = np.nan, *args: Any, **options: Any,
    ) -> None:
        if is_tensor(points):
            raise TypeError(
                "CloughTocher2DInterpolator has no derivatives in its points: pass an array; "
                "RBFInterpolator and LinearNDInterpolator have")
        values = joined(values)
        super().__init__(points, plain(values), fill_value, *args, **options)
        self._data, self._fill = tensors_of(values), fill_value

    def __call__(self, *args: Any) -> Any:
        """Return values, as SciPy's method does."""
        if self._data is None and not is_tensor(args):
            return super().__call__(*args)
        xi = coordinates(args, 2)
        flat = cnp.reshape(xi, (-1, 2))
        simplex = looked_up(self._simplices, flat, np.intp)
        inside = cnp.maximum(simplex, 0)
        found = outside(simplex < 0, self._fill, cnp.sum(flat, 1), self._cubic(inside, flat))
        return cnp.reshape(found, (*extents(xi)[:-1], *self.values_shape))

    def _scaled(self, points: Any) -> Any:
        return points if self.scale is None else (points - self.offset) / self.scale

    def _simplices(self, points: np.ndarray) -> np.ndarray:
        """Return the number of the triangle of each point, -1 outside."""
        return self.tri.find_simplex(self._scaled(points)).astype(np.intp)

    def _table(self) -> tuple:
        """Return values and slopes, with the points along the first axis and one last axis."""
        if self._data is None:
            return self.values, np.swapaxes(self.grad, 1, 2)
        values = cnp.reshape(self._data[0], (len(self.tri.points), -1))
        factors, differences = self._system
        slopes = splu(factors.astype(values.dtype)).solve(differences.astype(values.dtype) @ values)
        return values, cnp.reshape(slopes, (len(self.tri.points), 2, -1))

    @cached_property
    def _system(self) -> tuple:
        """Matrices A and B of the equations A slopes = B values.

        They minimise the bending of cubic polynomials along all edges, as in SciPy.
        """
        n = len(self.tri.points)
        starts, ends = self.tri.vertex_neighbor_vertices
        i, j = np.repeat(np.arange(n), np.diff(starts)), ends
        edges = self.tri.points[j] - self.tri.points[i]
        weights = np.linalg.norm(edges, axis=1) ** -3
        x, y = np.meshgrid([0, 1], [0, 1])
        blocks = (weights * (edges[:, x] * edges[:, y]).T).T
        at = lambda k, axis: (2 * k[:, None, None] + axis).ravel()  # noqa: E731
        alone = np.repeat(np.diff(starts) == 0, 2).astype(float)  # points that are in no triangle
        factors = sparse.diags_array(alone, format="csc") + sparse.csc_array((
            np.concatenate([4 * blocks.ravel(), 2 * blocks.ravel()]),
            (np.tile(at(i, y), 2), np.concatenate([at(i, x), at(j, x)]))), shape=(2 * n, 2 * n))
        terms = 6 * weights[:, None] * edges
        rows = (2 * i[:, None] + [0, 1]).ravel()
        differences = sparse.csr_array((
            np.concatenate([terms.ravel(), -terms.ravel()]),
            (np.tile(rows, 2), np.concatenate([np.repeat(j, 2), np.repeat(i, 2)]))),
            shape=(2 * n, n))
        return sparse.csc_array(factors), differences

    @cached_property
    def _mixings(self) -> Any:
        """How the derivative across each side of a triangle follows its neighbour's centroid."""
        tri = self.tri
        centroids = tri.points[tri.simplices].mean(1)[tri.neighbors]
        two = np.einsum("sij,skj->ski", tri.transform[:, :2], centroids - tri.transform[:, None, 2])
        three = np.concatenate([two, 1 - two.sum(-1, keepdims=True)], -1)
        sides = np.arange(3)
        first, second = three[:, sides, (sides + 1) % 3], three[:, sides, (sides + 2) % 3]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (2 * second + first - 1) / (2 - 3 * second - 3 * first)
        return np.where(tri.neighbors < 0, -0.5, found)

    def _cubic(self, simplex: Any, points: Any) -> Any:
        corners = cnp.take(self.tri.simplices, simplex, axis=0)
        transform = cnp.take(self.tri.transform, simplex, axis=0)
        shares = cnp.einsum(
            "mij,mj->mi", transform[:, :2], self._scaled(points) - transform[:, 2])
        shares = cnp.concatenate([shares, 1 - cnp.sum(shares, 1, keepdims=True)], 1)
        values, slopes = (cnp.take(x, corners, axis=0) for x in self._table())
        vertices = cnp.take(self.tri.points, corners, axis=0)
        mixings = cnp.take(self._mixings, simplex, axis=0)
        # Coefficients: at corners, next to corner i towards corner j, towards the centre.
        f = [values[:, i] for i in range(3)]
        near = {(i, j): f[i] + cnp.einsum(
                    "md,mdk->mk", vertices[:, j] - vertices[:, i], slopes[:, i]) / 3
                for i in range(3) for j in range(3) if i != j}
        inner = [(f[i] + near[i, (i + 1) % 3] + near[i, (i + 2) % 3]) / 3 for i in range(3)]
        across = []  # next to the centre, at the side opposite to each corner
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            third = -f[i] + 3 * near[i, j] - 3 * near[j, i] + f[j]
            second = -f[i] + 2 * near[i, j] - near[j, i] + inner[i] + inner[j]
            across.append((mixings[:, k, None] * third + second) / 2)
        central = [(inner[i] + across[(i + 1) % 3] + across[(i + 2) % 3]) / 3 for i in range(3)]
        centre = (central[0] + central[1] + central[2]) / 3
        least = cnp.min(shares, 1, keepdims=True)
        b, c = [(shares - least)[:, i, None] for i in range(3)], 3 * least
        total = c**3 * centre
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            total = total + b[i] * (
                b[i] ** 2 * f[i] + 3 * b[i] * (b[j] * near[i, j] + b[k] * near[i, k] + c * inner[i])
                + 3 * c**2 * central[i]) + 6 * b[j] * b[k] * c * across[i]
        return total
