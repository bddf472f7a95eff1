"""Which lines of compiled modules a build for coverage says there are, and which ran."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lines_run import lines

ROOT = Path(__file__).parents[1]
HEADER = """\
cdef inline int half(int x) noexcept nogil:
    if x % 2:
        return 0
    return x // 2
"""
MODULE = """\
cdef int halved(int x) noexcept nogil:
    while x > 4:
        x = half(x)
        if x < 0:
            x = 0
    return x

def f(x):
    try:
        return halved(x)
    except ValueError:
        return None
"""


@pytest.mark.exhaustive
def test_lines_that_run_are_told_from_those_that_do_not(tmp_path, monkeypatch):
    package = tmp_path / "cytape"
    package.mkdir()
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copy(ROOT / "tests" / "lines_run.h", tmp_path / "tests")
    (package / "__init__.py").touch()
    (package / "small.pxd").write_text(HEADER)
    (package / "small.pyx").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    environ = os.environ | {"CYTAPE_DEBUG": "1", "PYTHONPATH": str(tmp_path)}
    program = "import os; from cytape.small import f; assert f(8) == 4; os._exit(0)"
    for command in ["setup.py", "-q", "build_ext", "--inplace"], ["-c", program]:
        subprocess.run([sys.executable, *command], check=True, env=environ)
    found, ran = lines("cytape")
    header, module = str(package / "small.pxd"), str(package / "small.pyx")
    assert found == {header: {1, 2, 3, 4}, module: {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12}}
    assert found[header] - ran[header] == {3}
    assert found[module] - ran[module] == {5, 11, 12}
