/* test_series_faults.c -- series that are cut, grown, edited into nonsense or asked for what they
 * do not have: an error that names it, and nothing else. */
#include "dataset/series_fixture.h"

static const struct plan usual = {
    .name = "usual",
    .columns = 3,
    .rows = {20, 7, 0, 33},
    .entities = 4,
    .statics = 2,
    .time = 1,
    .splits = 1,
    .more = ", \"sequence\": {\"window\": 5, \"horizon\": 2, \"stride\": 1, \"gap\": 0}",
};

static void assert_has(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" lacks \"%s\"", text, words);
}

/* words: each in what, object or remedy; "|" between them. */
static void check_error(const struct stk_error *err, stk_status got, stk_status status,
                        const char *words)
{
    char all[4096], copy[512];
    snprintf(all, sizeof all, "%s # %s # %s", err->what, err->object, err->remedy);
    if (got != status)
        fail_msg("%s where %s is expected: %s", stk_status_name(got), stk_status_name(status), all);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
        assert_has(all, word);
}

static void refused(const char *source, const struct stk_dataset_options *options,
                    stk_status status, const char *words)
{
    struct stk_dataset *dataset = (void *)1;
    struct stk_error err = {0};
    stk_status got = open_with(&dataset, source, options, &err);
    assert_null(dataset);
    check_error(&err, got, status, words);
}

static void change_size(const char *path, int64_t by)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size + by), 0);
}

/* ---- files --------------------------------------------------------------------------------- */

static void files_that_are_cut_or_grown_are_named_with_their_sizes(void **state)
{
    const struct fixture *fixture = *state;
    static const struct {
        const char *file;
        int64_t by;
        stk_status status;
        const char *words;
    } cases[] = {
        {SERIES_ARRAY, -1, STK_TRUNCATED, "cut short|720 bytes|has 719|all_features.mmap"},
        {SERIES_ARRAY, -720, STK_TRUNCATED, "720 bytes|has 0"},
        {SERIES_ARRAY, 1, STK_CORRUPT, "grown|720 bytes|has 721|all_features.mmap"},
        {SERIES_ARRAY, 12, STK_CORRUPT, "grown|has 732"},
        {SERIES_TIME, -8, STK_TRUNCATED, "cut short|480 bytes|has 472|time.mmap"},
        {SERIES_TIME, 8, STK_CORRUPT, "grown|time.mmap"},
        {SERIES_STATIC, -4, STK_TRUNCATED, "4 entities of 8 bytes|has 28|static.mmap"},
        {SERIES_STATIC, 4, STK_CORRUPT, "grown|static.mmap"},
    };
    make_folder(path_of(fixture, "usual"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_series(fixture, &usual);
        change_size(series_path(fixture, &usual, cases[i].file), cases[i].by);
        refused(path_of(fixture, "usual"), NULL, cases[i].status, cases[i].words);
    }
}

static void files_that_are_gone_are_named(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const files[] = {SERIES_ARRAY, SERIES_TIME, SERIES_STATIC, SERIES_METADATA};
    struct plan ours = usual;
    ours.more = ", \"format\": \"stoker series\", \"fingerprint\": "
                "\"00112233445566778899aabbccddeeff\"";
    for (int i = 0; i < 4; i++) {
        make_series(fixture, &ours);
        unlink(series_path(fixture, &ours, files[i]));
        refused(path_of(fixture, "usual"), NULL, STK_NOT_FOUND, files[i]);
        refused(path_of(fixture, "usual"), &(struct stk_dataset_options){.format = "series"},
                STK_NOT_FOUND, files[i]);
    }
}

struct notices {
    char last[1024];
    int count;
};

static void note(void *user, const char *text)
{
    struct notices *notices = user;
    notices->count++;
    snprintf(notices->last, sizeof notices->last, "%s", text);
}

static void an_append_that_did_not_finish_is_left_out(void **state)
{
    const struct fixture *fixture = *state;
    static const char other[] = "{\"rows\": 59}", no[] = "{";
    struct notices notices = {0};
    struct stk_hooks hooks = {.user = &notices, .notice = note};
    struct stk_context *context;
    struct stk_dataset *dataset;
    struct plan whole = usual;
    whole.rows[2] = 21; /* none is short: that is a notice too */
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    make_series(fixture, &whole);
    char *source = path_of(fixture, "usual");
    change_size(series_path(fixture, &whole, SERIES_ARRAY), 12 * 5 + 1);
    change_size(series_path(fixture, &whole, SERIES_TIME), 8);
    change_size(series_path(fixture, &whole, SERIES_STATIC), 8);
    make_file(series_path(fixture, &whole, SERIES_JOURNAL), other, sizeof other - 1);
    refused(source, NULL, STK_CORRUPT, "grown");
    make_file(series_path(fixture, &whole, SERIES_JOURNAL), no, sizeof no - 1);
    refused(source, NULL, STK_CORRUPT, "grown");
    make_file(series_path(fixture, &whole, SERIES_JOURNAL), "{\"rows\": 81}", 12);
    const char *sources[] = {source};
    assert_int_equal(stk_dataset_open(context, &dataset, sources, 1, NULL, NULL), STK_OK);
    assert_int_equal(stk_dataset_samples(dataset), 14 + 1 + 15 + 27);
    assert_int_equal(notices.count, 1);
    assert_has(notices.last, "did not finish");
    assert_has(notices.last, "81 rows");
    stk_dataset_close(dataset);
    change_size(series_path(fixture, &whole, SERIES_ARRAY), -12 * 5 - 2);
    refused(source, NULL, STK_TRUNCATED, "cut short");
    stk_context_free(context);
}

static void entities_that_are_too_short_are_counted_and_told(void **state)
{
    const struct fixture *fixture = *state;
    struct notices notices = {0};
    struct stk_hooks hooks = {.user = &notices, .notice = note};
    struct stk_context *context;
    struct stk_dataset *dataset;
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    make_series(fixture, &usual);
    const char *sources[] = {path_of(fixture, "usual")};
    assert_int_equal(stk_dataset_open(context, &dataset, sources, 1, NULL, NULL), STK_OK);
    assert_int_equal(stk_dataset_series(dataset)->short_entities, 1);
    assert_int_equal(notices.count, 1);
    assert_has(notices.last, "1 of 4 entities are too short");
    stk_dataset_close(dataset);
    stk_context_free(context);
}

static void a_file_that_changes_under_a_reader_is_stale(void **state)
{
    const struct fixture *fixture = *state;
    struct stk_reader *reader;
    struct stk_value values[3];
    struct stk_error err;
    make_series(fixture, &usual);
    struct stk_dataset *dataset = must_open(path_of(fixture, "usual"), NULL);
    change_size(series_path(fixture, &usual, SERIES_ARRAY), 12);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    assert_int_equal(stk_reader_read(reader, 0, values, &err), STK_STALE);
    assert_has(err.object, SERIES_ARRAY);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

/* ---- metadata ------------------------------------------------------------------------------ */

static void metadata_edited_into_nonsense_is_corrupt_and_named(void **state)
{
    const struct fixture *fixture = *state;
    static const struct {
        const char *text;
        stk_status status;
        const char *words;
    } cases[] = {
        {"", STK_CORRUPT, "metadata.json"},
        {"[]", STK_CORRUPT, "metadata.json"},
        {"{\"features\": [\"a\"", STK_CORRUPT, "metadata.json"},
        {"{\"entities\": {\"A\": [0, 10]}}", STK_CORRUPT, "features"},
        {"{\"features\": [], \"entities\": {\"A\": [0, 10]}}", STK_CORRUPT, "features"},
        {"{\"features\": [\"a\", \"a\"], \"entities\": {\"A\": [0, 10]}}", STK_CORRUPT, "a"},
        {"{\"features\": [\"a\"]}", STK_CORRUPT, "entities"},
        {"{\"features\": [\"a\"], \"entities\": {\"A\": [0, 11]}}", STK_CORRUPT, "A"},
        {"{\"features\": [\"a\"], \"entities\": {\"A\": [-1, 5]}}", STK_CORRUPT, "entities"},
        {"{\"features\": [\"a\"], \"entities\": {\"A\": [6, 5]}}", STK_CORRUPT, "A"},
        {"{\"features\": [\"a\"], \"entities\": {\"A\": [0, 6], \"B\": [5, 10]}}", STK_CORRUPT,
         "B"},
        {"{\"features\": [\"a\"], \"labels\": [\"z\"], \"entities\": {\"A\": [0, 10]}}",
         STK_CORRUPT, "z"},
        {"{\"features\": [\"a\"], \"dtype\": \"banana\", \"entities\": {\"A\": [0, 10]}}",
         STK_CORRUPT, "banana"},
        {"{\"features\": [\"a\"], \"rows\": 1e30, \"entities\": {\"A\": [0, 10]}}", STK_CORRUPT,
         "rows"},
        {"{\"features\": [\"a\"], \"rows\": 4611686018427387904, \"entities\": {\"A\": [0, 10]}}",
         STK_CORRUPT, "rows"},
        {"{\"features\": [\"a\"], \"rows\": 11, \"entities\": {\"A\": [0, 10]}}", STK_TRUNCATED,
         "all_features.mmap|44 bytes|has 40"},
        {"{\"features\": [\"a\"], \"rows\": 9, \"entities\": {\"A\": [0, 9]}}", STK_CORRUPT,
         "grown|36 bytes|has 40"},
        {"{\"features\": [\"a\", \"b\", \"c\"], \"entities\": {\"A\": [0, 3]}}", STK_CORRUPT, "40"},
        {"{\"format\": \"stoker series\", \"version\": 99, \"features\": [\"a\"], \"rows\": 10, "
         "\"entities\": [{\"name\": \"A\", \"start\": 0, \"end\": 10}]}",
         STK_UNSUPPORTED, "99"},
        {"{\"features\": [\"a\"], \"scaler\": {\"kind\": \"standard\", \"center\": [1, 2], "
         "\"scale\": [1, 2]}, \"entities\": {\"A\": [0, 10]}}",
         STK_CORRUPT, "center"},
    };
    make_folder(path_of(fixture, "bad"));
    uint8_t zeros[40] = {0};
    make_file(path_of(fixture, "bad/all_features.mmap"), zeros, sizeof zeros);
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window};
    window.window = 2;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_file(path_of(fixture, "bad/metadata.json"), cases[i].text, strlen(cases[i].text));
        refused(path_of(fixture, "bad"), &options, cases[i].status, cases[i].words);
    }
}

static void types_that_are_no_floats_are_unsupported(void **state)
{
    const struct fixture *fixture = *state;
    static const char text[] =
        "{\"features\": [\"a\"], \"dtype\": \"int32\", \"entities\": {\"A\": [0, 10]}}";
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    uint8_t zeros[40] = {0};
    make_folder(path_of(fixture, "bad"));
    make_file(path_of(fixture, "bad/all_features.mmap"), zeros, sizeof zeros);
    make_file(path_of(fixture, "bad/metadata.json"), text, sizeof text - 1);
    stk_status status = open_with(&dataset, path_of(fixture, "bad"), NULL, &err);
    assert_true(status == STK_UNSUPPORTED || status == STK_CORRUPT);
    assert_has(err.what, "int32");
}

/* ---- options ------------------------------------------------------------------------------- */

struct window_case {
    struct stk_window_options window;
    stk_status status;
    const char *words;
};
#define ASK(...)                                                                                   \
    {                                                                                              \
        .window = STK_DEFAULT, .horizon = STK_DEFAULT, .stride = STK_DEFAULT, .gap = STK_DEFAULT,  \
        .min_history = STK_DEFAULT, __VA_ARGS__                                                    \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static void windows_that_cannot_be_are_refused(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const far[] = {"nowhere"}, *const near[] = {"aa"},
                             *const twice[] = {"a", "a"}, *const stat[] = {"s"};
    static const struct window_case cases[] = {
        {ASK(.window = 0), STK_USAGE, "window of 0"},
        {ASK(.stride = 0), STK_USAGE, "stride of 0"},
        {ASK(.min_history = 0, .pad = 1), STK_USAGE, "min_history"},
        {ASK(.min_history = 3), STK_USAGE, "min_history 3|pad"},
        {ASK(.window = 32), STK_USAGE, "e3|33"},
        {ASK(.gap = 27), STK_USAGE, "e3|33"},
        {ASK(.window = UINT64_MAX - 1), STK_USAGE, "rows"},
        {ASK(.gap = UINT64_MAX / 2, .horizon = UINT64_MAX / 2), STK_USAGE, "rows"},
        {ASK(.window = UINT64_C(1) << 61, .pad = 1), STK_LIMIT, "window"},
        {ASK(.split = "valid"), STK_NOT_FOUND, "split|did you mean \"val\"|train"},
        {ASK(.split = "holdout"), STK_NOT_FOUND, "splits: train, val"},
        {ASK(.features = far, .feature_count = 1), STK_NOT_FOUND,
         "no feature \"nowhere\"|features: a, b, c"},
        {ASK(.features = near, .feature_count = 1), STK_NOT_FOUND, "did you mean \"a\""},
        {ASK(.features = twice, .feature_count = 2), STK_USAGE, "\"a\" is named twice"},
        {ASK(.features = far), STK_USAGE, "no feature"},
        {ASK(.features = stat, .feature_count = 1), STK_NOT_FOUND, "field static"},
        {ASK(.labels = far, .label_count = 1), STK_NOT_FOUND, "no label \"nowhere\""},
        {ASK(.labels = twice, .label_count = 2), STK_USAGE, "twice"},
        {ASK(.labels = far), STK_USAGE, "horizon=0"},
    };
    make_series(fixture, &usual);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_dataset_options options = {.window = &cases[i].window};
        refused(path_of(fixture, "usual"), &options, cases[i].status, cases[i].words);
    }
    struct plan unsplit = usual;
    unsplit.splits = 0;
    make_series(fixture, &unsplit);
    refused(
        path_of(fixture, "usual"),
        &(struct stk_dataset_options){.window = &(struct stk_window_options)ASK(.split = "val")},
        STK_NOT_FOUND, "no split \"val\"|--split");
}
#pragma GCC diagnostic pop

static void fields_that_are_not_there_are_refused(void **state)
{
    const struct fixture *fixture = *state;
    static const struct {
        const char *fields[2];
        uint32_t count;
        stk_status status;
        const char *words;
    } cases[] = {
        {{"tine"}, 1, STK_NOT_FOUND, "no field \"tine\"|x, y"},
        {{"x_mas"}, 1, STK_NOT_FOUND, "did you mean \"x_mask\"|x, y"},
        {{"x", "time"}, 2, STK_NOT_FOUND, "without a time column"},
        {{"x", "y_time"}, 2, STK_NOT_FOUND, "without a time column"},
        {{"static"}, 1, STK_NOT_FOUND, "without static"},
        {{"x", "x"}, 2, STK_USAGE, "twice"},
        {{"x=bytes"}, 1, STK_USAGE, "a tensor"},
        {{"entity=text"}, 1, STK_USAGE, "an int"},
        {{"x=banana"}, 1, STK_USAGE, "kind"},
        {{"time?"}, 1, STK_NOT_FOUND, "none of the fields"},
        {{"x"}, 0, STK_USAGE, "no field"},
    };
    struct plan plan = usual;
    plan.time = 0;
    plan.statics = 0;
    make_series(fixture, &plan);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_dataset_options options = {.fields = cases[i].fields,
                                              .field_count = cases[i].count};
        refused(path_of(fixture, "usual"), &options, cases[i].status, cases[i].words);
    }
    struct stk_window_options blind = STK_WINDOW_DEFAULTS;
    blind.horizon = 0;
    static const char *const y[] = {"y"};
    struct stk_dataset_options options = {.window = &blind, .fields = y, .field_count = 1};
    refused(path_of(fixture, "usual"), &options, STK_NOT_FOUND, "horizon is 0");
}

static void what_is_no_series_has_no_windows(void **state)
{
    const struct fixture *fixture = *state;
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    struct stk_dataset_options options = {.window = &window}, forced = {.format = "series"};
    struct stk_dataset_options raw = {.dtype = "f32"}, unknown = {.format = "serie"};
    make_shard(path_of(fixture, "a.tar"), 0, 4);
    make_series(fixture, &usual);
    refused(path_of(fixture, "a.tar"), &options, STK_USAGE, "a.tar|series");
    refused(path_of(fixture, "a.tar"), &forced, STK_USAGE, "a.tar is no series|metadata.json");
    refused(path_of(fixture, "usual"), &raw, STK_USAGE, "raw");
    refused(path_of(fixture, "usual"), &unknown, STK_USAGE, "no format \"serie\"|series");
}

static void one_series_is_opened_at_a_time(void **state)
{
    const struct fixture *fixture = *state;
    struct plan other = usual;
    struct stk_dataset *dataset = (void *)1;
    struct stk_error err = {0};
    other.name = "usual2";
    make_series(fixture, &usual);
    make_series(fixture, &other);
    make_shard(path_of(fixture, "a.tar"), 0, 4);
    const char *two[] = {path_of(fixture, "usual"), path_of(fixture, "usual2")};
    const char *mixed[] = {path_of(fixture, "a.tar"), path_of(fixture, "usual")};
    stk_status status = stk_dataset_open(NULL, &dataset, two, 2, NULL, &err);
    check_error(&err, status, STK_USAGE, "two series|usual2");
    assert_null(dataset);
    status = stk_dataset_open(NULL, &dataset, mixed, 2, NULL, &err);
    check_error(&err, status, STK_USAGE, "is a series|a.tar");
    refused(path_of(fixture, "usual*"), NULL, STK_USAGE, "two series");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_that_are_cut_or_grown_are_named_with_their_sizes),
        TEST(files_that_are_gone_are_named),
        TEST(an_append_that_did_not_finish_is_left_out),
        TEST(entities_that_are_too_short_are_counted_and_told),
        TEST(a_file_that_changes_under_a_reader_is_stale),
        TEST(metadata_edited_into_nonsense_is_corrupt_and_named),
        TEST(types_that_are_no_floats_are_unsupported),
        TEST(windows_that_cannot_be_are_refused),
        TEST(fields_that_are_not_there_are_refused),
        TEST(what_is_no_series_has_no_windows),
        TEST(one_series_is_opened_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
