#include "store/file_map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define MOST_OBJECTS 65536

struct mapped {
    const uint8_t *data; /* NULL: cannot be mapped */
    size_t size;
    _Atomic int64_t checked; /* clock_coarse; pairs with itself: whoever moves it on looks */
    _Atomic int stale;       /* only ever set; readers may see it late */
};

struct file_map {
    const struct object_table *table;
    struct file_cache *files;
    int64_t recheck_ns;
    uint32_t count;                    /* objects that may be mapped */
    pthread_mutex_t lock;              /* held to fill an empty entry */
    _Atomic(struct mapped *) *entries; /* release when filled, acquire when read */
};

stk_status file_map_new(struct file_map **out, const struct object_table *table,
                        struct file_cache *files, struct stk_error *err)
{
    *out = NULL;
    struct file_map *map = memory_zero(1, sizeof *map);
    if (!map)
        return fail_memory(err, sizeof *map);
    map->table = table;
    map->files = files;
    pthread_mutex_init(&map->lock, NULL);
    if (table->count <= MOST_OBJECTS) {
        map->count = table->count;
        /* Looking costs a few microseconds: with more objects each is looked at less often. */
        map->recheck_ns = FILE_CACHE_RECHECK_NS * (int64_t)(1 + table->count / 1024);
        map->entries = memory_zero(map->count, sizeof *map->entries);
        if (!map->entries) {
            file_map_free(map);
            return fail_memory(err, table->count * sizeof *map->entries);
        }
    }
    *out = map;
    return STK_OK;
}

void file_map_free(struct file_map *map)
{
    if (!map)
        return;
    for (uint32_t i = 0; map->entries && i < map->count; i++) {
        struct mapped *entry = atomic_load_explicit(&map->entries[i], memory_order_acquire);
        if (entry && entry->data)
            munmap((void *)entry->data, entry->size);
        memory_free(entry);
    }
    pthread_mutex_destroy(&map->lock);
    memory_free(map->entries);
    memory_free(map);
}

static const uint8_t *map_file(struct file_map *map, uint32_t object, size_t *size)
{
    struct file_ref file;
    int error_number;
    const uint8_t *data = NULL;
    if (file_cache_take(map->files, object, &file, &error_number))
        return NULL;
    if (file.size && file.size <= SIZE_MAX / 2) {
        void *block = mmap(NULL, file.size, PROT_READ, MAP_SHARED, file.fd, 0);
        if (block != MAP_FAILED)
            data = block;
    }
    *size = file.size;
    file_cache_give(map->files, &file);
    return data;
}

/* A file that cannot be mapped is remembered as such: its reads will say why. */
static struct mapped *fill_entry(struct file_map *map, uint32_t object)
{
    pthread_mutex_lock(&map->lock);
    struct mapped *entry = atomic_load_explicit(&map->entries[object], memory_order_relaxed);
    if (!entry && (entry = memory_zero(1, sizeof *entry))) {
        entry->data = map_file(map, object, &entry->size);
        atomic_store_explicit(&entry->checked, clock_coarse(), memory_order_relaxed);
        atomic_store_explicit(&map->entries[object], entry, memory_order_release);
    }
    pthread_mutex_unlock(&map->lock);
    return entry;
}

/* Once in a while one caller looks whether the file is still the one that was mapped. */
static int still_good(struct file_map *map, struct mapped *entry, uint32_t object)
{
    int64_t now = clock_coarse();
    int64_t checked = atomic_load_explicit(&entry->checked, memory_order_relaxed);
    if (now - checked >= map->recheck_ns &&
        atomic_compare_exchange_strong(&entry->checked, &checked, now)) {
        struct file_ref file;
        int error_number;
        if (file_cache_take(map->files, object, &file, &error_number) == STK_OK)
            file_cache_give(map->files, &file);
        else
            atomic_store_explicit(&entry->stale, 1, memory_order_relaxed);
    }
    return !atomic_load_explicit(&entry->stale, memory_order_relaxed);
}

const uint8_t *file_map_get(struct file_map *map, uint32_t object)
{
    if (object >= map->count)
        return NULL;
    struct mapped *entry = atomic_load_explicit(&map->entries[object], memory_order_acquire);
    if (!entry && !(entry = fill_entry(map, object)))
        return NULL;
    return entry->data && still_good(map, entry, object) ? entry->data : NULL;
}
