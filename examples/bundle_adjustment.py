"""Adjust camera poses and points in space to their positions in pictures (bundle adjustment).

Eight cameras on an arc see 60 points. Poses and points are found together by least squares of the
pixels. The Jacobian is exact and sparse: a pixel depends on one camera and one point only, so a few
directions in forward mode give all of it.

Run it with ``python -m examples.bundle_adjustment``. It needs SciPy, and matplotlib for the picture
it saves.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.sparse import lil_array

import cytape.numpy as cnp
from cytape.scipy.optimize import least_squares

PICTURE = Path(__file__).parent / "output" / "bundle_adjustment.png"
FOCAL_LENGTH = 500.0  # pixels
NOISE = 0.5  # of pixels


def rotated(vectors, points):
    """Rotate points by rotation vectors, one each (Rodrigues' formula)."""
    square = cnp.sum(vectors**2, 1, keepdims=True) + 1e-16
    angle = cnp.sqrt(square)
    axis = vectors / angle
    along = axis * cnp.sum(axis * points, 1, keepdims=True)
    return along + cnp.cos(angle) * (points - along) + cnp.sin(angle) * cnp.cross(axis, points)


def pixels(cameras, points):
    """Return where points appear in the pictures of cameras, of a rotation and a shift each."""
    seen = rotated(cameras[:, :3], points) + cameras[:, 3:]
    return FOCAL_LENGTH * seen[:, :2] / seen[:, 2:]


def make_scene(n_cameras=8, n_points=60, seed=0):
    """Return true cameras and points, which camera sees which point, and the noisy pixels."""
    rng = np.random.default_rng(seed)
    angles = np.linspace(-0.6, 0.6, n_cameras)
    cameras = np.zeros((n_cameras, 6))
    cameras[:, 1], cameras[:, 5] = angles, 6.0
    turns = rng.uniform(0, 2 * np.pi, n_points)
    points = np.stack([np.cos(turns), rng.uniform(-1, 1, n_points), np.sin(turns)], 1)
    camera_of, point_of = map(np.ravel, np.indices((n_cameras, n_points)))
    is_seen = rng.uniform(size=camera_of.size) < 0.7
    camera_of, point_of = camera_of[is_seen], point_of[is_seen]
    observed = pixels(cameras[camera_of], points[point_of])
    return cameras, points, camera_of, point_of, observed + rng.normal(0, NOISE, observed.shape)


def sparsity(camera_of, point_of, n_cameras, n_points):
    """Return the places of the Jacobian's nonzero elements."""
    pattern = lil_array((2 * len(camera_of), 6 * n_cameras + 3 * n_points), dtype=int)
    for row, (camera, point) in enumerate(zip(camera_of, point_of, strict=True)):
        start = 6 * n_cameras + 3 * point
        pattern[2 * row : 2 * row + 2, 6 * camera : 6 * camera + 6] = 1
        pattern[2 * row : 2 * row + 2, start : start + 3] = 1
    return pattern


def adjust(cameras, points, camera_of, point_of, observed):
    """Return cameras and points that fit the observed pixels, and SciPy's result."""
    def errors(scene):
        return cnp.ravel(
            pixels(scene["cameras"][camera_of], scene["points"][point_of]) - observed)

    result = least_squares(
        errors, {"cameras": cameras, "points": points}, x_scale="jac", ftol=1e-8,
        jac_sparsity=sparsity(camera_of, point_of, len(cameras), len(points)))
    return result.x["cameras"], result.x["points"], result


def root_mean_square(cameras, points, camera_of, point_of, observed):
    """Return the size of the errors in pixels."""
    return np.sqrt(np.mean((pixels(cameras[camera_of], points[point_of]) - observed) ** 2))


def save_picture(before, after, camera_of, point_of, observed):
    """Draw one camera's picture, and the errors of its points, before and after."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharex=True, sharey=True,
                                layout="constrained")
    shown = camera_of == 0
    for axis, (cameras, points), title in zip(axes, (before, after), ("start", "adjusted"),
                                              strict=True):
        found = pixels(cameras[camera_of], points[point_of])[shown]
        axis.plot(*observed[shown].T, "o", mfc="none", color="black", label="observed")
        axis.plot(*found.T, ".", color="tab:red", label="projected")
        axis.plot(*np.stack([observed[shown], found], 1).transpose(2, 1, 0), "-", color="tab:red",
                  linewidth=0.8)
        axis.set(title=title, xlabel="x (pixels)", aspect="equal")
    axes[0].set_ylabel("y (pixels)")
    axes[0].legend(frameon=False, loc="lower left")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


def main(short=False):
    """Adjust, print and draw; return the errors in pixels before and after."""
    cameras, points, *scene = make_scene(*(4, 20) if short else ())
    rng = np.random.default_rng(1)
    start = (cameras + rng.normal(0, 0.03, cameras.shape),
             points + rng.normal(0, 0.1, points.shape))
    *adjusted, result = adjust(*start, *scene)
    sizes = [root_mean_square(*both, *scene) for both in (start, adjusted)]
    print(f"{result.jac.shape[0]} pixels, {result.jac.shape[1]} unknowns, Jacobian "
          f"{result.jac.nnz / np.prod(result.jac.shape):.1%} nonzero, {result.njev} of them")
    print(f"error {sizes[0]:.1f} pixels at the start, {sizes[1]:.2f} adjusted")
    if not short:
        save_picture(start, adjusted, *scene)
        print(f"picture: {PICTURE}")
    return sizes


if __name__ == "__main__":
    main("--short" in sys.argv)
