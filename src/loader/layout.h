/* layout.h -- decides, once at open, how the fields of every batch are laid out.
 * Owns: layout->fields and their pipelines, until layout_reset.   Threads: any, at open.
 * Errors: STK_USAGE, STK_MEMORY, those of a chain. Not here: the memory itself (box.h), what a
 * chain makes of a field (chain_layout.h). */
#ifndef LOADER_LAYOUT_H
#define LOADER_LAYOUT_H

#include "loader/box.h"

/* What a layout is made for. */
struct layout_request {
    struct stk_dataset *dataset;
    const struct stk_loader_options *options;
    const struct transform_registry *plugins; /* NULL: none */
    uint32_t capacity;                        /* places in the largest batch */
    int device;                               /* some work is left to a device: chains are cut */
};

STK_CHECK stk_status layout_init(struct layout *layout, const struct layout_request *request,
                                 struct stk_error *err);
void layout_reset(struct layout *layout);

/* An int field becomes float32 (classes), with 1 at its number. */
STK_CHECK stk_status layout_spread(struct layout *layout, uint32_t field, uint32_t classes,
                                   struct stk_error *err);

/* Bytes of one sample, as far as they are known before it is read: for choosing sizes. */
uint64_t layout_typical(const struct layout *layout);

#endif
