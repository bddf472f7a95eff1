cimport numpy as cnp
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

cdef extern from *:
    """
    #include <string.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_FOR_CPU __attribute__((target_clones("avx2", "default")))
    #else
    #define CYTAPE_FOR_CPU
    #endif
    typedef void (*cytape_window_loop)(const cytape_windows *, void *, void *, void *, npy_intp);

    #define CYTAPE_INSIDE(pixel, size) ((npy_uintp)(pixel) < (npy_uintp)(size))
    #define CYTAPE_PLACE(axis) (o##axis * w->strides[axis] - w->before[axis])
    #define CYTAPE_PIXEL(axis) (p##axis = CYTAPE_PLACE(axis) + k##axis * w->dilations[axis])
    #define CYTAPE_AXIS(axis) \\
        for (k##axis = 0; k##axis < w->kernel[axis]; k##axis++) \\
            if (CYTAPE_INSIDE(CYTAPE_PIXEL(axis), w->size[axis]))
    /* Of each output, and of each of its taps: numbers of the output, of the tap, of the pixel. */
    #define CYTAPE_OUTPUTS \\
        npy_intp b, o0, o1, o2, k0, k1, k2, p0, p1, p2, c, output = 0; \\
        for (b = 0; b < w->batch; b++) \\
        for (o0 = 0; o0 < w->out[0]; o0++) \\
        for (o1 = 0; o1 < w->out[1]; o1++) \\
        for (o2 = 0; o2 < w->out[2]; o2++, output++)
    #define CYTAPE_TAPS CYTAPE_AXIS(0) CYTAPE_AXIS(1) CYTAPE_AXIS(2)
    #define CYTAPE_TAP ((k0 * w->kernel[1] + k1) * w->kernel[2] + k2)
    #define CYTAPE_ROW (((b * w->size[0] + p0) * w->size[1] + p1) * w->size[2])

    /* Copy the pixels of each output; `n` bytes of each pixel, whose size is `pixel`. */
    static void cytape_columns(const cytape_windows *w, const char *image, char *to,
                               npy_intp pixel, npy_intp n) {
        const npy_intp length = w->kernel[2], size = w->size[2];
        npy_intp b, o0, o1, o2, k0, k1, k2, p0, p1, p2, first, last;
        for (b = 0; b < w->batch; b++)
        for (o0 = 0; o0 < w->out[0]; o0++)
        for (o1 = 0; o1 < w->out[1]; o1++)
        for (o2 = 0; o2 < w->out[2]; o2++)
        for (k0 = 0; k0 < w->kernel[0]; k0++)
        for (k1 = 0; k1 < w->kernel[1]; k1++, to += length * n) {
            const char *row;
            CYTAPE_PIXEL(0);
            CYTAPE_PIXEL(1);
            if (!CYTAPE_INSIDE(p0, w->size[0]) || !CYTAPE_INSIDE(p1, w->size[1])) {
                memset(to, 0, length * n);
                continue;
            }
            row = image + CYTAPE_ROW * pixel;
            if (w->dilations[2] == 1 && n == pixel) {
                p2 = CYTAPE_PLACE(2);
                first = p2 < 0 ? -p2 : 0;
                last = p2 + length > size ? size - p2 : length;
                if (first > length) { first = length; }
                if (last < first) { last = first; }
                memset(to, 0, first * n);
                memcpy(to + first * n, row + (p2 + first) * n, (last - first) * n);
                memset(to + last * n, 0, (length - last) * n);
                continue;
            }
            for (k2 = 0; k2 < length; k2++) {
                CYTAPE_PIXEL(2);
                if (CYTAPE_INSIDE(p2, size)) {
                    memcpy(to + k2 * n, row + p2 * pixel, n);
                } else {
                    memset(to + k2 * n, 0, n);
                }
            }
        }
    }

    #define CYTAPE_WINDOW_LOOP(name, number, body) \\
        CYTAPE_FOR_CPU static void cytape_##name##_##number( \\
                const cytape_windows *w, void *image_memory, void *other_memory, \\
                void *third_memory, npy_intp n) { \\
            number *image = (number *)image_memory, *other = (number *)other_memory; \\
            number *third = (number *)third_memory; \\
            const npy_intp channels = w->channels; \\
            (void)image; (void)other; (void)third; (void)n; (void)channels; \\
            { body } \\
        }

    /* Add the columns of one group, of n channels, to the image: the transpose of the above. */
    #define CYTAPE_ADD_COLUMNS(number) CYTAPE_WINDOW_LOOP(add_columns, number, \\
        const npy_intp length = w->kernel[2] * n; \\
        const npy_intp taps = w->kernel[0] * w->kernel[1] * w->kernel[2]; \\
        CYTAPE_OUTPUTS { \\
            const number *from = other + output * taps * n; \\
            if (w->dilations[2] == 1 && n == channels) { \\
                const npy_intp place = CYTAPE_PLACE(2); \\
                const npy_intp first = place < 0 ? -place * n : 0; \\
                const npy_intp last = place + w->kernel[2] > w->size[2] ? \\
                    (w->size[2] - place) * n : length; \\
                CYTAPE_AXIS(0) CYTAPE_AXIS(1) { \\
                    const number *columns = from + (k0 * w->kernel[1] + k1) * length; \\
                    number *to = image + (CYTAPE_ROW + place) * n; \\
                    for (c = first; c < last; c++) { to[c] += columns[c]; } \\
                } \\
                continue; \\
            } \\
            CYTAPE_TAPS { \\
                const number *columns = from + CYTAPE_TAP * n; \\
                number *to = image + (CYTAPE_ROW + p2) * channels; \\
                for (c = 0; c < n; c++) { to[c] += columns[c]; } \\
            } \\
        })

    /* other: the maxima; third: their positions, -1 before. */
    #define CYTAPE_MAX_POOL(number) CYTAPE_WINDOW_LOOP(max_pool, number, \\
        CYTAPE_OUTPUTS { \\
            number *best = other + output * channels; \\
            npy_int64 *origins = (npy_int64 *)third_memory + output * channels; \\
            CYTAPE_TAPS { \\
                const npy_int64 place = (CYTAPE_ROW + p2) * channels; \\
                const number *pixel = image + place; \\
                if (channels && origins[0] < 0) { \\
                    for (c = 0; c < channels; c++) { \\
                        best[c] = pixel[c]; \\
                        origins[c] = place + c; \\
                    } \\
                    continue; \\
                } \\
                for (c = 0; c < channels; c++) {  /* NaN replaces numbers and is kept. */ \\
                    const int wins = !(pixel[c] <= best[c]) & (best[c] == best[c]); \\
                    origins[c] = wins ? place + c : origins[c]; \\
                    best[c] = wins ? pixel[c] : best[c]; \\
                } \\
            } \\
        })

    /* other: the means; third: memory for sums; without n the gradient is added to the image. */
    #define CYTAPE_AVG_POOL(number, wide) CYTAPE_WINDOW_LOOP(avg_pool, number, \\
        wide *sums = (wide *)third_memory; \\
        CYTAPE_OUTPUTS { \\
            number *mean = other + output * channels; \\
            npy_intp count = 0; \\
            for (c = 0; n && c < channels; c++) { sums[c] = 0; } \\
            CYTAPE_TAPS { \\
                const number *pixel = image + (CYTAPE_ROW + p2) * channels; \\
                count++; \\
                for (c = 0; n && c < channels; c++) { sums[c] += pixel[c]; } \\
            } \\
            if (n) { \\
                for (c = 0; c < channels; c++) { mean[c] = (number)(sums[c] / count); } \\
                continue; \\
            } \\
            CYTAPE_TAPS { \\
                number *pixel = image + (CYTAPE_ROW + p2) * channels; \\
                for (c = 0; c < channels; c++) { pixel[c] += mean[c] / (number)count; } \\
            } \\
        })

    /* other: outputs, n of each channel; third: filters, whose sums are long. */
    #define CYTAPE_DEPTHWISE(name, number, of_filters, of_one, of_many) \\
        CYTAPE_WINDOW_LOOP(name, number, \\
            CYTAPE_OUTPUTS { \\
                number *y = other + output * channels * n; \\
                CYTAPE_TAPS { \\
                    number *x = image + (CYTAPE_ROW + p2) * channels; \\
                    of_filters *f = (of_filters *)third_memory + CYTAPE_TAP * channels * n; \\
                    npy_intp i = 0; \\
                    (void)i; \\
                    if (n == 1) { \\
                        for (c = 0; c < channels; c++) { of_one; } \\
                        continue; \\
                    } \\
                    for (c = 0; c < channels; c++) { \\
                        for (i = c * n; i < (c + 1) * n; i++) { of_many; } \\
                    } \\
                } \\
            })

    #define CYTAPE_OF_FLOATS(number, wide) \\
        CYTAPE_ADD_COLUMNS(number) \\
        CYTAPE_MAX_POOL(number) \\
        CYTAPE_AVG_POOL(number, wide) \\
        CYTAPE_DEPTHWISE(depthwise, number, number, \\
            y[c] += x[c] * f[c], y[i] += x[c] * f[i]) \\
        CYTAPE_DEPTHWISE(depthwise_image, number, number, \\
            x[c] += y[c] * f[c], x[c] += y[i] * f[i]) \\
        CYTAPE_DEPTHWISE(depthwise_filters, number, wide, \\
            f[c] += (wide)x[c] * y[c], f[i] += (wide)x[c] * y[i])
    CYTAPE_OF_FLOATS(npy_float, npy_double)
    CYTAPE_OF_FLOATS(npy_double, npy_double)
    CYTAPE_OF_FLOATS(npy_longdouble, npy_longdouble)
    CYTAPE_ADD_COLUMNS(npy_int64)
    CYTAPE_MAX_POOL(npy_int64)
    CYTAPE_MAX_POOL(npy_uint64)
    /* In the order of TYPES. */
    #define CYTAPE_LOOPS(name) \\
        cytape_##name##_npy_float, cytape_##name##_npy_double, cytape_##name##_npy_longdouble
    static const cytape_window_loop cytape_add_columns[] = {
        CYTAPE_LOOPS(add_columns), cytape_add_columns_npy_int64};
    static const cytape_window_loop cytape_max_pool[] = {
        CYTAPE_LOOPS(max_pool), cytape_max_pool_npy_int64, cytape_max_pool_npy_uint64};
    static const cytape_window_loop cytape_avg_pool[] = {CYTAPE_LOOPS(avg_pool)};
    static const cytape_window_loop cytape_depthwise[] = {CYTAPE_LOOPS(depthwise)};
    static const cytape_window_loop cytape_depthwise_image[] = {CYTAPE_LOOPS(depthwise_image)};
    static const cytape_window_loop cytape_depthwise_filters[] = {CYTAPE_LOOPS(depthwise_filters)};
    """
    void copy_columns "cytape_columns"(
        const Windows*, const char*, char*, npy_intp, npy_intp) noexcept nogil
    const Loop* cytape_add_columns
    const Loop* cytape_max_pool
    const Loop* cytape_avg_pool
    const Loop* cytape_depthwise
    const Loop* cytape_depthwise_image
    const Loop* cytape_depthwise_filters

cdef list TYPES = [np.dtype(x).num for x in (
    np.float32, np.float64, np.longdouble, np.int64, np.uint64)]


cdef object dtype_of_loops(dtype):
    """Return the dtype of the loops for one of real numbers."""
    if dtype.kind == "f":
        return np.dtype(np.float32) if dtype.itemsize < 4 else dtype.newbyteorder("=")
    if dtype.kind not in "biu":
        raise TypeError(f"windows of images take numbers that have an order, got {dtype}")
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


cdef object wide_for(dtype):
    """Return the dtype of long sums."""
    return np.result_type(dtype, np.float64)


cdef ndarray ready(array, dtype):
    """Return a contiguous array of a dtype."""
    return np.require(array, dtype, "CA")


cdef tuple as_pairs(image_shape):
    """Return the shape of complex numbers as pairs of real ones."""
    *others, n = image_shape
    return (*others, 2 * n)


cdef int describe(Windows* w, window, image_shape) except -1:
    cdef int n = len(window.kernel), gap = 3 - n, axis
    if len(image_shape) != n + 2 or n > 3:
        raise ValueError(f"a kernel of {n} axes takes images of {n + 2}, got shape {image_shape}")
    w.batch, w.channels = image_shape[0], image_shape[n + 1]
    for axis in range(gap):
        w.size[axis] = w.out[axis] = w.kernel[axis] = w.strides[axis] = w.dilations[axis] = 1
        w.before[axis] = 0
    for axis in range(n):
        describe_axis(w, window, axis, gap + axis, image_shape[1 + axis])
    return 0


cdef int describe_axis(Windows* w, window, int axis, int place, npy_intp size) except -1:
    cdef npy_intp before, after, rest
    before, after = window.padding[axis]
    w.size[place], w.before[place] = size, before
    w.kernel[place] = window.kernel[axis]
    w.strides[place] = window.strides[axis]
    w.dilations[place] = window.dilations[axis]
    rest = size + before + after - (w.kernel[place] - 1) * w.dilations[place] - 1
    w.out[place] = 0 if rest < 0 else rest // w.strides[place] + 1
    return 0


def output_size(window, image_size):
    """Return the size of the output for an image's."""
    cdef Windows w
    cdef int axis
    cdef list found = []
    for axis, size in enumerate(image_size):
        describe_axis(&w, window, axis, 0, size)
        found.append(w.out[0])
    return tuple(found)


cdef tuple output_shape(const Windows* w, window, n_channels):
    cdef int axis
    return (w.batch, *[w.out[axis] for axis in range(3 - <int>len(window.kernel), 3)], n_channels)


cdef int require_shape(ndarray array, tuple expected) except -1:
    if (<object>array).shape != expected:
        raise ValueError(f"expected an array of shape {expected}, got {(<object>array).shape}")
    return 0


cdef int run(const Loop* loops, const Windows* w, ndarray image, ndarray other, ndarray third,
             npy_intp n) except -1:
    cdef Loop loop = loops[TYPES.index(cnp.PyArray_TYPE(image))]
    cdef void* last = NULL if third is None else cnp.PyArray_DATA(third)
    with nogil:
        loop(w, cnp.PyArray_DATA(image), cnp.PyArray_DATA(other), last, n)
    return 0


def columns(image, window, int groups=1):
    """Return the pixels that each output sees, in matrices, one for each group of channels.

    Parameters
    ----------
    image : ndarray
    window : Window
    groups : int, optional

    Returns
    -------
    ndarray
        Of shape ``(groups, outputs, taps * channels of a group)``.
    """
    cdef Windows w
    cdef ndarray given = ready(image, None), result
    cdef npy_intp itemsize = given.itemsize, n, group
    describe(&w, window, image.shape)
    n = w.channels // groups
    result = np.empty(
        (groups, w.batch * w.out[0] * w.out[1] * w.out[2],
         w.kernel[0] * w.kernel[1] * w.kernel[2] * n), given.dtype)
    with nogil:
        for group in range(groups):
            copy_columns(&w, cnp.PyArray_BYTES(given) + group * n * itemsize,
                         cnp.PyArray_BYTES(result) + group * cnp.PyArray_STRIDES(result)[0],
                         w.channels * itemsize, n * itemsize)
    return result


def add_columns(matrices, window, image_shape):
    """Return the image to which the rows of `columns` are added: the transpose of `columns`."""
    cdef Windows w
    cdef ndarray given, image
    cdef npy_intp n, group, groups = len(matrices)
    if matrices.dtype.kind == "c":
        parts = np.ascontiguousarray(matrices).view(matrices.real.dtype)
        return add_columns(parts, window, as_pairs(image_shape)).view(matrices.dtype)
    dtype = dtype_of_loops(matrices.dtype)
    given = ready(matrices, np.dtype(np.int64) if dtype.kind == "u" else dtype)
    describe(&w, window, image_shape)
    n = w.channels // groups
    require_shape(given, (
        groups, w.batch * w.out[0] * w.out[1] * w.out[2],
        w.kernel[0] * w.kernel[1] * w.kernel[2] * n))
    image = np.zeros(image_shape, given.dtype)
    for group in range(groups):
        run(cytape_add_columns, &w, image[..., group * n:], given[group], None, n)
    return image.astype(matrices.dtype, copy=False)


def max_pool(image, window):
    """Return the maxima over windows, and their first positions in the flattened image.

    NaN is the maximum. Where a window is outside of the image, the position is -1.
    """
    cdef Windows w
    cdef ndarray given = ready(image, dtype_of_loops(image.dtype)), maxima, origins
    describe(&w, window, image.shape)
    shape = output_shape(&w, window, w.channels)
    maxima, origins = np.zeros(shape, given.dtype), np.full(shape, -1, np.int64)
    run(cytape_max_pool, &w, given, maxima, origins, 0)
    return maxima.astype(image.dtype, copy=False), origins


def avg_pool(image, window):
    """Return the means over windows of floating point numbers; padding is not counted."""
    cdef Windows w
    cdef ndarray given, means
    if image.dtype.kind == "c":
        parts = np.ascontiguousarray(image).view(image.real.dtype)
        return avg_pool(parts, window).view(image.dtype)
    given = ready(image, dtype_of_loops(image.dtype))
    describe(&w, window, image.shape)
    means = np.empty(output_shape(&w, window, w.channels), given.dtype)
    run(cytape_avg_pool, &w, given, means, np.empty(w.channels, wide_for(given.dtype)), 1)
    return means.astype(image.dtype, copy=False)


def avg_pool_gradient(g, window, image_shape):
    """Return the gradient in the image, the transpose of `avg_pool`."""
    cdef Windows w
    cdef ndarray given, image
    if g.dtype.kind == "c":
        parts = np.ascontiguousarray(g).view(g.real.dtype)
        return avg_pool_gradient(parts, window, as_pairs(image_shape)).view(g.dtype)
    given = ready(g, dtype_of_loops(g.dtype))
    describe(&w, window, image_shape)
    require_shape(given, output_shape(&w, window, w.channels))
    image = np.zeros(image_shape, given.dtype)
    run(cytape_avg_pool, &w, image, given, None, 0)
    return image.astype(g.dtype, copy=False)


def depthwise(image, filters, window):
    """Convolve each channel with its own filters, all of one dtype of floating point numbers."""
    return by_channel(cytape_depthwise, window, image, None, filters, image.shape)


def depthwise_image(filters, g, window, image_shape):
    """Return the gradient of `depthwise` in the image."""
    return by_channel(cytape_depthwise_image, window, None, g, filters, image_shape)


def depthwise_filters(image, g, window):
    """Return the gradient of `depthwise` in the filters."""
    return by_channel(cytape_depthwise_filters, window, image, g, None, image.shape)


cdef object by_channel(const Loop* loops, window, image, output, filters, image_shape):
    """Add up products of two arrays to the third one, which is None."""
    cdef Windows w
    describe(&w, window, image_shape)
    first = filters if image is None else image
    *_, n_out = (filters if output is None else output).shape
    shapes = [image_shape, output_shape(&w, window, n_out), (*window.kernel, 1, n_out)]
    dtype = dtype_of_loops(first.dtype)
    dtype_of_sums = wide_for(dtype) if filters is None else dtype
    arrays = [np.zeros(shape, dtype_of_sums) if x is None else ready(x, dtype)
              for x, shape in zip((image, output, filters), shapes)]
    for array, shape in zip(arrays, shapes):
        require_shape(array, shape)
    if w.channels == 0 or n_out % w.channels:
        raise ValueError(f"{n_out} outputs are no multiple of {w.channels} channels")
    run(loops, &w, arrays[0], arrays[1], arrays[2], n_out // w.channels)
    result, = [array for array, x in zip(arrays, (image, output, filters)) if x is None]
    return result.astype(first.dtype, copy=False)
