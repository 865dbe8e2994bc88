#include "store/block_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/copy.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/guard.h"

#define ENTRY_CAP_MOST (1u << 20)
#define SCATTER_LARGE ((size_t)64 << 10) /* less than COPY_LARGE: a long value is cut by blocks */

void segment_file(char kind, uint64_t name, char out[SEGMENT_NAME_CAP])
{
    snprintf(out, SEGMENT_NAME_CAP, "%c-%016" PRIx64, kind, name);
}

/* Reads all of it, or says -EBADMSG. */
static int read_all(int fd, void *to, size_t len, uint64_t offset)
{
    uint8_t *at = to;
    while (len) {
        ssize_t got = pread(fd, at, len, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return -EBADMSG;
        at += got;
        len -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int head_is_sound(const struct segment_head *head, uint64_t file_size)
{
    uint64_t names;
    return !memcmp(head->magic, "STKBLOCK", 8) && head->layout == SEGMENT_LAYOUT &&
           head->sum == hash_bytes(head, offsetof(struct segment_head, sum), SEGMENT_LAYOUT) &&
           head->entry_cap > 0 && head->entry_cap <= ENTRY_CAP_MOST &&
           checked_mul(head->entry_cap, sizeof(struct segment_entry), &names) &&
           head->names_at == SEGMENT_ENTRIES_AT + names && head->data_at >= head->names_at &&
           head->data_at % SEGMENT_PAGE == 0 && head->data_at <= head->size &&
           head->data_at <= file_size;
}

int segment_entry_is_sound(const struct segment_head *head, uint64_t file_size,
                           const struct segment_entry *entry)
{
    return entry->sum == hash_bytes(entry, offsetof(struct segment_entry, sum), SEGMENT_LAYOUT) &&
           entry->length > 0 && entry->length <= BLOCK_SIZE && entry->number <= UINT32_MAX &&
           entry->offset % SEGMENT_PAGE == 0 && entry->offset >= head->data_at &&
           checked_inside(entry->offset, entry->length, file_size) &&
           checked_inside(entry->offset, entry->length, head->size);
}

static int open_file(int folder, uint64_t name, int flags)
{
    char file[SEGMENT_NAME_CAP];
    segment_file('s', name, file);
    int fd;
    do
        fd = openat(folder, file, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static int fill_segment(struct segment *segment, int fd, int may_map)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        return -errno;
    segment->file_size = (uint64_t)found.st_size;
    segment->mine = found.st_uid == geteuid();
    segment->touched = (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
    if (!S_ISREG(found.st_mode) || segment->file_size < SEGMENT_PAGE)
        return -EBADMSG;
    int result = read_all(fd, &segment->head, sizeof segment->head, 0);
    if (result)
        return result;
    if (!head_is_sound(&segment->head, segment->file_size))
        return -EBADMSG;
    segment->sealed = segment->head.sealed != 0;
    segment->checked = memory_zero(segment->head.entry_cap, sizeof *segment->checked);
    if (!segment->checked)
        return -ENOMEM;
    if (may_map) { /* without a map it works too */
        void *map = mmap(NULL, segment->file_size, PROT_READ, MAP_SHARED, fd, 0);
        segment->map = map == MAP_FAILED ? NULL : map;
    }
    return 0;
}

int segment_open(struct segment **out, int folder, uint64_t name, int may_map)
{
    *out = NULL;
    int fd = open_file(folder, name, O_RDONLY);
    if (fd < 0)
        return fd;
    struct segment *segment = memory_zero(1, sizeof *segment);
    int result = segment ? 0 : -ENOMEM;
    if (segment) {
        segment->name = name;
        result = fill_segment(segment, fd, may_map);
    }
    close(fd);
    if (result)
        segment_free(segment);
    else
        *out = segment;
    return result;
}

int segment_fd(const struct segment *segment, int folder)
{
    return open_file(folder, segment->name, O_RDONLY);
}

void segment_free(struct segment *segment)
{
    if (!segment)
        return;
    if (segment->map)
        munmap((void *)segment->map, segment->file_size);
    memory_free(segment->checked);
    memory_free(segment);
}

/* ---- scanning ------------------------------------------------------------------------------ */

#define SCAN_ENTRIES 64

int segment_entry_is_empty(const struct segment_entry *entry)
{
    static const struct segment_entry empty;
    return !memcmp(entry, &empty, offsetof(struct segment_entry, sum));
}

/* An entry that is neither empty nor sound is either being written or damaged: it is passed over
 * once something is behind it. */
static int take_entries(struct segment *segment, const struct segment_entry *entries,
                        uint32_t count,
                        int (*found)(void *user, struct segment *segment, uint32_t number,
                                     const struct segment_entry *entry),
                        void *user)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct segment_entry *entry = &entries[i];
        int sound = segment_entry_is_sound(&segment->head, segment->file_size, entry);
        int last = i + 1 == count || segment_entry_is_empty(&entries[i + 1]);
        if (!sound && (segment_entry_is_empty(entry) || last))
            return 0;
        if (sound && found(user, segment, segment->scanned, entry))
            return -ENOMEM;
        segment->scanned++;
    }
    return 0;
}

/* From the map where there is one: a look at an entry that is not there yet costs no system call
 * then. */
struct get_job {
    const uint8_t *from;
    void *to;
    size_t len;
};

static stk_status get_mapped(void *user)
{
    struct get_job *job = user;
    memcpy(job->to, job->from, job->len);
    return STK_OK;
}

static int get_bytes(const struct segment *segment, int fd, void *to, size_t len, uint64_t offset)
{
    if (!segment->map)
        return read_all(fd, to, len, offset);
    struct get_job job = {segment->map + offset, to, len};
    return guard_run(get_mapped, &job) ? -EBADMSG : 0;
}

int segment_scan(struct segment *segment, int folder,
                 int (*found)(void *user, struct segment *segment, uint32_t number,
                              const struct segment_entry *entry),
                 void *user)
{
    struct segment_entry entries[SCAN_ENTRIES];
    struct segment_head head;
    int fd = segment->map ? -1 : segment_fd(segment, folder);
    if (!segment->map && fd < 0)
        return fd;
    /* Sealed before the entries are read: then none can follow them. */
    int result = get_bytes(segment, fd, &head, sizeof head, 0);
    int more = result == 0;
    while (more && !result && segment->scanned < segment->head.entry_cap) {
        uint32_t from = segment->scanned, left = segment->head.entry_cap - from;
        uint32_t count = left < SCAN_ENTRIES ? left : SCAN_ENTRIES;
        uint64_t at = SEGMENT_ENTRIES_AT + from * sizeof *entries;
        result = get_bytes(segment, fd, entries, count * sizeof *entries, at);
        if (!result)
            result = take_entries(segment, entries, count, found, user);
        more = segment->scanned != from; /* it may have ended where we stopped to look */
    }
    if (!result && head.sealed)
        segment->sealed = 1;
    if (fd >= 0)
        close(fd);
    return result;
}

void segment_object_name(const struct segment *segment, int folder,
                         const struct segment_entry *entry, char out[SEGMENT_NAME_MOST + 1])
{
    uint64_t room = segment->head.data_at - segment->head.names_at;
    uint64_t at = segment->head.names_at + entry->name;
    uint8_t size[2] = {0};
    int fd = segment->map ? -1 : segment_fd(segment, folder);
    out[0] = '\0';
    if (entry->name >= SEGMENT_NAMES_FIRST && entry->name + 2 <= room &&
        !get_bytes(segment, fd, size, sizeof size, at)) {
        size_t len = size[0] | (size_t)size[1] << 8;
        if (len <= SEGMENT_NAME_MOST && checked_inside(entry->name + UINT64_C(2), len, room) &&
            !get_bytes(segment, fd, out, len, at + 2))
            out[len] = '\0';
        else
            out[0] = '\0';
    }
    if (fd >= 0)
        close(fd);
}

/* ---- reading ------------------------------------------------------------------------------- */

struct read_job {
    const struct segment_block *block;
    const struct block_object *object;
    uint64_t number;
    uint64_t from, length; /* in the block */
    const struct iovec *parts;
    uint32_t part_count;
    struct segment_entry entry; /* read when there is something to compare */
    int damaged;
};

static uint32_t piece_length(uint32_t length, uint32_t piece)
{
    uint64_t start = piece * SEGMENT_PIECE;
    return (uint32_t)(length - start < SEGMENT_PIECE ? length - start : SEGMENT_PIECE);
}

static int entry_is_ours(const struct read_job *job)
{
    const struct segment_entry *entry = &job->entry;
    const struct segment_block *block = job->block;
    return segment_entry_is_sound(&block->segment->head, block->segment->file_size, entry) &&
           !memcmp(entry->id, job->object->id, sizeof entry->id) && entry->number == job->number &&
           entry->offset == block->offset && entry->length == block->length;
}

static int piece_is_right(const struct read_job *job, uint32_t piece, const uint8_t *bytes)
{
    uint64_t sum = hash_bytes(bytes, piece_length(job->block->length, piece), piece);
    return sum == job->entry.sums[piece];
}

void segment_scatter(const struct iovec *parts, uint32_t part_count, uint64_t skip,
                     const uint8_t *from, uint64_t len)
{
    for (uint32_t i = 0; i < part_count && len; i++) {
        uint64_t room = parts[i].iov_len;
        if (skip >= room) {
            skip -= room;
            continue;
        }
        uint64_t some = room - skip < len ? room - skip : len;
        uint8_t *to = (uint8_t *)parts[i].iov_base + skip;
        if (some >= SCATTER_LARGE)
            copy_past_caches(to, from, some);
        else
            memcpy(to, from, some);
        from += some;
        len -= some;
        skip = 0;
    }
}

/* The pieces that the range touches and that are not compared yet: one bit each. */
static uint32_t pieces_to_check(const struct read_job *job)
{
    uint32_t first = (uint32_t)(job->from / SEGMENT_PIECE);
    uint32_t last = (uint32_t)((job->from + job->length - 1) / SEGMENT_PIECE);
    uint32_t mask = (2u << last) - (1u << first);
    _Atomic uint16_t *checked = &job->block->segment->checked[job->block->entry];
    return mask & ~(uint32_t)atomic_load_explicit(checked, memory_order_relaxed);
}

static void note_checked(const struct read_job *job, uint32_t pieces)
{
    atomic_fetch_or_explicit(&job->block->segment->checked[job->block->entry], (uint16_t)pieces,
                             memory_order_relaxed);
}

/* Runs under the guard: a file that somebody cut short is damage, and no more. */
static stk_status read_mapped(void *user)
{
    struct read_job *job = user;
    const struct segment_block *block = job->block;
    const uint8_t *bytes = block->segment->map + block->offset;
    uint32_t check = pieces_to_check(job);
    if (check) {
        uint64_t at = SEGMENT_ENTRIES_AT + block->entry * sizeof job->entry;
        memcpy(&job->entry, block->segment->map + at, sizeof job->entry);
        job->damaged = !entry_is_ours(job);
    }
    for (uint32_t piece = 0; piece < SEGMENT_PIECES && !job->damaged; piece++) {
        if (check & 1u << piece)
            job->damaged = !piece_is_right(job, piece, bytes + piece * SEGMENT_PIECE);
    }
    if (job->damaged)
        return STK_CORRUPT;
    note_checked(job, check);
    segment_scatter(job->parts, job->part_count, 0, bytes + job->from, job->length);
    return STK_OK;
}

/* The same for a file that is not mapped: piece by piece, through a buffer that stays in the
 * processor's cache. */
static int read_by_pread(struct read_job *job)
{
    uint8_t buf[SEGMENT_PIECE];
    const struct segment_block *block = job->block;
    uint32_t check = pieces_to_check(job);
    int result = 0;
    if (check) {
        uint64_t at = SEGMENT_ENTRIES_AT + block->entry * sizeof job->entry;
        result = read_all(block->fd, &job->entry, sizeof job->entry, at);
        if (!result && !entry_is_ours(job))
            result = -EBADMSG;
    }
    for (uint64_t done = 0; done < job->length && !result;) {
        uint64_t at = job->from + done;
        uint32_t piece = (uint32_t)(at / SEGMENT_PIECE);
        uint64_t start = check & 1u << piece ? piece * SEGMENT_PIECE : at;
        uint64_t end = piece * SEGMENT_PIECE + piece_length(block->length, piece);
        uint64_t stop = job->from + job->length < end ? job->from + job->length : end;
        result = read_all(block->fd, buf, (check & 1u << piece ? end : stop) - start,
                          block->offset + start);
        if (!result && check & 1u << piece && !piece_is_right(job, piece, buf))
            result = -EBADMSG;
        if (!result)
            segment_scatter(job->parts, job->part_count, done, buf + (at - start), stop - at);
        done += stop - at;
    }
    if (!result)
        note_checked(job, check);
    return result;
}

int segment_read(const struct segment_block *block, const struct block_object *object,
                 uint64_t number, uint64_t from, const struct iovec *parts, uint32_t part_count)
{
    struct read_job job = {.block = block,
                           .object = object,
                           .number = number,
                           .from = from,
                           .parts = parts,
                           .part_count = part_count};
    for (uint32_t i = 0; i < part_count; i++)
        job.length += parts[i].iov_len;
    if (!checked_inside(from, job.length, block->length))
        return -EBADMSG;
    if (!job.length)
        return 0;
    if (!block->segment->map)
        return read_by_pread(&job);
    return guard_run(read_mapped, &job) ? -EBADMSG : 0;
}

void segment_mark_dead(const struct segment *segment, int folder, uint32_t entry)
{
    uint32_t dead = 1;
    uint64_t at = SEGMENT_ENTRIES_AT + entry * sizeof(struct segment_entry) +
                  offsetof(struct segment_entry, dead);
    int fd = open_file(folder, segment->name, O_WRONLY);
    if (fd < 0)
        return; /* another's: each process finds out for itself */
    ssize_t wrote = pwrite(fd, &dead, sizeof dead, (off_t)at);
    (void)wrote;
    close(fd);
}
