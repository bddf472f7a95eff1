cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.math cimport NAN, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

cdef enum Task:
    INTERPOLATES
    DIFFERENTIATES
    SPREADS

cdef double MOST_MAPPED = 2.0**52
cdef double[6] RECIPROCALS = [0, 1, 0.5, 1.0 / 3, 0.25, 0.2]
cdef int64_t* effort = effort_so_far()
MODES = {
    "nearest": NEAREST, "wrap": WRAP, "reflect": REFLECT, "grid-mirror": REFLECT, "mirror": MIRROR,
    "constant": CONSTANT, "grid-wrap": GRID_WRAP, "grid-constant": GRID_CONSTANT}


def interpolate(coefficients, coordinates, int order, mode, derivative):
    """Interpolate arrays by B-splines. Points beyond the boundary of "constant" get 0.

    Points without a place, which are NaN or too large to be mapped, have NaN as derivatives. Their
    values are NaN in the modes "nearest" and "grid-constant", and else 0.

    Parameters
    ----------
    coefficients : ndarray
        Of float64 and shape ``(batch, *shape)``.
    coordinates : ndarray
        Of float64 and shape ``(batch or 1, axes, points)``, counted in elements.
    order : int
        From 0 to 5.
    mode : str
        A boundary mode of `scipy.ndimage.map_coordinates`.
    derivative : sequence of int
        How often to differentiate, along each axis.

    Returns
    -------
    ndarray
        Of float64 and shape ``(batch, points)``.

    Raises
    ------
    ValueError
        If shapes or dtypes do not fit, or an axis is empty.
    """
    cdef ndarray numbers = np.empty((len(coefficients), coordinates.shape[2]))
    run(coefficients, coordinates, numbers, order, mode, derivative, INTERPOLATES)
    return numbers


def slopes(coefficients, coordinates, int order, mode, derivative):
    """Return the derivatives of `interpolate` along all axes, which take the same parameters.

    Returns
    -------
    ndarray
        Of float64 and shape ``(batch, axes, points)``.

    Raises
    ------
    ValueError
        As `interpolate`.
    """
    cdef ndarray numbers = np.empty((len(coefficients), *coordinates.shape[1:]))
    run(coefficients, coordinates, numbers, order, mode, derivative, DIFFERENTIATES)
    return numbers


def spread(numbers, coordinates, shape, int order, mode, derivative):
    """Return the transpose of `interpolate`, of an array of `shape`, applied to numbers of points.

    Parameters
    ----------
    numbers : ndarray
        Of float64 and shape ``(batch, points)``.
    coordinates, order, mode, derivative
        As for `interpolate`.
    shape : tuple of int
        Without the batch axis.

    Returns
    -------
    ndarray
        Of shape ``(batch, *shape)``.

    Raises
    ------
    ValueError
        As `interpolate`.
    """
    cdef ndarray coefficients = np.zeros((len(numbers), *shape))
    run(coefficients, coordinates, numbers, order, mode, derivative, SPREADS)
    return coefficients


cdef int run(of_elements, of_axes, of_points, int order, mode, derivative,
             Task task) except -1:
    cdef ndarray elements = np.ascontiguousarray(of_elements)
    cdef ndarray coordinates = np.ascontiguousarray(of_axes)
    cdef ndarray points = np.ascontiguousarray(of_points)
    cdef int n_axes = elements.ndim - 1, axis
    cdef npy_intp[MOST_AXES] extents, strides
    cdef int[MOST_AXES] times
    cdef npy_intp stride = 1
    if not (elements.dtype == coordinates.dtype == points.dtype == np.float64
            and coordinates.ndim == 3
            and points.ndim == 2 + (task == DIFFERENTIATES) and 1 <= n_axes <= MOST_AXES
            and len(coordinates) in (1, len(elements)) and len(points) == len(elements)
            and coordinates.shape[1] == n_axes == len(derivative)
            and coordinates.shape[2] == points.shape[points.ndim - 1]
            and 0 <= order <= 5 and min(derivative) >= 0
            and (elements.size or not points.size)):
        raise ValueError(
            f"expected float64 arrays of shapes (batch, *shape), (batch or 1, axes, points) and "
            f"(batch, points), got {(<object>elements).shape}, {(<object>coordinates).shape} and "
            f"{(<object>points).shape}, order {order} and derivative {derivative}")
    for axis in range(n_axes - 1, -1, -1):
        extents[axis], strides[axis] = elements.shape[axis + 1], stride
        times[axis] = derivative[axis]
        stride *= extents[axis]
    cdef Mode boundary = MODES[mode]
    cdef double* of_element = <double*>cnp.PyArray_DATA(elements)
    cdef double* of_coordinate = <double*>cnp.PyArray_DATA(coordinates)
    cdef double* of_point = <double*>cnp.PyArray_DATA(points)
    cdef npy_intp n_batch = elements.shape[0], n_own = coordinates.shape[0]
    cdef npy_intp n_points = coordinates.shape[2], own, member, point
    cdef npy_intp first, last
    cdef Taps[MOST_AXES] taps
    cdef double* place
    cdef double number, missing = 0
    cdef bint inside, differentiates = task == DIFFERENTIATES or max(derivative) > 0
    effort[0] += points.nbytes
    with nogil:
        for own in range(n_own):
            first = own
            last = n_batch if n_own == 1 else own + 1
            for point in range(n_points):
                place = of_coordinate + own * n_axes * n_points + point
                inside = True
                for axis in range(n_axes):
                    if not find_taps(&taps[axis], place[axis * n_points], extents[axis],
                                     strides[axis], order, times[axis], boundary,
                                     task == DIFFERENTIATES):
                        inside = False
                        break
                if not inside:
                    missing = 0
                    for axis in range(n_axes):
                        if has_no_place(place[axis * n_points], boundary) and (
                                differentiates or boundary in (NEAREST, GRID_CONSTANT)):
                            missing = NAN
                for member in range(first, last):
                    if task == SPREADS:
                        if inside:
                            add(of_element + member * stride, taps, n_axes, order,
                                of_point[member * n_points + point])
                        continue
                    for axis in range(n_axes if task == DIFFERENTIATES else 1):
                        number = gathered(
                            of_element + member * stride, taps, n_axes, order,
                            axis if task == DIFFERENTIATES else -1) if inside else missing
                        if task == DIFFERENTIATES:
                            of_point[(member * n_axes + axis) * n_points + point] = number
                        else:
                            of_point[member * n_points + point] = number
    return 0


cdef double gathered(double* elements, Taps* taps, int n_axes, int order,
                     int sloping) noexcept nogil:
    """Sum the products of taps along all axes, with slopes along the axis `sloping`."""
    cdef double total = 0
    cdef double* weights = &taps.slopes[0] if sloping == 0 else &taps.weights[0]
    cdef int k
    if n_axes == 1:
        for k in range(order + 1):
            total += weights[k] * elements[taps.offsets[k]]
        return total
    for k in range(order + 1):
        total += weights[k] * gathered(
            elements + taps.offsets[k], taps + 1, n_axes - 1, order, sloping - 1)
    return total


cdef void add(double* elements, Taps* taps, int n_axes, int order, double number) noexcept nogil:
    cdef int k
    for k in range(order + 1):
        if n_axes == 1:
            elements[taps.offsets[k]] += taps.weights[k] * number
        else:
            add(elements + taps.offsets[k], taps + 1, n_axes - 1, order, taps.weights[k] * number)


cdef bint has_no_place(double x, Mode mode) noexcept nogil:
    """Return whether a coordinate is NaN, or too large for its position in the period."""
    return x != x or not fabs(x) < MOST_MAPPED and mode not in (NEAREST, CONSTANT, GRID_CONSTANT)


cdef bint find_taps(Taps* taps, double x, npy_intp n, npy_intp stride, int order, int times,
                    Mode mode, bint with_slopes) noexcept nogil:
    """Find elements and weights along an axis; return whether the point has any."""
    cdef double slope = 1, unused, t
    cdef npy_intp centre, start, place
    cdef int k
    if has_no_place(x, mode):
        return False
    if mode == NEAREST:  # far away all taps are the element at the end
        x = -order - 2 if x < -order - 2 else n + order + 2 if x > n + order + 2 else x
    elif mode == GRID_CONSTANT:
        if not -order - 2 <= x <= n + order + 2:  # far away no element is a tap
            return False
    elif not 0 <= x <= n - 1:
        x = mapped(x, n, mode, &slope)
    if not x > -1 and mode not in (NEAREST, GRID_CONSTANT):
        return False
    t = x if order & 1 else x + 0.5
    centre = <npy_intp>t
    centre -= centre > t  # the cast rounds to 0, and is faster than floor
    start = centre - order // 2
    t -= centre
    find_weights(taps.weights, &taps.slopes[0] if with_slopes else NULL, t, order, times)
    for k in range(order + 1):
        place = start + k
        for _ in range(times):
            taps.weights[k] *= slope
        for _ in range(times + 1 if with_slopes else 0):
            taps.slopes[k] *= slope
        if not 0 <= place < n:
            if mode == GRID_CONSTANT:
                place, taps.weights[k], taps.slopes[k] = 0, 0, 0
            else:
                place = <npy_intp>mapped(
                    <double>place, n, MIRROR if mode in (CONSTANT, WRAP) else mode, &unused)
        taps.offsets[k] = place * stride
    return True


cdef void find_weights(double* weights, double* slopes, double t, int order,
                       int times) noexcept nogil:
    """Write the weights of the taps: derivatives of the B-spline, by differences of lower orders.

    `slopes`, if not NULL, gets the weights of one more derivative. de Boor, "A Practical Guide to
    Splines" (2001), chapters IX and X.
    """
    cdef int degree, k
    if order == 1 and times == 0:  # the same in few operations
        weights[0], weights[1] = 1 - t, t
        if slopes != NULL:
            slopes[0], slopes[1] = -1, 1
        return
    weights[0] = times <= order
    for k in range(1, order + 1):
        weights[k] = 0
    for degree in range(1, order - times + 1):
        if slopes != NULL and degree == order - times:
            memcpy(slopes, weights, (order + 1) * sizeof(double))
        for k in range(degree, -1, -1):
            weights[k] = ((t + degree - k) * (weights[k - 1] if k else 0)
                          + (1 - t + k) * (weights[k] if k < degree else 0)) * RECIPROCALS[degree]
    if slopes != NULL and times >= order:
        for k in range(order + 1):
            slopes[k] = 0
    elif slopes != NULL:
        differences(slopes, order, order - times)
    if times <= order:
        differences(weights, order, order - times + 1)


cdef void differences(double* weights, int order, int first) noexcept nogil:
    """Differentiate weights in the orders from `first` on."""
    cdef int degree, k
    for degree in range(first, order + 1):
        for k in range(degree, -1, -1):
            weights[k] = (weights[k - 1] if k else 0) - (weights[k] if k < degree else 0)


cdef double mapped(double x, npy_intp n, Mode mode, double* slope) noexcept nogil:
    """Return the coordinate within an axis that stands for x, and its derivative; -1 for none."""
    cdef npy_intp period
    if 0 <= x <= n - 1:
        return x
    if mode == CONSTANT:
        return -1
    if mode == NEAREST or n <= 1:
        slope[0] = 0
        return 0 if x < 0 else n - 1
    if mode == WRAP or mode == GRID_WRAP:
        period = n - 1 if mode == WRAP else n
        if x < 0:
            return x + period * (<npy_intp>((-x if mode == WRAP else -1 - x) / period) + 1)
        return x - period * <npy_intp>(x / period)
    period = 2 * n - 2 if mode == MIRROR else 2 * n
    if x < 0:
        if mode == MIRROR or x < -period:
            x += period * <npy_intp>(-x / period)
            if x >= 0:
                return x
        if x <= 1 - n if mode == MIRROR else x < -n:
            return x + period
        slope[0] = -1
        return -x if mode == MIRROR else -x - 1
    x -= period * <npy_intp>(x / period)
    if x >= n:
        slope[0] = -1
        return period - x if mode == MIRROR else period - x - 1
    return x
