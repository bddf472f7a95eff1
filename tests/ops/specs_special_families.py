"""Records of the functions of `scipy.special`, a line each; none without SciPy."""

import numpy as np

from tests.ops.op_specs import SINGLE_AND_DOUBLE, OpSpec, case, uniform

try:
    from scipy import special

    from cytape.ops import special as ours
    from cytape.ops.engine.op_kinds import find
    from cytape.ops.special import (
        digamma_functions,
        distribution_functions,
        elementary_functions,
        exponential_integrals,
        incomplete_functions,
        kolmogorov_functions,
        spherical_functions,
        struve_functions,
        wave_functions,
    )
    from cytape.ops.special_kernels import (
        noncentral_sums,
        sine_cosine_pairs,
        stirling,
        t_integrals,
        zeta_sums,
    )
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
        OpSpec("ScipyKlDivSlope", elementary_functions._kl_div_slope, lambda x, y: (y - x) / y,
               [case((3, 4), (3, 4))], (POSITIVE, POSITIVE), BOTH),
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
        private("SinhOver", exponential_integrals._sinh_over, SIGNED),
        private("Struve0", struve_functions._struve0, uniform(-7, 7)),
        private("Modstruve0", struve_functions._modstruve0, uniform(-7, 7)),
        OpSpec("ScipySquareAngles", exponential_integrals._of_square,
               sine_cosine_pairs.sine_cosine_of_square, [case((3, 4))], SIGNED, BOTH),
        OpSpec("ScipySinesOver", exponential_integrals._sines_over,
               sine_cosine_pairs.sine_cosine_over, [case((3, 4))], POSITIVE, BOTH),
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

    def ordered(name, *orders, domain=POSITIVE, dtypes=DOUBLE, **options):
        """Make the record of a function whose last argument alone has a derivative."""
        return record(name, domain, orders=orders, dtypes=dtypes, **options)

    PROLATE, OBLATE = special.pro_cv(1, 2, 1.3), special.obl_cv(1, 2, 1.3)
    def slope_record(letter):
        function, name = getattr(ours, f"spherical_{letter}n"), f"spherical_{letter}n"
        return OpSpec(
            f"ScipySpherical{letter.upper()}nSlope", lambda z: function(2, z, derivative=True),
            lambda z: getattr(special, name)(2, z, derivative=True), [case((3, 4))], POSITIVE,
            DOUBLE)

    def derivative_record(name):
        op = find("ScipyEval" + "".join(map(str.capitalize, name.split("_"))) + "Derivative")
        return OpSpec(op.name, op, op.forward, [case(4, 1, (3, 4)), case(4, 2, ())],
                      (UNIT,) * 3, WITH_ORDERS, (False, False, True))

    COMPLEX = ("complex128",)
    BESSEL = [
        *[ordered(name, 1.5, dtypes=WITH_ORDERS) for name in ("jv", "yv", "iv", "kv", "kve")],
        *[ordered(name, 1.5) for name in ("jve", "yve")],
        *[ordered(name, 1.5, dtypes=COMPLEX) for name in (
            "hankel1", "hankel2", "hankel1e", "hankel2e")],
        ordered("kn", 2), *[record(name, POSITIVE) for name in ("k0e", "k1e")],
        ordered("struve", 0.5), ordered("modstruve", 0.5),
        *[record(name, POSITIVE, dtypes=DOUBLE) for name in (
            "itstruve0", "it2struve0", "itmodstruve0", "itj0y0", "it2j0y0", "iti0k0", "it2i0k0")],
        OpSpec("ScipyBesselpoly", lambda a: ours.besselpoly(a, 1.5, 2.0),
               lambda a: special.besselpoly(a, 1.5, 2.0), [case((3, 4))], POSITIVE, DOUBLE),
        record("airy", SIGNED, dtypes=HOLOMORPHIC), record("airye", POSITIVE),
        record("itairy", SIGNED, dtypes=DOUBLE, tolerance=300.0),
        *[record(name, SIGNED) for name in ("ber", "bei", "berp", "beip")],
        *[record(name, POSITIVE) for name in ("ker", "kei", "kerp", "keip", "kelvin")],
    ]
    SPHERICAL = [
        *[ordered(f"spherical_{letter}n", 2, dtypes=WITH_ORDERS) for letter in "jyik"],
        *[slope_record(letter) for letter in "jyik"],
        OpSpec("ScipySphLegendreP", spherical_functions._legendre,
               lambda *given: special.sph_legendre_p(*given)[0],
               [case(3, 2, (3, 4)), case(3, -1, ())], UNIT, DOUBLE, (False, False, True)),
        OpSpec("ScipySphHarmY", ours.sph_harm_y, special.sph_harm_y,
               [case(3, 2, (3, 1), (4,)), case(3, 2, (), (), diff_n=1),
                case(2, 0, (3,), (), diff_n=2)],
               UNIT, DOUBLE, (False, False, True, True)),
    ]
    POLYNOMIALS = [
        *[ordered(f"eval_{name}", 4, domain=UNIT, dtypes=WITH_ORDERS) for name in (
            "chebyc", "chebys", "chebyt", "chebyu", "laguerre", "legendre", "sh_chebyt",
            "sh_chebyu", "sh_legendre")],
        ordered("eval_gegenbauer", 4, 0.7, domain=UNIT, dtypes=WITH_ORDERS),
        ordered("eval_genlaguerre", 4, 0.7, domain=UNIT, dtypes=WITH_ORDERS),
        ordered("eval_jacobi", 4, 0.7, 1.2, domain=UNIT, dtypes=WITH_ORDERS),
        ordered("eval_sh_jacobi", 4, 2.7, 1.2, domain=UNIT, dtypes=WITH_ORDERS),
        ordered("eval_hermite", 4), ordered("eval_hermitenorm", 4),
        *[derivative_record(name) for name in (
            "chebyc", "chebys", "chebyt", "chebyu", "hermitenorm", "legendre", "sh_chebyt",
            "sh_chebyu", "sh_legendre")],
        ordered("lpmv", 1.0, 3.5, domain=UNIT),
    ]
    WAVES = [
        *[ordered(name, 1.5, domain=SIGNED) for name in ("pbdv", "pbvv", "pbwa")],
        *[ordered(f"mathieu_{name}", 2.0, 1.5, domain=UNIT) for name in (
            "cem", "sem", "modcem1", "modcem2", "modsem1", "modsem2")],
        *[record(name, UNIT, orders=(2.0,), dtypes=DOUBLE) for name in ("mathieu_a", "mathieu_b")],
        *[record(name, UNIT, orders=(1.0, 2.0), dtypes=DOUBLE) for name in ("pro_cv", "obl_cv")],
        *[OpSpec(op, slope, slope.forward,
                 [case(*((4.0, 2.0) if "Math" in op else (6.0, 1.0, 2.0)), (3, 4))], UNIT, DOUBLE,
                 (False,) * (2 if "Math" in op else 3) + (op[-1].isupper(),), order=1)
          for op, slope in wave_functions.slopes.items()],
        *[ordered(f"pro_{name}{cv}", 1.0, 2.0, 1.3, *([PROLATE] if cv else ()), domain=domain)
          for name, domain in (("ang1", UNIT), ("rad1", uniform(1.5, 3)), ("rad2", uniform(2, 3)))
          for cv in ("", "_cv")],
        *[ordered(f"obl_{name}{cv}", 1.0, 2.0, 1.3, *([OBLATE] if cv else ()), domain=UNIT)
          for name in ("ang1", "rad1") for cv in ("", "_cv")],
        # SciPy's slopes are wrong for smaller arguments
        *[ordered(f"obl_rad2{cv}", 1.0, 2.0, 1.3, *([OBLATE] if cv else ()), domain=uniform(2, 3))
          for cv in ("", "_cv")],
    ]
    GAMMA = [
        record("loggamma", POSITIVE), record("loggamma", POSITIVE, dtypes=COMPLEX, order=1),
        record("zetac", uniform(1.5, 4)),
        record("poch", POSITIVE, POSITIVE), record("binom", uniform(4.1, 6), uniform(1.1, 3)),
        private("Trigamma", digamma_functions._trigamma_op, uniform(-3.8, 4, [-3, -2, -1, 0])),
        private("PrecisePsi", digamma_functions.precise_psi, uniform(-3.8, 4, [-3, -2, -1, 0])),
        OpSpec("ScipyPsiStep", digamma_functions.psi_step, stirling.psi_step,
               [case((3, 1), (4,))], POSITIVE, BOTH),
        OpSpec("ScipyRiemannZeta", ours.zeta, special.zeta, [case((3, 4))], uniform(1.5, 4), BOTH),
        OpSpec("ScipyZetaDerivative", digamma_functions._zeta_derivative,
               zeta_sums.zeta_derivative, [case(1, (3, 4), 1.5), case(2, (3, 1), (4,))],
               uniform(1.5, 4), BOTH, (False, True, True)),
        OpSpec("ScipyHurwitzZeta", ours.zeta, special.zeta, [case((3, 1), (4,))],
               uniform(1.5, 4), DOUBLE),
        OpSpec("ScipyLambertw", ours.lambertw, special.lambertw, [case((3, 4)), case((3,), -1)],
               POSITIVE, WITH_ORDERS),
        OpSpec("comb", ours.comb, special.comb, [case((3, 4), 2), case((3,), 2, repetition=True)],
               uniform(3, 6), DOUBLE),
        OpSpec("perm", ours.perm, special.perm, [case((3, 4), 2)], uniform(3, 6), DOUBLE),
        OpSpec("factorial", ours.factorial, special.factorial, [case((3, 4))], POSITIVE, DOUBLE),
        *[record(name, uniform(0.4, 1.5), dtypes=DOUBLE) for name in ("kolmogorov",)],
        record("kolmogi", UNIT, dtypes=DOUBLE), record("tklmbda", SIGNED, uniform(-0.6, -0.2)),
        *[record(name, UNIT, orders=(7,), dtypes=DOUBLE, order=1) for name in (
            "smirnov", "smirnovi")],
        OpSpec("ScipySmirnovSlope", kolmogorov_functions._smirnov_slope,
               special._ufuncs._smirnovp, [case(7, (3, 4))], UNIT, DOUBLE, (False, False)),
        OpSpec("ScipyTukeyTail", kolmogorov_functions._tail, kolmogorov_functions._tukey_tail,
               [case((3, 4), (3, 1), (4,))], (UNIT, uniform(8, 20), uniform(-0.6, -0.2)), DOUBLE,
               (False, True, True)),
        record("ndtri_exp", uniform(-4, -0.2)),
    ]
    NONCENTRAL = [
        OpSpec("ScipyBetaincLessInB", incomplete_functions.betainc_less_in_b,
               t_integrals.betainc_less_b, [case((3, 1), (4,), (3, 4)), case((), (), ())],
               (uniform(0.4, 30), uniform(0.4, 30), POSITIVE), BOTH, third=False),
        OpSpec("ScipyLogChiMoment", distribution_functions._log_chi_moment,
               noncentral_sums.log_chi_moment, [case((), (3, 4)), case((), ())],
               (uniform(3, 30), SIGNED), BOTH, (False, True)),
        record("nctdtr", UNIT, UNIT, orders=(3.0,), dtypes=DOUBLE),
        record("nctdtrit", UNIT, UNIT, orders=(3.0,), dtypes=DOUBLE, tolerance=10.0),
        record("ncfdtr", UNIT, UNIT, orders=(3.0, 5.0), dtypes=DOUBLE),
        record("ncfdtri", UNIT, UNIT, orders=(3.0, 5.0), dtypes=DOUBLE, tolerance=1e3),
        *[OpSpec(f"Scipy{name.capitalize()}", getattr(ours, name), getattr(special, name), [
            case(*map(np.array, given))], SIGNED, DOUBLE, (False,) * len(given))
          for name, given in (
            ("chndtridf", (2.0, 0.4, 1.5)), ("nctdtridf", (0.4, 0.7, 1.2)),
            ("nctdtrinc", (3.0, 0.4, 1.2)), ("ncfdtridfd", (3.0, 0.4, 0.7, 1.2)),
            ("ncfdtridfn", (0.4, 5.0, 0.7, 1.2)), ("ncfdtrinc", (3.0, 5.0, 0.2, 1.2)))],
    ]
    SPECS = [
        *NONCENTRAL, *ELEMENTARY, *INTEGRALS, *ELLIPTIC, *HYPERGEOMETRIC, *BESSEL, *SPHERICAL,
        *POLYNOMIALS, *WAVES, *GAMMA]
