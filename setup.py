"""Builds the Cython extension modules; pyproject.toml says everything else about the package."""

import gc
import os
import re
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("CYTAPE_DEBUG") == "1"  # bounds checks, and notes of the lines that run
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
    "auto_pickle": False,  # a class is pickled as its __reduce__ says, or not at all
    "linetrace": DEBUG,
}
GRAPH = Path("cytape/graph")
RUN_ONCE = {GRAPH / room for room in ("passes", "tracing", "control", "nested")}  # of traces
COLD = {  # large, and little of it runs often
    GRAPH / "checkpoint", GRAPH / "differentiation", GRAPH / "tracing/concrete_function.pyx",
    GRAPH / "tracing/functions.pyx", GRAPH / "control/control_ops.pyx",
    Path("cytape/core/schedules.pyx"), Path("cytape/ops/python/reachable.pyx"),
}
INTERPRETER = GRAPH / "run"  # its loop over instructions: 6 % slower where jumps straddle 32 bytes
SHARED = "cytape._cyutility"  # what each module would have of Cython's own: functions, classes
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]
# Profilers read the names of functions, in the source tree; wheels go without.
LINKED = [] if "--inplace" in sys.argv or os.name == "nt" else ["-Wl,-s"]
TRACE_LINE = re.compile(r"#define __Pyx_TraceLine\(.*\)   if .*")  # what it is without tracing


def flags(path):
    """Return the compiler's flags for a module.

    -O3 saves one instruction in twenty of an op, and takes longer. Debug symbols would be two
    thirds of the wheel, -Os saves a quarter of what is left. What compilers warn of in generated C
    says nothing to users.
    """
    if os.name == "nt":
        return []
    if DEBUG:
        notes = path.with_suffix(".lines").resolve()
        return ["-O1", "-w", "-DCYTHON_PROFILE=0", "-Itests", f'-DLINES_RUN="{notes}"']
    level = "-Os" if not COLD.isdisjoint({path, path.parent}) else (
        "-O2" if path.parent in RUN_ONCE else "-O3")
    aligned = ["-falign-functions=32"] if path.parent == INTERPRETER else []
    return [level, "-Wno-all", "-w", "-g0", "-fno-asynchronous-unwind-tables", *aligned]


def extensions(build_dir, **options):
    """Translate every .pyx file of the package to C under `build_dir`."""
    modules = [
        Extension(".".join(path.with_suffix("").parts), [path.as_posix()], define_macros=MACROS,
                  include_dirs=[numpy.get_include()],
                  libraries=[] if os.name == "nt" else ["m"],
                  extra_compile_args=flags(path), extra_link_args=LINKED)
        for path in sorted(Path("cytape").rglob("*.pyx"))
    ]
    shared = Path(*SHARED.split(".")).with_suffix(".c")
    modules.append(Extension(SHARED, [shared.as_posix()], extra_compile_args=flags(shared)))
    gc.set_threshold(1_000_000)  # half of Cython's time went into looking for garbage
    modules = cythonize(modules, build_dir=build_dir, compiler_directives=DIRECTIVES,
                        shared_utility_qualified_name=SHARED,
                        nthreads=os.cpu_count() if len(modules) > 2 else 0, **options)
    if DEBUG:
        for path in (Path(source) for module in modules for source in module.sources):
            text, is_new = TRACE_LINE.subn('#include "lines_run.h"', path.read_text())
            if is_new:
                path.write_text(text)
    return modules


if __name__ == "__main__":
    # An editable install would compile everything once more, beside `build_ext --inplace`.
    in_place = os.environ.get("CYTAPE_BUILT_IN_PLACE") == "1"
    setup(ext_modules=[] if in_place else extensions("." if DEBUG else "build/c"),
          options={"build_ext": {"parallel": os.cpu_count()}})
