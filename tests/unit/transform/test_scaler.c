#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/scaler.h"

#define ROWS 3000
#define COLUMNS 5

/* a, b, a constant, codes of a category, nothing but missing values. */
static double *table_new(void)
{
    double *table = malloc(ROWS * COLUMNS * sizeof *table);
    for (int i = 0; i < ROWS; i++) {
        double *row = table + (size_t)i * COLUMNS;
        row[0] = (i * 7919 % 1009) / 8.0 - 40;
        row[1] = 1e9 + (i * 31 % 97) / 32.0;
        row[2] = 0.1;
        row[3] = i % 3;
        row[4] = NAN;
    }
    return table;
}

static const uint8_t skip[COLUMNS] = {0, 0, 0, 1, 0};

static struct fit *fit_of(enum scaler_kind kind)
{
    struct fit *fit;
    assert_int_equal(fit_new(&fit, kind, COLUMNS, skip, NULL), STK_OK);
    return fit;
}

static struct scaler scaler_of(enum scaler_kind kind)
{
    struct fit *fit = fit_of(kind);
    double *table = table_new();
    struct scaler scaler;
    fit_add_rows(fit, table, STK_F64, ROWS);
    assert_int_equal(fit_scaler(fit, NULL, &scaler, NULL), STK_OK);
    assert_int_equal(scaler.kind, kind);
    assert_int_equal(scaler.count, COLUMNS);
    fit_free(fit);
    free(table);
    return scaler;
}

static void assert_near(double found, double wanted)
{
    assert_true(fabs(found - wanted) <= 1e-12 * fabs(wanted));
}

/* The numbers below are scikit-learn's (1.9.1):
 *   i = np.arange(3000.0); a = (i * 7919 % 1009) / 8 - 40; b = 1e9 + (i * 31 % 97) / 32
 *   x = np.c_[a, b, np.full(3000, 0.1)]
 *   s = StandardScaler().fit(x); s.mean_, s.var_, s.scale_
 *   m = MinMaxScaler().fit(x); m.data_min_, 1 / m.scale_
 *   r = RobustScaler().fit(x); r.center_, r.scale_ */
static void standard_is_scikit_learns(void **state)
{
    (void)state;
    struct scaler scaler = scaler_of(SCALER_STANDARD);
    const struct scaler_column *column = scaler.columns;
    assert_near(column[0].mean, 23.007083333333334);
    assert_near(column[0].variance, 1325.5424394097226);
    assert_near(column[0].center, 23.007083333333334);
    assert_near(column[0].scale, 36.40799966229569);
    assert_near(column[1].mean, 1000000001.5004166);
    assert_near(column[1].variance, 0.765695789930567);
    assert_near(column[1].scale, 0.8750404504539016);
    assert_int_equal(column[1].count, ROWS);
    scaler_reset(&scaler);
}

static void minmax_is_scikit_learns(void **state)
{
    (void)state;
    struct scaler scaler = scaler_of(SCALER_MINMAX);
    assert_true(scaler.columns[0].center == -40 && scaler.columns[0].scale == 126);
    assert_true(scaler.columns[1].center == 1e9 && scaler.columns[1].scale == 3);
    assert_true(scaler.columns[0].min == -40 && scaler.columns[0].max == 86);
    scaler_reset(&scaler);
}

static void robust_is_scikit_learns_while_exact(void **state)
{
    (void)state;
    struct scaler scaler = scaler_of(SCALER_ROBUST);
    assert_near(scaler.columns[0].center, 23);
    assert_near(scaler.columns[0].scale, 63);
    assert_near(scaler.columns[0].low, -8.5);
    assert_near(scaler.columns[0].high, 54.5);
    assert_near(scaler.columns[1].median, 1000000001.5);
    assert_near(scaler.columns[1].scale, 1.5);
    scaler_reset(&scaler);
}

static void constant_skipped_and_empty_columns_have_scale_1(void **state)
{
    (void)state;
    for (enum scaler_kind kind = SCALER_STANDARD; kind <= SCALER_NONE; kind++) {
        struct scaler scaler = scaler_of(kind);
        const struct scaler_column *column = scaler.columns;
        assert_true(column[2].center == (kind == SCALER_NONE ? 0 : 0.1) && column[2].scale == 1);
        assert_true(column[3].center == 0 && column[3].scale == 1);
        assert_near(column[3].mean, 1); /* known all the same */
        assert_true(column[4].center == 0 && column[4].scale == 1 && column[4].count == 0);
        scaler_reset(&scaler);
    }
}

/* Rounding alone: scikit-learn's bound of n * eps * var + (n * mean * eps)^2. */
static void a_variance_within_rounding_counts_as_none(void **state)
{
    (void)state;
    struct fit *fit;
    struct scaler scaler;
    double values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = 1e8 + (i % 2 ? 1.5e-8 : 0); /* one digit apart */
    assert_int_equal(fit_new(&fit, SCALER_STANDARD, 1, NULL, NULL), STK_OK);
    fit_add(fit, 0, values, STK_F64, 1000, 1);
    assert_int_equal(fit_scaler(fit, NULL, &scaler, NULL), STK_OK);
    assert_true(scaler.columns[0].variance > 0 && scaler.columns[0].scale == 1);
    scaler_reset(&scaler);
    fit_reset(fit);
    for (int i = 0; i < 1000; i++)
        values[i] = 1e8 + (i % 2 ? 1e-3 : 0);
    fit_add(fit, 0, values, STK_F64, 1000, 1);
    assert_int_equal(fit_scaler(fit, NULL, &scaler, NULL), STK_OK);
    assert_true(fabs(scaler.columns[0].scale - 5e-4) < 1e-8);
    scaler_reset(&scaler);
    fit_free(fit);
}

static void assert_same_fit(const struct fit *one, const struct fit *other)
{
    struct scaler a, b;
    assert_int_equal(fit_scaler(one, NULL, &a, NULL), STK_OK);
    assert_int_equal(fit_scaler(other, NULL, &b, NULL), STK_OK);
    assert_memory_equal(a.columns, b.columns, a.count * sizeof *a.columns);
    scaler_reset(&a);
    scaler_reset(&b);
}

/* 37 columns: two groups and a rest that is no multiple of 4; 3 rows beyond a square of 4. */
static void rows_and_columns_give_the_same_bits(void **state)
{
    (void)state;
    enum { WIDE = 37, LONG = 2 * FIT_BLOCK + 515 };
    float *small = malloc(WIDE * LONG * sizeof *small);
    double *large = malloc(WIDE * LONG * sizeof *large), *column = malloc(LONG * sizeof *column);
    for (uint64_t i = 0; i < WIDE * LONG; i++) {
        small[i] = random_below(1, i, 9) ? (float)random_unit(2, i) * 1000 : NAN;
        large[i] = small[i];
    }
    for (enum scaler_kind kind = SCALER_STANDARD; kind <= SCALER_NONE; kind++) {
        struct fit *fits[4];
        for (int i = 0; i < 4; i++)
            assert_int_equal(fit_new(&fits[i], kind, WIDE, NULL, NULL), STK_OK);
        fit_add_rows(fits[0], small, STK_F32, LONG);
        fit_add_rows(fits[1], large, STK_F64, LONG);
        for (uint32_t i = 0; i < WIDE; i++) {
            fit_add(fits[2], i, small + i, STK_F32, LONG, WIDE);
            for (int row = 0; row < LONG; row++)
                column[row] = large[row * WIDE + (int)i];
            fit_add(fits[3], i, column, STK_F64, LONG, 1);
        }
        for (int i = 1; i < 4; i++)
            assert_same_fit(fits[0], fits[i]);
        for (int i = 0; i < 4; i++)
            fit_free(fits[i]);
    }
    free(small);
    free(large);
    free(column);
}

/* As two, then five threads would do it: the pieces are the same, so are the bits. */
static void the_cut_decides_the_bits_and_not_who_fits(void **state)
{
    (void)state;
    enum { LONG = 40000, PIECE = 4096 };
    double *values = malloc(LONG * sizeof *values);
    for (uint64_t i = 0; i < LONG; i++)
        values[i] = 1e9 + random_unit(5, i);
    for (enum scaler_kind kind = SCALER_STANDARD; kind <= SCALER_NONE; kind++) {
        struct fit *fresh, *again, *piece;
        assert_int_equal(fit_new(&fresh, kind, 1, NULL, NULL), STK_OK);
        assert_int_equal(fit_new(&again, kind, 1, NULL, NULL), STK_OK);
        assert_int_equal(fit_new(&piece, kind, 1, NULL, NULL), STK_OK);
        for (int at = 0; at < LONG; at += PIECE) {
            struct fit *own;
            int n = LONG - at < PIECE ? LONG - at : PIECE;
            assert_int_equal(fit_new(&own, kind, 1, NULL, NULL), STK_OK);
            fit_add(own, 0, values + at, STK_F64, (uint64_t)n, 1);
            fit_merge(fresh, own);
            fit_free(own);
            fit_reset(piece);
            fit_add_rows(piece, values + at, STK_F64, (uint64_t)n);
            fit_merge(again, piece);
        }
        assert_same_fit(fresh, again);
        fit_free(fresh);
        fit_free(again);
        fit_free(piece);
    }
    free(values);
}

static void infinite_values_are_refused_by_number_and_by_name(void **state)
{
    (void)state;
    const double bad[][3] = {{1, INFINITY, 3}, {1e300, -1e300, 1e300}, {-1.7e308, 1.7e308, 0}};
    for (int i = 0; i < 3; i++) {
        struct fit *fit = fit_of(SCALER_STANDARD);
        struct scaler scaler;
        struct stk_error err = {0};
        fit_add(fit, 1, bad[i], STK_F64, 3, 1);
        assert_int_equal(fit_scaler(fit, NULL, &scaler, &err), STK_CORRUPT);
        assert_non_null(strstr(err.what, "column 1"));
        assert_null(scaler.columns);
        const char *const names[] = {"open", "volume", "close", "day"};
        assert_int_equal(fit_scaler(fit, names, &scaler, &err), STK_CORRUPT);
        assert_non_null(strstr(err.what, "column volume"));
        assert_string_equal(err.field, "volume");
        fit_free(fit);
    }
}

static struct scaler parse(const char *text, uint32_t count, stk_status wanted, const char *words)
{
    struct json *json;
    struct scaler scaler;
    struct stk_error err = {0};
    assert_int_equal(json_parse(&json, text, strlen(text), NULL), STK_OK);
    stk_status status = scaler_parse(&scaler, json, count, &err);
    if (status != wanted)
        print_message("%s\n%s\n", err.what, text);
    assert_int_equal(status, wanted);
    if (wanted) {
        assert_non_null(strstr(err.what, words));
        assert_null(scaler.columns);
    }
    json_free(json);
    return scaler;
}

static void json_brings_back_every_bit(void **state)
{
    (void)state;
    const char *names[COLUMNS] = {"a", "b \"quoted\"", "c", "d", "e"};
    for (enum scaler_kind kind = SCALER_STANDARD; kind <= SCALER_NONE; kind++) {
        struct scaler scaler = scaler_of(kind);
        struct text text = {0};
        scaler_json(&scaler, names, &text);
        assert_false(text.failed);
        struct scaler back = parse(text.data, COLUMNS, STK_OK, "");
        assert_int_equal(back.kind, kind);
        assert_memory_equal(back.columns, scaler.columns, COLUMNS * sizeof *scaler.columns);
        scaler_reset(&back);
        scaler_reset(&scaler);
        text_free(&text);
    }
}

static void the_names_of_scikit_learn_are_read(void **state)
{
    (void)state;
    struct scaler scaler =
        parse("{\"mean_\": [1, 2.5], \"scale_\": [3, 4], \"var_\": [9, 16]}", 2, STK_OK, "");
    assert_int_equal(scaler.kind, SCALER_STANDARD);
    assert_true(scaler.columns[1].center == 2.5 && scaler.columns[1].scale == 4);
    assert_true(scaler.columns[0].mean == 1 && scaler.columns[0].variance == 9);
    assert_true(scaler.columns[0].max == 0 && scaler.columns[0].count == 0);
    scaler_reset(&scaler);
}

static void nonsense_is_refused_with_words(void **state)
{
    (void)state;
    (void)parse("{\"center\": [1]}", 1, STK_CORRUPT, "\"scale\"");
    (void)parse("{\"center\": [1], \"scale\": [1, 2]}", 1, STK_CORRUPT, "2 entries for 1 columns");
    (void)parse("{\"center\": [1], \"scale\": [0]}", 1, STK_CORRUPT, "is 0");
    (void)parse("{\"center\": [null], \"scale\": [1]}", 1, STK_CORRUPT, "\"center\" has no finite");
    (void)parse("{\"center\": [\"1\"], \"scale\": [1]}", 1, STK_CORRUPT, "no finite number");
    (void)parse("{\"center\": 1, \"scale\": [1]}", 1, STK_CORRUPT, "not a list");
    (void)parse("{\"kind\": \"l2\", \"center\": [1], \"scale\": [1]}", 1, STK_CORRUPT, "\"l2\"");
    (void)parse("{\"kind\": 3, \"center\": [1], \"scale\": [1]}", 1, STK_CORRUPT, "not a text");
    (void)parse("{\"center\": [1], \"scale\": [1], \"count\": [-1]}", 1, STK_CORRUPT, "\"count\"");
    (void)parse("{\"center\": [1], \"scale\": [1], \"features\": []}", 1, STK_CORRUPT, "features");
}

static int fit_and_ask(void *user)
{
    struct fit *fit;
    struct scaler scaler = {0};
    (void)user;
    if (fit_new(&fit, SCALER_ROBUST, 3, skip, NULL))
        return 0;
    fit_add_rows(fit, (double[]){1, 2, 3, 4, 5, 6}, STK_F64, 2);
    stk_status status = fit_scaler(fit, NULL, &scaler, NULL);
    fit_free(fit);
    scaler_reset(&scaler);
    return status == STK_OK;
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    fail_each_allocation(fit_and_ask, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_is_scikit_learns),
        cmocka_unit_test(minmax_is_scikit_learns),
        cmocka_unit_test(robust_is_scikit_learns_while_exact),
        cmocka_unit_test(constant_skipped_and_empty_columns_have_scale_1),
        cmocka_unit_test(a_variance_within_rounding_counts_as_none),
        cmocka_unit_test(rows_and_columns_give_the_same_bits),
        cmocka_unit_test(the_cut_decides_the_bits_and_not_who_fits),
        cmocka_unit_test(infinite_values_are_refused_by_number_and_by_name),
        cmocka_unit_test(json_brings_back_every_bit),
        cmocka_unit_test(the_names_of_scikit_learn_are_read),
        cmocka_unit_test(nonsense_is_refused_with_words),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
