#include "store/block_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/parse.h"
#include "store/block_look.h"

#define SEGMENT_SHARE 128 /* a segment is so small a part of the cache, within bounds */
#define SEGMENT_MOST (UINT64_C(64) << 20)
#define SEGMENTS_MOST 8192 /* so many maps a process can hold beside its own */

/* ---- the limit ----------------------------------------------------------------------------- */

static int read_limit(int folder, uint64_t *limit)
{
    static const char words[] = "limit ";
    char text[64] = "";
    int fd = openat(folder, "limit", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    size_t len = got < 0 ? 0 : strcspn(text, "\n");
    uint64_t value;
    if (strncmp(text, words, sizeof words - 1) ||
        !parse_u64(text + sizeof words - 1, len - (sizeof words - 1), &value) ||
        value < BLOCK_CACHE_LEAST)
        return 0;
    *limit = value;
    return 1;
}

/* Where it may not be written, that of the folder stays. */
static void write_limit(const struct block_folder *folder, uint64_t limit)
{
    char file[SEGMENT_NAME_CAP], text[64];
    int len = snprintf(text, sizeof text, "limit %" PRIu64 "\n", limit);
    segment_file('t', (uint64_t)getpid() << 32 ^ limit, file);
    if (block_fault(folder->fault, BLOCK_CALL_MAKE))
        return;
    int fd = openat(folder->fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return;
    int good = flock(fd, LOCK_EX | LOCK_NB) == 0 && !block_fault(folder->fault, BLOCK_CALL_WRITE) &&
               !segment_write(folder->fault, fd, text, (size_t)len, 0);
    if (!good || block_fault(folder->fault, BLOCK_CALL_RENAME) ||
        renameat(folder->fd, file, folder->fd, "limit") != 0)
        unlinkat(folder->fd, file, 0);
    close(fd);
}

static uint64_t tenth_of_disk(int folder)
{
    struct statvfs disk;
    uint64_t tenth = fstatvfs(folder, &disk) ? 0 : disk.f_blocks * disk.f_frsize / 10;
    return tenth > BLOCK_CACHE_LEAST ? tenth : BLOCK_CACHE_LEAST;
}

static void settle_limit(struct block_folder *folder, uint64_t size)
{
    uint64_t kept = 0;
    int found = read_limit(folder->fd, &kept);
    uint64_t limit = size ? size : found ? kept : tenth_of_disk(folder->fd);
    if (!found || kept != limit)
        write_limit(folder, limit);
    atomic_store(&folder->limit, limit);
}

void block_folder_set_limit(struct block_folder *folder, uint64_t limit)
{
    settle_limit(folder, limit);
}

void block_look_limit(struct block_folder *folder)
{
    uint64_t limit;
    if (read_limit(folder->fd, &limit))
        atomic_store(&folder->limit, limit);
}

uint64_t block_folder_segment_size(uint64_t limit)
{
    uint64_t size = limit / SEGMENT_SHARE;
    size = size < SEGMENT_MOST ? size : SEGMENT_MOST;
    size = size > limit / SEGMENTS_MOST ? size : limit / SEGMENTS_MOST;
    size = size / BLOCK_SIZE * BLOCK_SIZE;
    return size ? size : BLOCK_SIZE;
}

/* ---- opening ------------------------------------------------------------------------------- */

static stk_status cannot(struct stk_error *err, int number, const char *what, const char *path)
{
    stk_status status = fail_errno(err, number, "cannot %s the cache's folder", what);
    fail_at(err, path, STK_NOWHERE);
    return status;
}

/* As mkdir -p; those above get the usual rights. */
static int make_path(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0777) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES;
        *slash = '/';
        if (failed)
            return -errno;
    }
    return mkdir(path, 0777) != 0 && errno != EEXIST ? -errno : 0;
}

/* Gives what is this user's the rights of a model, as far as they are in mask. Whoever made it may
 * have been killed before, or be overtaken by another process: so all do it who come by. Where it
 * is refused, it stays this user's alone. */
static void mend_rights(int fd, const struct stat *model, mode_t mask,
                        const struct block_fault *fault)
{
    struct stat found;
    mode_t rights = model->st_mode & mask;
    if (fstat(fd, &found) == 0 && found.st_uid == geteuid() && (found.st_mode & mask) != rights &&
        !block_fault(fault, BLOCK_CALL_RIGHTS))
        fchmod(fd, rights);
}

/* The folder within `outer`. Where many users may write there, they may here: what the umask takes
 * away, and the sticky bit, come from outside. Once it has claims it is in use, and its rights are
 * as somebody wants them. */
static int open_inner(int outer, int make, const struct block_fault *fault)
{
    struct stat found;
    if (make && !block_fault(fault, BLOCK_CALL_MAKE) &&
        mkdirat(outer, BLOCK_FOLDER_NAME, 0777) != 0)
        make = errno == EEXIST;
    int fd = openat(outer, BLOCK_FOLDER_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    if (make && fstat(outer, &found) == 0 && found.st_mode & (S_IWGRP | S_IWOTH) &&
        faccessat(fd, "claims", F_OK, 0) != 0)
        mend_rights(fd, &found, 03777, fault);
    return fd;
}

/* The file holds nothing, so whoever may write to the folder may lock it. It is made only where it
 * is not there: in a sticky folder another's may not be opened so. */
static int open_claims(int folder, const struct block_fault *fault)
{
    static const int flags[] = {0, O_CREAT | O_EXCL, 0};
    struct stat found;
    int fd = -1;
    for (int i = 0; i < 3 && fd < 0; i++)
        fd =
            openat(folder, "claims", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags[i], 0666);
    if (fd >= 0 && fstat(folder, &found) == 0)
        mend_rights(fd, &found, 0666, fault);
    return fd;
}

stk_status block_folder_open(struct block_folder *folder, const char *path, uint64_t size, int make,
                             struct stk_error *err)
{
    char outer[PATH_MAX];
    size_t len = strlen(path);
    if (!len || len >= sizeof outer)
        return cannot(err, len ? ENAMETOOLONG : ENOENT, "open", path);
    memcpy(outer, path, len + 1);
    while (len > 1 && outer[len - 1] == '/')
        outer[--len] = '\0';
    int made = make ? make_path(outer) : 0;
    if (made < 0)
        return cannot(err, -made, "make", path);
    int outer_fd = open(outer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (outer_fd < 0)
        return cannot(err, errno, "open", path);
    folder->fd = open_inner(outer_fd, make, folder->fault);
    close(outer_fd);
    if (folder->fd < 0)
        return cannot(err, -folder->fd, make ? "make" : "open", path);
    pthread_mutex_init(&folder->lock, NULL);
    folder->claims_fd = make ? open_claims(folder->fd, folder->fault) : -1;
    if (make)
        settle_limit(folder, size);
    else
        block_look_limit(folder);
    block_folder_look(folder);
    return STK_OK;
}

void block_folder_close(struct block_folder *folder)
{
    if (folder->fd < 0)
        return;
    for (uint32_t i = 0; i < folder->count; i++)
        segment_free(folder->segments[i]);
    for (struct segment *gone = folder->gone, *next; gone; gone = next) {
        next = gone->next;
        segment_free(gone);
    }
    memory_free(folder->segments);
    memory_free(folder->growing);
    if (folder->claims_fd >= 0)
        close(folder->claims_fd);
    close(folder->fd);
    pthread_mutex_destroy(&folder->lock);
    folder->fd = -1;
}

void block_folder_let_go(struct block_folder *folder)
{
    if (folder->claims_fd >= 0)
        close(folder->claims_fd);
    folder->claims_fd = -1;
}

/* ---- claims -------------------------------------------------------------------------------- */

static int lock_byte(int fd, short kind, uint64_t byte)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : -errno;
}

static uint64_t claim_byte(uint64_t hash)
{
    return 1 + (hash >> 2);
}

/* A system that cannot lock, or will not, does not keep anybody from fetching. */
int block_claim(struct block_folder *folder, uint64_t hash)
{
    int result =
        folder->claims_fd < 0 ? 0 : lock_byte(folder->claims_fd, F_WRLCK, claim_byte(hash));
    return result != -EAGAIN && result != -EACCES;
}

void block_unclaim(struct block_folder *folder, uint64_t hash)
{
    if (folder->claims_fd >= 0)
        lock_byte(folder->claims_fd, F_UNLCK, claim_byte(hash));
}

#define ROOM_PATIENCE 100 /* milliseconds */

/* Two that make room at once would take away too much, or too little; no more harm than that. So
 * whoever is stopped with the lock in its hands is not waited for. 1: it is ours. */
int block_room_lock(struct block_folder *folder)
{
    if (folder->claims_fd < 0)
        return 0;
    for (int i = 0; i < ROOM_PATIENCE; i++) {
        int result = lock_byte(folder->claims_fd, F_WRLCK, 0);
        if (result != -EAGAIN && result != -EACCES)
            return result == 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return 0;
}

void block_room_unlock(struct block_folder *folder)
{
    lock_byte(folder->claims_fd, F_UNLCK, 0);
}
