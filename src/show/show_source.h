/* show_source.h -- samples for a contact sheet: read, and run with and without the chain.
 * Owns: a reader and two pipelines.   Threads: one.   Errors: status, words.
 * Not here: drawing (sheet_draw.c). */
#ifndef SHOW_SHOW_SOURCE_H
#define SHOW_SHOW_SOURCE_H

#include "stoker/pipeline.h"
#include "stoker/show.h"
#include "show/picture.h"

struct show_source {
    struct stk_dataset *dataset; /* the caller's */
    struct stk_reader *reader;
    struct stk_value *values;            /* of the sample read last, one a field */
    struct stk_pipeline *before, *after; /* before: NULL for plain tensors; after: for no chain */
    uint32_t field;                      /* which is shown */
    uint64_t seed, epoch, sample;
    struct pixel_levels levels; /* that undo the chain's Normalize */
};

/* Zeroed memory is an empty one. */
STK_CHECK stk_status show_source_init(struct show_source *source, struct stk_context *context,
                                      struct stk_dataset *dataset,
                                      const struct stk_show_options *options,
                                      struct stk_error *err);
void show_source_reset(struct show_source *source); /* half-built is fine */

/* Reads a sample. What follows speaks of it, also when it could not be read. */
STK_CHECK stk_status show_source_read(struct show_source *source, uint64_t position,
                                      struct stk_error *err);
/* Flows live until the next call of the same function. */
STK_CHECK stk_status show_source_before(struct show_source *source, struct stk_flow *flow,
                                        struct stk_error *err);
STK_CHECK stk_status show_source_after(struct show_source *source, struct stk_flow *flow,
                                       struct stk_error *err);

#define SHOW_CAPTION 128
struct show_caption {
    char key[SHOW_CAPTION];
    char class[SHOW_CAPTION]; /* its name, or "cls 3"; else a text of the sample; "": none */
    int64_t number;           /* of the class; -1: it is no number */
};
void show_source_caption(const struct show_source *source, uint64_t position,
                         struct show_caption *caption);

#endif
