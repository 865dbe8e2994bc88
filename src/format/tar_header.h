/* tar_header.h -- one 512-byte header block of a tar: V7, ustar, pax and GNU; and pax records.
 * Owns: nothing.   Threads: any.   Errors: STK_CORRUPT, STK_UNSUPPORTED with words; the caller adds
 * object and offset.   Not here: walking from header to header (tar_walk.h). */
#ifndef FORMAT_TAR_HEADER_H
#define FORMAT_TAR_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"
#include "base/text.h"

#define TAR_BLOCK 512u
#define TAR_MAX_SIZE ((uint64_t)1 << 60) /* a member that claims more is garbage */

enum tar_kind {
    TAR_FILE,      /* a plain file */
    TAR_OTHER,     /* a link, a device, a fifo, a folder: no body follows */
    TAR_SKIP,      /* a type of some vendor: its body is passed over */
    TAR_SPARSE,    /* GNU's old sparse file */
    TAR_PAX,       /* records for the next member */
    TAR_PAX_ALL,   /* records for all members that follow */
    TAR_LONG_NAME, /* GNU: the next member's name */
    TAR_LONG_LINK  /* GNU: the next link's target */
};

struct tar_header {
    enum tar_kind kind;
    uint64_t size;
    size_t name_len;
    char name[256]; /* prefix / name; not ended by NUL */
};

int tar_block_is_zero(const uint8_t block[TAR_BLOCK]);
/* Not 0 when the checksum is right (the sum of unsigned bytes, or of signed ones as old tars made
 * it). */
int tar_block_is_header(const uint8_t block[TAR_BLOCK]);
/* The block's checksum is right. */
STK_CHECK stk_status tar_header_parse(struct tar_header *out, const uint8_t block[TAR_BLOCK],
                                      struct stk_error *err);

/* What pax records say that matters here. An empty value takes an earlier one back. */
struct tar_records {
    struct text path;
    uint64_t size;
    int has_path, has_size, sparse;
};

/* Reads "LENGTH KEY=VALUE\n" ... and adds it to *records. */
STK_CHECK stk_status tar_records_parse(struct tar_records *records, const char *data, size_t len,
                                       struct stk_error *err);
void tar_records_reset(struct tar_records *records); /* keeps the memory */
void tar_records_free(struct tar_records *records);

#endif
