/* A process that fills the cache is killed before each of its steps on the disk, one after the
 * other. Whatever it leaves, the next one serves nothing wrong, and goes on. */
#include "store/block_fixture.h"

#include <signal.h>

#define OBJECTS 3
#define BLOCKS 3 /* of each; the cache holds fewer than all of them */
#define OBJECT_SIZE (2 * MIB + 5000)
#define LIMIT (4 * MIB)
#define STEPS_MOST 400

static char folder[PATH_MAX];
static uint8_t buf[1 << 20];

/* ---- the child ----------------------------------------------------------------------------- */

static int count_down(void *user, enum block_call call)
{
    (void)call;
    if (--*(_Atomic long *)user == 0)
        raise(SIGKILL);
    return 0;
}

/* Uses random blocks, one at a time, so that step N is the same each time. */
static int child_fills(const char *word)
{
    static _Atomic long steps;
    char uri[64];
    struct block_fault fault = {.call = count_down, .user = &steps};
    struct block_cache *cache;
    steps = strtol(word, NULL, 10);
    if (block_cache_open_with(&cache, folder, LIMIT, &fault, NULL))
        return 3;
    block_cache_expect(cache, 1); /* all are admitted, and some must go */
    for (uint64_t i = 0; i < 7; i++) {
        uint64_t which = random_below(5, 2 * i, OBJECTS),
                 number = random_below(5, 2 * i + 1, BLOCKS);
        struct block_object object = test_object(which, OBJECT_SIZE, uri);
        use_block(cache, &object, which, number, buf);
        settle(cache);
    }
    block_cache_close(cache);
    return 0;
}

/* As fast as it can, until it is killed. */
static void child_hurries(const char *word)
{
    char uri[64];
    uint64_t key = strtoull(word, NULL, 10);
    struct block_cache *cache = open_cache(folder, LIMIT);
    block_cache_expect(cache, 1);
    text_write(path_in(folder, word), "");
    for (uint64_t i = 0;; i++) {
        uint64_t which = random_below(key, 2 * i, OBJECTS);
        struct block_object object = test_object(which, OBJECT_SIZE, uri);
        use_block(cache, &object, which, random_below(key, 2 * i + 1, BLOCKS), buf);
    }
}

/* ---- what must be true after it ------------------------------------------------------------ */

static int leftovers(void)
{
    int count = 0;
    struct block_cache *cache = open_cache(folder, 0);
    for (uint64_t n = 0; n < OBJECTS * BLOCKS; n++) {
        char uri[64];
        struct block_object object = test_object(n / BLOCKS, OBJECT_SIZE, uri);
        count += block_peek(cache, &object, n % BLOCKS) == BLOCK_HERE;
    }
    block_cache_close(cache);
    return count;
}

static void check_and_use(void)
{
    char uri[64];
    struct block_cache *cache = open_cache(folder, LIMIT);
    block_cache_expect(cache, 1);
    for (uint64_t n = 0; n < OBJECTS * BLOCKS; n++) { /* use_block compares what is HERE */
        struct block_object object = test_object(n / BLOCKS, OBJECT_SIZE, uri);
        if (block_peek(cache, &object, n % BLOCKS) == BLOCK_HERE)
            assert_int_equal(use_block(cache, &object, n / BLOCKS, n % BLOCKS, buf), BLOCK_HERE);
    }
    assert_int_equal(counts_of(cache).damaged, 0); /* a kill tears nothing */
    struct block_object object = test_object(77, MIB, uri);
    if (block_peek(cache, &object, 0) != BLOCK_HERE) {
        assert_int_equal(use_block(cache, &object, 77, 0, buf), BLOCK_YOURS);
        settle(cache);
    }
    assert_int_equal(use_block(cache, &object, 77, 0, buf), BLOCK_HERE);
    struct block_counts counts = counts_of(cache);
    assert_true(counts.bytes <= LIMIT && !counts.dropped);
    block_cache_close(cache);
}

/* Kills at step 1, 2, ... (in an old cache at every other one) until the child reaches its end. How
 * many steps there were. */
static int kill_at_each_step(int afresh)
{
    for (int step = 1; step < STEPS_MOST; step += afresh ? 1 : 2) {
        char word[16];
        snprintf(word, sizeof word, "%d", step);
        int status = end_of(start_child("fill", folder, word));
        check_and_use();
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return step;
        }
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (afresh) {
            folder_remove(folder);
            folder_new(folder);
        }
    }
    return 0;
}

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

static void fault_81_killed_at_any_step_of_a_new_cache_nothing_wrong_is_served(void **state)
{
    (void)state;
    int steps = kill_at_each_step(1);
    assert_true(steps > 30); /* all kinds of steps were met */
}

static void fault_81_killed_at_any_step_of_an_old_cache_nothing_wrong_is_served(void **state)
{
    (void)state;
    assert_true(kill_at_each_step(0) > 1);
    assert_true(leftovers() > 0);
}

static void fault_81_three_that_are_killed_in_full_flight_leave_a_sound_cache(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        pid_t children[3];
        char word[16];
        for (int i = 0; i < 3; i++) {
            snprintf(word, sizeof word, "%d", 10 * round + i);
            children[i] = start_child("hurry", folder, word);
        }
        for (int i = 0; i < 3; i++) {
            snprintf(word, sizeof word, "%d", 10 * round + i);
            while (access(path_in(folder, word), F_OK) != 0)
                usleep(2000);
        }
        usleep(20000 + 7000 * (useconds_t)round);
        for (int i = 0; i < 3; i++) {
            kill(children[i], SIGKILL);
            end_of(children[i]);
        }
        check_and_use();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(fault_81_killed_at_any_step_of_a_new_cache_nothing_wrong_is_served),
        TEST(fault_81_killed_at_any_step_of_an_old_cache_nothing_wrong_is_served),
        TEST(fault_81_three_that_are_killed_in_full_flight_leave_a_sound_cache),
    };
    if (argc == 4) {
        snprintf(folder, sizeof folder, "%s", argv[2]);
        if (!strcmp(argv[1], "fill"))
            return child_fills(argv[3]);
        child_hurries(argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
