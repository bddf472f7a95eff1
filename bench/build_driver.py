"""Compilation of the C driver into the ignored folder `build/bench`, on first use."""

import importlib.util
import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).with_name("c_driver.pyx")
BUILD = ROOT / "build" / "bench"
DIRECTIVES = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}


def load_driver():
    """Return the module `c_driver`, rebuilt if it is older than a .pxd file of the core."""
    source = os.path.relpath(SOURCE)  # an absolute path would be repeated below the build folder
    modules = cythonize(
        [Extension("bench.c_driver", [source], extra_compile_args=["-O3"])],
        build_dir=str(BUILD), compiler_directives=DIRECTIVES, include_path=[str(ROOT)], quiet=True)
    distribution = Distribution({"ext_modules": modules})
    command = distribution.get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(BUILD)
    command.ensure_finalized()
    command.run()
    (library,) = command.get_outputs()
    spec = importlib.util.spec_from_file_location("bench.c_driver", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
