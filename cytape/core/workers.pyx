import os
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

cdef int threads = 1
cdef object executor = None


cdef int num_threads() noexcept:
    return threads


cdef class Task:
    def __call__(self):
        if self.call == NULL:
            return
        self.started = True
        try:
            self.vspace.backward(self.call)
        except BaseException as error:
            self.error = error
        self.done.put(self)


cdef bint start(VSpace vspace, BackwardCall* call, int hand, done) except -1:
    global executor
    cdef Task task = Task.__new__(Task)
    task.vspace = vspace
    task.call = call
    task.hand = hand
    task.done = done
    try:
        if executor is None:
            executor = ThreadPoolExecutor(max(threads - 1, 1), thread_name_prefix="cytape")
        executor.submit(task)
    except BaseException as error:
        # The task may be in the queue nevertheless, and even have been taken from it.
        if task.started:
            task.error = error
            return True
        task.call = NULL
        if isinstance(error, RuntimeError):
            return False  # the system, or an interpreter about to end, has no more threads
        raise
    return True


def _forget_executor():
    global executor
    executor = None


def set_num_threads(n):
    """Let backward passes use several threads.

    Ops that do not depend on each other are differentiated at the same time if they are built in
    and their arrays are large; small work stays on one thread. The result is the same to the bit,
    but for the sign of zeros. More gradients may be alive at once.

    Parameters
    ----------
    n : int
        Number of threads, the calling one among them; 1, as it is at first, means no others.

    Raises
    ------
    TypeError
        If `n` is no integer.
    ValueError
        If `n` is less than 1.

    Examples
    --------
    >>> import cytape
    >>> cytape.set_num_threads(2)
    >>> cytape.get_num_threads()
    2
    >>> cytape.set_num_threads(1)
    """
    global threads
    if not isinstance(n, Integral):
        raise TypeError(f"a number of threads is an integer, got {n!r}")
    n = int(n)
    if n < 1:
        raise ValueError(f"a backward pass needs at least 1 thread, got {n}")
    if n != threads and executor is not None:
        executor.shutdown(wait=False)  # when they have done what they were given
        _forget_executor()
    threads = n


def get_num_threads() -> int:
    """Return how many threads a backward pass may use.

    Returns
    -------
    int

    Examples
    --------
    >>> import cytape
    >>> cytape.get_num_threads()
    1
    """
    return threads


# A child process has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_executor)
