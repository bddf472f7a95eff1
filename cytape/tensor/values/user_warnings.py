"""Warnings that name the line of the user's program that caused them."""

import ast
import linecache
import os
import sys
import threading
import warnings
from collections.abc import Callable
from opcode import opname
from types import FrameType
from typing import Any

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
NUMPY = os.path.dirname(np.__file__) + os.sep  # its functions call those of this package
# Names of the single instances of some classes.
ONLY_OBJECTS = {"CClass": "c_", "RClass": "r_", "MGridClass": "mgrid", "OGridClass": "ogrid"}


_shown: dict[str, dict] = {}  # by file: the warnings shown, by line
_catching = threading.Lock()  # `catch_warnings` sets and restores what all threads share


def _scipy() -> str:
    """Return the folder of SciPy if it has been imported, else a name that matches no file."""
    module = sys.modules.get("scipy")
    return "\0" if module is None else os.path.dirname(module.__file__ or "") + os.sep


def _is_installed(frame: FrameType) -> bool:
    """Return whether a frame belongs to an installed package, such as pandas."""
    return frame.f_code.co_filename.replace(os.sep, "/").rpartition("-packages/")[1] != ""


def cell_of(file: str) -> str:
    """Return the name of a notebook's cell, such as In[5], by its file's; "" for other files."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return name[1] if name else ""


def _place(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    return f"in {cell_of(file) or file}, line {frame.f_lineno}"


def user_line() -> str:
    """Return the line of the user's program that called this package, as text.

    If another installed package made the call, its line follows in brackets.
    """
    frame: FrameType | None = sys._getframe(1)
    libraries = PACKAGE, NUMPY, _scipy()
    while frame is not None and frame.f_code.co_filename.startswith(libraries):
        frame = frame.f_back
    if frame is None:
        return ""
    line = _place(frame)
    user = frame
    while user.f_back is not None and _is_installed(user):
        user = user.f_back
    if user is frame or _is_installed(user):
        return line
    return f"{_place(user)} ({line})"


def library_call() -> str:
    """Return the name of the installed package that the user's program called; "" for none."""
    frame: FrameType | None = sys._getframe(1)
    found = ""
    while frame is not None and (
            frame.f_code.co_filename.startswith((PACKAGE, NUMPY)) or _is_installed(frame)):
        if not frame.f_code.co_filename.startswith((PACKAGE, NUMPY)):
            found = frame.f_globals.get("__name__", "").partition(".")[0]
        frame = frame.f_back
    return found


def is_asked_by_user() -> bool:
    """Return whether the user's program made the call, not a Python function of NumPy or cytape."""
    return not sys._getframe(1).f_code.co_filename.startswith((PACKAGE, NUMPY))


def user_step() -> str:
    """Return the name of the bytecode instruction that the calling Python function executes."""
    frame = sys._getframe(1)
    return opname[frame.f_code.co_code[frame.f_lasti]]


def user_call() -> str:
    """Return the name of the function that the calling Python function calls; "" if unknown."""
    frame = sys._getframe(1)
    first, last, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    lines = linecache.getlines(frame.f_code.co_filename)[(first or 1) - 1 : last]
    if not lines or start is None or end is None:
        return ""
    lines[-1] = lines[-1].encode()[:end].decode()  # bytes are counted
    lines[0] = lines[0].encode()[start:].decode()
    try:
        call = ast.parse("".join(lines), mode="eval").body
    except SyntaxError:
        return ""
    return ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""


def numpy_call() -> str | None:
    """Return the name of NumPy's Python function that the user's program called, if any."""
    frame: FrameType | None = sys._getframe(1)
    called = None
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, NUMPY)):
        if frame.f_code.co_filename.startswith(NUMPY):
            called = frame
        frame = frame.f_back
    return None if called is None else _as_written(called)


def scipy_call() -> str | None:
    """Return the name of SciPy's function that the user's program called, if any.

    A constructor, and operators and methods of a sparse matrix, are named by their class; methods
    of an object that the module exports, such as `scipy.stats.norm`, by the object, and those of a
    distribution with fixed parameters, by the distribution.
    """
    frame: FrameType | None = sys._getframe(1)
    scipy, called, decorated = _scipy(), None, None
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, NUMPY, scipy)):
        module = frame.f_globals.get("__name__", "")
        if module.startswith("scipy._lib."):  # decorators convert arguments before the call
            decorated = frame.f_locals.get("f", decorated)
        elif module.startswith("scipy."):
            called = frame
        frame = frame.f_back
    if called is None:
        return None if decorated is None else (
            f"{decorated.__module__.partition('._')[0]}.{decorated.__name__}")
    public = called.f_globals["__name__"].partition("._")[0]
    if called.f_code.co_name == "__ua_function__":  # calls of scipy.fft go through a backend
        return f"{public}.{called.f_locals['method'].__name__}"
    names, owner = [called.f_code.co_name], called.f_locals.get("self")
    for inner in ("func", "fun", "hypotest_fun_in"):  # of decorators that call the function later
        if names[0].endswith("wrapper") and inner in called.f_locals:
            names = [called.f_locals[inner].__name__]
    if owner is not None:
        hidden = public == "scipy.sparse" or names[0] in ("__call__", "__init__")
        module = vars(sys.modules[public]).items()
        name = next((name for name, x in module if x is owner), None) or (
            owner.dist.name if hasattr(owner, "dist") else type(owner).__name__)
        names = [name, *names[hidden:]]
    return ".".join([public, *names])


def _as_written(called: FrameType) -> str:
    """Return the public name, after "numpy.", of a function or of the object of a method."""
    name, _, method = called.f_code.co_qualname.partition(".")
    owner = called.f_locals.get("self", called.f_locals.get("cls"))
    if method and owner is not None:  # the method may be inherited
        name = (owner if isinstance(owner, type) else type(owner)).__name__
    module = called.f_globals["__name__"].removeprefix("numpy.")
    if module.startswith("testing."):
        name = f"testing.{name}"
    if module.startswith("polynomial."):
        name = f"{module.replace('._polybase', '')}.{name}"
    return ONLY_OBJECTS.get(name, name)


def warn_of_line(file: str, line: int, message: str, category: type[Warning]) -> None:
    """Issue a warning about a line that ran before, which Python shows once for each line."""
    warnings.warn_explicit(
        message, category, file, line, registry=_shown.setdefault(file, {}))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning, which Python shows once for each line that calls into this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, NUMPY)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warning_user(function: Callable, *args: Any, **options: Any) -> Any:
    """Call a function of NumPy's that warns of its argument, and issue its warnings by `warn`."""
    caught: dict[tuple, None] = {}
    thread = threading.get_ident()
    with _catching, warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Any, category: Any, *place: Any) -> None:
            if threading.get_ident() == thread:
                caught[str(message), category] = None
            else:  # which shares the hook
                show(message, category, *place)

        warnings.showwarning = note  # type: ignore[assignment]
        warnings.simplefilter("always")
        result = function(*args, **options)
    for found in caught:
        warn(*found)
    return result
