# Update steps of optimizers: loops in C that read a gradient once, and change a parameter and its
# slots (running means and sums, such as Adam's two moments) in the same pass over memory.
#
# A `Job` is the step of one array. All jobs of a step are prepared, which checks every gradient,
# before the first one runs: a step changes all parameters or, if an error is raised, none.

from numpy cimport ndarray, npy_intp

cdef extern from *:
    """
    typedef struct {
        double rate, decay;  /* of this step; parameters are multiplied by 1 - decay */
        double scale, bound;  /* gradients are multiplied by scale, then limited to +-bound */
        double a, a1, b, b1, c, d;  /* constants of the rule, see there */
    } cytape_step;
    typedef void (*cytape_update)(void *, const void *, const void *, void *, void *,
                                  npy_intp, const cytape_step *);
    """
    ctypedef struct Step "cytape_step":
        double rate, decay, scale, bound, a, a1, b, b1, c, d
    # out, parameter, gradient, two slots (NULL if the rule has none), number of elements
    ctypedef void (*Update "cytape_update")(
        void*, const void*, const void*, void*, void*, npy_intp, const Step*) noexcept nogil

cdef class Job:
    cdef object parameter     # a Variable or an ndarray
    cdef ndarray gradient     # contiguous, of the dtype of the computation
    cdef ndarray rows         # indices of the gradient's rows, increasing; None: dense
    cdef ndarray copy         # of an array that loops cannot write to (strided, float16), or None
    cdef list slots           # arrays of the parameter's shape, at most two
    cdef str name             # of the parameter, for messages
    cdef tuple shape
    cdef object width         # dtype of the computation: float32 or float64
    cdef Step step
    cdef npy_intp row_size    # elements
    cdef ndarray as_gradient(self, gradient)
    cdef int take_slices(self, slices) except -1
    cdef int run(self, Update update) except -1
