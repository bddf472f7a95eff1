"""`logsumexp`, where SciPy had it until version 1.3."""

from cytape.scipy.special import logsumexp as logsumexp
