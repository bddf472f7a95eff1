"""The memory of this process, for tests of what is kept and of what stays behind."""

import ctypes
import gc
import os
from pathlib import Path

import pytest

ROLLUP = Path("/proc/self/smaps_rollup")
needs_rollup = pytest.mark.skipif(not os.access(ROLLUP, os.R_OK), reason="needs Linux's rollup")
if ROLLUP.exists():
    # Linux may merge small pages into a large one at any time, of which 511 were not in memory.
    PR_SET_THP_DISABLE = 41
    ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def resident_bytes():
    """Return the bytes of its pages in memory now (not at their peak), after a collection.

    They are counted there and then: other files show counters, which Linux keeps for each CPU and
    adds up too late to see a megabyte.
    """
    gc.collect()
    lines = ROLLUP.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))
