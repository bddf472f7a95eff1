"""The array API standard: its names and signatures, called with tensors and with NumPy's arrays."""

import inspect
import re

import numpy as np
import pytest

import cytape
from cytape.numpy import array_api
from tests.cases import case, each
from tests.ways import watching

RNG = np.random.default_rng(0)
S = RNG.normal(size=(3, 3))
ARRAYS = {
    "x": RNG.uniform(0.1, 0.9, (2, 3)), "y": RNG.uniform(0.1, 0.9, (2, 3)), "above": 1 + S * S,
    "v": np.array([0.3, 0.1, 0.2]), "w": np.array([1.0, 2.0, -1.0]), "s": S @ S.T + np.eye(3),
    "i": np.array([[3, 1, 2], [2, 2, 0]]), "k": np.array([2, 0, 1]), "z": S + 1j * S.T,
    "b": np.array([[True, False, True], [False, False, True]]), "sorted": np.array([1.0, 2.0, 4.0])}
# Calls of the functions of the standard, each with all of its keyword arguments.
CALLS = """
asarray(x, dtype=None, device=None, copy=None)
asarray(x, dtype=xp.float32, device=x.device, copy=True)
empty_like(x, dtype=None, device=None) * 0
full_like(x, fill_value=2.0, dtype=None, device=x.device)
meshgrid(v, w, indexing='xy')
ones_like(x, dtype=None, device=x.device)
tril(s, k=0)
triu(s, k=1)
zeros_like(x, dtype=xp.float32, device=None)
astype(x, xp.float32, copy=True, device=None)
broadcast_arrays(x, v)
broadcast_to(v, shape=(2, 3))
abs(x) acos(x) acosh(above) add(x, y) asin(x) asinh(x) atan(x) atan2(x, y) atanh(x) ceil(x) cos(x)
conj(z) copysign(x, y) cosh(x) divide(x, y) equal(x, y) exp(x) expm1(x) floor(x) greater(x, y)
floor_divide(x, y) greater_equal(x, y) hypot(x, y) imag(z) isfinite(x) isinf(x) isnan(x) less(x, y)
less_equal(x, y) log(x) log1p(x) log2(x) log10(x) logaddexp(x, y) maximum(x, y) minimum(x, y)
multiply(x, y) negative(x) not_equal(x, y) positive(x) pow(x, y) real(z) reciprocal(x) round(x)
remainder(x, y) sign(x) signbit(x) sin(x) sinh(x) square(x) sqrt(x) subtract(x, y) tan(x) tanh(x)
trunc(x) bitwise_and(i, 1) bitwise_left_shift(i, 1) bitwise_invert(i) bitwise_or(i, 1)
bitwise_right_shift(i, 1) bitwise_xor(i, 1) logical_and(b, b) logical_not(b) logical_or(b, b)
logical_xor(b, b) matmul(s, x.T) matrix_transpose(x) unique_all(i) unique_counts(i) nonzero(i)
unique_inverse(i) sort(unique_values(i)) add(x, 2.0) pow(2.0, x)
clip(x, min=0.2, max=None)
take(v, k, axis=0)
take_along_axis(v, k, axis=-1)
tensordot(s, x.T, axes=1)
vecdot(x, y, axis=-1)
concat([x, y], axis=0)
expand_dims(x, axis=1)
flip(x, axis=None)
moveaxis(x, 0, 1)
permute_dims(x, axes=(1, 0))
repeat(x, 2, axis=0)
reshape(x, shape=(3, 2), copy=None)
roll(x, shift=1, axis=None)
squeeze(x[None], axis=0)
stack([x, y], axis=1)
tile(v, (2, 1))
unstack(x, axis=0)
argmax(x, axis=None, keepdims=False)
argmin(x, axis=1, keepdims=True)
count_nonzero(i, axis=None, keepdims=False)
searchsorted(sorted, v, side='left', sorter=None)
where(b, x, y)
isin(i, i[0], invert=False)
argsort(v, axis=-1, stable=True)
sort(x, axis=-1, stable=True)
cumulative_sum(v, axis=None, dtype=None, include_initial=True)
cumulative_prod(v, axis=0, dtype=None, include_initial=False)
max(x, axis=None, keepdims=False)
mean(x, axis=0, keepdims=True)
min(x, axis=None, keepdims=False)
prod(x, axis=None, dtype=None, keepdims=False)
std(x, axis=None, correction=1.0, keepdims=False)
sum(x, axis=None, dtype=None, keepdims=False)
var(x, axis=1, correction=0.0, keepdims=False)
all(b, axis=None, keepdims=False)
any(b, axis=0, keepdims=False)
diff(x, axis=-1, n=1, prepend=x, append=y)
linalg.cholesky(s, upper=True)
linalg.cross(v, w, axis=-1)
linalg.det(s) linalg.eigvalsh(s) linalg.inv(s) linalg.matmul(s, s) linalg.matrix_power(s, 2)
linalg.matrix_transpose(x) linalg.outer(v, w) linalg.slogdet(s) linalg.solve(s, v)
linalg.svdvals(s) abs(linalg.eigh(s)[1]) linalg.eigh(s)[0]
linalg.diagonal(s, offset=1)
linalg.matrix_norm(s, keepdims=False, ord='fro')
linalg.matrix_rank(s, rtol=None)
linalg.pinv(x, rtol=None)
linalg.qr(s, mode='reduced')
linalg.svd(s, full_matrices=True)[1]
linalg.tensordot(s, s, axes=2)
linalg.trace(s, offset=0, dtype=None)
linalg.vecdot(x, y, axis=-1)
linalg.vector_norm(x, axis=None, keepdims=False, ord=2)
fft.fft(x, n=None, axis=-1, norm='backward')
fft.ifft(z, n=None, axis=-1, norm='backward')
fft.fftn(x, s=None, axes=None, norm='backward')
fft.ifftn(z, s=None, axes=None, norm='ortho')
fft.rfft(x, n=None, axis=-1, norm='backward')
fft.irfft(z, n=None, axis=-1, norm='backward')
fft.rfftn(x, s=None, axes=None, norm='backward')
fft.irfftn(z, s=None, axes=None, norm='backward')
fft.hfft(z, n=None, axis=-1, norm='forward')
fft.ihfft(x, n=None, axis=-1, norm='backward')
fft.fftshift(x, axes=None)
fft.ifftshift(x, axes=None)
"""
# Without an array among the arguments, or without a derivative.
PLAIN = """
arange(3, stop=7, step=2, dtype=None, device='cpu')
asarray([1.0, 2.0], dtype=None, device='cpu', copy=None)
empty(shape=(0,), dtype=None, device='cpu')
eye(2, 3, k=0, dtype=None, device='cpu')
full(shape=(2,), fill_value=1.5, dtype=None, device='cpu')
linspace(0.0, 1.0, num=3, dtype=None, device='cpu', endpoint=True)
ones(shape=(2,), dtype=None, device='cpu')
zeros(shape=(2,), dtype=None, device='cpu')
broadcast_shapes((2, 1), (3,))
can_cast(x.dtype, xp.float32)
finfo(x.dtype).eps iinfo(i.dtype).max result_type(x, xp.float32) nextafter(x, y)
isdtype(x.dtype, kind='real floating')
from_dlpack(x, device=None, copy=None)
fft.fftfreq(4, d=0.5, device='cpu')
fft.rfftfreq(4, d=0.5, device='cpu')
"""
OF_DATA = ("nonzero", "unique_", "isin", "matrix_rank")  # not in graphs, or not with known shapes
UNSUPPORTED = {"fft.fftfreq": {"dtype"}, "fft.rfftfreq": {"dtype"}}  # also by NumPy
TESTED_BELOW = {"sort": {"descending"}, "argsort": {"descending"}}


def calls(text):
    """List the calls in a table, one or several a line."""
    return [part for line in text.strip().splitlines()
            for part in re.split(r"(?<=[)\]a-z]) (?=[a-z.0-9_]+\()", line)]


def evaluate(call, xp, arrays):
    return eval(call, {}, Names(xp, arrays))


class Names(dict):
    """The arrays, and the functions of a namespace."""

    def __init__(self, xp, arrays):
        super().__init__(arrays, xp=xp)

    def __missing__(self, name):
        return getattr(self["xp"], name)


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(found, expected):
    for ours, theirs in zip(flat(found), flat(expected), strict=True):
        assert type(ours) is cytape.Tensor
        assert np.shape(ours) == np.shape(theirs)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), 1e-12)


def tensors():
    return {name: cytape.constant(array) for name, array in ARRAYS.items()}


@each("call", calls(CALLS))
def test_functions_of_the_standard_take_tensors(call):
    expected = evaluate(call, np, ARRAYS)
    given = tensors()
    check(evaluate(call, array_api, given), expected)
    with watching([x for x in given.values() if x.dtype.kind in "fc"]):
        recorded = evaluate(call, array_api, given)
    check(recorded, expected)


@each("call", [x for x in calls(CALLS) if not any(name in x for name in OF_DATA)])
def test_functions_of_the_standard_are_traced(call):
    found = cytape.function(lambda given: evaluate(call, array_api, given))(tensors())
    check(found, evaluate(call, np, ARRAYS))


@each("call", calls(PLAIN))
def test_functions_that_make_arrays_make_tensors(call):
    expected = evaluate(call, np, ARRAYS)
    found = evaluate(call, array_api, tensors())
    if "freq" in call:
        assert found.tolist() == expected.tolist()
    elif isinstance(expected, np.ndarray):
        check(found, expected)
    else:
        assert found == expected


def test_the_table_has_all_functions_and_arguments_of_the_standard():
    strict = pytest.importorskip("array_api_strict")
    table = {}
    for call in calls(CALLS) + calls(PLAIN):
        for name in re.findall(r"[a-z_0-9.]+(?=\()", call):
            table.setdefault(name, set()).update(re.findall(r"(\w+)=", call))
    own = {name for name in strict.__all__ if "strict" in name.lower()} | {
        "__array_namespace_info__"}
    for prefix, module in (("", strict), ("linalg.", strict.linalg), ("fft.", strict.fft)):
        for name in set(module.__all__) - own:
            function = getattr(module, name)
            if inspect.isfunction(function):
                named = {p.name for p in inspect.signature(function).parameters.values()
                         if p.kind is p.KEYWORD_ONLY}
                with case(lambda prefix=prefix, name=name: prefix + name):
                    missing = named - table[prefix + name]
                    assert missing == (UNSUPPORTED | TESTED_BELOW).get(prefix + name, set())
            elif name != "Device":
                assert hasattr(array_api, name)


def test_the_namespace_of_a_tensor():
    x = cytape.constant([1.0])
    for tensor in (x, cytape.Variable([1.0]), x.__array_namespace__().zeros_like(x)):
        assert tensor.__array_namespace__(api_version=array_api.__array_api_version__) is array_api
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.01")
    assert array_api.__array_namespace_info__().devices() == ["cpu"]


def test_an_array_that_would_lose_its_meaning_is_an_error():
    for array in (np.ma.array([1.0]), np.array([None])):
        with pytest.raises(TypeError):
            array_api.asarray(array)


def test_devices():
    x = cytape.constant([1.0])
    assert x.device == "cpu" and x.to_device("cpu") is x
    with pytest.raises(ValueError, match="gpu"):
        x.to_device("gpu")
    same = cytape.function(
        lambda x: array_api.ones_like(x, device=x.device) * x + array_api.zeros(1, device=x.device))
    assert same(x).tolist() == [1.0]


@each("axis", [0, 1, -1])
def test_elements_are_sorted_in_descending_order(axis):
    x = np.array([[1.0, 3.0, 1.0, 2.0], [3.0, 3.0, 0.0, 1.0], [2.0, 3.0, 5.0, 1.0]])
    tensor = cytape.constant(x)
    order = np.argsort(-x, axis=axis, stable=True)
    assert array_api.argsort(tensor, axis=axis, descending=True).tolist() == order.tolist()
    found = array_api.sort(tensor, axis=axis, descending=True)
    assert found.tolist() == np.take_along_axis(x, order, axis).tolist()
    gradient = cytape.grad(lambda x: np.sum(array_api.sort(x, axis=axis, descending=True) * x))(x)
    assert gradient.shape == x.shape


def test_code_of_the_standard_is_differentiated():
    def softmax(x):
        xp = x.__array_namespace__()
        shifted = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return shifted / xp.sum(shifted, axis=-1, keepdims=True)

    gradient = cytape.grad(lambda x: softmax(x)[0])(ARRAYS["v"])
    p = np.exp(ARRAYS["v"]) / np.exp(ARRAYS["v"]).sum()
    np.testing.assert_allclose(gradient, p[0] * (np.array([1, 0, 0]) - p), 1e-13)


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip("array_api_compat")
    x = cytape.constant([1.0])
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x, x * 2.0, 3.0) is array_api
    assert (compat.device(x), compat.size(x)) == ("cpu", 1)
    assert compat.to_device(x, "cpu") is x
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(x, np.ones(1))
