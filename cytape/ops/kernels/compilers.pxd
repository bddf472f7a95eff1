# Attributes and pragmas for loops over memory in C, for each compiler that has them.
#
#     CYTAPE_FOR_CPU      compile the function for two kinds of processor; the loader chooses one
#     CYTAPE_NO_BRANCHES  compute both sides of a choice, so that a loop of choices is vectorized
#     CYTAPE_INDEPENDENT  iterations of the next loop may run side by side: arrays are the same or
#                         do not overlap
#
# `cimport cytape.ops.kernels.compilers` defines them for the C of a module.

cdef extern from *:
    """
    #if defined(__clang__)
    #define CYTAPE_NO_BRANCHES
    #define CYTAPE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
    #elif defined(__GNUC__)
    #define CYTAPE_NO_BRANCHES __attribute__((optimize("no-trapping-math")))
    #define CYTAPE_INDEPENDENT _Pragma("GCC ivdep")
    #else
    #define CYTAPE_NO_BRANCHES
    #define CYTAPE_INDEPENDENT
    #endif
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_FOR_CPU __attribute__((target_clones("avx2", "default")))
    #else
    #define CYTAPE_FOR_CPU
    #endif
    """
