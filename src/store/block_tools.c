#include "store/block_tools.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/block_folder.h"
#include "store/guard.h"

/* A folder opened to be looked at. */
struct opened {
    struct block_fault no_fault;
    struct block_index index;
    struct block_folder folder;
};

static void opened_close(struct opened *opened)
{
    if (!opened)
        return;
    block_folder_close(&opened->folder);
    block_index_reset(&opened->index);
    memory_free(opened);
}

static stk_status opened_new(struct opened **out, const char *path, struct stk_error *err)
{
    *out = NULL;
    stk_status status = guard_install(err);
    struct opened *opened = status ? NULL : memory_zero(1, sizeof *opened);
    if (!opened)
        return status ? status : fail_memory(err, sizeof *opened);
    opened->folder.fd = opened->folder.claims_fd = -1;
    opened->folder.fault = &opened->no_fault;
    opened->folder.index = &opened->index;
    block_index_init(&opened->index);
    status = block_folder_open(&opened->folder, path, 0, 0, err);
    if (status == STK_NOT_FOUND) {
        status = fail(err, STK_NOT_FOUND, "there is no cache in this folder");
        fail_at(err, path, STK_NOWHERE);
        fail_remedy(err, "a cache is made when data is read with --cache %s", path);
    }
    if (status)
        opened_close(opened);
    else
        *out = opened;
    return status;
}

/* Not 0: the index knows the block from here, and not from another segment. */
static int is_known_from(struct opened *opened, const struct segment *segment, uint32_t number,
                         const struct segment_entry *entry)
{
    struct block_key key = block_key(entry->id, entry->number);
    struct block_stripe *stripe = block_index_stripe(&opened->index, &key);
    const struct block_node *node = stripe_find(stripe, &key); /* nobody else is here */
    return node && node->state == NODE_HERE && node->at.segment == segment && node->entry == number;
}

/* ---- listing ------------------------------------------------------------------------------- */

struct listing {
    struct opened *opened;
    struct block_held *items; /* their uris are ours */
    uint32_t count, cap;
    uint32_t *slots; /* open addressing into items; 0: free, else number + 1 */
    uint32_t slot_count;
};

static int listing_grow(struct listing *listing)
{
    uint32_t cap = listing->cap ? 2 * listing->cap : 256;
    struct block_held *items = memory_grow(listing->items, cap * sizeof *items);
    if (!items)
        return 0;
    listing->items = items;
    listing->cap = cap;
    uint32_t *slots = memory_zero(2 * (size_t)cap, sizeof *slots);
    if (!slots)
        return 0;
    for (uint32_t i = 0; i < listing->count; i++) {
        uint32_t at;
        memcpy(&at, items[i].id, sizeof at);
        for (at &= 2 * cap - 1; slots[at]; at = (at + 1) & (2 * cap - 1))
            ;
        slots[at] = i + 1;
    }
    memory_free(listing->slots);
    listing->slots = slots;
    listing->slot_count = 2 * cap;
    return 1;
}

static struct block_held *listing_find(struct listing *listing, const uint8_t id[16])
{
    uint32_t at;
    if (listing->count == listing->cap && !listing_grow(listing))
        return NULL;
    memcpy(&at, id, sizeof at);
    for (at &= listing->slot_count - 1; listing->slots[at];
         at = (at + 1) & (listing->slot_count - 1))
        if (!memcmp(listing->items[listing->slots[at] - 1].id, id, 16))
            return &listing->items[listing->slots[at] - 1];
    struct block_held *held = &listing->items[listing->count++];
    *held = (struct block_held){.uri = NULL};
    memcpy(held->id, id, sizeof held->id);
    listing->slots[at] = listing->count;
    return held;
}

static int list_entry(void *user, struct segment *segment, uint32_t number,
                      const struct segment_entry *entry)
{
    struct listing *listing = user;
    char name[SEGMENT_NAME_MOST + 1];
    if (!is_known_from(listing->opened, segment, number, entry))
        return 0;
    struct block_held *held = listing_find(listing, entry->id);
    if (!held)
        return -1;
    held->object_size = entry->object_size;
    held->blocks++;
    held->bytes += entry->length;
    if (!held->uri) {
        segment_object_name(segment, listing->opened->folder.fd, entry, name);
        held->uri = name[0] ? memory_text(name, strlen(name)) : NULL;
    }
    return 0;
}

static int compare_held(const void *left, const void *right)
{
    const struct block_held *a = left, *b = right;
    int order = strcmp(a->uri ? a->uri : "", b->uri ? b->uri : "");
    return order ? order : memcmp(a->id, b->id, sizeof a->id);
}

static stk_status list_all(struct listing *listing, struct block_total *total,
                           struct stk_error *err)
{
    struct block_folder *folder = &listing->opened->folder;
    for (uint32_t i = 0; i < folder->count; i++) {
        struct segment *segment = folder->segments[i];
        total->segments++;
        total->hidden += !segment->head.entry_cap;
        if (!segment->head.entry_cap)
            continue;
        segment->scanned = 0;
        if (segment_scan(segment, folder->fd, list_entry, listing) == -ENOMEM)
            return fail_memory(err, sizeof(struct block_held));
    }
    total->objects = listing->count;
    for (uint32_t i = 0; i < listing->count; i++) {
        total->blocks += listing->items[i].blocks;
        total->bytes += listing->items[i].bytes;
    }
    if (listing->count)
        qsort(listing->items, listing->count, sizeof *listing->items, compare_held);
    return STK_OK;
}

/* ---- other layouts ------------------------------------------------------------------------- */

static int is_other_layout(const char *name)
{
    size_t len = strlen(BLOCK_FOLDER_PREFIX);
    return !strncmp(name, BLOCK_FOLDER_PREFIX, len) && strcmp(name, BLOCK_FOLDER_NAME) &&
           name[len] && strspn(name + len, "0123456789") == strlen(name + len);
}

/* Removes the plain files of a folder. */
static void empty_folder(int parent, const char *name, struct block_cleared *cleared)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((found = readdir(stream))) {
        struct stat facts;
        if (fstatat(fd, found->d_name, &facts, AT_SYMLINK_NOFOLLOW) || !S_ISREG(facts.st_mode))
            continue;
        if (unlinkat(fd, found->d_name, 0) == 0) {
            cleared->files++;
            cleared->bytes += (uint64_t)facts.st_blocks * 512;
        } else {
            cleared->kept++;
        }
    }
    closedir(stream);
}

/* How many there are; cleared not NULL: they are removed. */
static uint64_t other_layouts(const char *path, struct block_cleared *cleared)
{
    DIR *stream = opendir(path);
    const struct dirent *found;
    uint64_t count = 0;
    while (stream && (found = readdir(stream))) {
        if (!is_other_layout(found->d_name))
            continue;
        count++;
        if (cleared)
            empty_folder(dirfd(stream), found->d_name, cleared);
        if (cleared && unlinkat(dirfd(stream), found->d_name, AT_REMOVEDIR) != 0)
            cleared->kept++;
    }
    if (stream)
        closedir(stream);
    return count;
}

stk_status block_tools_list(const char *folder,
                            void (*held)(void *user, const struct block_held *held), void *user,
                            struct block_total *total, struct stk_error *err)
{
    struct listing listing = {0};
    *total = (struct block_total){0};
    stk_status status = opened_new(&listing.opened, folder, err);
    if (status)
        return status;
    total->limit = atomic_load(&listing.opened->folder.limit);
    total->on_disk = block_folder_measure(&listing.opened->folder);
    total->old_layouts = other_layouts(folder, NULL);
    status = list_all(&listing, total, err);
    for (uint32_t i = 0; i < listing.count; i++) {
        char *uri = (char *)listing.items[i].uri;
        if (!uri)
            listing.items[i].uri = "";
        if (held && !status)
            held(user, &listing.items[i]);
        memory_free(uri);
    }
    memory_free(listing.items);
    memory_free(listing.slots);
    opened_close(listing.opened);
    return status;
}

/* ---- checking ------------------------------------------------------------------------------ */

struct check {
    struct opened *opened;
    const struct block_check_calls *calls;
    struct block_checked *checked;
    uint64_t blocks; /* of all */
    int stopped;
    uint8_t *data;
};

static int count_entry(void *user, struct segment *segment, uint32_t number,
                       const struct segment_entry *entry)
{
    struct check *check = user;
    check->blocks += (uint64_t)is_known_from(check->opened, segment, number, entry);
    return 0;
}

static int check_entry(void *user, struct segment *segment, uint32_t number,
                       const struct segment_entry *entry)
{
    struct check *check = user;
    const struct block_check_calls *calls = check->calls;
    struct block_object object = {.size = entry->object_size};
    struct segment_block block = {segment, number, entry->length, entry->offset, -1};
    struct iovec part = {check->data, entry->length};
    char name[SEGMENT_NAME_MOST + 1];
    if (check->stopped || !is_known_from(check->opened, segment, number, entry))
        return 0;
    memcpy(object.id, entry->id, sizeof object.id);
    block.fd = segment->map ? -1 : segment_fd(segment, check->opened->folder.fd);
    if (segment_read(&block, &object, entry->number, 0, &part, 1)) {
        check->checked->bad++;
        segment_object_name(segment, check->opened->folder.fd, entry, name);
        segment_mark_dead(segment, check->opened->folder.fd, number);
        if (calls->bad)
            calls->bad(calls->user, name, entry->number * BLOCK_SIZE);
    }
    if (block.fd >= 0)
        close(block.fd);
    check->checked->blocks++;
    check->checked->bytes += entry->length;
    check->stopped = calls->progress && calls->progress(calls->user, check->checked, check->blocks);
    return 0;
}

static void each_entry(struct check *check,
                       int (*found)(void *user, struct segment *segment, uint32_t number,
                                    const struct segment_entry *entry))
{
    struct block_folder *folder = &check->opened->folder;
    for (uint32_t i = 0; i < folder->count && !check->stopped; i++) {
        struct segment *segment = folder->segments[i];
        segment->scanned = 0;
        if (segment->head.entry_cap && segment_scan(segment, folder->fd, found, check))
            continue; /* its entries cannot be read: nothing of it is served either */
    }
}

stk_status block_tools_verify(const char *folder, const struct block_check_calls *calls,
                              struct block_checked *checked, struct stk_error *err)
{
    struct check check = {.calls = calls, .checked = checked};
    *checked = (struct block_checked){0};
    stk_status status = opened_new(&check.opened, folder, err);
    if (status)
        return status;
    check.data = memory_map(BLOCK_SIZE);
    if (!check.data) {
        opened_close(check.opened);
        return fail_memory(err, BLOCK_SIZE);
    }
    each_entry(&check, count_entry);
    each_entry(&check, check_entry);
    memory_unmap(check.data, BLOCK_SIZE);
    opened_close(check.opened);
    return check.stopped ? fail(err, STK_CANCELLED, "stopped while checking the cache") : STK_OK;
}

/* ---- clearing ------------------------------------------------------------------------------ */

stk_status block_tools_clear(const char *folder, struct block_cleared *cleared,
                             struct stk_error *err)
{
    struct opened *opened;
    *cleared = (struct block_cleared){0};
    uint64_t others = other_layouts(folder, cleared);
    stk_status status = opened_new(&opened, folder, err);
    if (status)
        return others && status == STK_NOT_FOUND ? STK_OK : status;
    block_folder_sweep(&opened->folder);
    for (uint32_t i = 0; i < opened->folder.count; i++) {
        const struct segment *segment = opened->folder.segments[i];
        char file[SEGMENT_NAME_CAP];
        struct stat facts;
        segment_file('s', segment->name, file);
        if (fstatat(opened->folder.fd, file, &facts, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (unlinkat(opened->folder.fd, file, 0) == 0) {
            cleared->files++;
            cleared->bytes += (uint64_t)facts.st_blocks * 512;
        } else {
            cleared->kept++;
        }
    }
    opened_close(opened);
    return STK_OK;
}
