#include "base/testing.h"

#include <dirent.h>
#include <math.h>

#include "stoker/series.h"

#include "base/context.h"
#include "base/fail.h"
#include "base/hash.h"
#include "pack/series_pattern.h"

#define ROWS 4000
#define FEATURES 4

/* --- numbers --------------------------------------------------------------------------------- */

struct entity {
    float values[FEATURES][ROWS];
};

static void entity_fill(struct entity *entity, uint64_t seed, uint32_t features, uint64_t number,
                        uint64_t rows)
{
    static double scratch[ROWS];
    float *columns[FEATURES];
    for (uint32_t i = 0; i < features; i++)
        columns[i] = entity->values[i];
    series_pattern_fill(&(struct series_pattern){seed, features}, number, rows, columns, scratch);
}

static struct entity *entity_new(uint64_t seed, uint32_t features, uint64_t number)
{
    struct entity *entity = calloc(1, sizeof *entity);
    entity_fill(entity, seed, features, number, ROWS);
    return entity;
}

/* Pinned: machines and compilers that round alike give these bits. */
static void the_numbers_are_the_same_everywhere(void **state)
{
    (void)state;
    struct entity *entity = entity_new(7, FEATURES, 3);
    assert_true(hash_bytes(entity, sizeof *entity, 0) == UINT64_C(0x7181f4c3929c336f));
    free(entity);
}

static void a_longer_series_begins_with_the_shorter(void **state)
{
    (void)state;
    struct entity *entity = entity_new(7, FEATURES, 3), *shorter = calloc(1, sizeof *shorter);
    entity_fill(shorter, 7, FEATURES, 3, 100);
    for (int i = 0; i < FEATURES; i++)
        assert_memory_equal(entity->values[i], shorter->values[i], 100 * sizeof(float));
    free(entity);
    free(shorter);
}

static void seeds_and_entities_differ(void **state)
{
    (void)state;
    struct entity *one = entity_new(7, FEATURES, 3), *other = entity_new(7, FEATURES, 4),
                  *third = entity_new(8, FEATURES, 3);
    for (int i = 0; i < FEATURES; i++)
        for (int row = 0; row < 50; row++) {
            assert_true(one->values[i][row] != other->values[i][row]);
            assert_true(one->values[i][row] != third->values[i][row]);
        }
    free(one);
    free(other);
    free(third);
}

/* Correlation of the value's step with the feature's step `lag` hours before. */
static double correlation(const struct entity *entity, uint32_t feature, int lag)
{
    double xy = 0, xx = 0, yy = 0;
    for (int t = 24; t + 1 < ROWS; t++) {
        double y = entity->values[0][t] - entity->values[0][t - 1];
        double x = entity->values[feature][t - lag] - entity->values[feature][t - lag - 1];
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    return xy / sqrt(xx * yy);
}

static void every_feature_leads_the_value_by_its_hours(void **state)
{
    (void)state;
    struct series_pattern pattern = {11, FEATURES};
    struct entity *entity = entity_new(11, FEATURES, 0);
    for (uint32_t feature = 1; feature < FEATURES; feature++) {
        uint32_t lead = series_pattern_lead(&pattern, feature);
        assert_true(lead >= 1 && lead <= 8);
        double at_lead = fabs(correlation(entity, feature, (int)lead));
        assert_true(at_lead > 0.2);
        for (int lag = 0; lag < 16; lag++)
            if (lag != (int)lead)
                assert_true(fabs(correlation(entity, feature, lag)) < at_lead);
    }
    free(entity);
}

/* Guesses of held-out hours, from what came before them alone: the last value; the last one and
 * yesterday's step; and that with what the features said. */
static void the_next_value_can_be_learned(void **state)
{
    (void)state;
    const double weights[FEATURES] = {0, 1, -1.0 / 2, 1.0 / 3};
    const double scales[FEATURES] = {1, 100, 0.01, 10};
    struct series_pattern pattern = {2, FEATURES};
    struct entity *entity = entity_new(2, FEATURES, 1), *alone = entity_new(2, 1, 1);
    double last = 0, features = 0, last_alone = 0, day_alone = 0;
    for (int t = ROWS / 2; t < ROWS; t++) {
        const float *value = entity->values[0], *only = alone->values[0];
        double guess = value[t - 1];
        for (uint32_t i = 1; i < FEATURES; i++) {
            int lead = (int)series_pattern_lead(&pattern, i);
            guess += weights[i] / scales[i] *
                     (entity->values[i][t - lead] - entity->values[i][t - lead - 1]);
        }
        last += pow(value[t] - value[t - 1], 2);
        features += pow(value[t] - guess, 2);
        last_alone += pow(only[t] - only[t - 1], 2);
        double step = 0; /* of this hour, over a week of days */
        for (int day = 1; day <= 7; day++)
            step += (only[t - 24 * day] - only[t - 24 * day - 1]) / 7;
        day_alone += pow(only[t] - only[t - 1] - step, 2);
    }
    assert_true(features < 0.6 * last);
    assert_true(day_alone < 0.7 * last_alone);
    free(entity);
    free(alone);
}

/* --- files ----------------------------------------------------------------------------------- */

struct fixture {
    char folder[PATH_MAX], out[2 * PATH_MAX];
    struct stk_context context;
    struct stk_gen_series_options options;
    struct stk_gen_series_result result;
    int tables, fail_at, cancel_after, reports;
    uint64_t done;
};

static stk_status write_table(void *user, const char *path, const struct stk_column *columns,
                              uint32_t count, uint64_t rows, struct stk_error *err)
{
    struct fixture *fixture = user;
    if (++fixture->tables == fixture->fail_at)
        return fail(err, STK_IO, "the table was not written");
    assert_int_equal(count, FEATURES + 1);
    assert_int_equal(rows, 30);
    assert_string_equal(columns[0].name, "time");
    assert_int_equal(columns[0].type, STK_COLUMN_TIME_S);
    assert_true(((const int64_t *)columns[0].values)[29] == 1577836800 + 29 * 3600);
    const char *names[] = {"value", "f1", "f2", "f3"};
    for (int i = 0; i < FEATURES; i++) {
        assert_string_equal(columns[i + 1].name, names[i]);
        assert_int_equal(columns[i + 1].type, STK_COLUMN_F32);
    }
    file_write(path, columns[1].values, rows * sizeof(float));
    return STK_OK;
}

static int progress(void *user, const struct stk_progress *progress)
{
    struct fixture *fixture = user;
    assert_string_equal(progress->what, "generating");
    assert_string_equal(progress->unit, "rows");
    assert_true(progress->done <= progress->total && progress->done >= fixture->done);
    fixture->done = progress->done;
    return ++fixture->reports == fixture->cancel_after;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    folder_new(fixture->folder);
    snprintf(fixture->out, sizeof fixture->out, "%s", path_in(fixture->folder, "tables"));
    fixture->context.hooks.user = fixture;
    fixture->context.hooks.write_table = write_table;
    fixture->context.hooks.progress = progress;
    fixture->options = (struct stk_gen_series_options){
        .out = fixture->out, .entities = 3, .rows = 30, .features = FEATURES, .seed = 7};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static stk_status generate(struct fixture *fixture, struct stk_error *err)
{
    fixture->done = 0;
    return stk_gen_series(&fixture->context, &fixture->options, &fixture->result, err);
}

static int count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    if (!dir)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return count;
}

static void tables_go_through_the_hook(void **state)
{
    struct fixture *fixture = *state;
    size_t len;
    assert_int_equal(generate(fixture, NULL), STK_OK);
    assert_int_equal(fixture->result.files, 3);
    assert_int_equal(fixture->result.rows, 90);
    assert_int_equal(fixture->result.bytes, 3 * 30 * sizeof(float));
    assert_int_equal(count_files(fixture->out), 3);
    assert_int_equal(fixture->done, 90);
    char *data = file_read(path_in(fixture->out, "entity-0002.parquet"), &len);
    struct entity *entity = entity_new(7, FEATURES, 2);
    assert_memory_equal(data, entity->values[0], len);
    free(entity);
    free(data);
}

/* Nine digits bring back every float32. */
static void csv_holds_the_same_numbers(void **state)
{
    struct fixture *fixture = *state;
    fixture->options.csv = 1;
    assert_int_equal(generate(fixture, NULL), STK_OK);
    assert_int_equal(fixture->tables, 0);
    size_t len;
    char *data = file_read(path_in(fixture->out, "entity-0001.csv"), &len), *at = data;
    struct entity *entity = entity_new(7, FEATURES, 1);
    assert_int_equal(fixture->result.files, 3);
    const char *head = "time,value,f1,f2,f3\n2020-01-01T00:00:00,";
    assert_memory_equal(data, head, strlen(head));
    assert_non_null(strstr(data, "\n2020-01-02T05:00:00,"));
    at = strchr(at, '\n') + 1;
    for (int row = 0; row < 30; row++) {
        at = strchr(at, ',');
        for (int i = 0; i < FEATURES; i++) {
            assert_int_equal(*at, ',');
            assert_true(strtof(at + 1, &at) == entity->values[i][row]);
        }
        assert_int_equal(*at++, '\n');
    }
    assert_int_equal(*at, '\0');
    free(entity);
    free(data);
}

static void without_a_hook_it_is_csv(void **state)
{
    struct fixture *fixture = *state;
    struct stk_gen_series_result result;
    assert_int_equal(stk_gen_series(NULL, &fixture->options, &result, NULL), STK_OK);
    assert_int_equal(count_files(fixture->out), 3);
    assert_int_equal(access(path_in(fixture->out, "entity-0000.csv"), R_OK), 0);
}

static void an_occupied_folder_is_refused_and_replaced_by_force(void **state)
{
    struct fixture *fixture = *state;
    struct stk_error err = {0};
    fixture->options.csv = 1;
    assert_int_equal(generate(fixture, NULL), STK_OK);
    text_write(path_in(fixture->out, "notes.txt"), "mine");
    fixture->options.csv = 0;
    fixture->options.entities = 2;
    assert_int_equal(generate(fixture, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "already"));
    assert_non_null(strstr(err.remedy, "--force"));
    assert_int_equal(count_files(fixture->out), 4);
    fixture->options.force = 1;
    assert_int_equal(generate(fixture, NULL), STK_OK);
    assert_int_equal(count_files(fixture->out), 3); /* two tables, and what is not ours */
    assert_int_equal(access(path_in(fixture->out, "notes.txt"), R_OK), 0);
    assert_int_equal(access(path_in(fixture->out, "entity-0001.parquet"), R_OK), 0);
}

static void a_failure_leaves_nothing_behind(void **state)
{
    struct fixture *fixture = *state;
    struct stk_error err = {0};
    fixture->fail_at = 2;
    assert_int_equal(generate(fixture, &err), STK_IO);
    assert_string_equal(err.what, "the table was not written");
    assert_int_equal(count_files(fixture->out), -1); /* nor the folder */
    assert_int_equal(fixture->result.files, 0);
}

static void stopping_leaves_what_was_there(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(generate(fixture, NULL), STK_OK);
    for (int csv = 0; csv < 2; csv++) {
        fixture->options.csv = csv;
        fixture->options.force = 1;
        fixture->reports = 0;
        fixture->cancel_after = 1;
        assert_int_equal(generate(fixture, NULL), STK_CANCELLED);
        assert_int_equal(count_files(fixture->out), 3);
        assert_int_equal(access(path_in(fixture->out, "entity-0002.parquet"), R_OK), 0);
    }
}

static void nonsense_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct stk_gen_series_options good = fixture->options;
    fixture->options.entities = 0;
    assert_int_equal(generate(fixture, NULL), STK_USAGE);
    fixture->options = good;
    fixture->options.rows = 0;
    assert_int_equal(generate(fixture, NULL), STK_USAGE);
    fixture->options = good;
    fixture->options.features = 0;
    assert_int_equal(generate(fixture, NULL), STK_USAGE);
    fixture->options = good;
    fixture->options.features = 5000;
    assert_int_equal(generate(fixture, NULL), STK_LIMIT);
    fixture->options = good;
    fixture->options.rows = UINT64_MAX;
    assert_int_equal(generate(fixture, NULL), STK_LIMIT);
    fixture->options = good;
    fixture->options.entities = UINT64_MAX;
    assert_int_equal(generate(fixture, NULL), STK_LIMIT);
    fixture->options = good;
    fixture->options.out = "";
    assert_int_equal(generate(fixture, NULL), STK_USAGE);
    assert_int_equal(count_files(fixture->out), -1);
}

static int generate_once(void *user)
{
    struct fixture *fixture = user;
    fixture->options.force = 1;
    return generate(fixture, NULL) == STK_OK;
}

static void every_failed_allocation_is_told(void **state)
{
    struct fixture *fixture = *state;
    fail_each_allocation(generate_once, fixture);
    fixture->options.csv = 1;
    fail_each_allocation(generate_once, fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_the_same_everywhere),
        cmocka_unit_test(a_longer_series_begins_with_the_shorter),
        cmocka_unit_test(seeds_and_entities_differ),
        cmocka_unit_test(every_feature_leads_the_value_by_its_hours),
        cmocka_unit_test(the_next_value_can_be_learned),
        cmocka_unit_test_setup_teardown(tables_go_through_the_hook, setup, teardown),
        cmocka_unit_test_setup_teardown(csv_holds_the_same_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_hook_it_is_csv, setup, teardown),
        cmocka_unit_test_setup_teardown(an_occupied_folder_is_refused_and_replaced_by_force, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_failure_leaves_nothing_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_leaves_what_was_there, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failed_allocation_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
