/* read_all.h -- pread(2) that goes on until all is read.
 * Owns: nothing.   Threads: any.   Errors: STK_TRUNCATED where the file ends too early, STK_IO and
 * its kin; words name the file and the offset.   Not here: writing (write_all.h). */
#ifndef PACK_READ_ALL_H
#define PACK_READ_ALL_H

#include <stdint.h>

#include "stoker/error.h"

struct read_file {
    int fd;
    const char *label; /* what messages call it */
};

STK_CHECK stk_status read_all_at(const struct read_file *file, uint64_t offset, void *to,
                                 uint64_t len, struct stk_error *err);

#endif
