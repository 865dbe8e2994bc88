/* name_table.h -- numbers names by first appearance: entities of a series, values of a category.
 * Owns: copies of the names, until name_table_reset or name_table_take.   Threads: one.   Errors:
 * STK_MEMORY.   Not here: what may be a name (series_ingest.c). */
#ifndef PACK_NAME_TABLE_H
#define PACK_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

#define NAME_NONE UINT32_MAX

/* All zero is an empty table. */
struct name_table {
    char **names; /* [count], each ended by NUL */
    uint32_t count, cap;
    struct name_slot *slots; /* a power of two of them, at most half full */
    uint32_t slot_count;
};

/* NAME_NONE: not there. */
uint32_t name_table_find(const struct name_table *table, const char *name, size_t len);
/* The name must not be there, and hold no NUL. Its number is count - 1 then. */
STK_CHECK stk_status name_table_add(struct name_table *table, const char *name, size_t len,
                                    struct stk_error *err);
char **name_table_take(struct name_table *table); /* the names are the caller's; the table empty */
void name_table_reset(struct name_table *table);  /* zeroed is fine */

#endif
