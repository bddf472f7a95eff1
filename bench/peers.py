"""``python -m bench.peers``: the time of whole gradients, by cytape and by other libraries.

A library takes part if it is installed; ``make bench-peers`` has them all in an environment of
their own. Each library's value and gradients are compared with NumPy's and cytape's before it is
timed. Then NumPy's forward pass and the gradients of all libraries take turns, in one process, on
one core and with one thread.
"""

import os

if __name__ == "__main__":  # not in a test that imports this: the libraries read it as they load
    os.environ |= dict.fromkeys([
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",  # NumPy, PyTorch
        "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
        "NPROC",  # JAX
    ], "1")
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse
import datetime
import gc
import importlib.metadata
import platform
import time
import tomllib
from pathlib import Path

import numpy as np

from bench.peak_memory import GRADIENTS, peak_ratio
from bench.peer_libraries import LIBRARIES, numpy_forward, to_array
from bench.peer_report import Result, draw, format_result, write_json, write_markdown
from bench.timing import Effort, Program, best_seconds
from bench.workloads import more_workloads, workloads

# How far an answer may be off, relative to its largest element, by the bytes of its dtype.
TOLERANCES = {4: 1e-4, 8: 1e-10}


def check(workload, library, answers, expected):
    """Fail unless a library's value and gradients are as expected."""
    for i, (actual, right) in enumerate(zip(answers, expected, strict=True)):
        what = f"{workload.name}: {library}'s {f'gradient {i - 1}' if i else 'value'}"
        if (actual.shape, actual.dtype) != (right.shape, right.dtype):
            raise AssertionError(f"{what} is {actual.dtype} of shape {actual.shape}, "
                                 f"not {right.dtype} of shape {right.shape}")
        difference = np.max(np.abs(actual - right))
        if not difference <= TOLERANCES[right.itemsize] * np.max(np.abs(right)):
            raise AssertionError(f"{what} is off by up to {difference:.3g}")


def compare(group, workload, libraries, effort):
    """Check and time the gradient of a workload by each library, cytape first."""
    expected = None
    programs, first_calls = [numpy_forward(workload)], []
    for library in libraries:
        gradient = library.gradient(workload)
        start = time.perf_counter()
        value, gradients = gradient()
        first_calls.append(time.perf_counter() - start)
        answers = [to_array(x) for x in (value, *gradients)]
        expected = expected or [np.asarray(numpy_forward(workload)()), *answers[1:]]
        check(workload, library.name, answers, expected)
        programs.append(gradient)
    gc.freeze()  # else every turn would begin with a search through all that was imported
    forward_s, *gradient_s = best_seconds(
        [Program(lambda _, run=program: run()) for program in programs], effort)
    gc.unfreeze()
    names = [library.name for library in libraries]
    return Result(group, workload.name, forward_s, dict(zip(names, gradient_s, strict=True)),
                  dict(zip(names, first_calls, strict=True)))


def version(package):
    if package == "cytape":  # it may be built in place, and not be installed
        project = Path(__file__).parents[1] / "pyproject.toml"
        return tomllib.loads(project.read_text())["project"]["version"]
    distribution = importlib.metadata.packages_distributions()[package][0]
    return importlib.metadata.version(distribution)


def processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe_environment(libraries, effort, smoke):
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "one core": hasattr(os, "sched_setaffinity"),
        "rounds": effort.rounds,
        "seconds per round": effort.seconds,
        "smoke": smoke,
        "not installed": [x.name for x in LIBRARIES if x not in libraries],
        "compiled": [x.name for x in libraries if x.compiled],
        "versions": {"Python": platform.python_version(), "NumPy": np.__version__} | {
            x.name: version(x.package) for x in libraries if not x.compiled},
    }


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("--smoke", action="store_true", help="run everything once, and tiny")
    for option in "json", "markdown", "plot":
        parser.add_argument(f"--{option}", type=Path, metavar="FILE")
    arguments = parser.parse_args()

    libraries = [library for library in LIBRARIES if library.installed]
    effort = Effort(2, 0.001) if arguments.smoke else Effort(5, 0.2)
    environment = describe_environment(libraries, effort, arguments.smoke)
    if environment["not installed"]:
        print(f"not installed: {', '.join(environment['not installed'])}")
    print(format_result("a whole gradient, as a multiple of NumPy's forward pass",
                        [library.name for library in libraries]))
    results = []
    for group, members in {
        "the programs of make bench": workloads(arguments.smoke),
        "other programs of the same kinds": more_workloads(arguments.smoke),
    }.items():
        for workload in members:
            result = compare(group, workload, libraries, effort)
            print(format_result(result.name, result.ratios.values()), flush=True)
            results.append(result)

    network = (50, 64, 64) if arguments.smoke else (200, 256, 256)
    memory = {library.name: peak_ratio(library.name, *network) for library in libraries
              if library.name in GRADIENTS}
    print("peak memory of a deep MLP:", ", ".join(f"{x} {y:.2f}" for x, y in memory.items()))

    if arguments.json:
        write_json(arguments.json, environment, results, memory)
    if arguments.markdown:
        write_markdown(arguments.markdown, environment, results, memory, arguments.plot)
    if arguments.plot:
        draw(arguments.plot, environment, results)


if __name__ == "__main__":
    main()
