/* filter_ops.h -- what a filter implements. To add one: a file NAME_filter.c with a table like
 * these, a row in filters.c, and NAME_filter_absent.c when its library may be missing. Owns:
 * nothing.   Threads: see filter.h.   Errors: see filter.h.   Not here: the rules that all filters
 * share (filters.c). */
#ifndef FILTER_FILTER_OPS_H
#define FILTER_FILTER_OPS_H

#include "filter/filter.h"

/* What one step moves. */
struct filter_run {
    const uint8_t *in;
    size_t in_len, used;
    uint8_t *out;
    size_t cap, made;
};

struct filter_ops {
    void *(*open)(void);        /* NULL when memory ran out */
    void (*close)(void *state); /* NULL is fine */
    /* Decodes until in or out is used up, or a unit (a gzip member, a zstd frame) is over: then
     * *unit_over is 1 and the next call begins another one. Words without the object in *err. */
    stk_status (*step)(void *state, struct filter_run *run, int *unit_over, struct stk_error *err);
    const char *remedy; /* absent (no open): how to get it */
    int one_unit;       /* the stream is a single unit: nothing may follow it */
    int zeros_between;  /* zeros after a unit are padding */
};

extern const struct filter_ops deflate_filter, gzip_filter, zstd_filter;

#endif
