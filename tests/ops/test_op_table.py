"""Tests that hold for every op: see op_specs.py for what is tested and how an op is added."""

from functools import partial

import numpy as np
import pytest

import cytape
from cytape.ops.calls.tangents import fetch
from cytape.testing import check_grads, numerical_jvp
from tests.cases import case as named
from tests.cases import each, grouped
from tests.ops.forward_mode import as_tuple, entered, followed, recorder_of
from tests.ops.op_families import FAMILY_OF, NUMBER_OF, SPECS, in_turn, is_sampled
from tests.ops.op_specs import Case, OpSpec
from tests.tables import table
from tests.ways import dense, taped, watching

# Relative and absolute, for values and gradients that took another route than the reference.
TOLERANCES = {
    "float16": (2e-2, 2e-2), "float32": (1e-4, 1e-5), "complex64": (1e-4, 1e-5),
    "float64": (1e-10, 1e-12), "complex128": (1e-10, 1e-12)}
DIFFERENCES = 1e-7  # how far central differences may be off, relative to the largest term

DOUBLE = ("float64", "complex128")
NARROWER = ("float32", "float16", "complex64")


def has_axes(x):
    return isinstance(x, np.ndarray) and x.size and x.ndim


# Each case of each record with what can be told of its inputs, whatever their dtype.
CASES = [
    (spec, case, sum(spec.has_gradient(i, x) for i, x in enumerate(inputs)),
     any(map(has_axes, inputs)))
    for spec in SPECS
    for case in spec.cases
    for inputs in [spec.draw(case, "float64")]
]


def calls(dtypes=None, one_case=False, keep=lambda spec: True, moving=0, axes=False, turn=None):
    """Run a test with the records, their cases and dtypes: one test per family of ops.

    moving: how many inputs must have a gradient; axes: one must have axes. The first case in every
    dtype and every case in the first dtype are what is always run; of a record that is not in the
    sample of its family, the first case in the first dtype. turn: only the first case is, in one of
    the dtypes; they take turns from record to record, and begin with this one.
    """

    def is_always_run(spec, case, place, n_dtypes):
        if turn is not None:
            return is_sampled(spec) and (
                case is spec.cases[0] and place == (NUMBER_OF[id(spec)] + turn) % n_dtypes)
        if not is_sampled(spec):
            return case is spec.cases[0] and place == 0
        return case is spec.cases[0] or place == 0

    return grouped("spec, case, dtype", [
        (FAMILY_OF[id(spec)], partial("{}-{}-{}".format, spec, case, dtype), (spec, case, dtype),
         not is_always_run(spec, case, place, len(kept)))
        for spec, case, n_moving, some_axes in CASES
        if keep(spec) and n_moving >= moving and (some_axes or not axes)
        and (case is spec.cases[0] or not one_case)
        for kept in [[dtype for dtype in spec.dtypes if dtypes is None or dtype in dtypes]]
        for place, dtype in enumerate(kept)
    ])


def differentiable(spec):
    return spec.differentiable is not False


def random_like(rng, x):
    values = rng.normal(size=np.shape(x))
    if x.dtype.kind == "c":
        values = values + 1j * rng.normal(size=np.shape(x))
    return np.asarray(values, x.dtype)


def inner(a, b):
    """Real inner product, and the size of its largest term."""
    terms = np.real(np.conj(a) * b)
    return terms.sum(), np.abs(terms).max(initial=0.0)


class Call:
    """One call of an op under a tape, with the tangents and cotangents to test it with."""

    def __init__(self, spec: OpSpec, case: Case, dtype: str, inputs=None, seed=0):
        self.spec, self.case = spec, case
        self.inputs = spec.draw(case, dtype, seed) if inputs is None else inputs
        self.positions = [i for i, x in enumerate(self.inputs) if spec.has_gradient(i, x)]
        rng = np.random.default_rng(seed + 1)
        self.tangents = [
            random_like(rng, x) if i in self.positions else None for i, x in enumerate(self.inputs)]
        self.references = (
            spec.references(case, dtype, seed) if inputs is None else spec.results(case, inputs))
        self.cotangents = [
            random_like(rng, y) if y.dtype.kind in "fc" else None for y in self.references]

    def as_tensors(self):
        return [cytape.constant(x) if isinstance(x, np.ndarray) else x for x in self.inputs]

    def outputs(self):
        return as_tuple(self.spec.fn(*self.as_tensors(), **self.case.kwargs))

    def gradients(self):
        """Gradient of the outputs, weighted by the cotangents, in each input of `positions`."""
        tensors = self.as_tensors()
        sources = [tensors[i] for i in self.positions]
        with watching(sources) as tape:
            outputs = as_tuple(self.spec.fn(*tensors, **self.case.kwargs))
        seeded = [(y, v) for y, v in zip(outputs, self.cotangents, strict=True) if v is not None]
        gradients = tape.gradient(
            [y for y, _ in seeded], sources,
            output_gradients=[cytape.constant(v) for _, v in seeded])
        return [
            g.to_tensor().numpy() if isinstance(g, cytape.IndexedSlices) else g.numpy()
            for g in gradients
        ]

    def jvp(self, tangents, use_batch=False, by_transposition=False):
        """The tangents of the outputs; zeros where there are none."""
        outputs, results = followed(
            lambda *inputs: self.spec.fn(*inputs, **self.case.kwargs), self.as_tensors(), tangents,
            use_batch, by_transposition)
        lead = next(t for t in tangents if t is not None).shape[:1] if use_batch else ()
        return [
            np.zeros(lead + y.shape, y.dtype) if t is None else t.numpy()
            for y, t in zip(outputs, results, strict=True)
        ]

    def more_tangents(self, n):
        """Batches of n directions."""
        rng = np.random.default_rng(7)
        return [
            random_like(rng, np.broadcast_to(x, (n, *x.shape))) if i in self.positions else None
            for i, x in enumerate(self.inputs)
        ]

    def difference(self, tangents):
        """The derivative of NumPy's function along the tangents, by central differences."""
        return as_tuple(
            numerical_jvp(lambda *xs: self.spec.ref(*xs, **self.case.kwargs), self.inputs, tangents)
        )

    def widened(self):
        """The same call in double precision."""

        def wide(x):
            is_narrow = isinstance(x, np.ndarray) and x.dtype in NARROWER
            return x.astype(np.result_type(x, np.float64)) if is_narrow else x

        call = Call(self.spec, self.case, None, [wide(x) for x in self.inputs])
        call.cotangents = [wide(v) for v in self.cotangents]
        call.tangents = [wide(t) for t in self.tangents]
        return call

    def weighted(self, tangents_out):
        """Inner product of the cotangents with tangents of the outputs, and its largest term."""
        parts = [
            inner(v, t) for v, t in zip(self.cotangents, tangents_out, strict=True) if v is not None
        ]
        return sum(p for p, _ in parts), max((size for _, size in parts), default=0.0)


@calls()
def test_value(spec, case, dtype):
    inputs = spec.draw(case, dtype)
    with np.errstate(all="ignore"):
        expected = spec.ref(*inputs, **case.kwargs)
        on_arrays = spec.fn(*inputs, **case.kwargs)
        on_tensors = as_tuple(
            spec.fn(
                *[cytape.constant(x) if isinstance(x, np.ndarray) else x for x in inputs],
                **case.kwargs))
    assert type(on_arrays) is type(expected)
    rtol, atol = TOLERANCES.get(np.result_type(*as_tuple(expected)).name, (0, 0))
    for plain, tensor, reference in zip(
        as_tuple(on_arrays), on_tensors, as_tuple(expected), strict=True
    ):
        assert type(plain) is type(reference)
        assert isinstance(tensor, cytape.Tensor)
        assert np.shape(plain) == tensor.shape == np.shape(reference)
        assert np.result_type(plain) == tensor.dtype == np.result_type(reference)
        np.testing.assert_allclose(plain, reference, rtol, atol)
        np.testing.assert_allclose(tensor.numpy(), reference, rtol, atol)


# The next test compares the gradients of all cases with numerical tangents, all inputs together.
@calls(DOUBLE, moving=1, turn=0)
def test_vjp_is_the_numerical_derivative(spec, case, dtype):
    call = Call(spec, case, dtype)
    for i, gradient in zip(call.positions, call.gradients(), strict=True):
        assert (gradient.shape, gradient.dtype) == (call.inputs[i].shape, call.inputs[i].dtype)
        alone = [t if j == i else None for j, t in enumerate(call.tangents)]
        expected, size = call.weighted(call.difference(alone))
        actual, own_size = inner(gradient, call.tangents[i])
        allowed = spec.tolerance * DIFFERENCES * max(1, size, own_size)
        assert abs(actual - expected) <= allowed, f"input {i}: {actual}, expected {expected}"


@calls(DOUBLE, moving=1)
def test_jvp_is_the_numerical_derivative_and_the_vjp_its_adjoint(spec, case, dtype):
    call = Call(spec, case, dtype)
    tangents_out = call.jvp(call.tangents)
    for actual, expected, reference in zip(
        tangents_out, call.difference(call.tangents), call.references, strict=True
    ):
        if reference.dtype.kind in "fc":
            assert (actual.shape, actual.dtype) == (reference.shape, reference.dtype)
            scale = spec.tolerance * DIFFERENCES * max(1, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(actual, expected, atol=scale)
    forward, forward_size = call.weighted(tangents_out)
    pairs = [
        inner(g, call.tangents[i]) for i, g in zip(call.positions, call.gradients(), strict=True)]
    backward = sum(value for value, _ in pairs)
    size = max([forward_size] + [size for _, size in pairs])
    assert abs(forward - backward) <= 1e-11 * max(1, size) * spec.tolerance


@calls(["float64"], moving=2)
def test_jvp_takes_a_tangent_for_some_of_the_inputs(spec, case, dtype):
    call = Call(spec, case, dtype)
    for i in call.positions:
        alone = [t if j == i else None for j, t in enumerate(call.tangents)]
        zeros = [
            np.zeros_like(t) if t is not None and j != i else t for j, t in enumerate(call.tangents)
        ]
        for actual, expected in zip(call.jvp(alone), call.jvp(zeros), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@calls(NARROWER, moving=1, turn=0)
def test_gradient_keeps_shape_and_dtype_and_precision(spec, case, dtype):
    call = Call(spec, case, dtype)
    precise = call.widened()
    rtol, atol = TOLERANCES[dtype]
    for i, gradient, expected in zip(
        call.positions, call.gradients(), precise.gradients(), strict=True
    ):
        assert gradient.shape == call.inputs[i].shape
        assert gradient.dtype == call.inputs[i].dtype
        scale = spec.tolerance * max(1, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(gradient, expected, rtol, atol * scale)


def assert_close(actual, expected, spec, rtol=1e-9):
    """Two ways to compute the same; what is small beside the rest may be off by more."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    scale = rtol * spec.tolerance * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol, scale)


@calls(DOUBLE, moving=1, turn=1)
def test_jvp_is_the_transposed_vjp(spec, case, dtype):
    call = Call(spec, case, dtype)
    for actual, expected in zip(
        call.jvp(call.tangents, by_transposition=True), call.jvp(call.tangents), strict=True
    ):
        assert_close(actual, expected, spec)


@calls(NARROWER, moving=1, turn=1)
def test_tangents_keep_shape_and_dtype_and_precision(spec, case, dtype):
    call = Call(spec, case, dtype)
    precise = call.widened()
    rtol, atol = TOLERANCES[dtype]
    for actual, expected, reference in zip(
        call.jvp(call.tangents), precise.jvp(precise.tangents), call.references, strict=True
    ):
        assert (actual.shape, actual.dtype) == (reference.shape, reference.dtype)
        scale = spec.tolerance * max(1, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(actual, expected, rtol, atol * scale)


@calls(NARROWER, moving=1, turn=2)
def test_transposed_tangents_have_the_dtype_of_the_output(spec, case, dtype):
    call = Call(spec, case, dtype)
    for actual, reference in zip(
        call.jvp(call.tangents, by_transposition=True), call.references, strict=True
    ):
        assert (actual.shape, actual.dtype) == (reference.shape, reference.dtype)


@calls(DOUBLE, moving=1, turn=0)
def test_a_batch_of_tangents_is_what_they_are_one_by_one(spec, case, dtype):
    call = Call(spec, case, dtype)
    batches = call.more_tangents(3)
    singles = [
        call.jvp([None if batch is None else batch[k] for batch in batches]) for k in range(3)]
    for actual, *expected in zip(call.jvp(batches, use_batch=True), *singles, strict=True):
        assert_close(actual, np.stack(expected), spec)


@calls(["float64"], one_case=True, moving=1, turn=0)
@each(by_transposition=[False, True], n=[0, 1])
def test_no_direction_and_a_single_one(spec, case, dtype, n, by_transposition):
    call = Call(spec, case, dtype)
    batches = call.more_tangents(n)
    expected = [np.zeros((0, *y.shape), y.dtype) for y in call.references]
    if n == 1:
        single = call.jvp([None if batch is None else batch[0] for batch in batches])
        expected = [tangent[None] for tangent in single]
    for actual, tangent in zip(
        call.jvp(batches, use_batch=True, by_transposition=by_transposition), expected, strict=True
    ):
        assert_close(actual, tangent, spec)


LAYOUTS = {
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: np.flip(x).copy()[(slice(None, None, -1),) * x.ndim],
    "fortran": np.asfortranarray, "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)}


@calls(["float64", "int64"], one_case=True, axes=True)
def test_memory_layout_does_not_matter(spec, case, dtype):
    plain = Call(spec, case, dtype)

    def results(call, lay_out):
        tangents = [None if t is None else lay_out(t).astype(t.dtype) for t in plain.tangents]
        return [*[y.numpy() for y in call.outputs()], *(
            [*call.gradients(), *call.jvp(tangents)] if differentiable(spec) else [])]

    expected = results(plain, lambda x: x)
    for layout, lay_out in in_turn(LAYOUTS.items(), spec):
        with named(lambda layout=layout: layout):
            def laid_out(x, lay_out=lay_out):
                return lay_out(x) if has_axes(x) else x

            call = Call(spec, case, dtype, [laid_out(x) for x in plain.inputs])
            for one, other in zip(results(call, laid_out), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@calls(["float64"], moving=1, axes=True, turn=0)
def test_lists_of_tensors_are_arrays(spec, case, dtype):
    call = Call(spec, case, dtype)
    tensors = call.as_tensors()
    sources = [tensors[i] for i in call.positions]
    with watching(sources) as tape:
        inputs = [list(x) if i in call.positions and has_axes(call.inputs[i]) else x
                  for i, x in enumerate(tensors)]
        outputs = as_tuple(spec.fn(*inputs, **case.kwargs))
    for y, reference in zip(outputs, call.references, strict=True):
        assert isinstance(y, cytape.Tensor)
        assert_close(y.numpy(), reference, spec)
    seeded = [(y, v) for y, v in zip(outputs, call.cotangents, strict=True) if v is not None]
    gradients = tape.gradient(
        [y for y, _ in seeded], sources, output_gradients=[cytape.constant(v) for _, v in seeded])
    for actual, expected in zip(gradients, call.gradients(), strict=True):
        assert_close(dense(actual).numpy(), expected, spec)


# All modes agree, as the next test shows: `make test` differentiates one of them by differences.
@pytest.mark.parametrize("modes", table([["reverse"]], [["forward", "reverse"]]))
@calls(DOUBLE, keep=lambda spec: spec.order > 1, moving=1, turn=0)
def test_second_order(spec, case, dtype, modes):
    inputs = spec.draw(case, dtype)
    positions = [i for i, x in enumerate(inputs) if spec.has_gradient(i, x)]

    def function(*moving):
        values = list(inputs)
        for i, x in zip(positions, moving, strict=True):
            values[i] = x
        outputs = as_tuple(spec.fn(*values, **case.kwargs))
        return [y for y in outputs if y.dtype.kind in "fc"]

    check_grads(function, [inputs[i] for i in positions], order=2, modes=modes,
                atol=1e-6 * spec.tolerance)


@calls(DOUBLE, keep=lambda spec: spec.order > 1, moving=1, turn=1)
def test_all_ways_to_the_second_derivative_agree(spec, case, dtype):
    """Along two directions u and v: forward or reverse mode, over forward or reverse mode.

    With accumulators that follow a batch or transpose, too, whose rules are differentiated then.
    """
    call = Call(spec, case, dtype)
    positions, us = call.positions, [t for t in call.tangents if t is not None]
    vs = [t for t in Call(spec, case, dtype, call.inputs, seed=1).tangents if t is not None]
    tensors = call.as_tensors()
    sources = [tensors[i] for i in positions]

    def loss():
        outputs = as_tuple(spec.fn(*tensors, **case.kwargs))
        return dot(outputs, call.cotangents)

    def dot(xs, weights):
        total = cytape.constant(0.0)
        for x, weight in zip(xs, weights, strict=True):
            if x is not None and weight is not None:
                total = total + np.sum(np.real(np.conj(weight) * x))
        return total

    def stacked(tangents, use_batch):
        return [np.stack([t, -t]) if use_batch else t for t in tangents]

    def over_forward(recorder, use_batch=False, by_transposition=False):
        inner = recorder_of(sources, stacked(vs, use_batch), use_batch, by_transposition)
        with entered(recorder):
            with entered(inner):
                y = loss()
            tangent = fetch(inner, y.id)
            if tangent is None:
                return cytape.constant(0.0)
            return tangent[0] if use_batch else tangent

    def over_reverse(recorder):
        with entered(recorder):
            inner, y = taped(lambda sources: loss(), sources)
            return dot(map(dense, inner.gradient(y, sources)), vs)

    def by_forward(derivative, use_batch=False, by_transposition=False, **options):
        outer = recorder_of(sources, stacked(us, use_batch), use_batch, by_transposition)
        first = derivative(outer, **options)
        tangent = fetch(outer, first.id)
        if tangent is None:
            return 0.0
        return (tangent[0] if use_batch else tangent).numpy()

    def by_reverse(derivative, **options):
        tape = cytape.GradientTape()
        tape.watch(sources)
        first = derivative(tape, **options)
        return dot(map(dense, tape.gradient(first, sources)), us).numpy()

    first, *others = [
        partial(outer, derivative, **options)
        for outer in (by_forward, by_reverse)
        for derivative, options in [
            (over_reverse, {}), (over_forward, {}), (over_forward, {"use_batch": True}),
            (over_forward, {"by_transposition": True})]
    ]
    others.append(partial(by_forward, over_reverse, use_batch=True))
    others.append(partial(by_forward, over_reverse, by_transposition=True))
    found = [way() for way in [first, *in_turn(others, spec)]]
    scale = 1e-8 * spec.tolerance * max(1, np.abs(found).max())
    np.testing.assert_allclose(found, found[0], atol=scale)


# Functions of complex numbers that have no complex derivative, so no step into the imaginary shows
# it: they take a real or imaginary part, a magnitude or a conjugate. And those whose results are
# complex for real numbers.
NOT_HOLOMORPHIC = {
    "Absolute", "Angle", "Cholesky", "Conjugate", "Gram", "HermitianCompletion", "HermitianEig",
    "IRFFT", "Imag",
    "LeastSquares", "LeastSquaresBack", "PseudoInverse", "PseudoInverseOfRank", "QR", "Real", "SVD",
    "ScipyLinalgCholesky", "ScipyLinalgContinuousLyapunov", "ScipyLinalgDiscreteLyapunov",
    "ScipyLinalgEigh", "ScipyLinalgEighGeneral", "ScipyLinalgEighSubset", "ScipyLinalgLuBack",
    "ScipyLinalgPolarUnitary", "ScipyLinalgPositiveSylvester", "ScipyLinalgSolvehBanded",
    "ScipySparseEigsh", "SignAndLogDeterminant", "Std", "Var", "VectorNorm", "cond", "correlate",
    "cov", "eig", "eigh", "eigvalsh", "hfft", "irfft2", "irfftn", "linalg.vecdot", "matrix_norm",
    "nanstd", "nanvar", "norm", "pinv", "qr", "scipy solve of Hermitian", "std", "svd", "svdvals",
    "var", "vdot", "vecdot", "vecmat", "vector_norm"}
# SciPy's values for a tiny imaginary part have none.
ROUNDED_TO_REAL = {
    "ScipyAiry", "ScipyExpi", "ScipyHyp0f1", "ScipyJv", "ScipyShichi", "ScipySici",
    "ScipySphericalJn", "ScipySphericalYn", "ScipyYv"}
COMPLEX_FOR_REAL = {"Eig", "FFT", "ScipyLambertw", "eigvals", "fft2", "fftn", "ifft2", "ifftn"}


@calls(["float64"], moving=1, turn=0, keep=lambda spec: (
    "complex128" in spec.dtypes
    and spec.op not in NOT_HOLOMORPHIC | COMPLEX_FOR_REAL | ROUNDED_TO_REAL
))
def test_a_step_into_the_imaginary_shows_the_jvp(spec, case, dtype):
    """Im f(x + ih) / h: nothing is subtracted, so it is as exact as f."""
    call = Call(spec, case, dtype)
    step = 1e-20
    moved = [
        x if t is None else np.asarray(x + 1j * step * t)
        for x, t in zip(call.inputs, call.tangents, strict=True)
    ]
    outputs = Call(spec, case, "complex128", moved).outputs()
    for y, actual in zip(outputs, call.jvp(call.tangents), strict=True):
        expected = np.imag(y.numpy()) / step
        scale = spec.tolerance * max(1, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * scale)


@calls(one_case=True, keep=lambda spec: not differentiable(spec))
def test_step_functions_are_not_connected(spec, case, dtype):
    tensors = [cytape.constant(x) for x in spec.draw(case, dtype)]
    with watching([x for x in tensors if x.dtype.kind in "fc"]) as tape:
        outputs = as_tuple(spec.fn(*tensors, **case.kwargs))
    assert tape.gradient(outputs, tensors) == [None] * len(tensors)
    for by_transposition in (False, True):
        tangents = [np.ones(x.shape, x.dtype) if x.dtype.kind in "fc" else None for x in tensors]
        _, found = followed(
            lambda *xs: spec.fn(*xs, **case.kwargs), tensors, tangents,
            by_transposition=by_transposition)
        assert found == (None,) * len(outputs)
