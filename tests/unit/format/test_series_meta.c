/* metadata.json: what is written is read back; what a hand made is understood; nonsense is named.
 */
#include "base/testing.h"

#include "format/series_meta.h"

#define WORKS(call) assert_int_equal((call), STK_OK)

static const char full[] =
    "{\"format\": \"stoker series\", \"version\": 1, \"features\": [\"close\", \"volume\"],"
    " \"columns\": [\"close\", \"volume\", \"next\"], \"labels\": [\"next\", \"close\"],"
    " \"statics\": [\"sector\"], \"categories\": {\"sector\": [\"tech\", \"\"]},"
    " \"dtype\": \"float16\", \"rows\": 100, \"entity\": \"ticker\","
    " \"time\": {\"column\": \"day\", \"unit\": \"ns\", \"timezone\": \"UTC\"},"
    " \"sequence\": {\"window\": 30, \"horizon\": 5, \"stride\": 2, \"gap\": 1},"
    " \"entities\": [{\"name\": \"B\", \"start\": 50, \"end\": 90,"
    "                 \"splits\": [[50, 80], [80, 90]]},"
    "                {\"name\": \"A\\u00e9\", \"start\": 0, \"end\": 50,"
    "                 \"splits\": [[0, 50], [50, 50]]}],"
    " \"splits\": {\"text\": \"0.8,0.2\", \"names\": [\"train\", \"val\"], \"by\": \"time\","
    "             \"cuts\": [-12]},"
    " \"scale\": \"late\","
    " \"scaler\": {\"kind\": \"standard\", \"center\": [1, 2.5, -3], \"scale\": [1, 2, 0.5]},"
    " \"fit_on\": \"0.8\", \"missing\": {\"policy\": \"ffill\", \"counts\": {\"volume\": 7}},"
    " \"dropped_rows\": 3, \"unused_rows\": 10, \"hashes\": true,"
    " \"fingerprint\": \"000102030405060708090a0b0c0d0eff\"}";

static void full_is(const struct series_meta *meta)
{
    assert_int_equal(meta->dtype, STK_F16);
    assert_int_equal(meta->rows, 100);
    assert_true(meta->column_count == 3 && meta->feature_count == 2 && meta->label_count == 2);
    assert_string_equal(meta->columns[1], "volume");
    assert_true(meta->labels[0] == 2 && meta->labels[1] == 0);
    assert_true(meta->static_count == 1 && meta->category_count == 1);
    assert_string_equal(meta->categories[0].column, "sector");
    assert_int_equal(meta->categories[0].count, 2);
    assert_string_equal(meta->categories[0].values[0], "tech");
    assert_string_equal(meta->entity_column, "ticker");
    assert_string_equal(meta->time_column, "day");
    assert_string_equal(meta->time_unit, "ns");
    assert_string_equal(meta->time_zone, "UTC");
    assert_true(meta->sequence.window == 30 && meta->sequence.horizon == 5 &&
                meta->sequence.stride == 2 && meta->sequence.gap == 1);
    assert_int_equal(meta->entity_count, 2);
    assert_string_equal(meta->entities[1].name, "A\xc3\xa9");
    assert_true(meta->entities[0].start == 50 && meta->entities[0].end == 90);
    assert_true(meta->split_count == 2 && meta->split_by_time && meta->cuts[0] == -12);
    assert_string_equal(meta->split_names[1], "val");
    assert_string_equal(meta->split_text, "0.8,0.2");
    assert_true(meta->ranges[1].start == 80 && meta->ranges[2].end == 50);
    assert_true(meta->late && meta->scaler.count == 3);
    assert_true(meta->scaler.columns[1].center == 2.5 && meta->scaler.columns[2].scale == 0.5);
    assert_string_equal(meta->fit_on, "0.8");
    assert_string_equal(meta->missing_policy, "ffill");
    assert_true(meta->missing[0] == 0 && meta->missing[1] == 7);
    assert_true(meta->dropped_rows == 3 && meta->unused_rows == 10 && meta->has_hashes);
    assert_true(meta->fingerprint[1] == 1 && meta->fingerprint[15] == 255);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    struct series_meta meta, again;
    struct text text = {0}, twice = {0};
    struct stk_error err;
    WORKS(series_meta_parse(&meta, full, strlen(full), "m", &err));
    full_is(&meta);
    series_meta_write(&meta, &text);
    assert_false(text.failed);
    series_meta_reset(&meta);
    WORKS(series_meta_parse(&again, text.data, text.len, "m", &err));
    full_is(&again);
    series_meta_write(&again, &twice);
    assert_string_equal(text.data, twice.data);
    series_meta_reset(&again);
    series_meta_reset(&again); /* twice is fine */
    text_free(&text);
    text_free(&twice);
}

static void parse(struct series_meta *meta, const char *text)
{
    struct stk_error err;
    stk_status status = series_meta_parse(meta, text, strlen(text), "m", &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
}

static void a_file_made_by_hand_needs_features_and_entities_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"features\": [\"a\", \"b\"], \"entities\": [{\"name\": \"x\", \"start\": 0, \"end\": 9},"
        " {\"name\": 7, \"start\": 9, \"end\": 20}], \"version\": \"mine\", \"sequence\": null}",
        "{\"feature_cols\": [\"a\", \"b\"], \"entities\": {\"x\": [0, 9], \"7\": [9, 20]},"
        " \"scaler\": \"scaler.joblib\", \"num_rows\": 20, \"sequence_length\": 60}",
        "{\"feature_columns\": [\"a\", \"b\"], \"total_rows\": 20, \"seq_len\": 60,"
        " \"entities\": {\"x\": {\"start\": 0, \"end\": 9}, \"7\": {\"start\": 9, \"end\": 20}},"
        " \"target\": \"a\", \"dtype\": \"<f4\", \"splits\": null, \"time\": null}"};
    for (size_t i = 0; i < 3; i++) {
        struct series_meta meta;
        parse(&meta, texts[i]);
        assert_int_equal(meta.dtype, STK_F32);
        assert_int_equal(meta.rows, 20);
        assert_true(meta.column_count == 2 && meta.feature_count == 2);
        assert_true(meta.label_count == 1 && meta.labels[0] == 0);
        assert_true(meta.sequence.window == 60 && meta.sequence.horizon == 1 &&
                    meta.sequence.stride == 1 && meta.sequence.gap == 0);
        assert_true(meta.entity_count == 2 && meta.entities[1].end == 20);
        assert_string_equal(meta.entities[0].name, "x");
        assert_string_equal(meta.entities[1].name, "7");
        assert_true(!meta.late && !meta.has_hashes && !meta.time_column && !meta.split_count);
        assert_int_equal(meta.scaler.count, 0);
        series_meta_reset(&meta);
    }
    struct series_meta meta;
    parse(&meta, "{\"features\": [\"a\", \"b\"], \"label\": [\"b\"], \"window\": 5,"
                 " \"entities\": {\"x\": [3, 9]}}");
    assert_true(meta.labels[0] == 1 && meta.sequence.window == 5 && meta.rows == 9);
    series_meta_reset(&meta);
}

/* `full` with one piece of it replaced. */
static char *changed(const char *from, const char *to)
{
    const char *at = strstr(full, from);
    assert_non_null(at);
    size_t before = (size_t)(at - full), cap = strlen(full) + strlen(to) + 1;
    char *text = malloc(cap);
    snprintf(text, cap, "%.*s%s%s", (int)before, full, to, at + strlen(from));
    return text;
}

/* A piece of `full`, what it becomes, and words of the error. */
static const struct {
    const char *from, *to, *words;
    stk_status status;
} nonsense[] = {
    {"\"stoker series\"", "\"parquet\"", "format", STK_CORRUPT},
    {"\"version\": 1", "\"version\": 2", "version 2", STK_UNSUPPORTED},
    {"\"version\": 1", "\"version\": \"1\"", "version", STK_CORRUPT},
    {"\"features\": [\"close\", \"volume\"]", "\"features\": []", "features: there is none",
     STK_CORRUPT},
    {"\"features\": [\"close\", \"volume\"]", "\"features\": 3", "features", STK_CORRUPT},
    {"\"features\": [\"close\", \"volume\"]", "\"features\": [\"close\", 3]", "item 1",
     STK_CORRUPT},
    {"\"features\": [\"close\", \"volume\"]", "\"features\": [\"close\", \"close\"]",
     "close is there twice", STK_CORRUPT},
    {"\"features\": [\"close\", \"volume\"]", "\"features\": [\"volume\", \"close\"]",
     "begin with the features", STK_CORRUPT},
    {"\"features\"", "\"featurez\"", "features: it is missing", STK_CORRUPT},
    {"\"volume\", \"next\"]", "\"volume\"]", "next is no column", STK_CORRUPT},
    {"{\"sector\": [", "{\"nowhere\": [", "nowhere is no column", STK_CORRUPT},
    {"[\"tech\", \"\"]", "[\"tech\", 4]", "categories", STK_CORRUPT},
    {"[\"tech\", \"\"]", "null", "categories", STK_CORRUPT},
    {"float16", "int32", "dtype: int32", STK_CORRUPT},
    {"\"float16\"", "16", "dtype", STK_CORRUPT},
    {"\"rows\": 100", "\"rows\": -1", "rows", STK_CORRUPT},
    {"\"rows\": 100", "\"rows\": 1e2", "rows", STK_CORRUPT},
    {"\"rows\": 100", "\"rows\": 9223372036854775807", "rows", STK_CORRUPT},
    {"\"rows\": 100", "\"rows\": 4611686018427387904", "2^64", STK_CORRUPT},
    {"\"rows\": 100", "\"rows\": 89", "B ends at row 90 of 89", STK_CORRUPT},
    {"\"ticker\"", "[]", "entity: it is not a text", STK_CORRUPT},
    {"\"unit\": \"ns\"", "\"unit\": \"weeks\"", "unit weeks", STK_CORRUPT},
    {"\"column\": \"day\"", "\"column\": null", "column is missing", STK_CORRUPT},
    {"{\"column\": \"day\", \"unit\": \"ns\", \"timezone\": \"UTC\"}", "\"day\"", "time",
     STK_CORRUPT},
    {"\"window\": 30", "\"window\": 0", "window", STK_CORRUPT},
    {"\"stride\": 2", "\"stride\": 0", "stride", STK_CORRUPT},
    {"\"gap\": 1", "\"gap\": \"1\"", "gap", STK_CORRUPT},
    {"\"start\": 0, \"end\": 50", "\"start\": 0, \"end\": 51", "overlap at row 50", STK_CORRUPT},
    {"\"start\": 0, \"end\": 50", "\"start\": 60, \"end\": 50", "impossible rows", STK_CORRUPT},
    {"\"start\": 0, \"end\": 50", "\"start\": 0", "no start and end", STK_CORRUPT},
    {"\"name\": \"B\"", "\"name\": \"A\xc3\xa9\"", "is there twice", STK_CORRUPT},
    {"\"name\": \"B\"", "\"nam\": \"B\"", "item 0 has no name", STK_CORRUPT},
    {"[[50, 80], [80, 90]]", "[[50, 80]]", "2 splits", STK_CORRUPT},
    {"[[50, 80], [80, 90]]", "[[50, 81], [80, 90]]", "splits 0 and 1 of B overlap", STK_CORRUPT},
    {"[[50, 80], [80, 90]]", "[[49, 80], [80, 90]]", "split 0 of B", STK_CORRUPT},
    {"[[50, 80], [80, 90]]", "[[50, 80], [80, 91]]", "split 1 of B", STK_CORRUPT},
    {"[\"train\", \"val\"]", "[]", "splits.names", STK_CORRUPT},
    {"[\"train\", \"val\"]", "[\"train\", \"train\"]", "train is there twice", STK_CORRUPT},
    {"[\"train\", \"val\"]", "[1,2,3,4,5,6,7,8,9]", "splits.names", STK_CORRUPT},
    {"\"cuts\": [-12]", "\"cuts\": []", "splits.cuts", STK_CORRUPT},
    {"\"cuts\": [-12]", "\"cuts\": [0.5]", "splits.cuts", STK_CORRUPT},
    {"\"late\"", "\"later\"", "scale:", STK_CORRUPT},
    {"[1, 2, 0.5]", "[1, 2]", "scale", STK_CORRUPT},
    {"[1, 2, 0.5]", "[1, 2, 0]", "scale", STK_CORRUPT},
    {"[1, 2, 0.5]", "[1, 2, 0.5], \"features\": [\"volume\", \"close\", \"next\"]",
     "scaler: its feature 0 is not close", STK_CORRUPT},
    {"[1, 2, 0.5]", "[1, 2, 0.5], \"features\": [\"close\"]", "1 entries for 3 columns",
     STK_CORRUPT},
    {"{\"volume\": 7}", "{\"volumes\": 7}", "missing: volumes", STK_CORRUPT},
    {"{\"volume\": 7}", "{\"volume\": \"7\"}", "missing: the count", STK_CORRUPT},
    {"\"hashes\": true", "\"hashes\": 1", "hashes", STK_CORRUPT},
    {"0d0eff", "0d0ef", "fingerprint", STK_CORRUPT},
    {"0d0eff", "0d0exx", "fingerprint", STK_CORRUPT},
    {"\"fingerprint\"", "fingerprint", "not valid JSON", STK_CORRUPT},
    {"\"rows\": 100", "\"rows\": 100, \"rows\": 100", "not valid JSON", STK_CORRUPT},
};

static void a_file_edited_into_nonsense_names_the_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        struct series_meta meta;
        struct stk_error err;
        char *text = changed(nonsense[i].from, nonsense[i].to);
        stk_status status = series_meta_parse(&meta, text, strlen(text), "/d/metadata.json", &err);
        if (status != nonsense[i].status || !strstr(err.what, nonsense[i].words))
            print_error("case %zu, %s: %s\n", i, nonsense[i].to, status ? err.what : "was taken");
        assert_int_equal(status, nonsense[i].status);
        assert_non_null(strstr(err.what, nonsense[i].words));
        assert_string_equal(err.object, "/d/metadata.json");
        assert_null(meta.columns); /* nothing half-built is left */
        free(text);
    }
}

/* The layout that series_meta_write gives, with these lines as its entities. */
static void laid_out(struct text *text, const char *lines)
{
    text_format(text,
                "{\n  \"features\": [\"a\"],\n  \"splits\": {\"names\": [\"train\", \"val\"]},\n"
                "  \"entities\": [%s\n  ]\n}\n",
                lines);
}

static void a_list_in_our_layout_is_taken_as_any_other(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *words; /* NULL: it is good */
    } lists[] = {
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [3, 5]]},"
         "\n    {\"name\": \"\", \"start\": 5, \"end\": 5, \"splits\": [[5, 5], [5, 5]]}",
         NULL},
        {"\n    {\"name\": \"A\\n\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [3, 5]]}",
         NULL},
        {"\n    {\"name\": \"\xc3\xa9\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [3, 5]]}",
         NULL},
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 5}", "needs a list of 2 splits"},
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [2, 5]]}",
         "overlap"},
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [3, 6]]}",
         "split 1 of A"},
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [4, 3]]}",
         "split 1 of A"},
        {"\n    {\"name\": \"A\", \"start\": 6, \"end\": 5, \"splits\": [[0, 3], [3, 5]]}",
         "impossible rows"},
        {"\n    {\"name\": \"A\", \"start\": 00, \"end\": 5, \"splits\": [[0, 3], [3, 5]]}",
         "not valid JSON"},
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 5, \"splits\": [[0, 3], [3, 5]]},",
         "not valid JSON"},
        {"", "there is none"},
        {"\n    {\"name\": \"A\", \"start\": 0, \"end\": 99999999999999999999}", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct text text = {0}, written = {0};
        struct series_meta meta;
        struct stk_error err;
        laid_out(&text, lists[i].lines);
        stk_status status = series_meta_parse(&meta, text.data, text.len, "m", &err);
        assert_int_equal(status, lists[i].words ? STK_CORRUPT : STK_OK);
        if (lists[i].words && !strstr(err.what, lists[i].words))
            print_error("list %zu: %s\n", i, err.what);
        assert_true(!lists[i].words || strstr(err.what, lists[i].words));
        if (!status)
            series_meta_write(&meta, &written);
        if (i == 0) {
            assert_int_equal(meta.entity_count, 2);
            assert_true(meta.ranges[1].start == 3 && meta.ranges[3].end == 5 && meta.rows == 5);
        }
        series_meta_reset(&meta);
        text_free(&text);
        text_free(&written);
    }
}

static void rows_come_from_the_array_where_the_file_does_not_say(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    struct series_meta meta;
    struct stk_error err;
    static const float values[24];
    folder_new(folder);
    assert_int_equal(series_meta_load(&meta, folder, &err), STK_NOT_FOUND);
    text_write(path_in(folder, SERIES_METADATA),
               "{\"features\": [\"a\", \"b\"], \"entities\": {\"x\": [0, 10]}}");
    WORKS(series_meta_load(&meta, folder, &err)); /* the array is not there yet */
    assert_int_equal(meta.rows, 10);
    series_meta_reset(&meta);
    file_write(path_in(folder, SERIES_ARRAY), values, 24 * sizeof(float));
    WORKS(series_meta_load(&meta, folder, &err));
    assert_int_equal(meta.rows, 12);
    series_meta_reset(&meta);
    file_write(path_in(folder, SERIES_ARRAY), values, 9 * 2 * sizeof(float));
    assert_int_equal(series_meta_load(&meta, folder, &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "x ends at row 10 of 9"));
    file_write(path_in(folder, SERIES_ARRAY), values, 23 * sizeof(float));
    assert_int_equal(series_meta_load(&meta, folder, &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "92 bytes"));
    assert_non_null(strstr(err.object, "/metadata.json"));
    folder_remove(folder);
}

static void the_journal_tells_the_rows_that_were_there(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    struct text text = {0};
    struct stk_error err;
    uint64_t rows = 1;
    folder_new(folder);
    assert_int_equal(series_journal_load(&rows, folder, &err), STK_NOT_FOUND);
    series_journal_write(UINT64_C(123456789012), &text);
    text_write(path_in(folder, SERIES_JOURNAL), text.data);
    WORKS(series_journal_load(&rows, folder, &err));
    assert_int_equal(rows, UINT64_C(123456789012));
    text_write(path_in(folder, SERIES_JOURNAL), "{\"rows\": -4}");
    assert_int_equal(series_journal_load(&rows, folder, &err), STK_CORRUPT);
    text_write(path_in(folder, SERIES_JOURNAL), "{\"ro");
    assert_int_equal(series_journal_load(&rows, folder, &err), STK_CORRUPT);
    text_free(&text);
    folder_remove(folder);
}

static int parse_and_write(void *user)
{
    struct series_meta meta;
    struct stk_error err;
    struct text text = {0};
    const char *from = user;
    stk_status status = series_meta_parse(&meta, from, strlen(from), "m", &err);
    assert_true(status == STK_OK || status == STK_MEMORY);
    if (!status)
        series_meta_write(&meta, &text);
    int good = !status && !text.failed;
    series_meta_reset(&meta);
    text_free(&text);
    return good;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    struct text lines = {0};
    fail_each_allocation(parse_and_write, (void *)full);
    laid_out(&lines, "\n    {\"name\": \"A\", \"start\": 0, \"end\": 5, "
                     "\"splits\": [[0, 3], [3, 5]]}");
    fail_each_allocation(parse_and_write, lines.data);
    text_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_made_by_hand_needs_features_and_entities_alone),
        cmocka_unit_test(a_file_edited_into_nonsense_names_the_key),
        cmocka_unit_test(a_list_in_our_layout_is_taken_as_any_other),
        cmocka_unit_test(rows_come_from_the_array_where_the_file_does_not_say),
        cmocka_unit_test(the_journal_tells_the_rows_that_were_there),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
