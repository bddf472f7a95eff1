/* Notes every line of a module that runs, in a file that all processes of the tests write to.

Cython writes __Pyx_TraceLine(line, offset, nogil, __PYX_ERR(file, line, label)) before a statement.
Its own macro of that name calls Python's trace function, with the GIL: a hundred times slower. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_FILES 64
#define MOST_LINES 4096

static unsigned char (*lines_run)[MOST_LINES];

__attribute__((constructor)) static void map_lines_run(void) {
    const int file = open(LINES_RUN, O_RDWR | O_CREAT, 0666);
    if (file < 0 || ftruncate(file, MOST_FILES * MOST_LINES)) abort();
    lines_run = mmap(NULL, MOST_FILES * MOST_LINES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (lines_run == MAP_FAILED || close(file)) abort();
}

#define __Pyx_TraceLine(line, offset, nogil, goto_error) NOTE_##goto_error
#define NOTE___PYX_ERR(file, line, label) lines_run[file][line] = 1;

/* Where a function returns a complex number, Cython's tracing takes the address of this macro. */
static const int __pyx_PyComplex_FromComplex;
