"""Static arguments of ops as JSON, and back: a closed vocabulary, so that reading runs no code.

None, booleans, integers, finite floats and strings are JSON values. Everything else is an object
with one key, which names the type:

- ``{"float": "nan"}`` (or ``"inf"``, ``"-inf"``), ``{"complex": [real, imaginary]}``
- ``{"tuple": [...]}``, also for named tuples; ``{"dict": [[key, value], ...]}``
- ``{"slice": [start, stop, step]}``, ``{"ellipsis": true}``
- ``{"dtype": "<f8"}``, ``{"scalar type": "numpy.float64"}`` (or ``"builtins.float"``)
- ``{"array": 3}``, ``{"scalar": 3}``, ``{"tensor": 3}``: the array of that number
- ``{"variable": 3}``, ``{"function": 3}``: the variable, or the body, of that number
- ``{"stream": [1, 2]}``: random numbers from these seeds, from the beginning; instead of them
  ``"numpy"`` (from its generator) or ``"default"`` (from that of `cytape.nn.dropout`)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cytape.errors import GraphFileError
from cytape.ops.calls.late import upper
from cytape.ops.neural.sliding_windows import Window
from cytape.ops.python.draws import Stream, default_stream, numpys_stream
from cytape.tensor.making import tensor_of_copy
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import UnknownShape
from cytape.tensor.variable import Variable

_TYPES: tuple[type, ...] = (bool, int, float, complex, *np.sctypeDict.values())
_SCALAR_TYPES: dict[str, type] = {
    f"{kind.__module__}.{kind.__name__}": kind
    for kind in _TYPES
    if kind not in (np.object_, np.void)
}
_SCALAR_TYPE_NAMES = {kind: name for name, kind in _SCALAR_TYPES.items()}
_STREAMS = {"numpy": numpys_stream, "default": default_stream}  # of ops without a seed
_STREAM_NAMES = {type(stream): name for name, stream in _STREAMS.items()}
# Inferring the dtype of a result takes an array of one element: no program has longer strings.
MOST_NESTED = 64  # bodies in bodies
_LARGEST_ITEM = 1 << 16
_DTYPE = re.compile(r"[<>|=][biufcSUmM]\d{0,9}(\[\d{0,9}\w{1,2}\])?")


class NoWordError(GraphFileError):
    """Raised for a value that files cannot store."""


def body_type() -> type:
    """Return the type of bodies: functions that nodes run, each a graph with inputs and outputs."""
    return upper("ConcreteFunction")


class Encoder:
    """Encodes static arguments as JSON, and collects the arrays, variables and bodies in them.

    Parameters
    ----------
    body_code : callable, optional
        Returns JSON for a body, in which it may encode further values.

    Attributes
    ----------
    arrays : list of ndarray
    variables : list of Variable
    functions : list
        The JSON of bodies, each after those that it runs itself.
    """

    def __init__(self, body_code: Callable[[Any], Any] | None = None) -> None:
        self.arrays: list[np.ndarray] = []
        self.variables: list[Variable] = []
        self.functions: list[Any] = []
        self._body_code = body_code
        self._body_type = (body_type(),) if body_code is not None else ()
        self._numbers: dict[int, int] = {}  # id of a variable -> its number
        self._tensors: dict[int, int] = {}  # id of a tensor -> the number of its array
        self._bodies: dict[int, int] = {}  # id() of a body -> its number
        self._n_around = 0  # bodies that are being encoded

    def array(self, array: np.ndarray) -> int:
        """Return the number of an array, which is stored."""
        self.arrays.append(array)
        return len(self.arrays) - 1

    def variable(self, variable: Variable) -> int:
        """Return the number of a variable, the same each time."""
        number = self._numbers.setdefault(variable.id, len(self.variables))
        if number == len(self.variables):
            self.variables.append(variable)
        return number

    def function(self, body: Any) -> int:
        """Return the number of a body, the same each time."""
        number = self._bodies.get(id(body))
        if number is None:
            if self._n_around == MOST_NESTED:
                raise GraphFileError(f"more than {MOST_NESTED} branches or loops are nested")
            assert self._body_code is not None
            self._n_around += 1
            code = self._body_code(body)
            self._n_around -= 1
            number = self._bodies[id(body)] = len(self.functions)
            self.functions.append(code)
        return number

    def number_of(self, body: Any) -> int:
        """Return the number of a body that has one, or -1."""
        return self._bodies.get(id(body), -1)

    def encode(self, value: Any) -> Any:
        """Return a value as JSON.

        Raises
        ------
        GraphFileError
            If the vocabulary has no word for it, or a body cannot be saved.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if kind in (tuple, UnknownShape):
            return {"tuple": [self.encode(item) for item in value]}
        if kind is dict:
            items = value.items()
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in items]}
        if kind is slice:
            return {"slice": [self.encode(x) for x in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"ellipsis": True}
        return self._encode_numeric(value)

    def _encode_numeric(self, value: Any) -> Any:
        if isinstance(value, np.dtype) and _DTYPE.fullmatch(value.str):
            return {"dtype": value.str}
        if isinstance(value, type) and value in _SCALAR_TYPE_NAMES:
            return {"scalar type": _SCALAR_TYPE_NAMES[value]}
        if type(value) is Window:
            return {"window": [self.encode(part) for part in value]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self.encode(tuple(value))
        if type(value) is Stream:
            return {"stream": [int(value.graph_seed), int(value.op_seed)]}
        if type(value) in _STREAM_NAMES:
            return {"stream": _STREAM_NAMES[type(value)]}
        if isinstance(value, Variable):
            return {"variable": self.variable(value)}
        if isinstance(value, self._body_type):
            return {"function": self.function(value)}
        if type(value) is Tensor and value.graph is None:
            if value.id < 0:  # a saved constant of an eager call
                return {"tensor": self.array(value.numpy())}
            if value.id not in self._tensors:
                self._tensors[value.id] = self.array(value.numpy())
            return {"tensor": self._tensors[value.id]}
        plain = (
            isinstance(value, (np.ndarray, np.generic))
            and _DTYPE.fullmatch(value.dtype.str)
            and value.dtype.itemsize > 0
        )
        if plain and type(value) is np.ndarray:
            return {"array": self.array(value)}
        if plain and isinstance(value, np.generic):
            return {"scalar": self.array(np.asarray(value))}
        raise NoWordError(f"{value!r} cannot be saved")


class Decoder:
    """Makes static arguments of JSON.

    Parameters
    ----------
    arrays : list of ndarray
    variables : list of Variable
    function : callable, optional
        Returns the body of a number.
    """

    def __init__(
        self,
        arrays: list[np.ndarray],
        variables: list[Variable],
        function: Callable[[Any], Any] | None = None,
    ) -> None:
        self._arrays = arrays
        self._taken: set[int] = set()
        self._tensors: dict[int, Tensor] = {}  # by the number of the array
        self._variables = variables
        self._words: dict[str, Callable[[Any], Any]] = {
            "float": self._float,
            "complex": lambda parts: complex(*map(self._real, listed(parts, 2))),
            "tuple": lambda items: tuple(map(self.decode, listed(items))),
            "dict": self._dict,
            "slice": lambda parts: slice(*map(self.decode, listed(parts, 3))),
            "ellipsis": lambda _: Ellipsis,
            "dtype": dtype_named,
            "scalar type": self._scalar_type,
            "array": self.take_array,
            "scalar": self._scalar,
            "tensor": self._tensor,
            "variable": lambda number: numbered(self._variables, number, "variable"),
            "function": function or (lambda number: numbered([], number, "function")),
            "window": self._window,
            "stream": self._stream,
        }

    def decode(self, code: Any) -> Any:
        """Return the value of JSON.

        Raises
        ------
        GraphFileError
            If it stands for none.
        """
        if code is None or type(code) in (bool, int, str):
            return code
        if type(code) is float and math.isfinite(code):
            return code
        if type(code) is dict and len(code) == 1:
            [(word, rest)] = code.items()
            if word in self._words:
                return self._words[word](rest)
        raise GraphFileError(f"{brief(code)} stands for no value")

    def _float(self, text: Any) -> float:
        if text not in ("nan", "inf", "-inf"):
            raise GraphFileError(f"{brief(text)} is not one of nan, inf and -inf")
        return float(text)

    def _real(self, code: Any) -> float:
        value = self.decode(code)
        if type(value) not in (int, float):
            raise GraphFileError(f"{brief(code)} is not a real number")
        return float(value)

    def _stream(self, seeds: Any) -> Any:
        if isinstance(seeds, str) and seeds in _STREAMS:
            return _STREAMS[seeds]
        graph_seed, op_seed = map(self._seed, listed(seeds, 2))
        return Stream(graph_seed, op_seed)

    def _seed(self, code: Any) -> int:
        if type(code) is not int or code < 0:
            raise GraphFileError(f"{brief(code)} is not a seed")
        return code

    def _window(self, codes: Any) -> Window:
        fields = [self.decode(code) for code in listed(codes)]
        if len(fields) == 4:  # written before there were groups
            fields.append(1)
        if len(fields) != 5 or not _is_window(*fields):
            raise GraphFileError(f"{brief(codes)} is not a window")
        return Window(*fields)

    def _dict(self, pairs: Any) -> dict[Any, Any]:
        pairs = [listed(pair, 2) for pair in listed(pairs)]
        return {self._key(key): self.decode(item) for key, item in pairs}

    def _key(self, code: Any) -> Any:
        key = self.decode(code)
        try:
            hash(key)
        except TypeError:
            raise GraphFileError(f"{brief(code)} cannot be a key") from None
        return key

    def take_array(self, number: Any) -> np.ndarray:
        """Return an array and mark it as taken: a loaded graph is not larger than its file.

        Raises
        ------
        GraphFileError
            If no array has that number, or it has been taken.
        """
        array = numbered(self._arrays, number, "array")
        if number in self._taken:
            raise GraphFileError(f"array {number} is used twice")
        self._taken.add(number)
        return array

    def _tensor(self, number: Any) -> Tensor:
        """Return the tensor of an array, the same each time: gradients share it with bodies."""
        if type(number) is not int or number not in self._tensors:
            self._tensors[number] = tensor_of_copy(self.take_array(number))
        return self._tensors[number]

    def _scalar(self, number: Any) -> Any:
        array = self.take_array(number)
        if array.ndim:
            raise GraphFileError(f"array {number} is not a scalar")
        return array[()]

    def _scalar_type(self, name: Any) -> type:
        found = _SCALAR_TYPES.get(name) if type(name) is str else None
        if found is None:
            raise GraphFileError(f"{brief(name)} is not a scalar type")
        return found


def brief(code: Any) -> str:
    """Return the beginning of a code from a file, for messages."""
    text = repr(code)
    return text if len(text) <= 80 else text[:77] + "..."


def listed(code: Any, length: int | None = None) -> list[Any]:
    """Return a list in a file, or raise if it is another object."""
    if type(code) is not list or length not in (None, len(code)):
        wanted = "a list" if length is None else f"a list of {length}"
        raise GraphFileError(f"expected {wanted}, got {brief(code)}")
    return code


def numbered(things: Sequence[Any], number: Any, what: str) -> Any:
    """Return an item of a list, by a number in a file.

    Parameters
    ----------
    things : sequence
    number : object
    what : str
        Noun for the items, for the message.
    """
    if type(number) is not int or not 0 <= number < len(things):
        raise GraphFileError(f"there is no {what} {brief(number)} in a file of {len(things)}")
    return things[number]


def dtype_named(name: Any) -> np.dtype:
    """Return the dtype of a name in a file.

    Parameters
    ----------
    name : object
        As the attribute `str` of dtypes.
    """
    if type(name) is not str or not _DTYPE.fullmatch(name):
        raise GraphFileError(f"{brief(name)} is not a dtype")
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError) as error:
        raise GraphFileError(f"{name!r} is not a dtype") from error
    if dtype.itemsize > _LARGEST_ITEM:
        raise GraphFileError(f"{name!r} has elements of {dtype.itemsize} bytes")
    return dtype


def _is_window(kernel: Any, strides: Any, dilations: Any, padding: Any, groups: Any) -> bool:
    parts = [(kernel, 1), (strides, 1), (dilations, 1), ((groups,), 1)]
    if type(padding) is not tuple or type(kernel) is not tuple:
        return False
    parts += [(ends, 0) for ends in padding]
    lengths = [len(part) if type(part) is tuple else 0 for part, _ in parts]
    n = len(kernel)
    return n > 0 and len(padding) == n and lengths == [n, n, n, 1, *[2] * n] and all(
        type(number) is int and number >= least for part, least in parts for number in part)
