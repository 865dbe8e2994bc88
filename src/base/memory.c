#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

typedef int (*memory_hook)(void *user, size_t size);

/* The one piece of state here, and NULL outside tests. A test may set it while threads run that
 * allocate nothing: the user is stored first, and the call (release) pairs with the load (acquire)
 * before every allocation. */
static struct {
    _Atomic(memory_hook) call;
    _Atomic(void *) user;
} hook;

void memory_set_hook(int (*call)(void *user, size_t size), void *user)
{
    atomic_store_explicit(&hook.user, user, memory_order_relaxed);
    atomic_store_explicit(&hook.call, call, memory_order_release);
}

static int refused(size_t size)
{
    memory_hook call = atomic_load_explicit(&hook.call, memory_order_acquire);
    return call && call(atomic_load_explicit(&hook.user, memory_order_relaxed), size);
}

void *memory_alloc(size_t size)
{
    return refused(size) ? NULL : malloc(size ? size : 1);
}

void *memory_zero(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total) || refused(total))
        return NULL;
    return total ? calloc(count, size) : calloc(1, 1);
}

void *memory_grow(void *old, size_t size)
{
    return refused(size) ? NULL : realloc(old, size ? size : 1);
}

void memory_free(void *block)
{
    free(block);
}

char *memory_text(const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? memory_alloc(len + 1) : NULL;
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

/* 0 when size is 0 or does not fit once rounded up. */
static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size > SIZE_MAX - HUGE_PAGE - page ? 0 : (size + page - 1) & ~(page - 1);
}

static void *map_pages(size_t size)
{
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

/* Maps 2 MiB too much and gives back what lies before and after the aligned part. */
static void *map_aligned(size_t size)
{
    char *raw = map_pages(size + HUGE_PAGE);
    if (!raw)
        return NULL;
    size_t before = (HUGE_PAGE - ((uintptr_t)raw & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (before)
        munmap(raw, before);
    if (before < HUGE_PAGE)
        munmap(raw + before + size, HUGE_PAGE - before);
    madvise(raw + before, size, MADV_HUGEPAGE); /* only advice: small pages work as well */
    return raw + before;
}

void *memory_map(size_t size)
{
    size_t whole = whole_pages(size ? size : 1);
    if (!whole || refused(whole))
        return NULL;
    return size >= HUGE_PAGE ? map_aligned(whole) : map_pages(whole);
}

void memory_unmap(void *block, size_t size)
{
    if (block)
        munmap(block, whole_pages(size ? size : 1));
}
