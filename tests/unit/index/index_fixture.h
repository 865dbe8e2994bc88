/* index_fixture.h -- a folder of its own for each test and an index in it.
 * Owns: the folder, until fixture_end.   Threads: one.   Errors: cmocka's assertions.
 * Not here: any test. */
#ifndef TESTS_INDEX_FIXTURE_H
#define TESTS_INDEX_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index/index.h"
#include "index/index_builder.h"
#include "index/index_file.h"

struct fixture {
    char folder[256], path[300];
    struct index_builder *builder;
    struct index_part *part;
    struct index *index;
    struct stk_error error;
};

static inline void fixture_begin(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    const char *tmp = getenv("TMPDIR");
    snprintf(fixture->folder, sizeof(fixture->folder), "%s/stoker-index-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof(fixture->path), "%s/data.index", fixture->folder);
}

static inline int fixture_remove(const char *path, const struct stat *info, int flag,
                                 struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

static inline void fixture_reset(struct fixture *fixture)
{
    index_close(fixture->index);
    index_part_free(fixture->part);
    index_builder_free(fixture->builder);
    fixture->index = NULL;
    fixture->part = NULL;
    fixture->builder = NULL;
}

static inline void fixture_end(struct fixture *fixture)
{
    fixture_reset(fixture);
    nftw(fixture->folder, fixture_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#define WORKS(call) assert_int_equal((call), STK_OK)

/* A builder, a part, and one object of 2^40 bytes. */
static inline void fixture_builder(struct fixture *fixture)
{
    uint32_t number;
    fixture_reset(fixture);
    WORKS(index_builder_new(&fixture->builder, fixture->path, "tar", "/data", &fixture->error));
    WORKS(index_part_new(&fixture->part, &fixture->error));
    WORKS(index_builder_object(fixture->builder, "shard-0.tar", (uint64_t)1 << 40, 7, &number,
                               &fixture->error));
}

static inline void fixture_sample(struct fixture *fixture, const char *key)
{
    WORKS(index_part_sample(fixture->part, key, strlen(key), &fixture->error));
}

static inline void fixture_extent(struct fixture *fixture, const char *field, uint64_t offset,
                                  uint64_t length)
{
    struct extent extent = {offset, length, 0};
    WORKS(index_part_extent(fixture->part, field, strlen(field), &extent, &fixture->error));
}

static inline void fixture_join(struct fixture *fixture)
{
    WORKS(index_builder_join(fixture->builder, fixture->part, &fixture->error));
}

static inline void fixture_open(struct fixture *fixture)
{
    WORKS(index_builder_finish(fixture->builder, &fixture->error));
    index_close(fixture->index);
    WORKS(index_open(&fixture->index, fixture->path, &fixture->error));
}

/* Three samples with two fields, written but not opened. */
static inline void fixture_small(struct fixture *fixture)
{
    fixture_builder(fixture);
    const char *keys[] = {"000", "001", "002"};
    for (uint64_t i = 0; i < 3; i++) {
        fixture_sample(fixture, keys[i]);
        fixture_extent(fixture, "npy", 512 + i * 2048, 1000 + i);
        fixture_extent(fixture, "cls", 2048 + i * 2048, 1);
    }
    fixture_join(fixture);
    WORKS(index_builder_finish(fixture->builder, &fixture->error));
}

static inline void fixture_key_is(struct fixture *fixture, uint64_t sample, const char *wanted)
{
    char scratch[INDEX_KEY_SCRATCH];
    struct stk_bytes key;
    WORKS(index_key(fixture->index, sample, scratch, &key, &fixture->error));
    assert_int_equal(key.len, strlen(wanted));
    assert_memory_equal(key.data, wanted, key.len);
}

#endif
