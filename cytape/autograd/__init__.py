"""autograd's modules, names and conventions, for programs that were written with autograd."""

import importlib as _importlib
import sys as _sys
from importlib.machinery import ModuleSpec as _ModuleSpec
from typing import Any as _Any

from cytape.autograd import extend as extend
from cytape.autograd.builtins import dict as dict
from cytape.autograd.builtins import isinstance as isinstance
from cytape.autograd.builtins import list as list
from cytape.autograd.builtins import tuple as tuple
from cytape.autograd.builtins import type as type
from cytape.autograd.core import primitive as primitive
from cytape.autograd.differential_operators import *  # noqa: F403
from cytape.autograd.numpy import numpy_vspaces as _numpy_vspaces  # noqa: F401  (registers spaces)
from cytape.tensor.names_elsewhere import no_attribute as _no_attribute
from cytape.tensor.tensor_methods import name_class as _name_class


def __getattr__(name: str) -> _Any:
    """Import the modules that few programs use."""
    if name in ("misc", "scipy", "test_util"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise _no_attribute(__name__, name)


class _Alias:
    """Finder and loader of ``autograd.X``, which is ``cytape.autograd.X`` under another name.

    It finds nothing unless ``sys.modules["autograd"]`` is `cytape.autograd`.
    """

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.startswith("autograd.") and _sys.modules.get("autograd") is _sys.modules[__name__]:
            from importlib.util import find_spec  # here: it takes a tenth of the import's time

            return find_spec(f"cytape.{name}") and _ModuleSpec(name, cls)
        return None

    @staticmethod
    def create_module(spec):
        _name_class("autograd.numpy.numpy_boxes.ArrayBox")  # programs compare it, and its module
        module = _importlib.import_module(f"cytape.{spec.name}")
        spec.loader_state = module.__spec__  # importlib replaces it before `exec_module`
        # Modules that it imported: else a later import of one would bind its name in the parent,
        # where `flatten` of `autograd.misc` is a function.
        for name in [name for name in _sys.modules if name.startswith("cytape.autograd.")]:
            _sys.modules.setdefault(name.removeprefix("cytape."), _sys.modules[name])
        return module

    @staticmethod
    def exec_module(module):
        module.__spec__ = module.__spec__.loader_state


_sys.meta_path.insert(0, _Alias)


def install_as_autograd() -> None:
    """Let ``import autograd`` import `cytape.autograd`, in this process.

    Programs and packages that import autograd then run on cytape unchanged. Call it before the
    first import of autograd.

    Raises
    ------
    RuntimeError
        If autograd itself is imported already.

    Examples
    --------
    >>> from cytape.autograd import install_as_autograd
    >>> install_as_autograd()
    >>> import autograd
    >>> autograd.__name__
    'cytape.autograd'
    """
    if _sys.modules.setdefault("autograd", _sys.modules[__name__]) is not _sys.modules[__name__]:
        raise RuntimeError(
            "autograd itself is imported already, so its modules are in use: call "
            "install_as_autograd() before the first import of autograd")
