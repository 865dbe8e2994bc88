#include "base/testing.h"

#include <malloc.h>
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "format/series_meta.h"
#include "pack/series_fit.h"

#define MIB (UINT64_C(1) << 20)
#define COLUMNS 450u /* three passes of sketches where there is no memory for them */
#define ROWS 6000u   /* more than a sketch holds */
#define CODES 300u   /* a column of categories */

struct place {
    char folder[PATH_MAX];
    int fd;
    char names[COLUMNS][8];
    const char *pointers[COLUMNS];
    uint8_t skip[COLUMNS];
    struct series_range range;
    struct stk_error err;
};

static float value_of(uint64_t row, uint64_t column)
{
    return (float)(random_unit(column, row) * (double)(column + 1));
}

static void place_open(struct place *place)
{
    float row[COLUMNS];

    memset(place, 0, sizeof(*place));
    folder_new(place->folder);
    place->fd = open(path_in(place->folder, "rows"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    for (uint64_t i = 0; i < ROWS; i++) {
        for (uint32_t c = 0; c < COLUMNS; c++)
            row[c] = value_of(i, c);
        assert_int_equal(write(place->fd, row, sizeof(row)), sizeof(row));
    }
    for (uint32_t c = 0; c < COLUMNS; c++) {
        snprintf(place->names[c], sizeof(place->names[c]), "f%u", c);
        place->pointers[c] = place->names[c];
    }
    place->skip[CODES] = 1;
    place->range = (struct series_range){0, ROWS};
}

static void place_close(struct place *place)
{
    close(place->fd);
    folder_remove(place->folder);
}

static stk_status fit_in(struct place *place, uint64_t memory, uint32_t threads, struct scaler *out)
{
    const struct series_fit fit = {.threads = threads,
                                   .memory = memory,
                                   .fd = place->fd,
                                   .label = "rows",
                                   .dtype = STK_F32,
                                   .columns = COLUMNS,
                                   .names = place->pointers,
                                   .skip = place->skip,
                                   .kind = SCALER_ROBUST,
                                   .ranges = &place->range,
                                   .range_count = 1};

    return series_fit_run(&fit, out, &place->err);
}

/* The share of a column's values below a number. */
static double rank_of(uint32_t column, double number)
{
    uint64_t below = 0;

    for (uint64_t i = 0; i < ROWS; i++)
        below += (double)value_of(i, column) < number;
    return (double)below / ROWS;
}

static void quantiles_have_the_same_bits_for_any_memory_and_threads(void **state)
{
    static const uint32_t some[] = {0, 63, 64, 199, 210, 301, COLUMNS - 1};
    struct place place;
    struct scaler whole, scaler;

    (void)state;
    place_open(&place);
    assert_int_equal(fit_in(&place, 1024 * MIB, 1, &whole), STK_OK);
    for (uint32_t threads = 1; threads < 10; threads += 4) {
        assert_int_equal(fit_in(&place, MIB, threads, &scaler), STK_OK);
        assert_int_equal(scaler.count, COLUMNS);
        assert_memory_equal(whole.columns, scaler.columns, COLUMNS * sizeof(*whole.columns));
        scaler_reset(&scaler);
    }
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        const struct scaler_column *column = &whole.columns[some[i]];
        assert_true(fabs(rank_of(some[i], column->low) - 0.25) <= FIT_RANK_ERROR);
        assert_true(fabs(rank_of(some[i], column->center) - 0.5) <= FIT_RANK_ERROR);
        assert_true(fabs(rank_of(some[i], column->high) - 0.75) <= FIT_RANK_ERROR);
    }
    assert_true(whole.columns[CODES].center == 0 && whole.columns[CODES].scale == 1);
    scaler_reset(&whole);
    place_close(&place);
}

/* What is allocated when the next allocation comes; the caller's thread makes them all. */
static int note_peak(void *user, size_t size)
{
    struct mallinfo2 info = mallinfo2();
    size_t *peak = user, used = info.uordblks + info.hblkhd + size;

    *peak = used > *peak ? used : *peak;
    return 0;
}

static void sketches_of_many_columns_stay_within_the_budget(void **state)
{
    struct place place;
    struct scaler scaler;
    size_t before = 0, peak = 0;

    (void)state;
    place_open(&place);
    note_peak(&before, 0);
    memory_set_hook(note_peak, &peak);
    assert_int_equal(fit_in(&place, 8 * MIB, 2, &scaler), STK_OK);
    memory_set_hook(NULL, NULL);
    assert_in_range(peak - before, 0, 20 * MIB);
    scaler_reset(&scaler);
    place_close(&place);
}

static void a_column_of_a_later_pass_is_named(void **state)
{
    const float wild = INFINITY;
    struct place place;
    struct scaler scaler = {0};

    (void)state;
    place_open(&place);
    assert_int_equal(pwrite(place.fd, &wild, sizeof(wild), (off_t)(5 * COLUMNS + 420) * 4),
                     sizeof(wild));
    assert_int_equal(fit_in(&place, MIB, 2, &scaler), STK_CORRUPT);
    assert_string_equal(place.err.field, "f420");
    assert_null(scaler.columns);
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_have_the_same_bits_for_any_memory_and_threads),
        cmocka_unit_test(sketches_of_many_columns_stay_within_the_budget),
        cmocka_unit_test(a_column_of_a_later_pass_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
