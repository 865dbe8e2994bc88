/* fuzz_build.h -- runs a format over bytes in memory, writes the index, and reads all of it back.
 * Owns: nothing after return.   Threads: one.   Errors: a refused input is fine; an index that was
 * written but cannot be read aborts.   Not here: the targets. */
#ifndef TESTS_FUZZ_BUILD_H
#define TESTS_FUZZ_BUILD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/format.h"
#include "store/scan.h"

#define FUZZ_CHUNK_LIMIT ((uint64_t)1 << 20)

/* A file in memory; its path is written to path. */
static inline int fuzz_file(const uint8_t *data, size_t len, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* Looks at every sample, key, object and chunk. Broken bytes may fail, never crash. */
static inline int fuzz_read(const struct index *index)
{
    struct stk_error err;
    uint32_t fields = index_field_count(index);
    uint64_t samples = index_samples(index);
    struct extent *extents = malloc((fields + 1) * sizeof(*extents));
    int bad = index_verify(index, &err) != STK_OK;
    for (uint64_t i = 0; i < samples && i < 1000; i++) {
        uint64_t sample = i < 500 ? i : samples - 1 - (i - 500);
        char scratch[INDEX_KEY_SCRATCH];
        struct stk_bytes key;
        bad |= index_resolve(index, &sample, 1, extents, &err) != STK_OK;
        if (index_key(index, sample, scratch, &key, &err))
            bad = 1;
        else if (key.len > 0 && key.data[0] + key.data[key.len - 1] == 1000)
            abort(); /* never; it reads both ends */
    }
    for (uint32_t i = 0; i < index_object_count(index) && i < 1000; i++) {
        struct index_object object;
        bad |= index_object(index, i, &object, &err) != STK_OK;
    }
    for (uint32_t i = 0; i < index_chunk_count(index) && i < 1000; i++) {
        struct chunk chunk;
        bad |= index_chunk(index, i, &chunk, &err) != STK_OK;
    }
    for (uint32_t i = 0; i < index_class_count(index) && i < 1000; i++)
        bad |= strlen(index_class(index, i)) > (size_t)1 << 40;
    free(extents);
    return bad;
}

/* Indexes `copies` objects with the same bytes. */
static inline void fuzz_build(const char *format, const uint8_t *data, size_t len, int copies)
{
    char path[64], target[64], folder[] = "/dev/shm/stoker-fuzz-XXXXXX";
    struct stk_hooks hooks = {0};
    struct stk_error err;
    struct scan *scan = NULL;
    struct index_builder *builder = NULL;
    struct index *index = NULL;
    char other[] = "/tmp/stoker-fuzz-XXXXXX", *where = mkdtemp(folder); /* in memory, or else */
    if (!where)
        where = mkdtemp(other);
    if (!where)
        abort();
    snprintf(target, sizeof(target), "%s/index", where);
    int fd = fuzz_file(data, len, path);
    if (scan_open(&scan, "", path, &err))
        abort();
    struct format_object object = {path, scan_size(scan), scan_version(scan)};
    struct format_object objects[2] = {object, object};
    scan_close(scan);
    struct format_input input = {.root = "",
                                 .objects = objects,
                                 .object_count = (uint64_t)copies,
                                 .raw = {.rank = -1},
                                 .chunk_limit = FUZZ_CHUNK_LIMIT,
                                 .threads = 1,
                                 .hooks = &hooks};
    if (index_builder_new(&builder, target, format, "", &err))
        abort();
    stk_status status = format_find(format)->build(&input, builder, &err);
    if (!status) {
        status = index_builder_finish(builder, &err);
        if (!status && (index_open(&index, target, &err) || fuzz_read(index))) {
            fprintf(stderr, "what was written cannot be read: %s\n", err.what);
            abort();
        }
    }
    index_close(index);
    index_builder_free(builder);
    close(fd);
    unlink(target);
    rmdir(where);
}

#endif
