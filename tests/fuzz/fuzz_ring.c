/* The ring of a watched process. The first 8 bytes are the head; what follows lies in the ring. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/ring_read.h"

#define CAPACITY 4096u

static stk_status look(void *user, const struct record *record, struct stk_error *err)
{
    uint64_t *sum = user;
    const uint8_t *bytes = (const uint8_t *)record;
    (void)err;
    for (uint32_t i = 0; i < record->size; i++)
        *sum += bytes[i]; /* all of it is there */
    if (!record_whole(record, record->size))
        abort();
    return STK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ring_header header = {.magic = RING_MAGIC,
                                 .version = RING_VERSION,
                                 .kind = RING_PYTHON,
                                 .capacity = CAPACITY,
                                 .state = RING_OPEN};
    struct ring_read *ring;
    struct stk_error err;
    char path[64];
    uint64_t sum = 0;
    if (size < 8)
        return 0;
    memcpy(&header.head, data, 8);
    size = size - 8 < CAPACITY ? size - 8 : CAPACITY;
    snprintf(path, sizeof path, "stoker-fuzz-%ld", (long)getpid());
    int folder = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(folder, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, RING_HEADER + CAPACITY) ||
        pwrite(fd, &header, sizeof header, 0) != sizeof header ||
        pwrite(fd, data + 8, size, RING_HEADER) != (ssize_t)size ||
        ring_read_open(&ring, folder, path, &err))
        abort();
    unlinkat(folder, path, 0);
    for (int i = 0; i < 2; i++)
        if (ring_read_drain(ring, look, &sum, &err) && err.status != STK_CORRUPT)
            abort();
    ring_read_close(ring);
    close(fd);
    close(folder);
    return 0;
}
