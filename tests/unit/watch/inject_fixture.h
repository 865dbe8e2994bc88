/* inject_fixture.h -- what tests of the injected library share: a process of its own for each, with
 * a folder and the simulated CUPTI; and a reader of its ring.
 * Owns: the folder.   Threads: one.   Errors: a check that fails ends the child with 1 and a line
 * on stderr.   Not here: the reader that `stoker run` uses (watch/ring_read.h). */
#ifndef TESTS_INJECT_FIXTURE_H
#define TESTS_INJECT_FIXTURE_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../inject/inject.h"
#include "../../../inject/inject_clock.h"
#include "../../../inject/inject_cupti.h"
#include "../../sim_cuda/sim_cupti.h"
#include "watch/record.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static struct {
    char folder[64];
    char ring_path[128];
    uint8_t *copied; /* of the ring, the last time */
    void (*counts)(struct sim_cupti_counts *);
    void (*add)(const void *, size_t, int);
    void (*complete)(void);
    void (*layout)(uint32_t, size_t);
    void (*refuse)(const char *, int);
    void (*finalize)(void);
    uint64_t (*time)(void);
    int (*register_callbacks)(cupti_request_function *, cupti_complete_function *);
    int (*register_clock)(cupti_clock_function *);
} test;

/* The simulated CUPTI, loaded as a program would have loaded the real one. */
static void cupti_load(void)
{
    const char *path = getenv("STOKER_TEST_CUPTI");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    CHECK(library);
    *(void **)&test.counts = dlsym(library, "sim_cupti_counts");
    *(void **)&test.add = dlsym(library, "sim_cupti_add");
    *(void **)&test.complete = dlsym(library, "sim_cupti_complete");
    *(void **)&test.layout = dlsym(library, "sim_cupti_layout");
    *(void **)&test.refuse = dlsym(library, "sim_cupti_refuse");
    *(void **)&test.finalize = dlsym(library, "sim_cupti_finalize");
    *(void **)&test.time = dlsym(library, "sim_cupti_time");
    *(void **)&test.register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&test.register_clock = dlsym(library, "cuptiActivityRegisterTimestampCallback");
    CHECK(test.counts && test.add && test.complete && test.layout && test.refuse);
    CHECK(test.finalize && test.time && test.register_callbacks && test.register_clock);
}

static void folder_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(test.folder, sizeof test.folder, "%.40s/stoker-inject-XXXXXX", base ? base : "/tmp");
    CHECK(mkdtemp(test.folder));
    CHECK(!setenv("STOKER_WATCH", test.folder, 1));
}

static void folder_remove(void)
{
    DIR *folder = opendir(test.folder);
    struct dirent *entry;
    char path[400];
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/%s", test.folder, entry->d_name);
        unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(test.folder);
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* --- the ring --------------------------------------------------------------------------------- */

struct seen {
    struct ring_header header;
    uint8_t *bytes;
};

/* A copy of the ring of a process, as its reader would find it. Lives until the next one. */
static struct seen ring_copy(pid_t pid)
{
    struct seen seen = {0};
    snprintf(test.ring_path, sizeof test.ring_path, "%s/ring.%d.gpu", test.folder, (int)pid);
    int fd = open(test.ring_path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK(read(fd, &seen.header, sizeof seen.header) == (ssize_t)sizeof seen.header);
    CHECK(seen.header.magic == RING_MAGIC && seen.header.version == RING_VERSION);
    CHECK(seen.header.kind == RING_GPU && seen.header.pid == (uint32_t)pid);
    CHECK(seen.header.head <= seen.header.capacity); /* nobody reads: it does not go round */
    free(test.copied);
    seen.bytes = test.copied = malloc(seen.header.head + 1);
    CHECK(seen.bytes);
    CHECK(read(fd, seen.bytes, seen.header.head) == (ssize_t)seen.header.head);
    close(fd);
    return seen;
}

/* The record after `before` (NULL: the first) of a type; NULL: no more. */
static const void *next_of(const struct seen *seen, enum record_type type, const void *before)
{
    uint64_t offset = 0;
    if (before)
        offset = (uint64_t)((const uint8_t *)before - seen->bytes) +
                 ((const struct record *)before)->size;
    while (offset < seen->header.head) {
        const struct record *record = (const void *)(seen->bytes + offset);
        CHECK(record->size >= sizeof *record && record->size % 8 == 0);
        CHECK(record->size <= seen->header.head - offset);
        if (record->type == type)
            return record;
        offset += record->size;
    }
    return NULL;
}

static inline int count_of(const struct seen *seen, enum record_type type)
{
    int count = 0;
    for (const void *at = NULL; (at = next_of(seen, type, at));)
        count++;
    return count;
}

static inline const struct record_gpu *state_of(const struct seen *seen, enum gpu_state state)
{
    const struct record_gpu *at = NULL;
    while ((at = next_of(seen, RECORD_GPU, at)))
        if (at->state == state)
            return at;
    return NULL;
}

static inline uint64_t lost_of(const struct seen *seen, uint32_t why)
{
    uint64_t count = 0;
    const struct record_lost *at = NULL;
    while ((at = next_of(seen, RECORD_LOST, at)))
        count += at->why == why ? at->count : 0;
    return count;
}

static inline uint64_t reached_of(const struct seen *seen)
{
    uint64_t time = 0;
    const struct record_reached *at = NULL;
    while ((at = next_of(seen, RECORD_REACHED, at)))
        time = at->time;
    return time;
}

/* --- work of a device ------------------------------------------------------------------------- */

static inline struct cupti_kernel kernel_of(const char *name, uint64_t start, uint64_t end)
{
    return (struct cupti_kernel){
        .kind = KIND_KERNEL, .start = start, .end = end, .device = 0, .stream = 7, .name = name};
}

static inline void add_kernel(const char *name, uint64_t start, uint64_t end)
{
    struct cupti_kernel kernel = kernel_of(name, start, end);
    test.add(&kernel, sizeof kernel, 1);
}

/* --- processes -------------------------------------------------------------------------------- */

/* Runs the body in a process of its own, in which nothing was injected yet. How it ended. */
static int in_process(void (*body)(void), pid_t *pid_out)
{
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        body();
        exit(0);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (pid_out)
        *pid_out = pid;
    return status;
}

/* As the test's own process: what happens there is seen by ring_copy of its number. */
#define SUCCEEDS(body)                                                                             \
    do {                                                                                           \
        folder_make();                                                                             \
        int status_of_it = in_process(body, NULL);                                                 \
        folder_remove();                                                                           \
        assert_int_equal(status_of_it, 0);                                                         \
    } while (0)

#endif
