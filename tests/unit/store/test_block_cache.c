#include "store/block_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>

static char folder[PATH_MAX];
static uint8_t buf[1 << 20];

static int make_folder(void **state)
{
    (void)state;
    folder_new(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

/* The path of one segment that has bytes, or NULL. */
static const char *a_segment(void)
{
    const char *found = NULL;
    char name[PATH_MAX];
    DIR *stream = opendir(path_in(folder, BLOCK_FOLDER_NAME));
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) && !found;)
        if (!strncmp(entry->d_name, "s-", 2)) {
            snprintf(name, sizeof name, "%s/%s", BLOCK_FOLDER_NAME, entry->d_name);
            found = path_in(folder, name);
        }
    closedir(stream);
    return found;
}

static uint64_t bytes_on_disk(void)
{
    const char *inner = path_in(folder, BLOCK_FOLDER_NAME);
    DIR *stream = opendir(inner);
    uint64_t bytes = 0;
    struct stat found;
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream));)
        if (fstatat(dirfd(stream), entry->d_name, &found, 0) == 0 && S_ISREG(found.st_mode))
            bytes += (uint64_t)found.st_blocks * 512;
    closedir(stream);
    return bytes;
}

static void a_block_that_was_put_is_here_at_once_and_after_opening_again(void **state)
{
    (void)state;
    char uri[64];
    struct block_object object = test_object(1, 3 * MIB + 12345, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    for (uint64_t number = 0; number < 4; number++) {
        assert_int_equal(use_block(cache, &object, 1, number, buf), BLOCK_YOURS);
        assert_int_equal(use_block(cache, &object, 1, number, buf), BLOCK_HERE);
    }
    settle(cache);
    for (uint64_t number = 0; number < 4; number++)
        assert_int_equal(use_block(cache, &object, 1, number, buf), BLOCK_HERE);
    assert_int_equal(counts_of(cache).written, 4);
    block_cache_close(cache);
    cache = open_cache(folder, 0);
    assert_int_equal(counts_of(cache).limit, 64 * MIB);
    for (uint64_t number = 0; number < 4; number++)
        assert_int_equal(use_block(cache, &object, 1, number, buf), BLOCK_HERE);
    assert_int_equal(counts_of(cache).hits, 4);
    block_cache_close(cache);
}

static void another_version_of_an_object_is_another_object(void **state)
{
    (void)state;
    uint8_t ids[4][16];
    block_object_id("http://h/a", 10, 1, ids[0]);
    block_object_id("http://h/a", 10, 2, ids[1]);
    block_object_id("http://h/a", 11, 1, ids[2]);
    block_object_id("http://h/b", 10, 1, ids[3]);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(ids[i], ids[j], 16);
}

static void blocks_past_the_end_are_bypassed(void **state)
{
    (void)state;
    char uri[64];
    struct block_ref ref;
    struct block_object object = test_object(1, 2 * MIB, uri), empty = test_object(2, 0, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(block_take(cache, &object, 2, &ref), BLOCK_BYPASS);
    assert_int_equal(block_take(cache, &object, UINT64_MAX, &ref), BLOCK_BYPASS);
    assert_int_equal(block_take(cache, &empty, 0, &ref), BLOCK_BYPASS);
    assert_int_equal(block_peek(cache, &object, 1), BLOCK_YOURS);
    block_cache_close(cache);
}

/* Random ranges in random parts, through maps or not. */
static void read_ranges(struct block_cache *cache, uint64_t key)
{
    char uri[64];
    struct block_object object = test_object(1, 5 * MIB + 70000, uri);
    for (uint64_t n = 0; n < 200; n++) {
        struct block_ref ref;
        struct iovec parts[5];
        uint64_t number = random_below(key, 4 * n, 6), length = test_length(&object, number);
        uint64_t from = random_below(key, 4 * n + 1, length + 1);
        uint64_t want = random_below(key, 4 * n + 2, length - from + 1), done = 0;
        for (int i = 0; i < 5; i++) {
            uint64_t len = i == 4 ? want - done : random_below(key + 1, 5 * n + i, want - done + 1);
            parts[i] = (struct iovec){buf + done, len};
            done += len;
        }
        assert_int_equal(block_take(cache, &object, number, &ref), BLOCK_HERE);
        assert_int_equal(block_read(&ref, from, parts, 5), 0);
        assert_true(test_is_right(1, number * BLOCK_SIZE + from, buf, want));
        block_give(&ref);
    }
}

static void any_range_of_a_block_can_be_read_with_maps_and_without(void **state)
{
    (void)state;
    char uri[64];
    struct block_object object = test_object(1, 5 * MIB + 70000, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    for (uint64_t number = 0; number < 6; number++)
        assert_int_equal(use_block(cache, &object, 1, number, buf), BLOCK_YOURS);
    read_ranges(cache, 1); /* partly from memory */
    settle(cache);
    read_ranges(cache, 2);
    block_cache_close(cache);
    struct block_fault fault = {.no_maps = 1};
    assert_int_equal(block_cache_open_with(&cache, folder, 0, &fault, NULL), STK_OK);
    read_ranges(cache, 3);
    read_ranges(cache, 4);
    block_cache_close(cache);
}

static void a_claim_that_is_given_back_is_the_next_ones(void **state)
{
    (void)state;
    char uri[64];
    struct block_ref ref, other;
    struct block_object object = test_object(1, MIB, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB), *same = open_cache(folder, 0);
    assert_ptr_equal(cache, same);
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_YOURS);
    assert_int_equal(block_take(cache, &object, 0, &other), BLOCK_COMING);
    block_give(&ref);
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_YOURS);
    block_put(&ref, buf, 17); /* not the block's length: not kept */
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_YOURS);
    block_give(&ref);
    assert_int_equal(counts_of(cache).dropped, 1);
    block_cache_close(same);
    block_cache_close(cache);
}

/* ---- damage -------------------------------------------------------------------------------- */

static void flip(const char *path, uint64_t offset)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

/* One block, a bit of the file flipped at `offset` from where its data is (negative: from the
 * entry), then read again by a process that has not seen it. */
static void rot(int64_t offset, int no_maps, enum block_state expected)
{
    char uri[64];
    struct block_object object = test_object(3, 4 * MIB, uri);
    struct block_fault fault = {.no_maps = no_maps};
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(use_block(cache, &object, 3, 2, buf), BLOCK_YOURS);
    settle(cache);
    uint64_t data_at = cache->folder.segments[0]->head.data_at;
    block_cache_close(cache);
    flip(a_segment(),
         offset < 0 ? SEGMENT_ENTRIES_AT + (uint64_t)-offset : data_at + (uint64_t)offset);
    assert_int_equal(block_cache_open_with(&cache, folder, 0, &fault, NULL), STK_OK);
    struct block_ref ref;
    assert_int_equal(block_take(cache, &object, 2, &ref), expected);
    if (expected == BLOCK_HERE) {
        assert_false(read_whole(&ref, 3, buf));
        assert_int_equal(counts_of(cache).damaged, 1);
        assert_int_equal(block_take(cache, &object, 2, &ref), BLOCK_YOURS);
    }
    block_put(&ref, test_block(3, 2, MIB), MIB);
    settle(cache);
    assert_int_equal(use_block(cache, &object, 3, 2, buf), BLOCK_HERE);
    block_cache_close(cache);
    cache = open_cache(folder, 0); /* the damaged one does not come back */
    assert_int_equal(use_block(cache, &object, 3, 2, buf), BLOCK_HERE);
    assert_int_equal(counts_of(cache).damaged, 0);
    block_cache_close(cache);
    folder_remove(folder);
    folder_new(folder);
}

static void fault_84_a_rotten_bit_is_found_and_the_block_fetched_again(void **state)
{
    (void)state;
    for (int no_maps = 0; no_maps < 2; no_maps++) {
        rot(0, no_maps, BLOCK_HERE);
        rot(777777, no_maps, BLOCK_HERE);
        rot(MIB - 1, no_maps, BLOCK_HERE);
        rot(-5, no_maps, BLOCK_YOURS);  /* its id */
        rot(-70, no_maps, BLOCK_YOURS); /* a checksum */
    }
}

/* A process that compared a part of a block reads it without asking again. So the bytes of a block
 * that another found to be damaged must stay what they are. Here a dead entry, or one that itself
 * is damaged, is the last of a segment that the next writer goes on with. */
static void go_on_behind(uint64_t flipped, int is_dead)
{
    char uri[64];
    struct block_object object = test_object(3, 4 * MIB, uri);
    struct block_cache *cache = open_cache(folder, 256 * MIB);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_YOURS);
    settle(cache);
    uint64_t offset = cache->folder.segments[0]->head.data_at;
    block_cache_close(cache);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", a_segment());
    flip(path, flipped);
    cache = open_cache(folder, 0);
    if (is_dead) {
        struct block_ref ref;
        assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_HERE);
        assert_false(read_whole(&ref, 3, buf));
    }
    block_cache_close(cache);
    uint8_t before[4096], after[4096];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, before, sizeof before, (off_t)offset), sizeof before);
    cache = open_cache(folder, 0);
    assert_int_equal(use_block(cache, &object, 3, 1, buf), BLOCK_YOURS);
    settle(cache);
    block_cache_close(cache);
    assert_int_equal(pread(fd, after, sizeof after, (off_t)offset), sizeof after);
    close(fd);
    assert_memory_equal(before, after, sizeof before);
    folder_remove(folder);
    folder_new(folder);
}

static void nothing_is_written_over_a_block_that_somebody_may_read_still(void **state)
{
    (void)state;
    go_on_behind(SEGMENT_ENTRIES_AT + 100, 0);
    go_on_behind(MIB, 1);
}

static void who_only_hits_lets_go_of_what_was_taken_away(void **state)
{
    (void)state;
    char uri[64];
    struct block_object object = test_object(3, MIB, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_YOURS);
    settle(cache);
    block_cache_close(cache);
    cache = open_cache(folder, 0);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_HERE);
    assert_int_equal(unlink(a_segment()), 0);
    for (int i = 0; i < 1000 && block_peek(cache, &object, 0) == BLOCK_HERE; i++)
        usleep(10000);
    assert_int_equal(block_peek(cache, &object, 0), BLOCK_YOURS);
    block_cache_close(cache);
}

static void a_damaged_head_costs_the_segment_and_no_more(void **state)
{
    (void)state;
    char uri[64];
    struct block_object object = test_object(3, 4 * MIB, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_YOURS);
    settle(cache);
    block_cache_close(cache);
    flip(a_segment(), 17);
    cache = open_cache(folder, 0);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_YOURS);
    settle(cache);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_HERE);
    block_cache_close(cache);
}

static void a_segment_cut_short_under_its_map_is_damage_and_nobody_dies(void **state)
{
    (void)state;
    char uri[64];
    struct block_ref ref;
    struct block_object object = test_object(3, 4 * MIB, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_YOURS);
    settle(cache);
    assert_int_equal(use_block(cache, &object, 3, 0, buf), BLOCK_HERE);
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_HERE);
    assert_int_equal(truncate(a_segment(), 0), 0);
    assert_false(read_whole(&ref, 3, buf));
    block_cache_close(cache);
}

/* ---- room ---------------------------------------------------------------------------------- */

static void fault_83_what_is_taken_stays_readable_while_all_else_goes(void **state)
{
    (void)state;
    char uri[64], other_uri[64];
    struct block_ref ref;
    struct block_object kept = test_object(1, MIB, uri);
    struct block_cache *cache = open_cache(folder, 8 * MIB);
    block_cache_expect(cache, "one", 1); /* all are admitted */
    assert_int_equal(use_block(cache, &kept, 1, 0, buf), BLOCK_YOURS);
    settle(cache);
    assert_int_equal(block_take(cache, &kept, 0, &ref), BLOCK_HERE);
    for (uint64_t n = 0; n < 40; n++) {
        struct block_object object = test_object(100 + n, MIB, other_uri);
        assert_int_equal(use_block(cache, &object, 100 + n, 0, buf), BLOCK_YOURS);
        settle(cache);
        assert_true(counts_of(cache).bytes <= 8 * MIB);
        assert_true(bytes_on_disk() <= 8 * MIB + 65536);
    }
    assert_true(counts_of(cache).evicted > 20);
    assert_int_equal(counts_of(cache).dropped, 0);
    assert_true(read_whole(&ref, 1, buf));
    block_give(&ref);
    assert_int_equal(use_block(cache, &kept, 1, 0, buf), BLOCK_HERE); /* it was never evicted */
    block_cache_close(cache);
}

static void a_cache_full_of_what_is_in_use_is_bypassed(void **state)
{
    (void)state;
    char uri[64];
    struct block_ref refs[16];
    struct block_object object = test_object(1, 16 * MIB, uri);
    struct block_cache *cache = open_cache(folder, 4 * MIB);
    int pinned = 0;
    block_cache_expect(cache, "one", 1);
    for (uint64_t number = 0; number < 16; number++) {
        enum block_state found = use_block(cache, &object, 1, number, buf);
        assert_true(found == BLOCK_YOURS || found == BLOCK_BYPASS);
        settle(cache);
        if (block_peek(cache, &object, number) != BLOCK_HERE)
            continue;
        assert_int_equal(block_take(cache, &object, number, &refs[pinned]), BLOCK_HERE);
        pinned++;
    }
    struct block_counts counts = counts_of(cache);
    assert_true(pinned >= 2 && pinned < 8);
    assert_true(counts.bypassed > 0 && counts.dropped > 0 && !counts.no_space);
    for (int i = 0; i < pinned; i++) {
        assert_true(read_whole(&refs[i], 1, buf));
        block_give(&refs[i]);
    }
    atomic_store(&cache->shut_until, 0);
    assert_int_equal(use_block(cache, &object, 1, 15, buf), BLOCK_YOURS);
    settle(cache);
    assert_int_equal(use_block(cache, &object, 1, 15, buf), BLOCK_HERE);
    block_cache_close(cache);
}

/* One epoch in a random order. How many of the blocks were there. */
static uint32_t epoch_hits(struct block_cache *cache, const struct block_object *objects,
                           uint32_t blocks, uint64_t key)
{
    struct permutation order;
    uint32_t hits = 0;
    permutation_init(&order, blocks, key);
    for (uint32_t i = 0; i < blocks; i++) {
        uint64_t block = permutation_at(&order, i), which = block / 8;
        hits += use_block(cache, &objects[which], which, block % 8, buf) == BLOCK_HERE;
        assert_true(block_cache_settle(cache, BLOCK_QUEUE_MOST / 2, 30 * SECOND_NS));
    }
    settle(cache);
    return hits;
}

#define HALF_OBJECTS 16
#define HALF_BLOCKS (HALF_OBJECTS * 8)

static void epochs_over_a_cache_of_half_the_size(uint64_t expected, int epochs)
{
    char uris[HALF_OBJECTS][64];
    struct block_object objects[HALF_OBJECTS];
    uint32_t hits = 0;
    for (uint32_t i = 0; i < HALF_OBJECTS; i++)
        objects[i] = test_object(i, 8 * MIB, uris[i]);
    struct block_cache *cache = open_cache(folder, HALF_BLOCKS / 2 * MIB);
    for (int i = 0; i < 3 && expected; i++)
        block_cache_expect(cache, "all", expected);
    for (int epoch = 0; epoch < epochs; epoch++)
        hits = epoch_hits(cache, objects, HALF_BLOCKS, 10 + (uint64_t)epoch);
    assert_true(hits >= HALF_BLOCKS * 40 / 100 && hits <= HALF_BLOCKS / 2);
    assert_int_equal(counts_of(cache).damaged, 0);
    block_cache_close(cache);
    cache = open_cache(folder, 0); /* another process, another order: the same blocks */
    block_cache_expect(cache, "all", HALF_BLOCKS * MIB);
    assert_true(epoch_hits(cache, objects, HALF_BLOCKS, 99) >= HALF_BLOCKS * 40 / 100);
    block_cache_close(cache);
}

static void a_cache_of_half_the_data_hits_about_half_in_any_order(void **state)
{
    (void)state;
    epochs_over_a_cache_of_half_the_size(HALF_BLOCKS * MIB, 2);
}

static void an_object_that_two_expect_counts_once_until_neither_does(void **state)
{
    (void)state;
    char uri[64];
    struct block_object object = test_object(1, 8 * MIB, uri);
    struct block_cache *cache = open_cache(folder, 16 * MIB);
    block_cache_expect(cache, uri, 8 * MIB);
    block_cache_expect(cache, uri, 8 * MIB); /* of another data set */
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(block_peek(cache, &object, i), BLOCK_YOURS);
    block_cache_expect(cache, "another", 1024 * MIB);
    uint32_t admitted = 0;
    for (uint64_t i = 0; i < 8; i++)
        admitted += block_peek(cache, &object, i) == BLOCK_YOURS;
    assert_true(admitted < 4);
    block_cache_expect_no_more(cache, "another", 1024 * MIB);
    block_cache_expect_no_more(cache, uri, 8 * MIB);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(block_peek(cache, &object, i), BLOCK_YOURS);
    assert_int_equal(cache->expected.bytes, 8 * MIB);
    block_cache_expect_no_more(cache, uri, 8 * MIB);
    assert_int_equal(cache->expected.bytes, 0);
    block_cache_close(cache);
}

static void without_being_told_the_size_it_comes_to_the_same(void **state)
{
    (void)state;
    epochs_over_a_cache_of_half_the_size(0, 4);
}

static void data_that_is_no_longer_used_makes_room_within_one_epoch(void **state)
{
    (void)state;
    char uris[HALF_OBJECTS][64];
    struct block_object old[4], now[4];
    for (uint32_t i = 0; i < 4; i++) {
        old[i] = test_object(i, 8 * MIB, uris[i]);
        now[i] = test_object(i + 4, 8 * MIB, uris[i + 4]);
    }
    struct block_cache *cache = open_cache(folder, 40 * MIB);
    block_cache_expect(cache, "all", 32 * MIB);
    assert_int_equal(epoch_hits(cache, old, 32, 1), 0);
    assert_int_equal(epoch_hits(cache, old, 32, 2), 32);
    block_cache_close(cache);
    cache = open_cache(folder, 0);
    block_cache_expect(cache, "all", 32 * MIB);
    for (uint64_t block = 0; block < 32; block++)
        assert_int_not_equal(use_block(cache, &now[block / 8], 4 + block / 8, block % 8, buf),
                             BLOCK_BYPASS);
    settle(cache);
    uint32_t hits = 0;
    for (uint64_t block = 0; block < 32; block++)
        hits += use_block(cache, &now[block / 8], 4 + block / 8, block % 8, buf) == BLOCK_HERE;
    assert_true(hits >= 24);
    block_cache_close(cache);
}

/* ---- a disk that refuses ------------------------------------------------------------------- */

struct refusal {
    enum block_call call;
    int number; /* minus errno; 0: none any more */
};

static int refuse(void *user, enum block_call call)
{
    const struct refusal *refusal = user;
    return call == refusal->call ? refusal->number : 0;
}

static void fault_80_a_full_disk_is_bypassed_and_counted(void **state)
{
    (void)state;
    static const enum block_call calls[] = {BLOCK_CALL_MAKE, BLOCK_CALL_WRITE, BLOCK_CALL_ENTRY,
                                            BLOCK_CALL_RENAME};
    char uri[64];
    struct block_object object = test_object(1, 16 * MIB, uri);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct refusal refusal = {calls[i], 0};
        struct block_fault fault = {.call = refuse, .user = &refusal};
        struct block_cache *cache;
        assert_int_equal(block_cache_open_with(&cache, folder, 64 * MIB, &fault, NULL), STK_OK);
        refusal.number = -ENOSPC;
        assert_int_equal(use_block(cache, &object, 1, i, buf), BLOCK_YOURS);
        settle(cache);
        assert_int_equal(use_block(cache, &object, 1, i, buf), BLOCK_BYPASS);
        struct block_counts counts = counts_of(cache);
        assert_true(counts.no_space && counts.dropped == 1 && counts.bypassed == 1);
        refusal.number = 0;
        atomic_store(&cache->shut_until, 0); /* some seconds later */
        assert_int_equal(use_block(cache, &object, 1, i, buf), BLOCK_YOURS);
        settle(cache);
        assert_int_equal(use_block(cache, &object, 1, i, buf), BLOCK_HERE);
        block_cache_close(cache);
        folder_remove(folder);
        folder_new(folder);
    }
}

static void a_cache_that_is_cleared_under_its_user_goes_on(void **state)
{
    (void)state;
    char uri[64];
    struct block_object object = test_object(1, 16 * MIB, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    for (uint64_t number = 0; number < 4; number++)
        assert_int_equal(use_block(cache, &object, 1, number, buf), BLOCK_YOURS);
    settle(cache);
    for (const char *segment; (segment = a_segment());)
        assert_int_equal(unlink(segment), 0);
    block_folder_look(&cache->folder);
    assert_int_equal(use_block(cache, &object, 1, 0, buf), BLOCK_YOURS);
    settle(cache);
    assert_int_equal(use_block(cache, &object, 1, 0, buf), BLOCK_HERE);
    assert_non_null(a_segment());
    block_cache_close(cache);
}

static void too_small_a_size_is_refused_and_so_is_a_file_for_a_folder(void **state)
{
    (void)state;
    struct block_cache *cache;
    struct stk_error err;
    assert_int_equal(block_cache_open(&cache, folder, 4096, &err), STK_USAGE);
    assert_null(cache);
    text_write(path_in(folder, "file"), "x");
    assert_int_not_equal(block_cache_open(&cache, path_in(folder, "file"), 64 * MIB, &err), STK_OK);
    assert_non_null(strstr(err.object, "file"));
    cache = open_cache(path_in(folder, "new/and/deep/"), 64 * MIB);
    block_cache_close(cache);
}

/* ---- threads ------------------------------------------------------------------------------- */

struct crew {
    struct block_cache *cache;
    uint64_t key;
};

static void *work(void *user)
{
    struct crew *crew = user;
    char uri[64];
    uint8_t *own = malloc(1 << 20);
    for (uint64_t n = 0; n < 150; n++) {
        uint64_t which = random_below(crew->key, 2 * n, 3),
                 number = random_below(crew->key, 2 * n + 1, 6);
        struct block_object object = test_object(which, 5 * MIB + 3000, uri);
        struct block_ref ref;
        enum block_state state = block_take(crew->cache, &object, number, &ref);
        if (state == BLOCK_COMING) {
            block_wait(crew->cache, &object, number, 1000000);
        } else if (state == BLOCK_YOURS) {
            uint64_t length = test_length(&object, number);
            test_fill(which, number * BLOCK_SIZE, own, length < 4096 ? length : 4096);
            memset(own + 4096, 0, length > 4096 ? length - 4096 : 0);
            block_put(&ref, own, length);
        } else if (state == BLOCK_HERE) {
            struct iovec part = {own, 3000};
            assert_int_equal(block_read(&ref, 0, &part, 1), 0);
            assert_true(test_is_right(which, number * BLOCK_SIZE, own, 3000));
            block_give(&ref);
        }
    }
    free(own);
    return NULL;
}

static void many_threads_share_one_cache_that_is_too_small(void **state)
{
    (void)state;
    struct block_cache *cache = open_cache(folder, 8 * MIB);
    struct crew crews[4];
    pthread_t threads[4];
    block_cache_expect(cache, "one", 1);
    for (uint64_t i = 0; i < 4; i++) {
        crews[i] = (struct crew){cache, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crews[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    settle(cache);
    assert_int_equal(counts_of(cache).damaged, 0);
    block_cache_close(cache);
}

static int use_without_memory(void *user)
{
    char uri[64];
    struct block_object object = test_object(*(uint64_t *)user, MIB, uri);
    struct block_cache *cache;
    if (block_cache_open(&cache, folder, 16 * MIB, NULL))
        return 0;
    enum block_state state = use_block(cache, &object, *(uint64_t *)user, 0, buf);
    settle(cache);
    int here = block_peek(cache, &object, 0) == BLOCK_HERE;
    block_cache_close(cache);
    ++*(uint64_t *)user;
    return here && state == BLOCK_YOURS;
}

/* What memory fails for need not be visible: a map, a name. Nothing leaks and nothing breaks. */
static void each_allocation_may_fail(void **state)
{
    (void)state;
    uint64_t object = 1;
    for (long n = 1; n < 60; n++) {
        struct nth_failure nth = {.countdown = n};
        memory_set_hook(nth_hook, &nth);
        (void)use_without_memory(&object);
        memory_set_hook(NULL, NULL);
        object++;
    }
    assert_int_equal(use_without_memory(&object), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_block_that_was_put_is_here_at_once_and_after_opening_again),
        TEST(another_version_of_an_object_is_another_object),
        TEST(blocks_past_the_end_are_bypassed),
        TEST(any_range_of_a_block_can_be_read_with_maps_and_without),
        TEST(a_claim_that_is_given_back_is_the_next_ones),
        TEST(fault_84_a_rotten_bit_is_found_and_the_block_fetched_again),
        TEST(nothing_is_written_over_a_block_that_somebody_may_read_still),
        TEST(who_only_hits_lets_go_of_what_was_taken_away),
        TEST(a_damaged_head_costs_the_segment_and_no_more),
        TEST(a_segment_cut_short_under_its_map_is_damage_and_nobody_dies),
        TEST(fault_83_what_is_taken_stays_readable_while_all_else_goes),
        TEST(a_cache_full_of_what_is_in_use_is_bypassed),
        TEST(a_cache_of_half_the_data_hits_about_half_in_any_order),
        TEST(an_object_that_two_expect_counts_once_until_neither_does),
        TEST(without_being_told_the_size_it_comes_to_the_same),
        TEST(data_that_is_no_longer_used_makes_room_within_one_epoch),
        TEST(fault_80_a_full_disk_is_bypassed_and_counted),
        TEST(a_cache_that_is_cleared_under_its_user_goes_on),
        TEST(too_small_a_size_is_refused_and_so_is_a_file_for_a_folder),
        TEST(many_threads_share_one_cache_that_is_too_small),
        TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
