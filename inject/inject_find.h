/* inject_find.h -- finds the libcupti that fits the program: the one it has loaded, else the one
 * beside its PyTorch or CUDA runtime, else the toolkit's.
 * Owns: nothing; what it opens stays open.   Threads: one.   Errors: NULL.   Not here: what is
 * taken from the library (inject_cupti.h). */
#ifndef INJECT_FIND_H
#define INJECT_FIND_H

/* A handle of dlopen; NULL: there is none that this driver runs. */
void *inject_find_cupti(void);

/* What the program has mapped, as /proc/self/maps tells it. For tests. */
struct find_loaded {
    int runtime;          /* the CUDA of its runtime library: 12, 13; 0: not known */
    int driver;           /* the newest CUDA that its driver runs; 0: not known */
    char folders[4][512]; /* where CUPTI would lie for what is loaded, "": none */
};
/* Looks at one line of the map. */
void inject_find_line(struct find_loaded *loaded, const char *line);

#endif
