"""Einstein summation, `einsum`.

The gradient of an operand is an einsum of the output's gradient and the other operands, with the
operand's letters on the right of the arrow. Three kinds of letters need more:

- a letter on a diagonal (``ii``) is renamed at each repetition, and an identity matrix ties the
  new letter to the old one;
- a letter that occurs nowhere else was summed, so the gradient is constant along its axis;
- a letter whose axis has length 1 here and is longer elsewhere was broadcast, so the gradient is
  summed over it.

If all extents of a letter are known and equal, the call is composed of other ops, two operands at a
time: views, sums, elementwise and matrix products, which BLAS and plans compute fast.
"""

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np

import cytape.ops.reductions as reductions
from cytape.ops.adjoints.conform import fit_like
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import is_tensor, only_numpy, operand, with_out
from cytape.ops.creation import astype
from cytape.ops.elementwise import multiply
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.matrix_products import matmul
from cytape.ops.rearranging import diagonal
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import reshape, transpose
from cytape.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["einsum"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # of `string`: slow to import


@lru_cache(1024)
def _spell_out(subscripts, ndims):
    """Return the letters of every operand and of the output, with the ellipses spelt out."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum {subscripts!r} is of {len(terms)} operands, got {len(ndims)}")
    if not arrow:
        letters = inputs.replace(",", "").replace(".", "")
        output = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    widths = [
        ndim - len(term.replace("...", "")) if "..." in term else 0
        for term, ndim in zip(terms, ndims, strict=True)
    ]
    dots = _unused_letters(subscripts)[: max(widths)]
    spelt = [
        term.replace("...", dots[len(dots) - width :])
        for term, width in zip(terms, widths, strict=True)
    ]
    return tuple(spelt), output.replace("...", dots)


def _terms(op):
    return _spell_out(op.attrs["subscripts"], tuple([spec.ndim for spec in op.input_specs]))


def _unused_letters(text):
    return "".join(c for c in _LETTERS if c not in text)


# -- composition of other ops ----------------------------------------------------------------------


class _Contraction:
    """Ops that compute an einsum, two operands at a time.

    A step is a function, the numbers of its operands, and further arguments; its result is appended
    to the values. The axes of a value are lists of letters: an axis may stand for several letters,
    as in a matrix, or for none.
    """

    def __init__(self, terms, sizes):
        self.steps = []
        self.axes = [tuple(term) for term in terms]
        self.sizes = sizes

    def step(self, function, values, axes, *arguments):
        self.steps.append((function, values, arguments))
        self.axes.append(tuple(axes))
        return len(self.axes) - 1

    def reduced(self, value, kept):
        """Take the diagonals of repeated letters, and sum over letters that are not kept."""
        axes = self.axes[value]
        while len(set(axes)) < len(axes):
            letter = next(letter for letter in axes if axes.count(letter) > 1)
            first, again = [i for i, other in enumerate(axes) if other == letter][:2]
            axes = (*axes[:first], *axes[first + 1:again], *axes[again + 1:], letter)
            value = self.step(diagonal, [value], axes, 0, first, again)
        summed = tuple(i for i, letter in enumerate(axes) if letter not in kept)
        if summed:
            value = self.step(reductions.sum, [value], [x for x in axes if x in kept], summed)
        return value

    def arranged(self, value, axes):
        """Reorder and join axes; an axis may stand for several letters or for none."""
        letters = "".join(axes)
        order = tuple(map(self.axes[value].index, letters))
        if order != tuple(range(len(order))):
            value = self.step(transpose, [value], letters, order)
        return self.shaped(value, axes)

    def shaped(self, value, axes):
        if self.axes[value] == axes:
            return value
        shape = tuple(math.prod(map(self.sizes.get, letters)) for letters in axes)
        return self.step(reshape, [value], axes, shape)

    def product(self, a, b, kept):
        """Multiply two values and sum over the letters that are not kept."""
        a, b = (self.reduced(x, {*kept, *self.axes[y]}) for x, y in [(a, b), (b, a)])
        in_a, in_b = self.axes[a], self.axes[b]
        if {*in_a, *in_b} == {*kept}:  # nothing is summed: an elementwise product
            return self.step(multiply, [self.spread(a, kept), self.spread(b, kept)], kept)
        free_a = "".join(x for x in in_a if x in kept and x not in in_b)
        free_b = "".join(x for x in in_b if x in kept and x not in in_a)
        if [x for x in kept if x in free_a + free_b] == [*free_b, *free_a] != [*free_a, *free_b]:
            a, b, in_a, in_b, free_a, free_b = b, a, in_b, in_a, free_b, free_a
        stack = tuple(x for x in kept if x in in_a and x in in_b)
        if stack and not free_a + free_b:  # rows times rows
            product = self.step(multiply, [a, self.arranged(b, in_a)], in_a)
            return self.arranged(self.reduced(product, kept), kept)
        summed = "".join(x for x in in_a if x not in kept)
        rows, columns = [(free,) if free or stack else () for free in (free_a, free_b)]
        a = self.arranged(a, (*stack, *rows, summed))
        b = self.arranged(b, (*stack, summed, *columns))
        product = self.step(matmul, [a, b], (*stack, *rows, *columns))
        return self.arranged(self.shaped(product, (*stack, *free_a, *free_b)), kept)

    def spread(self, value, kept):
        """Return a value with all kept axes from its own first one on."""
        axes = self.axes[value]
        first = next((i for i, letter in enumerate(kept) if letter in axes), len(kept))
        return self.arranged(value, tuple(x if x in axes else "" for x in kept[first:]))


def _sizes(subscripts, shapes):
    """Return the terms, the output, and the size of each letter.

    None if NumPy must decide: for invalid notation, and letters of several sizes.
    """
    inputs, arrow, output = subscripts.partition("->")
    if inputs.count(",") + 1 != len(shapes) or arrow and "..." in inputs and "..." not in output:
        return None
    terms, output = _spell_out(subscripts, tuple(map(len, shapes)))
    text = "".join([*terms, output])
    if ([*map(len, terms)] != [*map(len, shapes)] or not (text.isascii() and text.isalpha())
            or len(set(output)) < len(output) or not set(output) <= set("".join(terms))):
        return None
    sizes = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                return None
    return terms, output, sizes


@lru_cache(1024)
def _steps(subscripts, shapes, optimize):
    """Return the steps of a contraction; None if NumPy must decide."""
    found = _sizes(subscripts, shapes)
    if found is None:
        return None
    terms, output, sizes = found
    contraction = _Contraction(terms, sizes)
    path = [tuple(range(len(terms)))] if len(terms) <= 2 else _path(subscripts, shapes, optimize)
    values = list(range(len(terms)))
    for positions in path:
        product, *others = [values.pop(i) for i in sorted(positions, reverse=True)][::-1]
        while others:
            factor = others.pop(0)
            own = {*contraction.axes[product], *contraction.axes[factor]}
            left = {x for value in [*others, *values] for x in contraction.axes[value]}
            kept = [x for x in dict.fromkeys([*output, *left]) if x in own]
            product = contraction.product(product, factor, tuple(kept))
        values.append(product)
    contraction.arranged(contraction.reduced(*values, output), tuple(output))
    return contraction.steps


def _path(subscripts, shapes, optimize):
    """Return NumPy's path: the operands of each product."""
    operands = [np.broadcast_to(0.0, shape) for shape in shapes]
    return np.einsum_path(subscripts, *operands, optimize=optimize or True)[0][1:]


def _by_other_ops(subscripts, operands, optimize):
    """Compute an einsum by other ops; None for unknown extents, or if NumPy must compute it.

    NumPy computes integers, booleans and float16, and calls with a given path.
    """
    shapes = tuple([x.shape for x in operands])
    if len(operands) == 1 and shapes[0] is not None and None in shapes[0]:
        return _shown(subscripts, operands[0])
    if None in shapes or any([None in shape for shape in shapes]) or (
            not isinstance(optimize, bool | str)):
        return None
    steps = _steps(subscripts, shapes, optimize)
    dtype = operands[0].dtype
    if any([x.dtype != dtype for x in operands]):
        dtype = np.result_type(*[x.dtype for x in operands])
    if steps is None or dtype.char not in "fdFD" and any(
            [function not in (diagonal, transpose) for function, *_ in steps]):
        return None
    values = [
        x if x.dtype == dtype else x.astype(dtype)
        for x in (together(*operands) if len(operands) > 1 else operands)]
    for function, positions, arguments in steps:
        values.append(function(*[values[i] for i in positions], *arguments))
    return values[-1]


def _shown(subscripts, x):
    """Return the view of a tensor of unknown extents if nothing is summed, else None."""
    likely = ((2,) * x.ndim,)
    found = _sizes(subscripts, likely)
    if found is None:
        return None
    (term,), output, _ = found
    if set(term) != set(output):
        return None
    x = with_extents(
        x, ValueError, f"einsum {subscripts!r}: the axes of a diagonal are not of the same length",
        same=[(term.index(letter), axis) for axis, letter in enumerate(term)
              if term.index(letter) != axis])
    for function, _, arguments in _steps(subscripts, likely, False):
        x = function(x, *arguments)
    return x


def _evaluate(subscripts, operands, optimize):
    result = _by_other_ops(subscripts, operands, optimize)
    return einsum_op(*operands, subscripts=subscripts, optimize=optimize) if (
        result is None) else result


# -- the op ----------------------------------------------------------------------------------------


def _einsum(*operands, subscripts, optimize):
    result = _by_other_ops(subscripts, operands, optimize)  # extents are known now
    return np.einsum(subscripts, *operands, optimize=optimize) if result is None else result


def _einsum_spec(*specs, subscripts, optimize):
    shapes = [shape_rules.shape_of(spec, "einsum") for spec in specs]
    terms, output = _spell_out(subscripts, (*map(len, shapes),))
    sizes = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ValueError(f"einsum: an operand of shape {shape} does not fit {subscripts!r}")
        diagonal = {}  # letters on diagonals; extents of 1 are not repeated
        for letter, size in zip(term, shape, strict=True):
            if shape_rules.differ(diagonal.setdefault(letter, size), size):
                raise ValueError(
                    f"einsum {subscripts!r}: {letter!r} stands for different extents in an operand "
                    f"of shape {shape}")
        for letter, size in zip(term, shape, strict=True):
            have = sizes.get(letter, 1)
            if have not in (1, None) and size not in (1, None, have):
                given = " and ".join(map(str, shapes))
                raise ValueError(
                    f"einsum {subscripts!r} of shapes {given}: {letter!r} stands for {have} and "
                    f"{size}"
                )
            if have in (1, None) and size != 1 and not (have is None and size is None):
                sizes[letter] = size if have == 1 or size is not None else have
    dtype = np.result_type(*[spec.dtype for spec in specs])
    return symbolic_spec([sizes.get(letter, 1) for letter in output], dtype)


def _is_intricate(terms, output, position):
    """Return whether a letter of an operand is on a diagonal or occurs nowhere else."""
    others = "".join([*terms[:position], *terms[position + 1 :], output])
    term = terms[position]
    return len(set(term)) < len(term) or not set(term) <= set(others)


def _einsum_transpose(position, op, *factors):
    terms, output = _terms(op)
    spec, shape = op.input_specs[position], op.input_specs[position].shape
    known = all([spec.known for spec in op.input_specs])
    if not known and _is_intricate(terms, output, position):
        return NotImplemented
    factors = [factors[position], *factors[:position], *factors[position + 1 :]]
    factor_terms = [output, *terms[:position], *terms[position + 1 :]]
    if not known:
        subscripts = f"{','.join(factor_terms)}->{terms[position]}"
        return fit_like(_evaluate(subscripts, factors, _optimize(op)), spec)
    term = ""
    fresh_letters = iter(_unused_letters(output + "".join(terms)))
    for letter, size in zip(terms[position], shape, strict=True):
        if letter in term:
            fresh = next(fresh_letters)
            factors.append(np.eye(size, dtype=factors[0].dtype))
            factor_terms.append(letter + fresh)
            letter = fresh
        term += letter

    sizes = {}  # of the letters; 1 broadcasts to any other size
    for factor, letters in zip(factors, factor_terms, strict=True):
        for letter, size in zip(letters, factor.shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    kept = [sizes.get(letter) == size for letter, size in zip(term, shape, strict=True)]
    kept_term = "".join(letter for letter, keep in zip(term, kept, strict=True) if keep)
    gradient = _evaluate(f"{','.join(factor_terms)}->{kept_term}", factors, _optimize(op))
    if all(kept):
        return gradient
    axes = tuple(size if keep else 1 for keep, size in zip(kept, shape, strict=True))
    return broadcast_to(reshape(gradient, axes), shape)


def _optimize(op):
    optimize = op.attrs["optimize"]  # a path fits the forward pass only
    return optimize if isinstance(optimize, bool | str) else True


def _in_batch(call):
    """Add a letter for the batch axis to the terms of factors that have it."""
    terms, output = _terms(call)
    letter = _unused_letters(output + "".join(terms))[:1]
    if not letter:
        return NotImplemented
    inputs = ",".join([
        letter + term if own else term for term, own in zip(terms, call.mapped, strict=True)])
    subscripts = f"{inputs}->{letter}{output}"
    return _evaluate(subscripts, call.inputs, _optimize(call))


einsum_op = multilinear(
    "Einsum", _einsum,
    *[partial(_einsum_transpose, i) for i in range(64)],  # NumPy's limit of operands
    shape_rule=_einsum_spec, batch=_in_batch, is_product=True)


def einsum(*operands, out=None, optimize=False, **kwargs) -> Any:
    """Evaluate Einstein's summation convention on the operands, as `numpy.einsum`.

    Examples
    --------
    >>> import cytape
    >>> np.einsum("ij,j->i", cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0]).numpy()
    array([3., 7.])
    """
    if out is not None:
        return with_out(np.einsum, out, *operands, optimize=optimize, **kwargs)
    if type(operands[-1]) is not Tensor and not any(map(is_tensor, operands)):
        return np.einsum(*operands, optimize=optimize, **kwargs)
    if not isinstance(operands[0], str):
        operands = _from_lists(operands)
    subscripts, *given = operands
    terms = [x if type(x) is Tensor else operand(x) for x in given]
    if kwargs:
        terms = _converted(terms, **kwargs)
    return _evaluate(subscripts, terms, optimize)


def _converted(operands, *, dtype=None, casting="safe", **others):
    only_numpy("einsum", operands, **others)
    if dtype is None:
        return operands
    for i, x in enumerate(operands):
        if not np.can_cast(x.dtype, dtype, casting):
            raise TypeError(
                f"Iterator operand {i} dtype could not be cast from {x.dtype!r} to "
                f"{np.dtype(dtype)!r} according to the rule {casting!r}")
    return [astype(x, dtype, copy=False) for x in operands]


def _from_lists(operands):
    """Return the arguments ``op0, list0, op1, list1, ..., [output list]`` with one string.

    The letters are in the order of the numbers: NumPy sorts an implied output by it.
    """
    def term(labels):
        return "".join("..." if label is Ellipsis else _LETTERS[label] for label in labels)

    subscripts = ",".join(term(labels) for labels in operands[1::2])
    arrays = operands[: len(operands) - 1 : 2]
    if len(operands) % 2:
        subscripts += "->" + term(operands[-1])
    return subscripts, *arrays
