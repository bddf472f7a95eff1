"""The name `autograd` for `cytape.autograd`: each program runs in a process of its own."""

import subprocess
import sys

import pytest

INSTALL = "from cytape.autograd import install_as_autograd; install_as_autograd()"
BY_HAND = "import sys, cytape.autograd; sys.modules['autograd'] = cytape.autograd"


def run(tmp_path, program):
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def room(tmp_path):
    """Modules beside those of the package, found by both names."""
    folder = tmp_path / "more" / "inner"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("loads = globals().get('loads', 0) + 1\n")
    (folder / "leaf.py").write_text("class Leaf: pass\n")
    (folder / "broken.py").write_text("import module_that_is_missing\n")
    return f"import cytape.autograd; cytape.autograd.__path__.append({str(tmp_path / 'more')!r})\n"


@pytest.mark.parametrize("alias", [INSTALL, BY_HAND])
def test_a_module_is_the_same_by_both_names(tmp_path, room, alias):
    run(tmp_path, f"""{room}{alias}
import sys, importlib.util
import autograd, autograd.inner.leaf as leaf
from autograd.inner import leaf as again
import cytape.autograd.inner.leaf as own
assert autograd is cytape.autograd and autograd.inner is cytape.autograd.inner
assert leaf is again is own and leaf.Leaf is own.Leaf
assert own.__name__ == own.__spec__.name == 'cytape.autograd.inner.leaf'
assert sys.modules['autograd.inner.leaf'] is sys.modules['cytape.autograd.inner.leaf']
assert importlib.util.find_spec('autograd.inner').name == 'cytape.autograd.inner'
import pickle
assert isinstance(pickle.loads(pickle.dumps(leaf.Leaf())), own.Leaf)
""")


@pytest.mark.parametrize("alias", [INSTALL, BY_HAND])
def test_boxes_are_of_autograds_class(tmp_path, alias):
    """Other libraries compare its name, or choose functions by its module."""
    run(tmp_path, f"""{alias}
import copy, pickle
from autograd.numpy.numpy_boxes import ArrayBox
from autograd import grad
def f(x):
    assert str(type(x)) == "<class 'autograd.numpy.numpy_boxes.ArrayBox'>", type(x)
    assert type(x).__module__.split(".")[0] == "autograd" and type(x).__name__ == "ArrayBox"
    assert type(x) == ArrayBox
    return copy.copy(x) ** 2
assert grad(f)(3.0) == 6.0
import cytape
x = cytape.constant([1.0])
assert type(pickle.loads(pickle.dumps(x))) is type(x)
""")


def test_attributes_of_the_class_of_boxes_are_those_of_tensors(tmp_path):
    run(tmp_path, f"""{INSTALL}
import autograd.numpy as np
from autograd import grad
from autograd.numpy.numpy_boxes import ArrayBox
ArrayBox.item = lambda self: np.reshape(self, ())  # with a derivative
ArrayBox.half = property(lambda self: self / 2)
assert grad(lambda x: np.sum(x.half**2).item())(np.ones(2)).tolist() == [0.5, 0.5]
""")


def test_a_module_that_was_imported_by_its_own_name_is_not_loaded_again(tmp_path, room):
    run(tmp_path, f"""{room}
import cytape.autograd.inner
{INSTALL}
{INSTALL}
import autograd.inner
assert autograd.inner.loads == 1
""")


def test_a_name_that_hides_a_module_stays(tmp_path):
    """As in autograd, where `autograd.misc.flatten` is a function and a module."""
    run(tmp_path, f"""{INSTALL}
import autograd.misc
from autograd.misc.flatten import flatten
from autograd.misc import flatten as same
assert same is flatten is autograd.misc.flatten and callable(flatten)
""")


def test_missing_and_broken_modules_raise_as_usual(tmp_path, room):
    run(tmp_path, f"""{room}{INSTALL}
for name, missing in [('autograd.nothing', 'autograd.nothing'),
                      ('autograd.inner.broken', 'module_that_is_missing')]:
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name == missing, error
    else:
        raise AssertionError
try:
    from autograd import nothing
except ImportError as error:
    assert 'nothing' in str(error)
""")


def test_all_public_names_are_imported(tmp_path):
    run(tmp_path, f"""{INSTALL}
from autograd import *
assert callable(install_as_autograd) and 'sys' not in globals()
""")


AUTOGRAD = """import os, sys
os.makedirs('autograd/numpy', exist_ok=True)
for name in '__init__', 'numpy/__init__':
    with open(f'autograd/{name}.py', 'w') as file:
        file.write('is_real = True')
sys.path.insert(0, '.')
"""


def test_autograd_itself_is_untouched_beside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(tmp_path, AUTOGRAD + """
import cytape.autograd, autograd.numpy
assert autograd.is_real and autograd.numpy.is_real
try:
    cytape.autograd.install_as_autograd()
except RuntimeError as error:
    assert 'imported already' in str(error)
else:
    raise AssertionError
assert autograd is sys.modules['autograd'] and autograd.is_real
""")


def test_the_alias_comes_before_autograd_itself(tmp_path, monkeypatch, room):
    monkeypatch.chdir(tmp_path)
    run(tmp_path, AUTOGRAD + f"""{room}{INSTALL}
import autograd.inner
assert autograd is cytape.autograd
""")


def test_the_import_is_light(tmp_path):
    run(tmp_path, """
import sys, cytape
before = set(sys.modules)
import cytape.autograd
more = set(sys.modules) - before
assert not [m for m in more if m.partition('.')[0] in ('scipy', 'inspect')], more
assert not {'cytape.numpy.linalg', 'cytape.numpy.fft', 'cytape.graph', 'cytape.testing'} & more
assert not {'cytape.scipy', 'cytape.autograd.scipy'} & more
""")
