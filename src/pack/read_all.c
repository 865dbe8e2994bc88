#include "pack/read_all.h"

#include <errno.h>
#include <unistd.h>

#include "base/fail.h"

stk_status read_all_at(const struct read_file *file, uint64_t offset, void *to, uint64_t len,
                       struct stk_error *err)
{
    uint8_t *at = to;

    while (len) {
        ssize_t got = pread(file->fd, at, len, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            stk_status status = got ? fail_errno(err, errno, "reading rows failed")
                                    : fail(err, STK_TRUNCATED, "the rows end too early");
            fail_at(err, file->label, offset);
            return status;
        }
        at += got;
        offset += (uint64_t)got;
        len -= (uint64_t)got;
    }
    return STK_OK;
}
