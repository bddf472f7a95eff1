"""Records of the functions of `scipy.special`; none without SciPy."""

import numpy as np

from tests.ops.op_specs import SINGLE_AND_DOUBLE, OpSpec, case, uniform

try:
    from scipy import special

    from cytape.ops import special as ours
except ImportError:
    SPECS = []
else:
    POSITIVE, SIGNED, UNIT = uniform(0.4, 4), uniform(-3, 3), uniform(0.1, 0.9)
    UNARY = [case((3, 4)), case(()), case((0, 2)), case((1500,))]
    BINARY = [
        case((3, 4), (3, 4)), case((), ()), case((3, 1), (1, 4)), case((0, 3), (1, 3))]
    ORDERS = [case(np.array([[0], [1], [2]]), (3, 4)), case(1, ()), case(2, (5,))]
    SHAPES = [case(np.array([[0.5], [1.0], [3.2]]), (3, 4)), case(1.7, ()), case(2.2, (5,))]

    def special_record(
            name, cases=UNARY, domain=SIGNED, dtypes=SINGLE_AND_DOUBLE, **options):
        return OpSpec(
            "Scipy" + "".join(map(str.capitalize, name.split("_"))), getattr(ours, name),
            getattr(special, name), cases, domain, dtypes, **options)

    def ordered(name, cases, domain=POSITIVE):
        """Make the record of a function without derivatives in its orders."""
        n_orders = len(cases[0].inputs) - 1
        return special_record(  # SciPy computes in double precision beside Python's numbers
            name, cases, domain, ("float64",), differentiable=(False,) * n_orders + (True,))

    SPECS = [
        *[special_record(name, domain=POSITIVE) for name in ("gamma", "gammaln", "psi")],
        special_record("rgamma"), special_record("gammasgn", differentiable=False),
        ordered("polygamma", ORDERS),
        special_record("beta", BINARY, POSITIVE), special_record("betaln", BINARY, POSITIVE),
        special_record("xlogy", BINARY, POSITIVE), special_record("xlog1py", BINARY, POSITIVE),
        *[ordered(name, SHAPES) for name in (
            "jv", "yv", "iv", "ive", "kv")],
        *[special_record(name) for name in ("j0", "j1", "i0", "i1")],
        *[special_record(name, domain=POSITIVE) for name in (
            "i0e", "i1e", "y0", "y1", "k0", "k1")],
        ordered("yn", ORDERS),
        *[special_record(name) for name in (
            "erf", "erfc", "erfcx", "ndtr", "log_ndtr", "expit", "log_expit")],
        special_record("erfinv", domain=uniform(-0.7, 0.7)),
        special_record("erfcinv", domain=uniform(0.3, 1.7)),
        *[special_record(name, domain=uniform(0.2, 0.8)) for name in ("ndtri", "logit")],
        OpSpec(
            "multigammaln", ours.multigammaln, special.multigammaln,
            [case((), 1), case((2, 3), 3)], uniform(2, 5), ("float64",)),
        OpSpec(
            "logsumexp", ours.logsumexp, special.logsumexp,
            [case((3, 4)), case((3, 4), axis=0), case((3, 4), axis=(0, 1), keepdims=True)],
            dtypes=SINGLE_AND_DOUBLE),
        OpSpec(
            "weighted_logsumexp", lambda a, b, **options: ours.logsumexp(a, b=b, **options),
            lambda a, b, **options: special.logsumexp(a, b=b, **options),
            [case((3, 4), (3, 4)), case((3, 4), (4,), axis=-1), case((3, 4), (), keepdims=True)],
            POSITIVE, SINGLE_AND_DOUBLE),
        *[OpSpec(name, getattr(ours, name), getattr(special, name),
                 [case((3, 4)), case((3, 4), axis=1)], dtypes=SINGLE_AND_DOUBLE)
          for name in ("softmax", "log_softmax")],
    ]
