"""Records of the ops that update parts of a tensor."""

import numpy as np

from cytape.ops.updates import part_updates
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case
from tests.ops.specs_indexing import INDICES
from tests.ops.specs_symbolic import INDEX_CASES

SHAPE = (4, 3, 2)
ONCE = [index for index in INDICES
        if len(set(places := np.arange(24).reshape(SHAPE)[index].ravel().tolist())) == len(places)]


def at(index, *values):
    if isinstance(index, tuple):
        return tuple([at(part, *values) for part in index])
    if isinstance(index, slice):
        return slice(*[at(bound, *values) for bound in (index.start, index.stop, index.step)])
    if not isinstance(index, str):
        return index
    value = values[int(index[1:])]
    return int(value) if np.ndim(value) == 0 else value


def set_item(x, part, *values, index):
    result = np.array(x)
    result[at(index, *values)] = part
    return result


def record(name, fn, ref, cases, **options):
    return OpSpec(name, fn, ref, cases, dtypes=FLOATS_AND_COMPLEX, **options)


def shape_of(index, shape=SHAPE):
    return np.zeros(shape)[index].shape


SPECS = [
    record("SetItem", part_updates.set_item_op, set_item, [
        case(SHAPE, shape_of(index), index=index) for index in ONCE
    ] + [case(SHAPE, (2,), index=slice(1, 3)), case(SHAPE, (), index=Ellipsis),
         case(SHAPE, (3, 1), index=(slice(None), slice(None), slice(None, None, -1))),
         case((), (), index=()), case((0, 3), (3,), index=slice(None))]),
    record("ClearItem", part_updates.clear_item_op, lambda x, *, index: set_item(x, 0, index=index),
           [case(SHAPE, index=index) for index in INDICES]),
    record("TakeItem", part_updates.take_item_op, lambda x, *, index: x[index], [
        case(SHAPE, index=index) for index in INDICES]),
    record("SetItem at tensors", part_updates.set_item_op, set_item, [
        case((3, 2), (2,), np.array(1), index="@0"),
        case((3, 2), (), np.array(-1), index=(slice(None), "@0")),
    ]),
    record("SetItem of slices", part_updates.set_item_op, set_item, [
        case((3, 4), (4,), np.array(1), index=slice("@0", None)),
        case((3, 4), (2, 1), np.array(2), index=(slice(None, "@0"), slice(1, 3))),
    ]),
    record("ClearItem at tensors", part_updates.clear_item_op,
           lambda x, *values, index: set_item(x, 0, *values, index=index), [
        case(shape, *values, index=index) for shape, index, values in INDEX_CASES]),
    OpSpec("WrittenBy", part_updates.written_by_op, part_updates.written_by_op.forward, [
        case((3, 2), np.array([0, 2, 0]), index="@0")], differentiable=False),
    OpSpec("ShowsMemory", part_updates.shows_memory_op, part_updates.shows_memory_op.forward, [
        case(np.arange(6).reshape(2, 3), np.arange(6), order="C", is_raveled=False),
        case(np.arange(6).reshape(3, 2).T, np.arange(6), order="C", is_raveled=True),
    ], differentiable=False),
    OpSpec("PlacesOf", part_updates.places_op, part_updates.places_op.forward, [
        case((3, 2), np.array([0, 2, 0]), index="@0")], differentiable=False),
]
