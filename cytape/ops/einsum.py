"""Sums of products in Einstein's notation.

The gradient of an operand is again a sum of products: of the output's gradient and the other
operands, with the operand's own letters on the right of the arrow. Three kinds of letters of an
operand need more than that:

- a letter on a diagonal (``ii``) is renamed at each repetition, and an identity matrix ties the
  new letter to the old one;
- a letter that occurs nowhere else was summed, so that the gradient is constant along its axis;
- a letter whose axis has length 1 here and is longer elsewhere was broadcast, so that the gradient
  is summed over it.

What is a product of matrices or a view of one operand is computed as that.
"""

import math
import string
from functools import lru_cache, partial

import numpy as np

from cytape.ops.engine.arguments import is_tensor, only_numpy, operand, with_out
from cytape.ops.engine.declare import multilinear
from cytape.ops.linalg import matmul_op, tensordot
from cytape.ops.rearranging import diagonal_op
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import broadcast_to, reshape, swapaxes, transpose
from cytape.ops.shared.conform import fit_like
from cytape.ops.shared.grouping import together
from cytape.tensor import Tensor
from cytape.tensor.spec import symbolic_spec

__all__ = ["einsum"]

WORTH_MOVING = 1 << 14  # products; fewer are summed where they are, not as a product of matrices


@lru_cache(1024)
def _spell_out(subscripts, ndims):
    """Return the letters of every operand and of the output, with the ellipses spelt out."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
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
    return "".join(c for c in string.ascii_letters if c not in text)


# -- products of matrices, and views ---------------------------------------------------------------


@lru_cache(1024)
def _letters(subscripts, ndims):
    """Return what `_spell_out` does; None for what it is NumPy's to judge."""
    if subscripts.count(",") + 1 != len(ndims):
        return None
    terms, output = _spell_out(subscripts, ndims)
    text = "".join([*terms, output])
    if (tuple(map(len, terms)) != ndims or not (text.isascii() and text.isalpha())
            or len(set(output)) < len(output) or not set(output) <= set("".join(terms))):
        return None
    return terms, output


@lru_cache(1024)
def _as_product(subscripts, ndims):
    """Return how two operands are multiplied as matrices, None if they are not.

    That is how many axes of stacks they begin with, which axes are summed, whether the second
    operand comes first, and in which order the axes of the product are to be put.
    """
    letters = _letters(subscripts, ndims)
    if letters is None:
        return None
    (a, b), output = letters
    depth = 0
    while a[depth:depth + 1] == b[depth:depth + 1] == output[depth:depth + 1] != "":
        depth += 1
    a, b, output = a[depth:], b[depth:], output[depth:]
    summed = [letter for letter in a if letter in b and letter not in output]
    free_a, free_b = ["".join([x for x in term if x not in summed]) for term in (a, b)]
    if (not summed or len(set(a)) < len(a) or len(set(b)) < len(b)
            or sorted(free_a + free_b) != sorted(output)
            or depth and not len(a) == len(b) == 2):
        return None
    axes = tuple(map(a.index, summed)), tuple(map(b.index, summed))
    is_turned = output == free_b + free_a != free_a + free_b
    found = free_b + free_a if is_turned else free_a + free_b
    return depth, axes, is_turned, tuple(map(found.index, output))


def _product(subscripts, a, b):
    """Multiply two operands as matrices; None if that is not what the subscripts ask for."""
    if a.shape is None or b.shape is None or a.dtype != b.dtype or a.dtype.char not in "fdFD":
        return None
    plan = _as_product(subscripts, (len(a.shape), len(b.shape)))
    if plan is None or None in a.shape or None in b.shape:
        return None
    depth, axes, is_turned, order = plan
    if a.shape[:depth] != b.shape[:depth] or any(
            a.shape[depth + i] != b.shape[depth + j] for i, j in zip(*axes, strict=True)):
        return None
    if not depth and max(len(a.shape), len(b.shape)) > 2 and (
            math.prod(a.shape) * b.shape[-1] < WORTH_MOVING):
        return None
    if is_turned:
        a, b, axes = b, a, axes[::-1]
    if not depth:
        product = tensordot(a, b, axes)
        return product if order == tuple(range(len(order))) else transpose(product, order)
    a, b = together(a, b)
    (i,), (j,) = axes
    return matmul_op(a if i else swapaxes(a, -1, -2), swapaxes(b, -1, -2) if j else b)


@lru_cache(1024)
def _as_view(subscripts, ndim):
    """Return how a view is made of one operand, None if that is not enough.

    That is which pairs of axes become one, the last, and the order of all axes then, or None.
    """
    letters = _letters(subscripts, (ndim,))
    if letters is None or set(letters[0][0]) != set(letters[1]):
        return None
    (term,), output = letters
    pairs = []
    while len(term) > len(output):  # a letter is there twice
        letter = next(letter for letter in term if term.count(letter) > 1)
        first, again = [i for i, other in enumerate(term) if other == letter][:2]
        pairs.append((first, again))
        term = term[:first] + term[first + 1:again] + term[again + 1:] + letter
    return pairs, None if term == output else tuple(map(term.index, output))


def _view(subscripts, x):
    """Return diagonals, or axes in another order, of one operand; None if there is more to do."""
    plan = None if x.shape is None else _as_view(subscripts, len(x.shape))
    if plan is None:
        return None
    for i, j in plan[0]:
        if x.shape[i] is None or x.shape[i] != x.shape[j]:
            return None
        x = diagonal_op(x, offset=0, axis1=i, axis2=j)
    return x if plan[1] is None else transpose(x, plan[1])


def _evaluate(subscripts, operands, optimize):
    result = None
    if isinstance(optimize, bool) and len(operands) <= 2:
        result = _view(subscripts, operands[0]) if len(operands) == 1 else (
            _product(subscripts, *operands))
    return einsum_op(*operands, subscripts=subscripts, optimize=optimize) if (
        result is None) else result


# -- the op ----------------------------------------------------------------------------------------


def _einsum(*operands, subscripts, optimize):
    if len(operands) == 2 and isinstance(optimize, bool):  # whose extents are known now
        product = _product(subscripts, *operands)
        if product is not None:
            return product
    return np.einsum(subscripts, *operands, optimize=optimize)


def _einsum_spec(*specs, subscripts, optimize):
    shapes = [shape_rules.shape_of(spec, "einsum") for spec in specs]
    terms, output = _spell_out(subscripts, (*map(len, shapes),))
    sizes = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ValueError(f"einsum: an operand of shape {shape} does not fit {subscripts!r}")
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
    """Return whether a letter of an operand is on a diagonal, or occurs nowhere else."""
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

    sizes = {}  # of the axes of the product, where 1 gives way to any other size
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


def einsum_in_batch(op, batched, *factors):
    """Sum products where `batched` tells of each factor whether it has an axis of a batch first."""
    terms, output = _terms(op)
    letter = _unused_letters(output + "".join(terms))[:1]
    if not letter:
        return NotImplemented
    inputs = ",".join([
        letter + term if own else term for term, own in zip(terms, batched, strict=True)])
    subscripts = f"{inputs}->{letter}{output}"
    return _evaluate(subscripts, factors, _optimize(op))


def _batched(op, position, *factors):
    return einsum_in_batch(op, [i == position for i in range(len(factors))], *factors)


einsum_op = multilinear(
    "Einsum", _einsum,
    *[partial(_einsum_transpose, i) for i in range(64)],  # more operands NumPy does not take
    batched=_batched, shape_rule=_einsum_spec)


def einsum(*operands, out=None, optimize=False, **kwargs):
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
    if kwargs:
        only_numpy("einsum", operands, **kwargs)
    if not isinstance(operands[0], str):
        operands = _from_lists(operands)
    subscripts, *operands = operands
    return _evaluate(
        subscripts, [x if type(x) is Tensor else operand(x) for x in operands], optimize)


def _from_lists(operands):
    """Return the arguments ``op0, list0, op1, list1, ..., [output list]`` with one string.

    The letters are in the order of the numbers: NumPy sorts an implied output by it.
    """
    letters = string.ascii_uppercase + string.ascii_lowercase

    def term(labels):
        return "".join("..." if label is Ellipsis else letters[label] for label in labels)

    subscripts = ",".join(term(labels) for labels in operands[1::2])
    arrays = operands[: len(operands) - 1 : 2]
    if len(operands) % 2:
        subscripts += "->" + term(operands[-1])
    return subscripts, *arrays


NUMPY_FUNCTIONS = {np.einsum: einsum}
