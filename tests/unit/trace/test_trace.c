#include "base/testing.h"

#include <dirent.h>
#include <sys/resource.h>

#include "base/json.h"
#include "trace/trace.h"

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

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (size_t len = strlen(part); *text; text++)
        count += strncmp(text, part, len) == 0;
    return count;
}

static void no_trace_costs_nothing_and_does_nothing(void **state)
{
    (void)state;
    struct trace_ring *ring = trace_ring(NULL, 0, "x");
    assert_null(ring);
    assert_int_equal(trace_begin(ring), 0);
    trace_end(ring, 0, "fill", 1, 2);
    trace_count(ring, "depth", 3);
    assert_int_equal(trace_write(NULL, "/nonexistent/x", NULL), STK_OK);
    trace_free(NULL);
}

static void spans_and_counters_become_valid_json(void **state)
{
    (void)state;
    struct trace *trace;
    struct json *json;
    size_t len;
    assert_int_equal(trace_new(&trace, 2, NULL), STK_OK);
    struct trace_ring *ring = trace_ring(trace, 0, "fill \"0\"");
    assert_null(trace_ring(trace, 2, "too many"));
    int64_t begin = trace_begin(ring);
    assert_true(begin > 0);
    trace_end(ring, begin, "fill", 12, 345);
    trace_count(ring, "depth", 7);
    const char *path = path_in(folder, "trace.json");
    assert_int_equal(trace_write(trace, path, NULL), STK_OK);
    char *text = file_read(path, &len);
    assert_int_equal(json_parse(&json, text, len, NULL), STK_OK);
    json_free(json);
    assert_int_equal(count_of(text, "\"ph\":\"X\""), 1);
    assert_int_equal(count_of(text, "\"ph\":\"C\""), 1);
    assert_int_equal(count_of(text, "\"thread_name\""), 1);
    assert_non_null(strstr(text, "\"args\":{\"step\":12,\"bytes\":345}"));
    assert_non_null(strstr(text, "fill \\\"0\\\""));
    assert_non_null(strstr(text, "\"traceEvents\""));
    free(text);
    trace_free(trace);
}

static void a_full_ring_keeps_the_newest_and_counts_the_rest(void **state)
{
    (void)state;
    struct trace *trace;
    assert_int_equal(trace_new(&trace, 1, NULL), STK_OK);
    struct trace_ring *ring = trace_ring(trace, 0, "main");
    for (uint64_t i = 0; i < 65536 + 10; i++)
        trace_end(ring, trace_begin(ring), "fill", i, 0);
    const char *path = path_in(folder, "full.json");
    assert_int_equal(trace_write(trace, path, NULL), STK_OK);
    char *text = file_read(path, NULL);
    assert_int_equal(count_of(text, "\"ph\":\"X\""), 65536);
    assert_null(strstr(text, "\"step\":9,"));
    assert_non_null(strstr(text, "\"step\":10,"));
    assert_non_null(strstr(text, "\"step\":65545,"));
    assert_non_null(strstr(text, "\"dropped\":10"));
    free(text);
    trace_free(trace);
}

static int entries(const char *path)
{
    int count = 0;
    DIR *stream = opendir(path);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count;
}

static void a_trace_that_cannot_be_written_leaves_nothing_behind(void **state)
{
    (void)state;
    struct trace *trace;
    struct stk_error err;
    assert_int_equal(trace_new(&trace, 1, NULL), STK_OK);
    trace_ring(trace, 0, "main");
    assert_int_equal(trace_write(trace, path_in(folder, "no/such/folder"), &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.object, "no/such/folder"));
    int before = entries(folder);
    mkdir(path_in(folder, "taken"), 0700);
    mkdir(path_in(folder, "taken/inside"), 0700);
    assert_int_not_equal(trace_write(trace, path_in(folder, "taken"), &err), STK_OK);
    assert_int_equal(entries(folder), before + 1);
    trace_free(trace);
}

static int trace_once(void *user)
{
    struct trace *trace;
    (void)user;
    stk_status status = trace_new(&trace, 3, NULL);
    struct trace_ring *ring = trace_ring(trace, 1, "one");
    trace_end(ring, trace_begin(ring), "fill", 1, 1);
    if (!status)
        status = trace_write(trace, path_in(folder, "nth.json"), NULL);
    trace_free(trace);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(trace_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_trace_costs_nothing_and_does_nothing),
        cmocka_unit_test(spans_and_counters_become_valid_json),
        cmocka_unit_test(a_full_ring_keeps_the_newest_and_counts_the_rest),
        cmocka_unit_test(a_trace_that_cannot_be_written_leaves_nothing_behind),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
