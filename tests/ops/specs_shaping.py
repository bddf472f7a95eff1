"""Records of the ops that give new shapes."""

import numpy as np

import cytape.numpy as ops
from cytape.ops.adjoints import conform
from tests.ops.op_specs import FLOATS_AND_COMPLEX, OpSpec, case

SHAPES = [(), (3,), (2, 3), (2, 1, 3), (0, 2)]


def record(name, function, cases, **options):
    return OpSpec(name, getattr(ops, function), getattr(np, function), cases,
                  dtypes=FLOATS_AND_COMPLEX, **options)


def composed(function, cases):
    return record(function, function, cases)


def sum_to(x, shape):
    lead = x.ndim - len(shape)
    stretched = [lead + i for i, n in enumerate(shape) if n == 1]
    return x.sum(axis=(*range(lead), *stretched), keepdims=True).reshape(shape)


SPECS = [
    OpSpec(
        "SumTo", conform.sum_to_op, sum_to,
        [
            case((2, 3, 4), shape=(3, 1)), case((2, 3), shape=()), case((2, 3), shape=(2, 1)),
            case((0, 3), shape=(3,)), case((2, 0), shape=(1, 1))], dtypes=FLOATS_AND_COMPLEX),
    record("Reshape", "reshape", [
        case((2, 6), shape=(3, 4)), case((2, 6), shape=-1), case((2, 6), shape=(4, -1), order="F"),
        case((), shape=(1, 1)), case((1,), shape=()), case((0, 3), shape=(3, 0))]),
    record("Squeeze", "squeeze", [
        case((1, 3, 1)), case((1, 3, 1), axis=-1), case((1, 3, 1), axis=(0, 2)), case(())]),
    record("ExpandDims", "expand_dims", [
        case((2, 3), axis=1), case((), axis=0), case((2, 3), axis=(0, -1))]),
    record("AtLeast1D", "atleast_1d", [case(shape) for shape in SHAPES]),
    record("AtLeast2D", "atleast_2d", [case(shape) for shape in SHAPES]),
    record("AtLeast3D", "atleast_3d", [case(shape) for shape in SHAPES]),
    record("Transpose", "transpose", [
        *[case(shape, axes=None) for shape in SHAPES], case((2, 3, 4), axes=(1, 2, 0)),
        case((2, 3, 4), axes=(-1, 0, 1)), case((3,), axes=(0,))]),
    record("BroadcastTo", "broadcast_to", [
        case((3, 1), shape=(2, 3, 4)), case((), shape=(2, 2)), case((3,), shape=3),
        case((1,), shape=(0,)), case((2, 0), shape=(3, 2, 0))]),
    composed("ravel", [case((2, 3)), case((2, 3), order="F"), case(())]),
    record("SwapAxes", "swapaxes", [
        case((2, 3, 4), axis1=0, axis2=-1), case((3,), axis1=0, axis2=0)]),
    composed("matrix_transpose", [case((2, 3, 4))]),
    composed("moveaxis", [
        case((2, 3, 4), source=0, destination=-1),
        case((2, 3, 4), source=(0, 1), destination=(2, 0))]),
    composed("rollaxis", [case((2, 3, 4), axis=2), case((2, 3, 4), axis=0, start=3)]),
    composed("atleast_2d", [case((2,), (), (2, 1, 3))]),
    composed("broadcast_arrays", [case((3, 1), (4,), 2.0), case((), ())]),
    composed("meshgrid", [
        case((2,), (3,)), case((2,), (3,), (4,), indexing="ij"), case((2,), (3,), sparse=True),
        case((), (2,))])]
