#include "gpu/kernel_cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#define IMAGE_MOST ((uint64_t)256 << 20) /* bytes; no kernel of ours comes near */
#define CACHE_MAGIC "STKKERN1"

/* The file's head; the image follows. Little-endian: so is every machine with a GPU. */
struct kept {
    char magic[8];
    uint64_t size;
    uint8_t sum[16];
};
static_assert(sizeof(struct kept) == 32, "the format of a kept kernel");

static void sum_of(const char *data, size_t size, uint8_t out[16])
{
    struct hash128 hash;
    hash128_init(&hash, 1);
    hash128_add(&hash, data, size);
    hash128_out(&hash, out);
}

void kernel_key(const char *source, const struct nvrtc_target *target, char key[KERNEL_KEY_CAP])
{
    struct hash128 hash;
    uint8_t sum[16];
    hash128_init(&hash, 1);
    hash128_add(&hash, source, strlen(source));
    hash128_add_number(&hash, target->version);
    hash128_add_number(&hash, target->arch);
    hash128_add_number(&hash, target->kind);
    hash128_out(&hash, sum);
    for (int i = 0; i < 16; i++)
        snprintf(key + 2 * i, 3, "%02x", sum[i]);
}

/* Up to and with the last slash; nothing where there is no such place. */
static void add_folder(struct text *path)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        text_format(path, "%s/stoker/kernels/", cache);
    else if (home && *home == '/')
        text_format(path, "%s/.cache/stoker/kernels/", home);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Not 0: all of it came. */
static int read_whole(int fd, void *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, (char *)data + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        done += (size_t)got;
    }
    return 1;
}

static int read_image(int fd, struct kernel_image *out)
{
    struct kept head;
    uint8_t sum[16];
    if (!read_whole(fd, &head, sizeof head) || memcmp(head.magic, CACHE_MAGIC, 8) || !head.size ||
        head.size > IMAGE_MOST)
        return 0;
    char *data = memory_zero(1, head.size + 1);
    if (!data)
        return 0;
    int good = read_whole(fd, data, head.size);
    if (good) {
        sum_of(data, head.size, sum);
        good = !memcmp(sum, head.sum, sizeof sum);
    }
    if (!good) {
        memory_free(data);
        return 0;
    }
    *out = (struct kernel_image){data, head.size};
    return 1;
}

int kernel_cache_load(const char *key, struct kernel_image *out)
{
    struct text path = {0};
    int found = 0;
    *out = (struct kernel_image){0};
    add_folder(&path);
    if (path.len) {
        text_format(&path, "%s.cubin", key);
        int fd = path.failed ? -1 : open(path.data, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            found = read_image(fd, out);
            close(fd);
        }
    }
    text_free(&path);
    return found;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Makes every missing folder of the path, which ends with a slash. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0700); /* what fails shows when the file is made */
        *slash = '/';
    }
}

static int write_whole(int fd, const void *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t put = write(fd, (const char *)data + done, size - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return 0;
        done += (size_t)put;
    }
    return 1;
}

/* Written beside and renamed: no one ever reads half a file. */
static void save_as(char *beside, const char *path, const struct kernel_image *image)
{
    struct kept head = {.size = image->size};
    memcpy(head.magic, CACHE_MAGIC, 8);
    sum_of(image->data, image->size, head.sum);
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return;
    int good = write_whole(fd, &head, sizeof head) && write_whole(fd, image->data, image->size);
    good = !close(fd) && good;
    if (!good || rename(beside, path))
        (void)unlink(beside);
}

void kernel_cache_save(const char *key, const struct kernel_image *image)
{
    struct text path = {0}, beside = {0};
    add_folder(&path);
    if (path.len && !path.failed) {
        make_folders(path.data);
        text_format(&beside, "%s.%s-XXXXXX", path.data, key);
        text_format(&path, "%s.cubin", key);
        if (!path.failed && !beside.failed)
            save_as(beside.data, path.data, image);
    }
    text_free(&path);
    text_free(&beside);
}
