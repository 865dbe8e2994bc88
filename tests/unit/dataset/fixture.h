/* fixture.h -- a temporary folder with small datasets in it, for the tests of src/dataset.
 * Owns: the folder, until fixture_close.   Threads: one.   Errors: cmocka's asserts.
 * Not here: any test. */
#ifndef UNIT_DATASET_FIXTURE_H
#define UNIT_DATASET_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "stoker/dataset.h"
#include "base/npy_header.h"

struct fixture {
    char root[256];
    char cache[300];
};

__attribute__((unused)) static char *path_of(const struct fixture *fixture, const char *name)
{
    static char paths[64][4096]; /* a few may be in use at once */
    static unsigned next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", fixture->root, name);
    return path;
}

/* Folders of the tests' own: what is built must not lie in the user's cache. */
__attribute__((unused)) static int fixture_open(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const char *temporary = getenv("TMPDIR");
    char made[200];
    snprintf(made, sizeof made, "%s/stoker-test-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(made) || !realpath(made, fixture->root))
        return -1;
    snprintf(fixture->cache, sizeof fixture->cache, "%s/.cache", fixture->root);
    setenv("XDG_CACHE_HOME", fixture->cache, 1);
    *state = fixture;
    return 0;
}

__attribute__((unused)) static int fixture_close(void **state)
{
    struct fixture *fixture = *state;
    char command[600];
    snprintf(command, sizeof command, "chmod -R u+rwX '%s' && rm -r '%s'", fixture->root,
             fixture->root);
    int result = system(command);
    free(fixture);
    return result;
}

__attribute__((unused)) static void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

__attribute__((unused)) static void make_file(const char *path, const void *data, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* ---- values -------------------------------------------------------------------------------- */

/* A vector of int32: first, first + 1, ... */
__attribute__((unused)) static size_t make_npy(uint8_t *out, int32_t first, int64_t count)
{
    struct stk_tensor shape = {.dtype = STK_I32, .rank = 1, .shape = {count}};
    size_t len;
    npy_header_write(&shape, (char *)out, 512, &len);
    for (int32_t i = 0; i < count; i++) {
        int32_t value = first + i;
        memcpy(out + len + (size_t)i * sizeof value, &value, sizeof value);
    }
    return len + (size_t)count * sizeof(int32_t);
}

/* ---- tar ----------------------------------------------------------------------------------- */

struct tar {
    uint8_t data[1 << 20];
    size_t len;
};

__attribute__((unused)) static void tar_add(struct tar *tar, const char *name, const void *data,
                                            size_t len)
{
    uint8_t *block = tar->data + tar->len;
    unsigned sum = 0;
    assert_true(tar->len + 1024 + len + 1024 < sizeof tar->data);
    memset(block, 0, 512);
    snprintf((char *)block, 100, "%s", name);
    memcpy(block + 100, "0000644\0000000000\0000000000", 24);
    snprintf((char *)block + 124, 12, "%011zo", len);
    memcpy(block + 136, "00000000000", 12);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
    memcpy(block + 512, data, len);
    size_t padded = (len + 511) / 512 * 512;
    memset(block + 512 + len, 0, padded - len);
    tar->len += 512 + padded;
}

__attribute__((unused)) static void tar_add_text(struct tar *tar, const char *name,
                                                 const char *text)
{
    tar_add(tar, name, text, strlen(text));
}

/* Sample number n: npy of 4 int32 from n * 10 on, cls n % 3, txt "text n". */
__attribute__((unused)) static void tar_add_sample(struct tar *tar, int number)
{
    uint8_t npy[1024];
    char name[64], text[64];
    size_t len = make_npy(npy, number * 10, 4);
    snprintf(name, sizeof name, "%06d.npy", number);
    tar_add(tar, name, npy, len);
    snprintf(name, sizeof name, "%06d.cls", number);
    snprintf(text, sizeof text, "%d", number % 3);
    tar_add_text(tar, name, text);
    snprintf(name, sizeof name, "%06d.txt", number);
    snprintf(text, sizeof text, "text %d", number);
    tar_add_text(tar, name, text);
}

__attribute__((unused)) static void tar_write(struct tar *tar, const char *path)
{
    memset(tar->data + tar->len, 0, 1024);
    make_file(path, tar->data, tar->len + 1024);
}

/* Samples first .. first + count - 1. */
__attribute__((unused)) static void make_shard(const char *path, int first, int count)
{
    struct tar *tar = calloc(1, sizeof *tar);
    for (int i = first; i < first + count; i++)
        tar_add_sample(tar, i);
    tar_write(tar, path);
    free(tar);
}

/* ---- opening ------------------------------------------------------------------------------- */

__attribute__((unused)) static stk_status open_with(struct stk_dataset **out, const char *source,
                                                    const struct stk_dataset_options *options,
                                                    struct stk_error *err)
{
    return stk_dataset_open(NULL, out, &source, 1, options, err);
}

__attribute__((unused)) static struct stk_dataset *must_open(
    const char *source, const struct stk_dataset_options *options)
{
    struct stk_dataset *dataset = NULL;
    struct stk_error err = {0};
    char text[1600];
    if (open_with(&dataset, source, options, &err)) {
        stk_error_format(&err, text, sizeof text);
        fail_msg("%s: %s", source, text);
    }
    return dataset;
}

__attribute__((unused)) static void read_or_fail(struct stk_reader *reader, uint64_t position,
                                                 struct stk_value *values)
{
    struct stk_error err = {0};
    char text[1600];
    if (stk_reader_read(reader, position, values, &err)) {
        stk_error_format(&err, text, sizeof text);
        fail_msg("position %llu: %s", (unsigned long long)position, text);
    }
}

#endif
