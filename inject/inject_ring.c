#include "inject_ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "inject_clock.h"

enum { CAPACITY_LEAST = 256 << 10, ALIGNMENT = 8, INTERRUPTED_MOST = 100 };

/* The file, so large and with its space reserved. One that is larger than the program may make
 * would end the program, by SIGXFSZ. */
static int file_make(const char *path, uint64_t size, int *out)
{
    struct rlimit most;
    if (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur < size)
        return EFBIG;
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    int error, tries = INTERRUPTED_MOST; /* by signals of the program's */
    do
        error = posix_fallocate(fd, 0, (off_t)size);
    while (error == EINTR && --tries > 0);
    if (error) {
        close(fd);
        unlink(path);
        return error;
    }
    *out = fd;
    return 0;
}

static void header_fill(struct ring_header *header, uint64_t capacity)
{
    header->version = RING_VERSION;
    header->kind = RING_GPU;
    header->capacity = capacity;
    header->pid = (uint32_t)getpid();
    header->parent = (uint32_t)getppid();
    header->born = inject_clock_now();
    header->state = RING_OPEN;
    header->magic = RING_MAGIC;
}

int inject_ring_open(struct inject_ring *ring, const char *folder, uint64_t capacity)
{
    assert((capacity & (capacity - 1)) == 0);
    *ring = (struct inject_ring){0};
    char made[PATH_MAX], wanted[PATH_MAX];
    int pid = (int)getpid(), fd = -1;
    if (snprintf(made, sizeof made, "%s/new.%d.gpu", folder, pid) >= (int)sizeof made ||
        snprintf(wanted, sizeof wanted, "%s/ring.%d.gpu", folder, pid) >= (int)sizeof wanted)
        return ENAMETOOLONG;
    (void)unlink(made); /* of a process with this number that was killed just here */
    int error = file_make(made, RING_HEADER + capacity, &fd);
    while ((error == ENOSPC || error == EDQUOT || error == EFBIG) && capacity > CAPACITY_LEAST) {
        capacity /= 2;
        error = file_make(made, RING_HEADER + capacity, &fd);
    }
    if (error)
        return error;
    void *memory = mmap(NULL, RING_HEADER + capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = memory == MAP_FAILED ? errno : 0;
    close(fd);
    if (!error) {
        ring->header = memory;
        ring->bytes = (uint8_t *)memory + RING_HEADER;
        ring->capacity = capacity;
        header_fill(ring->header, capacity);
        error = rename(made, wanted) ? errno : 0;
    }
    if (error) {
        unlink(made);
        inject_ring_close(ring);
    }
    return error;
}

/* Whether so many bytes more fit; the reader's progress is looked at only when it matters. */
static int has_room(struct inject_ring *ring, uint64_t size)
{
    if (ring->head + size - ring->tail <= ring->capacity)
        return 1;
    ring->tail = __atomic_load_n(&ring->header->tail, __ATOMIC_ACQUIRE); /* the reader's store */
    return ring->head + size - ring->tail <= ring->capacity;
}

static void head_fill(void *record, enum record_type type, size_t size)
{
    *(struct record *)record = (struct record){.type = (uint16_t)type, .size = (uint32_t)size};
}

void *inject_ring_add(struct inject_ring *ring, enum record_type type, size_t size)
{
    assert(size % ALIGNMENT == 0 && size >= sizeof(struct record));
    if (!ring->header)
        return NULL;
    uint64_t position = ring->head & (ring->capacity - 1);
    uint64_t to_end = ring->capacity - position;
    uint64_t filler = size > to_end ? to_end : 0;
    if (!has_room(ring, filler + size)) {
        __atomic_store_n(&ring->header->lost, ++ring->lost, __ATOMIC_RELAXED);
        return NULL;
    }
    if (filler)
        head_fill(ring->bytes + position, RECORD_FILLER, filler);
    void *record = ring->bytes + (filler ? 0 : position);
    head_fill(record, type, size);
    ring->head += filler + size;
    return record;
}

void inject_ring_publish(struct inject_ring *ring)
{
    if (ring->header)
        __atomic_store_n(&ring->header->head, ring->head, __ATOMIC_RELEASE);
}

void inject_ring_close(struct inject_ring *ring)
{
    if (!ring->header)
        return;
    inject_ring_publish(ring);
    __atomic_store_n(&ring->header->state, RING_CLOSED, __ATOMIC_RELEASE);
    munmap(ring->header, RING_HEADER + ring->capacity);
    *ring = (struct inject_ring){0};
}
