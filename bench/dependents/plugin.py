"""Plugin of pytest: alias autograd if asked to, and write one line of JSON per test.

It is imported by the Python of an environment, without the package `bench`. Each line has the
outcome of a test, the CPU seconds of its call, whether the call traced a function, and its output.
A test may record properties in place of the seconds and the output.
"""

import json
import os
import time

import numpy
import pytest

IS_CYTAPE = os.environ["DEPENDENTS_LIBRARY"] == "cytape"
if IS_CYTAPE:
    from cytape.autograd import install_as_autograd

    install_as_autograd()

import autograd.core  # noqa: E402, I001

traces = 0


def counted(function):
    def call(*args, **kwargs):
        global traces
        traces += 1
        return function(*args, **kwargs)
    return call


if not IS_CYTAPE:  # both sides count a test if autograd traces a function in it
    autograd.core.trace = counted(autograd.core.trace)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    global traces
    numpy.random.seed(2)  # all tests of autograd pass there
    traces, begin = 0, time.process_time()
    yield
    item.stash[SECONDS] = time.process_time() - begin, traces > 0


SECONDS = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when == "call" or report.failed:
        seconds, traced = item.stash.get(SECONDS, (0.0, False))
        line = {
            "test": item.nodeid, "outcome": report.outcome if call.when == "call" else "error",
            "seconds": seconds, "traced": traced, "error": str(report.longrepr)[-500:],
            "output": "", **dict(item.user_properties)}
        with open(os.environ["DEPENDENTS_RESULTS"], "a") as file:
            file.write(json.dumps(line) + "\n")
