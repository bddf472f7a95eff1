# ConcreteFunction: one trace of a function, with its derivatives and executables.

from cytape.graph.run.executable cimport Executable

from .packed_results cimport Results

cdef class ConcreteFunction:
    cdef object __weakref__
    cdef readonly str name
    cdef readonly object graph
    cdef readonly tuple variable_places   # of variables that are arguments, among a call's objects
    cdef readonly list captured_inputs
    cdef readonly tuple input_symbols     # of arguments, variables that are, and captures
    cdef readonly tuple output_symbols
    cdef public long long last_use        # set by owners of several traces
    cdef public bint uses_tensors         # whether it captures users' tensors
    cdef object body_of_loop              # a weak reference, or None: see `history_of`
    cdef readonly dict derived            # see `body_tools.derived`
    cdef Results results
    cdef Py_ssize_t n_arguments
    cdef list variables                   # weak references to variables that are arguments
    cdef dict left                        # see FunctionGraph; None if it is empty
    cdef bint assigns
    cdef tuple assigning                  # places of inputs that variables are assigned, or None
    cdef list captured_graphs             # the graphs of captured tensors
    cdef object grad_func, python_grad_func, checkpoints
    cdef tuple closed                     # a body for calls in graphs and its kept values, or None
    cdef dict calls_by_kept               # derivatives of such calls, by the number of kept values
    cdef readonly Executable own_executable  # made at first use
    cdef readonly dict derivatives        # by order and modes
    cdef public object report             # called after each new plan, or None
    cdef readonly Py_ssize_t n_constant_bytes
    cdef list bodies                      # of branches and loops, in its nodes
    cdef list parts(self)
    cdef Py_ssize_t size(self) except -1
    cdef Executable to_execute(self)
    cpdef bint fits_here(self) except -1
    cdef bint was_converted(self) except -1
    cdef int note_departures(self, list inputs) except -1
    cpdef call(self, list tensors)
    cpdef call_plainly(self, list tensors)
    cpdef call_with(self, list inputs)
    cpdef list run(self, list inputs)
    cpdef report_plans(self, report)
    cdef derivatives_of(self, order)
    cdef int close(self) except -1
    cdef ends(self)
    cdef list inlined(self, graph, list inputs)
    cdef list with_own_gradient(self, list results, list inputs)
