"""Optimizers of all rules: structures, options, state and its files, graphs, errors."""

import io

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.optimizers import SGD, Adam, Lion, Optimizer
from tests.cases import each


def structure():
    return {"layers": [(np.ones((2, 3)), cytape.Variable(np.ones(3)))], "scale": np.array(2.0)}


def like(parameters, value):
    return cytape.tensor.nest.map_structure(lambda p: np.full(p.shape, value), parameters)


def values(parameters):
    return [np.array(p) for p in cytape.tensor.nest.flatten(parameters)]


def test_structures():
    parameters, opt = structure(), SGD(0.5)
    gradients = like(parameters, 1.0)
    gradients["scale"] = None
    assert opt.update(parameters, gradients) is None
    weights, bias, scale = values(parameters)
    assert np.all(weights == 0.5)
    assert np.all(bias == 0.5)
    assert scale == 2.0
    assert opt.steps == 1


def test_dataclasses():
    from dataclasses import dataclass

    @dataclass
    class Line:
        slope: np.ndarray
        offset: np.ndarray

    line = Line(np.array(2.0), np.array(1.0))
    for _ in range(3):
        SGD(0.1).update(line, cytape.grad(lambda line: line.slope**2 + line.offset)(line))
    assert line.slope == pytest.approx(2.0 * 0.8**3)
    assert line.offset == pytest.approx(0.7)


def test_gradients_of_tapes_and_transforms():
    v, w = cytape.Variable(np.ones(3)), np.ones(3)
    table = cytape.Variable(np.ones((4, 2)))
    with cytape.GradientTape() as tape:
        loss = np.sum(v**2) + np.sum(cytape.gather(table, [1, 1]))
    gradients = tape.gradient(loss, [v, table])
    assert isinstance(gradients[1], cytape.IndexedSlices)
    SGD(0.25).apply_gradients(zip(gradients, [v, table], strict=True))
    SGD(0.25).update(w, cytape.grad(lambda w: np.sum(w**2))(w))
    assert v.numpy().tolist() == w.tolist() == [0.5] * 3
    assert table.numpy()[:, 0].tolist() == [1, 0.5, 1, 1]


def test_gradients_without_their_variables_are_refused():
    v = cytape.Variable([1.0, 2.0])
    for gradients in v * v, [v * v], [None, v]:
        with pytest.raises(TypeError, match=r"write zip\(gradients, variables\)"):
            SGD(0.25).apply_gradients(gradients)


def test_schedules_are_called_with_the_number_of_steps():
    called, p = [], np.zeros(1)
    opt = SGD(lambda step: called.append(step) or np.float32(step + 1))
    for _ in range(3):
        opt.update(p, np.ones(1))
    assert called == [0, 1, 2]
    assert p == -6
    opt.learning_rate = 0.5
    opt.update(p, np.ones(1))
    assert p == -6.5


@each("options, expected", [
    ({"clip_value": 2.0}, [[2.0, -2.0], [1.0]]),
    ({"clip_norm": 2.5}, [[1.5, -2.0], [1.0]]),
    ({"global_clip_norm": 13.0 ** 0.5}, None),
])
def test_clipping(options, expected):
    p, g = [np.zeros(2), np.zeros(1)], [np.array([3.0, -4.0]), np.array([1.0])]
    SGD(1.0, **options).update(p, g)
    if expected is None:
        expected = [x * (13 / 26) ** 0.5 for x in g]
    for one, other in zip(p, expected, strict=True):
        np.testing.assert_allclose(-one, other)


def test_norms_of_repeated_slices_are_those_of_their_sum():
    p = np.zeros((3, 1))
    slices = cytape.IndexedSlices(np.array([[3.0], [-3.0], [4.0]]), np.array([0, 0, 1]), (3, 1))
    SGD(1.0, global_clip_norm=2.0).update(p, slices)
    assert p.tolist() == [[0], [-2], [0]]


def test_norms_that_are_not_finite_or_overflow_their_dtype():
    p = np.zeros(2)
    SGD(1.0, clip_norm=1.0).update(p, np.array([np.inf, 1.0]))
    assert np.isnan(p).all()
    p = np.zeros(2, np.float32)
    SGD(1.0, global_clip_norm=5.0).update(p, np.array([3e30, 4e30], np.float32))
    np.testing.assert_allclose(p, [-3, -4], 1e-6)


@each("mask", [lambda p: p.ndim > 1, {"layers": [(True, False)], "scale": False}])
def test_decay_masks(mask):
    parameters = structure()
    SGD(0.5, weight_decay=0.5, decay_mask=mask).update(parameters, like(parameters, 0.0))
    weights, bias, scale = values(parameters)
    assert np.all(weights == 0.75)
    assert np.all(bias == 1)
    assert scale == 2


@each("mask", [{"layers": [(True, False)], "shift": False}, lambda p: None,
               {"layers": [(True, "no")], "scale": False}, [True, False, False]])
def test_decay_masks_of_other_parameters_are_refused(mask):
    parameters = structure()
    with pytest.raises((TypeError, ValueError), match=r"True or False|structures differ"):
        SGD(0.5, weight_decay=0.5, decay_mask=mask).update(parameters, like(parameters, 0.0))


@each("make", [lambda: SGD(0.1, "0.9"), lambda: Adam(0.1, None), lambda: SGD(0.1, clip_norm="1"),
               lambda: SGD(0.1, weight_decay=np.ones(2)), lambda: SGD(0.1, clip_value=[1.0])])
def test_settings_are_numbers(make):
    with pytest.raises(TypeError, match="must be a number, got"):
        make()


def test_weight_decay_may_be_set_between_steps():
    w, opt = np.ones(2), SGD(0.5)
    opt.update(w, np.zeros(2))
    opt.weight_decay = 0.5
    opt.update(w, np.zeros(2))
    assert w.tolist() == [0.75, 0.75]
    opt.weight_decay = -0.5
    with pytest.raises(ValueError, match="weight_decay must be at least 0"):
        opt.update(w, np.zeros(2))


@each("rate", [float("nan"), -0.1, np.inf, lambda step: np.nan])
def test_learning_rates_that_are_refused(rate):
    p = np.ones(2)
    with pytest.raises(ValueError, match="learning rate must be finite"):
        optimizer = SGD(rate)
        assert callable(rate)  # constants are refused by the constructor
        optimizer.update(p, p)
    assert p.tolist() == [1, 1]


def test_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="^Adam got an unexpected keyword argument 'lr'"):
        Adam(lr=0.1)


def test_a_recorded_gradient_of_an_array_is_refused():
    w = np.ones(3)

    def stepped(x):
        SGD(0.1).update(w, x * np.ones(3))
        return np.sum(w) * x

    with pytest.raises(cytape.errors.DetachedError):
        cytape.grad(stepped)(2.0)
    assert w.tolist() == [1, 1, 1]


def test_files_have_the_name_that_was_given(tmp_path):
    opt, p = Adam(), np.zeros(2)
    opt.update(p, np.ones(2))
    opt.save(tmp_path / "state")
    other = Adam()
    other.load(tmp_path / "state")
    other.build(p)
    np.testing.assert_equal(other.state_dict(), opt.state_dict())
    assert list(other.state_dict()) == ["kind", "steps", "mean", "square"]


def test_state_round_trip_continues_as_if_nothing_had_happened():
    rng = np.random.default_rng(0)
    gradients = [like(structure(), x) for x in rng.normal(size=6)]
    parameters, opt, file = structure(), Adam(0.1), io.BytesIO()
    for g in gradients[:3]:
        opt.update(parameters, g)
    opt.save(file)
    state = opt.state_dict()
    copies = [
        {"layers": [(parameters["layers"][0][0].copy(),
                     cytape.Variable(parameters["layers"][0][1]))],
         "scale": parameters["scale"].copy()} for _ in range(2)]
    late, early = Adam(0.1), Adam(0.1)
    file.seek(0)
    late.load(file)  # before it knows the parameters
    early.build(copies[1])
    early.load_state_dict(state)
    for g in gradients[3:]:
        opt.update(parameters, g)
        late.update(copies[0], g)
        early.update(copies[1], g)
    for copy in copies:
        for one, other in zip(values(parameters), values(copy), strict=True):
            np.testing.assert_array_equal(one, other)
    assert late.steps == early.steps == opt.steps == 6


def test_states_that_do_not_fit_are_refused():
    opt, p = Adam(), [np.zeros(2)]
    opt.update(p, [np.ones(2)])
    state = opt.state_dict()
    assert sorted(state) == ["kind", "mean[0]", "square[0]", "steps"]
    for change, message in [
            ({"kind": "Lion"}, "that of Lion, not of Adam"),
            ({"steps": -1}, "the state has -1 steps"),
            ({"mean[0]": np.zeros(3)}, r"mean\[0\] has shape \(2,\)"),
            ({"mean[0]": np.zeros(2, "f4")}, "float32"),
            ({"mean[1]": np.zeros(2)}, "with mean")]:
        with pytest.raises(ValueError, match=message):
            opt.load_state_dict(state | change)
        waiting = Adam()
        if not {"kind", "steps"} & change.keys():
            waiting.load_state_dict(state | change)
            with pytest.raises(ValueError, match=message):
                waiting.update(p, [np.ones(2)])
    with pytest.raises(ValueError, match="'steps' missing"):
        opt.load_state_dict({"kind": "Adam"})
    np.testing.assert_array_equal(opt.state_dict()["mean[0]"], state["mean[0]"])
    assert not np.shares_memory(opt.state_dict()["mean[0]"], state["mean[0]"])


@each("gradients, error, message", [
    ([np.ones(2), np.ones(2)], ValueError, r"parameter \[1\] has the shape \(3,\)"),
    ([np.ones(2), np.ones(3) * 1j], TypeError, "real numbers"),
    ([np.ones(2)], ValueError, "different structures|structure|length"),
    ([None, None], ValueError, "all are None"),
    ([cytape.IndexedSlices(np.ones(1), np.array([1.7]), (2,)), None], TypeError,
     "indices of the gradient of parameter .0. must be integers, got float64"),
])
def test_gradients_that_are_refused_change_nothing(gradients, error, message):
    p = [np.ones(2), np.ones(3)]
    opt = Adam()
    opt.build(p)
    with pytest.raises(error, match=message):
        opt.update(p, gradients)
    assert all(np.all(x == 1) for x in p)
    assert opt.steps == 0


def test_an_optimizer_is_bound_to_its_parameters():
    v, w = cytape.Variable(1.0), cytape.Variable(1.0)
    opt = Adam()
    opt.update([v], [1.0])
    with pytest.raises(ValueError, match="not the variable"):
        opt.update([w], [1.0])
    with pytest.raises(ValueError, match="bound to 1 parameters, got 2"):
        opt.update([v, w], [1.0, 1.0])
    opt = Adam()
    opt.update(np.ones(2), np.ones(2))
    opt.update(np.ones(2), np.ones(2))  # a new array
    with pytest.raises(ValueError, match="has shape"):
        opt.update(np.ones(3), np.ones(3))


@each("options, message", [
    ({"clip_norm": -1.0}, "must be positive"), ({"clip_value": 1.0, "clip_norm": 1.0}, "one of"),
    ({"weight_decay": -1.0}, "at least 0"), ({"weight_decay": float("nan")}, "at least 0")])
def test_options_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SGD(0.1, **options)


def test_minimize_takes_one_number():
    v = cytape.Variable(np.ones(3))
    with pytest.raises(ValueError, match="one number, got shape"):
        SGD(0.5).minimize(lambda: v * v, v)
    with pytest.raises(ValueError, match="return statement forgotten"):
        SGD(0.5).minimize(lambda: None, v)
    np.testing.assert_array_equal(v.numpy(), 1)
    SGD(0.5).minimize(lambda: (v * v)[:1], v)


def test_minimize_takes_variables():
    with pytest.raises(TypeError, match="value_and_grad"):
        SGD().minimize(lambda: 1.0, [np.ones(2)])
    v, w = cytape.Variable(3.0), cytape.Variable(1.0, trainable=False)
    assert float(SGD(0.5).minimize(lambda: v * v + 2 * w, {"v": v, "w": w})) == 11.0
    assert float(v) == 0.0
    assert float(w) == 0.0


def trained(step, runs=3):
    v = cytape.Variable(np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 2.0]]))
    opt = Adam(lambda step: 0.1 / (step + 1), global_clip_norm=5.0)
    for _ in range(runs):
        step(v, opt)
    return v.numpy(), opt.state_dict()


def loss_of(v):
    return cnp.sum(cytape.gather(v, [0, 2, 2]) ** 2)


def eager(v, opt):
    opt.minimize(lambda: loss_of(v), v)


class Traced:
    def __init__(self):
        self.function = None

    def __call__(self, v, opt):
        if self.function is None:
            self.function = cytape.function(lambda: (eager(v, opt), v + 0.0)[1])
        result = self.function()
        np.testing.assert_array_equal(result, v)  # reads after the step see it


class InSession:
    def __init__(self):
        self.session = None

    def __call__(self, v, opt):
        if self.session is None:
            with cytape.Graph().as_default() as graph:
                (gradient,) = cytape.gradients(loss_of(v), [v])
                self.fetch = opt.update(v, gradient)
            self.session = cytape.Session(graph)
        self.session.run(self.fetch)


def in_loop(v, opt):
    def body(i):
        eager(v, opt)
        return i + 1

    cytape.function(lambda: cytape.while_loop(lambda i: i < 3, body, [0]))()


@each("way", [Traced(), InSession()])
def test_steps_in_functions_and_graphs(way):
    for one, other in zip(trained(way), trained(eager), strict=True):
        np.testing.assert_equal(one, other)


def test_steps_in_a_loop():
    np.testing.assert_equal(trained(in_loop, 1), trained(eager))


def test_each_run_makes_a_step_along_a_constant_gradient():
    v, opt = cytape.Variable(np.zeros(2)), SGD(1.0)

    @cytape.function
    def step(proceeds):
        before = v.value()
        cytape.cond(proceeds, lambda: (opt.update(v, -np.ones(2)), 0.0)[1], lambda: 0.0)
        return before, v.value()

    found = [[float(x[0]) for x in step(proceeds)] for proceeds in (True, False, True)]
    assert found == [[0, 1], [1, 1], [1, 2]]
    assert opt.steps == 2


def stepping(wrap, w):
    """Return a gradient through calls that make steps, the values after it, and the state."""
    opt, average = SGD(0.1, momentum=0.9), cytape.optimizers.ParameterAverage()

    def loss(x):
        opt.update(w, cytape.stop_gradient(2 * x).numpy() if isinstance(w, np.ndarray) else 2 * x)
        average.update(w)
        return np.sum(np.sin(x) * w)

    call, x = wrap(loss), cytape.constant([3.0, 4.0])
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = call(x) + call(2.0 * x)
    gradients = tape.gradient(y, x), tape.gradient(y, x)
    return [*gradients, w, *opt.state_dict().values(), *average.state_dict().values()]


@each("wrap, parameter", [
    (cytape.checkpoint, cytape.Variable),
    (lambda f: cytape.checkpoint(cytape.checkpoint(f)), cytape.Variable),
    (lambda f: cytape.checkpoint(cytape.function(f)), cytape.Variable),
    (lambda f: cytape.function(cytape.checkpoint(f)), cytape.Variable),
    (cytape.checkpoint, np.array)])
def test_recomputed_steps_are_made_once(wrap, parameter):
    expected = stepping(lambda f: f, parameter([1.0, 2.0]))
    for one, other in zip(stepping(wrap, parameter([1.0, 2.0])), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_arrays_in_a_function_are_refused():
    p, opt = np.ones(2), SGD(0.1)
    with pytest.raises(TypeError, match="must be cytape.Variable"):
        cytape.function(lambda g: opt.update([p], [g]))(np.ones(2))


def test_an_outer_gradient_does_not_pass_through_a_step():
    v = cytape.Variable(2.0)
    with pytest.raises(cytape.errors.DetachedError):
        cytape.grad(lambda x: (Lion().update(v, x * 1.0), v.value())[1])(3.0)
    with pytest.raises(NotImplementedError):
        Optimizer(0.1).update(np.ones(1), np.ones(1))


def test_arguments_in_another_order_are_refused():
    opt, v, w = SGD(), cytape.Variable([1.0]), np.ones(1)
    swapped = [
        lambda: opt.update([w], [v]), lambda: opt.update({"w": w}, {"w": v}),
        lambda: opt.apply_gradients(zip([v], [w], strict=True))]
    for call in swapped:
        with pytest.raises(TypeError, match="in the place of a gradient"):
            call()
    opt.update([v], [w])  # not bound to the arrays
    summed, fixed = cytape.Variable([0.5]), cytape.Variable([0.5], trainable=False)
    for call in (lambda: opt.update([summed], [v]), lambda: SGD().update([fixed], [v])):
        with pytest.raises(TypeError, match="in the place of a gradient"):
            call()
    opt.update([v], [summed])  # a gradient may be a variable
    opt.update([v], [fixed])
    opt.update([v], [v])  # of v * v / 2
    with pytest.raises(AttributeError, match=r"pass them, as in opt.update\("):
        opt.step()
    with pytest.raises(AttributeError, match="^SGD has no attribute 'stepp'$"):
        opt.stepp  # noqa: B018
    with pytest.raises(TypeError, match="must be a number or a function of the step"):
        SGD([v], 0.1)
    with pytest.raises(TypeError, match="called learning_rate"):
        SGD(lr=0.1)
    with pytest.raises(TypeError, match="must be a function without arguments, got Tensor"):
        opt.minimize(v * v, [v])


def test_the_module_lists_its_public_names():
    assert dir(cytape.optimizers) == sorted(cytape.optimizers.__all__)
