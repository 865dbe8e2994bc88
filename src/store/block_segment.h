/* block_segment.h -- one file of the block cache: a directory of blocks, and their bytes behind it.
 * Owns: the file's map.   Threads: reading any; scanning and writing one at a time.   Errors: minus
 * errno, or 0; a damaged block is -EBADMSG.   Not here: which file a block is in (block_index.h),
 * which files there are (block_folder.h).
 *
 * A segment is written by one process alone, which holds a lock on it (flock) as long as it lives,
 * and only ever grows: bytes, then the entry that names them. So there is no moment at which a
 * reader, or the next writer after a crash, finds something half done: an entry whose checksum is
 * right was written whole, and its bytes before it. A segment goes as a whole, by unlink: whoever
 * reads from it keeps its map. What power loss tears apart, the checksums find out. */
#ifndef STORE_BLOCK_SEGMENT_H
#define STORE_BLOCK_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "store/block_cache.h"

#define SEGMENT_LAYOUT 1
#define SEGMENT_PAGE UINT64_C(4096)
#define SEGMENT_PIECE (UINT64_C(64) << 10) /* bytes that have one checksum */
#define SEGMENT_PIECES 16                  /* of a block */

/* Little-endian, as are all machines that this runs on. Offsets are from the file's start. */
struct segment_head {
    char magic[8];
    uint32_t layout, entry_cap;
    uint64_t names_at, data_at, size;
    uint64_t sum;    /* of all before */
    uint32_t sealed; /* not 0: nothing will be added */
    uint32_t unused;
};

struct segment_entry {
    uint8_t id[16];
    uint64_t number, object_size;
    uint64_t offset; /* of its bytes */
    uint32_t length;
    uint32_t name; /* offset of the object's name from names_at; 0: not kept */
    uint64_t sums[SEGMENT_PIECES];
    uint64_t sum;  /* of all before */
    uint32_t dead; /* not 0: found to be damaged */
    uint32_t unused[17];
};
_Static_assert(sizeof(struct segment_entry) == 256, "an entry lies in one page");
#define SEGMENT_ENTRIES_AT SEGMENT_PAGE
#define SEGMENT_NAMES_FIRST 8 /* offset of the first name: 0 means none */
#define SEGMENT_NAME_MOST 4000

struct segment {
    uint64_t name; /* the file is s-<16 digits> */
    struct segment_head head;
    const uint8_t *map; /* of the whole file; NULL: it is opened for each read */
    uint64_t file_size;
    _Atomic uint32_t refs;     /* blocks of it that are taken; 0 may stay so: see block_index.h */
    _Atomic uint16_t *checked; /* one an entry: the pieces that this process has compared */
    _Atomic int64_t used;      /* when a block of it was last taken: ns since 1970 */
    /* What follows is under the folder's lock. */
    uint32_t scanned; /* entries looked at */
    int sealed;
    int mine;             /* of this user */
    int gone;             /* unlinked, by whomever */
    int kept;             /* it could not be unlinked: it is another's */
    int listed;           /* found by the last look at the folder */
    int writing;          /* this process adds to it */
    int64_t touched;      /* when the file says it was last used: ns since 1970 */
    uint64_t bytes;       /* on the disk, when last measured */
    struct segment *next; /* of those that are gone */
};

/* What a test may do to the cache's steps on the disk: called before each; not 0: minus errno that
 * it fails with. */
enum block_call {
    BLOCK_CALL_MAKE,   /* a file or the folder */
    BLOCK_CALL_WRITE,  /* bytes of a block, a head, the limit */
    BLOCK_CALL_ENTRY,  /* one entry: from here on the block is there */
    BLOCK_CALL_RENAME, /* a new file gets its name */
    BLOCK_CALL_CUT,    /* a full segment is cut to what it holds */
    BLOCK_CALL_RIGHTS, /* who may write to the folder, or lock its claims */
    BLOCK_CALL_UNLINK
};
struct block_fault {
    int (*call)(void *user, enum block_call call); /* NULL: none */
    /* In the place of pwrite, for a write of which a part alone reaches the disk; NULL: pwrite. */
    ssize_t (*write)(void *user, int fd, const void *from, size_t len, off_t offset);
    void *user;
    int no_maps;   /* not 0: segments are read without maps, as where there is no room for them */
    int no_direct; /* not 0: they are written through the page cache */
};
static inline int block_fault(const struct block_fault *fault, enum block_call call)
{
    return fault->call ? fault->call(fault->user, call) : 0;
}

#define SEGMENT_NAME_CAP 24
void segment_file(char kind, uint64_t name, char out[SEGMENT_NAME_CAP]); /* kind 's' or 't' */

/* Writes all of it. -ENOSPC, or what else is in the way: then a part may be there. */
int segment_write(const struct block_fault *fault, int fd, const void *from, size_t len,
                  uint64_t offset);

/* Opens a segment of the folder for reading. may_map 0: it is read without a map. -EBADMSG: it is
 * no segment, or of another layout. */
int segment_open(struct segment **out, int folder, uint64_t name, int may_map);
void segment_free(struct segment *segment); /* NULL is fine */
/* The file, open for reading; the caller closes it. Minus errno. */
int segment_fd(const struct segment *segment, int folder);

/* Calls found for each entry that is sound and was added since the last time, dead ones too. */
int segment_scan(struct segment *segment, int folder,
                 int (*found)(void *user, struct segment *segment, uint32_t number,
                              const struct segment_entry *entry),
                 void *user);
/* The entry's sum is right, and it lies inside. */
int segment_entry_is_sound(const struct segment_head *head, uint64_t file_size,
                           const struct segment_entry *entry);
/* Nothing was ever written there. */
int segment_entry_is_empty(const struct segment_entry *entry);

/* The name of the entry's object, ended by NUL; "" when it was not kept. */
void segment_object_name(const struct segment *segment, int folder,
                         const struct segment_entry *entry, char out[SEGMENT_NAME_MOST + 1]);

/* A block, as the index knows it. */
struct segment_block {
    struct segment *segment;
    uint32_t entry, length;
    uint64_t offset;
    int fd; /* of a segment without a map: open while the block is taken; else -1 */
};
/* Copies bytes [from, from + the parts' lengths) of the block. Pieces that this process meets for
 * the first time are compared with their checksums before. 0, or what is wrong. */
int segment_read(const struct segment_block *block, const struct block_object *object,
                 uint64_t number, uint64_t from, const struct iovec *parts, uint32_t part_count);
/* len bytes into the parts, from `skip` bytes behind their start on. */
void segment_scatter(const struct iovec *parts, uint32_t part_count, uint64_t skip,
                     const uint8_t *from, uint64_t len);
/* Marks an entry as damaged, for others too where this user may. */
void segment_mark_dead(const struct segment *segment, int folder, uint32_t entry);

/* ---- writing ------------------------------------------------------------------------------- */

struct segment_writer {
    uint64_t name;
    int fd;        /* holds the lock; -1: none is open */
    int direct_fd; /* past the page cache; -1: refused here */
    struct segment_head head;
    uint32_t next_entry;
    uint32_t next_name; /* offset from names_at */
    uint64_t next_byte;
    uint8_t last_id[16]; /* whose name was written last */
    uint32_t last_name;
    const struct block_fault *fault;
};

/* A new segment for so many bytes of blocks. Minus errno; nothing is left then. */
int segment_writer_make(struct segment_writer *writer, int folder, uint64_t data_size);
/* Goes on with one whose writer is gone. -EAGAIN: it is not. -ENFILE: nothing can be added. */
int segment_writer_adopt(struct segment_writer *writer, int folder, uint64_t name);
int segment_writer_has_room(const struct segment_writer *writer, uint64_t length);
/* data: SEGMENT_PAGE-aligned, with room up to a whole page, which is overwritten. -ENFILE: it is
 * full. *entry_number, *offset: where it lies. */
struct segment_added {
    uint32_t entry;
    uint64_t offset;
};
int segment_writer_add(struct segment_writer *writer, const struct block_object *object,
                       uint64_t number, uint8_t *data, uint32_t length,
                       struct segment_added *added);
/* Nothing more will be added to it, by anybody. */
void segment_writer_seal(struct segment_writer *writer);
/* Whoever comes next may go on with it. */
void segment_writer_close(struct segment_writer *writer);

#endif
