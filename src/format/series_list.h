/* series_list.h -- the list of entities in metadata.json, read straight from the text where it is
 * laid out as series_meta_write does: thousands of entities without a tree of JSON values.
 * Owns: its arrays, until series_list_reset or taken over.   Threads: any.   Errors: STK_MEMORY; a
 * text of another layout is no error.   Not here: what the rows must be (series_entities.c). */
#ifndef FORMAT_SERIES_LIST_H
#define FORMAT_SERIES_LIST_H

#include <stddef.h>

#include "format/series_meta.h"

struct series_list {
    struct series_entity *entities;
    uint64_t count; /* 0: the text is laid out in another way */
    struct series_range *ranges;
    uint32_t splits; /* ranges of each entity */
    size_t head;     /* bytes before the list's first item: a text that "]}" would end */
};

STK_CHECK stk_status series_list_scan(struct series_list *list, const char *text, size_t len,
                                      struct stk_error *err);
void series_list_reset(struct series_list *list); /* zeroed is fine */

#endif
