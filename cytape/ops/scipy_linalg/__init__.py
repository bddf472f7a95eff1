"""Functions of `scipy.linalg`, differentiable, by SciPy's names and signatures.

Each backward pass solves the adjoint equation by SciPy's solver of the same name. Functions that
read one triangle or band have a gradient in that alone, except for Hermitian matrices: these are
differentiated as such (docs/conventions.md).
"""

from cytape.ops.scipy_linalg.banded_systems import *  # noqa: F403
from cytape.ops.scipy_linalg.factored_systems import *  # noqa: F403
from cytape.ops.scipy_linalg.lu_factors import *  # noqa: F403
from cytape.ops.scipy_linalg.matrix_equations import *  # noqa: F403
from cytape.ops.scipy_linalg.matrix_functions import *  # noqa: F403
from cytape.ops.scipy_linalg.orthogonal_factors import *  # noqa: F403
from cytape.ops.scipy_linalg.patterned_matrices import *  # noqa: F403
from cytape.ops.scipy_linalg.spectral_factors import *  # noqa: F403
from cytape.ops.scipy_linalg.triangular_systems import *  # noqa: F403
