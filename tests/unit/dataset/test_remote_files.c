#include "store/remote_fixture.h"

#include <pthread.h>

#include "stoker/context.h"
#include "stoker/remote.h"

#define THREADS 4

static struct stk_remote_files *files_open(const char *uris[], uint32_t count)
{
    struct stk_remote_files *files;
    struct stk_error err;
    stk_status status = stk_remote_files_open(&files, NULL, uris, count, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return files;
}

struct seen {
    const struct remote_fixture *fixture;
    uint32_t count;
};

static void see(void *user, const struct stk_remote_file *file)
{
    static const uint32_t wanted[] = {7, 2, 4};
    struct seen *seen = user;
    uint32_t object = wanted[seen->count++];
    char uri[128];
    snprintf(uri, sizeof uri, "%s/%s", seen->fixture->root, seen->fixture->names[object]);
    assert_string_equal(file->uri, uri);
    assert_true(file->size == remote_sizes[object]);
    assert_true(file->folder == 0);
}

static void objects_are_told_in_the_order_in_which_they_are_named(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    char braces[128], plain[128];
    snprintf(braces, sizeof braces, "%s/{7,2}.bin", fixture->root);
    snprintf(plain, sizeof plain, "%s/4.bin", fixture->root);
    struct stk_remote_files *files = files_open((const char *[]){braces, plain}, 2);
    struct seen seen = {fixture, 0};
    stk_remote_files_each(files, see, &seen);
    assert_int_equal(seen.count, 3);
    stk_remote_files_close(files);
    remote_free(fixture);
}

struct reader {
    struct stk_remote_files *files;
    uint64_t key;
    stk_status status;
};

static void *read_ranges(void *user)
{
    struct reader *reader = user;
    uint8_t *data = malloc(remote_sizes[7]);
    for (uint64_t i = 0; i < 20 && !reader->status; i++) {
        uint64_t at = random_below(reader->key, 2 * i, remote_sizes[7]);
        uint64_t len = random_below(reader->key, 2 * i + 1, remote_sizes[7] - at + 1);
        reader->status = stk_remote_files_read(reader->files, 0, at, len, data, NULL);
        for (uint64_t k = 0; k < len && !reader->status; k += 997)
            if (data[k] != remote_byte(7, at + k))
                reader->status = STK_CORRUPT;
    }
    free(data);
    return NULL;
}

static void threads_read_any_ranges_at_once(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    char uri[128];
    snprintf(uri, sizeof uri, "%s/7.bin", fixture->root);
    struct stk_remote_files *files = files_open((const char *[]){uri}, 1);
    struct reader readers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){files, i, STK_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, read_ranges, &readers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].status, STK_OK);
    }
    stk_remote_files_close(files);
    remote_free(fixture);
}

static void what_is_not_in_a_file_is_not_read(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    char uri[128];
    uint8_t byte;
    snprintf(uri, sizeof uri, "%s/2.bin", fixture->root);
    struct stk_remote_files *files = files_open((const char *[]){uri}, 1);
    assert_int_equal(stk_remote_files_read(files, 0, 1000, 1, &byte, NULL), STK_USAGE);
    assert_int_equal(stk_remote_files_read(files, 0, UINT64_MAX, 2, &byte, NULL), STK_USAGE);
    assert_int_equal(stk_remote_files_read(files, 1, 0, 1, &byte, NULL), STK_USAGE);
    assert_int_equal(stk_remote_files_read(files, 0, 1000, 0, &byte, NULL), STK_OK);
    assert_int_equal(stk_remote_files_read(files, 0, 999, 1, &byte, NULL), STK_OK);
    stk_remote_files_close(files);
    remote_free(fixture);
}

static void *stop_soon(void *user)
{
    struct timespec moment = {.tv_nsec = 200000000};
    nanosleep(&moment, NULL);
    stk_remote_files_stop(user);
    return NULL;
}

static void a_read_that_waits_ends_when_all_are_stopped(void **state)
{
    (void)state;
    static const char body[1000];
    struct answering_step steps[] = {
        {.headers = ETAG, .body = body, .length = sizeof body, .times = 1},
        {.headers = ETAG, .body = body, .length = sizeof body, .holds = 1},
    };
    struct answering *server = answering_start(steps, 2);
    const char *uri = answering_url(server, "/a.bin");
    struct stk_remote_files *files = files_open(&uri, 1);
    struct stk_error err;
    char data[1000];
    pthread_t thread;
    int64_t begun = clock_now();
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, files), 0);
    assert_int_equal(stk_remote_files_read(files, 0, 0, 1000, data, &err), STK_CANCELLED);
    assert_true(clock_now() - begun < 10000000000);
    pthread_join(thread, NULL);
    assert_int_equal(stk_remote_files_read(files, 0, 0, 1000, data, &err), STK_CANCELLED);
    stk_remote_files_close(files);
    answering_stop(server);
}

static int says_stop(void *user)
{
    return ++*(int *)user > 1;
}

static void the_waiting_hook_ends_a_search(void **state)
{
    (void)state;
    struct answering_step step = {.headers = ETAG, .body = "x", .length = 1, .holds = 1};
    struct answering *server = answering_start(&step, 1);
    const char *uri = answering_url(server, "/a.bin");
    int asked = 0;
    struct stk_hooks hooks = {.user = &asked, .waiting = says_stop};
    struct stk_context *context;
    struct stk_remote_files *files;
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    assert_int_equal(stk_remote_files_open(&files, context, &uri, 1, NULL), STK_CANCELLED);
    assert_null(files);
    stk_context_free(context);
    answering_stop(server);
}

static void schemes_that_are_not_known_are_told_without_the_rest(void **state)
{
    (void)state;
    const char *uri = "ftp://host/a?sig=secret";
    struct stk_remote_files *files;
    struct stk_error err;
    assert_int_equal(stk_remote_files_open(&files, NULL, &uri, 1, &err), STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "ftp://"));
    assert_null(strstr(err.what, "secret"));
    assert_int_equal(stk_remote_files_open(&files, NULL, &uri, 0, &err), STK_USAGE);
    stk_remote_files_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_told_in_the_order_in_which_they_are_named),
        cmocka_unit_test(threads_read_any_ranges_at_once),
        cmocka_unit_test(what_is_not_in_a_file_is_not_read),
        cmocka_unit_test(a_read_that_waits_ends_when_all_are_stopped),
        cmocka_unit_test(the_waiting_hook_ends_a_search),
        cmocka_unit_test(schemes_that_are_not_known_are_told_without_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
