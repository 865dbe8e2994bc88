#include "base/testing.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "format/series_meta.h"
#include "pack/row_spool.h"

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
    folder_remove(place->folder);
}

static struct row_spool_options options_of(const struct place *place, uint32_t columns)
{
    return (struct row_spool_options){.folder_fd = place->fd,
                                      .label = place->folder,
                                      .dtype = STK_F32,
                                      .columns = columns,
                                      .has_times = 1,
                                      .has_entities = 1,
                                      .values_name = SERIES_ARRAY,
                                      .times_name = SERIES_TIME,
                                      .is_final = 1};
}

static float value_of(uint64_t row, uint32_t column)
{
    return (float)(row * 31 % 9973) + (float)column / 8;
}

/* Appends rows [first, first + n). */
static stk_status add_rows(struct row_spool *spool, uint64_t first, uint32_t n, uint32_t columns,
                           struct stk_error *err)
{
    float *values = malloc(((size_t)n * columns + 1) * sizeof(*values));
    int64_t *times = malloc((n + 1) * sizeof(*times));
    uint32_t *entities = malloc((n + 1) * sizeof(*entities));
    stk_status status;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t c = 0; c < columns; c++)
            values[(size_t)i * columns + c] = value_of(first + i, c);
        times[i] = (int64_t)(first + i) * 1000 - 5;
        entities[i] = (uint32_t)((first + i) % 7);
    }
    status = row_spool_append(
        spool,
        &(struct row_block){.rows = n, .values = values, .times = times, .entities = entities},
        err);
    free(values);
    free(times);
    free(entities);
    return status;
}

static void check_rows(const struct row_spool *spool, uint64_t first, uint32_t n, uint32_t columns)
{
    float *values = malloc((size_t)n * columns * sizeof(*values));
    int64_t *times = malloc(n * sizeof(*times));
    uint32_t *entities = malloc(n * sizeof(*entities));
    struct stk_error err;
    struct row_block block = {.rows = n, .values = values, .times = times, .entities = entities};

    assert_int_equal(row_spool_read(spool, first, &block, &err), STK_OK);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t c = 0; c < columns; c++)
            assert_true(values[(size_t)i * columns + c] == value_of(first + i, c));
        assert_int_equal(times[i], (int64_t)(first + i) * 1000 - 5);
        assert_int_equal(entities[i], (first + i) % 7);
    }
    free(values);
    free(times);
    free(entities);
}

static void check_hashes(const struct place *place, const struct row_spool *spool)
{
    uint64_t count;
    const uint64_t *hashes = row_spool_hashes(spool, &count);
    size_t len;
    char *data = file_read(path_in(place->folder, SERIES_ARRAY), &len);

    assert_int_equal(len, row_spool_rows(spool) * row_spool_row_bytes(spool));
    assert_int_equal(count, (len + SERIES_BLOCK - 1) / SERIES_BLOCK);
    for (uint64_t i = 0; i < count; i++) {
        size_t at = i * SERIES_BLOCK, part = len - at < SERIES_BLOCK ? len - at : SERIES_BLOCK;
        assert_int_equal(hashes[i], hash_bytes(data + at, part, i));
    }
    free(data);
}

static void rows_come_back_as_they_were_appended(void **state)
{
    static const uint32_t sizes[] = {1, 0, 1000, 70000, 3, 262144, 17, 200001};
    struct place place;
    struct row_spool *spool;
    struct stk_error err;

    (void)state;
    for (uint32_t columns = 1; columns < 20; columns += 5) {
        place_open(&place);
        struct row_spool_options options = options_of(&place, columns);
        assert_int_equal(row_spool_open(&spool, &options, &err), STK_OK);
        uint64_t rows = 0;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            assert_int_equal(add_rows(spool, rows, sizes[i], columns, &err), STK_OK);
            rows += sizes[i];
            if (i % 3 == 2) { /* to be read half-way, and gone on with */
                assert_int_equal(row_spool_flush(spool, &err), STK_OK);
                check_rows(spool, rows - 1, 1, columns);
                check_hashes(&place, spool);
            }
        }
        assert_int_equal(row_spool_flush(spool, &err), STK_OK);
        assert_int_equal(row_spool_rows(spool), rows);
        check_rows(spool, 0, (uint32_t)rows, columns);
        check_rows(spool, rows - 10, 10, columns);
        check_hashes(&place, spool);
        row_spool_free(spool);
        place_close(&place);
    }
}

static int names_in(const struct place *place, const char *name)
{
    return access(path_in(place->folder, name), F_OK) == 0;
}

static void files_go_with_the_spool_unless_they_are_kept(void **state)
{
    struct place place;
    struct row_spool *spool;
    struct stk_error err;

    (void)state;
    place_open(&place);
    struct row_spool_options options = options_of(&place, 2);
    assert_int_equal(row_spool_open(&spool, &options, &err), STK_OK);
    assert_int_equal(add_rows(spool, 0, 10, 2, &err), STK_OK);
    row_spool_free(spool);
    assert_int_equal(rmdir(place.folder), 0); /* nothing is in it */
    assert_int_equal(mkdir(place.folder, 0777), 0);
    close(place.fd);
    place.fd = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    options = options_of(&place, 2);
    options.values_name = "rows";
    assert_int_equal(row_spool_open(&spool, &options, &err), STK_OK);
    assert_int_equal(add_rows(spool, 0, 10, 2, &err), STK_OK);
    assert_int_equal(row_spool_flush(spool, &err), STK_OK);
    assert_int_equal(row_spool_rename(spool, SERIES_ARRAY, NULL, &err), STK_OK);
    row_spool_keep(spool);
    row_spool_free(spool);
    assert_true(names_in(&place, SERIES_ARRAY) && names_in(&place, SERIES_TIME));
    assert_false(names_in(&place, "rows") || names_in(&place, "rows.entities"));
    place_close(&place);
}

static void a_name_that_is_taken_is_refused(void **state)
{
    struct place place;
    struct row_spool *spool;
    struct stk_error err;

    (void)state;
    place_open(&place);
    text_write(path_in(place.folder, SERIES_TIME), "in use");
    struct row_spool_options options = options_of(&place, 2);
    assert_int_equal(row_spool_open(&spool, &options, &err), STK_IO);
    assert_null(spool);
    assert_non_null(strstr(err.object, SERIES_TIME));
    assert_false(names_in(&place, SERIES_ARRAY));
    char *text = file_read(path_in(place.folder, SERIES_TIME), NULL);
    assert_string_equal(text, "in use");
    free(text);
    place_close(&place);
}

static void a_full_disk_is_told_with_the_file(void **state)
{
    struct place place;
    struct row_spool *spool;
    struct stk_error err;
    struct rlimit before, small;

    (void)state;
    place_open(&place);
    struct row_spool_options options = options_of(&place, 16);
    assert_int_equal(row_spool_open(&spool, &options, &err), STK_OK);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 3 << 20;
    setrlimit(RLIMIT_FSIZE, &small);
    stk_status status = STK_OK;
    for (uint64_t row = 0; !status && row < 200000; row += 1000)
        status = add_rows(spool, row, 1000, 16, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, STK_IO);
    assert_non_null(strstr(err.object, SERIES_ARRAY));
    assert_true(err.remedy[0] != 0);
    row_spool_free(spool);
    assert_false(names_in(&place, SERIES_ARRAY));
    place_close(&place);
}

static int open_and_append(void *user)
{
    struct place *place = user;
    struct row_spool_options options = options_of(place, 3);
    struct row_spool *spool;
    stk_status status = row_spool_open(&spool, &options, NULL);

    if (!status)
        status = add_rows(spool, 0, 100, 3, NULL);
    if (!status)
        status = row_spool_flush(spool, NULL);
    row_spool_free(spool);
    assert_false(names_in(place, SERIES_ARRAY));
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void memory_that_runs_out_leaves_nothing(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    fail_each_allocation(open_and_append, &place);
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_as_they_were_appended),
        cmocka_unit_test(files_go_with_the_spool_unless_they_are_kept),
        cmocka_unit_test(a_name_that_is_taken_is_refused),
        cmocka_unit_test(a_full_disk_is_told_with_the_file),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
