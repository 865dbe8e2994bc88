#include "base/testing.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "format/series_meta.h"
#include "pack/series_finish.h"
#include "pack/series_fit.h"

#define COLUMNS 17u /* rows are cut by the bounds of blocks */
#define ROWS 60000u /* 4 MB of float32: four blocks, or eight of float64 */

static const char *const names[COLUMNS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                           "j", "k", "l", "m", "n", "o", "p", "q"};

struct place {
    char folder[PATH_MAX];
    int fd;
    struct row_spool *spool;
    struct finish_entity entities[3];
    struct scaler scaler;
    double means[COLUMNS];
    struct stk_error err;
};

/* A hole in every fifth value, and no value at all in column 3 but one. */
static double value_of(uint64_t row, uint32_t column)
{
    uint64_t mixed = (row * COLUMNS + column) * UINT64_C(0x9e3779b97f4a7c15) >> 40;

    if (column == 3 ? row != 41000 : mixed % 5 == 0)
        return (double)NAN;
    return (double)(mixed % 1000) / 4;
}

static void place_open(struct place *place, enum stk_dtype dtype)
{
    memset(place, 0, sizeof(*place));
    folder_new(place->folder);
    place->fd = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct row_spool_options options = {.folder_fd = place->fd,
                                              .label = place->folder,
                                              .dtype = dtype,
                                              .columns = COLUMNS,
                                              .values_name = SERIES_ARRAY,
                                              .times_name = SERIES_TIME};
    assert_int_equal(row_spool_open(&place->spool, &options, &place->err), STK_OK);
    for (uint64_t row = 0; row < ROWS; row++) {
        double wide[COLUMNS];
        float narrow[COLUMNS];
        for (uint32_t c = 0; c < COLUMNS; c++)
            narrow[c] = (float)(wide[c] = value_of(row, c));
        struct row_block block = {1, dtype == STK_F32 ? (void *)narrow : wide, NULL, NULL};
        assert_int_equal(row_spool_append(place->spool, &block, &place->err), STK_OK);
    }
    assert_int_equal(row_spool_flush(place->spool, &place->err), STK_OK);
    place->entities[0] = (struct finish_entity){"first", 10, 0, 0};
    place->entities[1] = (struct finish_entity){"second", 40000, 0, 1};
    place->entities[2] = (struct finish_entity){"third", ROWS - 40010, 0, 2};
    assert_int_equal(scaler_init(&place->scaler, SCALER_STANDARD, COLUMNS, NULL), STK_OK);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        place->scaler.columns[c].center = c + 0.1;
        place->scaler.columns[c].scale = 1 + c / 3.0;
        place->means[c] = 1000 + c;
    }
}

static void place_close(struct place *place)
{
    row_spool_free(place->spool);
    scaler_reset(&place->scaler);
    close(place->fd);
    folder_remove(place->folder);
}

static struct series_finish finish_of(struct place *place, int array_fd, uint32_t threads)
{
    return (struct series_finish){.threads = threads,
                                  .memory = 64 << 20,
                                  .spool = place->spool,
                                  .array_fd = array_fd,
                                  .label = place->folder,
                                  .dtype = STK_F32,
                                  .columns = names,
                                  .scaler = &place->scaler,
                                  .missing = STK_MISSING_FFILL,
                                  .has_missing = 1,
                                  .means = place->means,
                                  .entities = place->entities,
                                  .entity_count = 3};
}

static uint64_t entity_start(uint64_t row)
{
    return row < 10 ? 0 : row < 40010 ? 10 : 40010;
}

static void check_array(const struct place *place, const float *array)
{
    for (uint32_t c = 0; c < COLUMNS; c++) {
        double carry = (double)NAN;
        for (uint64_t row = 0; row < ROWS; row++) {
            double raw = value_of(row, c);
            if (row == entity_start(row))
                carry = (double)NAN;
            carry = isnan(raw) ? carry : raw;
            raw = isnan(carry) ? place->means[c] : carry;
            float want =
                (float)((raw - place->scaler.columns[c].center) / place->scaler.columns[c].scale);
            assert_true(array[row * COLUMNS + c] == want);
        }
    }
}

static void check_hashes(const char *array, size_t len, const uint64_t *hashes, uint64_t count)
{
    assert_int_equal(count, (len + SERIES_BLOCK - 1) / SERIES_BLOCK);
    for (uint64_t i = 0; i < count; i++) {
        size_t left = len - i * SERIES_BLOCK;
        assert_int_equal(hashes[i], hash_bytes(array + i * SERIES_BLOCK,
                                               left < SERIES_BLOCK ? left : SERIES_BLOCK, i));
    }
}

/* In place from float32, or into another file from float64. */
static void values_run_on_from_block_to_block(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        enum stk_dtype dtype = way & 1 ? STK_F64 : STK_F32;
        struct place place;
        uint64_t *hashes, count;
        size_t len;
        place_open(&place, dtype);
        int fd = dtype == STK_F32 ? row_spool_values_fd(place.spool)
                                  : openat(place.fd, "array", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        struct series_finish finish = finish_of(&place, fd, way & 2 ? 5 : 1);
        assert_int_equal(series_finish_run(&finish, &hashes, &count, &place.err), STK_OK);
        char *array =
            file_read(path_in(place.folder, dtype == STK_F32 ? SERIES_ARRAY : "array"), &len);
        assert_int_equal(len, ROWS * COLUMNS * sizeof(float));
        check_array(&place, (float *)(void *)array);
        check_hashes(array, len, hashes, count);
        free(array);
        free(hashes);
        if (dtype == STK_F64)
            close(fd);
        place_close(&place);
    }
}

static void hashes_alone_leave_the_file_as_it_is(void **state)
{
    struct place place;
    uint64_t *hashes, count;
    size_t len;

    (void)state;
    place_open(&place, STK_F32);
    struct series_finish finish = finish_of(&place, row_spool_values_fd(place.spool), 2);
    char *before = file_read(path_in(place.folder, SERIES_ARRAY), &len);
    finish.scaler = NULL;
    finish.has_missing = 0;
    assert_int_equal(series_finish_run(&finish, &hashes, &count, &place.err), STK_OK);
    char *after = file_read(path_in(place.folder, SERIES_ARRAY), &len);
    assert_memory_equal(before, after, len);
    check_hashes(after, len, hashes, count);
    free(before);
    free(after);
    free(hashes);
    place_close(&place);
}

/* Whatever the threads: the first row in order is the one that is named. */
static void the_first_bad_value_is_named(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads < 6; threads += 2) {
        struct place place;
        uint64_t *hashes, count;
        place_open(&place, STK_F64);
        for (uint64_t row = 20000; row < ROWS; row += 7000) { /* every later block has one */
            double wild = 1e200;
            assert_int_equal(pwrite(row_spool_values_fd(place.spool), &wild, sizeof(wild),
                                    (off_t)((row * COLUMNS + 5) * sizeof(wild))),
                             sizeof(wild));
        }
        int fd = openat(place.fd, "array", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        struct series_finish finish = finish_of(&place, fd, threads);
        assert_int_equal(series_finish_run(&finish, &hashes, &count, &place.err), STK_CORRUPT);
        assert_null(hashes);
        assert_non_null(strstr(place.err.what, "entity 'second', row 19990, column 'f'"));
        close(fd);
        place_close(&place);
    }
}

static void a_full_disk_is_told(void **state)
{
    struct place place;
    struct rlimit before, small;
    uint64_t *hashes, count;

    (void)state;
    place_open(&place, STK_F64);
    int fd = openat(place.fd, "array", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    struct series_finish finish = finish_of(&place, fd, 3);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 5 << 19;
    setrlimit(RLIMIT_FSIZE, &small);
    stk_status status = series_finish_run(&finish, &hashes, &count, &place.err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, STK_IO);
    assert_true(place.err.remedy[0] && place.err.object[0]);
    close(fd);
    place_close(&place);
}

/* --- fitting -------------------------------------------------------------------------------------
 */

/* Ranges of all lengths, some empty, five times over all rows: several pieces. */
static uint64_t make_ranges(struct series_range *ranges)
{
    uint64_t count = 0;

    for (int pass = 0; pass < 5; pass++)
        for (uint64_t row = 0; row < ROWS; count++) {
            uint64_t len = count % 5 == 4 ? 0 : 1 + count * 37 % 3000;
            ranges[count].start = row;
            ranges[count].end = row + len < ROWS ? row + len : ROWS;
            row = ranges[count].end + count % 3;
        }
    return count;
}

static void check_fit(const struct scaler *scaler, const struct series_range *ranges,
                      uint64_t range_count)
{
    for (uint32_t c = 0; c < COLUMNS; c++) {
        long double sum = 0, square = 0;
        uint64_t n = 0;
        for (uint64_t r = 0; r < range_count; r++)
            for (uint64_t row = ranges[r].start; row < ranges[r].end; row++)
                if (!isnan(value_of(row, c))) {
                    sum += value_of(row, c);
                    n++;
                }
        long double mean = n ? sum / n : 0;
        for (uint64_t r = 0; r < range_count; r++)
            for (uint64_t row = ranges[r].start; row < ranges[r].end; row++)
                if (!isnan(value_of(row, c)))
                    square += (value_of(row, c) - mean) * (value_of(row, c) - mean);
        assert_int_equal(scaler->columns[c].count, n);
        assert_true(fabs(scaler->columns[c].mean - (double)mean) < 1e-9);
        if (n > 1)
            assert_true(fabs(scaler->columns[c].variance - (double)(square / n)) < 1e-6);
    }
}

static void a_fit_has_the_same_bits_for_any_number_of_threads(void **state)
{
    static struct series_range ranges[ROWS];
    static const enum scaler_kind kinds[] = {SCALER_STANDARD, SCALER_MINMAX, SCALER_ROBUST};
    struct place place;
    uint64_t count = make_ranges(ranges);

    (void)state;
    place_open(&place, STK_F32);
    for (size_t k = 0; k < 3; k++) {
        struct scaler first = {0};
        for (uint32_t threads = 1; threads < 8; threads += 3) {
            struct scaler scaler;
            const struct series_fit fit = {.threads = threads,
                                           .memory = 64 << 20,
                                           .fd = row_spool_values_fd(place.spool),
                                           .label = place.folder,
                                           .dtype = STK_F32,
                                           .columns = COLUMNS,
                                           .names = names,
                                           .kind = kinds[k],
                                           .ranges = ranges,
                                           .range_count = count};
            assert_int_equal(series_fit_run(&fit, &scaler, &place.err), STK_OK);
            check_fit(&scaler, ranges, count);
            if (threads > 1)
                assert_memory_equal(first.columns, scaler.columns,
                                    COLUMNS * sizeof(*scaler.columns));
            scaler_reset(&first);
            first = scaler;
        }
        scaler_reset(&first);
    }
    place_close(&place);
}

static void rows_cut_short_are_told(void **state)
{
    struct series_range range = {0, ROWS};
    struct place place;
    struct scaler scaler = {0};

    (void)state;
    place_open(&place, STK_F32);
    assert_int_equal(truncate(path_in(place.folder, SERIES_ARRAY), ROWS * COLUMNS * 2), 0);
    const struct series_fit fit = {.threads = 2,
                                   .memory = 64 << 20,
                                   .fd = row_spool_values_fd(place.spool),
                                   .label = place.folder,
                                   .dtype = STK_F32,
                                   .columns = COLUMNS,
                                   .names = names,
                                   .kind = SCALER_STANDARD,
                                   .ranges = &range,
                                   .range_count = 1};
    assert_int_equal(series_fit_run(&fit, &scaler, &place.err), STK_TRUNCATED);
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_run_on_from_block_to_block),
        cmocka_unit_test(hashes_alone_leave_the_file_as_it_is),
        cmocka_unit_test(the_first_bad_value_is_named),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_fit_has_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(rows_cut_short_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
