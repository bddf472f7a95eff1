"""Users' rules bound to the objects that they read at the call, for derivatives taken later."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cytape.autodiff.contents import Contents
from cytape.errors import TapeStateError
from cytape.ops.python.bound_names import Bindings, function_of, names_of, unbound

__all__ = ["BoundRule", "bound", "noting", "restored"]


def bound(what: str, rule: Callable) -> Callable:
    """Return a user's rule bound to a call, for derivatives that are taken later.

    Closures, globals and defaults, and tensors among them, keep their present state (see
    `Bindings`).
    Arrays, containers and objects must not be written to before the rule is called, except by the
    rule itself (see `Contents`).

    Parameters
    ----------
    what : str
        Name of the rule in messages.
    rule : callable

    Returns
    -------
    callable
        Raises `TapeStateError` if something was written to.
    """
    if type(rule) is BoundRule or type(rule) is FunctionType and _names_nothing(rule):
        return rule
    as_now = BoundRule(what, rule)
    return rule if as_now.is_constant() else as_now


def restored(rule: Callable) -> Callable:
    """Return the user's function of a rule, with its state at the call if it is a bound one."""
    return rule.function() if type(rule) is BoundRule else rule


def noting(rules: Iterable, f: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function whose writes count as those of rules, bound ones among them."""
    for rule in rules:
        if type(rule) is BoundRule:
            f = partial(rule.noting, f)
    return f(*args, **kwargs)


def _names_nothing(rule: FunctionType) -> bool:
    code = rule.__code__
    return not (code.co_freevars or code.co_names or rule.__defaults__ or rule.__kwdefaults__
                or CodeType in map(type, code.co_consts))


class BoundRule:
    """See `bound`.

    Attributes
    ----------
    rule : callable
        The user's, through which the random generators that it draws from are found.
    """

    __slots__ = ("_bindings", "_contents", "_n_noting", "_what", "_written", "rule")

    def __init__(self, what: str, rule: Callable) -> None:
        self.rule, self._what, self._n_noting = rule, what, 0
        self._bindings = Bindings(rule, copies=False)
        self._contents = Contents(rule, self._bindings.found)
        function = function_of(rule)  # names of objects that the rule itself writes to
        self._written = names_of(function).written if function else set()

    def is_constant(self) -> bool:
        """Return whether the rule reads only modules."""
        return self._contents.are_empty() and all(
            value is unbound or type(value) is ModuleType
            for _, values in self._bindings.found.values() for value in values)

    def changed(self) -> set[str]:
        """Return the names that have been rebound since."""
        return self._bindings.changed().union(self._contents.changed())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the rule."""
        return self.noting(self.function(), *args, **kwargs)

    def function(self) -> Callable:
        """Return the rule with its state at the call; raise if something was written to."""
        written = () if self._n_noting else {*self._contents.changed()} - self._written
        if written:
            raise TapeStateError(
                f"{self._what} reads {min(written)!r}, which was changed in place since the call, "
                "so the derivative would be that of other numbers. Read a copy made before the "
                "call (x = x.copy()), or pass the array as an argument")
        return self._bindings.function(self._written)

    def noting(self, f: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function whose writes count as the rule's own."""
        before = self.changed()
        self._n_noting += 1
        try:
            return f(*args, **kwargs)
        finally:
            self._n_noting -= 1
            self._written.update(self.changed() - before)
