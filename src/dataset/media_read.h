/* media_read.h -- decodes single values of media fields, whole and with no transform.
 * Owns: a pipeline a kind of media and a state a field, each made when first needed.
 * Threads: one.   Errors: status, words; the caller adds object, sample and field.
 * Not here: reading the bytes (sample_reader.c, field_probe.c), batches (loader/media_stage.h). */
#ifndef DATASET_MEDIA_READ_H
#define DATASET_MEDIA_READ_H

#include "pipeline/pipeline.h"

struct media_reader {
    struct pipeline *pipelines[STK_MEDIA_COUNT];
    struct pipeline_state **states; /* [fields]; values of several fields live at the same time */
    uint32_t fields;
};

/* Zeroed memory is an empty one. */
STK_CHECK stk_status media_reader_init(struct media_reader *reader, uint32_t fields,
                                       struct stk_error *err);
void media_reader_reset(struct media_reader *reader); /* half-built is fine */

/* Which value. */
struct media_value {
    enum stk_media media;
    uint32_t field;
    uint64_t sample; /* what is drawn (which frames of a video) depends on it alone */
    struct stk_bytes bytes;
};
/* tensor: its data lives until the field's next value, or until reset. */
STK_CHECK stk_status media_read(struct media_reader *reader, const struct media_value *value,
                                struct stk_tensor *tensor, struct stk_error *err);

#endif
