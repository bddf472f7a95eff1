"""The container of a saved graph: a ZIP archive of one JSON text and of arrays.

Entries are ``program.json`` and ``arrays/0.npy``, ``arrays/1.npy``, ... No entry is compressed,
every element has a size, and no entry serves several arrays of the program, so that a loaded graph
is not larger than its file. All entries have the same date: equal graphs give equal files.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from typing import Any

import numpy as np

from cytape.errors import GraphFileError

PROGRAM = "program.json"
_DATE = (1980, 1, 1, 0, 0, 0)


def write(path: str | os.PathLike[str], program: Any, arrays: list[np.ndarray]) -> None:
    """Write a program and its arrays to a file.

    Parameters
    ----------
    path : str or path
    program : object
        Data that JSON can represent.
    arrays : list of ndarray
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(program, allow_nan=False)
        archive.writestr(zipfile.ZipInfo(PROGRAM, _DATE), text)
        for number, array in enumerate(arrays):
            data = io.BytesIO()
            np.lib.format.write_array(data, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(_entry(number), _DATE), data.getvalue())
    with open(path, "wb") as file:
        file.write(content.getvalue())


def read(path: str | os.PathLike[str]) -> tuple[Any, list[np.ndarray]]:
    """Read a program and its arrays from a file.

    Raises
    ------
    GraphFileError
        If it is no such container, or it is damaged.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        return _parsed(content)
    except GraphFileError:
        raise
    except Exception as error:  # zipfile and json raise various errors for damaged data
        name = os.fspath(path)
        raise GraphFileError(f"{name!r} is not a saved graph, or is damaged: {error}") from error


def _parsed(content: bytes) -> tuple[Any, list[np.ndarray]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                raise GraphFileError(f"entry {entry.filename!r} is compressed: graphs never are")
        if sum(entry.file_size for entry in entries) > len(content):
            raise GraphFileError("the entries claim to be larger than the file")
        names = [PROGRAM, *(_entry(number) for number in range(len(entries) - 1))]
        if sorted(entry.filename for entry in entries) != sorted(names):
            raise GraphFileError("the entries are not program.json and arrays/0.npy, 1.npy, ...")
        program = json.loads(archive.read(PROGRAM), parse_constant=_no_constant)
        return program, [_array(archive.read(name)) for name in names[1:]]


def _entry(number: int) -> str:
    return f"arrays/{number}.npy"


def _no_constant(name: str) -> None:
    raise GraphFileError(f"{name} is not JSON")


def _array(content: bytes) -> np.ndarray:
    data = io.BytesIO(content)
    version = np.lib.format.read_magic(data)
    if version != (1, 0):
        raise GraphFileError(f"an array has version {version} of the format, expected (1, 0)")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(data)
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        raise GraphFileError(f"an array has dtype {dtype}, which is not a dtype of numbers")
    if any(extent < 0 for extent in shape):
        raise GraphFileError(f"an array has shape {shape}")
    if dtype.itemsize == 0:  # any number of elements would fit into no bytes
        raise GraphFileError(f"an array has dtype {dtype}, whose elements have no size")
    rest = content[data.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise GraphFileError(
            f"an array of shape {shape} and dtype {dtype} does not have {len(rest)} bytes"
        )
    if not rest:
        return np.zeros(shape, dtype)
    array = np.frombuffer(rest, dtype)
    return array.reshape(shape, order="F" if fortran_order else "C")
