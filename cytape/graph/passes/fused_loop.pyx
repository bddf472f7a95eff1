cimport numpy as cnp
from cytape.core.interrupts cimport INTERRUPTED, spend_without_gil
from cytape.ops.kernels.ufunc_loops cimport trouble
from cytape.ops.kernels.partial_program cimport run_step
from cytape.ops.kernels.sums cimport add_to, sum_of
from libc.stdint cimport int64_t
from libc.stdlib cimport free

cdef extern from "<fenv.h>":
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW, FE_UNDERFLOW
    int feclearexcept(int excepts) noexcept nogil
    int fetestexcept(int excepts) noexcept nogil
    int feraiseexcept(int excepts) noexcept nogil


cdef int FLAGS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW


cdef class FusedLoop(Op):
    """The loop of a FusedOp, which runs without Python."""

    def __dealloc__(self):
        free(self.steps)
        free(self.sum_results)
        free(self.strides)
        free(self.step_strides)

    cdef int run(self, char** operands, char** results, char* scratch, int* met) noexcept nogil:
        cdef double* partial_sums = <double*>scratch
        cdef char** registers = <char**>(partial_sums + self.n_sums * PARTIAL_SUMS)
        cdef size_t temporaries = <size_t>(registers + self.n_registers)
        cdef npy_intp position[MAX_AXES]
        cdef npy_intp itemsize = self.shape.itemsize
        cdef npy_intp offset
        cdef npy_intp counts = 0, done = 0
        cdef int32_t first_temporary = self.n_operands + self.n_written, i, k
        cdef int64_t effort = 0
        cdef int axis
        cdef int all_met = 0, found = 0
        temporaries = (temporaries + LINE - 1) // LINE * LINE
        for i in range(first_temporary, self.n_registers):
            registers[i] = <char*>temporaries + (i - first_temporary) * self.spacing
        for axis in range(self.n_axes):
            position[axis] = 0
        while True:
            for i in range(self.n_operands):
                offset = 0
                for axis in range(self.n_axes):
                    offset += position[axis] * self.outer_strides[i * self.n_axes + axis]
                registers[i] = operands[i] + offset
            for i in range(self.n_written):
                registers[self.n_operands + i] = (
                    results[self.result_places[i]]
                    + done * self.size * self.strides[self.n_operands + i])
            found = run_blocks(self, registers, partial_sums, &counts, &effort, met)
            if found >= 0:
                all_met |= found
                found = spend_without_gil(&effort, self.n_steps * itemsize)
            if found < 0:
                break
            done += 1
            axis = self.n_axes - 1
            while axis >= 0:
                position[axis] += 1
                if position[axis] < self.extents[axis]:
                    break
                position[axis] = 0
                axis -= 1
            if axis < 0:
                break
        for i in range(self.n_steps if found == 0 else 0):
            k = -1 - self.steps[i].output
            if k >= 0:
                store_sum(self, partial_sums + k * PARTIAL_SUMS, counts,
                          results[self.sum_results[k]])
                if met != NULL:
                    all_met |= noted(met + i)
        if all_met:
            feraiseexcept(all_met)
        return found


cdef int run_blocks(FusedLoop op, char** registers, double* partial_sums,
                    npy_intp* counts, int64_t* effort, int* met) noexcept nogil:
    """Compute one run of elements; return the floating point flags raised, or INTERRUPTED."""
    cdef int type_num = op.shape.type_num
    cdef npy_intp length = op.block, left = op.size
    cdef char* arguments[4]
    cdef int32_t i, j
    cdef int all_met = 0
    cdef Step* step
    while True:
        length = min(length, left)
        for i in range(op.n_steps):
            step = &op.steps[i]
            if step.output < 0:
                add_block(op, registers[step.inputs[0]], length, counts[0],
                          partial_sums + (-1 - step.output) * PARTIAL_SUMS)
            elif step.loops[0].function == NULL or step.vector != NULL:
                run_step(step, type_num, length, registers, op.strides, registers[step.output])
            else:
                for j in range(step.n_inputs):
                    arguments[j] = registers[step.inputs[j]]
                arguments[step.n_inputs] = registers[step.output]
                step.loops[0].function(arguments, &length, op.step_strides + 4 * i,
                                       step.loops[0].data)
            if met != NULL:
                all_met |= noted(met + i)
        counts[0] += 1
        left -= length
        if not left:
            return all_met
        if spend_without_gil(effort, op.n_steps * length * op.shape.itemsize) < 0:
            return INTERRUPTED
        for i in range(op.n_operands + op.n_written):
            registers[i] += length * op.strides[i]


cdef int noted(int* met) noexcept nogil:
    """Store and clear the floating point flags that a step has raised; return them."""
    cdef int found
    if not trouble():
        return 0
    found = fetestexcept(FLAGS)
    feclearexcept(found)
    met[0] |= found
    return found


cdef void add_block(FusedLoop op, char* data, npy_intp length, npy_intp count,
                    double* partial_sums) noexcept nogil:
    """Add a block to a sum; partial_sums[k] is the sum of 2**k blocks if bit k of count is set.

    The sum of a single block equals NumPy's to the bit.
    """
    cdef double total = 0
    cdef float total_float = 0
    cdef int k = 0
    if length < op.size:
        total = sum_of(op.shape.type_num, length, data)
    elif op.shape.type_num == cnp.NPY_DOUBLE:
        add_to(cnp.NPY_DOUBLE, 0, 8, length, <char*>&total, data)
    else:
        add_to(cnp.NPY_FLOAT, 0, 4, length, <char*>&total_float, data)
        total = total_float
    while count >> k & 1:
        total += partial_sums[k]
        k += 1
    partial_sums[k] = total


cdef void store_sum(FusedLoop op, double* partial_sums, npy_intp count,
                    char* result) noexcept nogil:
    cdef double total = 0
    cdef bint found = False
    cdef int k
    for k in range(PARTIAL_SUMS):
        if count >> k & 1:
            total = total + partial_sums[k] if found else partial_sums[k]
            found = True
    if op.shape.type_num == cnp.NPY_DOUBLE:
        (<double*>result)[0] = total
    else:
        (<float*>result)[0] = <float>total
