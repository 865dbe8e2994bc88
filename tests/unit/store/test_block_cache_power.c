/* The machine loses power while the cache is filled: nobody calls fsync, so any part of what was
 * written since the beginning may be on the disk, or not, whatever was written after it. The next
 * process serves nothing wrong, and goes on. */
#include "store/block_fixture.h"

#include <dirent.h>
#include <errno.h>

#include "store/block_tools.h"

#define LIMIT (512 * MIB) /* segments of 4 MiB, with 128 entries */
#define SMALLEST 9000
#define LARGEST 110000
#define OLD 24    /* objects that were stored before the last that is known to be on the disk */
#define STORED 88 /* and until the power went */
#define ALL 120   /* and after it */
/* What is lost does not depend on threads, and under their sanitizer a seed takes a second. */
#ifdef __SANITIZE_THREAD__
#define SEEDS 6
#else
#define SEEDS 24
#endif
#define FRONT (40 << 10) /* where the entries are */
#define SECTOR 512
#define PAGE 4096

static char folder[PATH_MAX];
static uint8_t buf[1 << 20];
static uint64_t names; /* segments that were named */

/* Segments get the same names in each run, so that a seed finds the same again. */
ssize_t getrandom(void *to, size_t len, unsigned flags)
{
    uint64_t name = random_at(3, names++);
    (void)flags;
    memcpy(to, &name, len < sizeof name ? len : sizeof name);
    return (ssize_t)len;
}

static struct block_object small_object(uint64_t which, char *uri)
{
    return test_object(which, SMALLEST + random_below(7, which, LARGEST - SMALLEST), uri);
}

static void store(struct block_cache *cache, uint64_t which)
{
    char uri[64];
    struct block_object object = small_object(which, uri);
    use_block(cache, &object, which, 0, buf);
    settle(cache);
}

static void store_all(uint64_t from, uint64_t to)
{
    struct block_cache *cache = open_cache(folder, LIMIT);
    while (from < to)
        store(cache, from++);
    block_cache_close(cache);
}

/* ---- what is on the disk ------------------------------------------------------------------- */

struct kept_file {
    char name[32];
    uint8_t *data;
    size_t size;
};
struct kept {
    struct kept_file files[16]; /* sorted by name */
    int count;
};

static const char *inner(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", BLOCK_FOLDER_NAME, name);
    return path_in(folder, path);
}

static int compare_files(const void *left, const void *right)
{
    return strcmp(((const struct kept_file *)left)->name, ((const struct kept_file *)right)->name);
}

static struct kept keep(void)
{
    struct kept kept = {.count = 0};
    DIR *stream = opendir(inner(""));
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream));) {
        struct kept_file *file = &kept.files[kept.count];
        if (entry->d_name[0] == '.')
            continue;
        assert_true(++kept.count <= 16);
        snprintf(file->name, sizeof file->name, "%.31s", entry->d_name);
        file->data = (uint8_t *)file_read(inner(file->name), &file->size);
    }
    closedir(stream);
    qsort(kept.files, (size_t)kept.count, sizeof kept.files[0], compare_files);
    return kept;
}

static void kept_free(struct kept *kept)
{
    for (int i = 0; i < kept->count; i++)
        free(kept->files[i].data);
}

static const struct kept_file *kept_find(const struct kept *kept, const char *name)
{
    for (int i = 0; i < kept->count; i++)
        if (!strcmp(kept->files[i].name, name))
            return &kept->files[i];
    return NULL;
}

/* ---- losing a part of it ------------------------------------------------------------------- */

struct loss {
    uint64_t key, dice;
    size_t unit;
    uint64_t one_in;  /* units of blocks is lost; of what is in front of them, one in four */
    size_t head_safe; /* bytes of each file that are not: without a head nothing is left to test */
};

static uint64_t throw(struct loss * loss, uint64_t sides)
{
    return random_below(loss->key, loss->dice++, sides);
}

/* What the disk holds instead: what was there before, or zeros. */
static void lose_units(struct loss *loss, struct kept_file *file, const struct kept_file *before)
{
    for (size_t at = loss->head_safe; at < file->size; at += loss->unit) {
        size_t len = file->size - at < loss->unit ? file->size - at : loss->unit;
        if (throw(loss, at < FRONT ? 4 : loss->one_in))
            continue;
        if (before && at + len <= before->size && throw(loss, 4))
            memcpy(file->data + at, before->data + at, len);
        else
            memset(file->data + at, 0, len);
    }
}

static void lose_power(uint64_t seed, const struct kept *before, struct kept *after)
{
    static const uint64_t shares[] = {5, 50, 1000};
    struct loss loss = {.key = random_key(21, seed),
                        .unit = seed & 1 ? SECTOR : PAGE,
                        .one_in = shares[seed / 2 % 3],
                        .head_safe = seed % 5 ? PAGE : 0};
    for (int i = 0; i < after->count; i++) {
        struct kept_file *file = &after->files[i];
        const struct kept_file *earlier = kept_find(before, file->name);
        if (!earlier && !throw(&loss, 8)) { /* it never got its name */
            assert_int_equal(unlink(inner(file->name)), 0);
            continue;
        }
        lose_units(&loss, file, earlier);
        file_write(inner(file->name), file->data, file->size);
        size_t size = earlier ? earlier->size : throw(&loss, file->size + 1);
        if (!throw(&loss, 8)) /* nor its length */
            assert_int_equal(truncate(inner(file->name), (off_t)size), 0);
    }
}

/* ---- somebody who reads all the time ------------------------------------------------------- */

/* Another process: it remembers what it has compared, as long as it has a segment open. */
struct bystander {
    int folder;
    struct segment *segments[16];
    int count;
    struct {
        struct segment_block block;
        struct segment_entry entry;
    } met[4 * ALL];
    int met_count;
};

static int note_met(void *user, struct segment *segment, uint32_t number,
                    const struct segment_entry *entry)
{
    struct bystander *bystander = user;
    assert_true(bystander->met_count < 4 * ALL);
    bystander->met[bystander->met_count].block =
        (struct segment_block){segment, number, entry->length, entry->offset, -1};
    bystander->met[bystander->met_count++].entry = *entry;
    return 0;
}

static struct bystander *bystander_new(void)
{
    struct bystander *bystander = calloc(1, sizeof *bystander);
    DIR *stream = opendir(inner(""));
    assert_true(bystander && stream);
    bystander->folder = open(inner(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const struct dirent *entry; (entry = readdir(stream));) {
        uint64_t name = strtoull(entry->d_name + 2, NULL, 16);
        if (entry->d_name[0] == 's' &&
            !segment_open(&bystander->segments[bystander->count], bystander->folder, name, 1))
            bystander->count++;
    }
    closedir(stream);
    return bystander;
}

static uint64_t object_of(const struct segment_entry *entry)
{
    char uri[64];
    for (uint64_t which = 0; which < ALL; which++) {
        struct block_object object = small_object(which, uri);
        if (!memcmp(object.id, entry->id, sizeof object.id) && object.size == entry->object_size)
            return which;
    }
    assert_true(0); /* a block that nobody stored */
    return 0;
}

/* All that it has met, again and again: the truth, or nothing. */
static void bystander_reads(struct bystander *bystander)
{
    for (int i = 0; i < bystander->count; i++)
        assert_int_equal(
            segment_scan(bystander->segments[i], bystander->folder, note_met, bystander), 0);
    for (int i = 0; i < bystander->met_count; i++) {
        const struct segment_entry *entry = &bystander->met[i].entry;
        uint64_t which = object_of(entry);
        struct block_object object = {.size = entry->object_size};
        struct iovec part = {buf, entry->length};
        memcpy(object.id, entry->id, sizeof object.id);
        if (!segment_read(&bystander->met[i].block, &object, entry->number, 0, &part, 1))
            assert_true(test_is_right(which, 0, buf, entry->length));
    }
}

static void bystander_free(struct bystander *bystander)
{
    for (int i = 0; i < bystander->count; i++)
        segment_free(bystander->segments[i]);
    close(bystander->folder);
    free(bystander);
}

/* ---- what must be true after it ------------------------------------------------------------ */

/* use_block compares all that is served, and stores what is damaged anew. How much is served. */
static int serve_all(struct block_cache *cache, struct bystander *bystander)
{
    int served = 0;
    for (uint64_t which = 0; which < STORED; which++) {
        char uri[64];
        struct block_object object = small_object(which, uri);
        if (block_peek(cache, &object, 0) == BLOCK_HERE)
            served += use_block(cache, &object, which, 0, buf) == BLOCK_HERE;
        settle(cache);
        bystander_reads(bystander);
    }
    return served;
}

static void verify(void)
{
    struct block_checked checked;
    struct block_check_calls calls = {.user = NULL};
    assert_int_equal(block_tools_verify(folder, &calls, &checked, NULL), STK_OK);
    assert_int_equal(block_tools_verify(folder, &calls, &checked, NULL), STK_OK);
    assert_int_equal(checked.bad, 0); /* what was bad is dropped */
}

/* What is left is served, and new blocks go in, beside somebody who reads. How many were left. */
static int go_on(int verified)
{
    struct bystander *bystander = bystander_new();
    struct block_cache *cache = open_cache(folder, LIMIT);
    bystander_reads(bystander);
    int served = serve_all(cache, bystander);
    assert_true(!verified || !counts_of(cache).damaged);
    for (uint64_t which = STORED; which < ALL; which++) {
        store(cache, which);
        bystander_reads(bystander);
    }
    assert_int_equal(counts_of(cache).dropped, 0);
    block_cache_close(cache);
    bystander_free(bystander);
    cache = open_cache(folder, LIMIT);
    for (uint64_t which = STORED; which < ALL; which++) {
        char uri[64];
        struct block_object object = small_object(which, uri);
        assert_int_equal(use_block(cache, &object, which, 0, buf), BLOCK_HERE);
    }
    block_cache_close(cache);
    return served;
}

static int make_folder(void **state)
{
    (void)state;
    names = 0;
    folder_new(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void fault_81_after_a_power_failure_nothing_wrong_is_served(void **state)
{
    int served = 0;
    store_all(0, OLD);
    struct kept before = keep();
    store_all(OLD, STORED);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kept after = keep();
        lose_power(seed, &before, &after);
        kept_free(&after);
        if (seed & 2)
            verify();
        served += go_on(seed & 2);
        verify();
        remove_folder(state);
        make_folder(state);
        store_all(0, STORED);
    }
    kept_free(&before);
    assert_true(served > SEEDS); /* there was something to be served */
}

/* Entries in front of others did not reach the disk. Were they written again, those behind would
 * come to light, with bytes that are about to be overwritten. */
static void fault_81_nothing_is_added_in_front_of_entries_that_a_power_failure_left(void **state)
{
    (void)state;
    store_all(0, 40);
    struct kept kept = keep();
    for (int i = 0; i < kept.count; i++) {
        struct kept_file *file = &kept.files[i];
        if (file->name[0] != 's')
            continue;
        memset(file->data + SEGMENT_ENTRIES_AT + 8 * sizeof(struct segment_entry), 0,
               8 * sizeof(struct segment_entry));
        file_write(inner(file->name), file->data, file->size);
    }
    kept_free(&kept);
    assert_int_equal(go_on(0), 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fault_81_after_a_power_failure_nothing_wrong_is_served),
        TEST(fault_81_nothing_is_added_in_front_of_entries_that_a_power_failure_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
