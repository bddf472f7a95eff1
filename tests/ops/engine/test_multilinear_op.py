"""MultilinearOp: all modes of a product follow from its transposes."""

import numpy as np
import pytest

import cytape
from cytape.errors import InvalidGradientError
from cytape.graph import Graph, Session
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.engine.user_rules import register_jvp
from cytape.tensor.values.spec import Spec
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.forward_mode import followed

# For stacks of matrices and of vectors; the attribute has to arrive everywhere.
matvec = multilinear(
    "DeclaredMatVec", lambda m, v, *, times: times * (m @ v[..., None])[..., 0],
    lambda op, g, v: op.attrs["times"] * g[..., :, None] * v[..., None, :],
    lambda op, m, g: matvec(np.swapaxes(m, -1, -2), g, **op.attrs), core=(2, 1))
# Of three operands, without stacks.
form = multilinear(
    "DeclaredForm", lambda x, m, y: x @ m @ y, lambda op, g, m, y: g * (m @ y),
    lambda op, x, g, y: g * np.outer(x, y), lambda op, x, m, g: g * (x @ m),
    shape_rule=lambda x, m, y: Spec.of((), x.dtype))
# Linear in the first operand alone.
scaled = multilinear("DeclaredScaled", lambda x, y: x * np.abs(y),
                     lambda op, g, y: g * np.abs(y), None, core=(0, 0))

RNG = np.random.default_rng(0)
M, V = RNG.standard_normal((3, 2)), RNG.standard_normal(2)
N, W = RNG.standard_normal((4, 1, 3, 2)), RNG.standard_normal((5, 2))


def product(m, v):
    return matvec(m, v, times=2.0)


@each("m, v", [
    (M, V), (N, V), (M, W), (N, W), (N[:1], W), (N[0, 0], W[:1]), (M[:0], V), (N[:0], V)])
def test_both_modes_to_second_order(m, v):
    np.testing.assert_allclose(product(m, v), 2 * np.einsum("...ij,...j->...i", m, v))
    check_grads(product, [m, v])
    check_grads(lambda v: np.sum(product(m, v) ** 2), [v])
    check_grads(lambda m: np.sum(product(m, v) ** 2), [m])


def test_both_operands_depend_on_one():
    check_grads(lambda x: product(x[:, None] * x, x), [np.array([0.5, 2.0, -1.0])])
    hessian = cytape.hessian(lambda x: form(x, M.T @ M, x))(V)
    np.testing.assert_allclose(hessian, 2 * M.T @ M)


def test_as_many_operands_as_there_are_transposes():
    x, y = np.arange(1.0, 4.0), V
    check_grads(form, [x, M, y])
    check_grads(lambda x: form(x, np.outer(x, x), x), [x])


@each("dtype", ["complex64", "complex128"])
def test_complex_operands_are_conjugated(dtype):
    m, v = M + 1j * M[::-1], V - 2j * V[::-1]
    m, v = m.astype(dtype), v.astype(dtype)
    seed = np.array([1, 2j, 3 - 1j], dtype)
    _, pullback = cytape.vjp(product, m, v)
    of_m, of_v = pullback(seed)
    np.testing.assert_allclose(of_m, 2 * np.outer(seed, v.conj()), 1e-5)
    np.testing.assert_allclose(of_v, 2 * m.conj().T @ seed, 1e-5)
    assert of_m.dtype == of_v.dtype == dtype
    real = cytape.grad(lambda v: product(m, v)[0].real)(v.real)  # a real operand's is real
    np.testing.assert_allclose(real, 2 * m[0].real, 1e-5)
    assert real.dtype.kind == "f"
    check_grads(product, [m, v])


def test_a_tangent_that_stands_still_is_not_multiplied():
    """Zero times infinity would be NaN."""
    m, v = np.array([[np.inf, 1.0]]), np.array([1.0, 2.0])
    _, tangent = cytape.jvp(lambda m: product(m, v), (m,), (np.ones((1, 2)),))
    np.testing.assert_array_equal(tangent, [6])
    calls = []
    counted = multilinear(
        "DeclaredCountedProduct", lambda x, y: calls.append(1) or x * y,
        lambda op, g, y: g * y, lambda op, x, g: x * g)
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    _, (tangent,) = followed(counted, (x, y), (np.float64(1), None))
    assert tangent.item() == 3 and len(calls) == 2  # itself, and one term


def test_an_operand_may_be_a_constant_a_number_or_integers():
    integers = np.array([[1, 2], [3, 4]])
    for m in (integers, cytape.constant(integers), integers.astype(bool) * integers):
        np.testing.assert_array_equal(cytape.grad(lambda v, m=m: product(m, v)[0])(V), [2.0, 4.0])
        _, tangent = cytape.jvp(lambda v, m=m: product(m, v), (V,), (np.ones(2),))
        np.testing.assert_array_equal(tangent, [6, 14])
    with cytape.GradientTape() as tape:
        x = cytape.Variable(3.0)
        y = scaled(x, 2)
    assert tape.gradient(y, x).item() == 2


def test_stacks_without_core_are_told_of_it():
    flat = multilinear(
        "DeclaredWithoutCore", lambda m, v: (m @ v[..., None])[..., 0],
        lambda op, g, v: np.outer(g, v), lambda op, m, g: m.T @ g.reshape(3))
    np.testing.assert_array_equal(cytape.grad(lambda m: flat(m, V)[0])(M), [V, 0 * V, 0 * V])
    stack = np.stack([M, M, M])
    with pytest.raises(InvalidGradientError, match=r"Core' in its input 0 .* core="):
        cytape.grad(lambda m: np.sum(flat(m, V)))(stack)
    with pytest.raises(ValueError, match="reshape") as caught:
        cytape.grad(lambda v: np.sum(flat(stack, v)))(V)
    assert "in input 1; if operands are stacks" in caught.value.__notes__[0]


def test_an_operand_whose_transpose_is_none_stands_still():
    x, y = cytape.constant(3.0), cytape.constant(-2.0 + 0j)
    with cytape.GradientTape() as tape:
        tape.watch([x, y])
        z = scaled(x, y)
    assert tape.gradient(z, [x, y])[1] is None
    _, (tangent,) = followed(scaled, (x, y), (None, np.complex128(1)))
    assert tangent is None
    _, (tangent,) = followed(scaled, (x, y), (np.float64(1), np.complex128(1)))
    assert tangent.item() == 2
    value, derivatives = cytape.jet(lambda t: scaled(t * t, t), 3.0, [1.0, 0.0, 0.0])
    assert [float(d) for d in derivatives] == [18, 6, 0]  # 3 t**2, 3 held


def test_only_what_a_transpose_reads_is_saved():
    assert 0 not in scaled.saved_inputs and 1 in scaled.saved_inputs
    assert matvec.saved_inputs is None


@each("m, v", [(M, V), (N, V), (M, W), (N, W)])
def test_batches_of_directions(m, v):
    for position in range(2):
        found = cytape.jacfwd(product, argnums=position)(m, v)
        x = (m, v)[position]
        columns = []
        for unit in np.eye(x.size).reshape(-1, *x.shape):
            operands = [m, v]
            operands[position] = unit
            columns.append(product(*operands))
        np.testing.assert_allclose(found.reshape(*product(m, v).shape, -1), np.stack(columns, -1))


def test_a_batch_is_one_product():
    calls = []
    counted = multilinear(
        "DeclaredBatch", lambda x, y: calls.append(1) or np.cross(x, y),
        lambda op, g, y: counted(y, g), lambda op, x, g: counted(g, x), core=(1, 1))
    cytape.jacfwd(lambda x: counted(x, np.ones(3)))(np.arange(3.0))
    assert len(calls) == 2
    one_by_one = multilinear(
        "DeclaredNoBatch", lambda x, y: x * y, lambda op, g, y: g * y, lambda op, x, g: x * g,
        batched=lambda op, position, x, y: NotImplemented)
    jacobian = cytape.jacfwd(lambda x: one_by_one(x, x))(np.arange(3.0))
    np.testing.assert_array_equal(jacobian, np.diag([0.0, 2, 4]))


def test_a_rule_for_batches_is_told_which_operand_moves():
    seen = []

    def batched(op, position, x, y):
        seen.append((position, x.shape, y.shape, op.output_specs[0].shape))
        return x[:, None] * y if position == 0 else x * y

    op = multilinear("DeclaredOwnBatch", lambda x, y: x * y, lambda op, g, y: np.sum(g * y),
                     lambda op, x, g: x * g, batched=batched)
    jacobian = cytape.jacfwd(lambda x: op(x[0], x[1:]))(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(jacobian, [[3, 2]])
    assert seen == [(0, (2,), (1,), (1,)), (1, (), (2, 1), (1,))]


def test_in_functions_conditionals_and_loops():
    def repeated(v):
        return cytape.while_loop(lambda v: np.sum(v**2) < 100, lambda v: product(M.T @ M, v), v)

    def chosen(v):
        return cytape.cond(v[0] > 0, lambda: product(M, v), lambda: product(2 * M, v))

    for f in (lambda v: product(M, v), repeated, chosen):
        def loss(v, f=f):
            return np.sum(f(v) ** 2)

        traced = cytape.function(loss)
        eager, second = cytape.grad(loss)(V), cytape.hessian(loss)(V)
        np.testing.assert_allclose(cytape.grad(traced)(V), eager)
        np.testing.assert_allclose(cytape.function(cytape.grad(loss))(V), eager)
        np.testing.assert_allclose(cytape.hessian(traced)(V), second)
        _, tangent = cytape.jvp(traced, (V,), (np.ones(2),))
        np.testing.assert_allclose(tangent, eager.sum())


@each("shapes", [((3, 2), (2,)), ((None, 2), (2,)), ((None, None, None), (None, None))])
def test_in_graphs_with_and_without_extents(shapes):
    graph = Graph()
    with graph.as_default():
        m, v = (graph.placeholder("float64", shape) for shape in shapes)
        y = product(m, v)
        gradients = cytape.gradients(y, [m, v])
    of_m, of_v = (M, V) if len(shapes[0]) == 2 else (N[:, 0], W[:1])
    with Session(graph) as session:
        found = session.run([y, *gradients], {m: of_m, v: of_v})
    value, pullback = cytape.vjp(product, of_m, of_v)
    for one, other in zip(found, [value, *pullback(np.ones(value.shape))], strict=True):
        np.testing.assert_allclose(one, other)
        assert one.shape == other.shape


def test_transposes_that_need_unknown_extents_are_called_when_the_graph_runs():
    tiled = multilinear(
        "DeclaredTiledTimes", lambda x, y: np.tile(x, 2) * y,
        lambda op, g, y: np.sum(np.reshape(g * y, (2, op.input_specs[0].shape[0])), 0)
        if op.input_specs[0].known else NotImplemented,
        lambda op, x, g: np.tile(x, 2) * g, shape_rule=lambda x, y: y)
    x, y = np.arange(1.0, 4.0), np.arange(6.0)

    def loss(x, y):
        return np.sum(tiled(x, y) ** 2)

    check_grads(loss, [x, y])
    signature = [Spec.of((None,), "float64")] * 2
    traced = cytape.function(cytape.grad(loss, argnums=(0, 1)), input_signature=signature)
    expected = cytape.grad(loss, argnums=(0, 1))(x, y)
    for one, other in zip(traced(x, y), expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_several_results():
    both = multilinear(
        "DeclaredBothProducts", lambda x, y: (x * y, x @ y),
        lambda op, gs, y: gs[0] * y + gs[1] * y, lambda op, x, gs: x * gs[0] + x * gs[1])
    x, y = np.arange(3.0), np.arange(1.0, 4.0)
    check_grads(both, [x, y])
    check_grads(lambda x: both(x, x * y), [x])
    check_grads(lambda x: both(x, y)[1], [x])
    _, (_, second) = cytape.jet(lambda t: both(t * x, t * y)[1], 3.0, [1.0, 0.0])
    assert second.item() == 2 * x @ y


def test_taylor_mode():
    def f(t):
        return form(np.stack([t, t]), np.eye(2), np.stack([t, 1.0 + t]))

    _, derivatives = cytape.jet(f, 2.0, [1.0, 0.0, 0.0])  # of t**2 + t (1 + t)
    assert [float(d) for d in derivatives] == [9, 4, 0]


def test_a_gradient_is_summed_in_single_precision():
    ones = np.ones((5000, 1), "float16")
    gradient = cytape.grad(lambda x: np.sum(scaled(x, ones).astype("float32")))(ones[0])
    np.testing.assert_array_equal(gradient, [5000])


@pytest.mark.filterwarnings("ignore:an op named")
def test_wrong_declarations():
    def declare(*transposes, **options):
        return multilinear("DeclaredWrongProduct", np.multiply, *transposes, **options)

    def own(op, *factors):
        return factors[0]

    for transposes in ((), (None, None), (own, 3)):
        with pytest.raises(TypeError, match="'DeclaredWrongProduct' needs a transpose"):
            declare(*transposes)
    with pytest.raises(ValueError, match="2 transposes, but core has entries for 1"):
        declare(own, own, core=(1,))
    for result, message in [(None, "input 0 returned None"), (np.ones(3), "has shape"),
                            (np.ones((2, 3)), "has shape"), (1.0, "has shape")]:
        for core in (None, (0, 0)):
            op = declare(lambda op, g, y, result=result: result, own, core=core)
            with pytest.raises(InvalidGradientError, match=message):
                cytape.grad(lambda x, op=op: np.sum(op(x, 2.0)))(np.ones(2))
    never = declare(lambda op, g, y: NotImplemented, own)
    with pytest.raises(InvalidGradientError, match="all extents of the inputs are known"):
        cytape.grad(lambda x: np.sum(never(x, 2.0)))(np.ones(2))
    with pytest.raises(ValueError, match="by cytape itself"):
        multilinear("MatMul", np.matmul, own, own)
    with pytest.raises(ValueError, match="has a jvp already"):
        register_jvp("DeclaredMatVec")(own)


def test_products_of_the_package():
    for name in ("MatMul", "Tensordot", "Einsum", "Conv2D", "Gather", "ScatterAdd"):
        op = cytape.ops.engine.op_kinds.OPS[name]
        assert isinstance(op, MultilinearOp) and op.is_linear_in(0)
        assert op.is_linear_in(1) == (name not in ("Gather", "ScatterAdd"))


def test_an_operand_that_moves_needs_a_transpose_or_none():
    product = multilinear("DeclaredHalfProduct", lambda x, y: x * y, lambda op, g, y: g * y)
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    assert cytape.grad(lambda x: product(x, y))(x) == 3.0
    for differentiate in (
            lambda f: cytape.grad(f)(y), lambda f: cytape.jvp(f, (y,), (1.0,)),
            lambda f: cytape.function(cytape.grad(f))(y)):
        with pytest.raises(InvalidGradientError, match="with respect to its input 1"):
            differentiate(lambda y: product(x, y) + y**2)


def test_several_outputs_stand_still_with_the_operand_that_would_move_them():
    both = multilinear(
        "DeclaredDouble", lambda x, p: (x * p, 2 * x * p), lambda op, g, p: (g[0] + 2 * g[1]) * p,
        None)
    x, p = cytape.constant([3.0, 4.0]), cytape.constant([1.0, 2.0])
    with cytape.ForwardAccumulator(p, cytape.constant([1.0, 1.0])) as accumulator:
        outputs = both(x, p)
    assert [accumulator.jvp(y) for y in outputs] == [None, None]
    assert cytape.jvp(lambda x: both(x, p)[1], (x,), (x,))[1].tolist() == [6.0, 16.0]


def test_an_attribute_that_contains_itself_is_an_error():
    op = multilinear("DeclaredConfigured", lambda x, y, *, how: x * y,
                     lambda op, g, y: g * y, lambda op, x, g: g * x)
    endless = []
    endless.append(endless)
    x = cytape.constant(2.0)
    for call in (cytape.grad(lambda x: op(x, x, how=endless)),
                 cytape.function(lambda x: op(x, x, how=endless))):
        with pytest.raises(RecursionError, match="in an attribute"):
            call(x)
