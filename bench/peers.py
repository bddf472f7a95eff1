"""``python -m bench.peers``: the time of derivatives, by cytape and by other libraries.

A library takes part if it is installed; ``make bench-peers`` has them all in an environment of
their own. Each library's value and derivatives are compared with NumPy's and cytape's before it is
timed. Then NumPy's forward pass and the derivatives by all libraries take turns, in one process, on
one core and with one thread. A library that raises an exception is said to fail.
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
from bench.peer_libraries import GRADIENT, HVP, JVP, LIBRARIES, LOOP, numpy_forward, to_array
from bench.peer_report import Result, draw, format_result, write_json, write_markdown
from bench.timing import Effort, Program, best_seconds
from bench.workloads import forward_mode_workloads, loop_workloads, more_workloads, workloads

# How far an answer may be off, relative to its largest element, by the bytes of its dtype.
TOLERANCES = {4: 1e-4, 8: 1e-10}


def check(workload, library, answers, expected):
    """Fail unless a library's answers are as expected; both are arrays by name."""
    if answers.keys() != expected.keys():
        raise AssertionError(
            f"{workload.name}: {library} has {list(answers)}, not {list(expected)}")
    for name, right in expected.items():
        actual, what = answers[name], f"{workload.name}: {library}'s {name}"
        if (actual.shape, actual.dtype) != (right.shape, right.dtype):
            raise AssertionError(f"{what} is {actual.dtype} of shape {actual.shape}, "
                                 f"not {right.dtype} of shape {right.shape}")
        difference = np.max(np.abs(actual - right))
        if not difference <= TOLERANCES[right.itemsize] * np.max(np.abs(right)):
            raise AssertionError(f"{what} is off by up to {difference:.3g}")


def arrays_by_name(measure, answers):
    """Return the arrays of a library's results; those of a sequence are numbered."""
    arrays = {}
    for name, answer in zip(measure.answers, answers, strict=True):
        if isinstance(answer, list | tuple):
            arrays |= {f"{name} {i}": to_array(x) for i, x in enumerate(answer)}
        else:
            arrays[name] = to_array(answer)
    return arrays


def compare(measure, group, workload, libraries, effort):
    """Check and time a derivative of a workload by each library that has it, cytape first."""
    forward, expected = numpy_forward(workload), None
    programs, first_calls, failures = {}, {}, {}
    freezes = not gc.get_freeze_count()  # where the caller has not done so
    if freezes:
        gc.freeze()  # else calls and turns would begin with a search through all that was imported
    for library in libraries:
        make_program = getattr(library, measure.name)
        if make_program is None:
            continue
        try:
            program = make_program(workload)
            start = time.perf_counter()
            answers = program()
            first_call = time.perf_counter() - start
        except Exception as error:
            if expected is None:
                raise
            failures[library.name] = f"{type(error).__name__}: {error}".partition("\n")[0]
            continue
        arrays = arrays_by_name(measure, answers)
        if expected is None:
            expected = {**arrays, "value": np.asarray(forward())} if "value" in arrays else arrays
        check(workload, library.name, arrays, expected)
        programs[library.name], first_calls[library.name] = program, first_call
    forward_s, *seconds = best_seconds(
        [Program(lambda _, run=run: run()) for run in (forward, *programs.values())], effort)
    if freezes:
        gc.unfreeze()
    return Result(measure, group, workload.name, forward_s,
                  dict(zip(programs, seconds, strict=True)), first_calls, failures)


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


def comparisons(smoke):
    """Return the measure, the group of programs, and the programs."""
    return [
        (GRADIENT, "the programs of make bench", workloads(smoke)),
        (GRADIENT, "other programs of the same kinds", more_workloads(smoke)),
        (JVP, "Jacobian-vector products", forward_mode_workloads(smoke)),
        (HVP, "Hessian-vector products", forward_mode_workloads(smoke)),
        (LOOP, "loops", loop_workloads(smoke)),
    ]


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
    results = []
    for measure, group, members in comparisons(arguments.smoke):
        if not results or results[-1].measure is not measure:
            columns = [x.name for x in libraries if getattr(x, measure.name)]
            print("\n" + format_result(
                f"{measure.phrase}, over NumPy's forward pass", columns))
        for workload in members:
            result = compare(measure, group, workload, libraries, effort)
            print(format_result(result.name, result.cells(columns)), flush=True)
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
