"""Some mutated files of graphs (`make mutated-files` has many), and that a crash is noticed."""

import os
import signal

import cytape
from cytape.ops.engine.op_kinds import OPS
from tests.cases import each
from tests.graph.model import mutated_files

SEED = 20_000  # any other does as well


def test_mutated_files_are_graphs_or_raise():
    assert mutated_files.check_all(range(SEED, SEED + 150)) == []


def test_a_process_that_dies_or_finds_a_fault_is_noticed(monkeypatch):
    def check(seed, path):
        if seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return "a fault" if seed == 3 else None

    monkeypatch.setattr(mutated_files, "check", check)
    assert mutated_files.check_all(range(5)) == [1, 3]


@each(n_inputs=[0, 1, 2, 3, 65], name=list(OPS))
def test_an_op_of_any_number_of_inputs_is_built_or_raises(name, n_inputs):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (2, 2))
        for attrs in {}, {"axis": 0}, {"axis": 0, "dtype": None, "casting": "same_kind"}:
            try:
                graph.build(OPS[name], *[x] * n_inputs, **attrs)
            except SystemError:
                raise
            except Exception:
                continue
