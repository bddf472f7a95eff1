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
# Rooms and modules that the compiler does not optimise in full: the first level that names one
# counts, -O3 the others. bench/instructions.json shows if a module has become hot.
LEVELS = {
    "-O3": {  # hot modules in rooms of the last level
        "autodiff/forward_accumulator", "graph/nested/loop_plan", "graph/passes/accumulate_op",
        "graph/passes/fused_loop", "graph/passes/fused_op", "graph/run/executor",
        "graph/run/instructions", "graph/run/value_op",
    },
    "-Os": {  # large and cold: half the size that -O1 gives
        "core/schedules", "graph/checkpoint", "graph/control", "graph/differentiation",
        "graph/tracing/concrete_function", "graph/tracing/functions", "ops/python/reachable",
    },
    "-O1": {  # once per trace or run, or mostly calls of Python: half the time to compile
        "_cyutility", "autodiff", "autodiff/custom", "core/interrupts", "core/tape", "core/vspace",
        "graph/nested", "graph/passes", "graph/run", "graph/tracing", "ops/calls/node_store",
        "ops/calls/recorded_calls", "ops/calls/symbolic", "ops/engine/custom_op",
        "ops/engine/node_vspace", "ops/engine/program_nodes", "ops/kernels/fused_function",
        "ops/kernels/partial_tracer", "ops/python", "ops/shapes", "ops/updates",
        "profiling/op_hooks", "tensor/making", "tensor/nest",
        "tensor/recording/conversion_guards", "tensor/recording/entered_blocks",
        "tensor/recording/state", "tensor/variable",
    },
}
# The loop over instructions is 6 % slower where jumps straddle 32 bytes.
INTERPRETER = Path("cytape/graph/run")
# Its loops over roots would not be vectorised: sqrt may set errno.
WITHOUT_ERRNO = Path("cytape/optimizers/update_kernels.pyx")
SHARED = "cytape._cyutility"  # what each module would have of Cython's own: functions, classes
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]
# Profilers read the names of functions, in the source tree; wheels go without, a seventh smaller.
WITH_SYMBOLS = "--inplace" in sys.argv or "CYTAPE_SYMBOLS" in os.environ
LINKED = [] if WITH_SYMBOLS or os.name == "nt" else ["-Wl,-s"]
# Short declarations of NumPy, Python and C, which Cython finds before its own and NumPy's: it reads
# them again for every module. A third of its time went into NumPy's alone, a tenth into the others.
SHORT_DECLARATIONS = "pxd"
COMPILING = "bdist", "build", "develop", "editable", "install"  # others need no C files
TRACE_LINE = re.compile(r"#define __Pyx_TraceLine\(.*\)   if .*")  # what it is without tracing


def flags(path):
    """Return the compiler's flags for a module.

    -O3 saves one instruction in fourteen of an op, and takes longer. Processors schedule
    instructions themselves; without it, and without one pass over redundant loads, no count of
    bench/instructions.json rises, and the compiler takes a ninth less.
    Debug symbols would be two thirds of the wheel. Warnings about generated C say nothing to users.
    """
    if os.name == "nt":
        return []
    if DEBUG:
        notes = path.with_suffix(".lines").resolve()
        return ["-O1", "-w", "-DCYTHON_PROFILE=0", "-Itests", f'-DLINES_RUN="{notes}"']
    module = path.with_suffix("").relative_to("cytape")
    places = {module.as_posix(), module.parent.as_posix()}
    level = next((level for level, parts in LEVELS.items() if not parts.isdisjoint(places)), "-O3")
    aligned = ["-falign-functions=32"] if path.parent == INTERPRETER else []
    roots = ["-fno-math-errno", "-fno-trapping-math"] if path == WITHOUT_ERRNO else []
    return [level, "-fno-schedule-insns2", "-fno-gcse", "-Wno-all", "-w", "-g0",
            "-fno-asynchronous-unwind-tables", *aligned, *roots]


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
    gc.disable()  # half of Cython's time went into looking for garbage: 9 MB per module
    modules = cythonize(modules, build_dir=build_dir, compiler_directives=DIRECTIVES,
                        include_path=[SHORT_DECLARATIONS],
                        shared_utility_qualified_name=SHARED,
                        nthreads=os.cpu_count() if len(modules) > 2 else 0, **options)
    modules.sort(key=lambda module: -Path(module.sources[0]).stat().st_size)  # no long job last
    if DEBUG:
        for path in (Path(source) for module in modules for source in module.sources):
            text, is_new = TRACE_LINE.subn('#include "lines_run.h"', path.read_text())
            if is_new:
                path.write_text(text)
    return modules


if __name__ == "__main__":
    is_compiled = any(command.startswith(COMPILING) for command in sys.argv[1:])
    setup(ext_modules=extensions("." if DEBUG else "build/c") if is_compiled else [],
          options={"build_ext": {"parallel": os.cpu_count()}})
