/* dataset_fields.h -- which fields a dataset reads and what they are: specs against the index, then
 * a look at the first value of each. Owns: nothing.   Threads: any.   Errors: STK_USAGE,
 * STK_NOT_FOUND (no such field: lists those there are), those of reading.   Not here: decoding
 * (codec/codec.h). */
#ifndef DATASET_DATASET_FIELDS_H
#define DATASET_DATASET_FIELDS_H

#include "dataset/dataset_state.h"

/* One field as it was asked for. */
struct field_spec {
    const char *names; /* "jpg;png" */
    size_t len;
    int optional;
    enum stk_kind kind;
    enum stk_media media; /* kind TENSOR: encoded media, whatever the name says */
};

/* NAME(;NAME)*, with ? and =KIND behind, in either order. spec->names points into text. */
STK_CHECK stk_status field_spec_parse(struct field_spec *spec, const char *text,
                                      struct stk_error *err);

/* Makes room for count fields; source->field_count is still 0. */
STK_CHECK stk_status dataset_fields_room(struct dataset_source *source, uint32_t count,
                                         struct stk_error *err);
/* STK_USAGE when a field before it has the same name. */
STK_CHECK stk_status dataset_fields_refuse_same(const struct dataset_source *source, uint32_t field,
                                                struct stk_error *err);

/* Fills source->fields from the specs, or from all of the index's fields. */
STK_CHECK stk_status dataset_fields_make(struct dataset_source *source, const char *const *specs,
                                         uint32_t count, struct stk_error *err);
/* Fills shape, payload and head of the TENSOR fields. A field whose first values cannot be parsed
 * stays unprobed (probed is STK_NOWHERE): reading it says why. */
STK_CHECK stk_status dataset_fields_probe(struct stk_dataset *dataset, struct stk_error *err);
void dataset_fields_free(struct dataset_source *source);

#endif
