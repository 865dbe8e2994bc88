#include "inject_buffers.h"

#include <sys/mman.h>

enum {
    RECORD_BYTES = 256,    /* the largest that CUPTI 13.4 writes has 248 */
    SIZE_LEAST = 16 << 10, /* bytes */
    RECORDS_LEAST = 4,     /* in a buffer */
    FILLED_IN = 10,        /* a tenth of a second */
    KEPT = 4,              /* so many buffers keep their memory */
};

int inject_buffers_init(struct inject_buffers *buffers)
{
    if (buffers->memory)
        return 0;
    void *memory = mmap(NULL, (size_t)BUFFER_SLOTS * BUFFER_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    buffers->memory = memory == MAP_FAILED ? NULL : memory;
    return buffers->memory ? 0 : -1;
}

/* The first word of a record is its kind, which is not 0; CUPTI clears buffers before use. */
static volatile uint32_t *first_word(const struct inject_buffers *buffers, int slot)
{
    return (volatile uint32_t *)(void *)(buffers->memory + (size_t)slot * BUFFER_BYTES);
}

/* CUPTI writes at the same time. It does not matter which of two values is seen: a record that
 * comes now is not over yet. */
__attribute__((no_sanitize("thread"))) static int is_empty(const struct inject_buffers *buffers,
                                                           int slot)
{
    return !*first_word(buffers, slot);
}

static void size_choose(struct inject_buffers *buffers, uint32_t held, size_t *size,
                        size_t *most_records)
{
    size_t records = atomic_load_explicit(&buffers->records_s, memory_order_relaxed) / FILLED_IN;
    records = records < RECORDS_LEAST ? RECORDS_LEAST : records;
    records <<= held / 2 < 16 ? held / 2 : 16;
    size_t bytes = (records * RECORD_BYTES + 4095) & ~(size_t)4095;
    if (bytes >= BUFFER_BYTES) {
        *size = BUFFER_BYTES;
        *most_records = 0;
        return;
    }
    *size = bytes < SIZE_LEAST ? SIZE_LEAST : bytes;
    *most_records = records;
}

uint8_t *inject_buffers_give(struct inject_buffers *buffers, uint64_t now, size_t *size,
                             size_t *most_records)
{
    *size = *most_records = 0;
    for (int i = 0; buffers->memory && i < BUFFER_SLOTS; i++) {
        uint64_t nobody = 0;
        if (!atomic_compare_exchange_strong(&buffers->since[i], &nobody, now))
            continue;
        size_choose(buffers, atomic_fetch_add(&buffers->held, 1), size, most_records);
        *first_word(buffers, i) = 0;
        return buffers->memory + (size_t)i * BUFFER_BYTES;
    }
    return NULL;
}

void inject_buffers_take(struct inject_buffers *buffers, uint8_t *buffer)
{
    if (!buffers->memory || buffer < buffers->memory)
        return;
    size_t slot = (size_t)(buffer - buffers->memory) / BUFFER_BYTES;
    if (slot >= BUFFER_SLOTS || !atomic_load(&buffers->since[slot]))
        return; /* not of ours */
    if (slot >= KEPT)
        madvise(buffers->memory + slot * BUFFER_BYTES, BUFFER_BYTES, MADV_DONTNEED);
    if (!atomic_exchange(&buffers->is_stale[slot], 0))
        atomic_fetch_sub(&buffers->held, 1);
    atomic_store(&buffers->since[slot], 0); /* pairs with the exchange in inject_buffers_give */
}

uint64_t inject_buffers_oldest(struct inject_buffers *buffers, uint64_t now)
{
    uint64_t oldest = now;
    for (int i = 0; buffers->memory && i < BUFFER_SLOTS; i++) {
        uint64_t since = atomic_load(&buffers->since[i]);
        if (!since || since >= oldest || atomic_load(&buffers->is_stale[i]))
            continue;
        if (!is_empty(buffers, i))
            oldest = since;
    }
    return oldest;
}

void inject_buffers_forget(struct inject_buffers *buffers)
{
    for (int i = 0; i < BUFFER_SLOTS; i++)
        if (atomic_load(&buffers->since[i]) && !atomic_exchange(&buffers->is_stale[i], 1))
            atomic_fetch_sub(&buffers->held, 1);
}
