# Tracer: records the calls that a partial derivative makes on symbols, as steps of a program.

cdef enum:
    MAX_REGISTERS = 58
    GRADIENT = 0      # register of the output's gradient
    OUTPUT = 1        # of the op's output
    FIRST_INPUT = 2   # of its inputs
    MAX_INPUTS = 4
    N_PRIMALS = FIRST_INPUT + MAX_INPUTS
    N_OPERANDS = 2 * N_PRIMALS  # the tangent of register r is in N_PRIMALS + r
