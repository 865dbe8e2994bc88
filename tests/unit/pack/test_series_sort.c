#include "base/testing.h"

#include "format/series_meta.h"
#include "pack/series_sort.h"

#define COLUMNS 3

struct place {
    char folder[PATH_MAX];
    int fd;
};

static void place_open(struct place *place)
{
    folder_new(place->folder);
    place->fd = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->fd >= 0);
}

static void place_close(struct place *place)
{
    close(place->fd);
    assert_int_equal(rmdir(place->folder), 0); /* whatever happened, no file is left */
}

static uint32_t place_files(const struct place *place)
{
    char command[2 * PATH_MAX], out[32] = "";
    snprintf(command, sizeof(command), "ls -A '%s' | wc -l", place->folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(out, sizeof(out), pipe));
    pclose(pipe);
    return (uint32_t)atoi(out);
}

/* A row says who it is in its values: entity, time, arrival. */
struct row {
    uint32_t entity;
    int64_t time;
    uint32_t arrival;
};

static struct row_spool *spool_of(const struct place *place, const struct row *rows, uint32_t n,
                                  int has_times, int has_entities)
{
    const struct row_spool_options options = {.folder_fd = place->fd,
                                              .label = place->folder,
                                              .dtype = STK_F64,
                                              .columns = COLUMNS,
                                              .has_times = has_times,
                                              .has_entities = has_entities,
                                              .values_name = SERIES_ARRAY,
                                              .times_name = SERIES_TIME};
    struct row_spool *spool;
    struct stk_error err;

    assert_int_equal(row_spool_open(&spool, &options, &err), STK_OK);
    for (uint32_t i = 0; i < n; i++) {
        double values[COLUMNS] = {rows[i].entity, (double)rows[i].time, rows[i].arrival};
        int64_t time = rows[i].time;
        uint32_t entity = rows[i].entity;
        struct row_block block = {1, values, &time, &entity};
        assert_int_equal(row_spool_append(spool, &block, &err), STK_OK);
    }
    assert_int_equal(row_spool_flush(spool, &err), STK_OK);
    return spool;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *left = a, *right = b;

    if (left->entity != right->entity)
        return left->entity < right->entity ? -1 : 1;
    if (left->time != right->time)
        return left->time < right->time ? -1 : 1;
    return left->arrival < right->arrival ? -1 : 1;
}

static void check_sorted(const struct row_spool *spool, struct row *rows, uint32_t n, int has_times)
{
    double *values = malloc(n * COLUMNS * sizeof(*values));
    int64_t *times = malloc(n * sizeof(*times));
    struct stk_error err;
    struct row_block block = {.rows = n, .values = values, .times = has_times ? times : NULL};

    assert_int_equal(row_spool_rows(spool), n);
    assert_int_equal(row_spool_read(spool, 0, &block, &err), STK_OK);
    if (!has_times)
        for (uint32_t i = 0; i < n; i++)
            rows[i].time = 0;
    qsort(rows, n, sizeof(*rows), compare_rows);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal((uint32_t)values[i * COLUMNS], rows[i].entity);
        assert_int_equal((uint32_t)values[i * COLUMNS + 2], rows[i].arrival);
        if (has_times)
            assert_int_equal(times[i], rows[i].time);
    }
    free(values);
    free(times);
}

static void make_names(struct ingest_entity *entities, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "e%u", i);
        entities[i] = (struct ingest_entity){.name = strdup(name)};
    }
}

static void free_names(struct ingest_entity *entities, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(entities[i].name);
}

/* Times that are all different, negative ones too, in no order. */
static struct row *shuffled_rows(uint32_t n, uint32_t entities, uint64_t seed)
{
    struct row *rows = malloc(n * sizeof(*rows));
    uint64_t state = seed;

    for (uint32_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        rows[i].entity = (uint32_t)(state >> 40) % entities;
        rows[i].time = (int64_t)((state >> 20) % 100000) * 65536 - 3000000000 + i;
        rows[i].arrival = i;
    }
    return rows;
}

static void rows_are_sorted_within_any_memory(void **state)
{
    /* in memory; in runs and one merge; in several rounds of merges */
    static const uint64_t memories[] = {64 << 20, 200 << 10, 16 << 10, 1};
    struct ingest_entity entities[300];

    (void)state;
    make_names(entities, 300);
    for (size_t m = 0; m < sizeof(memories) / sizeof(memories[0]); m++) {
        for (int has_times = 0; has_times < 2; has_times++) {
            struct place place;
            struct stk_error err;
            place_open(&place);
            struct row *rows = shuffled_rows(20000, 300, 5 + m);
            struct row_spool *spool = spool_of(&place, rows, 20000, has_times, 1);
            const struct series_sort sort = {.folder_fd = place.fd,
                                             .label = place.folder,
                                             .memory = memories[m],
                                             .entities = entities,
                                             .entity_count = 300,
                                             .time_unit = "s"};
            assert_int_equal(series_sort_run(&sort, &spool, &err), STK_OK);
            check_sorted(spool, rows, 20000, has_times);
            assert_int_equal(place_files(&place), has_times ? 2 : 1);
            row_spool_free(spool);
            free(rows);
            place_close(&place);
        }
    }
    free_names(entities, 300);
}

static void entities_that_lie_in_a_row_need_no_numbers(void **state)
{
    struct ingest_entity entities[4];
    struct place place;
    struct stk_error err;

    (void)state;
    make_names(entities, 4);
    place_open(&place);
    struct row *rows = shuffled_rows(1000, 1, 9);
    for (uint32_t i = 0; i < 1000; i++) /* entity 2 has no row */
        rows[i].entity = i < 100 ? 0 : i < 400 ? 1 : 3;
    entities[0].rows = 100;
    entities[1].first_row = 100;
    entities[1].rows = 300;
    entities[3].first_row = 400;
    entities[3].rows = 600;
    struct row_spool *spool = spool_of(&place, rows, 1000, 1, 0);
    const struct series_sort sort = {.folder_fd = place.fd,
                                     .label = place.folder,
                                     .memory = 20 << 10,
                                     .entities = entities,
                                     .entity_count = 4,
                                     .time_unit = "s"};
    assert_int_equal(series_sort_run(&sort, &spool, &err), STK_OK);
    check_sorted(spool, rows, 1000, 1);
    row_spool_free(spool);
    free(rows);
    free_names(entities, 4);
    place_close(&place);
}

static void two_rows_at_one_time_are_named(void **state)
{
    static const uint64_t memories[] = {64 << 20, 16 << 10};
    struct ingest_entity entities[5];

    (void)state;
    make_names(entities, 5);
    for (int m = 0; m < 2; m++) {
        struct place place;
        struct stk_error err;
        place_open(&place);
        struct row *rows = shuffled_rows(3000, 5, 77);
        rows[2900].entity = rows[3].entity = 4;
        rows[2900].time = rows[3].time = 1704067200; /* 2024-01-01 */
        struct row_spool *spool = spool_of(&place, rows, 3000, 1, 1);
        const struct series_sort sort = {.folder_fd = place.fd,
                                         .label = place.folder,
                                         .memory = memories[m],
                                         .entities = entities,
                                         .entity_count = 5,
                                         .time_unit = "s"};
        assert_int_equal(series_sort_run(&sort, &spool, &err), STK_CORRUPT);
        assert_null(spool);
        assert_non_null(strstr(err.what, "'e4'"));
        assert_non_null(strstr(err.what, "2024-01-01"));
        free(rows);
        place_close(&place);
    }
    free_names(entities, 5);
}

struct sort_case {
    struct place place;
    struct row *rows;
    struct ingest_entity *entities;
};

static int sort_once(void *user)
{
    struct sort_case *test = user;
    struct stk_error err;
    struct row_spool *spool = NULL;
    const struct row_spool_options options = {.folder_fd = test->place.fd,
                                              .label = test->place.folder,
                                              .dtype = STK_F64,
                                              .columns = 1,
                                              .has_entities = 1,
                                              .values_name = "rows",
                                              .times_name = "times"};
    stk_status status = row_spool_open(&spool, &options, &err);
    for (uint32_t i = 0; !status && i < 1000; i++) {
        double value = i;
        struct row_block block = {1, &value, NULL, &test->rows[i].entity};
        status = row_spool_append(spool, &block, &err);
    }
    if (!status)
        status = row_spool_flush(spool, &err);
    const struct series_sort sort = {.folder_fd = test->place.fd,
                                     .label = test->place.folder,
                                     .memory = 8 << 10,
                                     .entities = test->entities,
                                     .entity_count = 5};
    if (!status)
        status = series_sort_run(&sort, &spool, &err);
    row_spool_free(spool);
    assert_int_equal(place_files(&test->place), 0);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void memory_that_runs_out_leaves_no_file(void **state)
{
    struct ingest_entity entities[5];
    struct sort_case test = {.rows = shuffled_rows(1000, 5, 1), .entities = entities};

    (void)state;
    make_names(entities, 5);
    place_open(&test.place);
    fail_each_allocation(sort_once, &test);
    free(test.rows);
    free_names(entities, 5);
    place_close(&test.place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sorted_within_any_memory),
        cmocka_unit_test(entities_that_lie_in_a_row_need_no_numbers),
        cmocka_unit_test(two_rows_at_one_time_are_named),
        cmocka_unit_test(memory_that_runs_out_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
