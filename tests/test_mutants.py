"""The table of planted faults fits the source, and what comes of a fault is told apart."""

import re
from collections import Counter

import pytest

from tests.cases import each
from tests.mutants.__main__ import main
from tests.mutants.table import ROOT, read_tables

MUTANTS = read_tables()
by_name = {mutant.name: mutant for mutant in MUTANTS}
ROOMS = {"core", "tensor", "ops", "submodules", "autodiff", "graph", "passes", "numpy", "nn",
         "optimizers", "pictures", "profiling", "testing", "autograd", "scipy"}


@each("name", by_name)
def test_a_mutant_fits_its_file(name):
    mutant = by_name[name]
    text = (ROOT / mutant.file).read_text()
    assert mutant.apply(text) != text
    assert all((ROOT / path).exists() for tests in mutant.tests(ROOT) for path in tests)
    assert mutant.tests(ROOT)


def test_there_are_mutants_of_every_room():
    rooms = Counter(mutant.name.split("/")[0] for mutant in MUTANTS)
    assert rooms.keys() == ROOMS
    assert rooms.total() >= 60


TABLE = """
[noticed]
file = "cytape/core/sums.py"
old = "x + y"
new = "x - y"

[noticed-by-another-file]
file = "cytape/core/sums.py"
old = "x * y"
new = "x"

[unnoticed]
file = "cytape/core/sums.py"
old = "x / y"
new = "y"

[crashing]
file = "cytape/core/sums.py"
old = "return 1"
new = "import os; os.abort()"

[of-another-time]
file = "cytape/core/sums.py"
old = "x ** y"
new = "x"

[everywhere]
file = "cytape/core/sums.py"
old = "x"
new = "y"

[not-to-be-imported]
file = "cytape/core/sums.py"
old = "def total"
new = "deaf total"
"""
SUMS = """
def total(x, y):
    return x + y

def product(x, y):
    return x * y

def ratio(x, y):
    return x / y

def one():
    return 1
"""
IMPORT = "from cytape.core.sums import one, product, total\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A source tree with tests, of which some notice something."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than the tests
    for path, text in {
        "cytape/__init__.py": "", "cytape/core/__init__.py": "", "cytape/core/sums.py": SUMS,
        "tests/core/test_sums.py": IMPORT + "def test_total(): assert total(2, 3) == 5\n"
                                            "def test_one(): assert one() == 1\n",
        "tests/core/test_others.py": IMPORT + "def test_product(): assert product(2, 3) == 6\n",
        "tests/mutants/core.toml": TABLE,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_outcomes_of_mutants(tree, capsys):
    assert main(["--root", str(tree)]) == 1
    found = re.findall(r"core/(\S+) (\w+) \(\d+ s\) (.*)", capsys.readouterr().out)
    assert [(name, outcome) for name, outcome, _ in found] == [
        ("noticed", "killed"), ("noticed-by-another-file", "killed"), ("unnoticed", "survived"),
        ("crashing", "killed"), ("of-another-time", "stale"), ("everywhere", "stale"),
        ("not-to-be-imported", "broken"),
    ]  # fmt: skip
    about = {name: about for name, _, about in found}
    assert about["noticed"] == "by tests/core/test_sums.py::test_total"
    assert about["noticed-by-another-file"] == "by tests/core/test_others.py::test_product"
    assert (tree / "cytape" / "core" / "sums.py").read_text() == SUMS


def test_some_mutants_alone(tree, capsys):
    assert main(["--root", str(tree), "core/noticed"]) == 0
    assert "1 of 1 mutants killed" in capsys.readouterr().out


def test_a_test_that_fails_anyway_kills_nothing(tree, capsys):
    (tree / "tests" / "core" / "test_sums.py").write_text("def test_it(): assert False\n")
    assert main(["--root", str(tree), "core/unnoticed"]) == 1
    assert "fails without the fault, too" in capsys.readouterr().out


def test_there_must_be_such_a_mutant(tree, capsys):
    with pytest.raises(SystemExit):
        main(["--root", str(tree), "nothing/*"])
    assert "no mutant is named nothing/*" in capsys.readouterr().err
