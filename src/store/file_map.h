/* file_map.h -- the maps of a table's files.
 * Owns: the maps, until file_map_free.   Threads: any.   Errors: NULL where a file cannot be
 * mapped. Not here: copying from them (guard.h). */
#ifndef STORE_FILE_MAP_H
#define STORE_FILE_MAP_H

#include "store/file_cache.h"

struct file_map;

/* A table of more than 65,536 objects is not mapped at all. table and files must outlive it. */
STK_CHECK stk_status file_map_new(struct file_map **out, const struct object_table *table,
                                  struct file_cache *files, struct stk_error *err);
void file_map_free(struct file_map *map); /* NULL is fine */

const uint8_t *file_map_get(struct file_map *map, uint32_t object);

#endif
