/* index_view.h -- an open index from the inside, for its kinds (table_index.c, grid_index.c,
 * windows_index.c).
 * Owns: see index.h.   Threads: all read it; a block's flag is set by whoever checks it first.
 * Errors: STK_CORRUPT with words.   Not here: the contract (index.h), the bytes (index_file.h). */
#ifndef INDEX_INDEX_VIEW_H
#define INDEX_INDEX_VIEW_H

#include <stdatomic.h>

#include "base/checked.h"
#include "index/index.h"
#include "index/index_builder.h"
#include "index/index_file.h"

struct index_ops {
    stk_status (*resolve)(const struct index *index, const uint64_t *samples, uint32_t n,
                          struct extent *out, struct stk_error *err);
    stk_status (*key)(const struct index *index, uint64_t sample, char *scratch,
                      struct stk_bytes *key, struct stk_error *err);
    void (*reset)(struct index *index); /* frees what the kind has of its own; NULL: nothing */
};
extern const struct index_ops table_index_ops, grid_index_ops;

struct index {
    const struct index_ops *ops;
    struct index_header header; /* a copy: what was checked cannot change under us */
    const uint8_t *map; /* the file's bytes; in_memory: an image of them that was made, not read */
    int in_memory;      /* the image is on the heap, and its blocks need no check */
    char *path;
    struct index_field *fields;
    const struct index_file_field *file_fields; /* a copy too; the runs of each are checked */
    const struct index_file_row *rows;
    const struct index_file_object *objects;
    /* One byte a block, 1 once its checksum was right. Relaxed: it pairs with nothing, since the
     * bytes it speaks of never change; at worst two threads check a block. */
    _Atomic uint8_t *checked;
};

static inline const void *index_section(const struct index *index, enum index_section_number number)
{
    return index->map + index->header.sections[number].offset;
}

stk_status index_check_block(const struct index *index, enum index_section_number number,
                             uint64_t block, struct stk_error *err);

/* Makes sure that length > 0 bytes at offset of a section, which lie inside it, are as written. */
static inline stk_status index_touch(const struct index *index, enum index_section_number number,
                                     uint64_t offset, uint64_t length, struct stk_error *err)
{
    uint64_t last = (offset + length - 1) >> INDEX_BLOCK_SHIFT;
    _Atomic uint8_t *checked = index->checked + index->header.sections[number].first_check;
    for (uint64_t block = offset >> INDEX_BLOCK_SHIFT; block <= last; block++) {
        if (atomic_load_explicit(&checked[block], memory_order_relaxed))
            continue;
        stk_status status = index_check_block(index, number, block, err);
        if (status)
            return status;
    }
    return STK_OK;
}

/* A NUL-ended text of STRINGS or NAMES. */
stk_status index_text(const struct index *index, enum index_section_number number, uint64_t offset,
                      const char **out, struct stk_error *err);

/* Says that an extent of the file points to no object, or outside the one it points to. */
stk_status index_fail_extent(const struct index *index, uint64_t sample, struct stk_error *err);
/* Turns the file's object number into an extent's, and checks the extent against its object or
 * chunk. */
stk_status index_place_chunk(const struct index *index, uint64_t sample, struct extent *extent,
                             struct stk_error *err);

static inline stk_status index_place(const struct index *index, uint64_t sample,
                                     struct extent *extent, struct stk_error *err)
{
    if (extent->object & INDEX_PART_CHUNK)
        return index_place_chunk(index, sample, extent, err);
    if (extent->object >= index->header.object_count)
        return index_fail_extent(index, sample, err);
    stk_status status =
        index_touch(index, INDEX_OBJECTS, (uint64_t)extent->object * sizeof(*index->objects),
                    sizeof(*index->objects), err);
    if (status)
        return status;
    if (!checked_inside(extent->offset, extent->length, index->objects[extent->object].size))
        return index_fail_extent(index, sample, err);
    return STK_OK;
}

#endif
