"""Names of ops and scopes, computed on first use.

Building an op stores no name: only names given by users are stored, and the order in which scopes
were entered. Names are derived from these in the order of building, so they equal names that are
assigned immediately.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cytape.ops.calls.symbolic import SymbolicGraph

ROOT = 0

_VALID = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*(?<!/)")


def checked_name(name: str) -> str:
    """Return a name that a user gave, or raise if it cannot be one.

    Raises
    ------
    ValueError
        If it has other characters than letters, digits and ``_.-/``, begins with one of ``_-/`` or
        ends with ``/``.
    TypeError
        If it is no string.

    Examples
    --------
    >>> checked_name("layer/kernel")
    'layer/kernel'
    """
    if not isinstance(name, str):
        raise TypeError(f"a name is a string, got {name!r}")
    if not _VALID.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid name: names consist of letters, digits and the characters "
            "_.-/, begin with a letter, a digit or a dot, and do not end with /"
        )
    return name


class UniqueNames:
    """Names that have been taken, and the next free ones.

    Examples
    --------
    >>> names = UniqueNames()
    >>> [names.take("Tanh"), names.take("Tanh"), names.take("Tanh_1")]
    ['Tanh', 'Tanh_1', 'Tanh_1_1']
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # a name that is taken -> the suffix to try next
        self._changes: list[tuple[str, int | None]] | None = None  # keys and their values before

    def _set(self, name: str, suffix: int) -> None:
        if self._changes is not None:
            self._changes.append((name, self._next.get(name)))
        self._next[name] = suffix

    def begin(self) -> None:
        """Record changes from now on, for `end` to undo."""
        self._changes = []

    def end(self, succeeded: bool) -> None:
        """Keep the changes since `begin`, or undo them."""
        changes, self._changes = self._changes or [], None
        for name, suffix in () if succeeded else reversed(changes):
            if suffix is None:
                del self._next[name]
            else:
                self._next[name] = suffix

    def mark(self, name: str) -> None:
        """Take a name, even if it is not free."""
        if name not in self._next:
            self._set(name, 1)

    def take(self, name: str) -> str:
        """Return the name, with a suffix if it is taken, and take it."""
        suffix = self._next.get(name)
        if suffix is None:
            self._set(name, 1)
            return name
        while (free := f"{name}_{suffix}") in self._next:
            suffix += 1
        self._set(name, suffix + 1)
        self._set(free, 1)
        return free


class Names:
    """The names of a graph's nodes and scopes.

    Scopes have numbers; 0 is the outermost one, without a name.
    """

    def __init__(self) -> None:
        self.given: dict[int, str] = {}
        self._copied: dict[int, str] = {}
        self._exact: dict[str, int] = {"": ROOT}
        # Per scope: the enclosing scope, the requested name, the node whose name is its prefix (-1:
        # none), and the number of nodes when it was entered.
        self._scopes = [(ROOT, "", -1, 0)]
        self._scope_names = [""]  # with a slash at the end; may be shorter than `_scopes`
        self._names: list[str] = []
        self._nodes: dict[str, int] = {}
        self._unique = UniqueNames()

    def give(self, node: int, name: str) -> None:
        """Set the name of a node that was just built.

        Parameters
        ----------
        node : int
        name : str
            Made unique if there is one like it in the node's scope.

        Raises
        ------
        ValueError
            If the name is not valid, or the node's name has been asked for before.
        """
        self._check_new(node, name)
        self.given[node] = name

    def copy(self, node: int, name: str) -> None:
        """Name a node that was just built like an unnamed one of another op.

        Parameters
        ----------
        node : int
        name : str
            As `give` takes it.
        """
        self._check_new(node, name)
        self._copied[node] = name

    def _check_new(self, node: int, name: str) -> None:
        checked_name(name)
        if node < len(self._names):
            raise ValueError(f"the op is called {self._names[node]!r} already")

    def suggest(self, node: int, name: str) -> None:
        """Set the name of a node that was just built, if it is valid."""
        if _VALID.fullmatch(name):
            self.give(node, name)

    def enter_after(self, node: int, suffix: str, parent: int, at: int) -> int:
        """Return the number of a new scope that is named after a node.

        Parameters
        ----------
        node : int
        suffix : str
        parent : int
        at : int
            How many nodes the graph has.
        """
        self._scopes.append((parent, suffix, node, at))
        return len(self._scopes) - 1

    def enter(self, parent: int, base: str, at: int) -> int:
        """Return the number of a new scope.

        Parameters
        ----------
        parent : int
        base : str
            Made unique. With a slash at the end: exactly that scope, wherever it is entered.
        at : int
            How many nodes the graph has.
        """
        if base.endswith("/"):
            number = self._exact.get(base)
            if number is not None:
                return number
            self._exact[base] = len(self._scopes)
        self._scopes.append((parent, base, -1, at))
        return len(self._scopes) - 1

    def scope_name(self, number: int, graph: SymbolicGraph) -> str:
        """Return the full name of a scope, with a slash at the end."""
        if number >= len(self._scope_names):
            self.settle(graph)
        return self._scope_names[number]

    def name_of(self, node: int, graph: SymbolicGraph) -> str:
        """Return the full name of a node."""
        if node >= len(self._names):
            self.settle(graph)
        return self._names[node]

    def node_named(self, name: str, graph: SymbolicGraph) -> int | None:
        """Return the node of a full name, None if there is none."""
        if len(self._names) < graph.n_nodes:
            self.settle(graph)
        return self._nodes.get(name)

    def scopes(self, graph: SymbolicGraph) -> list[str]:
        """Return the full names of all scopes, by number."""
        self.settle(graph)
        return list(self._scope_names)

    def restore_scopes(self, names: list[str]) -> list[int]:
        """Add scopes; return their numbers.

        Parameters
        ----------
        names : list of str
            Full names, each with a slash at the end, or "".
        """
        for name in names:
            self._unique.mark(name.removesuffix("/"))
        return [self.enter(ROOT, name, 0) if name else ROOT for name in names]

    def restore(self, names: list[str], given: Iterable[int]) -> None:
        """Set the names of nodes.

        Parameters
        ----------
        names : list of str
            Of the first nodes, in full.
        given : iterable of int
            Nodes that were given their names by the user.

        Raises
        ------
        ValueError
            If two are the same.
        """
        self._nodes = {name: node for node, name in enumerate(names)}
        if len(self._nodes) < len(names):
            raise ValueError("two ops have the same name")
        for name in names:
            self._unique.mark(name)
        self._names = list(names)
        self.given = {node: names[node] for node in given}

    def begin(self) -> tuple[int, int, int]:
        """Record changes from now on, for `take_back` to undo; return its argument."""
        self._unique.begin()
        return len(self._names), len(self._scopes), len(self._scope_names)

    def take_back(self, n_nodes: int, counts: tuple[int, int, int]) -> None:
        """Drop the names given since `begin`.

        Parameters
        ----------
        n_nodes : int
            The number of nodes at that time.
        counts : tuple of int
            The result of `begin`.
        """
        n_names, n_scopes, n_scope_names = counts
        self._unique.end(succeeded=False)
        for name in self._names[n_names:]:
            del self._nodes[name]
        del self._names[n_names:], self._scopes[n_scopes:], self._scope_names[n_scope_names:]
        self._exact = {name: number for name, number in self._exact.items() if number < n_scopes}
        for names in self.given, self._copied:
            for node in [node for node in names if node >= n_nodes]:
                del names[node]

    def done(self) -> None:
        """Keep the names given since `begin`."""
        self._unique.end(succeeded=True)

    def reorder(self, graph: SymbolicGraph, first: int, order: Sequence[int]) -> None:
        """Keep the names of nodes when nodes are moved.

        Parameters
        ----------
        graph : SymbolicGraph
            Which has them where they were.
        first : int
        order : sequence of int
            As `NodeStore.reorder` takes it.
        """
        self.settle(graph)
        names = [self._names[node] for node in order]
        given = [first + i for i, node in enumerate(order) if self.given.pop(node, None)]
        self._names[first : first + len(names)] = names
        self._nodes.update(zip(names, range(first, first + len(names)), strict=True))
        self.given.update((node, self._names[node]) for node in given)

    def settle(self, graph: SymbolicGraph) -> None:
        """Name all nodes and scopes without a name, in the order of creation."""
        for node in range(len(self._names), graph.n_nodes):
            self._settle_scopes(node)
            scope = self._scope_names[graph.contexts[graph.context_of(node)].scope]
            wanted = self.given.get(node) or self._copied.get(node) or graph.ops[node].name
            name = self._unique.take(scope + wanted)
            self._names.append(name)
            self._nodes[name] = node
        self._settle_scopes(graph.n_nodes)

    def _settle_scopes(self, at: int) -> None:
        """Name the scopes that were entered when there were at most this many nodes."""
        while len(self._scope_names) < len(self._scopes):
            parent, base, of, entered = self._scopes[len(self._scope_names)]
            if entered > at:
                break
            name = self._names[of] + base if of >= 0 else base
            if not name.endswith("/"):
                name = self._unique.take(self._scope_names[parent] + name) + "/"
                self._exact.setdefault(name, len(self._scope_names))
            self._scope_names.append(name)
