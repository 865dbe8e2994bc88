#include "base/testing.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/json.h"
#include "watch/trace_out.h"

#define BEGUN UINT64_C(5000000000)
#define WORKS(call) assert_int_equal((call), STK_OK)

struct fixture {
    char folder[PATH_MAX];
    char path[2 * PATH_MAX];
    struct trace_out *trace;
};

static void open_trace(struct fixture *fixture, uint64_t most)
{
    folder_new(fixture->folder);
    snprintf(fixture->path, sizeof fixture->path, "%s", path_in(fixture->folder, "T.json"));
    WORKS(trace_out_open(&fixture->trace, fixture->path, most, BEGUN, NULL));
}

/* The file as a checked document. */
static struct json *finished(struct fixture *fixture)
{
    struct json *json;
    struct stk_error err;
    size_t len;
    WORKS(trace_out_finish(fixture->trace, &err));
    char *text = file_read(fixture->path, &len);
    stk_status status = json_parse(&json, text, len, &err);
    if (status)
        print_error("%s\n%.2000s\n", err.what, text);
    free(text);
    WORKS(status);
    return json;
}

static void close_trace(struct fixture *fixture, struct json *json)
{
    json_free(json);
    trace_out_close(fixture->trace);
    folder_remove(fixture->folder);
}

static void take_record(struct fixture *fixture, uint32_t pid, const void *record)
{
    struct watch_event event = {.type = EVENT_RECORD, .pid = pid};
    event.record = record;
    trace_out_take(fixture->trace, &event);
}

static void take_name(struct fixture *fixture, uint32_t id, const char *text)
{
    union {
        struct record_text record;
        char bytes[512];
    } name = {.record = {.head = {.type = RECORD_NAME}, .id = id}};
    name.record.len = (uint32_t)strlen(text);
    memcpy(name.record.text, text, name.record.len);
    take_record(fixture, 7, &name);
}

static void take_kernel(struct fixture *fixture, uint64_t start, uint64_t len)
{
    struct record_kernel kernel = {.head = {.type = RECORD_KERNEL, .size = sizeof kernel},
                                   .start = BEGUN + start,
                                   .end = BEGUN + start + len,
                                   .device = 1,
                                   .stream = 7,
                                   .name = 3};
    take_record(fixture, 7, &kernel);
}

static void take_span(struct fixture *fixture, enum span_what what, uint64_t start, uint64_t end)
{
    struct record_span span = {.head = {.type = RECORD_SPAN, .size = sizeof span},
                               .start = BEGUN + start,
                               .end = BEGUN + end,
                               .thread = 7,
                               .what = what,
                               .b = 4};
    take_record(fixture, 7, &span);
}

/* The first event of this name and kind; NULL: none. */
static const struct json *find(const struct json *json, const char *kind, const char *name)
{
    const struct json *events = json_member(json, "traceEvents");
    for (size_t i = 0; i < json_count(events); i++) {
        const struct json *event = json_item(events, i);
        const char *ph = "", *text = "";
        assert_true(json_get_text(event, "ph", &ph));
        assert_true(json_get_text(event, "name", &text));
        if (strcmp(ph, kind) == 0 && strcmp(text, name) == 0)
            return event;
    }
    return NULL;
}

static double number(const struct json *event, const char *name)
{
    double value = -1;
    assert_true(json_double(json_member(event, name), &value));
    return value;
}

/* The label of the row that an event lies in. */
static const char *row_label(const struct json *json, const struct json *event)
{
    const struct json *events = json_member(json, "traceEvents");
    const char *label = "";
    for (size_t i = 0; i < json_count(events); i++) {
        const struct json *one = json_item(events, i);
        const char *name = "";
        json_get_text(one, "name", &name);
        if (strcmp(name, "thread_name") == 0 && number(one, "tid") == number(event, "tid") &&
            number(one, "pid") == number(event, "pid"))
            json_get_text(json_member(one, "args"), "name", &label);
    }
    return label;
}

static void a_kernel_is_a_slice_in_the_row_of_its_stream(void **state)
{
    (void)state;
    struct fixture fixture;
    open_trace(&fixture, 0);
    take_name(&fixture, 3, "gemm<\"float\">\n\xff");
    take_kernel(&fixture, 1500, 2001);
    struct json *json = finished(&fixture);
    const struct json *event = find(json, "X", "gemm<\"float\">\n\xef\xbf\xbd");
    assert_non_null(event);
    assert_true(number(event, "ts") == 1.5 && number(event, "dur") == 2.001);
    assert_true(number(event, "pid") == 7);
    assert_string_equal(row_label(json, event), "GPU 1, stream 7");
    close_trace(&fixture, json);
}

static void copies_spans_steps_and_marks_have_their_rows(void **state)
{
    (void)state;
    struct fixture fixture;
    struct record_copy copy = {.head = {.type = RECORD_COPY},
                               .start = BEGUN + 10,
                               .end = BEGUN + 20,
                               .bytes = 4096,
                               .way = COPY_TO_DEVICE,
                               .from = COPY_PAGEABLE};
    struct record_mark step = {
        .head = {.type = RECORD_MARK}, .time = BEGUN + 100, .thread = 7, .what = MARK_STEP};
    uint64_t bytes = 0;
    const char *memory = "";
    open_trace(&fixture, 0);
    take_record(&fixture, 7, &copy);
    take_span(&fixture, SPAN_NEXT, 1000, 3000);
    take_span(&fixture, SPAN_VALIDATION, 2000, 4000);
    take_record(&fixture, 7, &step);
    step.time += 5000;
    take_record(&fixture, 7, &step);
    struct json *json = finished(&fixture);
    const struct json *event = find(json, "X", "copy to device");
    assert_true(json_get_u64(json_member(event, "args"), "bytes", &bytes) && bytes == 4096);
    assert_true(json_get_text(json_member(event, "args"), "memory", &memory));
    assert_string_equal(memory, "pageable");
    assert_string_equal(row_label(json, find(json, "X", "wait for a batch")), "main thread");
    assert_string_equal(row_label(json, find(json, "X", "validation")), "phases");
    event = find(json, "X", "step 2");
    assert_true(number(event, "ts") == 0.1 && number(event, "dur") == 5);
    close_trace(&fixture, json);
}

static void gaps_are_slices_named_by_cause_and_pieces_that_meet_are_one(void **state)
{
    (void)state;
    struct fixture fixture;
    open_trace(&fixture, 0);
    trace_out_idle(fixture.trace, 7, BEGUN + 1000, BEGUN + 2000, CAUSE_FETCH);
    trace_out_idle(fixture.trace, 7, BEGUN + 2000, BEGUN + 5000, CAUSE_FETCH);
    trace_out_idle(fixture.trace, 7, BEGUN + 5000, BEGUN + 6000, CAUSE_SYNC);
    struct json *json = finished(&fixture);
    const struct json *event = find(json, "X", "reading the data");
    assert_true(number(event, "ts") == 1 && number(event, "dur") == 4);
    event = find(json, "X", "synchronising and logging");
    assert_true(number(event, "ts") == 5 && number(event, "dur") == 1);
    assert_string_equal(row_label(json, event), "what is waited for");
    close_trace(&fixture, json);
}

static void processes_are_named_and_their_secrets_are_not(void **state)
{
    (void)state;
    struct fixture fixture;
    struct watch_process process = {.pid = 7,
                                    .role = PROCESS_MAIN,
                                    .rank = 2,
                                    .worker = -1,
                                    .name = "python train.py --api-key abc"};
    struct watch_event event = {.type = EVENT_PROCESS, .pid = 7};
    const char *name = "";
    event.process = &process;
    open_trace(&fixture, 0);
    trace_out_take(fixture.trace, &event);
    struct json *json = finished(&fixture);
    const struct json *events = json_member(json, "traceEvents");
    for (size_t i = 0; i < json_count(events); i++)
        if (number(json_item(events, i), "pid") == 7)
            json_get_text(json_member(json_item(events, i), "args"), "name", &name);
    assert_string_equal(name, "rank 2: python train.py --api-key ***");
    close_trace(&fixture, json);
}

static void counters_tell_samples_memory_and_power(void **state)
{
    (void)state;
    struct fixture fixture;
    struct record_mark batch = {
        .head = {.type = RECORD_MARK}, .time = BEGUN + 1, .what = MARK_BATCH, .b = 32};
    struct watch_use use = {.told = USE_ALL,
                            .rss_bytes = 5000000,
                            .cpu_user_ns = 500000000,
                            .block_ns = 250000000,
                            .run_delay_ns = 125000000,
                            .write_calls_bytes = 7000000,
                            .major_faults = 3};
    struct watch_machine machine = {.told = MACHINE_DISKS,
                                    .io_ns = 500000000,
                                    .disk_written_bytes = 4000000,
                                    .network_in_bytes = 9};
    struct watch_device device = {.device = 1,
                                  .power_mw = 350000,
                                  .pcie_in_bytes_s = 2000000,
                                  .pcie_out_bytes_s = STK_DEVICE_UNKNOWN};
    struct watch_event event = {.type = EVENT_USE, .pid = 7, .start = BEGUN};
    event.end = BEGUN + 1000000000;
    open_trace(&fixture, 0);
    take_record(&fixture, 7, &batch);
    batch.time += 1000000000;
    take_record(&fixture, 7, &batch);
    event.use = &use;
    trace_out_take(fixture.trace, &event);
    event.type = EVENT_MACHINE;
    event.machine = &machine;
    trace_out_take(fixture.trace, &event);
    event.type = EVENT_DEVICE;
    event.device = &device;
    trace_out_take(fixture.trace, &event);
    struct json *json = finished(&fixture);
    assert_true(number(json_member(find(json, "C", "samples/s"), "args"), "value") == 32);
    assert_true(number(json_member(find(json, "C", "memory, MB"), "args"), "value") == 5);
    assert_true(number(json_member(find(json, "C", "CPUs"), "args"), "value") == 0.5);
    assert_true(number(json_member(find(json, "C", "GPU 1 power, W"), "args"), "value") == 350);
    assert_true(number(json_member(find(json, "C", "written, MB/s"), "args"), "value") == 7);
    assert_true(number(json_member(find(json, "C", "disk written, MB/s"), "args"), "value") == 8);
    assert_null(find(json, "C", "network in, MB/s"));
    assert_true(number(json_member(find(json, "C", "GPU 1 PCIe in, MB/s"), "args"), "value") == 2);
    assert_null(find(json, "C", "GPU 1 PCIe out, MB/s"));
    assert_true(number(json_member(find(json, "C", "major faults/s"), "args"), "value") == 3);
    assert_true(number(json_member(find(json, "C", "waiting for a CPU, threads"), "args"),
                       "value") == 0.125);
    assert_true(number(json_member(find(json, "C", "waiting for a disk, threads"), "args"),
                       "value") == 0.25);
    close_trace(&fixture, json);
}

/* A second of looks that come twenty times in it. */
static void counters_of_a_process_come_a_few_times_a_second(void **state)
{
    (void)state;
    struct fixture fixture;
    struct watch_use use = {.told = USE_STAT};
    size_t count = 0;
    open_trace(&fixture, 0);
    for (uint64_t i = 0; i < 20; i++) {
        struct watch_event event = {.type = EVENT_USE,
                                    .pid = 7,
                                    .start = BEGUN + i * 50000000,
                                    .end = BEGUN + (i + 1) * 50000000,
                                    .use = &use};
        use.cpu_user_ns = i % 2 ? 50000000 : 0;
        use.rss_bytes = (i + 1) * 1000000;
        trace_out_take(fixture.trace, &event);
    }
    struct json *json = finished(&fixture);
    const struct json *first = find(json, "C", "memory, MB");
    assert_true(number(json_member(first, "args"), "value") == 5);
    assert_true(number(json_member(find(json, "C", "CPUs"), "args"), "value") == 0.4);
    const struct json *events = json_member(json, "traceEvents");
    for (size_t i = 0; i < json_count(events); i++) {
        const char *name = "";
        json_get_text(json_item(events, i), "name", &name);
        count += strcmp(name, "memory, MB") == 0;
    }
    assert_int_equal(count, 4);
    close_trace(&fixture, json);
}

static void stages_of_stokers_loaders_are_joined_on_the_same_clock(void **state)
{
    (void)state;
    struct fixture fixture;
    char stages[PATH_MAX];
    open_trace(&fixture, 0);
    folder_new(stages);
    text_write(
        path_in(stages, "stages.7.2.json"),
        "{\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":7,\"name\":\"process_name\",\"args\":{\"name\":\"s\"}},\n"
        "{\"ph\":\"M\",\"pid\":7,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":"
        "\"worker 1\"}},\n"
        "{\"ph\":\"X\",\"pid\":7,\"tid\":1,\"name\":\"fill\",\"ts\":3.000,\"dur\":1.500},\n"
        "broken\n"
        "{\"ph\":\"C\",\"pid\":7,\"tid\":1,\"name\":\"queue\",\"ts\":4,\"args\":{\"value\":2}}\n"
        "],\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":0,\"begun_ns\":5000002000}}\n");
    text_write(path_in(stages, "stages.8.1.json"), "{\"traceEvents\":[\n"); /* cut short */
    text_write(path_in(stages, "stages.9.json"), "no such name");
    int folder = open(stages, O_RDONLY | O_DIRECTORY);
    trace_out_stages(fixture.trace, folder);
    close(folder);
    folder_remove(stages);
    struct json *json = finished(&fixture);
    const struct json *event = find(json, "X", "fill");
    assert_true(number(event, "ts") == 5 && number(event, "dur") == 1.5); /* 2 us after ours */
    assert_string_equal(row_label(json, event), "Stoker, loader 2: worker 1");
    assert_true(number(json_member(find(json, "C", "queue"), "args"), "value") == 2);
    close_trace(&fixture, json);
}

static size_t files_in(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void a_long_run_keeps_its_first_and_its_last_events(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stat found;
    uint64_t dropped = 0;
    const uint64_t most = 400000, count = 30000;
    open_trace(&fixture, most);
    take_name(&fixture, 3, "kernel");
    for (uint64_t i = 0; i < count; i++)
        take_kernel(&fixture, i * 1000000, 1000);
    assert_true(files_in(fixture.folder) > 8);
    struct json *json = finished(&fixture);
    assert_int_equal(files_in(fixture.folder), 1); /* the segments are joined and gone */
    assert_int_equal(stat(fixture.path, &found), 0);
    assert_true((uint64_t)found.st_size <= most);
    assert_true((uint64_t)found.st_size > most / 2);
    const struct json *data = json_member(json, "otherData");
    assert_true(json_get_u64(data, "dropped", &dropped) && dropped > count / 2);
    double from = number(data, "dropped_from_s"), to = number(data, "dropped_to_s");
    const struct json *events = json_member(json, "traceEvents");
    uint64_t early = 0, late = 0;
    double last = 0;
    for (size_t i = 0; i < json_count(events); i++) {
        double time = 0;
        if (!json_double(json_member(json_item(events, i), "ts"), &time))
            continue;
        early += time < from * 1e6;
        late += time >= to * 1e6;
        assert_true(time <= from * 1e6 || time >= to * 1e6 - 1000);
        last = time > last ? time : last;
    }
    assert_true(early > 300 && late > 1000);
    assert_true(last == (double)(count - 1) * 1000);
    assert_int_equal(json_count(events) - early - late > 2, 1); /* names of rows */
    assert_int_equal(dropped + early + late, count);
    close_trace(&fixture, json);
}

static void before_the_end_it_is_an_array_that_lacks_only_its_bracket(void **state)
{
    (void)state;
    struct fixture fixture;
    struct json *json;
    size_t len;
    open_trace(&fixture, 400000);
    for (uint64_t i = 0; i < 2000; i++)
        take_kernel(&fixture, i * 1000000, 1000);
    const char *const names[] = {"T.json", "T.json.part0000"};
    for (int i = 0; i < 2; i++) { /* as a kill would leave them */
        char *text = file_read(path_in(fixture.folder, names[i]), &len);
        char *whole = malloc(len + 16);
        int size = sprintf(whole, "{\"x\":%s]}", text);
        WORKS(json_parse(&json, whole, (size_t)size, NULL));
        json_free(json);
        free(whole);
        free(text);
    }
    close_trace(&fixture, NULL);
}

/* A limit on the size of files stands for a disk that is full. */
static void fill_a_disk(int has_room_again)
{
    struct fixture fixture;
    struct rlimit limit, before;
    struct stk_error err = {0};
    struct json *json;
    size_t len;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    open_trace(&fixture, 0);
    limit = (struct rlimit){150000, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint64_t i = 0; i < 5000; i++)
        take_kernel(&fixture, i * 1000000, 1000);
    if (has_room_again)
        setrlimit(RLIMIT_FSIZE, &before);
    stk_status status = trace_out_finish(fixture.trace, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, STK_IO);
    assert_string_equal(err.object, fixture.path);
    assert_true(strlen(err.remedy) > 10);
    char *text = file_read(fixture.path, &len);
    assert_true(len > 50000 && len <= 150000);
    WORKS(json_parse(&json, text, len, NULL));
    assert_true(json_count(json_member(json, "traceEvents")) > 300);
    free(text);
    close_trace(&fixture, json);
}

static void a_full_disk_leaves_a_whole_file_and_is_told_once(void **state)
{
    (void)state;
    fill_a_disk(0);
}

static void a_disk_that_has_room_again_leaves_a_whole_file_too(void **state)
{
    (void)state;
    fill_a_disk(1);
}

static void a_place_that_cannot_be_written_is_refused_with_its_name(void **state)
{
    (void)state;
    struct trace_out *trace = (struct trace_out *)state;
    struct stk_error err = {0};
    assert_int_equal(trace_out_open(&trace, "/nowhere/at/all/T.json", 0, BEGUN, &err),
                     STK_NOT_FOUND);
    assert_null(trace);
    assert_string_equal(err.object, "/nowhere/at/all/T.json");
    trace_out_close(NULL);
}

static int write_a_trace(void *user)
{
    struct trace_out *trace;
    stk_status status = trace_out_open(&trace, user, 0, BEGUN, NULL);
    if (status)
        return 0;
    status = trace_out_finish(trace, NULL);
    trace_out_close(trace);
    return status == STK_OK;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    struct fixture fixture;
    open_trace(&fixture, 0);
    fail_each_allocation(write_a_trace, fixture.path);
    close_trace(&fixture, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_is_a_slice_in_the_row_of_its_stream),
        cmocka_unit_test(copies_spans_steps_and_marks_have_their_rows),
        cmocka_unit_test(gaps_are_slices_named_by_cause_and_pieces_that_meet_are_one),
        cmocka_unit_test(processes_are_named_and_their_secrets_are_not),
        cmocka_unit_test(counters_tell_samples_memory_and_power),
        cmocka_unit_test(counters_of_a_process_come_a_few_times_a_second),
        cmocka_unit_test(stages_of_stokers_loaders_are_joined_on_the_same_clock),
        cmocka_unit_test(a_long_run_keeps_its_first_and_its_last_events),
        cmocka_unit_test(before_the_end_it_is_an_array_that_lacks_only_its_bracket),
        cmocka_unit_test(a_full_disk_leaves_a_whole_file_and_is_told_once),
        cmocka_unit_test(a_disk_that_has_room_again_leaves_a_whole_file_too),
        cmocka_unit_test(a_place_that_cannot_be_written_is_refused_with_its_name),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
