"""Records of the functions of `scipy.signal` and `scipy.fft`; none without SciPy."""

from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case, uniform

try:
    import numpy as np
    import scipy.fft
    import scipy.signal

    from cytape.ops.signals import filter_products, spectra
    from cytape.scipy import fft, signal
except ImportError:
    SPECS = []
else:
    FEW = ("float64", "float32", "complex128")

    def record(name, cases, op=None, dtypes=FEW):
        return OpSpec(op or name, getattr(fft, name), getattr(scipy.fft, name), cases,
                      dtypes=dtypes)

    TYPES = [case((5,), type=2), case((2, 5), type=3, norm="forward"), case((5, 2), type=1, axis=0),
             case((2, 4), type=4, n=6, norm="ortho")]
    SOS = scipy.signal.butter(4, 0.3, output="sos")
    NO_HALF = ("float64", "float32", "complex128", "complex64")

    def filtered(library):
        def run(b, a, x, *zi, axis=-1):
            results = library.lfilter(b, a, x, axis, *zi)
            return tuple(results) if zi else results

        return run

    def stable(rng, shape):
        return np.append(2.0, rng.uniform(-0.5, 0.5, shape[0] - 1))

    VALUES = uniform(-2, 2)

    def native(function):  # which takes no other byte order
        return lambda *args, **options: function(
            *[x.astype(x.dtype.newbyteorder("=")) if isinstance(x, np.ndarray) else x
              for x in args], **options)

    def convolution(name, cases, dtypes=("float64", "float32"), op="ScipySignalConvolve"):
        return OpSpec(op, getattr(signal, name),
                      native(getattr(scipy.signal, name)), cases, dtypes=dtypes)

    def fir(c, x, axis):
        return scipy.signal.lfilter(c, [1.0], x, axis).astype(x.dtype)

    def lags(g, x, axis, n_lags):
        g, x = np.moveaxis(g, axis, -1), np.moveaxis(x, axis, -1)
        n = x.shape[-1]
        return np.stack([np.sum(g[..., k:] * x[..., :max(n - k, 0)]) for k in range(n_lags)])

    def segments(x, n, step):
        return np.lib.stride_tricks.sliding_window_view(x, n, -1)[..., ::step, :]

    def overlap_add(segments, step, length):
        total = np.zeros((*segments.shape[:-2], length), segments.dtype)
        for i, segment in enumerate(np.moveaxis(segments, -2, 0)):
            total[..., i * step:i * step + segment.shape[-1]] += segment
        return total

    SPECS = [
        convolution("convolve", [
            case((5,), (3,)), case((3,), (5,), mode="valid"), case((4, 3), (2, 3), mode="same"),
            case((3, 4), (2, 2), method="direct", mode="valid")], NO_HALF),
        convolution("convolve", [case((5,), (3,), method="fft", mode="same")]),
        convolution("correlate", [case((5,), (2,), mode="same"), case((3, 3), (2, 2))]),
        convolution("fftconvolve", [case((2, 5), (1, 3), axes=-1), case((2, 5), (2, 3), axes=1)]),
        convolution("oaconvolve", [case((2, 5), (2, 3), axes=1, mode="same")]),
        convolution("convolve2d", [case((3, 4), (2, 2), boundary="wrap"),
                                   case((3, 4), (2, 3), boundary="symm", mode="same")],
                    op="convolve2d"),
        convolution("correlate2d", [case((3, 4), (2, 2), mode="same")],
                    op="correlate2d"),
        OpSpec("ScipySignalFir", filter_products.fir_op, native(fir),
               [case((3,), (5,), axis=0), case((3,), (2, 4), axis=1), case((4,), (3, 2), axis=0)],
               dtypes=NO_HALF),
        OpSpec("ScipySignalLags", filter_products.lags_op, lags,
               [case((5,), (5,), axis=0, n_lags=3), case((2, 3), (2, 3), axis=1, n_lags=5)],
               dtypes=NO_HALF),
        OpSpec("ScipySignalFilter", filtered(signal), native(filtered(scipy.signal)),
               [case((3,), (2,), (6,)), case((1,), (2,), (5, 2), axis=0),
                case((3,), (1,), (2, 5))], (VALUES, stable, VALUES), NO_HALF),
        OpSpec("lfilter", filtered(signal), native(filtered(scipy.signal)),
               [case((2,), (3,), (2, 5), (2, 2)), case((3,), (3,), (1,), (2,))],
               (VALUES, stable, VALUES, VALUES), NO_HALF),
        OpSpec("ScipySignalSections", lambda x, axis=-1: signal.sosfilt(SOS, x, axis),
               lambda x, axis=-1: scipy.signal.sosfilt(SOS, x, axis),
               [case((6,)), case((5, 2), axis=0)], dtypes=("float64",)),
        OpSpec("ScipySignalDetrend", signal.detrend, native(scipy.signal.detrend),
               [case((6,)), case((3, 5), type="constant"), case((6, 2), axis=0, bp=[3])],
               dtypes=("float64", "complex128")),
        OpSpec("ScipySignalUpfirdn", signal.upfirdn, native(scipy.signal.upfirdn),
               [case((3,), (4,), up=2, down=3), case((4,), (3, 2), up=3, axis=0)],
               dtypes=("float64", "float32", "complex128")),
        OpSpec("ScipySignalSegments", spectra.segments_op, segments,
               [case((7,), n=3, step=2), case((2, 6), n=2, step=3)], dtypes=FLOATS_AND_COMPLEX),
        OpSpec("ScipySignalOverlapAdd", spectra.joined_op, overlap_add,
               [case((3, 4), step=2, length=8), case((2, 2, 3), step=3, length=6)],
               dtypes=NO_HALF),
        record("dct", TYPES, "ScipyFftCosineSine", FLOATS_AND_COMPLEX),
        *[record(name, TYPES) for name in ("idct", "dst", "idst")],
        record("fht", [case((6,), dln=0.2, mu=0.5), case((2, 5), dln=0.1, mu=1.0, bias=0.2)],
               "ScipyFftHankel", ("float64",)),
        record("ifht", [case((6,), dln=0.2, mu=0.5, offset=0.3)], dtypes=("float64",)),
    ]
