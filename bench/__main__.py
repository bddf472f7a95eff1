"""``python -m bench``: the speed of cytape, as one table of ratios taken in one run.

The table also goes to ``bench/output/`` as JSON and as a picture. The exit code is 1 if a row
misses its target; with ``--smoke`` everything is tiny, and no time has a target.
"""

import os

# One core against one core. NumPy's libraries read this once, when they are loaded.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse
import platform
import sys
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np

from bench.checkpoint_rows import checkpoint_rows
from bench.core_rows import core_rows
from bench.forward_mode_rows import forward_mode_rows
from bench.function_rows import function_rows
from bench.loop_rows import loop_rows
from bench.memory_rows import memory_rows
from bench.program_rows import program_rows
from bench.report import FAILED, draw, print_table, write_json
from bench.update_rows import update_rows


def describe_environment(smoke):
    return {
        "cytape": version("cytape"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": 1 if hasattr(os, "sched_setaffinity") else os.cpu_count(),
        "method": "shortest run, programs in turns in one process, garbage collector off",
        "smoke": smoke,
    }


def main():
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--smoke", action="store_true", help="run everything once, and tiny")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output",
                        help="folder for table.json and table.png")
    arguments = parser.parse_args()
    smoke = arguments.smoke
    environment = describe_environment(smoke)
    timings = chain(core_rows(smoke), program_rows(smoke), forward_mode_rows(smoke),
                    function_rows(smoke), loop_rows(smoke), update_rows(smoke),
                    checkpoint_rows(smoke))
    if smoke:
        timings = (replace(row, at_least=None, at_most=None) for row in timings)
    rows = print_table(chain(timings, memory_rows(smoke)))
    title = ", ".join(f"{key}: {value}" for key, value in environment.items())
    print(f"\n{title}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_json(arguments.output / "table.json", environment, rows)
    draw(arguments.output / "table.png", title, rows)
    failed = [row.name for row in rows if row.verdict == FAILED]
    if failed:
        sys.exit(f"{len(failed)} of {len(rows)} rows miss their targets")


if __name__ == "__main__":
    main()
