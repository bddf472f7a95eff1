"""Structures of tensors as arguments of tapes and accumulators, with checks of their leaves."""

from cytape.core.op_store cimport is_known
from cytape.tensor.nest cimport flatten, pack_sequence_as
from cytape.tensor.tensor cimport Tensor

import numpy as np

from cytape.errors import UnconnectedGradientWarning
from cytape.tensor.structures import pack_parts, parts_of
from cytape.tensor.values.user_warnings import warn


cdef list leaves_of(structure):
    """Return the tensors of a structure; for a TensorArray the tensors that it reads from."""
    if isinstance(structure, Tensor):
        return [structure]
    return flatten(structure) if has_only_tensors(structure) else parts_of(structure)


cdef in_places(structure, list found):
    """Replace the leaves by the given values."""
    return pack_sequence_as(structure, found) if has_only_tensors(structure) else pack_parts(
        structure, found)


cdef bint has_only_tensors(structure) except -1:
    for leaf in flatten(structure, False):
        if not isinstance(leaf, Tensor):
            return False
    return True


cdef int require_tensor_leaf(str role, leaf) except -1:
    if not isinstance(leaf, Tensor):
        advice = ""
        if hasattr(leaf, "__dict__"):
            advice = (
                ". Pass the tensors that the object has, as in [model.weights, model.bias], or "
                "register its class with cytape.register_structure")
        elif isinstance(leaf, (np.ndarray, np.number, float, complex)):
            advice = (
                ". Before the tape's block make x a cytape.Variable, or a cytape.constant(x) that "
                "tape.watch(x) adds to the tape; and compute with it, not with its x.numpy()")
        raise TypeError(
            f"a {role} must be a tensor or a variable, got {type(leaf).__name__}: "
            f"gradients belong to the tensors that were computed with{advice}")
    return 0


cdef int require_tensor(str role, value) except -1:
    if not isinstance(value, Tensor):
        raise TypeError(f"the {role} must be one tensor, got {type(value).__name__}")
    return 0


cdef int warn_of_none(Recorder recorder, list gradients, list targets, list sources) except -1:
    """Warn of gradients that are None since the tape knows neither targets nor sources."""
    for gradient in gradients:
        if gradient is not None:
            return 0
    if not targets or not sources:
        return 0
    for tensor in targets + sources:
        if is_known(recorder, (<Tensor>tensor).held.id) or (
                not (<Tensor>tensor).held.spec.trainable):
            return 0
    warn("the gradient is None: the tape watched nothing that the target was computed from. Tapes "
         "watch each Variable that is read in their block, and tensors after tape.watch(x). After "
         "w = w - g the name w stands for a tensor: write w.assign_sub(g)",
         UnconnectedGradientWarning)
    return 0
