/* tar_writer.h -- writes one tar file, member by member: POSIX ustar, pax where a name or a size
 * does not fit it; the same bytes for the same members.
 * Owns: the open file and a buffer.   Threads: one at a time for one writer.   Errors: status,
 * words in nullable *err that name the file.   Not here: reading (format/), hidden names
 * (staging.h). */
#ifndef PACK_TAR_WRITER_H
#define PACK_TAR_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/error.h"

#define TAR_BLOCK 512
#define TAR_END (2 * TAR_BLOCK) /* zero bytes behind the last member */

struct tar_writer;

/* folder_fd: where the file is made (it must not exist). label: what messages call it. */
STK_CHECK stk_status tar_writer_open(struct tar_writer **out, int folder_fd, const char *name,
                                     const char *label, struct stk_error *err);
/* A plain file of that name whose bytes are first head, then body. */
STK_CHECK stk_status tar_writer_member(struct tar_writer *writer, struct stk_bytes name,
                                       struct stk_bytes head, struct stk_bytes body,
                                       struct stk_error *err);
/* Bytes written so far, with what finish adds. */
uint64_t tar_writer_size(const struct tar_writer *writer);
/* Writes the end and closes the file; the writer is gone in any case. */
STK_CHECK stk_status tar_writer_finish(struct tar_writer *writer, struct stk_error *err);
/* Closes without finishing; NULL is fine. */
void tar_writer_close(struct tar_writer *writer);

/* Bytes that a member takes in a tar: headers, data, padding. */
uint64_t tar_writer_member_size(struct stk_bytes name, uint64_t size);
/* One ustar header block. Names up to 100 bytes; size below 8 GiB. */
void tar_writer_header(uint8_t block[TAR_BLOCK], struct stk_bytes name, uint64_t size);

#endif
