"""Functions that return a view of their operand, a copy or the operand, against NumPy's.

What is written to one of the two shows in the other where it does in NumPy.
"""

import copy
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import grouped

X = np.arange(1.0, 25.0).reshape(4, 6)

# The operand, made of X: what is contiguous in C order, in that of Fortran, in both or in neither.
OPERANDS = {
    "whole": lambda x: x, "transposed": lambda x: x.T, "rows": lambda x: x[1:],
    "columns": lambda x: x[:, 1:], "reversed": lambda x: x[::-1], "row": lambda x: x[0],
    "column": lambda x: x[:, 0], "one row": lambda x: x[:1], "one column": lambda x: x[:, :1].T,
    "three axes": lambda x: x.reshape(2, 2, 6),
    "three axes swapped": lambda x: x.reshape(2, 2, 6).swapaxes(0, 1),
    "number": lambda x: x[0, 0, ...], "copy of columns": lambda x: np.copy(x[:, 1:].T)}
FUNCTIONS = {
    f"{name}": (lambda m, x, name=name: getattr(m, name)(x)) for name in (
        "abs array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray "
        "atleast_1d atleast_2d atleast_3d around block conj conjugate copy diag diagflat diagonal "
        "fix flip fliplr flipud imag matrix_transpose nan_to_num permute_dims positive ravel real "
        "require rot90 round sort squeeze transpose tril triu unstack vander").split()}
for flag in (None, True, False):
    FUNCTIONS |= {
        f"reshape, copy={flag}": lambda m, x, flag=flag: m.reshape(x, -1, copy=flag),
        f"reshape in order F, copy={flag}": lambda m, x, flag=flag: m.reshape(
            x, -1, order="F", copy=flag),
        f"method reshape, copy={flag}": lambda m, x, flag=flag: x.reshape(2, -1, copy=flag),
        f"array of axes, copy={flag}": lambda m, x, flag=flag: m.array(x, copy=flag, ndmin=3),
        f"nan_to_num, copy={flag}": lambda m, x, flag=flag: m.nan_to_num(x, copy=bool(flag)),
        f"meshgrid, copy={flag}": lambda m, x, flag=flag: m.meshgrid(x, x, copy=bool(flag))[0],
        f"sparse meshgrid, copy={flag}": lambda m, x, flag=flag: m.meshgrid(
            x, x, copy=bool(flag), sparse=True)[0],
        f"astype, copy={flag}": lambda m, x, flag=flag: m.astype(x, float, copy=bool(flag)),
        f"astype to another, copy={flag}": lambda m, x, flag=flag: m.astype(
            x, "f4", copy=bool(flag)),
    }
    for name, order in product(("array", "asarray", "asanyarray"), "CFAK"):
        FUNCTIONS[f"{name}, order={order}, copy={flag}"] = (
            lambda m, x, name=name, order=order, flag=flag: getattr(m, name)(
                x, order=order, copy=flag))
for order in "CFAK":
    FUNCTIONS |= {
        f"ravel, order={order}": lambda m, x, order=order: m.ravel(x, order=order),
        f"method ravel, order={order}": lambda m, x, order=order: x.ravel(order),
        f"flatten, order={order}": lambda m, x, order=order: x.flatten(order),
        f"copy, order={order}": lambda m, x, order=order: m.copy(x, order=order),
        f"method copy, order={order}": lambda m, x, order=order: x.copy(order),
        f"reshape, order={order}": lambda m, x, order=order: m.reshape(x, (2, -1), order=order),
        f"method astype, order={order}": lambda m, x, order=order: x.astype(
            float, order=order, copy=False),
    }
    # An array in another memory order is raveled into a copy, or into a view.
    for maker, last in product(("asfortranarray", "copy", "array"), "CFAK"):
        FUNCTIONS[f"{maker} raveled, order={last}"] = (
            lambda m, x, maker=maker, last=last: m.ravel(getattr(m, maker)(x), order=last))
FUNCTIONS |= {
    f"require {flags}": lambda m, x, flags=flags: m.require(x, None, flags)
    for flags in ("C", "F", "O", "W", "A", ["C", "O"], ["F", "O"], ["CONTIGUOUS", "OWNDATA"])}
FUNCTIONS |= {
    "method copy": lambda m, x: x.copy(), "method squeeze": lambda m, x: x.squeeze(),
    "T": lambda m, x: x.T, "mT": lambda m, x: x.mT, "attribute real": lambda m, x: x.real,
    "method swapaxes": lambda m, x: x.swapaxes(0, -1), "method conj": lambda m, x: x.conj(),
    "method diagonal": lambda m, x: x.diagonal(), "method take": lambda m, x: x.take([0], 0),
    "method repeat": lambda m, x: x.repeat(1), "module copy": lambda m, x: copy.copy(x),
    "deepcopy": lambda m, x: copy.deepcopy(x), "iter": lambda m, x: next(iter(x)),
    "unary plus": lambda m, x: +x, "broadcast_to itself": lambda m, x: m.broadcast_to(x, x.shape),
    "broadcast_arrays": lambda m, x: m.broadcast_arrays(x, x)[0],
    "broadcast_arrays of another": lambda m, x: m.broadcast_arrays(x, np.ones((4, 2, 4, 6)))[0],
    "expand_dims": lambda m, x: m.expand_dims(x, 0), "swapaxes": lambda m, x: m.swapaxes(x, 0, 1),
    "moveaxis": lambda m, x: m.moveaxis(x, 0, -1), "rollaxis": lambda m, x: m.rollaxis(x, 1),
    "rollaxis to itself": lambda m, x: m.rollaxis(x, 0), "rot90 by 0": lambda m, x: m.rot90(x, 0),
    "rot90 by 180": lambda m, x: m.rot90(x, 2), "squeeze axis": lambda m, x: m.squeeze(x[None], 0),
    "split": lambda m, x: m.split(x, 2)[0], "array_split": lambda m, x: m.array_split(x, 2)[0],
    "hsplit": lambda m, x: m.hsplit(x, 2)[1], "vsplit": lambda m, x: m.vsplit(x, 2)[1],
    "dsplit": lambda m, x: m.dsplit(x, 2)[1], "split at": lambda m, x: m.split(x, [1])[1],
    "windows": lambda m, x: sliding_window_view(x, 2, 0),
    "einsum of a diagonal": lambda m, x: m.einsum("ii->i", x[:4, :4]),
    "einsum of axes": lambda m, x: m.einsum("ij->ji", x),
    "einsum of a sum": lambda m, x: m.einsum("ij->i", x),
    "einsum of itself": lambda m, x: m.einsum("...->...", x),
    "rows by number": lambda m, x: x[np.arange(2)], "mask": lambda m, x: x[X[0, 0] > 0],
    "True": lambda m, x: x[True], "new axis": lambda m, x: x[None], "()": lambda m, x: x[()],
    "...": lambda m, x: x[...], "take": lambda m, x: m.take(x, [0, 1], 0),
    "compress": lambda m, x: m.compress([True], x, 0), "extract": lambda m, x: m.extract(x > 0, x),
    "select": lambda m, x: m.select([x > 0], [x]), "where": lambda m, x: m.where(x > 0, x, 0),
    "where everywhere": lambda m, x: m.where(True, x, x), "clip": lambda m, x: m.clip(x, 0, None),
    "append": lambda m, x: m.append(x, []), "concatenate": lambda m, x: m.concatenate([x]),
    "stack": lambda m, x: m.stack([x]), "hstack": lambda m, x: m.hstack([x]),
    "column_stack": lambda m, x: m.column_stack([x]), "block of a list": lambda m, x: m.block([x]),
    "r_": lambda m, x: m.r_[x], "c_": lambda m, x: m.c_[x], "tile": lambda m, x: m.tile(x, 1),
    "list": lambda m, x: m.array([x]), "tuple": lambda m, x: m.asarray((x,)),
    "repeat": lambda m, x: m.repeat(x, 1, 0), "pad": lambda m, x: m.pad(x, 0),
    "delete": lambda m, x: m.delete(x, [], 0), "roll": lambda m, x: m.roll(x, 0),
    "diff by 0": lambda m, x: m.diff(x, n=0), "ediff1d": lambda m, x: m.ediff1d(x),
    "sum of no axes": lambda m, x: m.sum(x, axis=()), "fftshift": lambda m, x: np.fft.fftshift(x),
    "mean of no axes": lambda m, x: m.mean(x, axis=()), "unwrap": lambda m, x: m.unwrap(x),
    "polyder by 0": lambda m, x: m.polyder(x, 0), "partition": lambda m, x: m.partition(x, 0),
    "linalg.diagonal": lambda m, x: np.linalg.diagonal(x),
    "linalg.matrix_transpose": lambda m, x: np.linalg.matrix_transpose(x),
    "matrix_power": lambda m, x: np.linalg.matrix_power(x[:4, :4], 1),
    "full_like": lambda m, x: m.full_like(x, x),
    "apply_over_axes": lambda m, x: m.apply_over_axes(m.sum, x, [0]),
    "apply_along_axis": lambda m, x: m.apply_along_axis(lambda row: row, 0, x),
    "real_if_close": lambda m, x: m.real_if_close(x)}
for name, order in product(("modf", "frexp", "sign", "exp", "matmul", "vecdot"), "CFAK"):
    FUNCTIONS[f"{name} raveled as F, order={order}"] = lambda m, x, name=name, order=order: m.ravel(
        (lambda y: y[0] if isinstance(y, tuple) else y)(getattr(m, name)(
            *[x] * getattr(np, name).nin, order=order)), order="F")
# These can be written to in NumPy, and only read here.
READ_ONLY = ("broadcast_arrays", "einsum of a diagonal", "meshgrid")
# These depend on values or shapes that a trace does not know.
NEED_VALUES = ("delete", "iter", "real_if_close", "trim_zeros", "unstack")
UNKNOWN = cytape.Spec.of((None, None), float)
WAYS = {
    "eager": lambda f: f(cytape.constant(X)), "traced": lambda f: cytape.function(f)(X),
    "of unknown extents": lambda f: cytape.function(f, input_signature=[UNKNOWN])(X)}


def program(function, operand, written, m, x):
    x = x * 1.0
    shown = operand(x)
    result = function(m, shown)
    result = result[0] if isinstance(result, (list, tuple)) else result
    if written == "result":
        result[...] = 77.0
    else:
        x[...] = 99.0
    return x, shown, result


def is_left_out(name, operand):
    """Whether NumPy's copy in another order owns its data, where that of a tensor is a view."""
    return operand == "copy of columns" and name.startswith("require") and "O" in name


def may_be_refused(error, name, way):
    if isinstance(error, SymbolicTensorError):
        return way == "of unknown extents" or name in NEED_VALUES
    return "read-only" in str(error) and name.startswith(READ_ONLY)


@pytest.mark.filterwarnings("ignore")
@grouped("name, way", [
    (way, f"{name}, {way}", (name, way), (i + k) % 3 > 0)
    for i, way in enumerate(WAYS) for k, name in enumerate(FUNCTIONS)])
def test_a_write_shows_where_it_does_in_numpy(name, way):
    for operand, written in product(OPERANDS, ("result", "operand")):
        if is_left_out(name, operand):
            continue
        run = partial(program, FUNCTIONS[name], OPERANDS[operand], written)
        try:
            expected = run(np, X)
        except (TypeError, ValueError, IndexError) as error:
            if "Unable to avoid" in str(error):  # making a copy
                with pytest.raises(ValueError, match="Unable to avoid"):
                    WAYS[way](partial(run, cnp))
            continue
        try:
            found = WAYS[way](partial(run, cnp))
        except (SymbolicTensorError, ValueError) as error:
            if not may_be_refused(error, name, way):
                raise
            continue
        for what, x, y in zip(("x", "operand", "result"), found, expected, strict=True):
            np.testing.assert_array_equal(
                x, y, err_msg=f"{what}, of {operand}, after the {written} was written to")


@grouped("name, order", [
    (name, f"{name}, {order}", (name, order), True)
    for name, order in product(("matmul", "vecdot"), "CFA")])
def test_products_are_laid_out_as_their_order_says(name, order):
    shapes = {"matmul": [(3, 2), (2, 4)], "vecdot": [(2, 3, 4), (2, 3, 4)]}[name]

    def f(m, *operands):
        result = getattr(m, name)(*operands, order=order)
        first = result.ravel("F")
        first[0] = 77.0
        return result

    for turned in (False, True):
        operands = [np.ones(shape[::-1]).T if turned else np.ones(shape) for shape in shapes]
        expected = f(np, *operands)
        if not turned:  # tensors are in C order where they are made
            np.testing.assert_array_equal(f(cnp, *map(cytape.constant, operands)), expected)
            np.testing.assert_array_equal(cytape.function(partial(f, cnp))(*operands), expected)
        else:
            turn = partial(f, cnp)
            np.testing.assert_array_equal(cytape.function(lambda *xs, turn=turn: turn(
                *[x.T for x in xs]))(*[x.T for x in operands]), expected)
