/* tar_walk.h -- goes from member to member of a tar.
 * Owns: names that come in several headers, for the length of the walk.   Threads: one at a time.
 * Errors: STK_CORRUPT, STK_TRUNCATED, STK_LIMIT, STK_UNSUPPORTED with words that name object and
 * offset.   Not here: what members mean (tar_format.c). */
#ifndef FORMAT_TAR_WALK_H
#define FORMAT_TAR_WALK_H

#include "format/tar_source.h"

/* Long names and pax headers larger than this are refused: a name of 1 MiB and its record still
 * fit. */
#define TAR_EXTENDED_LIMIT (1024u * 1024u + 4096u)

struct tar_member {
    const char *name; /* not ended by NUL; gone after the call */
    size_t name_len;
    uint64_t header; /* offset of its own header */
    uint64_t offset; /* of its bytes */
    uint64_t size;
};

typedef stk_status (*tar_visit)(void *user, const struct tar_member *member, struct stk_error *err);

/* Visits the plain files in order and counts the rest in source->shard->skipped.
 *
 * What is taken for what:
 * - Blocks of zeros are passed over wherever they are, so that tars one after the other are read to
 * the end; whatever else is no header with a right checksum is STK_CORRUPT, trailing garbage too.
 * - No end blocks but a clean cut on 512 bytes: taken, with a notice.
 * - Of two extended headers of one kind before a member the last counts; pax's path is stronger
 * than GNU's long name; a global header counts where the member's own says nothing.
 * - Sparse members of any kind: STK_UNSUPPORTED. */
STK_CHECK stk_status tar_walk(struct tar_source *source, tar_visit visit, void *user,
                              struct stk_error *err);

#endif
