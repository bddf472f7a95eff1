"""Functions of SciPy that have no derivative, with an error for recorded tensors."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from cytape.errors import DetachedError
from cytape.tensor import nest
from cytape.tensor.tensor import Tensor

REPLACEMENTS = {
    "scipy.optimize": {
        **dict.fromkeys(("brent", "golden", "fminbound"), "minimize_scalar"),
        **dict.fromkeys(("fsolve", "anderson", "broyden1", "broyden2", "newton_krylov"), "root"),
        **dict.fromkeys(("fmin", "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg",
                         "fmin_powell", "fmin_slsqp", "fmin_tnc"), "minimize"),
        "leastsq": "least_squares"},
    "scipy.stats": {
        "quantile": "numpy.quantile", "scoreatpercentile": "numpy.percentile",
        "trimboth": "trim_mean"}}
OF_RANKS = frozenset((
    "anderson_ksamp", "ansari", "brunnermunzel", "bws_test", "chatterjeexi", "cramervonmises_2samp",
    "fligner", "friedmanchisquare", "kendalltau", "kruskal", "ks_2samp", "mannwhitneyu",
    "median_test", "mode", "mood", "page_trend_test", "percentileofscore", "rankdata", "ranksums",
    "somersd", "spearmanr", "spearmanrho", "tiecorrect", "weightedtau", "wilcoxon"))


@functools.cache
def without_derivatives(function: FunctionType) -> Callable:
    """Return a function of SciPy that compares no recorded tensors, which would lose gradients."""
    name, module = function.__name__, ".".join(function.__module__.split(".")[:2])
    reason = " (its result depends on ranks or counts, which are steps)" if name in OF_RANKS else ""
    other = REPLACEMENTS.get(module, {}).get(name)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            args, options = nest.map_structure(_of_arrays, (args, options))
            return function(*args, **options)
        except DetachedError as error:
            place = "" if other is None or "." in other else f"cytape.{module}."
            advice = "" if other is None else f": {place}{other} has one"
            raise DetachedError(
                f"{module}.{name} has no derivative{reason}, but an argument or a function "
                f"depends on a recorded tensor{advice}. For the value, pass stop_gradient(tensor)"
            ) from error

    call.__module__ = f"cytape.{module}"  # where pickle finds it
    call.refuses_tensors = True  # type: ignore[attr-defined]  # not advised instead of SciPy's
    return call


def _of_arrays(leaf: Any) -> Any:
    """Return an array for a tensor, and a function that returns arrays for one of the user's."""
    if not isinstance(leaf, FunctionType):
        return _array(leaf)

    @functools.wraps(leaf)
    def called(*args: Any, **options: Any) -> Any:
        found = leaf(*args, **options)
        return nest.map_structure(_array, found) if type(found) in (Tensor, list, tuple) else found

    return called


def _array(leaf: Any) -> Any:
    return np.asarray(leaf)[()] if isinstance(leaf, Tensor) else leaf
