"""Parts of complex numbers, and of numbers that are real."""

import numpy as np

import cytape
import cytape.numpy as cnp


def test_the_real_part_of_real_numbers_is_what_was_given():
    x = cytape.constant([1.0, 2.0])
    assert cnp.real(x) is x
    assert x.real is x
    part = np.real(x)
    part += 1.0  # as in NumPy, where they are one array
    np.testing.assert_array_equal(x, [2, 3])


def test_real_numbers_have_an_imaginary_part_of_zeros_and_a_gradient_of_zeros():
    x = cytape.constant([1.0, np.nan, np.inf])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x.imag
    np.testing.assert_array_equal(y, np.zeros(3))
    np.testing.assert_array_equal(tape.gradient(y, x), np.zeros(3))


def test_parts_of_lists_of_tensors():
    def total(x, z):
        return np.sum(cnp.imag([x, z]) * cnp.real([z, z]))

    for function in total, cytape.function(total):
        found = cytape.grad(function, (0, 1))(cytape.constant(2.0), cytape.constant(3.0 + 4.0j))
        np.testing.assert_allclose(found, [0, 4 + 3j])


def test_parts_of_unknown_extents():
    @cytape.function(input_signature=[cytape.Spec.of((None,), float)])
    def gradient(x):
        return cytape.grad(lambda x: np.sum(x.imag + x.real**2))(x)

    np.testing.assert_allclose(gradient(np.array([1.0, 2.0, 3.0])), [2, 4, 6])
