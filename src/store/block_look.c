/* The half of block_folder.h that looks at segments: which there are, and which go. */
#include "store/block_look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"

#define SETTLE_NS 50000000 /* a folder's time is coarser than its changes */
#define TOUCH_NS (INT64_C(60) * 1000000000)
#define SWEEP_SECONDS 60
#define SAMPLES 8 /* of which the one that was used longest ago goes */

/* ---- reading the folder -------------------------------------------------------------------- */

struct names {
    uint64_t *items;
    uint32_t count, cap;
};

static int names_add(struct names *names, uint64_t name)
{
    if (names->count == names->cap) {
        uint32_t cap = names->cap ? 2 * names->cap : 256;
        uint64_t *items = memory_grow(names->items, cap * sizeof *items);
        if (!items)
            return 0;
        names->items = items;
        names->cap = cap;
    }
    names->items[names->count++] = name;
    return 1;
}

/* A file whose maker died before it had its name. One that was made just now may be about to be
 * locked. */
static void sweep(int folder, const char *file, int64_t least_age)
{
    struct stat found;
    int fd = openat(folder, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &found) == 0 && time(NULL) - found.st_mtim.tv_sec >= least_age &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, file, 0);
    close(fd);
}

static int parse_name(const char *file, char kind, uint64_t *name)
{
    char *end, again[SEGMENT_NAME_CAP];
    if (file[0] != kind || file[1] != '-' || strlen(file) != 18)
        return 0;
    *name = strtoull(file + 2, &end, 16);
    segment_file(kind, *name, again);
    return !strcmp(again, file);
}

static int compare_names(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static int read_names(int folder, struct names *names, int64_t least_age)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;
    uint64_t name;
    int good = 1;
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while (good && (found = readdir(stream))) {
        if (parse_name(found->d_name, 't', &name))
            sweep(folder, found->d_name, least_age);
        else if (parse_name(found->d_name, 's', &name))
            good = names_add(names, name);
    }
    closedir(stream);
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return good;
}

void block_folder_sweep(struct block_folder *folder)
{
    struct names names = {0};
    read_names(folder->fd, &names, INT64_MIN);
    memory_free(names.items);
}

/* ---- what changed -------------------------------------------------------------------------- */

static int found_block(void *user, struct segment *segment, uint32_t number,
                       const struct segment_entry *entry)
{
    struct block_folder *folder = user;
    struct block_key key = block_key(entry->id, entry->number);
    struct segment_block block = {segment, number, entry->length, entry->offset, -1};
    return !entry->dead && !block_index_add(folder->index, &key, &block);
}

static void scan(struct block_folder *folder, struct segment *segment)
{
    int result = segment_scan(segment, folder->fd, found_block, folder);
    if (result == -EBADMSG)
        segment->sealed = 1; /* what is known of it is all that can be read */
}

/* One that may not be read, or is no segment, is known too: it counts, and it may go. */
static struct segment *meet(struct block_folder *folder, uint64_t name)
{
    struct segment *segment;
    int result = segment_open(&segment, folder->fd, name, !folder->fault->no_maps);
    if (result == -ENOENT || result == -ENOMEM || result == -EMFILE || result == -ENFILE)
        return NULL;
    if (!result) {
        scan(folder, segment);
        return segment;
    }
    segment = memory_zero(1, sizeof *segment);
    if (segment) {
        segment->name = name;
        segment->sealed = 1;
    }
    return segment;
}

static void lose(struct block_folder *folder, struct segment *segment)
{
    segment->gone = 1;
    folder->growing_stale = 1;
    block_index_forget_segment(folder->index, segment);
    segment->next = folder->gone;
    folder->gone = segment;
}

static void free_gone(struct block_folder *folder)
{
    struct segment **link = &folder->gone;
    while (*link) {
        struct segment *segment = *link;
        /* pairs with the release in block_give: its reads are over */
        if (segment->writing || atomic_load_explicit(&segment->refs, memory_order_acquire)) {
            link = &segment->next;
            continue;
        }
        *link = segment->next;
        segment_free(segment);
    }
}

/* Both lists are sorted: those of the folder are kept, met or lost. */
static int merge(struct block_folder *folder, const struct names *names)
{
    struct segment **merged = memory_zero(names->count + 1, sizeof *merged);
    uint32_t count = 0, old = 0;
    int all = 1;
    if (!merged)
        return 0;
    for (uint32_t i = 0; i < names->count; i++) {
        struct segment *segment = NULL;
        while (old < folder->count && folder->segments[old]->name < names->items[i])
            lose(folder, folder->segments[old++]);
        if (old < folder->count && folder->segments[old]->name == names->items[i])
            segment = folder->segments[old++];
        else
            segment = meet(folder, names->items[i]);
        all &= segment != NULL;
        if (segment)
            merged[count++] = segment;
    }
    while (old < folder->count)
        lose(folder, folder->segments[old++]);
    memory_free(folder->segments);
    folder->growing_stale = 1;
    folder->segments = merged;
    folder->count = count;
    folder->cap = names->count + 1;
    return all;
}

static void read_folder(struct block_folder *folder, const struct stat *found)
{
    struct names names = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)(now.tv_sec - found->st_mtim.tv_sec) * 1000000000 + now.tv_nsec -
                  found->st_mtim.tv_nsec;
    block_look_limit(folder);
    folder->settled =
        read_names(folder->fd, &names, SWEEP_SECONDS) && merge(folder, &names) && age > SETTLE_NS;
    folder->changed = found->st_mtim;
    memory_free(names.items);
}

/* Few are, of thousands: a look must not walk over all of them. Without memory for the list it is
 * empty, and what the others add is seen later. */
static void find_growing(struct block_folder *folder)
{
    if (folder->growing_cap < folder->count) {
        memory_free(folder->growing);
        folder->growing = memory_zero(folder->count, sizeof *folder->growing);
        folder->growing_cap = folder->growing ? folder->count : 0;
    }
    folder->growing_count = 0;
    for (uint32_t i = 0; i < folder->count && folder->growing_cap; i++) {
        struct segment *segment = folder->segments[i];
        if (!segment->sealed && !segment->writing)
            folder->growing[folder->growing_count++] = segment;
    }
    folder->growing_stale = !folder->growing_cap && folder->count;
}

/* The lock is held. */
static void look(struct block_folder *folder)
{
    struct stat found;
    if (fstat(folder->fd, &found) == 0 &&
        (!folder->settled || found.st_mtim.tv_sec != folder->changed.tv_sec ||
         found.st_mtim.tv_nsec != folder->changed.tv_nsec))
        read_folder(folder, &found);
    if (folder->growing_stale)
        find_growing(folder);
    for (uint32_t i = 0; i < folder->growing_count; i++) {
        struct segment *segment = folder->growing[i];
        if (!segment->sealed && !segment->writing)
            scan(folder, segment);
    }
    free_gone(folder);
}

void block_folder_look(struct block_folder *folder)
{
    pthread_mutex_lock(&folder->lock);
    look(folder);
    pthread_mutex_unlock(&folder->lock);
}

/* ---- how much, and how long ago ------------------------------------------------------------ */

static uint64_t measure(struct block_folder *folder)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < folder->count; i++) {
        struct segment *segment = folder->segments[i];
        char file[SEGMENT_NAME_CAP];
        struct stat found;
        segment_file('s', segment->name, file);
        segment->bytes = 0;
        if (fstatat(folder->fd, file, &found, AT_SYMLINK_NOFOLLOW) == 0) {
            uint64_t blocks = (uint64_t)found.st_blocks * 512, size = (uint64_t)found.st_size;
            segment->bytes = segment->sealed || size < blocks ? blocks : size;
            segment->touched = (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
        }
        total += segment->bytes;
    }
    atomic_store(&folder->bytes, total);
    return total;
}

uint64_t block_folder_measure(struct block_folder *folder)
{
    pthread_mutex_lock(&folder->lock);
    uint64_t total = measure(folder);
    pthread_mutex_unlock(&folder->lock);
    return total;
}

static int64_t last_used(const struct segment *segment)
{
    int64_t used = atomic_load_explicit(&segment->used, memory_order_relaxed);
    return used > segment->touched ? used : segment->touched;
}

void block_folder_touch(struct block_folder *folder)
{
    pthread_mutex_lock(&folder->lock);
    for (uint32_t i = 0; i < folder->count; i++) {
        struct segment *segment = folder->segments[i];
        char file[SEGMENT_NAME_CAP];
        int64_t used = atomic_load_explicit(&segment->used, memory_order_relaxed);
        if (used < segment->touched + TOUCH_NS)
            continue;
        segment_file('s', segment->name, file);
        segment->touched = used;
        if (utimensat(folder->fd, file, NULL, AT_SYMLINK_NOFOLLOW) != 0)
            continue; /* another's: it will not be known, and no more */
    }
    pthread_mutex_unlock(&folder->lock);
}

/* ---- who goes ------------------------------------------------------------------------------ */

/* Its writer is alive. The lock that tells is let go of at once: should another go on with the
 * segment in that moment, he finds it gone and takes a new one. */
static int is_written_to(const struct block_folder *folder, const struct segment *segment)
{
    if (segment->sealed)
        return 0;
    int fd = segment_fd(segment, folder->fd);
    if (fd < 0)
        return 0;
    int busy = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return busy;
}

static int may_go(const struct block_folder *folder, struct segment *segment)
{
    return !segment->gone && !segment->kept && !segment->writing &&
           !atomic_load_explicit(&segment->refs, memory_order_relaxed) &&
           !is_written_to(folder, segment);
}

/* Of some drawn at random, the one that was used longest ago; of all, when none of those may go.
 * Data that no longer is of use goes first so, and nobody keeps a list in order. */
static struct segment *choose(struct block_folder *folder)
{
    struct segment *best = NULL;
    uint64_t key = random_key((uint64_t)getpid(), folder->turn++);
    for (uint32_t i = 0; i < SAMPLES && folder->count; i++) {
        struct segment *segment = folder->segments[random_below(key, i, folder->count)];
        if ((!best || last_used(segment) < last_used(best)) && may_go(folder, segment))
            best = segment;
    }
    for (uint32_t i = 0; i < folder->count && !best; i++) {
        if (may_go(folder, folder->segments[i]))
            best = folder->segments[i];
    }
    return best;
}

static void drop_from_list(struct block_folder *folder, const struct segment *segment)
{
    uint32_t at = 0;
    while (folder->segments[at] != segment)
        at++;
    folder->count--;
    memmove(&folder->segments[at], &folder->segments[at + 1],
            (folder->count - at) * sizeof(struct segment *));
}

/* 1: it is gone. */
static int evict(struct block_folder *folder, struct segment *segment)
{
    char file[SEGMENT_NAME_CAP];
    segment_file('s', segment->name, file);
    if (block_fault(folder->fault, BLOCK_CALL_UNLINK) ||
        (unlinkat(folder->fd, file, 0) != 0 && errno != ENOENT)) {
        segment->kept = 1;
        return 0;
    }
    atomic_fetch_add_explicit(&folder->evicted, segment->scanned, memory_order_relaxed);
    drop_from_list(folder, segment);
    lose(folder, segment);
    return 1;
}

static int make_room(struct block_folder *folder, uint64_t need)
{
    uint64_t total = measure(folder), limit = atomic_load(&folder->limit);
    while (total > limit || need > limit - total) {
        struct segment *segment = choose(folder);
        if (!segment)
            return -EBUSY;
        uint64_t bytes = segment->bytes;
        if (evict(folder, segment))
            total -= bytes < total ? bytes : total;
    }
    atomic_store(&folder->bytes, total);
    return 0;
}

/* ---- who is written to --------------------------------------------------------------------- */

static struct segment *adopt(struct block_folder *folder, struct segment_writer *writer)
{
    for (uint32_t i = 0; i < folder->count; i++) {
        struct segment *segment = folder->segments[i];
        if (!segment->mine || segment->sealed || segment->writing || segment->kept)
            continue;
        int result = segment_writer_adopt(writer, folder->fd, segment->name);
        if (!result && segment_writer_has_room(writer, BLOCK_SIZE)) {
            scan(folder, segment);
            return segment;
        }
        if (!result) { /* its writer was killed when it was full */
            segment_writer_seal(writer);
            scan(folder, segment);
            segment->sealed = 1;
        }
        if (result == -ENFILE)
            segment->sealed = 1;
    }
    return NULL;
}

static int insert(struct block_folder *folder, struct segment *segment)
{
    if (folder->count == folder->cap) {
        uint32_t cap = folder->cap ? 2 * folder->cap : 64;
        struct segment **segments = memory_grow(folder->segments, cap * sizeof *segments);
        if (!segments)
            return -ENOMEM;
        folder->segments = segments;
        folder->cap = cap;
    }
    folder->growing_stale = 1;
    uint32_t at = folder->count++;
    for (; at && folder->segments[at - 1]->name > segment->name; at--)
        folder->segments[at] = folder->segments[at - 1];
    folder->segments[at] = segment;
    return 0;
}

static int make_new(struct block_folder *folder, struct segment_writer *writer,
                    struct segment **segment)
{
    uint64_t size = block_folder_segment_size(atomic_load(&folder->limit));
    int result = make_room(folder, size + size / 64 + (UINT64_C(64) << 10));
    if (!result)
        result = segment_writer_make(writer, folder->fd, size);
    if (result)
        return result;
    result = segment_open(segment, folder->fd, writer->name, !folder->fault->no_maps);
    if (!result)
        result = insert(folder, *segment);
    if (result) {
        segment_free(*segment);
        *segment = NULL;
        segment_writer_seal(writer);
    }
    return result;
}

int block_folder_writer(struct block_folder *folder, struct segment_writer *writer,
                        struct segment **segment)
{
    *segment = NULL;
    pthread_mutex_lock(&folder->lock);
    int locked = block_room_lock(folder);
    look(folder);
    int result = make_room(folder, 0);
    if (!result)
        *segment = adopt(folder, writer);
    if (!result && !*segment)
        result = make_new(folder, writer, segment);
    if (*segment)
        (*segment)->writing = 1;
    if (locked)
        block_room_unlock(folder);
    pthread_mutex_unlock(&folder->lock);
    return result;
}

int block_folder_has(struct block_folder *folder, const struct segment *segment)
{
    pthread_mutex_lock(&folder->lock);
    int has = !segment->gone;
    pthread_mutex_unlock(&folder->lock);
    return has;
}

void block_folder_written(struct block_folder *folder, struct segment *segment, int sealed)
{
    pthread_mutex_lock(&folder->lock);
    segment->sealed |= sealed;
    if (segment->gone) /* blocks may have been added since it was lost */
        block_index_forget_segment(folder->index, segment);
    segment->writing = 0;
    folder->growing_stale = 1;
    pthread_mutex_unlock(&folder->lock);
}
