cimport cytape.ops.kernels.compilers
cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy cimport ndarray, npy_intp

from cytape.core.interrupts cimport effort_so_far
from cytape.tensor.recording.conversion_guards cimport (
    ASSIGNED, converted, detached, seen)
from cytape.tensor.tensor cimport Tensor
from cytape.tensor.values.plain_arrays cimport as_ndarray
from cytape.tensor.values.value cimport Value, array_of, value_of_array
from cytape.tensor.variable cimport Variable, begin_write, end_write, take_value

import numpy as np

from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.values.plain_arrays import plain_array

cnp.import_array()

cdef int64_t* effort = effort_so_far()
cdef object half = np.dtype(np.float16), single = np.dtype(np.float32)

cdef extern from *:
    """
    #include <math.h>
    /* out may be the parameter itself. In `body`: p the parameter, g the gradient, m and v the
       elements of the slots. */
    #define CYTAPE_UPDATE(name, number, body) \\
        CYTAPE_FOR_CPU static void cytape_##name##_##number( \\
                void *out_memory, const void *parameter, const void *gradient, void *slot, \\
                void *other_slot, npy_intp n, const cytape_step *step) { \\
            typedef number real; \\
            number *out = (number *)out_memory; \\
            const number *from = (const number *)parameter, *grad = (const number *)gradient; \\
            number *first = (number *)slot, *second = (number *)other_slot; \\
            const number rate = (number)step->rate, decay = (number)step->decay; \\
            const number scale = (number)step->scale, bound = (number)step->bound; \\
            const number a = (number)step->a, a1 = (number)step->a1, b = (number)step->b; \\
            const number b1 = (number)step->b1, c = (number)step->c, d = (number)step->d; \\
            npy_intp i; \\
            (void)sizeof(real); (void)first; (void)second; \\
            (void)a; (void)a1; (void)b; (void)b1; (void)c; (void)d; \\
            CYTAPE_INDEPENDENT \\
            for (i = 0; i < n; i++) { \\
                const number p = from[i]; \\
                number g = scale * grad[i]; \\
                g = g > bound ? bound : g; \\
                g = g < -bound ? -bound : g; \\
                { body } \\
            } \\
        }
    #define CYTAPE_RULE(name, body) \\
        CYTAPE_UPDATE(name, float, body) \\
        CYTAPE_UPDATE(name, double, body)
    #define CYTAPE_ROOT(x) ((real)(sizeof(real) == sizeof(float) ? sqrtf((float)(x)) : sqrt(x)))

    CYTAPE_RULE(descent, out[i] = p - decay * p - rate * g;)
    /* a: momentum; b: 1 for Nesterov's step, otherwise 0 */
    CYTAPE_RULE(momentum,
        const real m = a * first[i] + g;
        first[i] = m;
        out[i] = p - decay * p - rate * (b != 0 ? g + a * m : m);)
    CYTAPE_RULE(adagrad,  /* d: epsilon */
        const real v = first[i] + g * g;
        first[i] = v;
        out[i] = p - decay * p - rate * g / (CYTAPE_ROOT(v) + d);)
    /* b: decay of the mean square, b1: 1 - b; d: epsilon */
    CYTAPE_RULE(rmsprop,
        const real v = b * first[i] + b1 * (g * g);
        first[i] = v;
        out[i] = p - decay * p - rate * g / (CYTAPE_ROOT(v) + d);)
    CYTAPE_RULE(rmsprop_momentum,  /* a: momentum */
        const real v = b * first[i] + b1 * (g * g);
        const real m = a * second[i] + g / (CYTAPE_ROOT(v) + d);
        first[i] = v;
        second[i] = m;
        out[i] = p - decay * p - rate * m;)
    /* a, b: decay of the moments, a1, b1: 1 minus these; c: bias of the root; d: epsilon */
    CYTAPE_RULE(adam,
        const real m = a * first[i] + a1 * g;
        const real v = b * second[i] + b1 * (g * g);
        first[i] = m;
        second[i] = v;
        out[i] = p - decay * p - rate * m / (c * CYTAPE_ROOT(v) + d);)
    CYTAPE_RULE(lion,
        const real m = first[i];
        const real mixed = a * m + a1 * g;
        first[i] = b * m + b1 * g;
        out[i] = p - decay * p - rate * (mixed > 0 ? 1 : mixed < 0 ? -1 : mixed);)

    typedef struct { cytape_update of_float, of_double; } cytape_rule;
    #define CYTAPE_LOOPS(name) {cytape_##name##_float, cytape_##name##_double}
    static const cytape_rule cytape_rules[] = {
        CYTAPE_LOOPS(descent), CYTAPE_LOOPS(momentum), CYTAPE_LOOPS(adagrad),
        CYTAPE_LOOPS(rmsprop), CYTAPE_LOOPS(rmsprop_momentum), CYTAPE_LOOPS(adam),
        CYTAPE_LOOPS(lion),
    };
    """
    ctypedef struct Rule "cytape_rule":
        Update of_float, of_double
    const Rule* cytape_rules

# Rules, in the order of `cytape_rules`.
cdef list names = [
    "descent", "momentum", "adagrad", "rmsprop", "rmsprop_momentum", "adam", "lion"]


@cython.final
cdef class Job:
    """Job(parameter, gradient, slots, name)

    The update of one array, whose gradient is checked. The slots are C-contiguous arrays.
    """

    def __init__(self, parameter, gradient, list slots, str name):
        cdef Value held = None
        cdef bint direct
        self.parameter, self.slots, self.name = parameter, slots, name
        if isinstance(parameter, Variable):
            held = seen(parameter, (<Variable>parameter).held)
            dtype, self.shape, direct = held.spec.dtype, held.spec.shape, held.contiguous
        else:
            dtype, self.shape = parameter.dtype, parameter.shape
            direct = cnp.PyArray_ISCARRAY(parameter)
        self.width = single if dtype is half else dtype
        if not direct or dtype is half:
            self.copy = np.array(
                array_of(held) if held is not None else parameter, self.width, order="C")
        self.row_size = 1
        if isinstance(gradient, IndexedSlices):
            self.take_slices(gradient)
            return
        self.gradient = self.as_gradient(gradient)
        if (<object>self.gradient).shape != self.shape:
            raise ValueError(f"{name} has the shape {self.shape}, its gradient "
                             f"{(<object>self.gradient).shape}")

    cdef ndarray as_gradient(self, gradient):
        cdef ndarray array
        if isinstance(gradient, Tensor):
            if isinstance(self.parameter, Variable):
                gradient = detached(gradient, (<Tensor>gradient).held, ASSIGNED)
            else:
                gradient = converted(gradient, (<Tensor>gradient).held, "NumPy")
        array = as_ndarray(plain_array(gradient))
        if array.dtype is self.width and cnp.PyArray_ISCARRAY_RO(array):
            return array
        if array.dtype.kind not in "fiub":
            raise TypeError(
                f"the gradient of {self.name} must consist of real numbers, got {array.dtype}")
        return np.require(array, self.width, "CA")

    cdef int take_slices(self, slices) except -1:
        """Sort the slices by their index, and sum those of one index."""
        cdef ndarray values, indices
        cdef npy_intp* index
        cdef npy_intp i, n, n_rows, previous = -1
        cdef bint increasing = True
        while isinstance(slices.values, IndexedSlices):
            inner = slices.values
            slices = IndexedSlices(
                inner.values, plain_array(slices.indices)[plain_array(inner.indices)])
        values = self.as_gradient(slices.values)
        given = slices.indices
        if isinstance(given, Tensor):
            given = array_of(seen(given, (<Tensor>given).held))
        given = plain_array(given)
        n = given.size
        if n and given.dtype.kind not in "iu":
            raise TypeError(f"the indices of the gradient of {self.name} must be integers, got "
                            f"{given.dtype}")
        indices = np.array(given, np.intp)
        if not self.shape or (<object>values).shape != (n, *self.shape[1:]):
            raise ValueError(f"{self.name} has the shape {self.shape}, its gradient {n} slices, of "
                             f"the shape {(<object>values).shape}")
        n_rows = self.shape[0]
        index = <npy_intp*>cnp.PyArray_BYTES(indices)
        for i in range(n):
            if not -n_rows <= index[i] < n_rows:
                raise IndexError(f"the gradient of {self.name}, of shape {self.shape}, has a slice "
                                 f"at index {index[i]}")
            index[i] += n_rows if index[i] < 0 else 0
            increasing = increasing and index[i] > previous
            previous = index[i]
        self.row_size = values.size // n if n else 0
        if not increasing:
            order = indices.argsort(kind="stable")
            indices, values = indices[order], values[order]
            n = sum_repeated(indices, values, n, self.row_size)
            indices, values = indices[:n], values[:n]
        self.rows, self.gradient = indices, values
        return 0

    def norm(self) -> float:
        """Return the Euclidean norm of the gradient, computed without overflow."""
        flat = self.gradient.reshape(-1)
        with np.errstate(over="ignore"):
            total = float(np.dot(flat, flat))
        if 1e-30 < total < np.inf:
            return total ** 0.5
        flat = flat.astype(np.float64)
        largest = float(np.abs(flat).max(initial=0.0))
        if not 0 < largest < np.inf:
            return largest
        flat /= largest
        return largest * float(np.dot(flat, flat)) ** 0.5

    cdef int run(self, Update update) except -1:
        cdef Value value = None
        cdef npy_intp itemsize = self.gradient.itemsize, n = self.gradient.size, i, start
        cdef const npy_intp* row
        cdef const char* old
        cdef const char* grad = cnp.PyArray_BYTES(self.gradient)
        cdef char* out
        cdef char* one = NULL
        cdef char* other = NULL
        effort[0] += self.gradient.nbytes
        if self.copy is not None:
            old = out = cnp.PyArray_BYTES(self.copy)
        elif isinstance(self.parameter, Variable):
            old = seen(self.parameter, (<Variable>self.parameter).held).data
            value = begin_write(self.parameter)
            out = value.data
            if self.rows is not None and out != old:
                memcpy(out, old, value.spec.nbytes)
        else:
            old = out = cnp.PyArray_BYTES(<ndarray>self.parameter)
        if self.slots:
            one = cnp.PyArray_BYTES(<ndarray>self.slots[0])
        if len(self.slots) > 1:
            other = cnp.PyArray_BYTES(<ndarray>self.slots[1])
        if self.rows is None:
            update(out, old, grad, one, other, n, &self.step)
        else:
            row = <const npy_intp*>cnp.PyArray_BYTES(self.rows)
            for i in range(self.rows.size):
                start = row[i] * self.row_size * itemsize
                update(out + start, out + start, grad + i * self.row_size * itemsize,
                       NULL if one == NULL else one + start,
                       NULL if other == NULL else other + start, self.row_size, &self.step)
        if value is not None:
            end_write(self.parameter, value)
        elif self.copy is not None:
            if isinstance(self.parameter, Variable):
                dtype = (<Variable>self.parameter).held.spec.dtype
                take_value(self.parameter, value_of_array(self.copy.astype(dtype, copy=False)))
            else:
                self.parameter[...] = self.copy
        return 0


cdef npy_intp sum_repeated(ndarray indices, ndarray values, npy_intp n, npy_intp size) except -1:
    """Sum rows of equal indices, which are sorted, in place; return the number of rows left."""
    cdef npy_intp* index = <npy_intp*>cnp.PyArray_BYTES(indices)
    cdef char* rows = cnp.PyArray_BYTES(values)
    cdef npy_intp nbytes = size * values.itemsize, i, k, last = 0
    cdef bint wide = cnp.PyArray_TYPE(values) == cnp.NPY_DOUBLE
    for i in range(1, n):
        if index[i] != index[last]:
            last += 1
            if last != i:
                index[last] = index[i]
                memcpy(rows + last * nbytes, rows + i * nbytes, nbytes)
        elif wide:
            for k in range(size):
                (<double*>rows)[last * size + k] += (<double*>rows)[i * size + k]
        else:
            for k in range(size):
                (<float*>rows)[last * size + k] += (<float*>rows)[i * size + k]
    return last + 1 if n else 0


cdef object owner_of(ndarray array):
    """Return the object that owns the memory of an array."""
    cdef object owner = array
    while type(owner) is ndarray and owner.base is not None:
        owner = owner.base
    return owner


cdef int keep_gradients(list jobs) except -1:
    """Copy the gradients that a step would change, being parts of parameters."""
    cdef Job job
    cdef list arrays = [
        (<Job>job).parameter for job in jobs if type((<Job>job).parameter) is ndarray]
    if not arrays:
        return 0
    cdef set owners = {id(owner_of(array)) for array in arrays}
    for job in jobs:
        owner = owner_of(job.gradient)
        if type(owner) is Value:  # never changes
            continue
        if id(owner) in owners or type(owner) is not ndarray and any([
                np.may_share_memory(job.gradient, array) for array in arrays]):
            job.gradient = job.gradient.copy()
    return 0


def run(str rule, list jobs, dict constants, list decays, list scales, double bound) -> None:
    """Run the jobs of a step.

    Parameters
    ----------
    rule : str
    jobs : list of Job
    constants : dict
        Numbers of the rule, by their names in `Step`.
    decays, scales : list of float
        The weight decay, and the factor of the gradient, of each job.
    bound : float
        Limit of the absolute values of gradients.
    """
    cdef const Rule* loops = &cytape_rules[names.index(rule)]
    cdef Step step
    cdef Job job
    step.rate, step.bound = constants["rate"], bound
    step.a, step.a1 = constants.get("a", 0.0), 1 - constants.get("a", 0.0)
    step.b, step.b1 = constants.get("b", 0.0), 1 - constants.get("b", 0.0)
    step.c, step.d = constants.get("c", 1.0), constants.get("d", 0.0)
    keep_gradients(jobs)
    for job, decay, scale in zip(jobs, decays, scales):
        step.decay, step.scale = decay, scale
        job.step = step
        # The GIL is held: no other thread may take a value while it is written to.
        job.run(loops.of_float if job.width is single else loops.of_double)
