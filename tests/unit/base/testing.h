/* testing.h -- what unit tests of every folder share: a folder of their own, small files, and an
 * allocation that fails.
 * Owns: nothing.   Threads: one.   Errors: a failed assertion.   Not here: any test. */
#ifndef TESTS_BASE_TESTING_H
#define TESTS_BASE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#undef fail /* ours is in base/fail.h */

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define TESTING __attribute__((unused)) static

TESTING int remove_one(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found, (void)kind, (void)where;
    return remove(path);
}

/* A new folder under $TMPDIR or /tmp. */
TESTING void folder_new(char out[PATH_MAX])
{
    const char *base = getenv("TMPDIR");
    snprintf(out, PATH_MAX, "%s/stoker-test-XXXXXX", base && base[0] ? base : "/tmp");
    assert_non_null(mkdtemp(out));
    char real[PATH_MAX]; /* as the code under test will name it */
    assert_non_null(realpath(out, real));
    strcpy(out, real);
}

TESTING void folder_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* folder + "/" + name, in one of four buffers that are used in turn. */
TESTING const char *path_in(const char *folder, const char *name)
{
    static char buffers[4][2 * PATH_MAX];
    static int next;
    char *buf = buffers[next++ % 4];
    int len = snprintf(buf, sizeof buffers[0], "%s/%s", folder, name);
    assert_true(len > 0 && (size_t)len < sizeof buffers[0]);
    return buf;
}

TESTING void file_write(const char *path, const void *data, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

TESTING void text_write(const char *path, const char *text)
{
    file_write(path, text, strlen(text));
}

/* The whole file, ended by NUL; the caller frees it. */
TESTING char *file_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(size + 1);
    assert_int_equal(fread(data, 1, size, file), size);
    data[size] = '\0';
    fclose(file);
    if (len)
        *len = size;
    return data;
}

struct nth_failure {
    long countdown; /* the allocation that brings it to 0 fails */
    int happened;
};

TESTING int nth_hook(void *user, size_t size)
{
    struct nth_failure *nth = user;
    (void)size;
    if (--nth->countdown != 0)
        return 0;
    nth->happened = 1;
    return 1;
}

/* Runs body(user) with the first allocation failing, then the second, and so on until none fails.
 * body returns 0 when it saw the failure and cleaned up, 1 when all went well. */
TESTING void fail_each_allocation(int (*body)(void *user), void *user)
{
    for (long n = 1; n < 100000; n++) {
        struct nth_failure nth = {.countdown = n};
        memory_set_hook(nth_hook, &nth);
        int good = body(user);
        memory_set_hook(NULL, NULL);
        assert_int_equal(good, !nth.happened);
        if (!nth.happened) {
            assert_true(n > 1); /* there was an allocation to fail */
            return;
        }
    }
    assert_true(!"it never stops allocating");
}

#endif
