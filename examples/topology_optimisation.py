"""Find the stiffest beam of a given mass: topology optimisation by a sparse solve.

Half of a beam on two supports (the MBB beam) is a grid of square elements, each with a density
between 0 and 1. The displacements solve sparse equations (`spsolve`), whose values depend on the
densities (SIMP, Bendsoe and Sigmund, "Topology optimization" (2003)). The gradient of the
compliance, the work of the load, comes from `cytape.grad`: it reuses the factors of the solution.
Densities follow by the optimality criteria of Andreassen et al., "Efficient topology optimization
in MATLAB using 88 lines of code" (2011).

Run it with ``python -m examples.topology_optimisation``. It needs SciPy, and matplotlib for the
picture.
"""

import sys
from pathlib import Path

import numpy as np

import cytape
from cytape.scipy import sparse
from cytape.scipy.sparse.linalg import spsolve

PICTURE = Path(__file__).parent / "output" / "topology_optimisation.png"
SOFTEST, POWER, POISSON = 1e-9, 3.0, 0.3


def element_stiffness():
    """Return the stiffness matrix of a square element of unit size and stiffness."""
    k = np.array([
        1 / 2 - POISSON / 6, 1 / 8 + POISSON / 8, -1 / 4 - POISSON / 12, -1 / 8 + 3 * POISSON / 8,
        -1 / 4 + POISSON / 12, -1 / 8 - POISSON / 8, POISSON / 6, 1 / 8 - 3 * POISSON / 8])
    order = [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 7, 6, 5, 4, 3, 2], [2, 7, 0, 5, 6, 3, 4, 1],
             [3, 6, 5, 0, 7, 2, 1, 4], [4, 5, 6, 7, 0, 1, 2, 3], [5, 4, 3, 2, 1, 0, 7, 6],
             [6, 3, 4, 1, 2, 7, 0, 5], [7, 2, 1, 4, 3, 6, 5, 0]]
    return k[np.array(order)] / (1 - POISSON**2)


class Beam:
    """Half of a beam on two supports, with a load in the middle, of nx by ny elements."""

    def __init__(self, nx, ny, radius=1.5):
        self.shape, n_unknowns = (nx, ny), 2 * (nx + 1) * (ny + 1)
        x, y = np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij")
        corner = (ny + 1) * x + y
        nodes = np.stack([corner + 1, corner + ny + 2, corner + ny + 1, corner], -1)
        unknowns = np.stack([2 * nodes, 2 * nodes + 1], -1).reshape(nx * ny, 8)
        fixed = np.append(np.arange(0, 2 * (ny + 1), 2), n_unknowns - 1)
        place = np.full(n_unknowns, -1)
        free = np.setdiff1d(np.arange(n_unknowns), fixed)
        place[free] = np.arange(free.size)
        rows, cols = np.broadcast_arrays(place[unknowns][:, :, None], place[unknowns][:, None, :])
        self.kept = np.flatnonzero((rows >= 0) & (cols >= 0))
        self.rows, self.cols = rows.ravel()[self.kept], cols.ravel()[self.kept]
        self.load = np.zeros(free.size)
        self.load[place[1]] = -1.0
        distance = np.hypot(x.ravel()[:, None] - x.ravel(), y.ravel()[:, None] - y.ravel())
        weights = np.maximum(radius - distance, 0)
        self.filter = sparse.csr_array(weights / weights.sum(1, keepdims=True))

    def compliance(self, densities):
        """Return the work of the load, the less the stiffer the beam."""
        stiffness = SOFTEST + (self.filter @ densities) ** POWER * (1 - SOFTEST)
        values = np.ravel(stiffness[:, None, None] * element_stiffness())[self.kept]
        n = self.load.size
        matrix = sparse.csr_array((values, (self.rows, self.cols)), shape=(n, n))
        return self.load @ spsolve(matrix, self.load)


def updated(densities, slopes, mass, step=0.2):
    """Return densities of the same mass after a step of the optimality criteria."""
    low, high = 0.0, 1e9
    while high - low > 1e-6 * (high + low):
        multiplier = (low + high) / 2
        new = densities * np.sqrt(np.maximum(-slopes, 0) / max(multiplier, 1e-30))
        new = np.clip(new, np.maximum(densities - step, 0), np.minimum(densities + step, 1))
        low, high = (multiplier, high) if new.mean() > mass else (low, multiplier)
    return new


def optimised(beam, mass=0.5, steps=60):
    """Yield the compliance and the densities of each step."""
    densities = np.full(beam.shape[0] * beam.shape[1], mass)
    value_and_gradient = cytape.value_and_grad(beam.compliance)
    for _ in range(steps):
        compliance, slopes = value_and_gradient(densities)
        yield float(compliance), densities
        densities = updated(densities, slopes, mass)


def main(short=False):
    """Optimise a beam, print its compliance and save the picture; return compliances, densities."""
    beam = Beam(30, 10) if short else Beam(120, 40)
    history = list(optimised(beam, steps=15 if short else 60))
    compliances = [compliance for compliance, _ in history]
    print(f"compliance of even densities {compliances[0]:.1f}, after {len(history)} steps "
          f"{compliances[-1]:.1f}")
    if not short:
        from matplotlib.figure import Figure  # only the picture needs matplotlib

        half = (beam.filter @ history[-1][1]).reshape(beam.shape).T
        figure = Figure(figsize=(9, 2.2), layout="constrained")
        axes = figure.subplots()
        axes.imshow(np.hstack([half[:, ::-1], half]), cmap="gray_r", vmin=0, vmax=1)
        nx, ny = beam.shape
        axes.plot([0, 2 * nx - 1], [ny + 1, ny + 1], "^", color="tab:blue", label="supports",
                  clip_on=False)
        axes.plot(nx - 0.5, -2, "v", color="tab:red", label="load")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        axes.set_axis_off()
        axes.set_title(f"the stiffest beam of half the mass (compliance {compliances[-1]:.0f}, "
                       f"evenly distributed {compliances[0]:.0f})")
        PICTURE.parent.mkdir(exist_ok=True)
        figure.savefig(PICTURE, dpi=120)
        print(f"picture: {PICTURE}")
    return compliances, history[-1][1]


if __name__ == "__main__":
    main("--short" in sys.argv)
