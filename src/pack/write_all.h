/* write_all.h -- write(2) and pwrite(2) that go on until all is written.
 * Owns: nothing.   Threads: any.   Errors: 0, or the errno.   Not here: words (base/fail.h). */
#ifndef PACK_WRITE_ALL_H
#define PACK_WRITE_ALL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static inline int write_all(int fd, const void *data, size_t len)
{
    const uint8_t *from = data;

    while (len) {
        ssize_t done = write(fd, from, len);
        if (done < 0 && errno != EINTR)
            return errno;
        if (done > 0) {
            from += done;
            len -= (size_t)done;
        }
    }
    return 0;
}

static inline int write_all_at(int fd, const void *data, size_t len, uint64_t offset)
{
    const uint8_t *from = data;

    while (len) {
        ssize_t done = pwrite(fd, from, len, (off_t)offset);
        if (done < 0 && errno != EINTR)
            return errno;
        if (done > 0) {
            from += done;
            offset += (uint64_t)done;
            len -= (size_t)done;
        }
    }
    return 0;
}

#endif
