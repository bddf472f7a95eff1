from Cython.Build import cythonize
from setuptools import setup

setup(py_modules=[], ext_modules=cythonize(["intervals.pyx"], language_level=3))
