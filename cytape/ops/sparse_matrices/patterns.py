"""Positions of the stored elements of a sparse matrix, in compressed rows."""

import numpy as np
import scipy.sparse as sparse


class Pattern:
    """Positions of stored elements, sorted by rows and columns, each once.

    Attributes
    ----------
    indices, indptr : numpy.ndarray
        As those of `scipy.sparse.csr_array`.
    shape : tuple of int

    Examples
    --------
    >>> Pattern([1], [0, 1, 1], (2, 2)).matrix(np.array([5.0])).toarray()
    array([[0., 5.],
           [0., 0.]])
    """

    def __init__(self, indices, indptr, shape):
        self.indices, self.indptr = np.asarray(indices), np.asarray(indptr)
        self.shape = tuple(map(int, shape))
        self._rows = None

    @property
    def size(self):
        """The number of stored elements."""
        return self.indices.size

    @property
    def rows(self):
        """The row of each element."""
        if self._rows is None:
            counts = np.diff(self.indptr)
            self._rows = np.repeat(np.arange(counts.size, dtype=self.indices.dtype), counts)
        return self._rows

    def matrix(self, data):
        """Return SciPy's matrix of these values, which shares the memory."""
        return sparse.csr_array((data, self.indices, self.indptr), shape=self.shape)

    def columns_matrix(self, data):
        """Return SciPy's matrix of these values, transposed, in compressed columns."""
        return sparse.csc_array((data, self.indices, self.indptr), shape=self.shape[::-1])


def pattern_of(rows, cols, shape):
    """Return the pattern of elements in any order, and the matrix that sorts and sums their values.

    The latter is None if there is nothing to do.
    """
    rows, cols = np.asarray(rows), np.asarray(cols)
    n_rows, n_cols = shape
    for name, places, extent in (("row", rows, n_rows), ("column", cols, n_cols)):
        if places.dtype.kind not in "iu" and places.size:
            raise TypeError(f"{name} indices must be integers, got {places.dtype}")
        if places.size and (places.min() < 0 or places.max() >= extent):
            raise ValueError(
                f"{name} index {places.max() if places.max() >= extent else places.min()} is out "
                f"of bounds for {extent} {name}s")
    keys = rows.astype(np.int64) * max(n_cols, 1) + cols
    kept, where = np.unique(keys, return_inverse=True)
    indices = (kept % max(n_cols, 1)).astype(np.int32)
    indptr = np.searchsorted(kept, np.arange(n_rows + 1) * max(n_cols, 1)).astype(np.int32)
    pattern = Pattern(indices, indptr, shape)
    if kept.size == keys.size and np.array_equal(where, np.arange(keys.size)):
        return pattern, None
    n = keys.size
    summing = sparse.csr_array((np.ones(n), (where, np.arange(n))), shape=(kept.size, n))
    return pattern, Pattern(summing.indices, summing.indptr, summing.shape)
