#include "base/testing.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/fail.h"
#include "base/random.h"
#include "pack/series_split.h"

/* --- times ----------------------------------------------------------------------------------- */

static int parses(const char *text, const char *unit, int64_t *out)
{
    return series_time_parse(text, strlen(text), unit, out);
}

static void assert_time(const char *text, const char *unit, int64_t wanted)
{
    int64_t time = 77;
    if (!parses(text, unit, &time) || time != wanted)
        print_message("%s in %s: %" PRId64 ", not %" PRId64 "\n", text, unit, time, wanted);
    assert_true(time == wanted);
}

/* The numbers: python -c "import numpy; print(int(numpy.datetime64(TEXT, UNIT).astype('int64')))"
 */
static void times_are_read_as_numpy_reads_them(void **state)
{
    (void)state;
    assert_time("1970-01-01", "s", 0);
    assert_time("2024-01-01", "d", 19723);
    assert_time("2024-02-29", "s", 1709164800);
    assert_time("2024-01-01T12:30:00", "ms", 1704112200000);
    assert_time("2024-01-01 12:30", "s", 1704112200);
    assert_time("2024-01-01T12:30:00.000000001", "ns", 1704112200000000001);
    assert_time("2024-01-01T12:30:00.5", "us", 1704112200500000);
    assert_time("1969-12-31T23:59:59.5", "ms", -500);
    assert_time("1600-02-29", "s", -11670998400);
    assert_time("0000-01-01", "d", -719528);
    assert_time("9999-12-31T23:59:59", "s", 253402300799);
    assert_time("2262-04-11T23:47:16.854775807", "ns", INT64_MAX);
}

static void offsets_and_zulu_count(void **state)
{
    (void)state;
    assert_time("2024-01-01T12:30:00Z", "s", 1704112200);
    assert_time("2024-01-01T13:30:00+01:00", "s", 1704112200);
    assert_time("2024-01-01T07:00:00-05:30", "s", 1704112200);
    assert_time("2024-01-01T00:30:00.25+01:00", "ms", 1704065400250);
}

/* Rows at or after 12:30 of a day are those of the next day on. */
static void a_moment_between_two_becomes_the_later(void **state)
{
    (void)state;
    assert_time("2024-01-01T12:30:00", "d", 19724);
    assert_time("2024-01-01T00:00:00", "d", 19723);
    assert_time("1969-12-31T12:00:00", "d", 0);
    assert_time("2024-01-01T12:30:00.1", "s", 1704112201);
    assert_time("1969-12-31T23:59:59.1", "s", 0);
}

static void plain_numbers_are_taken_in_the_unit(void **state)
{
    (void)state;
    assert_time("17", "", 17);
    assert_time("-9223372036854775808", "ns", INT64_MIN);
    assert_time("2024", "s", 2024);
    int64_t time;
    assert_false(parses("2024-01-01", "", &time));
    assert_false(parses("9223372036854775808", "s", &time));
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {"",
                         "2024-13-01",
                         "2024-00-10",
                         "2024-02-30",
                         "2023-02-29",
                         "1900-02-29",
                         "2024-1-1",
                         "24-01-01",
                         "2024-01-01T",
                         "2024-01-01T24:00:00",
                         "2024-01-01T12:60:00",
                         "2024-01-01T12:30:60",
                         "2024-01-01T12",
                         "2024-01-01T12:30:00.",
                         "2024-01-01T12:30:00.1234567890",
                         "2024-01-01T12:30:00+1:00",
                         "2024-01-01T12:30:00+24:00",
                         "2024-01-01T12:30:00+01:60",
                         "2024-01-01T12:30:00ZZ",
                         "2024-01-01Z",
                         "2024/01/01",
                         " 2024-01-01",
                         "2024-01-01 ",
                         "+2024-01-01",
                         "now",
                         "1.5"};
    int64_t time = 5;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parses(bad[i], "ns", &time)) {
            print_message("\"%s\" was taken\n", bad[i]);
            assert_true(0);
        }
    assert_false(parses("2262-04-11T23:47:16.854775808", "ns", &time)); /* beyond int64 */
    assert_false(parses("9999-01-01", "ns", &time));
    assert_int_equal(time, 5);
}

/* libc's calendar is the judge. */
static void every_date_is_libcs_and_comes_back(void **state)
{
    (void)state;
    const char *units[] = {"s", "ms", "us", "ns", "d"};
    const int64_t lengths[] = {1, 1000, 1000000, 1000000000, 0};
    for (uint64_t i = 0; i < 20000; i++) {
        /* years 0 to 9999, but for ns, which end in 2262 */
        int unit = (int)(i % 5);
        int64_t span = unit == 3 ? 9223372036 : 253402300799 - 1;
        int64_t second = (int64_t)random_below(1, i, (uint64_t)span);
        second -= unit == 3 ? 4611686018 : second % 3 ? 0 : 62167219200 + second % 62167219200;
        if (second < -62167219200)
            second = -62167219200;
        int64_t days = (second - (((second % 86400) + 86400) % 86400)) / 86400, back;
        int64_t time = lengths[unit] ? second * lengths[unit] : days;
        time_t moment = unit == 4 ? days * 86400 : second;
        char found[64], wanted[64];
        struct tm tm;
        assert_non_null(gmtime_r(&moment, &tm));
        snprintf(wanted, sizeof wanted,
                 unit == 4 ? "%04d-%02d-%02d" : "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        series_time_format(time, units[unit], found, sizeof found);
        assert_string_equal(found, wanted);
        assert_true(parses(found, units[unit], &back));
        assert_true(back == time);
    }
}

static void fractions_and_far_times_are_written(void **state)
{
    (void)state;
    char out[64];
    series_time_format(-1, "ns", out, sizeof out);
    assert_string_equal(out, "1969-12-31T23:59:59.999999999");
    series_time_format(1704112200050, "ms", out, sizeof out);
    assert_string_equal(out, "2024-01-01T12:30:00.050");
    series_time_format(INT64_MAX, "s", out, sizeof out); /* no year of four digits */
    assert_string_equal(out, "9223372036854775807");
    series_time_format(INT64_MIN, "d", out, sizeof out);
    assert_string_equal(out, "-9223372036854775808");
    series_time_format(12, "", out, sizeof out);
    assert_string_equal(out, "12");
}

/* --- splits ---------------------------------------------------------------------------------- */

struct fixture {
    struct series_meta meta;
    struct series_times times;
    int64_t *values;
    uint64_t reads_left; /* the read that brings it to 0 fails */
};

static stk_status read_times(void *user, uint64_t first, uint64_t n, int64_t *out,
                             struct stk_error *err)
{
    struct fixture *fixture = user;
    assert_true(first + n <= fixture->times.rows && n > 0 && n <= 65536);
    if (--fixture->reads_left == 0)
        return fail_errno(err, EIO, "reading times failed");
    memcpy(out, fixture->values + first, n * sizeof *out);
    return STK_OK;
}

/* count entities of different lengths; entity i begins at step i and goes on by `step`. */
static void fixture_init(struct fixture *fixture, uint64_t count, uint64_t longest, int64_t begin,
                         int64_t step)
{
    *fixture = (struct fixture){.reads_left = UINT64_MAX};
    struct series_meta *meta = &fixture->meta;
    meta->entities = memory_zero(count, sizeof *meta->entities);
    meta->entity_count = count;
    meta->time_unit = memory_text("s", 1);
    meta->time_column = memory_text("when", 4);
    for (uint64_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "entity-%" PRIu64, i);
        meta->entities[i].name = memory_text(name, strlen(name));
        meta->entities[i].start = meta->rows;
        meta->rows += 1 + random_below(8, i, longest);
        meta->entities[i].end = meta->rows;
    }
    fixture->values = malloc(meta->rows * sizeof *fixture->values);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t row = meta->entities[i].start; row < meta->entities[i].end; row++) {
            uint64_t steps = row - meta->entities[i].start + (longest > 1 ? i % 7 : i);
            fixture->values[row] = (int64_t)((uint64_t)begin + (uint64_t)step * steps);
        }
    fixture->times = (struct series_times){read_times, fixture, meta->rows};
}

static void fixture_reset(struct fixture *fixture)
{
    series_meta_reset(&fixture->meta);
    free(fixture->values);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Every row is in the part that its time says, and parts of an entity follow each other. */
static void assert_cut(const struct fixture *fixture, uint64_t first)
{
    const struct series_meta *meta = &fixture->meta;
    for (uint64_t i = first; i < meta->entity_count; i++) {
        uint64_t at = meta->entities[i].start;
        for (uint32_t part = 0; part < meta->split_count; part++) {
            const struct series_range *range = &meta->ranges[i * meta->split_count + part];
            assert_true(range->start == at && range->end >= at);
            for (; at < range->end; at++) {
                assert_true(part == 0 || fixture->values[at] >= meta->cuts[part - 1]);
                assert_true(part + 1 == meta->split_count ||
                            fixture->values[at] < meta->cuts[part]);
            }
        }
        assert_true(at == meta->entities[i].end);
    }
}

static void shares_by_time_are_cut_at_one_moment(void **state)
{
    (void)state;
    const struct {
        int64_t begin, step;
    } kinds[] = {{0, 1}, {1700000000, 3600}, {INT64_MIN, INT64_MAX / 1100}, {-50, 65536}};
    for (int kind = 0; kind < 4; kind++) {
        struct fixture fixture;
        fixture_init(&fixture, 150, 2000, kinds[kind].begin, kinds[kind].step);
        struct series_meta *meta = &fixture.meta;
        assert_int_equal(series_split_apply(meta, "0.8,0.15,0.05", &fixture.times, NULL), STK_OK);
        assert_int_equal(meta->split_count, 3);
        assert_string_equal(meta->split_text, "0.8,0.15,0.05");
        assert_string_equal(meta->split_names[2], "test");
        assert_true(meta->split_by_time);
        assert_cut(&fixture, 0);
        qsort(fixture.values, meta->rows, sizeof *fixture.values, compare);
        assert_true(meta->cuts[0] == fixture.values[(meta->rows * 8 + 9) / 10 - 1] + 1);
        assert_true(meta->cuts[1] == fixture.values[(meta->rows * 19 + 19) / 20 - 1] + 1);
        fixture_reset(&fixture);
    }
}

static void named_moments_cut_where_they_say(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 40, 500, 1704067200, 3600); /* 2024-01-01 on */
    const char *split = "time:2024-01-05,2024-01-10T06:00:00Z";
    assert_int_equal(series_split_apply(&fixture.meta, split, &fixture.times, NULL), STK_OK);
    assert_int_equal(fixture.meta.split_count, 3);
    assert_true(fixture.meta.cuts[0] == 1704412800 && fixture.meta.cuts[1] == 1704866400);
    assert_cut(&fixture, 0);
    assert_int_equal(series_split_apply(&fixture.meta, "time:1704412800", &fixture.times, NULL),
                     STK_OK);
    assert_int_equal(fixture.meta.split_count, 2);
    assert_string_equal(fixture.meta.split_names[1], "val");
    assert_null(fixture.meta.split_names[2]);
    assert_cut(&fixture, 0);
    fixture_reset(&fixture);
}

static void without_times_each_entity_is_cut_by_its_rows(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 30, 100, 0, 1);
    struct series_meta *meta = &fixture.meta;
    assert_int_equal(series_split_apply(meta, "0.6,0.4", NULL, NULL), STK_OK);
    assert_false(meta->split_by_time);
    for (uint64_t i = 0; i < 30; i++) {
        const struct series_entity *entity = &meta->entities[i];
        uint64_t rows = entity->end - entity->start;
        assert_true(meta->ranges[2 * i].start == entity->start);
        assert_true(meta->ranges[2 * i].end == entity->start + (rows * 6 + 9) / 10);
        assert_true(meta->ranges[2 * i + 1].start == meta->ranges[2 * i].end);
        assert_true(meta->ranges[2 * i + 1].end == entity->end);
    }
    fixture_reset(&fixture);
}

static void a_new_entity_never_moves_another(void **state)
{
    (void)state;
    struct fixture few, many;
    uint64_t counts[3] = {0};
    fixture_init(&few, 500, 3, 0, 1);
    fixture_init(&many, 1000, 3, 0, 1);
    const char *split = "entity:0.7,0.2,0.1";
    assert_int_equal(series_split_apply(&few.meta, split, &few.times, NULL), STK_OK);
    assert_int_equal(series_split_apply(&many.meta, split, NULL, NULL), STK_OK);
    for (uint64_t i = 0; i < 1000; i++) {
        const struct series_range *ranges = many.meta.ranges + i * 3;
        uint64_t rows = 0;
        for (int part = 0; part < 3; part++) {
            rows += ranges[part].end - ranges[part].start;
            counts[part] += ranges[part].end > ranges[part].start;
        }
        const struct series_entity *entity = &many.meta.entities[i];
        assert_true(rows == entity->end - entity->start); /* all of it in one part */
        if (i < 500)
            assert_memory_equal(ranges, few.meta.ranges + i * 3, 3 * sizeof *ranges);
    }
    assert_int_equal(counts[0] + counts[1] + counts[2], 1000);
    assert_true(counts[0] > 640 && counts[0] < 760 && counts[1] > 150 && counts[1] < 250);
    fixture_reset(&few);
    fixture_reset(&many);
}

/* A series of 20 entities gets 10 more: its cuts stay. */
static void added_entities_get_their_ranges(void **state)
{
    (void)state;
    const char *splits[] = {"0.5,0.5", "entity:0.5,0.5", "0.5,0.5"};
    for (int kind = 0; kind < 3; kind++) {
        struct fixture fixture, whole;
        const struct series_times *times = kind == 2 ? NULL : &fixture.times;
        fixture_init(&fixture, 30, 50, 0, 1);
        fixture_init(&whole, 30, 50, 0, 1);
        struct series_meta *meta = &fixture.meta;
        meta->entity_count = 20;
        assert_int_equal(series_split_apply(meta, splits[kind], times, NULL), STK_OK);
        int64_t cut = meta->cuts[0];
        meta->entity_count = 30;
        assert_int_equal(series_split_extend(meta, 20, times, NULL), STK_OK);
        assert_true(meta->cuts[0] == cut);
        if (kind == 0)
            assert_cut(&fixture, 0);
        else { /* as if all had come at once */
            assert_int_equal(series_split_apply(&whole.meta, splits[kind], times, NULL), STK_OK);
            assert_memory_equal(whole.meta.ranges, meta->ranges, 60 * sizeof *meta->ranges);
        }
        fixture_reset(&whole);
        fixture_reset(&fixture);
    }
}

static void rows_of_no_entity_do_not_count(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 3, 1, 100, 10); /* one row each: 100, 110, 120 */
    fixture.meta.entities[1].end = fixture.meta.entities[1].start;
    fixture.values[1] = 999999;
    assert_int_equal(series_split_apply(&fixture.meta, "0.5,0.5", &fixture.times, NULL), STK_OK);
    assert_true(fixture.meta.cuts[0] == 101);
    fixture_reset(&fixture);
}

static void refused(struct fixture *fixture, const char *split, int has_time, const char *words)
{
    struct stk_error err = {0};
    const struct series_times *times = has_time ? &fixture->times : NULL;
    stk_status status = series_split_apply(&fixture->meta, split, times, &err);
    if (status != STK_USAGE || !strstr(err.what, words))
        print_message("%s: %s\n", split, err.what);
    assert_int_equal(status, STK_USAGE);
    assert_non_null(strstr(err.what, words));
    assert_int_equal(fixture->meta.split_count, 0);
    assert_null(fixture->meta.ranges);
}

static void bad_splits_are_refused_with_words(void **state)
{
    (void)state;
    const char *bad[][2] = {{"", "no number"},
                            {"0.8", "one part"},
                            {"0.8,0.1", "add up"},
                            {"0.8,0.3", "add up"},
                            {"1,0", "share of 0"},
                            {"0.5,0.2,0.2,0.1", "more than three"},
                            {"80,20", "no number"},
                            {"0.8,x", "no number"},
                            {"0.8,-0.2", "no number"},
                            {"0.8,0.2,", "no number"},
                            {"nan,0.2", "no number"},
                            {"time:", "cannot be read"},
                            {"time:yesterday", "cannot be read"},
                            {"time:2024-01-01,2024-02-01,2024-03-01", "more than three"},
                            {"entity:", "no number"},
                            {"entity:0.5", "one part"}};
    struct fixture fixture;
    fixture_init(&fixture, 4, 50, 0, 86400);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused(&fixture, bad[i][0], 1, bad[i][1]);
        assert_int_equal(series_split_check(bad[i][0], 1, NULL), STK_USAGE);
    }
    refused(&fixture, "time:2024-01-01", 0, "needs a time column");
    refused(&fixture, "time:2024-02-01,2024-01-01", 1, "do not rise");
    refused(&fixture, "time:1971-01-01", 1, "no row for \"val\"");
    refused(&fixture, "time:1960-01-01", 1, "no row for \"train\"");
    refused(&fixture, "entity:0.999999,0.000001", 1, "no row for \"val\"");
    assert_int_equal(series_split_check("0.8,0.2", 0, NULL), STK_OK);
    assert_int_equal(series_split_check("0.333333,0.333333,0.333333", 0, NULL), STK_OK);
    /* As floating point writes a third, and 1 - 0.7. */
    assert_int_equal(
        series_split_check("0.3333333333333333,0.3333333333333333,0.3333333333333333", 0, NULL),
        STK_OK);
    assert_int_equal(series_split_check("0.7,0.30000000000000004", 0, NULL), STK_OK);
    assert_int_equal(series_fit_on_check("0.1000000000000000055511151231257827", 0, NULL), STK_OK);
    assert_int_equal(series_split_check("0.7,0.3000000000000000x", 0, NULL), STK_USAGE);
    assert_int_equal(series_split_check(NULL, 0, NULL), STK_OK);
    fixture_reset(&fixture);
    fixture_init(&fixture, 4, 50, 0, 1);
    fixture.meta.time_unit[0] = '\0';
    refused(&fixture, "time:2024-01-01", 1, "no time of the column \"when\"");
    fixture_reset(&fixture);
}

/* --- rows to fit on -------------------------------------------------------------------------- */

/* The oracle: asks of every row whether it is in. */
static void assert_fit(struct fixture *fixture, const char *fit_on, int64_t from, int64_t to)
{
    struct series_meta *meta = &fixture->meta;
    struct series_range *out = malloc(meta->entity_count * sizeof *out);
    assert_int_equal(series_fit_ranges(meta, fit_on, &fixture->times, out, NULL), STK_OK);
    for (uint64_t i = 0; i < meta->entity_count; i++)
        for (uint64_t row = meta->entities[i].start; row < meta->entities[i].end; row++) {
            int is_in = row >= out[i].start && row < out[i].end;
            assert_int_equal(is_in, fixture->values[row] >= from && fixture->values[row] < to);
        }
    free(out);
}

static void rows_to_fit_on_are_those_of_the_text(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 40, 500, 1704067200, 3600);
    struct series_meta *meta = &fixture.meta;
    assert_fit(&fixture, NULL, INT64_MIN, INT64_MAX);
    assert_fit(&fixture, "all", INT64_MIN, INT64_MAX);
    assert_fit(&fixture, "1", INT64_MIN, INT64_MAX);
    assert_fit(&fixture, "time:2024-01-03..2024-01-06", 1704240000, 1704499200);
    assert_fit(&fixture, "time:..2024-01-06", INT64_MIN, 1704499200);
    assert_fit(&fixture, "time:1704240000..", 1704240000, INT64_MAX);
    assert_int_equal(series_split_apply(meta, "0.7,0.3", &fixture.times, NULL), STK_OK);
    assert_fit(&fixture, "0.7", INT64_MIN, meta->cuts[0]);
    assert_fit(&fixture, NULL, INT64_MIN, meta->cuts[0]); /* the first part */
    assert_fit(&fixture, "all", INT64_MIN, INT64_MAX);
    fixture_reset(&fixture);
}

static void entities_and_shares_of_rows_are_fitted_on(void **state)
{
    (void)state;
    struct fixture fixture;
    struct series_range out[5];
    fixture_init(&fixture, 5, 20, 0, 1);
    const struct series_entity *entities = fixture.meta.entities;
    const char *names = "entities:entity-3,entity-0";
    assert_int_equal(series_fit_ranges(&fixture.meta, names, NULL, out, NULL), STK_OK);
    for (int i = 0; i < 5; i++) {
        assert_true(out[i].start == entities[i].start);
        assert_true(out[i].end == (i == 0 || i == 3 ? entities[i].end : entities[i].start));
    }
    assert_int_equal(series_fit_ranges(&fixture.meta, "0.25", NULL, out, NULL), STK_OK);
    for (int i = 0; i < 5; i++)
        assert_true(out[i].end - out[i].start == (entities[i].end - entities[i].start + 3) / 4);
    fixture_reset(&fixture);
}

static void bad_rows_to_fit_on_are_refused(void **state)
{
    (void)state;
    const char *bad[][2] = {{"", "neither a share"},         {"0", "neither a share"},
                            {"1.5", "neither a share"},      {"most", "neither a share"},
                            {"time:2024-01-01", "no range"}, {"time:x..", "cannot be read"},
                            {"entities:", "no entity"}};
    struct fixture fixture;
    struct series_range out[5];
    struct stk_error err;
    fixture_init(&fixture, 5, 20, 0, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(series_fit_on_check(bad[i][0], 1, &err), STK_USAGE);
        assert_non_null(strstr(err.what, bad[i][1]));
    }
    assert_int_equal(series_fit_on_check("time:..5", 0, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "needs a time column"));
    assert_int_equal(series_fit_on_check(NULL, 0, &err), STK_OK);
    const char *names = "entities:entity-1,entity-11";
    assert_int_equal(series_fit_ranges(&fixture.meta, names, NULL, out, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "\"entity-11\""));
    const char *later = "time:5000..6000";
    assert_int_equal(series_fit_ranges(&fixture.meta, later, &fixture.times, out, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "none at all"));
    fixture_reset(&fixture);
}

/* --- faults ---------------------------------------------------------------------------------- */

static void a_failing_reader_stops_it_at_every_read(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_error err;
    stk_status status = STK_IO;
    fixture_init(&fixture, 50, 9000, 0, 70000);
    uint64_t nth = 1;
    for (; status; nth++) {
        fixture.reads_left = nth;
        status = series_split_apply(&fixture.meta, "0.8,0.2", &fixture.times, &err);
        assert_true(status == STK_OK || (status == STK_IO && !fixture.meta.split_count));
    }
    assert_true(nth > 10);
    fixture_reset(&fixture);
}

static int split_once(void *user)
{
    struct fixture *fixture = user;
    return series_split_apply(&fixture->meta, "0.8,0.2", &fixture->times, NULL) == STK_OK;
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 5, 100, 0, 1);
    fail_each_allocation(split_once, &fixture);
    fixture_reset(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_as_numpy_reads_them),
        cmocka_unit_test(offsets_and_zulu_count),
        cmocka_unit_test(a_moment_between_two_becomes_the_later),
        cmocka_unit_test(plain_numbers_are_taken_in_the_unit),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(every_date_is_libcs_and_comes_back),
        cmocka_unit_test(fractions_and_far_times_are_written),
        cmocka_unit_test(shares_by_time_are_cut_at_one_moment),
        cmocka_unit_test(named_moments_cut_where_they_say),
        cmocka_unit_test(without_times_each_entity_is_cut_by_its_rows),
        cmocka_unit_test(a_new_entity_never_moves_another),
        cmocka_unit_test(added_entities_get_their_ranges),
        cmocka_unit_test(rows_of_no_entity_do_not_count),
        cmocka_unit_test(bad_splits_are_refused_with_words),
        cmocka_unit_test(rows_to_fit_on_are_those_of_the_text),
        cmocka_unit_test(entities_and_shares_of_rows_are_fitted_on),
        cmocka_unit_test(bad_rows_to_fit_on_are_refused),
        cmocka_unit_test(a_failing_reader_stops_it_at_every_read),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
