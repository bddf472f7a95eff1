"""Derivatives without a rule: transposes of structural ops, and gradients computed at run time.

The op `Transposed` exchanges the regions that a structural op reads and writes.

If a vjp returns NotImplemented, because it needs unknown extents, one node is built that calls the
op under a tape when the graph runs, and returns the gradients. It runs the op twice, but works for
every op and shape. Its own derivative, and a tangent without a jvp, are built in the same way.
"""

from functools import partial

from cytape.errors import InvalidGradientError
from cytape.ops.adjoints.conform import broadcast_to, fill_like, identity_op
from cytape.ops.calls.op_call import NotSaved
from cytape.ops.calls.operands import wide
from cytape.ops.engine import batch_axis, tensor_vspace
from cytape.ops.engine.op_kinds import ANY_OUTPUT, OPS, enter, general
from cytape.ops.engine.structural_op import StructuralOp, structural_op
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import constant
from cytape.tensor.recording.state import Recorder, building_into, unrecorded
from cytape.tensor.tensor import Tensor, tensor_of
from cytape.tensor.values.spec import symbolic_spec

NAME = "DeferredVjp"


def _function(of, attrs):
    """Return the op of a name as a function of tensors, composed of recordable ops."""
    return partial(_gradients if of == NAME else OPS[of], **attrs)


def _gradients(*tensors, of, attrs, n_inputs, needs, seeded=None):
    """Return the gradients of an op in the inputs that need them, given those of its outputs.

    `seeded`: which outputs have gradients; None for all.
    """
    return gradients_by_tape(
        _function(of, attrs), tensors[:n_inputs], needs, tensors[n_inputs:], seeded)


def gradients_by_tape(function, inputs, needs, seeds, seeded=None):
    """Return the gradients of a function of tensors in those inputs that need them."""
    ids = [x.id for x in inputs]
    inputs = [  # an input that occurs twice gets a gradient for each place
        identity_op(x) if x.id in ids[:i] else x for i, x in enumerate(inputs)]
    wanted = [x for x, needed in zip(inputs, needs, strict=True) if needed]
    recorder = Recorder()
    for x in wanted:
        recorder.watch(x.id)
    with recorder:
        outputs = function(*inputs)
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    if seeded is not None:
        outputs = [y for y, has_seed in zip(outputs, seeded, strict=True) if has_seed]
    if len(seeds) != len(outputs) or any(
            g.spec.known and y.spec.known and g.shape != y.shape
            for g, y in zip(seeds, outputs, strict=True)):
        raise ValueError(
            f"{len(outputs)} outputs of shapes {[y.shape for y in outputs]} have gradients of "
            f"shapes {[g.shape for g in seeds]}")
    found = tensor_vspace.compute_gradients(recorder, outputs, wanted, list(seeds))
    return tuple(
        fill_like(x, 0) if g is None else g.to_tensor() if isinstance(g, IndexedSlices) else g
        for g, x in zip(found, wanted, strict=True)
    )


def _forward(*arrays, **attrs):
    with building_into(None), unrecorded():
        results = _gradients(*map(tensor_of, arrays), **attrs)
    return tuple(result.numpy() for result in results)


def _shape_rule(*specs, of, attrs, n_inputs, needs, seeded=None):
    return tuple(spec for spec, needed in zip(specs, needs, strict=False) if needed)


def deferred(op, gradients, seeds):
    """Return gradients, those that a rule left out computed by one node at run time."""
    late = [x is NotImplemented and needed for x, needed in zip(gradients, op.needs, strict=True)]
    if op.type != NAME and any(late) and all(spec.known for spec in op.input_specs):
        raise InvalidGradientError(
            f"the gradient function of op {op.type!r} returned NotImplemented, but all extents of "
            "the inputs are known"
        )
    results = iter(_node(op, _inputs(op), seeds, late) if any(late) else ())
    return [
        next(results) if is_late else None if x is NotImplemented else x
        for x, is_late in zip(gradients, late, strict=True)
    ]


def _inputs(op):
    """Return the inputs; stand-ins of the same spec for those that no rule reads."""
    return [
        _filled(spec) if type(x) is NotSaved else x
        for x, spec in zip(op.inputs, op.input_specs, strict=True)
    ]


def _filled(spec):
    return broadcast_to(constant(0, spec.dtype), spec.extents)


def _node(op, inputs, seeds, needs):
    seeded = tuple([seed is not None for seed in seeds])
    options = {} if all(seeded) else {"seeded": seeded}
    return deferred_vjp_op(
        *inputs, *[seed for seed in seeds if seed is not None], of=op.op.name, attrs=op.attrs,
        n_inputs=len(inputs), needs=tuple(needs), **options,
    )


deferred_vjp_op = general(
    NAME, _forward, vjp=lambda op, *seeds: NotImplemented, shape_rule=_shape_rule
)


def composed(name, forward, composition, shape_rule, vjp_of_arrays=None, jvp=None, **facts):
    """Declare an algorithm for arrays that is differentiated as an equivalent composition of ops.

    The composition is called only for derivatives; if there is a vjp of arrays, only for second
    order.
    """

    def vjp(op, *seeds):
        if not all(spec.known for spec in op.input_specs):
            return NotImplemented
        function = partial(composition, **op.attrs)
        seeded, gradients = [g is not None for g in seeds], [g for g in seeds if g is not None]
        if any(isinstance(x, Tensor) for x in (*op.inputs, *gradients)):
            found = iter(gradients_by_tape(function, op.inputs, op.needs, gradients, seeded))
        elif vjp_of_arrays is not None:
            return vjp_of_arrays(op, *seeds)
        else:
            with building_into(None), unrecorded():
                inputs, gradients = (list(map(tensor_of, arrays)) for arrays in (
                    op.inputs, gradients))
                results = gradients_by_tape(function, inputs, op.needs, gradients, seeded)
            found = iter([x.numpy() for x in results])
        return [next(found) if needed else None for needed in op.needs]

    return general(name, forward, vjp=vjp, jvp=jvp, optional_gradients=ANY_OUTPUT,
                   shape_rule=shape_rule, **facts)


def _moved_back(*arrays, **attrs):
    wider = [x.astype(wide(x.dtype), copy=False) for x in arrays]
    results = transposed_moves_op.move(*wider, **attrs)
    results = tuple(x.astype(arrays[0].dtype, copy=False) for x in results)
    return results if len(results) > 1 else results[0]


def _specs_of_inputs(*gradients, of, shapes, attrs):
    specs = tuple(symbolic_spec(shape, gradients[0].dtype) for shape in shapes)
    return specs if len(specs) > 1 else specs[0]


def _transposed_in_batch(call):
    """Transpose a structural op for all members of a batch."""
    op, seeds = structural_op(call.attrs["of"]), batch_axis.repeated(call)
    if seeds is None or call.extent is None or op.batch is None:
        return NotImplemented
    seeds = [x if isinstance(x, Tensor) else tensor_of(x) for x in seeds]  # tangents may be arrays
    zeros = [broadcast_to(constant(0, seeds[0].dtype), (call.extent, *shape))
             for shape in call.attrs["shapes"]]
    recorder = Recorder()
    for x in zeros:
        recorder.watch(x.id)
    with recorder:
        moved = op.batch(batch_axis.BatchedCall(
            op, dict(call.attrs["attrs"]), zeros, [True] * len(zeros), call.output_specs,
            call.input_specs, call.extent))
    if moved is NotImplemented:
        return NotImplemented
    found = tensor_vspace.compute_gradients(
        recorder, [moved] if isinstance(moved, Tensor) else list(moved), zeros, seeds)
    found = [zero if x is None else x for x, zero in zip(found, zeros, strict=True)]
    return found if len(found) > 1 else found[0]


transposed_moves_op = enter(
    StructuralOp(
        "Transposed", _moved_back, None, shape_rule=_specs_of_inputs,
        transpose=lambda op, *gs: structural_op(op.attrs["of"])(*gs, **dict(op.attrs["attrs"])),
    )
).described(batch=_transposed_in_batch)  # fmt: skip


def structural_vjp(op, *gradients):
    """Return the gradients of a structural op's inputs."""
    if not all(spec.known for spec in op.input_specs):
        return NotImplemented
    return transposed_moves_op(
        *gradients, of=op.op.key, shapes=tuple(spec.shape for spec in op.input_specs),
        attrs=tuple(op.attrs.items()),
    )  # fmt: skip
