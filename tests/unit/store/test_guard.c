#include "base/testing.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "store/guard.h"

#define PAGE ((size_t)4096)
#define SIZE (64 * PAGE)

static char folder[PATH_MAX];

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

struct copy {
    const uint8_t *from;
    uint8_t *to;
    size_t len;
    stk_status result;
};

static stk_status copy_bytes(void *user)
{
    struct copy *copy = user;
    memcpy(copy->to, copy->from, copy->len);
    return copy->result;
}

static const uint8_t *map_new(const char *name, int *fd)
{
    const char *path = path_in(folder, name);
    uint8_t *data = malloc(SIZE);
    memset(data, 7, SIZE);
    file_write(path, data, SIZE);
    free(data);
    *fd = open(path, O_RDWR);
    const uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, *fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    return map;
}

static void fault_75_a_file_cut_short_under_a_map_is_stale_and_nobody_dies(void **state)
{
    (void)state;
    int fd;
    uint8_t *to = calloc(1, SIZE);
    const uint8_t *map = map_new("cut", &fd);
    struct copy copy = {map, to, SIZE, STK_OK};
    assert_int_equal(guard_install(NULL), STK_OK);
    assert_int_equal(guard_install(NULL), STK_OK);
    assert_int_equal(guard_run(copy_bytes, &copy), STK_OK);
    assert_int_equal(to[SIZE - 1], 7);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(ftruncate(fd, 5 * PAGE), 0);
        assert_int_equal(guard_run(copy_bytes, &copy), STK_STALE);
        copy.len = 5 * PAGE; /* what is left can still be copied */
        assert_int_equal(guard_run(copy_bytes, &copy), STK_OK);
        copy.len = SIZE;
        assert_int_equal(ftruncate(fd, SIZE), 0);
        assert_int_equal(guard_run(copy_bytes, &copy), STK_OK);
        assert_int_equal(to[SIZE - 1], 0);
    }
    copy.result = STK_CORRUPT; /* the function's own word comes through */
    assert_int_equal(guard_run(copy_bytes, &copy), STK_CORRUPT);
    munmap((void *)map, SIZE);
    close(fd);
    free(to);
}

static void *copy_often(void *user)
{
    struct copy copy = *(struct copy *)user;
    int stale = 0, fine = 0;
    copy.to = malloc(SIZE);
    for (int i = 0; i < 500; i++) {
        stk_status status = guard_run(copy_bytes, &copy);
        stale += status == STK_STALE;
        fine += status == STK_OK;
    }
    free(copy.to);
    return stale + fine == 500 ? user : NULL;
}

static void fault_75_truncating_under_load_harms_no_thread(void **state)
{
    (void)state;
    int fd;
    const uint8_t *map = map_new("load", &fd);
    struct copy copy = {map, NULL, SIZE, STK_OK};
    pthread_t threads[3];
    assert_int_equal(guard_install(NULL), STK_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_often, &copy), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(ftruncate(fd, (off_t)(i % 64 * PAGE)), 0);
        assert_int_equal(ftruncate(fd, SIZE), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &copy);
    }
    munmap((void *)map, SIZE);
    close(fd);
}

static int child_result(pid_t child)
{
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return result;
}

static void exit_well(int number)
{
    _exit(number == SIGBUS ? 42 : 1);
}

static void exit_with_info(int number, siginfo_t *info, void *context)
{
    _exit(number == SIGBUS && info && context ? 43 : 1);
}

/* Everything that touches the action of SIGBUS runs in a child: installing is for ever. */
static pid_t fault_outside_a_guard(const struct sigaction *before, int sent)
{
    pid_t child = fork();
    if (child)
        return child;
    int fd;
    const uint8_t *map = map_new("outside", &fd);
    uint8_t to[16];
    struct copy copy = {map, to, sizeof to, STK_OK};
    if (sigaction(SIGBUS, before, NULL) != 0 || guard_install(NULL) != STK_OK ||
        guard_run(copy_bytes, &copy) != STK_OK)
        _exit(2);
    if (sent)
        raise(SIGBUS);
    if (ftruncate(fd, 0) == 0)
        _exit(*(volatile const uint8_t *)map);
    _exit(3);
}

static void other_faults_go_to_whoever_handled_them_before(void **state)
{
    (void)state;
    for (int sent = 0; sent < 2; sent++) {
        struct sigaction before = {.sa_handler = exit_well};
        int result = child_result(fault_outside_a_guard(&before, sent));
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 42);
        before = (struct sigaction){.sa_sigaction = exit_with_info, .sa_flags = SA_SIGINFO};
        result = child_result(fault_outside_a_guard(&before, sent));
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 43);
        before = (struct sigaction){.sa_handler = SIG_DFL};
        result = child_result(fault_outside_a_guard(&before, sent));
        assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGBUS);
    }
}

static struct sigaction handed_to;

static void hand_on(int number, siginfo_t *info, void *context)
{
    handed_to.sa_sigaction(number, info, context);
}

static void two_handlers_that_hand_on_to_each_other_come_to_an_end(void **state)
{
    (void)state;
    for (int sent = 0; sent < 2; sent++) {
        pid_t child = fork();
        if (child == 0) {
            struct sigaction action = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO};
            int fd;
            const uint8_t *map = map_new("circle", &fd);
            if (guard_install(NULL) || sigaction(SIGBUS, &action, &handed_to) != 0 ||
                guard_install(NULL) || ftruncate(fd, 0) != 0)
                _exit(2);
            if (sent)
                raise(SIGBUS);
            _exit(*(volatile const uint8_t *)map);
        }
        int result = child_result(child);
        assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGBUS);
    }
}

static void a_handler_installed_after_us_is_gone_before_again(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_handler = exit_well};
        uint8_t to[16];
        int fd;
        const uint8_t *map = map_new("again", &fd);
        struct copy copy = {map, to, sizeof to, STK_OK};
        if (guard_install(NULL) || sigaction(SIGBUS, &action, NULL) != 0 || guard_install(NULL) ||
            ftruncate(fd, 0) != 0 || guard_run(copy_bytes, &copy) != STK_STALE)
            _exit(2);
        _exit(*(volatile const uint8_t *)map); /* unguarded: theirs */
    }
    int result = child_result(child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_faults_go_to_whoever_handled_them_before),
        cmocka_unit_test(two_handlers_that_hand_on_to_each_other_come_to_an_end),
        cmocka_unit_test(a_handler_installed_after_us_is_gone_before_again),
        cmocka_unit_test(fault_75_a_file_cut_short_under_a_map_is_stale_and_nobody_dies),
        cmocka_unit_test(fault_75_truncating_under_load_harms_no_thread),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
