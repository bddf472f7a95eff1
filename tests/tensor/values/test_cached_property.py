"""Attributes that are computed once: without a lock that a forked process would wait for."""

import os
import threading
import time

import pytest

from cytape.tensor.values.cached_property import cached_property


class Slow:
    """An object with an attribute that waits for an event."""

    def __init__(self, event):
        self.event, self.n_calls = event, 0

    @cached_property
    def value(self):
        """Wait, and return an object."""
        self.n_calls += 1
        self.event.wait(30.0)
        return object()


def entered(slow):
    while slow.n_calls == 0:
        time.sleep(0.001)


def test_a_value_is_computed_once():
    event = threading.Event()
    event.set()
    slow = Slow(event)
    assert slow.value is slow.value and slow.n_calls == 1
    assert isinstance(Slow.value, cached_property)


def test_threads_get_the_same_value():
    event, found = threading.Event(), []
    slow = Slow(event)
    threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered(slow)
    event.set()
    for thread in threads:
        thread.join()
    assert len({id(x) for x in found}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent():
    event = threading.Event()
    slow = Slow(event)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    entered(slow)
    child = os.fork()
    if child == 0:
        ready = threading.Event()
        ready.set()
        os._exit(0 if Slow(ready).value is not None else 1)
    deadline, done = time.monotonic() + 20.0, (0, 0)
    while done[0] == 0 and time.monotonic() < deadline:
        done = os.waitpid(child, os.WNOHANG)
        time.sleep(0.001)
    event.set()
    thread.join()
    if done[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done == (child, 0)
