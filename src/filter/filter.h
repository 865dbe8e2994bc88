/* filter.h -- bytes to bytes: decoding compressed streams, under a cap.
 * Owns: the library's state, until filter_close.   Threads: one at a time for one filter.
 * Errors: STK_CORRUPT, STK_TRUNCATED, STK_LIMIT with words; the caller adds the object.
 * Not here: where the bytes come from (store/scan.h). */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/error.h"

/* Numbers are kept in index files: never change them. */
enum filter_kind {
    FILTER_NONE = 0,
    FILTER_GZIP = 1,    /* members one after the other are one stream */
    FILTER_ZSTD = 2,    /* frames one after the other are one stream; windows over 2^27 refused */
    FILTER_DEFLATE = 3, /* raw, as in zip */
    FILTER_FORTRAN = 4  /* an array in Fortran order; no stream: decoded by base/transpose.h */
};

struct filter;

/* One sorted table (filters.c); a missing library leaves an absent row: STK_UNSUPPORTED. */
STK_CHECK stk_status filter_open(struct filter **out, enum filter_kind kind, struct stk_error *err);
void filter_close(struct filter *filter);
const char *filter_name(enum filter_kind kind);
int filter_present(enum filter_kind kind);
/* FILTER_NONE unless the first bytes are a gzip or zstd magic. */
enum filter_kind filter_sniff(const struct stk_bytes *head);

/* Decodes from in[*used ..] into out[.. *made]; moves both forward. `last`: no more input will
 * come. *ended: the stream is complete and nothing is left over. */
STK_CHECK stk_status filter_step(struct filter *filter, const struct stk_bytes *in, size_t *used,
                                 uint8_t *out, size_t cap, size_t *made, int last, int *ended,
                                 struct stk_error *err);

/* The CRC-32 of zip and gzip: of all bytes so far, when crc is that of those before (0 at first).
 */
uint32_t filter_crc32(uint32_t crc, const uint8_t *data, size_t len);

/* The rule against bombs, in one place: over limit bytes, or over 64 MiB at more than 200:1. */
STK_CHECK stk_status filter_check_size(uint64_t encoded, uint64_t decoded, uint64_t limit,
                                       struct stk_error *err);

#endif
