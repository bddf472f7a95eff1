"""Fixtures and checks of all tests."""

import functools
import gc
import os
import zlib
from pathlib import Path

# There is a worker per core already: threads of NumPy's library would wait busily for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from _pytest.assertion import rewrite  # noqa: E402
from _pytest.doctest import DoctestModule  # noqa: E402

import cytape  # noqa: E402
from cytape.graph.run.plan_layout import poison_memory  # noqa: E402
from cytape.tensor.recording.state import anybody_records  # noqa: E402
from tests import ways  # noqa: E402

POISONS = 0xFF, 0xA5  # every byte of a NaN; no boolean, no number that a test expects


def allclose(x, y, rtol=1e-7, atol=0, equal_nan=True, err_msg="", verbose=True, *, strict=False):
    difference = np.abs(x - y)
    return np.all(difference <= atol + rtol * np.abs(y)) and np.max(difference, initial=0) < np.inf


def equal(x, y, err_msg="", verbose=True, *, strict=False):
    return np.all(x == y)


def faster(check, passes):
    """Return a check of NumPy that passes at once where finite arrays of one dtype agree.

    NumPy takes 50 to 100 microseconds for what it reports of arrays that differ: a tenth of the
    suite.
    """
    @functools.wraps(check)
    def checked(actual, desired, *args, **options):
        x, y = actual, desired
        if not anybody_records():  # errors of recorded tensors name the caller
            x, y = (np.asarray(a) if type(a) is cytape.Tensor else a for a in (x, y))
        if type(x) is np.ndarray and type(y) is np.ndarray and (
                x.dtype == y.dtype and x.shape == y.shape and x.dtype.kind in "fc"):
            with np.errstate(all="ignore"):
                if passes(x, y, *args, **options):
                    return
        check(actual, desired, *args, **options)

    return checked


np.testing.assert_allclose = faster(np.testing.assert_allclose, allclose)
np.testing.assert_array_equal = faster(np.testing.assert_array_equal, equal)

MORE = 4  # times as many examples of random programs where `make test-all` runs whole tables


def pytest_ignore_collect(collection_path, config):
    """Leave out the pages of the documentation, which `make docs-test` looks at, unless asked."""
    if collection_path.name == "site" and not any("site" in arg for arg in config.args):
        return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Compile a share of the tests: each worker of pytest-xdist imports all of them.

    pytest adds its assertions to the code and stores the bytecode. Without this, all workers would
    do so for each file. The collection makes no garbage, so the collector stays off.
    """
    gc.disable()
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    if n_workers == 1 or session.config.args_source is not session.config.ArgsSource.TESTPATHS:
        return
    state = session.config.stash.get(rewrite.assertstate_key, None)
    if state is None:  # by --assert=plain
        return
    first = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))[first::n_workers]:
        folder = rewrite.get_cache_dir(path)
        compiled = folder / (path.stem + rewrite.PYC_TAIL)
        if rewrite.try_makedirs(folder) and rewrite._read_pyc(path, compiled) is None:
            stamp, code = rewrite._rewrite_test(path, session.config)
            rewrite._write_pyc(state, code, stamp, compiled)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no doctests in the tests: that took a sixth of the time of the collection."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]


def pytest_collection_modifyitems(config, items):
    """Have Hypothesis draw more examples where exhaustive tests run, too, and check all ways."""
    if "not exhaustive" in config.option.markexpr:
        return
    ways.takes_all = True
    from hypothesis import settings  # here: it is slow to import

    name = "_hypothesis_internal_use_settings"
    for test in {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}:
        if (own := getattr(test, name, None)) is not None:
            setattr(test, name, settings(own, max_examples=MORE * own.max_examples))


def pytest_collection_finish():
    """Keep the garbage collector from looking at the tests themselves, tens of thousands.

    Hundreds of tests collect garbage, and would look at them each time.
    """
    gc.enable()
    gc.freeze()


def pytest_runtest_setup(item):
    """Have plans fill their memory before each run: what nothing writes is not read unnoticed."""
    poison_memory(POISONS[zlib.crc32(item.nodeid.encode()) % 2])


def pytest_runtest_teardown(item, nextitem):
    """The same for what the tests of a file leave in caches."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def rng():
    """Numbers that are the same whichever tests ran before, or in other processes."""
    return np.random.default_rng(0)


@pytest.fixture
def graph():
    """Build into a new graph."""
    with cytape.Graph().as_default() as graph:
        yield graph
