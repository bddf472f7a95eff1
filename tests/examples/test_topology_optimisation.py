"""The example of topology optimisation: gradients, and a stiffer beam."""

import numpy as np
import pytest

from cytape.testing import check_grads

pytest.importorskip("scipy")
topology_optimisation = pytest.importorskip("examples.topology_optimisation")


def test_gradients_agree_with_differences():
    beam = topology_optimisation.Beam(6, 3)
    densities = np.random.default_rng(0).uniform(0.3, 0.9, 18)
    check_grads(beam.compliance, [densities], order=1)


def test_the_beam_becomes_stiffer_at_the_same_mass(capsys):
    compliances, densities = topology_optimisation.main(short=True)
    assert compliances[-1] < 0.5 * compliances[0]
    np.testing.assert_allclose(densities.mean(), 0.5, 1e-3)
    assert "after 15 steps" in capsys.readouterr().out
