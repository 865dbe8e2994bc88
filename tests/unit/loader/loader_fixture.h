/* loader_fixture.h -- small datasets for the loader's tests.
 * Owns: a temporary folder, removed by fixture_close.   Threads: one.   Errors: a failed assertion.
 * Not here: the tests. */
#ifndef TESTS_LOADER_FIXTURE_H
#define TESTS_LOADER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "stoker/stoker.h"

struct fixture {
    char folder[64];
    struct stk_context *context;
    struct stk_dataset *dataset;
};

static inline void fixture_folder(struct fixture *fixture)
{
    struct stk_error err;
    *fixture = (struct fixture){0};
    strcpy(fixture->folder, "/tmp/stoker-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    assert_int_equal(stk_context_new(&fixture->context, NULL, &err), STK_OK);
}

static inline void fixture_path(const struct fixture *fixture, const char *name, char *out,
                                size_t cap)
{
    snprintf(out, cap, "%s/%s", fixture->folder, name);
}

static inline void fixture_fail(const struct stk_error *err)
{
    char text[2048];
    stk_error_format(err, text, sizeof text);
    print_error("%s\n", text);
    fail();
}

static inline void fixture_open(struct fixture *fixture, const char *name,
                                const struct stk_dataset_options *options)
{
    struct stk_error err;
    char path[256];
    const char *source = path;
    fixture_path(fixture, name, path, sizeof path);
    if (stk_dataset_open(fixture->context, &fixture->dataset, &source, 1, options, &err))
        fixture_fail(&err);
}

/* n records of 4 int64 each; all four are the record's number. */
static inline void fixture_records(struct fixture *fixture, uint64_t n)
{
    static const int64_t shape[] = {4};
    char path[256];
    fixture_folder(fixture);
    fixture_path(fixture, "records.bin", path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (uint64_t i = 0; i < n; i++)
        for (int j = 0; j < 4; j++)
            assert_int_equal(fwrite(&i, 8, 1, file), 1);
    fclose(file);
    struct stk_dataset_options options = {
        .format = "raw", .dtype = "int64", .shape = shape, .rank = 1};
    fixture_open(fixture, "records.bin", &options);
}

/* One member of a tar file, to a stream opened by gzopen ("wbT" writes it plain). */
static inline void fixture_member(gzFile file, const char *name, const void *data, size_t len)
{
    char header[512] = {0};
    unsigned sum = 0;
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644\0000000000\0000000000", 23);
    snprintf(header + 124, 12, "%011zo", len);
    memcpy(header + 136, "00000000000", 12);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    assert_int_equal(gzwrite(file, header, 512), 512);
    if (len)
        assert_int_equal(gzwrite(file, data, (unsigned)len), (int)len);
    memset(header, 0, sizeof header);
    if (len % 512)
        assert_true(gzwrite(file, header, (unsigned)(512 - len % 512)) > 0);
}

/* shards of `each` samples: KEY.txt (the key repeated key % 5 times) and KEY.cls (the number).
 * mode: gzopen's. */
static inline void fixture_shards(struct fixture *fixture, uint32_t shards, uint32_t each,
                                  const char *mode)
{
    char path[256], name[64], text[64];
    char zeros[1024] = {0};
    fixture_folder(fixture);
    for (uint32_t s = 0; s < shards; s++) {
        snprintf(name, sizeof name, "shard-%04u.tar%s", s, strchr(mode, 'T') ? "" : ".gz");
        fixture_path(fixture, name, path, sizeof path);
        gzFile file = gzopen(path, mode);
        assert_non_null(file);
        for (uint32_t i = s * each; i < (s + 1) * each; i++) {
            snprintf(name, sizeof name, "%06u.txt", i);
            text[0] = '\0';
            for (uint32_t r = 0; r < i % 5; r++)
                sprintf(text + strlen(text), "%06u", i);
            fixture_member(file, name, text, strlen(text));
            snprintf(name, sizeof name, "%06u.cls", i);
            snprintf(text, sizeof text, "%u", i);
            fixture_member(file, name, text, strlen(text));
        }
        gzwrite(file, zeros, 1024);
        gzclose(file);
    }
    fixture_open(fixture, "", NULL);
}

static inline void fixture_close(struct fixture *fixture)
{
    char command[128];
    stk_dataset_close(fixture->dataset);
    stk_context_free(fixture->context);
    snprintf(command, sizeof command, "rm -rf %s", fixture->folder);
    assert_int_equal(system(command), 0);
}

static inline struct stk_loader *fixture_loader(struct fixture *fixture,
                                                const struct stk_loader_options *options)
{
    struct stk_loader *loader;
    struct stk_error err;
    if (stk_loader_open(fixture->context, fixture->dataset, &loader, options, &err))
        fixture_fail(&err);
    return loader;
}

/* The next batch, or NULL at the end of the epoch. */
static inline struct stk_batch *fixture_next(struct stk_loader *loader)
{
    struct stk_batch *batch;
    struct stk_error err;
    stk_status status = stk_loader_next(loader, &batch, &err);
    if (status && status != STK_END)
        fixture_fail(&err);
    return batch;
}

#endif
