"""The container of saved graphs."""

import io
import json
import zipfile

import numpy as np
import pytest

from cytape.errors import GraphFileError
from cytape.graph.model import container


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph"


ARRAYS = [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(1.5),
    np.zeros((3, 0)), np.array(["a", "bc"]), np.arange(10)[::-2],
]  # fmt: skip


def archive(path, entries, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, content in entries:
            file.writestr(name, content)


def npy(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def test_content_comes_back(path):
    program = {"a": [1, 2.5, None, "ä", {}]}
    container.write(path, program, ARRAYS)
    read, arrays = container.read(str(path))
    assert read == program
    for array, expected in zip(arrays, ARRAYS, strict=True):
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(array, expected)


def test_the_same_content_gives_the_same_file(path, tmp_path):
    container.write(path, {"a": 1}, ARRAYS)
    container.write(tmp_path / "other", {"a": 1}, ARRAYS)
    assert path.read_bytes() == (tmp_path / "other").read_bytes()


def test_it_can_be_read_by_others(path):
    container.write(path, {"a": 1}, ARRAYS)
    with zipfile.ZipFile(path) as file:
        assert json.loads(file.read("program.json")) == {"a": 1}
        with file.open("arrays/0.npy") as entry:
            np.testing.assert_array_equal(np.load(entry, allow_pickle=False), ARRAYS[0])


def test_values_beyond_json_leave_no_file(path):
    with pytest.raises(ValueError, match="JSON"):
        container.write(path, {"a": float("nan")}, [])
    assert not path.exists()


def test_a_missing_file_is_an_error_of_its_own(path):
    with pytest.raises(FileNotFoundError):
        container.read(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(GraphFileError, match=r"not a saved graph|entries are not"):
        container.read(path)


def test_compressed_entries_are_refused(path):
    archive(path, [("program.json", b" " * 10**7 + b"{}")], compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    with pytest.raises(GraphFileError, match="compressed"):
        container.read(path)


def test_overlapping_entries_are_refused(path):
    archive(path, [("program.json", b"{}" + b" " * 1000), ("arrays/0.npy", npy(np.ones(3)))])
    with zipfile.ZipFile(path) as file:
        first, second = file.infolist()
    content = path.read_bytes()
    # The second entry of the directory becomes another of the first one's data, by another name.
    offset = second.header_offset.to_bytes(4, "little")
    at = content.rindex(offset)
    content = content[:at] + first.header_offset.to_bytes(4, "little") + content[at + 4 :]
    path.write_bytes(content)
    with pytest.raises(GraphFileError):
        container.read(path)


@pytest.mark.parametrize("names", [
    [], ["other.json"], ["program.json", "arrays/1.npy"], ["arrays/0.npy"],
    ["program.json", "../arrays/0.npy"], ["program.json", "arrays/0.npy", "more"],
])  # fmt: skip
def test_other_entries_are_refused(path, names):
    archive(path, [(name, npy(np.ones(1))) for name in names])
    with pytest.raises(GraphFileError, match="entries are not"):
        container.read(path)


def test_repeated_entries_are_refused(path):
    with pytest.warns(UserWarning, match="Duplicate"):
        archive(path, [("program.json", b"{}"), ("program.json", b"{}")])
    with pytest.raises(GraphFileError, match="entries are not"):
        container.read(path)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"NaN", b'{"a": Infinity}', b"\xff\xfe", b"[" * 100000, b"1" * 10000])
def test_other_than_json_is_refused(path, text):
    archive(path, [("program.json", text)])
    with pytest.raises(GraphFileError):
        container.read(path)


def with_header(header, version=b"\x01\x00", magic=b"\x93NUMPY", data=bytes(8)):
    header = header.ljust(53) + "\n"
    return magic + version + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize("content", [
    b"", b"no array", npy(np.ones(3))[:-1], npy(np.ones(3)) + b"x",
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", b"\x02\x00"),
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", magic=b"NUMPYxx"),
    with_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
    with_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }"),
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"),
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,), }"),
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"),
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }"),
    with_header("{'descr': '<f8', 'fortran_order': False, 'shape': ('a',), }"),
    with_header("{'descr': '<f8', 'fortran_order': False}"),
    with_header("print('executed')"),
    with_header("((((((((((((((((((((((((((((((((((((((((((((((("),
])  # fmt: skip
def test_damaged_arrays_are_refused(path, content, capsys):
    archive(path, [("program.json", b"{}"), ("arrays/0.npy", content)])
    with pytest.raises(GraphFileError):
        container.read(path)
    assert capsys.readouterr().out == ""
