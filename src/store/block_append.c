/* The writing half of block_segment.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/block_segment.h"

#define ENTRY_BYTES (UINT64_C(32) << 10) /* of data for which there is one entry */
#define ENTRIES_LEAST 64
#define TAIL_ENTRIES 64 /* that are looked at at once */
#define NAME_BYTES 96   /* of names an entry; what does not fit is not named */

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

static ssize_t write_some(const struct block_fault *fault, int fd, const void *from, size_t len,
                          uint64_t offset)
{
    if (fault->write)
        return fault->write(fault->user, fd, from, len, (off_t)offset);
    return pwrite(fd, from, len, (off_t)offset);
}

int segment_write(const struct block_fault *fault, int fd, const void *from, size_t len,
                  uint64_t offset)
{
    const uint8_t *at = from;
    while (len) {
        ssize_t wrote = write_some(fault, fd, at, len, offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -errno;
        if (wrote == 0)
            return -ENOSPC;
        at += wrote;
        len -= (size_t)wrote;
        offset += (uint64_t)wrote;
    }
    return 0;
}

int segment_writer_has_room(const struct segment_writer *writer, uint64_t length)
{
    uint64_t whole = whole_pages(length), size = writer->head.size;
    return writer->next_entry < writer->head.entry_cap && whole <= size &&
           writer->next_byte <= size - whole;
}

static void writer_init(struct segment_writer *writer)
{
    const struct block_fault *fault = writer->fault;
    *writer = (struct segment_writer){.fd = -1, .direct_fd = -1, .fault = fault};
}

/* ---- a new one ----------------------------------------------------------------------------- */

static uint64_t new_name(void)
{
    uint64_t name = 0;
    if (getrandom(&name, sizeof name, GRND_NONBLOCK) != sizeof name)
        name = (uint64_t)clock_now() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid();
    return name;
}

static void plan_head(struct segment_head *head, uint64_t data_size)
{
    uint64_t cap = data_size / ENTRY_BYTES;
    *head = (struct segment_head){.magic = "STKBLOCK", .layout = SEGMENT_LAYOUT};
    head->entry_cap = (uint32_t)(cap < ENTRIES_LEAST ? ENTRIES_LEAST : cap);
    head->names_at = SEGMENT_ENTRIES_AT + head->entry_cap * sizeof(struct segment_entry);
    head->data_at = whole_pages(head->names_at + head->entry_cap * NAME_BYTES);
    head->size = head->data_at + data_size;
    head->sum = hash_bytes(head, offsetof(struct segment_head, sum), SEGMENT_LAYOUT);
}

/* Bytes past the page cache; where the file system refuses that, through it. */
static void open_direct(struct segment_writer *writer, int folder, const char *file)
{
    if (!writer->fault->no_direct)
        writer->direct_fd = openat(folder, file, O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW);
}

static int make_file(struct segment_writer *writer, int folder, const char *file)
{
    int result = block_fault(writer->fault, BLOCK_CALL_MAKE);
    if (result)
        return result;
    writer->fd = openat(folder, file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (writer->fd < 0)
        return -errno;
    if (flock(writer->fd, LOCK_EX | LOCK_NB) != 0) /* a sweeper was quicker */
        return -errno;
    result = block_fault(writer->fault, BLOCK_CALL_WRITE);
    if (!result && ftruncate(writer->fd, (off_t)writer->head.size) != 0)
        result = -errno;
    if (!result)
        result = segment_write(writer->fault, writer->fd, &writer->head, sizeof writer->head, 0);
    return result;
}

int segment_writer_make(struct segment_writer *writer, int folder, uint64_t data_size)
{
    char made[SEGMENT_NAME_CAP], file[SEGMENT_NAME_CAP];
    writer_init(writer);
    plan_head(&writer->head, data_size);
    writer->name = new_name();
    writer->next_name = SEGMENT_NAMES_FIRST;
    writer->next_byte = writer->head.data_at;
    segment_file('t', writer->name, made);
    segment_file('s', writer->name, file);
    int result = make_file(writer, folder, made);
    if (!result)
        result = block_fault(writer->fault, BLOCK_CALL_RENAME);
    if (!result && renameat(folder, made, folder, file) != 0)
        result = -errno;
    if (result) {
        if (writer->fd >= 0)
            unlinkat(folder, made, 0);
        segment_writer_close(writer);
        return result;
    }
    open_direct(writer, folder, file);
    return 0;
}

/* ---- one that was left --------------------------------------------------------------------- */

static int add_to_tail(void *user, struct segment *segment, uint32_t number,
                       const struct segment_entry *entry)
{
    struct segment_writer *writer = user;
    uint64_t end = whole_pages(entry->offset + entry->length);
    (void)segment, (void)number;
    if (end > writer->next_byte)
        writer->next_byte = end;
    if (entry->name > writer->next_name)
        writer->next_name = entry->name;
    return 0;
}

/* next_name is that of the last name: it moves behind it. A length that makes no sense takes all
 * the room there is. */
static void skip_name(struct segment_writer *writer)
{
    uint64_t room = writer->head.data_at - writer->head.names_at;
    uint8_t len[2] = {0xff, 0xff};
    if (!writer->next_name) {
        writer->next_name = SEGMENT_NAMES_FIRST;
        return;
    }
    ssize_t got = pread(writer->fd, len, 2, (off_t)(writer->head.names_at + writer->next_name));
    uint64_t next = writer->next_name + UINT64_C(2) + len[0] + ((uint64_t)len[1] << 8);
    writer->next_name = (uint32_t)(got == 2 && next < room ? next : room);
}

/* All that follows must be empty. An entry that is not sound hides where its bytes are, and others
 * may read from them still. And power loss may leave entries behind a gap: once that was filled,
 * others would find them, compare their bytes, and read on while those are overwritten. */
static int tail_is_torn(const struct segment_writer *writer)
{
    struct segment_entry entries[TAIL_ENTRIES];
    for (uint32_t number = writer->next_entry; number < writer->head.entry_cap;) {
        uint32_t left = writer->head.entry_cap - number;
        uint32_t count = left < TAIL_ENTRIES ? left : TAIL_ENTRIES;
        uint64_t at = SEGMENT_ENTRIES_AT + number * sizeof *entries;
        ssize_t len = (ssize_t)(count * sizeof *entries);
        if (pread(writer->fd, entries, (size_t)len, (off_t)at) != len)
            return 1;
        for (uint32_t i = 0; i < count; i++)
            if (!segment_entry_is_empty(&entries[i]))
                return 1;
        number += count;
    }
    return 0;
}

/* Goes on behind all that has an entry: bytes that have none are nobody's, and are overwritten.
 * Those of dead blocks are not: who compared a part of one before may read it still. */
static int find_tail(struct segment_writer *writer, int folder)
{
    struct segment *segment;
    int result = segment_open(&segment, folder, writer->name, 0);
    if (result)
        return result;
    writer->head = segment->head;
    writer->next_byte = segment->head.data_at;
    result = segment_scan(segment, folder, add_to_tail, writer);
    writer->next_entry = segment->scanned;
    if (!result &&
        (segment->sealed || segment->file_size != segment->head.size || tail_is_torn(writer)))
        result = -ENFILE;
    segment_free(segment);
    if (!result)
        skip_name(writer);
    return result;
}

int segment_writer_adopt(struct segment_writer *writer, int folder, uint64_t name)
{
    char file[SEGMENT_NAME_CAP];
    writer_init(writer);
    writer->name = name;
    segment_file('s', name, file);
    writer->fd = openat(folder, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int result = writer->fd < 0 ? -errno : 0;
    if (!result && flock(writer->fd, LOCK_EX | LOCK_NB) != 0)
        result = errno == EWOULDBLOCK ? -EAGAIN : -errno;
    if (!result)
        result = find_tail(writer, folder);
    if (result) {
        segment_writer_close(writer);
        return result;
    }
    open_direct(writer, folder, file);
    return 0;
}

/* ---- adding -------------------------------------------------------------------------------- */

static int write_data(struct segment_writer *writer, const uint8_t *data, uint64_t len)
{
    int result = block_fault(writer->fault, BLOCK_CALL_WRITE);
    if (result)
        return result;
    if (writer->direct_fd >= 0) {
        result = segment_write(writer->fault, writer->direct_fd, data, len, writer->next_byte);
        if (result != -EINVAL)
            return result;
        close(writer->direct_fd); /* opened, but refused: so it is for all that follows */
        writer->direct_fd = -1;
    }
    result = segment_write(writer->fault, writer->fd, data, len, writer->next_byte);
    if (!result) { /* hand it to the disk, and let go of the pages: only hints */
        off_t at = (off_t)writer->next_byte;
        sync_file_range(writer->fd, at, (off_t)len,
                        SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(writer->fd, at, (off_t)len, POSIX_FADV_DONTNEED);
    }
    return result;
}

/* A name is for people (`stoker cache ls`): where it cannot be kept, it is not. */
static uint32_t write_name(struct segment_writer *writer, const struct block_object *object)
{
    uint64_t room = writer->head.data_at - writer->head.names_at - writer->next_name;
    size_t len = object->uri ? strlen(object->uri) : 0;
    uint8_t record[2 + SEGMENT_NAME_MOST];
    if (writer->last_name && !memcmp(writer->last_id, object->id, sizeof writer->last_id))
        return writer->last_name;
    if (!len || len > SEGMENT_NAME_MOST || len + 2 > room)
        return 0;
    record[0] = (uint8_t)len;
    record[1] = (uint8_t)(len >> 8);
    memcpy(record + 2, object->uri, len);
    if (segment_write(writer->fault, writer->fd, record, len + 2,
                      writer->head.names_at + writer->next_name))
        return 0;
    memcpy(writer->last_id, object->id, sizeof writer->last_id);
    writer->last_name = writer->next_name;
    writer->next_name += (uint32_t)len + 2;
    return writer->last_name;
}

static void fill_entry(struct segment_entry *entry, const struct block_object *object,
                       const uint8_t *data)
{
    memcpy(entry->id, object->id, sizeof entry->id);
    entry->object_size = object->size;
    for (uint32_t piece = 0; piece * SEGMENT_PIECE < entry->length; piece++) {
        uint64_t start = piece * SEGMENT_PIECE, left = entry->length - start;
        uint64_t len = left < SEGMENT_PIECE ? left : SEGMENT_PIECE;
        entry->sums[piece] = hash_bytes(data + start, len, piece);
    }
    entry->sum = hash_bytes(entry, offsetof(struct segment_entry, sum), SEGMENT_LAYOUT);
}

int segment_writer_add(struct segment_writer *writer, const struct block_object *object,
                       uint64_t number, uint8_t *data, uint32_t length, struct segment_added *added)
{
    uint64_t whole = whole_pages(length);
    struct segment_entry entry = {.number = number, .offset = writer->next_byte, .length = length};
    if (!segment_writer_has_room(writer, length))
        return -ENFILE;
    memset(data + length, 0, whole - length);
    int result = write_data(writer, data, whole);
    if (result)
        return result;
    entry.name = write_name(writer, object);
    fill_entry(&entry, object, data);
    result = block_fault(writer->fault, BLOCK_CALL_ENTRY);
    if (!result)
        result = segment_write(writer->fault, writer->fd, &entry, sizeof entry,
                               SEGMENT_ENTRIES_AT + writer->next_entry * sizeof entry);
    if (result)
        return result;
    *added = (struct segment_added){writer->next_entry++, writer->next_byte};
    writer->next_byte += whole;
    return 0;
}

void segment_writer_seal(struct segment_writer *writer)
{
    uint32_t sealed = 1;
    if (writer->fd < 0)
        return;
    if (!block_fault(writer->fault, BLOCK_CALL_WRITE) &&
        !segment_write(writer->fault, writer->fd, &sealed, sizeof sealed,
                       offsetof(struct segment_head, sealed)) &&
        !block_fault(writer->fault, BLOCK_CALL_CUT) &&
        ftruncate(writer->fd, (off_t)writer->next_byte) != 0)
        sealed = 0; /* it stays as long as it was */
    segment_writer_close(writer);
}

void segment_writer_close(struct segment_writer *writer)
{
    if (writer->fd >= 0) {
        flock(writer->fd, LOCK_UN); /* a child of fork may have the descriptor too */
        close(writer->fd);
    }
    if (writer->direct_fd >= 0)
        close(writer->direct_fd);
    writer_init(writer);
}
