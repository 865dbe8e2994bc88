/* Several processes, and several users, on one cache. The program starts itself again for them. */
#include "store/block_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/sanitized.h"

#define OBJECTS 4
#define BLOCKS 6 /* of each */
#define OBJECT_SIZE (5 * MIB + 4097)
#define NOBODY 65534

static char folder[PATH_MAX];
static uint8_t buf[1 << 20];

/* ---- what the children do ------------------------------------------------------------------ */

/* Uses every block, in an order of its own. Writes how many it had to fetch to FOLDER/fetched-N. */
static int child_uses_all(const char *word)
{
    char uri[64], name[64];
    struct permutation order;
    uint32_t fetched = 0;
    struct block_cache *cache = open_cache(folder, 0);
    permutation_init(&order, OBJECTS * BLOCKS, strtoull(word, NULL, 10));
    for (uint64_t i = 0; i < OBJECTS * BLOCKS; i++) {
        uint64_t block = permutation_at(&order, i), which = block / BLOCKS;
        struct block_object object = test_object(which, OBJECT_SIZE, uri);
        enum block_state state = use_block(cache, &object, which, block % BLOCKS, buf);
        if (state == BLOCK_BYPASS)
            return 3;
        fetched += state == BLOCK_YOURS;
    }
    settle(cache);
    block_cache_close(cache);
    snprintf(name, sizeof name, "fetched-%s", word);
    file_write(path_in(folder, name), &fetched, sizeof fetched);
    return 0;
}

/* Claims the first block, says so, and does nothing more. */
static int child_holds_a_claim(const char *word)
{
    char uri[64];
    struct block_ref ref;
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    (void)word;
    if (block_take(cache, &object, 0, &ref) != BLOCK_YOURS)
        return 3;
    text_write(path_in(folder, "claimed"), "");
    for (;;)
        pause();
}

/* Puts the blocks of object 1. */
static int child_writes(const char *word)
{
    char uri[64];
    struct block_object object = test_object(1, OBJECT_SIZE, uri);
    struct block_cache *cache = open_cache(folder, 0);
    (void)word;
    for (uint64_t number = 0; number < BLOCKS; number++)
        if (use_block(cache, &object, 1, number, buf) != BLOCK_YOURS)
            return 3;
    settle(cache);
    block_cache_close(cache);
    return 0;
}

/* A file may not grow past 300 kB: the cache cannot write, and the process lives. */
static int child_with_a_limit(const char *word)
{
    char uri[64];
    struct rlimit limit = {300000, 300000};
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    (void)word;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 3;
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    if (use_block(cache, &object, 0, 0, buf) != BLOCK_YOURS)
        return 4;
    settle(cache);
    if (use_block(cache, &object, 0, 0, buf) != BLOCK_BYPASS || !counts_of(cache).no_space)
        return 5;
    block_cache_close(cache);
    return 0;
}

/* Another user: reads what it may, fetches the rest, and keeps that too. */
static int child_of_another_user(const char *word)
{
    char uri[64];
    int readable = !strcmp(word, "readable");
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        return 3;
    struct block_cache *cache = open_cache(folder, 0);
    if (use_block(cache, &object, 0, 0, buf) != (readable ? BLOCK_HERE : BLOCK_YOURS))
        return 4;
    if (use_block(cache, &object, 0, 1, buf) != BLOCK_YOURS)
        return 5;
    settle(cache);
    if (use_block(cache, &object, 0, 1, buf) != BLOCK_HERE || counts_of(cache).dropped)
        return 6;
    block_cache_close(cache);
    return 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

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

static void fault_82_processes_that_start_together_fetch_each_block_once(void **state)
{
    (void)state;
    uint32_t all = 0;
    pid_t children[4];
    char word[16];
    for (int i = 0; i < 4; i++) {
        snprintf(word, sizeof word, "%d", i);
        children[i] = start_child("use", folder, word);
    }
    for (int i = 0; i < 4; i++)
        assert_true(ended_well(children[i]));
    for (int i = 0; i < 4; i++) {
        snprintf(word, sizeof word, "fetched-%d", i);
        uint32_t *fetched = (uint32_t *)file_read(path_in(folder, word), NULL);
        all += *fetched;
        free(fetched);
    }
    assert_int_equal(all, OBJECTS * BLOCKS);
}

static void wait_for_file(const char *name)
{
    for (int i = 0; i < 3000 && access(path_in(folder, name), F_OK) != 0; i++)
        usleep(10000);
    assert_int_equal(access(path_in(folder, name), F_OK), 0);
}

static void a_claim_dies_with_its_process(void **state)
{
    (void)state;
    char uri[64];
    struct block_ref ref;
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    pid_t child = start_child("hold", folder, "");
    wait_for_file("claimed");
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_COMING);
    assert_int_equal(block_take(cache, &object, 1, &ref), BLOCK_YOURS);
    block_give(&ref);
    assert_int_equal(kill(child, SIGKILL), 0);
    end_of(child);
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_YOURS);
    block_give(&ref);
    block_cache_close(cache);
}

static void fault_94_a_stopped_process_is_waited_for_a_while_and_then_passed(void **state)
{
    (void)state;
    char uri[64];
    struct block_ref ref;
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    cache->theirs_ns = SECOND_NS / 10;
    pid_t child = start_child("hold", folder, "");
    wait_for_file("claimed");
    assert_int_equal(kill(child, SIGSTOP), 0);
    enum block_state found = block_take(cache, &object, 0, &ref);
    assert_int_equal(found, BLOCK_COMING);
    for (int i = 0; i < 3000 && found == BLOCK_COMING; i++) {
        block_wait(cache, &object, 0, SECOND_NS / 100);
        found = block_take(cache, &object, 0, &ref);
    }
    assert_int_equal(found, BLOCK_BYPASS);
    assert_int_equal(use_block(cache, &object, 0, 1, buf), BLOCK_YOURS); /* all else goes on */
    assert_int_equal(kill(child, SIGKILL), 0);
    end_of(child);
    assert_int_equal(use_block(cache, &object, 0, 0, buf), BLOCK_YOURS);
    block_cache_close(cache);
}

/* The claim hangs on a descriptor that a child of fork has too. */
static void a_claim_does_not_live_on_in_a_child_of_fork(void **state)
{
    (void)state;
    if (!CAN_FORK)
        skip();
    char uri[64];
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    struct block_ref ref;
    int told[2];
    assert_int_equal(block_take(cache, &object, 0, &ref), BLOCK_YOURS);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        block_give(&ref); /* not its own: the parent's claim stays */
        close(told[1]);
        _exit(read(told[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(told[0]);
    int fd = openat(cache->folder.fd, "claims", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK};
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    assert_int_equal(lock.l_type, F_WRLCK);
    close(cache->folder.claims_fd); /* as when this process dies */
    cache->folder.claims_fd = -1;
    for (int i = 0; i < 1000 && lock.l_type != F_UNLCK; i++) { /* the child may not have run yet */
        lock = (struct flock){.l_type = F_WRLCK};
        assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
        usleep(1000);
    }
    assert_int_equal(lock.l_type, F_UNLCK);
    close(fd);
    close(told[1]);
    assert_true(ended_well(child));
    block_give(&ref);
    block_cache_close(cache);
}

static void a_child_of_fork_bypasses_its_parents_cache(void **state)
{
    (void)state;
    if (!CAN_FORK)
        skip();
    char uri[64];
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(use_block(cache, &object, 0, 0, buf), BLOCK_YOURS);
    settle(cache);
    pid_t child = fork();
    if (child == 0) {
        struct block_ref ref;
        int bypassed = block_take(cache, &object, 0, &ref) == BLOCK_BYPASS;
        block_cache_close(cache);
        struct block_cache *own;
        int opened = block_cache_open(&own, folder, 0, NULL) == STK_OK && own != cache;
        int here = opened && use_block(own, &object, 0, 0, buf) == BLOCK_HERE;
        block_cache_close(own);
        _exit(bypassed && here ? 0 : 1);
    }
    assert_true(ended_well(child));
    assert_int_equal(use_block(cache, &object, 0, 0, buf), BLOCK_HERE);
    block_cache_close(cache);
}

static void no_two_processes_write_to_one_segment(void **state)
{
    (void)state;
    char uris[2][64];
    struct block_object objects[2] = {test_object(0, OBJECT_SIZE, uris[0]),
                                      test_object(1, OBJECT_SIZE, uris[1])};
    struct block_cache *cache = open_cache(folder, 4096 * MIB); /* a segment has room for many */
    assert_int_equal(use_block(cache, &objects[0], 0, 0, buf), BLOCK_YOURS);
    settle(cache);
    assert_true(ended_well(start_child("write", folder, "")));
    for (uint64_t number = 1; number < BLOCKS; number++)
        assert_int_equal(use_block(cache, &objects[0], 0, number, buf), BLOCK_YOURS);
    settle(cache);
    block_cache_close(cache);
    /* the next one goes on with what both left */
    assert_true(ended_well(start_child("use", folder, "1")));
    cache = open_cache(folder, 0);
    for (uint64_t n = 0; n < 2 * BLOCKS; n++)
        assert_int_equal(use_block(cache, &objects[n / BLOCKS], n / BLOCKS, n % BLOCKS, buf),
                         BLOCK_HERE);
    assert_int_equal(counts_of(cache).damaged, 0);
    assert_int_equal(cache->folder.count, 2);
    block_cache_close(cache);
}

static void fault_80_a_limit_of_file_sizes_is_no_end(void **state)
{
    (void)state;
    assert_true(ended_well(start_child("limit", folder, "")));
}

static void two_users(mode_t mask, const char *word)
{
    char uri[64];
    struct block_object object = test_object(0, OBJECT_SIZE, uri);
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(folder, 01777), 0);
    mode_t before = umask(mask);
    struct block_cache *cache = open_cache(folder, 64 * MIB);
    assert_int_equal(use_block(cache, &object, 0, 0, buf), BLOCK_YOURS);
    settle(cache);
    umask(before);
    assert_true(ended_well(start_child("user", folder, word)));
    /* and what the other brought is here for us */
    block_folder_look(&cache->folder);
    assert_int_equal(use_block(cache, &object, 0, 1, buf), BLOCK_HERE);
    block_cache_close(cache);
}

static void fault_82_users_read_what_the_others_let_them(void **state)
{
    (void)state;
    two_users(022, "readable");
}

static void fault_82_users_go_past_what_is_not_theirs_to_read(void **state)
{
    (void)state;
    two_users(077, "hidden");
}

static const struct {
    const char *name;
    int (*run)(const char *word);
} roles[] = {{"use", child_uses_all},
             {"hold", child_holds_a_claim},
             {"write", child_writes},
             {"limit", child_with_a_limit},
             {"user", child_of_another_user}};

static int run_role(char **argv)
{
    snprintf(folder, sizeof folder, "%s", argv[2]);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (!strcmp(roles[i].name, argv[1]))
            return roles[i].run(argv[3]);
    return 98;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(fault_82_processes_that_start_together_fetch_each_block_once),
        TEST(a_claim_dies_with_its_process),
        TEST(fault_94_a_stopped_process_is_waited_for_a_while_and_then_passed),
        TEST(a_claim_does_not_live_on_in_a_child_of_fork),
        TEST(a_child_of_fork_bypasses_its_parents_cache),
        TEST(no_two_processes_write_to_one_segment),
        TEST(fault_80_a_limit_of_file_sizes_is_no_end),
        TEST(fault_82_users_read_what_the_others_let_them),
        TEST(fault_82_users_go_past_what_is_not_theirs_to_read),
    };
    if (argc == 4)
        return run_role(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
