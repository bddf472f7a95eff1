# Loops of kernels that slide over batches of images with the channels last.
#
# Images of one or two axes get axes of length 1 in front. A tap is one offset in the kernel: for
# each output, the loops visit the taps whose pixel is inside of the image; padding is not stored.

from numpy cimport npy_intp

cdef extern from *:
    """
    typedef struct {
        npy_intp batch, channels, size[3], out[3], kernel[3], strides[3], dilations[3], before[3];
    } cytape_windows;
    """
    ctypedef struct Windows "cytape_windows":
        npy_intp batch, channels
        npy_intp[3] size, out, kernel, strides, dilations
        npy_intp[3] before  # of the padding

    # image, the other array, further one or number, channels of the latter for each of the image
    ctypedef void (*Loop "cytape_window_loop")(
        const Windows*, void*, void*, void*, npy_intp) noexcept nogil
