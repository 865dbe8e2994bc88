#include "watch/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

#define FOLDER_PREFIX "stoker-run-"
#define LIBRARY_NAME "libstoker_inject.so"
#define LOCK_NAME "lock"
/* A shared memory that is smaller is needed by the program itself: DataLoader hands its batches
 * over in it, and containers have 64 MiB by default. */
#define ROOM_IN_MEMORY ((uint64_t)1 << 30)
#define ROOM_ON_DISK ((uint64_t)64 << 20)
#define DEPTH_MOST 4
#define MAKING_S 60 /* no folder is without its lock so long */
#define TRIES 4     /* to make a folder: another run may take it for one that was left */

struct run_folder {
    char path[PATH_MAX];
    int fd, lock, library_lock;
    char site[PATH_MAX + 8];
    char library[PATH_MAX + 32];   /* "": none */
    char library_folder[PATH_MAX]; /* of its own, where `path` does not run programs; "": none */
};

/* --- places ----------------------------------------------------------------------------------- */

struct place {
    const char *path; /* NULL: not set */
    uint64_t room;    /* that must be free */
};

#define PLACES 4
static void list_places(struct place places[PLACES])
{
    const char *temporary = getenv("TMPDIR");
    places[0] = (struct place){getenv("XDG_RUNTIME_DIR"), ROOM_IN_MEMORY};
    places[1] = (struct place){"/dev/shm", ROOM_IN_MEMORY};
    places[2] = (struct place){temporary && temporary[0] ? temporary : NULL, ROOM_ON_DISK};
    places[3] = (struct place){"/tmp", ROOM_ON_DISK};
}

/* Paths go into variables that are lists separated by colons. */
static int place_usable(const struct place *place, int *runs_programs)
{
    struct statvfs about;
    if (!place->path || place->path[0] != '/' || strchr(place->path, ':') ||
        strlen(place->path) > PATH_MAX - 64 || access(place->path, W_OK | X_OK) ||
        statvfs(place->path, &about))
        return 0;
    *runs_programs = !(about.f_flag & ST_NOEXEC);
    return (uint64_t)about.f_bavail * about.f_frsize >= place->room;
}

/* --- removing --------------------------------------------------------------------------------- */

static void remove_tree(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        (void)unlinkat(parent, name, 0);
        return;
    }
    for (struct dirent *entry; depth < DEPTH_MOST && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
            if (unlinkat(fd, entry->d_name, 0))
                remove_tree(fd, entry->d_name, depth + 1);
        }
    closedir(folder);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* The lock of a folder is held as long as its run lives, whatever namespace that is in. *lock is
 * ours then. A folder without one is being made, or a process that outlived its run wrote into it
 * while it was removed: its age tells. */
static int run_is_over(int parent, const char *name, int *lock)
{
    char path[NAME_MAX + 8];
    struct stat found;
    *lock = -1;
    if (fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(found.st_mode) ||
        found.st_uid != geteuid())
        return 0;
    snprintf(path, sizeof path, "%s/" LOCK_NAME, name);
    *lock = openat(parent, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*lock < 0)
        return errno == ENOENT && time(NULL) - found.st_mtime > MAKING_S;
    if (!flock(*lock, LOCK_EX | LOCK_NB))
        return 1;
    close(*lock);
    return 0;
}

static void remove_left_over(const char *place)
{
    int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)))
            continue;
        int lock;
        if (!run_is_over(fd, entry->d_name, &lock))
            continue;
        /* Held meanwhile: a run that has made it just now finds out, and makes another. */
        remove_tree(fd, entry->d_name, 0);
        if (lock >= 0)
            close(lock);
    }
    closedir(folder);
}

/* --- writing ---------------------------------------------------------------------------------- */

static stk_status write_all(int fd, const void *data, size_t len, const char *name,
                            struct stk_error *err)
{
    const char *from = data;
    while (len > 0) {
        ssize_t done = write(fd, from, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno(err, errno, "writing %s", name);
        from += done;
        len -= (size_t)done;
    }
    return STK_OK;
}

static stk_status write_file(int folder, const char *name, const void *data, size_t len,
                             struct stk_error *err)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(err, errno, "making %s", name);
    stk_status status = write_all(fd, data, len, name, err);
    if (close(fd) && !status)
        status = fail_errno(err, errno, "writing %s", name);
    return status;
}

stk_status run_folder_write(const struct run_folder *folder, const char *name, const void *data,
                            size_t len, struct stk_error *err)
{
    char temporary[NAME_MAX];
    snprintf(temporary, sizeof temporary, ".%s", name);
    (void)unlinkat(folder->fd, temporary, 0);
    stk_status status = write_file(folder->fd, temporary, data, len, err);
    if (!status && renameat(folder->fd, temporary, folder->fd, name))
        status = fail_errno(err, errno, "making %s", name);
    return status;
}

/* The folders on the way to a name. */
static stk_status make_folders(int folder, const char *name, struct stk_error *err)
{
    char path[PATH_MAX];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%.*s", (int)(slash - name), name);
        if (mkdirat(folder, path, 0700) && errno != EEXIST)
            return fail_errno(err, errno, "making %s", path);
    }
    return STK_OK;
}

static stk_status unpack(const struct run_folder *folder, const struct run_file *files,
                         struct stk_error *err)
{
    stk_status status = STK_OK;
    for (; files->name && !status; files++) {
        if (!strcmp(files->name, LIBRARY_NAME))
            continue; /* it may need another place */
        status = make_folders(folder->fd, files->name, err);
        if (!status)
            status = write_file(folder->fd, files->name, files->data, files->size, err);
    }
    return status;
}

/* --- the library ------------------------------------------------------------------------------ */

/* Makes a folder of our own in a place, which lives as long as its lock is held. */
static int make_locked(const char *place, char path[PATH_MAX], int *fd, int *lock)
{
    snprintf(path, PATH_MAX, "%s/" FOLDER_PREFIX "XXXXXX", place);
    if (!mkdtemp(path)) { /* 0700 */
        path[0] = '\0';
        return 0;
    }
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return 0;
    *lock = openat(*fd, LOCK_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return *lock >= 0 && !flock(*lock, LOCK_EX | LOCK_NB);
}

/* Into a folder of its own, with a link to it in the run's. */
static int put_elsewhere(struct run_folder *folder, const struct run_file *file, const char *place)
{
    char path[PATH_MAX + 32];
    int fd = -1;
    int good = make_locked(place, folder->library_folder, &fd, &folder->library_lock) &&
               !write_file(fd, LIBRARY_NAME, file->data, file->size, NULL);
    if (fd >= 0)
        close(fd);
    snprintf(path, sizeof path, "%s/" LIBRARY_NAME, folder->library_folder);
    return good && !symlinkat(path, folder->fd, LIBRARY_NAME);
}

static void clear_library(struct run_folder *folder)
{
    if (folder->library_folder[0])
        remove_tree(AT_FDCWD, folder->library_folder, 0);
    if (folder->library_lock >= 0)
        close(folder->library_lock);
    folder->library_folder[0] = '\0';
    folder->library_lock = -1;
}

/* A place that runs programs. Where there is none the run goes on without the library. */
static void place_library(struct run_folder *folder, const struct run_file *files, int runs_here)
{
    struct place places[PLACES];
    int runs = 0;
    while (files->name && strcmp(files->name, LIBRARY_NAME))
        files++;
    if (!files->name)
        return;
    int placed = runs_here && !write_file(folder->fd, LIBRARY_NAME, files->data, files->size, NULL);
    list_places(places);
    for (int i = 0; i < PLACES && !runs_here && !placed; i++) {
        places[i].room = ROOM_ON_DISK;
        if (place_usable(&places[i], &runs) && runs)
            placed = put_elsewhere(folder, files, places[i].path);
        if (!placed)
            clear_library(folder);
    }
    if (placed)
        snprintf(folder->library, sizeof folder->library, "%s/" LIBRARY_NAME, folder->path);
}

/* --- the folder ------------------------------------------------------------------------------- */

static void clear(struct run_folder *folder)
{
    if (folder->path[0])
        remove_tree(AT_FDCWD, folder->path, 0);
    clear_library(folder);
    if (folder->lock >= 0)
        close(folder->lock);
    if (folder->fd >= 0)
        close(folder->fd);
    *folder = (struct run_folder){.fd = -1, .lock = -1, .library_lock = -1};
}

static stk_status make_in(struct run_folder *folder, const struct place *place,
                          struct stk_error *err)
{
    int tries = TRIES, number;
    while (!make_locked(place->path, folder->path, &folder->fd, &folder->lock)) {
        number = errno;
        clear(folder);
        if (--tries == 0)
            return fail_errno(err, number, "making a folder for the run in %s", place->path);
    }
    snprintf(folder->site, sizeof folder->site, "%s/site", folder->path);
    return STK_OK;
}

stk_status run_folder_open(struct run_folder **out, const struct run_file *files,
                           struct stk_error *err)
{
    struct place places[PLACES];
    *out = NULL;
    struct run_folder *folder = memory_alloc(sizeof *folder);
    if (!folder)
        return fail_memory(err, sizeof *folder);
    *folder = (struct run_folder){.fd = -1, .lock = -1, .library_lock = -1};
    stk_status status = fail(err, STK_RESOURCE, "there is no place for the files of a watched run");
    fail_remedy(err, "set TMPDIR to a folder that can be written and has 64 MiB to spare");
    list_places(places);
    for (int i = 0; i < PLACES && status && status != STK_MEMORY; i++) {
        int runs = 0;
        if (!place_usable(&places[i], &runs))
            continue;
        remove_left_over(places[i].path);
        status = make_in(folder, &places[i], err);
        if (!status)
            status = unpack(folder, files, err);
        if (status)
            clear(folder); /* it may be full: the next place */
        else
            place_library(folder, files, runs);
    }
    if (!status) {
        *out = folder;
        folder = NULL;
    }
    run_folder_close(folder);
    return status;
}

void run_folder_close(struct run_folder *folder)
{
    if (!folder)
        return;
    clear(folder);
    memory_free(folder);
}

const char *run_folder_path(const struct run_folder *folder)
{
    return folder->path;
}

int run_folder_fd(const struct run_folder *folder)
{
    return folder->fd;
}

const char *run_folder_site(const struct run_folder *folder)
{
    return folder->site;
}

const char *run_folder_library(const struct run_folder *folder)
{
    return folder->library[0] ? folder->library : NULL;
}
