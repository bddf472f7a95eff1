"""The shape of the source tree: floors, C headers, test files, nothing generated in git."""

import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import cytape
from cytape.ops.engine.op_kinds import find, own_names
from tests.cases import each

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "cytape"
SOURCES = sorted(p for p in PACKAGE.rglob("*") if p.suffix in {".py", ".pyi", ".pyx", ".pxd"})
FLOORS = {"errors": -1, "core": 0, "tensor": 1, "ops": 2, "graph": 3,
          "autodiff": 4, "numpy": 4, "nn": 4, "optimizers": 5, "profiling": 5,
          "testing": 5, "scipy": 5, "autograd": 6, "__init__": 7}
# Rooms whose modules have the names that another library gave them; tested by topic.
NAMED_ELSEWHERE = {"scipy", "autograd"}
# Rooms within a room, from the lowest up; "" is what lies in the folder itself.
ROOMS_WITHIN = {
    "tensor": ["pictures", "values", "recording", ""],
    "ops": ["kernels", "special_kernels", "shapes", "calls", "engine", "adjoints", "python", "",
            "neural", "special", "updates", "calculus", "choosing", "statistics", "submodules",
            "probabilities", "sampling", "images", "signals", "scipy_linalg", "sparse_matrices"],
    "autodiff": ["", "custom"],
    "graph": ["model", "passes", "run", "sessions", "tracing", "nested", "control",
              "differentiation", "batching", "editor", "checkpoint", ""],
}
# Modules that gather the public names of their room and of the rooms within it.
GATHERING = {PACKAGE / room / "__init__.py" for room in ("autodiff", "ops")}
NO_TEST_FILE = {Path("errors.py"), Path("numpy/families.py")}  # declarations only

STRING = re.compile(r'("""|\'\'\')(?:.|\n)*?\1')
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\S+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)"
    r"|c?import[ \t]+([^\n#]+))", re.M,
)


def imports(text, package):
    """Yield the dotted name of everything that a module of `package` with this text imports."""
    for base, names, plain in IMPORT.findall(STRING.sub("", text)):
        if base.startswith("."):
            up = len(base) - len(base.lstrip("."))
            base = ".".join([*package.split(".")[: package.count(".") + 2 - up], base.lstrip(".")])
        prefix = base.rstrip(".") + "." if base else ""
        for name in (names or plain).strip("()").split(","):
            if name.strip():
                yield prefix + name.split()[0]


def imports_of(path):
    return set(imports(path.read_text(), ".".join(path.relative_to(ROOT).parts[:-1])))


def room(dotted):
    """Return the room of the package that a dotted name below `cytape` lies in."""
    name = [*dotted.split("."), "__init__"][1]
    return name if name in FLOORS else "__init__"


@each("text, names", [
    ("import cytape.ops.loops as l, os", {"cytape.ops.loops", "os"}),
    ("from cytape cimport (\n    core,\n    ops as o,\n)", {"cytape.core", "cytape.ops"}),
    ("    from cytape import ops  # late", {"cytape.ops"}),
    ("from ..ops import dispatch", {"cytape.ops.dispatch"}),
    ("from . import spec", {"cytape.tensor.spec"}),
    ('"""\nimport cytape.ops\n"""', set()),
])
def test_imports_are_read(text, names):
    assert set(imports(text, "cytape.tensor")) == names


@each("path", SOURCES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_a_file_imports_only_from_its_room_and_the_floors_below(path):
    home = path.relative_to(PACKAGE).with_suffix("").parts[0]
    assert home in FLOORS, f"{home} has no floor"
    ours = {name for name in imports_of(path) if name.split(".")[0] == "cytape"}
    assert not [n for n in ours if room(n) != home and FLOORS[room(n)] >= FLOORS[home]]


def floor_within(dotted, home):
    """Return how high a module stands in a room that has rooms of its own."""
    rooms, name = ROOMS_WITHIN[home], dotted.split(".")[2]
    return rooms.index(name if name in rooms else "")


@each("path", [p for p in SOURCES if p.relative_to(PACKAGE).parts[0] in ROOMS_WITHIN
               and p.suffix != ".pyi" and p not in GATHERING],  # a stub names types of all rooms
      ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_a_file_imports_only_from_its_inner_room_and_those_below(path):
    home, inner = path.relative_to(PACKAGE).parts[:2]
    siblings = {name for name in imports_of(path) if re.match(rf"cytape\.{home}\.\w+", name)}
    floor = floor_within(f"cytape.{home}.{inner}", home)
    assert not [name for name in siblings if floor_within(name, home) > floor]


@each("home", ROOMS_WITHIN)
def test_every_inner_room_has_a_place(home):
    inner = {p.name for p in (PACKAGE / home).iterdir() if (p / "__init__.py").exists()}
    assert inner | {""} == set(ROOMS_WITHIN[home])


def test_the_sources_are_there():
    """So the tests around this one look at something."""
    assert {room(f"cytape.{p.relative_to(PACKAGE).parts[0]}") for p in SOURCES} >= {
        "core", "tensor", "ops", "autodiff", "graph", "numpy"}
    assert {p.suffix for p in SOURCES} == {".py", ".pyi", ".pyx", ".pxd"}


def test_the_core_does_not_know_numpy():
    for path in SOURCES:
        if PACKAGE / "core" in path.parents:
            assert not {name for name in imports_of(path) if name.split(".")[0] == "numpy"}, path


def repeated_names(modules):
    """List the names that several modules of different rooms have."""
    counts = Counter(module.name for module in modules)
    return sorted(name for name in counts if counts[name] > 1 and name != "__init__")


def crowded_rooms(modules, most=20):
    """List the rooms with more modules than one can hold in one's head."""
    counts = Counter(module.parent for module in modules)
    return sorted(room.as_posix() for room in counts if counts[room] > most)


def test_rooms_are_small_and_names_of_modules_are_unique():
    modules = {path.relative_to(PACKAGE).with_suffix("") for path in SOURCES}
    named_here = {module for module in modules if module.parts[0] not in NAMED_ELSEWHERE}
    assert not repeated_names(named_here)
    assert not crowded_rooms(modules)
    assert repeated_names(named_here | {Path("core/tensor")}) == ["tensor"]
    assert crowded_rooms(modules | {Path(f"core/more{i}") for i in range(20)}) == ["core"]


def long_files(texts, most=500):
    """List the files with more lines than a reader keeps in mind, given as a dict of texts."""
    return sorted(name for name, text in texts.items() if text.count("\n") > most)


def test_files_are_short():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text()
             for path in (*SOURCES, *(ROOT / "tests").rglob("*.py"))}
    assert not long_files(texts)
    assert long_files({**texts, "tests/long.py": 501 * "\n", "tests/short.py": 500 * "\n"}) == [
        "tests/long.py"]


def module_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def arrows_of(texts):
    """Map each module to the modules that it imports; `texts` are pairs of a path and its text."""
    modules = {module_of(path) for path, _ in texts}
    arrows = {module: set() for module in modules}
    for path, text in texts:
        for name in imports(text, ".".join(path.relative_to(ROOT).parts[:-1])):
            name = name if name in modules else name.rpartition(".")[0]
            arrows[module_of(path)] |= {name} & modules - {module_of(path)}
    return arrows


def in_circles(arrows):
    """List the modules on circles of imports, and on paths between circles."""
    found = set(arrows)
    while True:
        inner = {m for m in found if arrows[m] & found and any(m in arrows[n] for n in found)}
        if inner == found:
            return sorted(found)
        found = inner


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports inside functions count: they would hide the circle until the function is called."""
    texts = [(path, path.read_text()) for path in SOURCES if path.suffix != ".pyi"]
    assert not in_circles(arrows_of(texts))
    planted = [(PACKAGE / "core/one.py", "def f():\n    from .two import x"),
               (PACKAGE / "core/two.pxd", "from cytape.core cimport three"),
               (PACKAGE / "core/three.pyx", "import cytape.core.one as one"),
               (PACKAGE / "core/four.py", "from cytape.core.one import f")]
    assert in_circles(arrows_of([*texts, *planted])) == [
        "cytape.core.one", "cytape.core.three", "cytape.core.two"]


def words(text):
    """List the words that are strings of a module, but for those that it binds, as in `__all__`."""
    code = re.sub("#.*", "", STRING.sub("", text))
    bound = re.findall(
        r"^(?:cdef )?class (\w+)|^def (\w+)|^(\w+)[^=(]* = |^from .* import (.*)", code, re.M)
    return set(re.findall(r'"(\w+)"', code)) - set(re.findall(r"\w+", str(bound)))


def names_in_several_modules(modules, names):
    """List which of some names more than one module writes, given by their texts.

    Names that no module writes as a string are looked for in format strings, as f"FirstOf{name}".
    """
    found = [words(text) & names for text in modules]
    formatted = names.difference(*found)
    for text, own in zip(modules, found, strict=True):
        for start, end in re.findall(r'f"([A-Z]\w*)\{[^"{}]*\}(\w*)"', text):
            own |= {name for name in formatted if name.startswith(start) and name.endswith(end)}
    counts = Counter(name for own in found for name in own)
    return sorted(name for name in counts if counts[name] > 1)


def test_names_of_ops_are_written_where_the_ops_are_declared():
    """Facts about ops stand in their declarations, not in tables of names elsewhere."""
    for name in cytape.__all__:  # imports the modules that declare ops
        getattr(cytape, name)
    find("")
    modules = [path.read_text() for path in SOURCES if path.suffix in {".py", ".pyx"}]
    assert not names_in_several_modules(modules, own_names)
    for text, expected in [
            ('if op.name == "Tanh":', ["Tanh"]),
            ('cheap = [f"FirstOf{name}" for name in names]', [
                "FirstOfFmax", "FirstOfFmin", "FirstOfMaximum", "FirstOfMinimum"])]:
        assert names_in_several_modules([*modules, text], own_names) == expected


def test_every_pyx_has_a_pxd():
    assert not [p for p in SOURCES if p.suffix == ".pyx" and not p.with_suffix(".pxd").exists()]


def test_every_module_has_a_test_file():
    modules = {
        p.relative_to(PACKAGE) for p in SOURCES if p.suffix != ".pxd" and p.stem != "__init__"
    } - NO_TEST_FILE
    missing = {
        m for m in modules if m.parts[0] not in NAMED_ELSEWHERE
        and not (ROOT / "tests" / m.parent / f"test_{m.stem}.py").exists()
    }
    assert not missing


def test_nothing_generated_is_tracked():
    listed = subprocess.run(["git", "ls-files", "*.c", "*.cpp", "*.so", "*.pyd", "*.pyc"], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert not listed.stdout


def test_dir_lists_what_most_programs_need():
    listed = {name for name in dir(cytape) if not name.startswith("_")}
    assert listed == {*cytape.__all__, "scipy"}  # which a star import leaves out: it needs SciPy
    assert len(listed) <= 42
    assert all(name in cytape.__doc__ for name in listed)


def test_all_names_can_be_imported_without_scipy_and_private_ones_import_nothing():
    script = (
        "import sys; sys.modules['scipy'] = None\n"
        "import cytape\n"
        "assert not hasattr(cytape, '__wrapped__') and 'cytape.graph' not in sys.modules\n"
        "from cytape import *\n"
        "assert grad(lambda x: x * x)(3.0) == 6.0\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@each("module", ["autodiff", "graph", "ops", "tensor"])
def test_public_names_of_modules_are_found_at_the_top_too(module):
    module = importlib.import_module(f"cytape.{module}")
    assert dir(module) == sorted(dir(module)) == sorted(module.__all__)
    for name in {*module.__all__} - {"checkpoint", "hessian_vector_product"}:
        assert getattr(cytape, name) is getattr(module, name)
    assert cytape.checkpoint is cytape.autodiff.checkpoint  # not the module of graphs
    assert cytape.hessian_vector_product is cytape.autodiff.hessian_vector_product
    with pytest.raises(AttributeError, match="no attribute 'gardient'"):
        cytape.gardient  # noqa: B018


def test_the_version_is_that_of_the_metadata_read_when_it_is_asked_for():
    script = (
        "import sys, numpy; numpys = {*sys.modules}; import cytape\n"
        "assert 'importlib.metadata' not in {*sys.modules} - numpys\n"
        "assert '__version__' in dir(cytape) and '__version__' not in vars(cytape)\n"
        "import importlib.metadata\n"
        "assert cytape.__version__ == importlib.metadata.version('cytape')\n"
        "assert '__version__' in vars(cytape)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_sources_that_are_not_compiled_say_what_to_run(tmp_path):
    for path in ("__init__.py", "core/__init__.py"):
        (tmp_path / "cytape" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "cytape" / path).write_bytes((PACKAGE / path).read_bytes())
    run = subprocess.run(
        [sys.executable, "-c", "import cytape"], cwd=tmp_path, capture_output=True, text=True)
    assert re.search("ImportError: .* `make build` .* or `pip install .`", run.stderr)


def test_rarely_used_modules_are_imported_at_first_use():
    script = (
        "import sys, numpy; numpys = {*sys.modules}; import cytape\n"
        "late = {'cytape.graph', 'cytape.testing', 'numpy.random', 'dataclasses', 'inspect',"
        " 'cytape.ops.submodules', 'numpy.fft'}\n"
        "unused = {'bisect', 'string', 'cytape.autodiff.jets'}\n"
        "assert not (late | unused) & ({*sys.modules} - numpys), {*sys.modules} - numpys\n"
        "cytape.numpy.random.random(); assert 'numpy.random' in sys.modules\n"
        "cytape.numpy.linalg; assert 'numpy.fft' not in sys.modules; cytape.numpy.fft\n"
        "cytape.testing; cytape.function; assert late <= {*sys.modules}\n"
        "[getattr(cytape, name) for name in cytape.__all__]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
