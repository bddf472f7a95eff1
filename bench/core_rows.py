"""Rows about the bare tape: the Cython core against the plain-Python one, and against itself."""

import cytape.core
from bench.build_driver import load_driver
from bench.chains import FIRST_OUTPUT, SOURCE, WEIGHT, PythonHost
from bench.report import Row, faster
from bench.timing import Effort, Program, best_seconds
from cytape.core import reference

MAX_SLOWDOWN = 1.5  # of the cost per op, over all sizes


# The timed functions, for any host. A tape that is consumed, or changed, is made anew for each run.

def record(host, n_ops):
    return Program(lambda tape: host.record(tape, n_ops), host.new_tape)


def record_and_delete(host, n_ops):
    return Program(lambda tape: host.record_and_delete(tape, n_ops), host.new_tape)


def record_again(host, n_ops):
    """Touch fresh memory before timing, so that its first touch is not counted."""
    tape = host.new_tape()
    host.record_and_delete(tape, n_ops)
    return Program(lambda _: host.record_and_delete(tape, n_ops))


def delete(host, n_ops):
    return Program(lambda tape: host.delete(tape, n_ops), lambda: recorded(host, n_ops))


def gradient(host, n_ops, source=SOURCE):
    return Program(
        lambda tape: host.gradient(tape, last_id(n_ops), source), lambda: recorded(host, n_ops))


def aggregation(host, n_ops):
    return gradient(host, n_ops, WEIGHT)


def gradient_of_persistent_tape(host, n_ops):
    tape = recorded(host, n_ops, persistent=True)
    return Program(lambda _: host.gradient(tape, last_id(n_ops), SOURCE))


def prepare(host, n_ops):
    tape = recorded(host, n_ops, persistent=True)
    return Program(lambda _: host.prepare(tape, last_id(n_ops), SOURCE))


def recorded(host, n_ops, persistent=False):
    tape = host.new_tape(persistent)
    host.record(tape, n_ops)
    return tape


def last_id(n_ops):
    return FIRST_OUTPUT + n_ops - 1


def check(host, n_ops=100):
    """Fail if a host computes wrong counts; the hosts would not be comparable then."""
    for source, count in (SOURCE, 1), (WEIGHT, n_ops):
        tape = recorded(host, n_ops)
        assert tape.num_ops == n_ops
        assert host.gradient(tape, last_id(n_ops), source) == count
        assert tape.num_ops == 0
    tape = recorded(host, n_ops)
    host.delete(tape, n_ops)
    assert (tape.num_ops, tape.num_known) == (0, 2)
    host.record_and_delete(tape, n_ops)
    assert (tape.num_ops, tape.num_known) == (0, 2)


def core_rows(smoke):
    """Yield all rows about the bare tape."""
    hosts = {
        "C": load_driver().CHost(),
        "Python": PythonHost(cytape.core),
        "reference": PythonHost(reference),
    }
    for host in hosts.values():
        check(host)
    sizes = (100, 1000) if smoke else (1000, 10_000, 100_000, 1_000_000)
    effort = Effort(2, 0.001) if smoke else Effort(7, 0.1)
    # A million ops take plain Python seconds, one run a turn. In C the first run of a turn touches
    # fresh memory, later runs do not.
    effort_at_end = Effort(2, 0.001) if smoke else Effort(2, 0.5)
    efforts = {n_ops: effort_at_end if n_ops == sizes[-1] else effort for n_ops in sizes}
    yield from rows_against_reference(hosts, efforts, sizes[1])
    yield from rows_from_python(hosts, effort, sizes[1])
    yield from rows_of_sizes(hosts["C"], sizes, effort)


def rows_against_reference(hosts, efforts, n_ops):
    """Compare every part at one size, and the two that have a target at all sizes."""
    group = "Cython core driven from C, against the plain-Python tape"

    def compare(program, n):
        programs = [program(hosts["reference"], n), program(hosts["C"], n)]
        return best_seconds(programs, efforts[n])

    for name, program, at_least in (
        ("record + delete_trace", record_and_delete, 15),
        ("gradient: prepare + op stack", gradient, 40),
    ):
        for n in efforts:
            yield faster(group, f"{name}, {n:,} ops", *compare(program, n), at_least=at_least)
    yield faster(group, f"record, {n_ops:,} ops", *compare(record, n_ops))
    yield faster(group, f"delete_trace, {n_ops:,} ops", *compare(delete, n_ops))
    whole = compare(gradient_of_persistent_tape, n_ops)
    prepared = compare(prepare, n_ops)
    yield faster(group, f"gradient of a persistent tape, {n_ops:,} ops", *whole)
    yield faster(group, f"... of which prepare, {n_ops:,} ops", *prepared)
    op_stack = [w - p for w, p in zip(whole, prepared, strict=True)]
    yield faster(group, f"... of which op stack, {n_ops:,} ops", *op_stack)
    yield faster(
        group, f"gradient that sums {n_ops:,} gradients of one tensor",
        *compare(aggregation, n_ops))


def rows_from_python(hosts, effort, n_ops):
    """Compare the two tapes under the same Python code."""
    group = "Cython core driven from Python, against the plain-Python tape"
    for name, program in (
        ("record + delete_trace", record_and_delete),
        ("gradient: prepare + op stack", gradient),
    ):
        programs = [program(hosts[host], n_ops) for host in ("reference", "Python")]
        yield faster(group, f"{name}, {n_ops:,} ops", *best_seconds(programs, effort))


def rows_of_sizes(host, sizes, effort):
    """Compare the cost per op at all sizes: the largest over the smallest."""
    for name, program, at_most in (
        ("record + delete_trace", record_and_delete, MAX_SLOWDOWN),
        ("gradient", gradient, MAX_SLOWDOWN),
        ("record + delete_trace on a tape that was as long before", record_again, None),
    ):
        seconds = best_seconds([program(host, n_ops) for n_ops in sizes], effort)
        costs = [s / n_ops for s, n_ops in zip(seconds, sizes, strict=True)]
        details = {f"s_per_op_at_{n_ops}": cost for n_ops, cost in zip(sizes, costs, strict=True)}
        yield Row(
            f"dearest over cheapest cost per op, {sizes[0]:,} to {sizes[-1]:,} ops, driven from C",
            name, max(costs) / min(costs), at_most=at_most, details=details)
