#include "base/testing.h"

#include <math.h>

#include "pack/rows_pack.h"

#define MAX_COLUMNS 35
#define MAX_ROWS 9
#define MAX_VALUES 70

static void every_value_finds_its_row_and_column(void **state)
{
    static char memory[MAX_COLUMNS][MAX_ROWS * sizeof(double) + 1];
    static char rows[MAX_COLUMNS * MAX_ROWS * sizeof(double)];
    const void *columns[MAX_COLUMNS];

    (void)state;
    for (int dtype = 0; dtype < 2; dtype++)
        for (uint32_t count = 1; count <= MAX_COLUMNS; count++)
            for (uint32_t n = 1; n <= MAX_ROWS; n++) {
                enum stk_dtype kind = dtype ? STK_F64 : STK_F32;
                size_t size = stk_dtype_size(kind);
                for (uint32_t c = 0; c < count; c++) {
                    columns[c] = memory[c] + (c & 1); /* every other one is not aligned */
                    for (size_t i = 0; i < n * size; i++)
                        memory[c][i + (c & 1)] = (char)(c * 37 + i);
                }
                rows_pack(rows, columns, count, n, kind);
                for (uint32_t i = 0; i < n; i++)
                    for (uint32_t c = 0; c < count; c++)
                        assert_memory_equal(rows + (i * count + c) * size,
                                            (const char *)columns[c] + i * size, size);
            }
}

static void one_value_that_is_not_finite_is_seen_anywhere(void **state)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, -NAN};
    static const double good[] = {0, -0.0, 3.4e38, -3.4e38, 1e-45, 1};
    double wide[MAX_VALUES];
    float narrow[MAX_VALUES];

    (void)state;
    for (uint32_t i = 0; i < MAX_VALUES; i++) {
        wide[i] = good[i % 6];
        narrow[i] = (float)wide[i];
    }
    wide[3] = 1.7e308;
    for (uint32_t n = 0; n <= MAX_VALUES; n++) {
        assert_true(rows_all_finite(narrow, n, STK_F32));
        assert_true(rows_all_finite(wide, n, STK_F64));
        for (uint32_t at = 0; at < n; at++) {
            double kept = wide[at];
            for (int k = 0; k < 4; k++) {
                wide[at] = odd[k];
                narrow[at] = (float)odd[k];
                assert_false(rows_all_finite(narrow, n, STK_F32));
                assert_false(rows_all_finite(wide, n, STK_F64));
            }
            wide[at] = kept;
            narrow[at] = (float)good[at % 6];
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_finds_its_row_and_column),
        cmocka_unit_test(one_value_that_is_not_finite_is_seen_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
