"""Records of the functions of `scipy.signal` and `scipy.fft`; none without SciPy."""

from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case

try:
    import scipy.fft

    from cytape.scipy import fft
except ImportError:
    SPECS = []
else:
    FEW = ("float64", "float32", "complex128")

    def record(name, cases, op=None, dtypes=FEW):
        return OpSpec(op or name, getattr(fft, name), getattr(scipy.fft, name), cases,
                      dtypes=dtypes)

    TYPES = [case((5,), type=2), case((2, 5), type=3, norm="forward"), case((5, 2), type=1, axis=0),
             case((2, 4), type=4, n=6, norm="ortho"), case((4,), type=2, n=3, orthogonalize=True)]
    SPECS = [
        record("dct", TYPES, "ScipyFftCosineSine", FLOATS_AND_COMPLEX),
        *[record(name, TYPES) for name in ("idct", "dst", "idst")],
        record("fht", [case((6,), dln=0.2, mu=0.5), case((2, 5), dln=0.1, mu=1.0, bias=0.2)],
               "ScipyFftHankel", ("float64",)),
        record("ifht", [case((6,), dln=0.2, mu=0.5, offset=0.3)], dtypes=("float64",)),
    ]
