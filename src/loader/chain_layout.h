/* chain_layout.h -- gives a field its pipeline, and lays it out by what comes out of it.
 * Owns: nothing; the pipeline is the field's.   Threads: any, at open.   Errors: a bad chain, or
 * one that does not fit, with the field; those of reading its first sample. Not here: running
 * pipelines (media_stage.h). */
#ifndef LOADER_CHAIN_LAYOUT_H
#define LOADER_CHAIN_LAYOUT_H

#include "loader/layout.h"

/* Refuses chains for fields that are not there, or given twice. */
STK_CHECK stk_status chain_layout_check(const struct layout_request *request,
                                        struct stk_error *err);

/* Sets pipeline, place, item, shape and pads of a field that is media or has a chain; of another,
 * nothing: its pipeline stays NULL. */
STK_CHECK stk_status chain_layout_field(struct field_layout *layout, uint32_t field,
                                        const struct layout_request *request,
                                        struct stk_error *err);

#endif
