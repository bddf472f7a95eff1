"""Records of the functions of `scipy.ndimage`; none without SciPy."""

from tests.ops.op_specs import OpSpec, case, uniform

try:
    import numpy as np
    import scipy.ndimage

    from cytape.ops.images import boundaries, correlations, rank_filters, spline_taps, splines
    from cytape.scipy import ndimage
except ImportError:
    SPECS = []
else:
    REAL = ("float64", "float32")

    def record(op, name, cases, dtypes=REAL, **facts):
        theirs = getattr(scipy.ndimage, name)

        def native(*args, **options):  # SciPy takes no other byte order
            return theirs(*[x.astype(x.dtype.newbyteorder("=")) if isinstance(x, np.ndarray) else x
                            for x in args], **options)

        return OpSpec(op, getattr(ndimage, name), native, cases, dtypes=dtypes, **facts)

    def folded(g, widths, mode):
        inner = tuple([n - before - after for n, (before, after) in zip(
            g.shape, widths, strict=True)])
        places = np.arange(np.prod(inner)).reshape(inner)
        total = np.zeros(places.size, g.dtype)
        if boundaries.PADDING[mode] is None:
            return g[tuple([slice(before, before + n) for n, (before, _) in zip(
                inner, widths, strict=True)])]
        np.add.at(total, np.pad(places, widths, boundaries.PADDING[mode]), g)
        return total.reshape(inner)

    def window_sums(x, g):
        windows = np.lib.stride_tricks.sliding_window_view(x, g.shape)
        return np.tensordot(windows, g, g.ndim)

    TAPS = {"order": 3, "mode": "mirror", "derivative": (0, 0)}

    def native_taps(function):
        return lambda values, x, **options: function(
            np.ascontiguousarray(values, float), np.ascontiguousarray(x, float), **options)

    SPECS = [
        record("ScipyNdimageCorrelate", "correlate", [
            case((4, 3), (3, 2)), case((5,), (2,), mode="wrap", origin=-1),
            case((3, 4), (3, 1), mode="constant")]),
        record("ndimage convolve", "convolve", [
            case((4, 3), (2,), axes=0, mode="mirror"),
            case((3, 3), (3, 5), mode="nearest", origin=(1, 0))]),
        record("correlate1d", "correlate1d", [case((4, 3), (3,), axis=0), case((2, 5), (4,))]),
        record("convolve1d", "convolve1d", [case((4, 3), (2,), axis=0, mode="constant", cval=1.0)]),
        record("ScipyNdimageUniform", "uniform_filter1d", [
            case((5, 2), size=3, axis=0), case((6,), size=2, mode="mirror", origin=-1),
            case((5,), size=4, mode="constant")], ("float64", "float32", "complex128")),
        record("gaussian_filter", "gaussian_filter", [case((4, 5), sigma=0.8)]),
        record("laplace", "laplace", [case((4, 5), mode="wrap")]),
        record("sobel", "sobel", [case((4, 5), axis=0)]),
        OpSpec("ScipyNdimageFold", boundaries.fold_op, folded, [
            case((7, 5), widths=((2, 1), (1, 2)), mode=mode)
            for mode in ("reflect", "mirror", "nearest", "wrap", "constant")], dtypes=REAL),
        OpSpec("ScipyNdimageWindowSums", correlations.window_sums_op, window_sums,
               [case((5, 4), (3, 3)), case((6,), (2,))], dtypes=REAL),
        record("ScipyNdimageSpline", "spline_filter1d", [
            case((5, 2), axis=0), case((6,), order=2, mode="reflect"),
            case((3,), order=5, mode="grid-wrap")], ("float64",)),
        record("map_coordinates", "map_coordinates", [
            case((4, 5), (2, 3)), case((6,), (1, 2, 2), order=1, mode="wrap")], ("float64",),
            domain=(uniform(-2, 2), uniform(0.1, 2.9, avoid=(1.0, 2.0)))),
        OpSpec("ScipyNdimageInterpolate", splines.interpolate_op,
               native_taps(spline_taps.interpolate),
               [case((1, 4, 3), (1, 2, 5), **TAPS), case((2, 4, 3), (1, 2, 3), **TAPS),
                case((2, 3, 3), (2, 2, 2), **{**TAPS, "order": 5, "derivative": (0, 1)})],
               (uniform(-2, 2), uniform(0.1, 1.9)), ("float64",)),
        OpSpec("ScipyNdimageSlopes", splines.slopes_op, native_taps(spline_taps.slopes),
               [case((1, 4, 3), (1, 2, 5), **TAPS),
                case((2, 3, 3), (2, 2, 2), **{**TAPS, "order": 5, "derivative": (0, 1)})],
               (uniform(-2, 2), uniform(0.1, 1.9)), ("float64",)),
        OpSpec("ScipyNdimageSpread", splines.spread_op, native_taps(spline_taps.spread),
               [case((1, 5), (1, 2, 5), shape=(4, 3), **TAPS),
                case((2, 2), (2, 2, 2), shape=(3, 3), **TAPS)],
               (uniform(-2, 2), uniform(0.1, 1.9)), ("float64",)),
        OpSpec("ScipyNdimageExtremum", rank_filters.extremum_op, rank_filters.extremum_op.forward,
               [case((4, 3), axis=0, size=3, is_minimum=True),
                case((5,), axis=0, size=2, is_minimum=False)], dtypes=REAL,
               differentiable=False),
        OpSpec("ScipyNdimageChoice", rank_filters.choice_op, rank_filters.choice_op.forward,
               [case((4, 3), footprint=((True, True), (True, False)), rank=1),
                case((5,), (3,), footprint=(True, True, True), rank=-1)], dtypes=REAL,
               differentiable=False),
        record("median_filter", "median_filter", [case((4, 3), size=3)], ("float64",)),
        record("maximum_filter", "maximum_filter", [case((4, 3), size=2)], ("float64",)),
        record("shift", "shift", [case((4, 3), shift=0.3, order=1)], ("float64",)),
        record("zoom", "zoom", [case((4, 3), zoom=1.5)], ("float64",)),
    ]
