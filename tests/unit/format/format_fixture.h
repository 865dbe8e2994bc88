/* format_fixture.h -- a folder of its own for each test, files made by hand, and an index of them.
 * Owns: the folder, until fixture_end.   Threads: one.   Errors: cmocka's assertions.
 * Not here: any test. */
#ifndef TESTS_FORMAT_FIXTURE_H
#define TESTS_FORMAT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "store/scan.h"

#define FIXTURE_MAX 64

struct fixture {
    char folder[256], index_path[300];
    struct format_object objects[FIXTURE_MAX];
    char names[FIXTURE_MAX][128];
    uint64_t count;
    struct format_input input;
    struct stk_hooks hooks;
    struct index *index;
    struct stk_error error;
    int notices, ticks, stop;
    char notice[1024];
};

static inline int fixture_on_progress(void *user, const struct stk_progress *progress)
{
    struct fixture *fixture = user;
    assert_true(progress->done <= progress->total);
    fixture->ticks++;
    return fixture->stop;
}

static inline void fixture_on_notice(void *user, const char *text)
{
    struct fixture *fixture = user;
    fixture->notices++;
    snprintf(fixture->notice, sizeof(fixture->notice), "%s", text);
}

static inline void fixture_begin(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    const char *tmp = getenv("TMPDIR");
    snprintf(fixture->folder, sizeof(fixture->folder), "%s/stoker-format-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->index_path, sizeof(fixture->index_path), "%s/.index", fixture->folder);
    fixture->hooks = (struct stk_hooks){
        .user = fixture, .progress = fixture_on_progress, .notice = fixture_on_notice};
    fixture->input = (struct format_input){.root = fixture->folder,
                                           .objects = fixture->objects,
                                           .raw = {.rank = -1},
                                           .chunk_limit = (uint64_t)1 << 30,
                                           .threads = 1,
                                           .hooks = &fixture->hooks};
}

static inline int fixture_remove(const char *path, const struct stat *info, int flag,
                                 struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

static inline void fixture_end(struct fixture *fixture)
{
    index_close(fixture->index);
    nftw(fixture->folder, fixture_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file and lists it. */
static inline void fixture_file(struct fixture *fixture, const char *name, const void *data,
                                size_t len)
{
    char path[512];
    struct stat info;
    uint64_t i = fixture->count++;
    assert_true(i < FIXTURE_MAX);
    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    for (char *slash = strchr(path + strlen(fixture->folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(fstat(fd, &info), 0);
    close(fd);
    snprintf(fixture->names[i], sizeof(fixture->names[i]), "%s", name);
    fixture->objects[i] =
        (struct format_object){fixture->names[i], (uint64_t)info.st_size,
                               scan_file_version((uint64_t)info.st_size, info.st_mtim.tv_sec,
                                                 info.st_mtim.tv_nsec, info.st_ino)};
    fixture->input.object_count = fixture->count;
}

/* Builds and opens the index; what went wrong is in fixture->error. */
static inline stk_status fixture_build(struct fixture *fixture, const char *format)
{
    struct index_builder *builder = NULL;
    index_close(fixture->index);
    fixture->index = NULL;
    stk_status status =
        index_builder_new(&builder, fixture->index_path, format, fixture->folder, &fixture->error);
    if (!status)
        status = format_find(format)->build(&fixture->input, builder, &fixture->error);
    if (!status)
        status = index_builder_finish(builder, &fixture->error);
    index_builder_free(builder);
    if (!status)
        status = index_open(&fixture->index, fixture->index_path, &fixture->error);
    if (!status)
        status = index_verify(fixture->index, &fixture->error);
    return status;
}

/* Fails as it should, and the words name the object. */
static inline void fixture_refuses(struct fixture *fixture, const char *format, stk_status wanted)
{
    stk_status status = fixture_build(fixture, format);
    if (status != wanted)
        fail_msg("%s instead of %s: %s", stk_status_name(status), stk_status_name(wanted),
                 status ? fixture->error.what : "");
    assert_int_equal(fixture->error.status, wanted);
    assert_non_null(strstr(fixture->error.object, fixture->names[0]));
}

static inline uint32_t fixture_field(const struct fixture *fixture, const char *name)
{
    for (uint32_t i = 0; i < index_field_count(fixture->index); i++) {
        if (!strcmp(index_field(fixture->index, i)->name, name))
            return i;
    }
    fail_msg("there is no field %s", name);
    return 0;
}

static inline struct extent fixture_extent(struct fixture *fixture, uint64_t sample,
                                           const char *field)
{
    struct extent extents[1024];
    uint32_t number = fixture_field(fixture, field);
    assert_int_equal(index_resolve(fixture->index, &sample, 1, extents, &fixture->error), STK_OK);
    return extents[number];
}

static inline void fixture_key_is(struct fixture *fixture, uint64_t sample, const char *wanted)
{
    char scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    assert_int_equal(index_key(fixture->index, sample, scratch, &key, &fixture->error), STK_OK);
    assert_int_equal(key.len, strlen(wanted));
    assert_memory_equal(key.data, wanted, key.len);
}

#endif
