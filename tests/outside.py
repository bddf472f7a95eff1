"""Extension modules outside of the package, compiled against its .pxd files."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import cytape

SETUP = """
from Cython.Build import cythonize
from setuptools import setup
setup(ext_modules=cythonize("{name}.pyx", language_level=3))
"""


def compiled(folder, name):
    """Build the .pyx file in a folder, by the setup.py there if it has one, and import it."""
    if not (folder / "setup.py").exists():
        (folder / "setup.py").write_text(SETUP.format(name=name))
    parent = str(Path(cytape.__file__).parents[1])
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder,
        env=os.environ | {"PYTHONPATH": parent, "CFLAGS": "-O1"}, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    library, = (path for path in folder.iterdir() if path.suffix in {".so", ".pyd"})
    spec = importlib.util.spec_from_file_location(name, library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
