"""Sums of products in Einstein's notation.

The gradient of an operand is again a sum of products: of the output's gradient and the other
operands, with the operand's own letters on the right of the arrow. Three kinds of letters of an
operand need more than that:

- a letter on a diagonal (``ii``) is renamed at each repetition, and an identity matrix ties the
  new letter to the old one;
- a letter that occurs nowhere else was summed, so that the gradient is constant along its axis;
- a letter whose axis has length 1 here and is longer elsewhere was broadcast, so that the gradient
  is summed over it.
"""

import string
from functools import lru_cache, partial

import numpy as np

from cytape.ops.engine.arguments import is_tensor, only_numpy
from cytape.ops.engine.declare import multilinear
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import broadcast_to, reshape
from cytape.ops.shared.conform import fit_like
from cytape.tensor.spec import symbolic_spec

__all__ = ["einsum"]


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


def _einsum(*operands, subscripts, optimize):
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
        return fit_like(einsum_op(*factors, subscripts=subscripts, optimize=_optimize(op)), spec)
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
    gradient = einsum_op(
        *factors, subscripts=f"{','.join(factor_terms)}->{kept_term}", optimize=_optimize(op)
    )
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
    return einsum_op(*factors, subscripts=subscripts, optimize=_optimize(op))


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
    if not any(map(is_tensor, operands)):
        return np.einsum(*operands, out=out, optimize=optimize, **kwargs)
    only_numpy("einsum", operands, out=out, **kwargs)
    if not isinstance(operands[0], str):
        operands = _from_lists(operands)
    subscripts, *operands = operands
    return einsum_op(*operands, subscripts=subscripts, optimize=optimize)


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
