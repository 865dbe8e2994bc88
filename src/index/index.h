/* index.h -- sample -> the extents of its fields. Immutable once open.
 * Owns: the map of the index file.   Threads: all read it, no lock.   Errors: status, words in
 * nullable *err.   Not here: how it is made (index_builder.h), which samples come when
 * (loader/plan.h). */
#ifndef INDEX_INDEX_H
#define INDEX_INDEX_H

#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/error.h"
#include "stoker/tensor.h"

/* Where a field's bytes lie. object < object_count: a stored object; else chunk number
 * object - object_count. */
struct extent {
    uint64_t offset, length;
    uint32_t object;
};
#define EXTENT_NONE UINT32_MAX /* as object: this sample lacks this field */
/* As object: offset is the value itself, an int64 (a class). */
#define EXTENT_VALUE (UINT32_MAX - 1)

/* A unit that is decoded whole: length bytes at offset of a stored object, through a filter. */
struct chunk {
    uint64_t offset, length; /* encoded, in the stored object */
    uint64_t decoded;        /* bytes after the filter */
    uint64_t first, count; /* the samples that lie in it, when they are consecutive; else count 0 */
    uint32_t object;       /* the stored object */
    uint32_t filter;       /* enum filter_kind */
    uint32_t check;        /* FILTER_DEFLATE: filter_crc32 of the decoded bytes; else 0 */
    struct stk_tensor shape; /* FILTER_FORTRAN: the array in the chunk; else rank 0 */
};

struct index_field {
    const char *name;
    uint64_t min_length, max_length; /* of the extents that are there */
    uint64_t missing;                /* samples without it */
    /* An array's rows (grid): how one row is stored. rank -1: not an array, the bytes say
     * themselves. */
    struct stk_tensor row;
    int byteswap; /* row: stored big-endian */
    int is_value; /* every extent is EXTENT_VALUE; row is the int64's shape, or that of a mask */
};

struct index_object {
    const char *name; /* relative to index_root */
    uint64_t size, version;
};

struct index;

/* Opens in O(1): header checked, file mapped. STK_CORRUPT, STK_TRUNCATED, STK_UNSUPPORTED (another
 * version) or STK_NOT_FOUND otherwise; the caller rebuilds. */
STK_CHECK stk_status index_open(struct index **out, const char *path, struct stk_error *err);
void index_close(struct index *index);

uint64_t index_samples(const struct index *index);
uint32_t index_field_count(const struct index *index);
const struct index_field *index_field(const struct index *index, uint32_t field);
uint32_t index_object_count(const struct index *index);
STK_CHECK stk_status index_object(const struct index *index, uint32_t number,
                                  struct index_object *out, struct stk_error *err);
uint32_t index_chunk_count(const struct index *index);
STK_CHECK stk_status index_chunk(const struct index *index, uint32_t number, struct chunk *out,
                                 struct stk_error *err);
uint32_t index_class_count(const struct index *index);
const char *index_class(const struct index *index, uint32_t number);
const char *index_root(const struct index *index);
const char *index_format(const struct index *index); /* "tar" */
const char *index_path(const struct index *index);
uint64_t index_skipped(const struct index *index);
uint64_t index_size(const struct index *index); /* of its file, in bytes */
/* Of keys, fields, lengths and the objects' names and sizes: the same wherever it was indexed; not
 * of mtime, inode or root. */
void index_fingerprint(const struct index *index, uint8_t out[16]);

/* out[i * index_field_count + f] for n samples; prefetches as it goes, allocates nothing. Every
 * extent is checked to lie inside its object or chunk. STK_CORRUPT when a block's checksum is
 * wrong. */
STK_CHECK stk_status index_resolve(const struct index *index, const uint64_t *samples, uint32_t n,
                                   struct extent *out, struct stk_error *err);
/* Not ended by NUL; lives as long as the index. Where keys are made when asked for, they are
 * written to scratch (INDEX_KEY_SCRATCH bytes): a grid's are the row numbers, a window's are
 * ENTITY:START. */
#define INDEX_KEY_SCRATCH 160
STK_CHECK stk_status index_key(const struct index *index, uint64_t sample, char *scratch,
                               struct stk_bytes *key, struct stk_error *err);

/* Checks every block's checksum. */
STK_CHECK stk_status index_verify(const struct index *index, struct stk_error *err);
/* Lets go of the mapped pages; the next touch faults them in again. */
void index_trim(const struct index *index);

#endif
