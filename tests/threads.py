"""Calls in other threads."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier


def in_threads(function, *arguments):
    """Call a function of each argument at once; return the results or raise the first error."""
    barrier = Barrier(len(arguments))

    def run(argument):
        barrier.wait()
        return function(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(run, arguments))


def in_thread(function, *arguments):
    """Call a function in another thread; return its result or raise its error."""
    (result,) = in_threads(lambda call: call(), partial(function, *arguments))
    return result
