"""The guard on instruction counts, without valgrind."""

import json
from collections import Counter

import numpy as np
import pytest

import cytape.core.tape
from bench import counted, instructions
from bench.counted import CHAINS, EMPTY_LOOP, OPS
from bench.instructions import compare, compiler, demangled, own_instructions, readable
from tests.cases import each

ENVIRONMENT = {"machine": "abacus", "compiler": "none"}
COMMITTED = {"environment": ENVIRONMENT, "counts": {"add": {"forward": 1000, "recording": -10}}}

STAGES = "forward", "record", "gradient", "jvp", "hvp"

DUMP = """\
# callgrind format
version: 1
cmd:  python 1 2
part: 2

desc: Trigger: --dump-before=ctermid

positions: line
events: Ir
summary: 60

ob=/lib/libpython3.so
fl=ceval.c
fn=eval
10 5
fi=ceval.h
11 15
fe=ceval.c
cob=/lib/site-packages/cytape/core/op_store.so
cfi=trace.c
cfn=__pyx_f_6cytape_4core_8op_store_new_slot
calls=3 77
10 30
12 10

ob=/lib/site-packages/cytape/core/op_store.so
fl=trace.c
fn=__pyx_f_6cytape_4core_8op_store_new_slot
77 30
"""


def test_own_instructions_are_read_without_those_of_calls():
    assert own_instructions(DUMP) == {
        ("/lib/libpython3.so", "eval"): 30,
        ("/lib/site-packages/cytape/core/op_store.so",
         "__pyx_f_6cytape_4core_8op_store_new_slot"): 30,
    }


def test_a_misread_dump_is_an_error():
    with pytest.raises(ValueError, match="counted 61 instructions, but 60 were read"):
        own_instructions(DUMP.replace("summary: 60", "summary: 61"))


@each(("function", "name"), [
    ("__pyx_f_6cytape_4core_8op_store_new_slot", "core.op_store.new_slot"),
    ("__pyx_f_6cytape_4core_8op_store_7OpStore_drop_use", "core.op_store.OpStore.drop_use"),
    ("__pyx_pw_6cytape_6tensor_6tensor_6Tensor_57__mul__", "tensor.tensor.Tensor.__mul__"),
    ("__pyx_pw_6cytape_6tensor_6tensor_6Tensor_5__add__", "tensor.tensor.Tensor.__add__"),
    ("__pyx_tp_dealloc_6cytape_6tensor_5value_Value", "tensor.value.Value"),
    ("cytape_sin", "cytape_sin")])
def test_names_of_cython_become_those_of_the_source(function, name):
    assert demangled(function) == name


@each(("objects", "function", "name"), [
    (
        "/x/cytape/core/op_store.so", "__pyx_f_6cytape_4core_8op_store_new_slot.isra.0",
        "`core.op_store.new_slot`"),
    ("/x/site-packages/numpy.libs/libscipy_openblas64_.so", "dgemm", "BLAS"),
    ("/x/site-packages/numpy/_core/_multiarray_umath.so", "DOUBLE_add", "NumPy"),
    ("/x/bin/python3.11", "eval", "Python"), ("/x/libpython3.11.so.1.0", "eval", "Python"),
    ("/x/lib/libc.so.6", "memcpy", "the C library")])
def test_functions_of_others_are_called_by_their_library(objects, function, name):
    assert readable(objects, function) == name


OTHER_COMPILER = "compiler is 'some', the committed counts are of 'none': 25% more are allowed"


@each(("forward", "recording", "environment", "errors", "notes"), [
    (1120, 11, {}, [], []),
    (1121, -10, {}, ["forward: 1121 instructions, committed are 1000: more than 10% + 20 above"],
     []),
    (1000, 12, {}, ["recording: 12 instructions, committed are -10: more than 10% + 20 above"], []),
    (1121, -10, {"compiler": "some"}, [], [OTHER_COMPILER]),
    (1271, -10, {"compiler": "some"},
     ["forward: 1271 instructions, committed are 1000: more than 25% + 20 above"],
     [OTHER_COMPILER]),
    (9999, -10, {"machine": "slide rule"}, [],
     ["counted on slide rule, committed are counts of abacus: they say nothing about each other"]),
    (880, -10, {}, [], []),
    (879, -10, {}, [], ["add, forward: 879 instructions, committed are 1000: better; "
                        "python -m bench.instructions --write"]),
])
def test_compare(forward, recording, environment, errors, notes):
    counts = {"add": {"forward": forward, "recording": recording}}
    errors = [f"add, {error}" for error in errors]
    assert compare(counts, ENVIRONMENT | environment, COMMITTED) == (errors, notes)


def test_counted_rows_and_committed_rows_are_the_same():
    errors, _ = compare({"sum": {"forward": 1}}, ENVIRONMENT, COMMITTED)
    assert errors == [
        "add, forward: is only committed; python -m bench.instructions --write",
        "add, recording: is only committed; python -m bench.instructions --write",
        "sum, forward: is only counted; python -m bench.instructions --write",
    ]


@pytest.fixture
def profiles():
    """Return counts as of callgrind: a step takes 1 instruction, 2 while recording, 3 backward,

    4 in forward mode and 9 forward over reverse.
    """
    here, memory = ("/x/cytape/ops/x.so", "__pyx_f_6cytape_3ops_1x_f"), ("libc.so.6", "_int_malloc")
    profiles = {}
    for n in 0, counted.LENGTH:
        for chain in CHAINS:
            for stage, price in (("forward", 1), ("record", 3), ("gradient", 3), ("jvp", 4),
                                 ("hvp", 9)):
                profiles[chain.name, stage, n] = Counter({here: 7 + price * n, memory: n})
    for name in counted.WHOLE:
        for n in 0, counted.CALLS:
            profiles[name, "call", n] = Counter({here: 7 + 40 * n})
    return profiles


def test_counts_are_differences_per_step(profiles):
    counts = instructions.tabulate(profiles)
    assert counts.pop("an empty loop") == {"forward": 1}
    for name in counted.WHOLE:
        assert counts.pop(name) == {"all": 40}
    assert list(counts) == [chain.name for chain in CHAINS if chain is not EMPTY_LOOP]
    assert all(stages == {"forward": 1, "recording": 2, "backward": 3, "jvp": 4, "hvp": 9}
               for stages in counts.values())


def run_main(monkeypatch, tmp_path, profiles, *arguments):
    monkeypatch.setattr(instructions, "count", lambda folder: (profiles, ["X86_V3"]))
    monkeypatch.setattr(instructions, "COMMITTED", tmp_path / "counts.json")
    monkeypatch.setattr(instructions, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(instructions, "valgrind_version", lambda: "valgrind-0")
    monkeypatch.setattr("sys.argv", ["instructions", *arguments])
    instructions.main()


def test_written_counts_pass_the_check(monkeypatch, tmp_path, profiles, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{instructions.BEGIN}\nold\n{instructions.END}\nafter\n")
    run_main(monkeypatch, tmp_path, profiles, "--write")
    text = page.read_text()
    assert text.startswith("before") and text.endswith("after\n") and "old" not in text
    assert "| multiply, 8 | `y * x` | 1 | 2 | 3 | 6 | 4 | 9 |" in text
    assert "| `ops.x.f` | 1 | 2 | 3 |" in text
    assert json.loads((tmp_path / "counts.json").read_text())["counts"]["add, 8"]["recording"] == 2

    run_main(monkeypatch, tmp_path, profiles, "--check")
    assert capsys.readouterr().out.endswith("no stage takes more instructions than are committed\n")
    for key in profiles["sin, 8", "gradient", counted.LENGTH]:
        profiles["sin, 8", "gradient", counted.LENGTH][key] += 100 * counted.LENGTH
    with pytest.raises(SystemExit, match="more instructions than are committed"):
        run_main(monkeypatch, tmp_path, profiles, "--check")
    assert "sin, 8, backward: 103 instructions, committed are 3:" in capsys.readouterr().out


def test_without_valgrind_the_user_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["instructions"])
    with pytest.raises(SystemExit, match="apt-get install valgrind"):
        instructions.main()


def test_a_page_without_marks_is_left_alone():
    with pytest.raises(ValueError, match="are to stand in the page"):
        instructions.rewritten("page", "text")


def test_committed_counts_are_those_of_the_chains_and_stand_in_the_page():
    committed = json.loads(instructions.COMMITTED.read_text())
    assert list(committed["counts"]) == [*(chain.name for chain in CHAINS), *counted.WHOLE]
    page = instructions.PAGE.read_text()
    assert instructions.table("op, elements", OPS, committed["counts"]) in page


def test_compiler_is_found_in_what_it_made():
    assert compiler(b"\0GCC: (Distribution 12-3) 12.2.0\0") == "GCC: (Distribution 12-3) 12.2.0"
    assert compiler(b"\0") == "unknown"
    with open(cytape.core.tape.__file__, "rb") as module:
        assert isinstance(compiler(module.read()), str)


@each("chain", CHAINS, ids=lambda chain: chain.name)
def test_chains_give_numbers_and_gradients(chain):
    x, run = chain.compiled()
    stages = []
    counted.run_stages(x, run, 5, stages.append)
    assert stages == [None, *STAGES]
    assert run(x, 4).shape == x.shape
    assert np.isfinite(run(x, counted.LENGTH).numpy()).all()


def test_parts_are_told_in_the_order_of_marks(monkeypatch, capsys):
    marks = []
    monkeypatch.setattr("os.ctermid", lambda: marks.append(None), raising=False)
    counted.main(["add, 0-d"])
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert len(parts) == len(marks)
    length = counted.LENGTH
    assert parts[:12] == [["add, 0-d", stage, n] for n in (0, length) for stage in (None, *STAGES)]
    assert parts[12:] == [[name, stage, n] for name in counted.WHOLE for n in (0, counted.CALLS)
                          for stage in (None, "call")]
