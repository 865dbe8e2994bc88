/* format.h -- bytes to index: one row a format in formats.c.
 * Owns: nothing.   Threads: format_build starts its own and joins them.   Errors: status, words
 * that name object and offset.   Not here: decoding values (codec/codec.h). */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "stoker/bytes.h"
#include "stoker/context.h"
#include "stoker/tensor.h"
#include "index/index_builder.h"
#include "store/scan.h"

/* One object to be indexed, as listed. */
struct format_object {
    const char *name; /* relative to root */
    uint64_t size, version;
};

struct format_input {
    const char *root;
    const struct format_object *objects;
    uint64_t object_count;
    struct stk_tensor raw; /* raw: dtype and shape of one sample (rank -1: not given) */
    uint64_t chunk_limit;  /* most bytes a chunk may decode to */
    uint32_t threads;
    const struct stk_hooks *hooks; /* progress and notices; never NULL */
};

/* Told of bytes as they are checked; not 0: stop. */
struct format_step {
    int (*take)(void *user, uint64_t bytes);
    void *user;
};

struct format_ops {
    const char *name;            /* "tar" */
    const char *const *suffixes; /* ".tar", ".tar.gz"; NULL-ended; lower case */
    /* Not 0 when the first bytes (up to 1 KiB) are of this format. NULL: cannot be told. */
    int (*sniff)(const struct stk_bytes *head);
    stk_status (*build)(const struct format_input *input, struct index_builder *builder,
                        struct stk_error *err);
    /* Checks the sums in an object that reading values does not look at. NULL: there are none. */
    stk_status (*check)(struct scan *scan, const struct format_step *step, struct stk_error *err);
};

const struct format_ops *format_find(const char *name); /* NULL: no such format */
const struct format_ops *format_by_suffix(const char *name);
const struct format_ops *format_by_content(const struct stk_bytes *head);
/* The table's rows in order; NULL past the last. */
const struct format_ops *format_at(uint32_t row);

#endif
