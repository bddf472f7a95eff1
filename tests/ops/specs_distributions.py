"""Records of distribution functions of `scipy.special` and their inverses; none without SciPy."""

import numpy as np

from tests.ops.op_specs import SINGLE_AND_DOUBLE, OpSpec, case, uniform

try:
    from scipy import special, stats

    from cytape.ops.probabilities import line_integrals as lines
    from cytape.ops.probabilities import log_probabilities as logs
    from cytape.ops.probabilities import tail_logarithms as tails
    from cytape.ops.sampling import quantile_functions as quantiles
    from cytape.ops.special import distribution_functions, error_functions, incomplete_functions
    from cytape.ops.special_kernels import incomplete_integrals as kernels
    from cytape.ops.special_kernels import stirling as densities
    from cytape.ops.special_kernels import t_integrals, von_mises_sums
    from cytape.scipy.stats import solved_quantiles
except ImportError:
    SPECS = []
else:
    SHAPE, UNIT = uniform(1, 4), uniform(0.2, 0.8)
    POSITIVE, SIGNED = uniform(0.4, 4), uniform(-2, 2)
    COUNTS = np.array([[0.0], [2.0], [3.0]])  # not differentiated

    def of_two(function, ref, domain, order=2, case_=None, name=None, flags=True, **options):
        return OpSpec(
            "Scipy" + (name or ref.__name__.capitalize()), function, ref,
            [case_] if case_ else [case((3, 1), (1, 2)), case((), ())],
            domain, SINGLE_AND_DOUBLE, order=order, differentiable=flags, **options)

    def of_three(function, ref, domain, order=2, name=None, **options):
        return OpSpec(
            "Scipy" + (name or ref.__name__.capitalize()), function, ref,
            [case((3, 1), (1, 2), (3, 2))], domain, ("float64",), order=order, **options)

    def log_of(name):
        return lambda *x: np.log(getattr(special, name)(*x))

    def declared(name):
        for module in (incomplete_functions, distribution_functions):
            if name in module.__all__:
                return getattr(module, name)
        raise LookupError(name)

    TWO = {
        "gammainc": (SHAPE, POSITIVE), "gammaincc": (SHAPE, POSITIVE), "gammaincinv": (SHAPE, UNIT),
        "gammainccinv": (SHAPE, UNIT), "stdtr": (SHAPE, SIGNED), "stdtrit": (SHAPE, UNIT),
        "chdtr": (SHAPE, POSITIVE), "chdtrc": (SHAPE, POSITIVE), "chdtri": (SHAPE, UNIT),
        "chdtriv": (UNIT, POSITIVE), "pdtrik": (uniform(0.7, 0.9), uniform(2, 4))}
    THREE = {
        "betainc": (SHAPE, SHAPE, UNIT), "betaincc": (SHAPE, SHAPE, UNIT),
        "betaincinv": (SHAPE, SHAPE, UNIT), "betainccinv": (SHAPE, SHAPE, UNIT),
        "gdtr": (POSITIVE, SHAPE, UNIT), "gdtrc": (POSITIVE, SHAPE, UNIT),
        "gdtrix": (POSITIVE, SHAPE, UNIT), "gdtria": (UNIT, SHAPE, POSITIVE),
        "gdtrib": (POSITIVE, UNIT, POSITIVE), "btdtria": (UNIT, SHAPE, UNIT),
        "btdtrib": (SHAPE, UNIT, UNIT), "fdtr": (SHAPE, SHAPE, POSITIVE),
        "fdtrc": (SHAPE, SHAPE, POSITIVE), "fdtri": (SHAPE, SHAPE, UNIT),
        "fdtridfd": (SHAPE, uniform(0.55, 0.6), uniform(1.2, 1.4)),
        "bdtrik": (uniform(0.4, 0.9), uniform(8, 9), uniform(0.3, 0.5)),
        "bdtrin": (uniform(2, 4), UNIT, UNIT),
        "nbdtrik": (uniform(0.5, 0.8), uniform(3, 4), uniform(0.2, 0.3)),
        "nbdtrin": (uniform(2, 4), UNIT, UNIT), "nrdtrimn": (UNIT, POSITIVE, SIGNED),
        "nrdtrisd": (uniform(-2, -1), uniform(0.6, 0.8), POSITIVE)}
    OF_NO_SHAPE = {"nrdtrimn", "nrdtrisd"}  # of the normal distribution
    SPECS = [
        *[of_two(declared(name), getattr(special, name), domain, tolerance=50,
                 third=False)
          for name, domain in TWO.items()],
        *[of_three(declared(name), getattr(special, name), domain, tolerance=50,
                   third=name in OF_NO_SHAPE)
          for name, domain in THREE.items()],
        *[of_two(declared(name), getattr(special, name), (None, domain), case_=case(COUNTS, (3, 2)),
                 flags=(False, True))
          for name, domain in (("pdtr", POSITIVE), ("pdtrc", POSITIVE), ("pdtri", UNIT))],
        *[OpSpec("Scipy" + name.capitalize(), declared(name), getattr(special, name),
                 [case(COUNTS, 5, (3, 2))], UNIT, ("float64",),
                 differentiable=(False, False, True))
          for name in ("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri")],
        *[OpSpec("Scipy" + name.capitalize(), declared(name), getattr(special, name),
                 [case(*inputs)], domain, ("float64",),
                 differentiable=tuple(isinstance(x, tuple) for x in inputs), tolerance=50)
          for name, inputs, domain in (
              ("chndtr", ((3,), 3.0, (3,)), POSITIVE), ("chndtrix", ((3,), 3.0, (3,)), UNIT),
              ("chndtrinc", ((3,), 3.0, (3,)), (uniform(3, 4), None, uniform(0.2, 0.4))))],
        # SciPy solves it less precisely
        of_two(declared("stdtridf"), special.stdtridf, (uniform(0.65, 0.68), uniform(0.55, 0.6)),
               order=1, tolerance=1000),
        # densities and derivatives
        *[OpSpec("Scipy" + op, getattr(error_functions, name), ref, [case((2, 3))], SIGNED)
          for name, op, ref in (
              ("_gaussian", "Gaussian", lambda x: np.exp(-x * x)),
              ("log_ndtr_slope", "LogNdtrSlope", error_functions._log_ndtr_slope),
              ("_normal_density", "NormalDensity",
               lambda x: np.exp(-0.5 * x * x) / float(np.sqrt(2 * np.pi))))],
        *[of_two(getattr(incomplete_functions, name), ref, domain, order, name=op, flags=flags)
          for name, op, ref, domain, order, flags in (
              ("gamma_density", "GammaDensity", densities.gamma_density, (SHAPE, POSITIVE), 2,
               True),
              ("stdtr_in_df", "StdtrInDf", t_integrals.stdtr_df, (SHAPE, SIGNED), 1,
               (False, False)))],
        *[of_two(getattr(incomplete_functions, name), ref, (SHAPE, domain), name=op,
                 case_=case(2.5, (3, 2)), flags=(False, True))
          for name, op, ref, domain in (
              ("gammainc_in_a", "GammaincInA", kernels.gammainc_a, POSITIVE),
              ("gammainc_in_aa", "GammaincInAa", kernels.gammainc_aa, POSITIVE),)],
        *[of_three(getattr(incomplete_functions, name), ref, domain, order, name=op)
          for name, op, ref, domain, order in (
              ("betainc_in_a_of_x", "BetaincInAOfX",
               lambda a, b, x: kernels.betainc_a(a, b, x / (1 - x)), (SHAPE, SHAPE, UNIT), 1),
              ("betainc_in_b_of_x", "BetaincInBOfX",
               lambda a, b, x: kernels.betainc_b(a, b, x / (1 - x)), (SHAPE, SHAPE, UNIT), 1),
              ("beta_density", "BetaDensity", densities.beta_density, (SHAPE, SHAPE, UNIT), 2),
              ("odds_density", "OddsDensity", densities.odds_density, (SHAPE, SHAPE, POSITIVE),
               2))],
        *[OpSpec(f"ScipyBetaincIn{x.capitalize()}",
                 getattr(incomplete_functions, f"betainc_in_{x}"),
                 getattr(kernels, f"betainc_{x}"), [case(1.7, 2.5, (3, 2))], POSITIVE, ("float64",),
                 differentiable=(False, False, True)) for x in ("a", "b", "aa", "ab", "bb")],
        *[OpSpec(f"Scipy{op}", getattr(logs, name, None) or getattr(incomplete_functions, name),
                 ref, [case((3,), (3,))], SHAPE,
                 dtypes=("float64",), differentiable=(False, False))
          for name, op, ref in (
              ("stdtr_in_dfdf", "StdtrInDfdf", t_integrals.stdtr_dfdf),
              ("t_score", "TailTScore", t_integrals.t_score_df),
              ("t_density_in_df", "TDensityInDf", t_integrals.t_density_in_df))],
        # logarithms, and derivatives over probabilities
        *[of_two(getattr(logs, f"log_{name}"), log_of(name),
                 (SHAPE, domain), name=f"TailLog{name.capitalize()}", third=False, tolerance=50)
          for name, domain in (
              ("gammainc", POSITIVE), ("gammaincc", POSITIVE), ("stdtr", SIGNED))],
        *[of_three(function, ref, (SHAPE, SHAPE, domain), name=name, third=False, tolerance=50)
          for name, function, ref, domain in (
              ("TailLogBetainc", logs.log_betainc, log_of("betainc"), UNIT),
              ("TailLogBetaincc", logs.log_betaincc, log_of("betaincc"), UNIT),
              ("TailLogOdds", logs.log_odds,
               lambda a, b, z: np.log(special.betainc(a, b, z / (1 + z))), POSITIVE),
              ("TailLogOddsc", logs.log_oddsc,
               lambda a, b, z: np.log(special.betaincc(a, b, z / (1 + z))), POSITIVE),
              ("TailBetaRest", logs.beta_rest, special.betaincc, UNIT))],
        *[of_three(function, ref, (uniform(-2, 0), uniform(1, 3), SHAPE), name=name)
          for name, function, ref in (
              ("TailLogMass", logs._mass,
               lambda a, b, _: np.log(special.ndtr(b) - special.ndtr(a))),
              ("TailMassSlope", logs.mass_slope, lambda a, b, _: np.exp(-0.5 * a * a) / (
                  np.sqrt(2 * np.pi) * (special.ndtr(b) - special.ndtr(a)))))],
        *[OpSpec(f"Scipy{op}", function, ref, [case(*inputs)], domain, ("float64",),
                 differentiable=tuple(isinstance(x, tuple) for x in inputs), tolerance=50)
          for op, function, ref, inputs, domain in (
              ("TailGammaOver", logs.gamma_over, tails.gamma_x, ((3,), (3,), (3,)), SHAPE),
              ("TailGammaAOver", logs.gamma_a_over, tails.gamma_a, (1.7, (3,), (3,)), SHAPE),
              ("TailGammaAaOver", logs.gamma_aa_over, tails.gamma_aa, (1.7, (3,), (3,)), SHAPE),
              ("TailOddsOver", logs.odds_over, tails.beta_z, ((3,), (3,), (3,), (3,)), SHAPE),
              ("TailDensityOver", logs.density_over, tails.beta_x, ((3,), (3,), (3,), (3,)),
               (SHAPE, SHAPE, UNIT, SHAPE)),
              *[(f"TailBeta{x.capitalize()}Over", getattr(logs, f"beta_{x}_over"),
                 getattr(tails, f"beta_{x}"), (1.7, 2.5, (3,), (3,)), SHAPE)
                for x in ("a", "b", "aa", "ab", "bb")],
              ("TailTOver", logs.t_over, tails.t_t, (1.7, (3,), (3,)), SHAPE),
              ("TailTDfOver", logs.t_df_over, tails.t_df, (1.7, 2.5, (3,)), SHAPE),
              ("TailTDfdfOver", logs.t_dfdf_over, tails.t_dfdf, (1.7, 2.5, (3,)), SHAPE))],
        # functions of scipy.stats
        *[OpSpec(f"ScipyStats{op}", function, ref, [case((3, 1), (1, 2))], (domain, SHAPE),
                 ("float64",), tolerance=50)
          for op, function, ref, domain in (
              ("SkewnormCdf", quantiles.skewnorm_cdf, stats.skewnorm.cdf, SIGNED),
              ("SkewnormPpf", quantiles.skewnorm_ppf, stats.skewnorm.ppf, UNIT),
              ("ExponnormPpf", quantiles.exponnorm_ppf, stats.exponnorm.ppf, UNIT),
              ("ExponnormIsf", quantiles.exponnorm_isf, stats.exponnorm.isf, UNIT),
              ("InvgaussPpf", quantiles.invgauss_ppf, stats.invgauss.ppf, UNIT),
              ("InvgaussIsf", quantiles.invgauss_isf, stats.invgauss.isf, UNIT),
              ("RicePpf", quantiles.rice_ppf, stats.rice.ppf, UNIT),
              ("RiceIsf", quantiles.rice_isf, stats.rice.isf, UNIT),
              ("RiceCdf", quantiles.rice_cdf, stats.rice.cdf, POSITIVE),
              ("RiceSf", quantiles.rice_sf, stats.rice.sf, POSITIVE),
              *[(f"Rice{side}", op, op.forward, domain) for side, op, domain in (
                  ("Upper", quantiles.rice_upper, uniform(4, 5)),
                  ("Lower", quantiles.rice_lower, uniform(0.4, 1)))])],
        OpSpec(
            "ScipyLineBreaks", lambda *given: lines.breaks_op(
                *given, name="scaled_bessel", is_tail=False),
            lambda *given: lines.breaks_op.forward(*given, name="scaled_bessel", is_tail=False),
            [case((3, 1), (2,))], (UNIT, POSITIVE), ("float64",), differentiable=False),
        *[OpSpec(f"ScipyStatsIrwinhall{method.capitalize()}",
                 getattr(quantiles, f"irwinhall_{method}"), getattr(stats.irwinhall, method),
                 [case((3, 2), 4.0)], SHAPE, ("float64",), differentiable=(True, False))
          for method in ("pdf", "cdf")],
        OpSpec(
            "ScipyStatsCount", quantiles.count_op, np.positive, [case((3, 2))], POSITIVE,
            ("float64",), differentiable=(False,)),
        OpSpec(
            "ScipyStatsNcx2Sf", quantiles.ncx2_sf, quantiles.ncx2_sf.forward,
            [case((3,), 3.0, (3,))], POSITIVE, ("float64",),
            differentiable=(True, False, True), tolerance=50),
        OpSpec(
            "ScipyStatsNcfSf", quantiles.ncf_sf, quantiles.ncf_sf.forward,
            [case((3,), 3.0, 2.5, (3,))], POSITIVE, ("float64",),
            differentiable=(True, False, False, True), tolerance=50),
        OpSpec(
            "ScipyStatsPowerSeriesRest", quantiles.power_series_rest,
            quantiles.power_series_rest.forward, [case(COUNTS, (3, 2))], UNIT, ("float64",),
            differentiable=(False, True)),
        *[OpSpec(f"ScipyStats{op}", function, function.forward, [case((3, 2))], domain)
          for op, function, domain in (
              ("KolmogorovCdf", quantiles.kolmogorov_cdf, POSITIVE),
              ("CosineCdf", quantiles.cosine_cdf, SIGNED),
              ("CosinePpf", quantiles.cosine_ppf, UNIT),
              ("KstwobignPpf", quantiles.kolmogorov_ppf, UNIT))],
        *[OpSpec(f"ScipyStats{op}", function, ref, [case((3, 2), 2.5)], domain, ("float64",),
                 differentiable=(True, False), tolerance=50)
          for op, function, ref, domain in (
              ("VonmisesCdf", quantiles.vonmises_cdf, stats.vonmises.cdf, SIGNED),
              ("VonmisesInKappa", quantiles.vonmises_in_kappa, von_mises_sums.vonmises_in_kappa,
               SIGNED),
              ("VonmisesInKappas", quantiles.vonmises_in_kappas,
               von_mises_sums.vonmises_in_kappas, SIGNED))],
        OpSpec(
            "ScipyStatsSteps", lambda *q: quantiles.steps_op(*q, name="poisson", method="ppf"),
            stats.poisson.ppf,
            [case((3, 1), (2,))], (UNIT, POSITIVE), ("float64",), differentiable=False),
        OpSpec(
            "ScipyStatsSolvedQuantile", lambda *q: solved_quantiles.solve_op(
                *q, name="foldnorm", method="isf"), stats.foldnorm.isf,
            [case((3, 1), (2,))], (UNIT, POSITIVE), ("float64",), differentiable=False),
    ]
