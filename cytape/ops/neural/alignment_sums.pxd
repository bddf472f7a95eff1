# Sums over alignments of label sequences with times, by their logarithms.
#
# A state is a position among the labels of an example and the blanks between them. A step goes from
# a state to itself, to the next, or, where `skips` holds, from the one before the last.

cdef double sum_of_three(double a, double b, double c) noexcept nogil
cdef double term(double exponent) noexcept nogil
