"""Records of the functions of `scipy.special`, a line each; none without SciPy."""

from tests.ops.op_specs import SINGLE_AND_DOUBLE, OpSpec, case, uniform

try:
    from scipy import special

    from cytape.ops import special as ours
    from cytape.ops.special import elementary_functions, exponential_integrals
except ImportError:
    SPECS = []
else:
    POSITIVE, SIGNED, UNIT = uniform(0.4, 4), uniform(-3, 3), uniform(0.1, 0.9)
    BOTH = SINGLE_AND_DOUBLE
    DOUBLE, WITH_ORDERS = ("float64",), ("float64", "complex128")
    HOLOMORPHIC = ("float64", "float32", "complex128")

    def record(name, *domains, dtypes=BOTH, orders=(), **options):
        """Make a record: a domain per argument after the orders, which have no derivative."""
        shapes = [(3, 1), (4,), (3, 4), (1,)][: len(domains)] if len(domains) > 1 else [(3, 4)]
        cases = [case(*orders, *shapes), case(*orders, *[()] * len(domains))]
        op = "Scipy" + "".join(map(str.capitalize, name.split("_")))
        return OpSpec(
            op, getattr(ours, name), getattr(special, name), cases,
            (SIGNED,) * len(orders) + domains, dtypes,
            (False,) * len(orders) + (True,) * len(domains), **options)

    def private(op, forward, domain):
        return OpSpec(f"Scipy{op}", forward, forward.forward, [case((3, 4))], domain, BOTH)

    ELEMENTARY = [
        *[record(name, SIGNED) for name in (
            "cbrt", "exp2", "exp10", "exprel", "cosm1", "sindg", "cosdg", "tandg")],
        record("expm1", SIGNED, dtypes=HOLOMORPHIC), record("log1p", POSITIVE, dtypes=HOLOMORPHIC),
        record("cotdg", uniform(40, 50)), record("radian", POSITIVE, POSITIVE, POSITIVE),
        OpSpec("ScipyRound", ours.round, special.round, [case((3, 4))], dtypes=BOTH,
               differentiable=False),
        record("powm1", POSITIVE, SIGNED),
        record("boxcox", POSITIVE, SIGNED), record("boxcox1p", POSITIVE, SIGNED),
        record("inv_boxcox", POSITIVE, POSITIVE), record("inv_boxcox1p", POSITIVE, POSITIVE),
        record("entr", POSITIVE), record("rel_entr", POSITIVE, POSITIVE),
        record("kl_div", POSITIVE, POSITIVE), record("huber", uniform(1, 2), uniform(-0.9, 4, [2])),
        record("pseudo_huber", POSITIVE, SIGNED),
        private("Log1pOver", elementary_functions.log1p_over, POSITIVE),
    ]
    INTEGRALS = [
        record("exp1", POSITIVE, dtypes=HOLOMORPHIC), record("expi", POSITIVE, dtypes=HOLOMORPHIC),
        record("expn", POSITIVE, orders=(3,), dtypes=DOUBLE),
        record("sici", POSITIVE, dtypes=HOLOMORPHIC),
        record("shichi", POSITIVE, dtypes=HOLOMORPHIC),
        record("spence", POSITIVE, dtypes=HOLOMORPHIC),
        record("fresnel", SIGNED, dtypes=HOLOMORPHIC),
        *[record(name, POSITIVE, dtypes=DOUBLE) for name in ("modfresnelp", "modfresnelm")],
        record("dawsn", SIGNED, dtypes=HOLOMORPHIC), record("erfi", UNIT, dtypes=HOLOMORPHIC),
        record("wofz", SIGNED, dtypes=("complex128",)), record("owens_t", SIGNED, SIGNED),
        record("voigt_profile", SIGNED, POSITIVE, POSITIVE),
        private("SinSquare", exponential_integrals._sin_square, SIGNED),
        private("CosSquare", exponential_integrals._cos_square, SIGNED),
    ]
    ELLIPTIC = [
        record("ellipk", UNIT), record("ellipkm1", UNIT), record("ellipe", UNIT),
        record("ellipkinc", SIGNED, UNIT), record("ellipeinc", SIGNED, UNIT),
        record("ellipj", SIGNED, UNIT), record("agm", POSITIVE, POSITIVE),
        record("elliprc", POSITIVE, POSITIVE, dtypes=HOLOMORPHIC),
        *[record(name, POSITIVE, uniform(4.5, 6), uniform(7, 9), dtypes=HOLOMORPHIC)
          for name in ("elliprd", "elliprf", "elliprg")],
        record("elliprj", POSITIVE, uniform(4.5, 6), uniform(7, 9), uniform(10, 12)),
    ]
    HYPERGEOMETRIC = [
        record("hyp0f1", SIGNED, orders=(1.5,), dtypes=WITH_ORDERS),
        record("hyp1f1", SIGNED, orders=(0.7, 1.5), dtypes=WITH_ORDERS),
        record("hyp2f1", uniform(-2, 0.8), orders=(0.7, 1.3, 2.6), dtypes=WITH_ORDERS),
        record("hyperu", POSITIVE, orders=(0.7, 1.5), dtypes=DOUBLE),
        record("wright_bessel", POSITIVE, orders=(0.7, 1.5), dtypes=DOUBLE),
        record("log_wright_bessel", POSITIVE, orders=(0.7, 1.5), dtypes=DOUBLE),
        record("wrightomega", SIGNED, dtypes=HOLOMORPHIC),
    ]
    SPECS = [*ELEMENTARY, *INTEGRALS, *ELLIPTIC, *HYPERGEOMETRIC]
