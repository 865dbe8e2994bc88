/* ring_making.h -- rings as watched processes make them, for tests.
 * Owns: nothing.   Threads: one.   Errors: a failed assertion.   Not here: any test. */
#ifndef TESTS_RING_MAKING_H
#define TESTS_RING_MAKING_H

#include "base/testing.h"

#include <sys/mman.h>

#include "watch/record.h"

#define SMALL_RING 4096u

/* A ring with a header, mapped. */
TESTING struct ring_header *ring_make(const char *path, enum ring_kind kind, uint32_t pid,
                                      uint64_t capacity)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)(RING_HEADER + capacity)), 0);
    struct ring_header *ring =
        mmap(NULL, RING_HEADER + capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(ring != MAP_FAILED);
    close(fd);
    ring->magic = RING_MAGIC;
    ring->version = RING_VERSION;
    ring->kind = kind;
    ring->capacity = capacity;
    ring->pid = pid;
    ring->parent = 1;
    ring->born = 5;
    ring->state = RING_OPEN;
    return ring;
}

TESTING void ring_unmake(struct ring_header *ring)
{
    munmap(ring, RING_HEADER + ring->capacity);
}

/* As a writer does it. 0: no room, counted. */
TESTING int ring_put(struct ring_header *ring, const void *record, uint32_t size)
{
    uint8_t *bytes = (uint8_t *)ring + RING_HEADER;
    uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    uint64_t at = ring->head & (ring->capacity - 1), rest = ring->capacity - at;
    uint64_t filler = rest < size ? rest : 0;
    if (ring->head + filler + size - tail > ring->capacity) {
        ring->lost++;
        return 0;
    }
    if (filler) {
        struct record gap = {.type = RECORD_FILLER, .size = (uint32_t)filler};
        memcpy(bytes + at, &gap, sizeof gap);
        at = 0;
    }
    memcpy(bytes + at, record, size);
    __atomic_store_n(&ring->head, ring->head + filler + size, __ATOMIC_RELEASE);
    return 1;
}

TESTING int ring_put_mark(struct ring_header *ring, uint64_t time, uint64_t a)
{
    struct record_mark mark = {.head = {.type = RECORD_MARK, .size = sizeof mark},
                               .time = time,
                               .what = MARK_STEP,
                               .a = a};
    return ring_put(ring, &mark, sizeof mark);
}

TESTING int ring_put_text(struct ring_header *ring, enum record_type type, const char *text)
{
    uint32_t len = (uint32_t)strlen(text);
    uint32_t size = (uint32_t)(sizeof(struct record_text) + len + 7) & ~7u;
    union {
        struct record_text text;
        uint8_t bytes[1024];
    } made = {.text = {.head = {.type = type, .size = size}, .len = len}};
    assert_true(size <= sizeof made);
    memcpy(made.bytes + sizeof(struct record_text), text, len);
    return ring_put(ring, &made, size);
}

#endif
