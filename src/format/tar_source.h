/* tar_source.h -- the bytes of a shard, plain or decoded, looked at from front to back.
 * Owns: the open object, a window of bytes, the filter.   Threads: one at a time.   Errors: status,
 * words that name object and offset.   Not here: headers (tar_header.h). */
#ifndef FORMAT_TAR_SOURCE_H
#define FORMAT_TAR_SOURCE_H

#include "filter/filter.h"
#include "format/shard_crew.h"
#include "store/scan.h"

#define TAR_SOURCE_HEAD 1024u /* looked at first, to find out how the shard is encoded */

struct tar_source {
    struct shard *shard;
    struct scan *scan;
    struct filter *filter; /* NULL: plain */
    enum filter_kind kind;
    uint8_t *window; /* the bytes from `base` on */
    size_t window_len, window_cap;
    uint64_t base;
    uint64_t seen, run; /* where the last look ended; where the run of close headers began */
    size_t want;        /* bytes to read next */
    uint64_t size;      /* plain: of the object; decoded: known at the end, UINT64_MAX before */
    uint8_t *encoded;   /* read, not yet decoded */
    size_t encoded_len, encoded_used;
    uint64_t encoded_at; /* how far the object was read */
};

STK_CHECK stk_status tar_source_open(struct tar_source *source, struct shard *shard,
                                     struct stk_error *err);
void tar_source_close(struct tar_source *source); /* half-built is fine */

/* *out: the bytes at offset, *got of them: len, or fewer at the end of the shard (0 just there).
 * Past the end: STK_TRUNCATED. offset never goes back. */
STK_CHECK stk_status tar_source_peek(struct tar_source *source, uint64_t offset, size_t len,
                                     const uint8_t **out, size_t *got, struct stk_error *err);

#endif
