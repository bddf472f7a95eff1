"""Calls of NumPy's functions that are ill-formed, and some that only look so.

`REFUSED` and `ACCEPTED` have arguments by the name of the function. The others are expressions of
an array `x`, by its name, separated by semicolons. Names of arrays are those of `ARRAYS`.
"""

import numpy as np

ARRAYS = {
    "S": np.array(0.3), "E0": np.ones(0), "E03": np.ones((0, 3)), "V3": np.array([0.5, -1.0, 2.0]),
    "V4": np.array([1.0, 2.0, 4.0, 3.0]), "C3": np.array([0.5, -1.0, 2.0]) + 1j,
    "I3": np.array([0, 2, 1]), "B3": np.array([True, False, True]),
    "M23": np.arange(1.0, 7.0).reshape(2, 3), "M32": np.arange(1.0, 7.0).reshape(2, 3).T,
    "M33": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), "SING": np.ones((3, 3)),
    "V6": np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.0]), "P": np.array([0.0, 0.0, 1.0, -3.0, 2.0]),
    "NAN3": np.array([2.0, np.nan, 1.0]), "T": np.arange(24.0).reshape(2, 3, 4),
    "NAN23": np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]]), "TWO": np.array(2.0),
    "X23": np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 3.0]]), "TAKEN": np.eye(3)[:2] < 1,
    "A32": np.array([[2.0, 1.0], [0.5, 3.0], [1.0, -1.0]]), "PLANE": np.array([[1.0, 2], [2, 4]]),
    "EDGES": np.array([0.0, 1.0, 3.0]), "I23": np.array([[1, 2, 4], [0, 5, 3]]),
    "C23": np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 3.0]], complex), "F2": np.array([1.0, 2.5]),
    "I2": np.array([1, 2]), "H2": np.float16([1, 2]), "S2": np.float32([1, 2]),
    "C2": np.complex64([1, 2]), "NAN22": np.full((2, 2), np.nan)}

REFUSED = {
    (
        "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan "
        "atanh conj conjugate cos cosh exp exp2 expm1 log log10 log1p log2 negative positive "
        "reciprocal sinh sqrt square tan tanh"
    ): ["M23, dtype=3"],
    "cbrt deg2rad degrees fabs rad2deg radians i0 modf frexp": ["C3"],
    "sin": ["M23, dtype=3", "M23, subok='x'"],
    "nan_to_num": ["M23, nan='x'"],
    "angle": ["M23, deg=np.array([1, 2])"],
    (
        "add subtract multiply divide true_divide arctan2 atan2 copysign float_power fmax fmin "
        "fmod hypot logaddexp logaddexp2 maximum minimum mod power pow remainder divmod inner"
    ): ["T, V3"],
    "ldexp dot matmul vecmat": ["T, T"],
    "sum nansum": ["S, axis=1", "M23, axis=-4", "M23, dtype=3", "M23, keepdims='x'"],
    "prod nanprod nanmean nanstd nanvar": ["S, axis=1", "M23, axis=-4", "M23, dtype=3"],
    "mean std var": ["S, axis=0", "S, axis=-1", "M23, dtype=3"],
    "max nanmin": ["E0", "S, axis=1", "M23, axis=-4", "M23, where=V3"],
    "min amax amin": ["E0", "S, axis=1", "M23, axis=-4"],
    "ptp": ["E0", "S, axis=1", "M23, axis=-4", "M23, keepdims=None"],
    "nanmax": ["E0", "S, axis=1", "M23, axis=-4", "M23, keepdims=2.5"],
    "median nanmedian average flip": ["S, axis=0", "S, axis=-1", "M23, axis=1.0"],
    "cumsum cumprod nancumsum nancumprod": ["S, axis=1", "M23, axis=-4", "M23, axis=()"],
    "sort": ["S", "S, axis=0", "M23, kind=3"],
    "cumulative_sum": ["T", "S, axis=1", "V3, axis=-4", "M23, axis=(0, 1)", "M23, axis=(0, 5)"],
    "cumulative_prod": ["T", "S, axis=1", "V3, axis=-4"],
    "percentile": ["M23, V3", "E0, 30.0", "C3, 30.0"],
    "nanpercentile": ["M23, V3", "C3, 30.0", "M23, 'x'"],
    "quantile": ["E0, 0.3", "C3, 0.3", "M23, V3"],
    "nanquantile": ["C3, 0.3", "M23, V3", "M23, 'x'"],
    "partition": ["S, 1", "M23, 3", "M23, ()"],
    "unique": ["S, axis=0", "S, axis=-1", "V3, axis=()"],
    "append": ["T, S, axis=0", "S, T, axis=0", "M32, M23, axis=0"],
    "apply_along_axis": ["3, 0, M23", "'x', 0, M23"],
    "apply_over_axes": ["3, M23, [0]"],
    "arange": ["S, 3.0, bogus=1", "S, 3.0, 1.0, None, 1"],
    "array": ["M23, dtype=3", "M23, order=3", "M23, copy='x'", "M23, ndmin=65"],
    "asanyarray": ["M23, dtype=3", "M23, order=3", "M23, copy='x'"],
    "asarray": ["M23, dtype=3", "M23, order=3", "M23, copy='x'", "M23, bogus=1"],
    "asarray_chkfinite": ["M23, dtype=3", "M23, order=3", "M23, dtype='foo'"],
    "ascontiguousarray asfortranarray require": [
        "M23, dtype=3", "M23, like='x'", "M23, dtype='foo'",
    ],
    "copy ravel": ["M23, order=3", "M23, order='foo'"],
    "array_split": ["S, 3", "V4, 0", "V4, 'x'"],
    "split": ["S, 2", "V3, 2", "V4, 0", "V4, 2.5", "V4, -1"],
    "hsplit": ["S, 3", "V4, 3", "M23, 0"],
    "vsplit": ["S, 2", "M32, 2", "M23, 0", "V4, 2"],
    "dsplit": ["S, 2", "T, 0", "T, 3"],
    "unstack": ["S", "E0, axis=1", "M23, axis=-4", "M23, axis=(0, 5)"],
    "astype": ["M23, 3", "M23, 'foo'"],
    "bincount": ["T, T", "S, T", "E0, T"],
    "broadcast_arrays": ["T, V3", "[[1.0, 2.0], [3.0]], V3"],
    "broadcast_to": ["V3, 0", "V3, -1", "V3, ()"],
    "choose": ["T, [V3, V3]", "S, [V3, V3]", "I3, [V3, V3]"],
    "clip": ["M23, V3, T", "M23, 2.0, 'x'", "M23, 2.0, 4.0, min=V3", "M23, 'x', 2.0"],
    "column_stack vstack row_stack": ["S", "[V3, V4]", "[M23, T]"],
    "concat concatenate": ["S", "[S, S]", "[M23, T]"],
    "hstack": ["S", "[M23, T]", "[M23, M33]"],
    "dstack": ["S", "[V3, V4]"],
    "stack": ["S", "[V3, V4]", "[M23, M23], axis=5"],
    "compress": ["T, T, axis=0", "V3, T, axis=0", "V3, E0, axis=0"],
    "convolve": ["T, T", "E0, T", "T, E0"],
    "correlate": ["T, T", "S, T", "E0, V3", "V4, S"],
    "corrcoef": ["T", "M23, dtype=3", "M23, dtype='S3'"],
    "cov": ["T", "M23, dtype=3", "M23, ddof='x'", "M23, aweights=M23"],
    "cross": ["T, T", "T, S", "M23, E03"],
    "delete": ["S, 1, axis=1", "M23, 1, axis=-4", "M23, 1, axis=()"],
    "diag": ["S", "V3, k=()", "V3, k=2.0"],
    "diagflat": ["V3, k=()", "V3, k=2.0"],
    "diagonal": ["S", "M23, axis1=1", "M23, axis1=2"],
    "diff": ["S", "M23, n=-1", "M23, n=()"],
    "ediff1d": ["V4, to_end=C3", "V4, to_begin='x'"],
    "einsum": ["S, M23, V3", "'ij,j->i', S, V3"],
    "expand_dims": ["M23, 5", "M23, -4", "M23, 1.0"],
    "extract": ["T, S", "T, E0", "[[1.0, 2.0], [3.0]], V3"],
    "fliplr flipud matrix_transpose linalg.svdvals linalg.matrix_transpose": ["S"],
    "squeeze": ["T, axis=0", "S, axis=1", "M23, axis=-4", "M23, axis=0"],
    "transpose permute_dims": ["M23, axes=0", "M23, axes=1.0", "M23, axes='x'"],
    "rot90": ["S", "E0", "M23, k=()"],
    "full": ["2.0, S", "'x', S", "2, S, order='K'"],
    "full_like": ["S, T", "M23, 'abc'", "M23, S, dtype=3"],
    "geomspace": ["T, T, 4", "E0, V3, 4", "V4, 9.0, 4, axis=(0, 0)"],
    "linspace": [
        "E0, T, 4", "S, None, 4", "S, 'abc', 4", "S, 3.0, 4, axis=(0, 1)",
        "S, 3.0, 4, device='gpu'",
    ],
    "logspace": ["E0, T, 4", "S, None, 4", "S, 'abc', 4"],
    "gradient": ["E0", "T, T", "V4, T"],
    "histogram": ["S, 4, weights=V3", "V3, 0, weights=V3", "V3, 2.0, weights=V3", "V3, V3"],
    "histogram2d": ["T, S, 3, weights=V3", "E0, V3, 3, weights=V3", "V3, V3, 0, weights=V3"],
    "histogramdd": ["S, 3, weights=V3", "M23, [V3, V3]"],
    "insert": ["S, 1, V3, axis=0", "M23, 1, V3, axis=-4", "M23, 1, V3, axis=()"],
    "interp": ["T, T, V3", "T, S, V3", "T, E0, V3"],
    "kron polysub polydiv": ["[[1.0, 2.0], [3.0]], V3"],
    "matvec vecdot": ["T, S"],
    "vdot": ["T, S", "[[1.0, 2.0], [3.0]], V3"],
    "outer": ["[[1.0, 2.0], [3.0]], V4"],
    "tensordot": ["T, T, 1", "T, S, 1", "M23, M33, ()"],
    "trace": ["S", "M33, axis1=1", "M33, axis1=2"],
    "meshgrid": [
        "V3, V4, indexing=3", "[[1.0, 2.0], [3.0]], V4", "V3, V4, copy=np.array([1, 2])",
        "V3, V4, indexing='foo'",
    ],
    "moveaxis": ["T, 0, 5", "S, 0, 1", "T, -4, 1"],
    "swapaxes": ["S, 0, 1", "T, -4, 1", "T, (), 1"],
    "rollaxis": ["S, 2", "T, -4", "T, ()"],
    "pad": [
        "M23, -1", "M23, ()", "V4, 2, mode=3", "V3, np.uint8(1)", "V3, True",
        "V4, 2.0, mode='reflect'",
    ],
    "piecewise": [
        "V3, [], [1.0, 2.0]", "V3, [True, False], [1.0, 2.0]", "M23, [V3 > 0], [1.0]",
        "V4, [B3], [1.0, 2.0]", "S, [B3, B3], [1.0, 2.0]",
    ],
    "select": ["[], [V3, V3], 0.0", "[V3, V3], [V3, V3], 0.0"],
    "where": ["T, T, V3", "[[1.0, 2.0], [3.0]], V3, V3"],
    "polyder polyint": ["S", "V3, m=-1", "V3, m=()"],
    "polyadd": ["[[1.0, 2.0], [3.0]], V3", "M23, V3"],
    "polymul": ["T, T", "[[1.0, 2.0], [3.0]], V3"],
    "polyfit": ["T, T, 1", "E0, T, 1", "V4, S, 1"],
    "polyval": ["S, T", "V3, None", "[[1.0, 2.0], [3.0]], V4", "S, V3"],
    "vander": ["S", "V3, N=-1", "V3, N=()", "V3, N=2.5"],
    "repeat": ["M23, -1", "M23, ()", "M23, 'x'", "M23, [1, 2], 1"],
    "reshape": ["M23, 0", "M23, 2.0", "M23, 'x'"],
    "resize": ["M23, -1", "M23, 2.0", "M23, 'x'", "V3, (2.0,)"],
    "roll": ["M23, 'x'", "M23, None", "S, 1, axis=0"],
    "take": ["S, T, axis=1", "T, T, axis=1", "T, S, axis=1"],
    "take_along_axis": ["T, T, 1", "M23, I3, 1", "M23, V3, 1"],
    "tile": ["M23, -1", "M23, 2.0", "M23, None"],
    "tril triu": ["S", "M33, k=()", "M33, k=np.array([1, 2])"],
    "trim_zeros": ["V3, axis=1.0", "V3, axis='x'", "V3, trim=None"],
    "trapezoid": ["S", "T, S", "E0, T"],
    "unwrap": ["S", "C3", "V4, axis=1"],
    "linalg.cholesky linalg.inv": ["S", "T", "SING"],
    "linalg.det linalg.eig linalg.eigvals linalg.slogdet": ["S", "T"],
    "linalg.eigh linalg.eigvalsh": ["S", "T", "M33, UPLO=3"],
    "linalg.svd": ["S", "M33, hermitian=np.array([1, 2])"],
    "linalg.qr": ["S", "M33, mode=3", "M33, mode=None"],
    "linalg.cond fft.ifft2 fft.rfft2": ["S", "E0", "E03"],
    "linalg.pinv": ["S", "E0", "M33, hermitian=np.array([1, 2])"],
    "linalg.norm": ["S, 3", "E03, 3", "V3, 1j", "M33, axis=[0]", "V3, 3, keepdims='x'"],
    "linalg.matrix_norm": ["S", "M33, ord=3"],
    "linalg.vector_norm": ["S, axis=0", "S, axis=-1", "V3, ord=1j", "M33, axis=[0]"],
    "linalg.solve": ["S, T", "T, T", "M33, S"],
    "linalg.lstsq": ["T, T", "E03, V3", "M33, V3, rcond='x'"],
    "linalg.matrix_power": ["S, 2", "T, 2", "M33, ()", "M23, 2"],
    "linalg.multi_dot": ["S", "[E0]", "[V3, V4]"],
    "linalg.tensorinv": ["T"],
    "linalg.tensorsolve": ["S, T", "T, T", "SING, V3"],
    "linalg.cross": ["T, T", "T, S", "E03, M23", "M32, V3"],
    "linalg.diagonal": ["S", "M33, offset=()", "M33, offset=2.0"],
    "linalg.matmul": ["T, T", "[[1.0, 2.0], [3.0]], M33"],
    "linalg.outer": ["T, T", "[[1.0, 2.0], [3.0]], V4"],
    "linalg.tensordot": ["T, T, 1"],
    "linalg.trace": ["S", "M33, dtype=3", "M33, offset=()"],
    "linalg.vecdot": ["T, S", "M23, E03", "T, V3, axis=1", "V3, V3, axis=[0]"],
    "fft.fft fft.ifft fft.irfft fft.hfft": ["S", "E0", "M33, n=()"],
    "fft.rfft fft.ihfft": ["S", "E0", "C3"],
    "fft.fft2": ["S", "E0", "E03", "M33, axes=2", "M33, s='x'"],
    "fft.irfft2": ["S", "E0", "E03", "M33, axes=()"],
    "fft.fftn fft.ifftn": ["E0", "M33, s=0", "M33, s=2.0"],
    "fft.rfftn": ["S", "E0", "C3", "M33, axes=()"],
    "fft.irfftn": ["S", "E0", "M33, s=0"],
    "fft.fftshift fft.ifftshift": ["S", "M33, axes=2", "M33, axes=1.0"],
    "argmax": ["M23, axis=(0, 1)"],
    "argsort": ["M23, axis=2"],
}

ACCEPTED = {
    "polyval": ["M33, V3", "T, S", "E03, V3", "M23, M23", "V4, M23"],
    "polyadd polysub": ["M33, V3", "M23, M23", "T, T", "S, M33"],
    "polymul": ["E0, V3", "V3, E0", "E0, E0"],
    "trapezoid": ["V4, M32 @ np.ones((2, 4))", "V3, M33", "M33, V3", "M33, M33, axis=0", "V4, T"],
    "average": ["M23, [0, 1]", "M23, axis=[0], weights=[2.0, 1.0]", "M23, axis=np.array([1])"],
    "clip": ["M23, [1.0, 0.0, 3.0], 4.0", "M23, None, [[2.0], [5.0]]"],
    "linspace logspace": ["S, 3.0, 4, axis=[0]", "V3, 3.0, 4, axis=-1"],
    "piecewise": [
        "M33, [B3, ~B3], [1.0, 2.0]", "M33, [B3], [np.sin, np.negative]",
        "V3, [B3], [np.array([7.0, 8.0]), 1.0]", "S, [True], [2.0]"],
    "cov": ["M23, bias=None", "M23, dtype=np.float32"], "corrcoef": ["M23, dtype=np.float32"],
    "unstack": ["M23, axis=[1]", "M23, axis=(0,)"], "vecdot linalg.vecdot": ["[1.0, 2.0, 3.0], V3"],
    "trim_zeros": ["S"],
    "linalg.norm": ["M33, axis=1.0", "M33, keepdims=1", "M33, keepdims=np.True_"],
    "fft.rfft2 fft.rfftn fft.fftn": ["M33, axes=(0, -1)"], "nanmedian": ["M23, keepdims=None"],
    "sum nansum mean": ["M23, keepdims=1"], "argsort": ["S", "S, axis=0"],
    "cumulative_sum": ["M23, axis=(1,)"], "split": ["V4, 2.0", "V4, [1, 9]"],
    "full": ["2, S, order='F'"]}

ALONG_ONE = "fft ifft rfft irfft hfft ihfft"
ALONG_MANY = "fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2"
REFUSED_OF_X = {
    "V4": """
        sort(x, -1.0); partition(x, 0, -1.0); sort(x, axis=2); sort(x, order='f');
        sort(x, kind='bogus'); sort(x, kind='stable', stable=True); partition(x, 9);
        partition(x, 0, kind='bogus'); unique(x, axis=3); quantile(x, 1.5);
        quantile(x, 0.5, method='bogus'); quantile(x * 1j, 0.5); percentile(x, 150);
        median(x, axis=2); quantile(x, 0.5, weights=np.ones(4)); trapezoid(x, axis=1);
        quantile(x.reshape(2, 2), 0.5, weights=np.ones(2), method='inverted_cdf');
        diff(x, -1); diff(x[0]); diff(x, axis=1); gradient(x, edge_order=3); gradient(x[:1]);
        gradient(x, 1.0, 2.0); gradient(x, np.ones(3)); gradient(x, np.ones((2, 2)));
        gradient(x[:2], edge_order=2); ediff1d(x > 0); ediff1d(x.astype('float32'), to_end=1j);
        unwrap(x, axis=1); cumulative_sum(x.reshape(2, 2)); trim_zeros(x, 'q'); delete(x, 9);
        insert(x, 9, 1.0); delete(x, 0, axis=3); resize(x, (-1, 2)); block([[x], x]);
        block(([x],)); insert(x, [0, 1], np.ones(3)); interp(x, EDGES, EDGES[:2]);
        interp(x, [EDGES], [EDGES]); interp(x, [], []); interp(x, EDGES, EDGES, period=0);
        split(x, 0); array_split(x, 0)""",
    "P": """
        polyint(x, 2, np.ones(0)); polyfit(x, x, -1); polyfit(x, x[1:], 1);
        polyfit(x, x, 1, w=x[1:]); poly(stack([x, x])); roots(stack([x, x])); vander(stack([x, x]))
        """,
    "T": """
        quantile(x.transpose(2, 0, 1), 0.4, (2, 0, 1), weights=T, method='inverted_cdf');
        quantile(x, 0.4, (2, 0, 1), weights=T[0], method='inverted_cdf');
        quantile(V4, x[:1, :2, :1] / 100, weights=np.ones(4), method='inverted_cdf');
        quantile(V4, x[:1, :2, :1] / 100, method='inverted_cdf')""",
    "TWO": """
        linspace(x, 1, -1); linspace(x, 1, 2.5); geomspace(0 * x, 1); linspace(x, 1, 3, axis=4)""",
    "V3": """
        convolve(x, np.ones((2, 2))); convolve(x[:0], x); convolve(x, x, 'half');
        correlate(x, x[:0]); take(x, [3]); take(x, np.array([0.5])); take(x, [0], axis=1);
        take_along_axis(x, np.array([[0]]), axis=0); take_along_axis(x, np.array([0.5]), axis=0);
        compress([True] * 4, x); add(x, x, dtype=int); log(x, dtype=int); less(x, x, dtype=float);
        exp(x, dtype=np.float32, casting='safe'); add(x, np.float32([1, 2, 3]), casting='no');
        add(x, 1.0, casting='unknown'); add(x, x, order='X'); conjugate(x, dtype=int);
        select([x > 0], [x, x]); select([], [], x); select([np.ones(3)], [x]);
        choose([0, 5, 0], [x, x]); choose([0.5] * 3, [x, x]); choose([0] * 3, [x], mode='bogus');
        piecewise(x, [x > 0], [1.0, 2.0, 3.0]); multiply(x, np.ones(2));
        add(x, ['a', 'b', 'c']); add(x, [[1.0], [1.0, 2.0]]); add(x, [None, 1.0, 2.0])""",
    "V6": """
        bincount([0, 1], x); bincount([0, -1] * 3, x); histogram(V6, [1, 0], weights=x);
        histogram(V6[:2], weights=x); bincount([0] * 6, x * 1j); histogram(V6, 0, weights=x);
        histogram2d(V6, V6[:2], weights=x); histogramdd(V6[:2, None], weights=x);
        histogram2d(x, x[0]); histogram2d(x, V6[:2]); histogram2d(x, x, 0);
        histogram2d(x, x, [2.5, 2]); histogram2d(x, x, [[1, 0], 2]);
        histogram2d(x, x, 2, [[0, 1]]); histogramdd(x, [2, 2]); histogram2d(x, x / 0);
        histogram(x / 0); histogramdd(V6, weights=x * 1j)""",
    "X23": """
        average(x, weights=np.ones(3)); average(x, 0, np.ones(3)); average(x, weights=0 * X23);
        cov(x[None]); ptp(x, axis=3); cov(x, ddof=0.5); cov(x, fweights=[1.5, 1, 1]);
        cov(x, aweights=[-1.0, 1, 1]); cov(x, fweights=[1, 1]); cov(x, aweights=np.ones((3, 1)));
        cov(x, x[:, :2]); pad(x, -1); pad(x, 1.5); pad(x, (1, 2, 3)); pad(x, 1, 'no such mode');
        pad(x, 1, 'edge', constant_values=1); pad(x, 1, 'maximum', stat_length=0);
        pad(x[:0], 1, 'mean'); pad(x, 1, 'mean', end_values=1);
        pad(x, 1, 'linear_ramp', end_values=(1, 2, 3)); apply_along_axis(np.sum, 5, x);
        apply_along_axis(np.sum, 1, x[:0]); apply_over_axes(np.sum, x, [2]);
        apply_over_axes(lambda x, axis: x[0][0], x, [0]); concatenate([x, x], casting='bogus');
        roll(x, [[1], [2]], 0); repeat(x, [[2]], 0); tril(x, 10**20); unravel_index(x, (2, 3));
        ravel_multi_index((x, x), (5, 5)); ravel_multi_index((argmax(x), 1, 1), (2, 3));
        unravel_index(argmax(x) + 7, (2, 3)); ix_(x > 0); nanargmax(x * np.nan);
        nanargmax(x, axis=2); gcd(x, 2); bitwise_count(x); compress([True] * 9, x)""",
    "NAN23": """
        nansum(x, axis=3); nanstd(x, ddof=1, correction=1); nanmax(x, where=TAKEN);
        nanmax(x[:0], axis=0)""",
    "SING": """
        cross(x, np.ones(4)); cross(x[0], 1.0); matvec(x, x[:, :2]); matvec(x[0], x);
        vecmat(x, x[0]); cross(x, x, axis=5); vecmat(x[:, :2], x); linalg.norm(x, axis=2);
        linalg.norm(x, 'bogus'); linalg.norm(x, 0); linalg.norm(x, axis=(0, 0));
        linalg.norm(x[None], axis=(0, 1, 2)); linalg.vector_norm(x, ord='nuc', axis=0);
        linalg.matrix_norm(x[0]); linalg.matrix_norm(x, ord=3); linalg.cond(x[0]);
        linalg.norm(x[:0], -np.inf); matmul(x, np.ones((2, 2))); matmul(x, 2.0);
        dot(x, np.ones(2)); inner(x, np.ones(2)); vdot(x, np.ones(2)); vecdot(x, np.ones(2));
        vecdot(x, np.ones(1)); tensordot(x, np.ones((3, 2)), axes=2);
        tensordot(x, np.ones((3, 2)), axes=((0,), (0, 1)));
        tensordot(x, np.ones((3, 2)), axes=((0,), (5,))); linalg.matmul(x, x[:2]);
        linalg.multi_dot([x, x[:2], x]); linalg.trace(x[0]); linalg.diagonal(x[0]);
        linalg.cross(x[:2], x); linalg.vecdot(x, x[:, :2]); linalg.matrix_transpose(x[0]);
        einsum('ij,jk', x, np.ones((2, 2))); einsum('ijk', x); einsum('ij,jk', x);
        einsum('ij->k', x); einsum('...->', x); einsum('i!', x); einsum('ij->ii', x);
        einsum('', x); einsum('ij,ij', x, np.ones((2, 3))); linalg.inv(x)""",
    "M23": """
        subtract.reduce(x, axis=(0, 1)); subtract.reduce(x, axis=5); divide.reduce(x[:0]);
        fmax.reduce(x, where=M23 > 1); hypot.accumulate(x[0, 0]); hypot.accumulate(x, axis=2);
        add.reduceat(x, [0, 3]); add.reduceat(x, [-1]); sin.reduce(x); sin.outer(x, x);
        conj.accumulate(x); sign.outer(x, x); matmul.reduce(x); logical_and.reduce(x, dtype=float);
        logical_xor.reduce(x, dtype=int); copysign.reduce(x, dtype=int); ldexp.outer(x, x);
        divide.reduceat(x, [0], dtype=int); logical_or.accumulate(x, dtype=complex)""",
}
REFUSED_IN_NUMPYS_WORDS = {
    "PLANE": """
        linalg.inv(x); linalg.solve(x, np.ones((2, 1))); linalg.solve(x, np.ones(2));
        linalg.tensorinv(x, 1); linalg.tensorsolve(x, np.ones(2)); linalg.matrix_power(x, -1)""",
    "A32": """
        linalg.lstsq(x, np.ones(4)); linalg.lstsq(x[0], np.ones(3)); linalg.pinv(x[0]);
        linalg.lstsq(x[None], np.ones((3, 1))); linalg.cholesky(x); linalg.cholesky(-x[:2]);
        linalg.cholesky(x[0]); linalg.qr(x[0]); linalg.qr(x, 'bogus'); linalg.norm(x, 7);
        linalg.norm(x, 'fro', axis=0); linalg.norm(x[None], 1)""",
    "M23": """
        linalg.eig(x); linalg.eigh(x); linalg.eigvals(x); linalg.eigvalsh(x); linalg.eigh(x, 'X');
        linalg.svd(x[0]); linalg.eigvalsh(x[:, :2], 'X'); linalg.svd(x, hermitian=True);
        linalg.svdvals(x[0, 0]); linalg.eigvals(x[0]); linalg.cond(x, 1); linalg.cond(x[:0]);
        linalg.inv(x); linalg.det(x); linalg.slogdet(x); linalg.solve(x, np.ones((3, 2)));
        linalg.inv(x[0]); linalg.det(x[0]); linalg.slogdet(x[0]); linalg.tensorinv(x, 0);
        linalg.tensorinv(x, 1); linalg.tensorsolve(x, np.ones(3)); reshape(x, (4, 2));
        reshape(x, [[2, 3]]); reshape(x, [None]); reshape(x, (-1, -1)); reshape(x, (2, 3), 'Q');
        ravel(x, 'Q'); transpose(x, (0,)); transpose(x, (0, 2)); transpose(x, (0, 0));
        squeeze(x, 0); squeeze(x, 3); expand_dims(x, 4); swapaxes(x, 0, 2); moveaxis(x, 0, 2);
        moveaxis(x, (0, 1), 0); rollaxis(x, 2); matrix_transpose(x[0]); flip(x, 2);
        rot90(x, 1, (0, 0)); rot90(x, 1, (0, 5)); roll(x, 1, 2); repeat(x, -1);
        repeat(x, [1, 2, 3], 0); repeat(x, 2, 4); repeat(x, [1, 2, 3], 4); diagonal(x, 0, 0, 0);
        diagonal(x, 0, 0, 3); trace(x, 0, 0, 3); fliplr(x[0]); rot90(x[0]); diagonal(x[0]);
        trace(x[0]); diag(x[None]); broadcast_to(x, (3, 3)); broadcast_to(x, (3,));
        broadcast_arrays(x, np.ones(4)); cumsum(x, axis=2); cumprod(x, axis=2);
        stack([[x[0]]], dtype=np.float32, casting='no'); concatenate([x, np.ones((3, 3))], 1);
        concatenate([x, np.ones(3)]); concatenate([x[0, 0]]); concatenate([x], 2);
        stack([x, np.ones(3)]); stack([x], 3); vstack([x[0], np.ones(2)]);
        hstack([x[:, :1], np.ones((3, 1))]); dstack([x[:, :1], np.ones((3, 1))]);
        column_stack([x[0], np.ones(2)]); concatenate([]); stack([]); vstack([]); hstack([]);
        dstack([]); column_stack([]); split(x[0], 2); array_split(x[0], 0); hsplit(x[0, 0], 1);
        vsplit(x[0], 1); dsplit(x, 1); unstack(x[0, 0]); max(x[:0]); min(x[:0]); argmax(x[:0]);
        argmin(x[:0]); pad(x[:0], 1, 'edge'); split(x[0], 3, 1)""",
    "T": """
        linalg.inv(x); linalg.det(x); linalg.slogdet(x); linalg.solve(x, np.ones((3, 2)));
        linalg.tensorinv(x, 1); linalg.tensorsolve(x, np.ones(3))""",
    "TWO": """
        mean(x, axis=0); var(x, axis=0); std(x, axis=0); flipud(x); diag(x); tril(x);
        concatenate([x])""",
    "NAN22": "linalg.eig(x); linalg.eigvals(x); linalg.svd(x)",
    "M33": """
        linalg.matrix_power(x, 1.5); linalg.matrix_power(x[:2], 2); linalg.matrix_power(x[0], 0);
        linalg.multi_dot([x]); linalg.multi_dot([x, x[None], x]); linalg.multi_dot([x, x[0], x]);
        linalg.outer(x, x); linalg.cross(x[:, :2], x); linalg.cross(x, x[:, :2])""",
}
REFUSED_OF_X["C23"] = "fft.rfft(x); fft.rfftn(x); fft.ihfft(x)"
REFUSED_OF_X["M23"] += "".join(
    [f"; fft.{name}(x, axis=2)" for name in ALONG_ONE.split()]
    + [f"; fft.{name}(x, axes=(0, 5))" for name in ALONG_MANY.split()]) + "; fft.fftshift(x, 2)"
REFUSED_IN_NUMPYS_WORDS["M23"] += "".join(
    [f"; fft.{name}(x, {options})" for name in ALONG_ONE.split()
     for options in ("n=0", "n=-1", "norm='bogus'")]
    + [f"; fft.{name}(x, {options})" for name in ALONG_MANY.split()
       for options in ("axes=(0, 1), s=(2,)", "axes=(0, 1), s=(0, 2)", "axes=(0, 1), norm=''")])
REFUSED_IN_NUMPYS_WORDS["M23"] += "".join(
    f"; {name}(x, axis={axis})" for name in "sum mean prod max min var std".split()
    for axis in ("2", "(0, -3)", "(0, 0)", "[0]", "0.5", "'0'"))

# Values decide whether NumPy refuses these, and a graph does not check them (docs/functions.md).
REFUSED_IN_EAGER_CODE = {"average(x, weights=0 * X23)", "cov(x, aweights=[-1.0, 1, 1])"}

ACCEPTED_OF_X = {
    "X23 I23 C23": """
        average(x); average(x, weights=x, returned=True)[1]; cov(x, fweights=[1, 2, 3]);
        cov(x, bias=True); corrcoef(x, x[::-1]); cov(x, rowvar=False, dtype='complex64');
        cov(x[0]); corrcoef(x[0]); cov(x, X23[0])""",
    "X23 I23": "average(x, axis=1, returned=True)[1]",
    "NAN3 I3 C3": "sort(x); partition(x, 1); sort_complex(x); unique(x)",
    "P": """
        polymul(x, [1.0, 1.0]); polyadd(x, [1.0, 1.0]); roots(x); roots(append(x, 0.0))[:2];
        polydiv(x[2:], [1.0, -1.0])[1]; polymul(x[:2], x); polyder(x); polyint(x, 2, 3.0);
        poly(x[3:]); roots(0 * x); polyval(x, 2); poly(x[:0])""",
    "TWO F2": "linspace(x, 9, 4, dtype=int)",
    "TWO F2 I2 H2 S2 C2": """
        linspace(x, 3, 0); linspace(x, 3, 1, retstep=True)[0]; linspace(0, x, 3, axis=-1);
        logspace(0, x, 3, dtype='float32'); geomspace(x, 8.0, 1);
        geomspace(x, 8, 3, dtype='float32'); linspace(x, 3.0, 3); linspace(1, x, 3);
        linspace(x, x); linspace(x, np.float64(3), 3); logspace(x, 2.0, 3); logspace(x, x, 3);
        logspace(0, x, 3, base=2); logspace(x, x, 3, base=2j); logspace(0, 1, 3, base=x);
        logspace(x, 2.0, 3, base=S2); logspace(x, x, 3, base=np.float64(2)); geomspace(x, 8.0, 3);
        geomspace(x, x, 3, dtype='float32'); geomspace(x, x, 3, dtype='float16');
        geomspace(x, 1j, 3); geomspace(x, 8.5, 3, dtype=int)""",
    "V6": """
        trim_zeros(x); trim_zeros(x, 'f'); trim_zeros(0 * x); trim_zeros(x.reshape(2, 3));
        trim_zeros(x.reshape(2, 3), 'b', axis=1); resize(x[:0], 2); insert(x, 2, [1, 2, 3]);
        insert(x, [3, 1], [7.0, 8.0]); insert(x, [], 1.0); insert(x, slice(1, 3), 4.0);
        insert(x.reshape(2, 3), 1, 5.0, axis=1); delete(x, slice(None, None, -2));
        delete(x, V6 > 0.5)""",
    "M23": """
        right_shift.reduceat(x, [0, 2], axis=1, dtype=int); logaddexp.reduceat(x, [], axis=1);
        add.reduceat(x, np.zeros(0, int)); add.reduce(x, 1); add.reduce(x, 0, None);
        add.reduce(x, dtype='float32'); add.accumulate(x, 1); pad(x, 2); pad(x, (1, 2));
        pad(x, ((1, 2),));
        pad(x, ((1, 2), (3, 4))); pad(x, {0: (1, 2), -1: 3}); pad(x, np.array([[1], [2]]));
        pad(x, 2, 'edge'); pad(x, (1, 2), 'edge'); pad(x, ((1, 2),), 'edge');
        pad(x, ((1, 2), (3, 4)), 'edge'); pad(x, {0: (1, 2), -1: 3}, 'edge');
        pad(x, np.array([[1], [2]]), 'edge'); pad(x, 2, 'reflect', reflect_type='other')""",
    "T": """
        moveaxis(x, 0, -1); moveaxis(x, [0, 1], [-1, 0]); moveaxis(x, np.int64(2), 0);
        rollaxis(x, 2); rollaxis(x, 1, 3); moveaxis(x, (1,), (2,)); matrix_transpose(x)""",
    "B3": """
        sum(V3, where=x); prod(V3, where=x); mean(V3, where=x); var(V3, where=x);
        std(V3, where=x); all(V3, where=x); any(V3, where=x); max(V3, where=x, initial=0.0);
        min(V3, where=x, initial=0.0)""",
}
