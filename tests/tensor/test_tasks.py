"""Recorders, graphs and scopes in tasks of asyncio and in contexts of contextvars."""

import asyncio
import contextvars
import gc
import random

import pytest

import cytape
from cytape.tensor.recording.state import building_into, building_under, current_graph
from tests import ways
from tests.cases import each
from tests.threads import in_thread

pytestmark = pytest.mark.usefixtures("nothing_stays_entered")


@pytest.fixture
def x():
    return cytape.constant(3.0)


async def pause():
    await asyncio.sleep(0)


def run(*coroutines):
    async def main():
        return await asyncio.gather(*coroutines)

    return asyncio.run(main())


def test_tasks_have_tapes_of_their_own():
    async def gradient(scale, n):
        x = cytape.constant(scale)
        with ways.watching(x) as tape:
            y = x
            for _ in range(n):
                await pause()
                y = y * x
            recorded = tape._recorder.num_ops
        return float(tape.gradient(y, x)), recorded

    results = run(*[gradient(1.0 + i, 2 + i) for i in range(5)])
    assert results == [((3.0 + i) * (1.0 + i) ** (2 + i), 2 + i) for i in range(5)]


def test_a_task_does_not_record_what_another_does_to_shared_tensors():
    v = cytape.Variable(3.0)

    async def recording():
        with cytape.GradientTape(persistent=True) as tape:
            y = v * v
            await pause()
            await pause()
            z = v * v
        return float(tape.gradient(y, v) + tape.gradient(z, v)), tape._recorder.num_ops

    async def computing():
        kept = []
        for _ in range(6):
            kept.append(v * v)
            await pause()
        return kept

    (gradient, n_ops), _ = run(recording(), computing())
    assert gradient == 12.0
    assert n_ops <= 4  # two products, and reads of the variable


def test_tasks_have_graphs_of_their_own():
    async def build(n):
        graph = cytape.Graph()
        with graph.as_default():
            x = cytape.placeholder("float64", ())
            y = x
            for _ in range(n):
                await pause()
                assert cytape.get_default_graph() is graph
                y = y * 2.0 + cytape.constant(1.0)
        assert current_graph() is None
        return cytape.Session(graph).run(y, {x: 1.0})

    async def compute(n):
        y = cytape.constant(1.0)
        for _ in range(n):
            await pause()
            y = y * 2.0 + cytape.constant(1.0)
        return float(y)

    results = run(build(3), compute(4), build(5), compute(2), build(1))
    assert results == [15.0, 31.0, 63.0, 7.0, 3.0]


def test_tasks_have_scopes_of_their_own_in_a_shared_graph():
    graph = cytape.Graph()

    async def build(name, n):
        names = []
        with graph.name_scope(name), graph.device(f"{name}:1"):
            for i in range(n):
                await pause()
                op = graph.no_op(f"op{i}")
                names.append((op.name, op.device))
        await pause()
        names.append((graph.no_op(f"after_{name}").name, ""))
        return names

    for name, names in zip("abc", run(build("a", 3), build("b", 1), build("c", 4)), strict=True):
        *within, after = names
        assert within == [(f"{name}/op{i}", f"{name}:1") for i in range(len(within))]
        assert after == (f"after_{name}", "")
    assert graph.no_op("root").name == "root"


def test_tasks_may_share_one_block():
    graph = cytape.Graph()
    shared = graph.device("gpu")

    async def build(n):
        devices = []
        for _ in range(n):
            with shared:
                await pause()
                devices.append(graph.no_op().device)
            await pause()
            devices.append(graph.no_op().device)
        return devices

    assert run(build(3), build(4)) == [["gpu", ""] * 3, ["gpu", ""] * 4]


async def multiply(x, times):
    results = []
    for _ in range(times):
        results.append(x * x)
        await pause()
    return results


def test_a_task_started_inside_a_block_is_inside_until_the_block_is_left(x):
    async def main():
        with ways.watching(x, persistent=True) as tape:
            inside, = await asyncio.gather(multiply(x, 3))
            straggler = asyncio.ensure_future(multiply(x, 3))
            await pause()
        outside = await straggler
        gradients = [tape.gradient(y, x) for y in inside + outside]
        with tape:  # again, which is another block
            late, = await asyncio.gather(multiply(x, 1))
        return [g is not None for g in gradients], tape.gradient(late[0], x) is not None

    assert asyncio.run(main()) == ([True] * 4 + [False] * 2, True)


def test_a_straggler_is_not_inside_a_block_that_is_entered_anew(x):
    async def main():
        tape = cytape.GradientTape(persistent=True)
        with tape:
            tape.watch(x)
            straggler = asyncio.ensure_future(multiply(x, 4))
            await pause()
        with tape:
            await straggler
        return [tape.gradient(y, x) is not None for y in straggler.result()]

    assert asyncio.run(main()) == [True, False, False, False]


def test_suspending_in_a_task_is_for_that_task(x):
    async def suspending(tape):
        with tape.stop_recording(), cytape.stop_recording():
            await pause()
            y = x * x
            await pause()
        return y, x * x

    async def recording():
        await pause()
        return [x * x]

    async def main():
        with ways.watching(x, persistent=True) as tape:
            groups = await asyncio.gather(suspending(tape), recording())
            here = x * x
        return [tape.gradient(y, x) is not None for group in groups for y in group], (
            tape.gradient(here, x) is not None)

    assert asyncio.run(main()) == ([False, True, True], True)


def test_accumulators_in_tasks():
    async def derivative(value):
        x = cytape.constant(value)
        with cytape.ForwardAccumulator(x, 1.0) as outer:
            await pause()
            with cytape.ForwardAccumulator(x, 1.0) as inner:
                y = x
                for _ in range(2):
                    y = y * x
                    await pause()
            first = inner.jvp(y)
            await pause()
        return float(first), float(outer.jvp(first))

    assert run(*[derivative(float(i)) for i in range(4)]) == [
        (3.0 * i * i, 6.0 * i) for i in range(4)]


def test_async_generators_that_others_close(x):
    graph = cytape.Graph()

    async def generator():
        with cytape.GradientTape() as tape, graph.as_default(), graph.name_scope("a"):
            tape.watch(x)
            yield tape
            yield tape

    async def main():
        first, second = generator(), generator()
        await first.__anext__()
        await second.__anext__()
        assert current_graph() is graph
        await asyncio.ensure_future(first.aclose())  # in a context of its own
        assert current_graph() is graph
        await asyncio.ensure_future(second.aclose())
        assert current_graph() is None
        assert graph.no_op("b").name == "b"
        assert float(x * 2.0) == 6.0

    asyncio.run(main())


def test_cancelled_tasks_leave_what_they_entered(x):
    async def forever():
        with cytape.GradientTape() as tape, cytape.Graph().as_default():
            tape.watch(x)
            while True:
                await pause()

    async def main():
        tasks = [asyncio.ensure_future(forever()) for _ in range(3)]
        await pause()
        await pause()
        tasks[1].cancel()
        await pause()
        assert (x * x).graph is None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    assert (x * x).graph is None


def test_a_copied_context_in_another_thread_brings_no_recorders(x):
    """As in `asyncio.to_thread`: a tape follows the thread that entered it."""
    async def main():
        with cytape.GradientTape() as tape, cytape.Graph().as_default():
            tape.watch(x)
            return await asyncio.to_thread(lambda: ((x * x).graph, current_graph()))

    assert asyncio.run(main()) == (None, None)


def test_contexts_that_are_run_by_hand(x):
    with ways.watching(x, persistent=True) as tape:
        empty = in_thread(contextvars.copy_context)
        copied = contextvars.copy_context()
        here, there, nowhere = x * x, copied.run(lambda: x * x), empty.run(lambda: x * x)
        again = x * x
        inner = cytape.GradientTape(persistent=True)
        copied.run(inner.__enter__)
        inner.watch(x)
        unseen, seen = x * x, copied.run(lambda: x * x)
        inner.__exit__(None, None, None)
        left = copied.run(lambda: x * x)
    known = tape._recorder.is_known
    assert [known(y.id) for y in (here, there, nowhere, again, unseen, seen)] == [
        True, True, False, True, True, True]
    assert [inner._recorder.is_known(y.id) for y in (unseen, seen, left)] == [False, True, False]


def test_a_context_that_is_run_inside_a_rule():
    """The accumulator that computes a tangent does not follow what it computes, run where it is."""
    x = cytape.constant(2.0)
    seen = []

    @cytape.custom_jvp
    def f(x):
        return x * x

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        product = contextvars.copy_context().run(lambda: 2.0 * x * t)
        seen.append(accumulator._recorder.tangent(product.id)
                    if hasattr(product, "id") and hasattr(accumulator._recorder, "tangent")
                    else None)
        return x * x, product

    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        y = f(x)
        z = x * x
    assert float(accumulator.jvp(y)) == 4.0 == float(accumulator.jvp(z))
    assert seen == [None]


@each("seed", range(30))
def test_random_interleavings_match_a_stack_per_task(seed):
    """Every task enters and leaves at random; what it sees is what it would see alone."""
    rng = random.Random(seed)
    x = cytape.constant(2.0)
    shared = cytape.Graph()
    tapes = []

    async def task(depth):
        entered = []  # (kind, what, block), innermost last
        for _ in range(12):
            choice = rng.random()
            if choice < 0.35:
                kind = rng.choice(["tape", "graph", "scope", "none"])
                if kind == "tape":
                    what = cytape.GradientTape(persistent=True)
                    block = what
                elif kind == "graph":
                    what = rng.choice([shared, cytape.Graph()])
                    block = what.as_default()
                elif kind == "none":
                    what, block = None, building_into(None)
                else:
                    number = shared.context_number(
                        shared.contexts[0]._replace(device=f"d{rng.random()}"))
                    what, block = number, building_under(shared, number)
                block.__enter__()
                if kind == "tape":
                    what.watch(x)
                    tapes.append(what)
                entered.append((kind, what, block))
            elif choice < 0.6 and entered:
                entered.pop(rng.randrange(len(entered)))[2].__exit__(None, None, None)
            else:
                await pause()
            graphs = [what for kind, what, _ in entered if kind in ("graph", "none")]
            assert current_graph() is (graphs[-1] if graphs else None)
            numbers = [what for kind, what, _ in entered if kind == "scope"]
            assert shared.present_context == (numbers[-1] if numbers else 0)
            y = x * x
            for kind, what, _ in entered:
                if kind == "tape":
                    assert what._recorder.is_known(y.id)
            n_tapes = sum(kind == "tape" for kind, _, _ in entered)
            assert sum(tape._recorder.is_known(y.id) for tape in tapes) == n_tapes
        rng.shuffle(entered)
        for _, _, block in entered:
            if rng.random() < 0.5:
                await pause()
            block.__exit__(None, None, None)

    run(*[task(0) for _ in range(4)])


def test_windows_that_slide_for_ever_do_not_grow(x):
    """Each block is left after the next was entered."""
    graph = cytape.Graph()
    number = graph.context_number(graph.contexts[0]._replace(device="cpu"))

    def blocks(i):
        return [cytape.GradientTape(), graph.as_default(), building_under(graph, number),
                cytape.stop_recording()]

    gc.collect()
    sizes = []
    current = blocks(0)
    for block in current:
        block.__enter__()
    for i in range(300):
        following = blocks(i)
        for old, new in zip(current, following, strict=True):
            new.__enter__()
            old.__exit__(None, None, None)
        current = following
        if i % 100 == 99:
            gc.collect()
            sizes.append(sum(type(o).__name__ == "Entry" for o in gc.get_objects()))
    for block in current:
        block.__exit__(None, None, None)
    assert sizes[-1] < sizes[0] + 10
    assert (x * x).graph is None


def test_blocks_nested_very_deeply(x):
    n = 10_000
    blocks = [building_into(None) for _ in range(n)]
    for block in blocks:
        block.__enter__()
    for block in reversed(blocks):
        block.__exit__(None, None, None)
    with building_into(None):
        pass
    assert current_graph() is None
