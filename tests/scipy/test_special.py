"""The names of `cytape.scipy.special`, ufuncs of SciPy on tensors, and both without SciPy."""

import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import cytape
from tests.cases import each

special = pytest.importorskip("scipy.special")


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_are_scipys():
    ours = cytape.scipy.special
    assert ours.roots_legendre is special.roots_legendre
    assert ours.gammaln(2.5) == special.gammaln(2.5)
    assert {"gammaln", "logsumexp", "roots_legendre"} <= set(dir(ours))
    with pytest.raises(AttributeError, match="nothing"):
        ours.nothing  # noqa: B018


@each("transform", [cytape.grad, lambda f: cytape.function(cytape.grad(f)),
                    lambda f: lambda x: cytape.jacfwd(f)(x)])
def test_ufuncs_of_scipy_find_their_derivatives(transform):
    slope = transform(lambda x: special.gammaln(x) * special.jv(1, x))
    x = 1.5
    expected = special.psi(x) * special.jv(1, x) + special.gammaln(x) * special.jvp(1, x)
    for _ in range(2):
        np.testing.assert_allclose(slope(x), expected)


def test_methods_of_ufuncs_and_out():
    x, y = cytape.constant([1.0, 2.0]), np.array([0.5, 3.0, 4.0])
    np.testing.assert_array_equal(special.beta.outer(x, y), special.beta.outer(x.numpy(), y))
    out = cytape.constant([0.0, 0.0])
    special.ndtr(x, out=out)
    np.testing.assert_array_equal(out, special.ndtr(x.numpy()))


@each("name, point", [
    ("exp1", (-1.5,)), ("log1p", (-2.0,)), ("logit", (1.5,)), ("xlogy", (2.0, -1.5)),
    ("xlog1py", (2.0, -1.5)), ("boxcox", (-2.0, 2.0)), ("rel_entr", (-1.0, -1.0)),
    ("ellipkinc", (0.3, 1.5)), ("ellipeinc", (0.3, 1.5)), ("betainc", (4.0, -3.0, 0.0)),
    ("gdtr", (-1.0, 0.5, -2.0)), ("gdtrc", (-3.0, 4.0, -1.0)), ("chndtr", (2.0, -5.0, 4.0)),
    ("fdtr", (0.0, -1.0, 3.0)), ("nctdtr", (-1.0, 0.5, 2.0)), ("ncfdtr", (-1.0, 2.0, 0.5, 1.0)),
    ("stdtridf", (1.0, 5.0))])
def test_derivatives_are_undefined_where_the_value_is(name, point):
    f, last = getattr(special, name), len(point) - 1
    places = {"chndtr": (0, 2), "nctdtr": (1, 2), "ncfdtr": (2, 3)}.get(name, range(len(point)))
    with np.errstate(all="ignore"):
        for found in ([cytape.grad(f, argnums=i)(*point) for i in places],
                      cytape.grad(f, argnums=tuple(places))(*point)):
            assert np.all(np.isnan(found)), found
        slope = cytape.grad(f, argnums=last)
        assert np.isnan(cytape.jvp(lambda x: slope(*point[:-1], x), point[-1:], (1.0,))[1])


def test_ops_are_found_by_name_in_another_process():
    run("import pickle, cytape; from cytape.scipy.special import psi; import sys\n"
        "import subprocess\n"
        "code = 'import sys, pickle, cytape; assert \"scipy\" not in sys.modules;'\n"
        "code += f'print(pickle.loads({pickle.dumps(psi)!r}))'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)")


def test_scipy_is_not_imported_before_it_is_used():
    run("import sys, cytape, cytape.numpy as np; cytape.grad(np.sin)(1.0)\n"
        "cytape.elementwise(np.exp, lambda x: np.exp(x))\n"
        "assert 'scipy' not in sys.modules")


def test_the_error_without_scipy_names_the_package():
    run("import sys; sys.modules['scipy'] = None\n"
        "import cytape\n"
        "try: cytape.scipy\n"
        "except ImportError as error: assert 'pip install scipy' in str(error), error\n"
        "else: raise AssertionError")


def test_without_scipy_users_may_declare_ops_of_any_name_and_missing_ones_name_the_package():
    run("import sys; sys.modules['scipy'] = None\n"
        "import cytape\n"
        "from cytape.ops.engine.op_kinds import general, op_of_name\n"
        "op = general('ScipyLinalgOfUser', lambda x: x)\n"
        "assert op_of_name('ScipyLinalgOfUser') is op\n"
        "for name in ('ScipyErf', 'ScipyLinalgExpm'):\n"
        "    try: op_of_name(name)\n"
        "    except LookupError as error: assert 'pip install scipy' in str(error), error\n"
        "    else: raise AssertionError")


def test_every_module_is_an_attribute():
    found = {module.name for module in pkgutil.iter_modules(cytape.scipy.__path__)}
    assert found == set(cytape.scipy.__all__) == set(dir(cytape.scipy))
