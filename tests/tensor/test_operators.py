"""Tensors in expressions: operators, promotion, indexing and methods give what NumPy gives."""

import operator

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ways import gradient, taped

V3 = np.array([0.5, -1.0, 2.0])
V23 = np.array([[1.0, 2.0, 3.0], [-4.0, 5.0, -6.0]])

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod, operator.pow, divmod]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]


class Thing:
    """No number, called alike in every process that collects the tests."""

    def __repr__(self):
        return "a thing"


THING = Thing()
ARRAYS = {
    "float64": V3, "float32": V3.astype("float32"), "float16": V3.astype("float16"),
    "int64": np.array([3, -2, 5]), "uint8": np.uint8([3, 2, 5]), "bool": V3 > 0,
    "complex64": np.complex64([1 + 2j, -1j, 3]), "0d": np.array(1.5), "0d int": np.array(2),
    "rows": V23, "column": V23[:, :1], "strided": np.repeat(V3, 2)[::2], "empty": np.zeros((0, 3))}


def outcome(function, *args):
    """Return what a function returns or the exception that it raises."""
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except Exception as error:
            return error


def check(function, *args, convert=cytape.constant, at=None):
    """Compare with NumPy, with tensors in the place of all arrays or of those at some positions."""
    expected = outcome(function, *args)
    result = outcome(function, *[
        convert(x) if isinstance(x, np.ndarray) and (at is None or i in at) else x
        for i, x in enumerate(args)])
    if isinstance(expected, Exception):
        assert isinstance(result, type(expected)), result
        return
    several = isinstance(expected, tuple)
    for ours, theirs in zip(result if several else [result], expected if several else [expected],
                            strict=True):
        assert type(ours) is cytape.Tensor, ours
        assert (ours.shape, ours.dtype) == (np.shape(theirs), np.asarray(theirs).dtype)
        np.testing.assert_array_equal(ours.numpy(), theirs)


# -- binary operators ------------------------------------------------------------------------------


@each(op=ARITHMETIC + COMPARISONS + BITWISE, second=ARRAYS, first=ARRAYS)
def test_operators_of_two_arrays(op, first, second):
    check(op, ARRAYS[first], ARRAYS[second])


@each(op=ARITHMETIC + COMPARISONS + BITWISE, array=["float64", "int64", "bool", "0d"])
@each(convert=[cytape.constant, cytape.Variable], position=[0, 1])
def test_an_ndarray_may_stand_on_either_side(op, array, convert, position):
    check(op, ARRAYS[array], ARRAYS[array][..., None], convert=convert, at=[position])


@each("op", ARITHMETIC + COMPARISONS + BITWISE)
@each("number", [
    2, -1, 0, True, 2.5, 0.0, 2j, 300, 2**70,
    np.float32(2.5), np.float64(2.5), np.int8(2), np.True_,
], ids=repr)
@each("array", ["float64", "float32", "float16", "int64", "uint8", "bool",
                "complex64", "0d", "0d int", "empty"])
def test_numbers_on_either_side_promote_as_in_numpy_2(op, number, array):
    """Python's are weak: they do not widen an array; NumPy's scalars have a dtype of their own."""
    if op is operator.pow and array == "bool":
        op = np.power  # ndarray's operator takes a shortcut for squares, to another dtype
    check(op, ARRAYS[array], number)
    check(op, number, ARRAYS[array])


@each("dtype, number, result", [
    ("float32", 2.0, "float32"), ("float16", 2, "float16"), ("float32", 2j, "complex64"),
    ("int8", 2, "int8"), ("int64", 2.0, "float64"), ("bool", 1, "int64"),
    ("float32", np.float64(2), "float64")])
def test_python_numbers_are_weak_on_a_tape_too(dtype, number, result):
    x = cytape.constant([1, 0], dtype)
    with cytape.GradientTape() as tape:
        if x.spec.trainable:
            tape.watch(x)
        y = number * (x * number)
    assert y.dtype == result
    gradient = tape.gradient(y, x)
    if x.spec.trainable:
        assert gradient.dtype == x.dtype
        np.testing.assert_array_equal(gradient.numpy(), 2 * [np.conj(number**2).real])


@each(op=ARITHMETIC, data=[[1.0, 2.0, 3.0], (1, 2, 3), [[1.0], [2.0]]])
def test_lists_count_as_arrays(op, data):
    check(op, V3, data)
    check(op, data, V3)


@each("left, right", [
    (V3, V3), (V23, V3), (V3, V23.T), (V23, V23.T), (np.ones((4, 2, 3)), V23.T),
    (V23, np.ones((4, 3, 2))), (V23, V23), (V3, np.float64(2)), (V3.astype(int), V3),
    (V3.astype("float32"), V3.astype("float32")), (np.zeros((2, 0)), np.zeros((0, 3)))])
@each("at", [[0, 1], [0], [1]])
def test_matmul(left, right, at):
    check(operator.matmul, left, right, at=at)


def test_matmul_of_lists():
    check(operator.matmul, V23, [1.0, 2.0, 3.0])
    check(operator.matmul, [1.0, 2.0], V23)


@each(op=UNARY, array=ARRAYS)
def test_unary_operators(op, array):
    check(op, ARRAYS[array])


def test_a_power_modulo_something_is_not_defined():
    with pytest.raises(TypeError):
        pow(cytape.constant(3), 2, 5)
    with pytest.raises(TypeError):
        pow(np.array(3), 2, 5)


def test_builtin_sum_and_max_and_sorted():
    x = cytape.constant(V3)
    assert float(sum(x)) == V3.sum()
    assert float(max(x)) == 2.0
    assert list(map(float, sorted(x))) == [-1.0, 0.5, 2.0]


# -- other people's operands -----------------------------------------------------------------------


@each("op", [*ARITHMETIC, operator.matmul, operator.lt])
@each("other", [THING, {"a": 1.0}, {1.0}, None], ids=repr)
def test_operands_that_are_no_numbers(op, other):
    """An error, of the kind that says that the operand is at fault."""
    for args in ((cytape.constant(V3), other), (other, cytape.constant(V3))):
        with pytest.raises((TypeError, ValueError)):
            op(*args)


@each("op", [operator.eq, operator.ne])
@each("other", [None, "text", THING, [None, None, None]], ids=repr)
def test_comparing_with_anything_gives_numpys_answer(op, other):
    check(op, V3, other)
    check(op, other, V3)


class OptsOut:
    """Has its own say about operators with arrays, as NumPy's protocol provides."""

    __array_ufunc__ = None

    def reflected(self, other):
        return type(other).__name__, "reflected"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = reflected
    __rmatmul__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = reflected
    __rdivmod__ = __gt__ = __lt__ = reflected


@each("op", [*ARITHMETIC, *BITWISE, operator.matmul, operator.lt, operator.gt])
def test_who_opts_out_of_ufuncs_is_asked_for_the_result(op):
    assert op(cytape.constant(V3), OptsOut()) == ("Tensor", "reflected")


def test_a_variable_subtracts_and_divides_as_its_value():
    v = cytape.Variable(V3)
    for op in ARITHMETIC:
        check(op, V3, V23, convert=cytape.Variable)
    assert type(v + 1.0) is type(-v) is type(v == v) is cytape.Tensor


# -- equality and hash -----------------------------------------------------------------------------


def test_tensors_have_no_hash():
    for tensor in (cytape.constant(1.0), cytape.Variable(1.0)):
        with pytest.raises(TypeError, match=r"unhashable.*tensor\.ref.*tensor\.item"):
            hash(tensor)
        with pytest.raises(TypeError, match="unhashable"):
            {tensor}  # noqa: B018


def test_equality_is_elementwise():
    x = cytape.constant(V3)
    assert (x == x).numpy().tolist() == [True, True, True]
    assert (x != [0.5, 0.0, 2.0]).numpy().tolist() == [False, True, False]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x == x)


# -- indexing --------------------------------------------------------------------------------------

@each("index", [np.array([[0, 1], [1, 0]]), V23 > 0, np.array(1), V3 > 0])
def test_tensors_as_indices(index):
    check(operator.getitem, V23, index)
    check(lambda array, index: array[index, None], V23, index)


def test_tensors_as_indices_of_ndarrays():
    for index in (np.array([[0, 1], [1, 0]]), V23 > 0, np.array(1)):
        np.testing.assert_array_equal(V23[cytape.constant(index)], V23[index])


# -- methods ---------------------------------------------------------------------------------------

METHODS = [(name, args) for name, *args in [
    ("all",), ("any", 0), ("argmax",), ("argmin", 1), ("astype", "float32"), ("astype", int),
    ("clip", -1, 2), ("conj",), ("conjugate",), ("copy",), ("cumprod", 0), ("cumsum",),
    ("cumsum", 1), ("diagonal",), ("dot", V3), ("flatten",), ("max",), ("max", 1), ("mean",),
    ("mean", 0), ("min", 0), ("prod",), ("ravel",), ("repeat", 2), ("repeat", 2, 1), ("reshape", 6),
    ("reshape", 3, 2), ("reshape", (3, 2)), ("reshape", -1), ("reshape", (4, 2)), ("round", 1),
    ("squeeze",), ("std",), ("std", 0), ("sum",), ("sum", 1), ("swapaxes", 0, 1), ("take", [0, 2]),
    ("take", [1], 0), ("trace",), ("transpose",), ("transpose", 1, 0), ("transpose", (1, 0)),
    ("transpose", None), ("var",), ("var", 1), ("sum", 5), ("argsort",),
    ("argsort", 0), ("nonzero",), ("searchsorted", V3),
]]


@each("name, args", METHODS, ids=str)
def test_methods_are_those_of_ndarray(name, args):
    array = np.sort(V23, axis=None) if name == "searchsorted" else V23
    for convert in (cytape.constant, cytape.Variable):
        check(operator.methodcaller(name, *args), array, convert=convert)


@each("name, args", [
    ("sum", {"axis": 1, "keepdims": True}), ("mean", {"axis": (0, 1), "dtype": "float32"}),
    ("std", {"ddof": 1}), ("var", {"axis": 0, "ddof": 1}), ("max", {"axis": 0, "keepdims": True}),
    ("reshape", {"shape": (3, 2), "order": "F"}), ("astype", {"dtype": "int8", "copy": False}),
    ("flatten", {"order": "F"}), ("ravel", {"order": "F"}), ("clip", {"min": 0}),
    ("round", {"decimals": 1}), ("cumsum", {"axis": 1}), ("trace", {"offset": 1})])
def test_methods_take_ndarrays_keywords(name, args):
    args = dict(args)
    position = (args.pop("shape"),) if name == "reshape" else ()
    check(lambda x: getattr(x, name)(*position, **args), V23)


@each("name, args", [
    ("clip", (-1, 2)), ("conj", ()), ("copy", ()), ("cumprod", (0,)), ("cumsum", (1,)),
    ("diagonal", ()), ("dot", (V3,)), ("max", (1,)), ("mean", (0,)), ("min", ()), ("prod", (1,)),
    ("ravel", ()), ("repeat", (2,)), ("reshape", (6,)), ("squeeze", ()), ("std", (0,)), ("sum", ()),
    ("swapaxes", (0, 1)), ("take", ([0, 2, 2],)), ("trace", ()), ("transpose", ()), ("var", (1,))])
def test_methods_are_differentiated_like_the_functions(name, args):
    first, *others = [
        cytape.convert_to_tensor(gradient(lambda x, call=call: call(x) * 2.0, V23)).numpy()
        for call in (operator.methodcaller(name, *args),
                     lambda x: getattr(cytape.numpy, name)(x, *args),
                     lambda x: getattr(np, name)(x, *args))]
    assert first.shape == (2, 3) and first.any()
    for other in others:
        np.testing.assert_array_equal(other, first)


@each("name, args", [("flatten", ()), ("astype", ("float32",)), ("T", None)])
def test_methods_without_a_function_are_differentiated_too(name, args):
    x = cytape.constant(V23)
    tape, y = taped(lambda x: x.T if args is None else getattr(x, name)(*args), x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), np.ones((2, 3)))


def test_methods_are_listed():
    names = dir(cytape.constant(V3))
    assert {name for name, _ in METHODS} <= set(names)
    assert {"numpy", "id", "spec", "T", "__add__"} <= set(names)
    of_symbolic_tensors = {"name", "op", "value_index", "assign", "assign_add", "assign_sub"}
    assert all(hasattr(cytape.constant(V23), name) for name in set(names) - of_symbolic_tensors)
