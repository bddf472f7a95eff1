"""Memory of dead arrays is used again, never while a view or export of it is alive."""

import gc

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import cytape
import cytape.numpy as cnp
from cytape.ops.declare import general
from cytape.tensor.values.buffer import release_kept
from tests.resident import needs_rollup, resident_bytes
from tests.threads import in_threads
from tests.ways import taped

MEBIBYTE = 1 << 20
SMALLEST = 2049  # elements of float64 that are too many for Python's allocator
ONE = cytape.constant(1.0)


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    release_kept()
    yield
    release_kept()


def filled(size, content=1.0):
    return cnp.broadcast_to(ONE, (size,)) * content


def address(tensor):
    return tensor.numpy().__array_interface__["data"][0]


@pytest.mark.parametrize("size", [SMALLEST, 8192, 100_000, MEBIBYTE])
def test_the_memory_of_a_dead_array_is_used_again(size):
    first = address(filled(size))
    for content in (2.0, 3.0):
        again = filled(size, content)
        assert address(again) == first
        np.testing.assert_array_equal(again.numpy(), np.full(size, content))
        del again


def test_the_last_that_died_is_taken_first():
    a, b = filled(10_000), filled(10_000)
    of_a, of_b = address(a), address(b)
    del a, b
    c = filled(10_000)
    d = filled(10_000)
    assert [address(c), address(d)] == [of_b, of_a]


def test_memory_of_about_the_size_will_do():
    large = address(filled(90_000))
    assert address(filled(80_001)) == large
    other = filled(80_000 * 8 // 9)
    assert address(other) != large
    assert address(filled(90_001)) != large


@pytest.mark.parametrize("size", [SMALLEST, 100_000])
def test_memory_shown_by_an_array_is_not_reused(size):
    array = filled(size, 7.0).numpy()
    part = filled(size, 8.0)[size // 2:]
    for _ in range(2):
        others = [filled(size, 0.0) for _ in range(10)]
        del others
    np.testing.assert_array_equal(array, np.full(size, 7.0))
    np.testing.assert_array_equal(part.numpy(), np.full(size - size // 2, 8.0))


def test_live_arrays_never_share_memory():
    rng = np.random.default_rng(0)
    alive = []
    for step in range(3000):
        if alive and rng.random() < 0.5:
            tensor, content = alive.pop(rng.integers(len(alive)))
            assert (tensor.numpy() == content).all()
        else:
            size = int(rng.choice([SMALLEST, 2100, 2300, 3000, 5000, 40_000]))
            alive.append((filled(size, float(step)), step))
    ranges = sorted((address(t), address(t) + t.numpy().nbytes) for t, _ in alive)
    assert all(end <= begin for (_, end), (begin, _) in zip(ranges, ranges[1:], strict=False))
    assert all((tensor.numpy() == content).all() for tensor, content in alive)


def test_data_begin_at_a_cache_line():
    assert not any(address(filled(size)) % 64 for size in (SMALLEST, 3001, 100_003, MEBIBYTE))


# -- memory kept for later -------------------------------------------------------------------------


def test_release_kept_gives_back_what_dead_arrays_left():
    alive = filled(50_000, 5.0)
    assert release_kept() == 0
    dead = [filled(size) for size in (10_000, 20_000)]
    assert release_kept() == 0
    del dead
    assert release_kept() == 8 * 30_000
    assert release_kept() == 0
    np.testing.assert_array_equal(alive.numpy(), np.full(50_000, 5.0))
    del alive
    assert release_kept() == 8 * 50_000


def test_small_arrays_are_left_to_python():
    filled(SMALLEST - 1)
    assert release_kept() == 0


def test_a_number_of_arrays_is_kept_those_that_died_last():
    alive = [filled(size) for size in range(10_000, 10_100)]
    sizes = [8 * tensor.shape[0] for tensor in alive]
    while alive:
        del alive[0]
    assert release_kept() == sum(sizes[-64:])


def test_a_quarter_of_a_gibibyte_is_kept():
    alive = [filled(n * 5 * MEBIBYTE // 8) for n in (12, 13, 11, 12, 10)]
    while alive:
        del alive[0]
    assert release_kept() == 5 * (13 + 11 + 12 + 10) * MEBIBYTE


def test_an_array_of_more_than_that_is_not():
    filled(257 * MEBIBYTE // 8)
    assert release_kept() == 0


def test_a_gradient_leaves_its_memory_too():
    x = cytape.constant(np.linspace(0, 1, 50_000))
    tape, y = taped(lambda x: cnp.sin(x) * cnp.exp(x), x)
    gradient = tape.gradient(y, x)
    expected = gradient.numpy().copy()
    del tape, y
    others = [filled(50_000, 0.0) for _ in range(10)]
    np.testing.assert_array_equal(gradient.numpy(), expected)
    del others, gradient
    assert release_kept() >= 11 * 50_000 * 8


def test_threads_do_not_get_each_others_memory():
    def work(number):
        rng = np.random.default_rng(number)
        for step in range(200):
            content = float(1000 * number + step)
            tensors = [filled(int(rng.integers(2049, 20_000)), content) for _ in range(3)]
            assert all((tensor.numpy() == content).all() for tensor in tensors)

    in_threads(work, *range(4))


def test_an_impossible_size_is_a_memory_error():
    with pytest.raises(MemoryError, match="array"):
        filled(1 << 58)


def test_memory_of_numpys_functions_is_kept_too():
    x = cytape.constant(np.linspace(0.0, 1.0, MEBIBYTE))
    tape, y = taped(cnp.std, x)
    gradient = tape.gradient(y, x)
    expected = gradient.numpy().copy()
    del y, tape
    release_kept()
    del gradient
    assert release_kept() >= expected.nbytes
    with cytape.GradientTape() as tape:  # in other memory, which was zeros no more
        tape.watch(x)
        y = cnp.std(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)


def _differences(x):
    """Work in zeros and in memory that changes its size, and fail if asked to."""
    result = np.zeros(x.size)
    assert not result.any()
    result[:-1] = x[1:] - x[:-1]
    work = np.full(x.size // 2, 3.0)
    work.resize(x.size, refcheck=False)
    assert work[0] == 3.0
    if x[0] < 0:
        raise ValueError("negative")
    work.resize(10, refcheck=False)
    return result


differences = general("DeclaredDifferencesInKeptMemory", _differences, vjp=lambda op, g: g)


def test_zeros_and_arrays_that_change_their_size_in_kept_memory():
    x = np.arange(MEBIBYTE) ** 2.0
    for _ in range(3):
        filled(MEBIBYTE, 5.0)  # leaves memory that is not zero
        found = differences(cytape.constant(x)).numpy()
        np.testing.assert_array_equal(found, [*np.diff(x), 0.0])


def test_an_error_ends_the_loan():
    before = get_handler_name()
    with pytest.raises(ValueError, match="negative"):
        differences(cytape.constant(-1 - np.arange(1.0 * MEBIBYTE)))
    assert get_handler_name() == before == "default_allocator"


def test_arrays_made_outside_are_numpys():
    differences(cytape.constant(np.ones(MEBIBYTE)))
    assert get_handler_name(np.ones(MEBIBYTE)) == "default_allocator"


@needs_rollup
def test_memory_of_mixed_sizes_goes_back_to_the_system():
    """Freed blocks lie between others in the heap, which glibc keeps unless it is trimmed."""
    rng, gradient = np.random.default_rng(0), cytape.grad(lambda x: cnp.sum((cnp.tanh(x) * x) ** 2))
    gradient(np.ones(1000))
    release_kept()
    before = resident_bytes()
    for _ in range(60):
        gradient(np.ones(int(10 ** rng.uniform(4, 6.5))))
    assert resident_bytes() - before < 480 * MEBIBYTE
    release_kept()
    assert resident_bytes() - before < 48 * MEBIBYTE
