"""The functions of `scipy.special` that have derivatives: one declaration each, with its partials.

The formulas are those of the Digital Library of Mathematical Functions (DLMF). Beyond the domain of
a function, the derivative is NaN where SciPy's value is. Float32 tensors beside Python's numbers
give float32, as in NumPy; some ufuncs of SciPy give float64.
"""

from cytape.ops.special.airy_functions import *  # noqa: F403
from cytape.ops.special.bessel_functions import *  # noqa: F403
from cytape.ops.special.digamma_functions import *  # noqa: F403
from cytape.ops.special.distribution_functions import *  # noqa: F403
from cytape.ops.special.elementary_functions import *  # noqa: F403
from cytape.ops.special.elliptic_integrals import *  # noqa: F403
from cytape.ops.special.error_functions import *  # noqa: F403
from cytape.ops.special.exponential_integrals import *  # noqa: F403
from cytape.ops.special.gamma_functions import *  # noqa: F403
from cytape.ops.special.gamma_products import *  # noqa: F403
from cytape.ops.special.hypergeometric_functions import *  # noqa: F403
from cytape.ops.special.incomplete_functions import *  # noqa: F403
from cytape.ops.special.kolmogorov_functions import *  # noqa: F403
from cytape.ops.special.log_sums import *  # noqa: F403
from cytape.ops.special.spherical_functions import *  # noqa: F403
from cytape.ops.special.struve_functions import *  # noqa: F403
from cytape.ops.special.wave_functions import *  # noqa: F403
