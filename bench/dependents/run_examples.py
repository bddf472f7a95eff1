"""autograd's examples as tests: seeded, without plots, with few iterations, on synthetic digits."""

import os
import re
import signal
import sys
import types
from pathlib import Path

import numpy
import pytest

ROOT = Path(os.environ["DEPENDENTS_SOURCES"]) / "examples"
NO_PROGRAMS = {"__init__", "data", "data_mnist"}
EXAMPLES = sorted(path for path in ROOT.rglob("*.py") if path.stem not in NO_PROGRAMS)
SHORTER = [  # replacements that reduce the number of iterations
    (r"num_iters=\d+", "num_iters=100"), (r"num_iters = \d+", "num_iters = 100"),
    (r"num_epochs = \d+", "num_epochs = 1"), (r"range\(1000\)", "range(100)"),
    (r"max_lines=60", "max_lines=5"), (r"data_size=\d+", "data_size=50"),
    (r"timesteps = \d+", "timesteps = 3"),
    (r"[\"']maxiter[\"']: [25]\d", "'maxiter': 5"),
]
LIMIT = 120  # CPU seconds


class Silent(types.ModuleType):
    """Stand-in for pyplot and all that it returns."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __iter__(self):
        return iter([self, self])

    def __getitem__(self, index):
        return self


def digits():
    rng = numpy.random.RandomState(0)
    return [rng.randint(0, high, (n, *shape)).astype(numpy.uint8)
            for n in (300, 100) for high, shape in ((256, (28, 28)), (10, ()))]


def expired(*_):
    raise TimeoutError(f"more than {LIMIT} s of CPU time")


def shortened(minimize):
    def call(*args, options=None, **kwargs):
        return minimize(*args, options=options or {"maxiter": 10}, **kwargs)
    return call


@pytest.fixture
def stubs(monkeypatch, tmp_path):
    import autograd.misc.optimizers
    import autograd.numpy.random
    import autograd.scipy.integrate
    import autograd.scipy.linalg
    import autograd.scipy.signal
    import autograd.scipy.special
    import autograd.scipy.stats  # noqa: F401
    import matplotlib.image
    import scipy.integrate
    import scipy.optimize
    import scipy.signal
    import scipy.stats  # noqa: F401

    plots = Silent("matplotlib.pyplot")
    plots.imread = matplotlib.image.imread
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", plots)
    monkeypatch.setattr(matplotlib, "pyplot", plots, raising=False)
    monkeypatch.setattr(scipy.optimize, "minimize", shortened(scipy.optimize.minimize))
    mnist = types.ModuleType("data_mnist")
    mnist.mnist = digits
    monkeypatch.setitem(sys.modules, "data_mnist", mnist)
    for name in ("data", "rnn", "lstm", "black_box_svi", "gaussian_process", "neural_net"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(ROOT))
    handler = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, handler)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, stubs, monkeypatch):
    monkeypatch.chdir(path.parent)
    text = path.read_text()
    for pattern, replacement in SHORTER:
        text = re.sub(pattern, replacement, text)
    exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
