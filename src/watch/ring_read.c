#include "watch/ring_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

/* Larger than any record: names and JSON are cut by their writers. */
#define RECORD_MOST ((uint64_t)64 << 10)
/* A writer that fills the ring as fast as it is read must not hold up the others. */
#define DRAIN_MOST 4 /* times the capacity */
#define HELD_MOST ((uint64_t)1 << 20)

struct ring_read {
    int fd;
    struct ring_header *header; /* of the mapping, with the bytes behind it */
    uint64_t mapped;
    uint64_t capacity; /* as checked: the header may change under our eyes */
    uint32_t pid, parent, kind;
    uint64_t born;
    uint64_t tail; /* ours; the one in the header is for the writer */
    uint64_t held; /* since there are no pages of it in our memory */
    uint64_t taken;
    union {
        struct record record;
        uint8_t bytes[RECORD_MOST];
    } copy;
};

/* --- records ---------------------------------------------------------------------------------- */

static int text_whole(const struct record *record, size_t fixed, uint64_t len)
{
    return record->size >= fixed && len <= record->size - fixed;
}

int record_whole(const struct record *record, uint64_t size)
{
    static const uint16_t sizes[] = {
        [RECORD_NAME] = sizeof(struct record_text),
        [RECORD_KERNEL] = sizeof(struct record_kernel),
        [RECORD_COPY] = sizeof(struct record_copy),
        [RECORD_SYNC] = sizeof(struct record_sync),
        [RECORD_COST] = sizeof(struct record_cost),
        [RECORD_GPU] = sizeof(struct record_gpu),
        [RECORD_LOST] = sizeof(struct record_lost),
        [RECORD_REACHED] = sizeof(struct record_reached),
        [RECORD_PROCESS] = sizeof(struct record_text),
        [RECORD_LOADER] = sizeof(struct record_text),
        [RECORD_FRAME] = offsetof(struct record_frame, text),
        [RECORD_SAMPLE] = sizeof(struct record_sample),
        [RECORD_SPAN] = sizeof(struct record_span),
        [RECORD_MARK] = sizeof(struct record_mark),
        [RECORD_QUEUE] = sizeof(struct record_queue),
        [RECORD_FILES] = sizeof(struct record_text),
        [RECORD_NOTICE] = sizeof(struct record_text),
    };
    if (size < sizeof *record || record->size < sizeof *record || record->size > size ||
        record->size % 8)
        return 0;
    if (record->type >= sizeof sizes / sizeof sizes[0])
        return 1;
    if (record->size < sizes[record->type])
        return 0;
    switch (record->type) {
    case RECORD_NAME:
    case RECORD_PROCESS:
    case RECORD_LOADER:
    case RECORD_FILES:
    case RECORD_NOTICE:
        return text_whole(record, offsetof(struct record_text, text),
                          ((const struct record_text *)record)->len);
    case RECORD_GPU:
        return text_whole(record, offsetof(struct record_gpu, text),
                          ((const struct record_gpu *)record)->len);
    case RECORD_FRAME: {
        const struct record_frame *frame = (const struct record_frame *)record;
        return text_whole(record, offsetof(struct record_frame, text),
                          (uint64_t)frame->function_len + frame->file_len);
    }
    default:
        return 1;
    }
}

/* A record of something that took time must not end before it began. */
static int times_in_order(const struct record *record)
{
    switch (record->type) {
    case RECORD_KERNEL:
    case RECORD_COPY:
    case RECORD_SYNC:
    case RECORD_COST:
    case RECORD_SPAN: {
        const struct record_kernel *timed = (const struct record_kernel *)record;
        return timed->start <= timed->end; /* all five begin alike */
    }
    default:
        return 1;
    }
}

_Static_assert(offsetof(struct record_kernel, start) == offsetof(struct record_copy, start) &&
                   offsetof(struct record_kernel, start) == offsetof(struct record_sync, start) &&
                   offsetof(struct record_kernel, start) == offsetof(struct record_cost, start) &&
                   offsetof(struct record_kernel, start) == offsetof(struct record_span, start) &&
                   offsetof(struct record_kernel, end) == offsetof(struct record_span, end),
               "times lie at the same place");

/* --- the ring --------------------------------------------------------------------------------- */

static stk_status broken(struct ring_read *ring, const char *why, struct stk_error *err)
{
    stk_status status =
        fail(err, STK_CORRUPT, "process %u told something that is broken: %s", ring->pid, why);
    return status;
}

/* The file may be shortened while it is mapped, and then reading it would end us. */
static int still_long_enough(const struct ring_read *ring)
{
    struct stat found;
    return !fstat(ring->fd, &found) && (uint64_t)found.st_size >= ring->mapped;
}

static stk_status map_ring(struct ring_read *ring, const char *name, struct stk_error *err)
{
    struct ring_header header;
    struct stat found;
    ssize_t len = pread(ring->fd, &header, sizeof header, 0);
    if (len < 0 || fstat(ring->fd, &found))
        return fail_errno(err, errno, "reading %s", name);
    if ((size_t)len < sizeof header || header.magic != RING_MAGIC)
        return fail(err, STK_CORRUPT, "%s is no ring", name);
    if (header.version != RING_VERSION)
        return fail(err, STK_CORRUPT, "%s is of version %u, not %u", name, header.version,
                    RING_VERSION);
    uint64_t capacity = header.capacity;
    if (capacity < 4096 || capacity > RING_MOST || (capacity & (capacity - 1)) ||
        (header.kind != RING_GPU && header.kind != RING_PYTHON) || found.st_size < 0 ||
        (uint64_t)found.st_size < RING_HEADER + capacity)
        return fail(err, STK_CORRUPT, "%s says of itself what cannot be", name);
    void *map = mmap(NULL, RING_HEADER + capacity, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (map == MAP_FAILED)
        return fail_errno(err, errno, "mapping %s", name);
    ring->header = map;
    ring->mapped = RING_HEADER + capacity;
    ring->capacity = capacity;
    ring->pid = header.pid;
    ring->parent = header.parent;
    ring->kind = header.kind;
    ring->born = header.born;
    ring->tail = ring->held = __atomic_load_n(&ring->header->tail, __ATOMIC_RELAXED);
    return STK_OK;
}

stk_status ring_read_open(struct ring_read **out, int folder, const char *name,
                          struct stk_error *err)
{
    stk_status status;
    *out = NULL;
    struct ring_read *ring = memory_zero(1, sizeof *ring);
    if (!ring)
        return fail_memory(err, sizeof *ring);
    ring->fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (ring->fd < 0)
        status = fail_errno(err, errno, "opening %s", name);
    else
        status = map_ring(ring, name, err);
    if (status)
        goto done;
    *out = ring;
    ring = NULL;
done:
    ring_read_close(ring);
    return status;
}

void ring_read_close(struct ring_read *ring)
{
    if (!ring)
        return;
    if (ring->header)
        munmap(ring->header, ring->mapped);
    if (ring->fd >= 0)
        close(ring->fd);
    memory_free(ring);
}

/* The record at the tail, copied; NULL with words when it cannot be one. */
static const struct record *copy_record(struct ring_read *ring, uint64_t head, const char **why)
{
    uint64_t at = ring->tail & (ring->capacity - 1);
    uint64_t room = ring->capacity - at; /* to the end of the ring */
    const uint8_t *from = (const uint8_t *)ring->header + RING_HEADER + at;
    struct record start;
    memcpy(&start, from, sizeof start);
    if (start.size < sizeof start || start.size % 8 || start.size > room ||
        start.size > head - ring->tail) {
        *why = "a record of an impossible size";
        return NULL;
    }
    if (start.type == RECORD_FILLER) {
        ring->copy.record = start;
        return &ring->copy.record;
    }
    if (start.size > RECORD_MOST) {
        *why = "a record that is too large";
        return NULL;
    }
    memcpy(ring->copy.bytes, from, start.size);
    ring->copy.record = start; /* what was checked is what is handed over */
    if (!record_whole(&ring->copy.record, start.size)) {
        *why = "a record that is not whole";
        return NULL;
    }
    return &ring->copy.record;
}

/* A run of many ranks reads many rings, of 8 MiB each: what was read is let go of. The pages stay
 * in the file, for the writer. */
static void let_go(struct ring_read *ring)
{
    if (ring->tail - ring->held < HELD_MOST)
        return;
    madvise(ring->header, ring->mapped, MADV_DONTNEED);
    ring->held = ring->tail;
}

stk_status ring_read_drain(struct ring_read *ring,
                           stk_status (*take)(void *user, const struct record *record,
                                              struct stk_error *err),
                           void *user, struct stk_error *err)
{
    stk_status status = STK_OK;
    uint64_t first = ring->tail;
    if (!still_long_enough(ring))
        return broken(ring, "its ring was cut short", err);
    while (!status && ring->tail - first < DRAIN_MOST * ring->capacity) {
        /* pairs with the writer's release of head */
        uint64_t head = __atomic_load_n(&ring->header->head, __ATOMIC_ACQUIRE);
        if (head == ring->tail)
            break;
        if (head < ring->tail || head - ring->tail > ring->capacity || head % 8)
            return broken(ring, "more than fits into its ring", err);
        while (!status && ring->tail < head) {
            const char *why = NULL;
            const struct record *record = copy_record(ring, head, &why);
            if (!record)
                return broken(ring, why, err);
            uint32_t size = record->size;
            if (record->type != RECORD_FILLER && times_in_order(record)) {
                ring->taken++;
                status = take(user, record, err);
            }
            ring->tail += size;
            let_go(ring);
        }
        /* pairs with the writer's acquire of tail */
        __atomic_store_n(&ring->header->tail, ring->tail, __ATOMIC_RELEASE);
    }
    return status;
}

enum ring_kind ring_read_kind(const struct ring_read *ring)
{
    return (enum ring_kind)ring->kind;
}

uint32_t ring_read_pid(const struct ring_read *ring)
{
    return ring->pid;
}

uint32_t ring_read_parent(const struct ring_read *ring)
{
    return ring->parent;
}

uint64_t ring_read_born(const struct ring_read *ring)
{
    return ring->born;
}

uint64_t ring_read_lost(const struct ring_read *ring)
{
    if (!still_long_enough(ring))
        return 0;
    return __atomic_load_n(&ring->header->lost, __ATOMIC_RELAXED);
}

uint64_t ring_read_taken(const struct ring_read *ring)
{
    return ring->taken;
}

int ring_read_closed(const struct ring_read *ring)
{
    return still_long_enough(ring) &&
           __atomic_load_n(&ring->header->state, __ATOMIC_ACQUIRE) == RING_CLOSED;
}
