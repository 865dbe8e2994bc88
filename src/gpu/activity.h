/* activity.h -- how much of a stretch of time is covered by spans that overlap and come out of
 * order; and the start of a recording from another table than CUPTI's.
 * Owns: the spans and the bins.   Threads: one at a time.   Errors: STK_MEMORY; what was added
 * before is kept.   Not here: recordings (stoker/activity.h), their source (cupti_api.h). */
#ifndef GPU_ACTIVITY_H
#define GPU_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/activity.h"
#include "gpu/cupti_api.h"

/* stk_activity_start with a table of functions that need not be CUPTI's. */
STK_CHECK stk_status activity_start(struct stk_activity **out,
                                    const struct stk_activity_options *options,
                                    const struct cupti_api *api, struct stk_error *err);

struct cover_span {
    uint64_t start, end; /* nanoseconds since the beginning */
};

/* Spans wait in a list until it is full; then the older half is summed up. A span may come late by
 * half a list: what is later still is counted from `frontier` on. */
struct cover {
    struct cover_span *spans;
    size_t count;
    uint64_t frontier; /* all before it is summed up */
    uint64_t covered;  /* before it */
    uint64_t bin_ns;
    uint64_t *bins; /* covered nanoseconds of each */
    size_t bin_cap;
};

#define COVER_SPANS ((size_t)1 << 17) /* 2 MiB */
#define COVER_BINS ((size_t)1 << 22)  /* 11 hours of 10 ms; what is later is only in `covered` */

STK_CHECK stk_status cover_init(struct cover *cover, uint64_t bin_ns, struct stk_error *err);
void cover_reset(struct cover *cover); /* frees; all zero is fine */
STK_CHECK stk_status cover_add(struct cover *cover, struct cover_span span, struct stk_error *err);
/* Nanoseconds covered by all spans, those that wait too. */
uint64_t cover_total(struct cover *cover);
/* The same of each of the first `count` bins. */
void cover_bins(struct cover *cover, uint64_t *to, uint64_t count);

#endif
