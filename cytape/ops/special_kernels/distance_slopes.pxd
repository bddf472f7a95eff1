# Gradients of tables of distances between points.
#
# The table has a row for each point of one array and a column for each of another. The gradient of
# an element is multiplied by the derivative of the distance in each coordinate of its two points,
# which has the sign of the difference, and added to the gradients of the points. Elements whose
# gradient is 0 add nothing. A block of columns is processed coordinate by coordinate, so that loops
# over its points take vectors of numbers.

cdef enum Metric:
    CITYBLOCK = 0
    CHEBYSHEV = 1
    MINKOWSKI = 2
    CANBERRA = 3
    BRAYCURTIS = 4
