/* layout.h -- decides, once at open, how the fields of every batch are laid out.
 * Owns: layout->fields, until layout_reset.   Threads: any, at open.   Errors: STK_USAGE,
 * STK_MEMORY. Not here: the memory itself (box.h). */
#ifndef LOADER_LAYOUT_H
#define LOADER_LAYOUT_H

#include "loader/box.h"

STK_CHECK stk_status layout_init(struct layout *layout, const struct stk_dataset *dataset,
                                 const struct stk_loader_options *options, uint32_t capacity,
                                 struct stk_error *err);
void layout_reset(struct layout *layout);

/* Bytes of one sample, as far as they are known before it is read: for choosing sizes. */
uint64_t layout_typical(const struct layout *layout);

#endif
