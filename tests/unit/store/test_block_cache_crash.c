/* A process that fills the cache is killed before each of its steps on the disk, and in the middle
 * of each of its writes, one after the other. Whatever it leaves, the next one serves nothing
 * wrong, and goes on. */
#include "store/block_fixture.h"

#include <signal.h>
#include <sys/file.h>

#define OBJECTS 3
#define BLOCKS 3 /* of each; the cache holds fewer than all of them */
#define OBJECT_SIZE (2 * MIB + 5000)
#define LIMIT (4 * MIB)
#define ROOMY                                                                                      \
    (512 * MIB) /* its segments hold several blocks: the next process goes on with them            \
                 */
#define STEPS_MOST 400

static char folder[PATH_MAX];
static uint64_t limit = LIMIT;
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
static int fill(const struct block_fault *fault)
{
    char uri[64];
    struct block_cache *cache;
    if (block_cache_open_with(&cache, folder, limit, fault, NULL))
        return 3;
    block_cache_expect(cache, "one", 1); /* all are admitted, and some must go */
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

static int child_fills(const char *word)
{
    static _Atomic long steps;
    steps = strtol(word, NULL, 10);
    return fill(&(struct block_fault){.call = count_down, .user = &steps});
}

#define SECTOR ((size_t)512)
#define PAGE ((size_t)4096)

/* How much of a write is done when its process dies: whole sectors of what is large. */
enum { CUT_SECTOR, CUT_PAGE, CUT_SOMEWHERE, CUT_ALMOST, CUT_KINDS };

struct cut {
    long write, kind;
    _Atomic long left; /* writes until then */
};

static size_t cut_length(const struct cut *cut, size_t len)
{
    size_t unit = len >= PAGE ? SECTOR : 1, units = len / unit;
    uint64_t somewhere = random_below(9, (uint64_t)cut->write, units);
    const size_t lengths[CUT_KINDS] = {unit, len >= PAGE ? PAGE : len / 2, somewhere * unit,
                                       (units - 1) * unit};
    return lengths[cut->kind];
}

static ssize_t write_a_part(void *user, int fd, const void *from, size_t len, off_t offset)
{
    struct cut *cut = user;
    if (--cut->left)
        return pwrite(fd, from, len, offset);
    size_t part = cut_length(cut, len);
    if (pwrite(fd, from, part, offset) < 0) /* a disk that takes no sectors takes pages */
        part = (size_t)pwrite(fd, from, part / PAGE * PAGE, offset);
    raise(SIGKILL);
    return (ssize_t)part;
}

/* word: which write, how much of it, and whether past the page cache. */
static int child_is_cut(const char *word)
{
    static struct cut cut;
    char *end;
    limit = ROOMY;
    cut.write = strtol(word, &end, 10);
    cut.left = cut.write;
    cut.kind = strtol(end, &end, 10);
    int no_direct = strtol(end, NULL, 10) == 0;
    return fill(&(struct block_fault){.write = write_a_part, .user = &cut, .no_direct = no_direct});
}

/* Dies when it is about to say for the Nth time who may use what it made. */
static int count_rights(void *user, enum block_call call)
{
    return call == BLOCK_CALL_RIGHTS ? count_down(user, call) : 0;
}

static int child_shares(const char *word)
{
    static _Atomic long rights;
    rights = strtol(word, NULL, 10);
    umask(077);
    return fill(&(struct block_fault){.call = count_rights, .user = &rights});
}

/* As fast as it can, until it is killed. */
static void child_hurries(const char *word)
{
    char uri[64];
    uint64_t key = strtoull(word, NULL, 10);
    struct block_cache *cache = open_cache(folder, LIMIT);
    block_cache_expect(cache, "one", 1);
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
    struct block_cache *cache = open_cache(folder, limit);
    block_cache_expect(cache, "one", 1);
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
    assert_true(counts.bytes <= limit && !counts.dropped);
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

/* Cuts writes 1, 2, ... short, each in another way than the one before, until the child reaches its
 * end. How many there were. */
static int cut_each_write(int direct)
{
    for (int write = 1; write < STEPS_MOST; write++) {
        char word[32];
        snprintf(word, sizeof word, "%d %d %d", write, (write + 2 * direct) % CUT_KINDS, direct);
        int status = end_of(start_child("cut", folder, word));
        check_and_use();
        folder_remove(folder);
        folder_new(folder);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return write;
        }
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    return 0;
}

static int make_folder(void **state)
{
    (void)state;
    limit = LIMIT;
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

static void fault_81_killed_in_the_middle_of_any_write_nothing_wrong_is_served(void **state)
{
    (void)state;
    limit = ROOMY;
    for (int direct = 0; direct < 2; direct++)
        assert_true(cut_each_write(direct) > 15);
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

static const char *temporary(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/t-%s", BLOCK_FOLDER_NAME, name);
    return path_in(folder, path);
}

static void fault_81_what_was_never_named_is_ignored_and_removed(void **state)
{
    (void)state;
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    block_cache_close(open_cache(folder, 64 * MIB));
    text_write(temporary("0000000000000001"), "old");
    text_write(temporary("0000000000000002"), "young");
    text_write(temporary("0000000000000003"), "old, and locked");
    assert_int_equal(utimensat(AT_FDCWD, temporary("0000000000000001"), old, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, temporary("0000000000000003"), old, 0), 0);
    int fd = open(temporary("0000000000000003"), O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    struct block_cache *cache = open_cache(folder, 0);
    assert_int_not_equal(access(temporary("0000000000000001"), F_OK), 0);
    assert_int_equal(access(temporary("0000000000000002"), F_OK), 0);
    assert_int_equal(access(temporary("0000000000000003"), F_OK), 0);
    block_folder_sweep(&cache->folder);
    assert_int_not_equal(access(temporary("0000000000000002"), F_OK), 0);
    assert_int_equal(access(temporary("0000000000000003"), F_OK), 0);
    close(fd);
    block_cache_close(cache);
}

static mode_t rights_of(const char *name)
{
    struct stat found;
    assert_int_equal(stat(path_in(folder, name), &found), 0);
    return found.st_mode & 07777;
}

static void fault_82_a_shared_cache_whose_maker_was_killed_is_shared_by_the_next(void **state)
{
    mode_t before = umask(077);
    for (int call = 1; call <= 3; call++) { /* the folder, its claims, none */
        char word[16];
        assert_int_equal(chmod(folder, 01777), 0);
        snprintf(word, sizeof word, "%d", call);
        int status = end_of(start_child("share", folder, word));
        assert_int_equal(call < 3, WIFSIGNALED(status));
        assert_int_equal(rights_of(BLOCK_FOLDER_NAME), call == 1 ? 0700 : 01777);
        check_and_use();
        assert_int_equal(rights_of(BLOCK_FOLDER_NAME), 01777);
        assert_int_equal(rights_of(BLOCK_FOLDER_NAME "/claims"), 0666);
        assert_int_equal(chmod(path_in(folder, BLOCK_FOLDER_NAME), 0750), 0);
        check_and_use();
        assert_int_equal(rights_of(BLOCK_FOLDER_NAME), 0750); /* somebody wants it so */
        remove_folder(state);
        make_folder(state);
    }
    umask(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(fault_81_killed_at_any_step_of_a_new_cache_nothing_wrong_is_served),
        TEST(fault_81_killed_at_any_step_of_an_old_cache_nothing_wrong_is_served),
        TEST(fault_81_killed_in_the_middle_of_any_write_nothing_wrong_is_served),
        TEST(fault_81_what_was_never_named_is_ignored_and_removed),
        TEST(fault_82_a_shared_cache_whose_maker_was_killed_is_shared_by_the_next),
        TEST(fault_81_three_that_are_killed_in_full_flight_leave_a_sound_cache),
    };
    if (argc == 4) {
        snprintf(folder, sizeof folder, "%s", argv[2]);
        if (!strcmp(argv[1], "fill"))
            return child_fills(argv[3]);
        if (!strcmp(argv[1], "share"))
            return child_shares(argv[3]);
        if (!strcmp(argv[1], "cut"))
            return child_is_cut(argv[3]);
        child_hurries(argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
