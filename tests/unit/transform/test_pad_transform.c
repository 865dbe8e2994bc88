#include "base/testing.h"

#include "transform/chain.h"

struct trial {
    struct chain chain;
    struct stk_flow in, out;
    struct stk_error err;
    uint8_t result[4096];
};

static stk_status trial_run(struct trial *trial, const char *text, uint8_t *pixels, int64_t height,
                            int64_t width, int64_t channels)
{
    struct scratch scratch = {0};
    *trial = (struct trial){.in = {.media = STK_MEDIA_IMAGE,
                                   .tensor = {.data = pixels,
                                              .dtype = STK_U8,
                                              .rank = 3,
                                              .shape = {height, width, channels}}}};
    trial->out = trial->in;
    stk_status status = chain_parse(&trial->chain, text, NULL, &trial->err);
    const struct chain_step *step = &trial->chain.steps[0];
    if (!status)
        status = step->ops->shape(step->args, NULL, &trial->out, &trial->err);
    if (!status) {
        assert_true(stk_tensor_size(&trial->out.tensor) <= sizeof trial->result);
        trial->out.tensor.data = trial->result;
        status = step->ops->run(step->args, NULL, &trial->in, &trial->out, &scratch, &trial->err);
    }
    chain_reset(&trial->chain);
    return status;
}

/* One row, padded left and right only. What numpy.pad makes of 1 2 3. */
static void assert_row(const char *text, const char *wanted)
{
    struct trial trial;
    uint8_t row[3] = {1, 2, 3};
    char found[200] = "";
    assert_int_equal(trial_run(&trial, text, row, 1, 3, 1), STK_OK);
    assert_int_equal(trial.out.tensor.shape[0], 1);
    for (int64_t x = 0; x < trial.out.tensor.shape[1]; x++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%d ", trial.result[x]);
    assert_string_equal(found, wanted);
}

static void borders_are_made_as_numpy_makes_them(void **state)
{
    (void)state;
    assert_row("Pad((2, 0))", "0 0 1 2 3 0 0 ");
    assert_row("Pad((1, 0, 2, 0), fill=9)", "9 1 2 3 9 9 ");
    assert_row("Pad((2, 0), padding_mode='edge')", "1 1 1 2 3 3 3 ");
    assert_row("Pad((2, 0), padding_mode='reflect')", "3 2 1 2 3 2 1 ");
    assert_row("Pad((2, 0), padding_mode='symmetric')", "2 1 1 2 3 3 2 ");
    assert_row("Pad((5, 0), padding_mode='reflect')", "2 1 2 3 2 1 2 3 2 1 2 3 2 ");
    assert_row("Pad((4, 0), padding_mode='symmetric')", "3 3 2 1 1 2 3 3 2 1 1 ");
}

static void all_four_sides_and_all_channels_are_padded(void **state)
{
    struct trial trial;
    uint8_t pixels[2 * 2 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    (void)state;
    assert_int_equal(trial_run(&trial, "Pad((1, 2, 3, 4), (50, 60, 70))", pixels, 2, 2, 3), STK_OK);
    assert_int_equal(trial.out.tensor.shape[0], 2 + 2 + 4);
    assert_int_equal(trial.out.tensor.shape[1], 1 + 2 + 3);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 6; x++)
            for (int c = 0; c < 3; c++) {
                int inside = y >= 2 && y < 4 && x >= 1 && x < 3;
                int wanted = inside ? pixels[((y - 2) * 2 + x - 1) * 3 + c] : 50 + 10 * c;
                assert_int_equal(trial.result[(y * 6 + x) * 3 + c], wanted);
            }
    assert_int_equal(trial_run(&trial, "Pad(1, padding_mode=reflect)", pixels, 1, 1, 3), STK_OK);
    assert_memory_equal(trial.result + 24, pixels, 3); /* one pixel mirrors itself */
}

static void a_pad_that_does_not_fit_is_refused(void **state)
{
    struct trial trial;
    uint8_t pixels[12];
    (void)state;
    assert_int_equal(trial_run(&trial, "Pad((1, 2, 3))", pixels, 2, 2, 3), STK_USAGE);
    assert_int_equal(trial_run(&trial, "Pad(1.5)", pixels, 2, 2, 3), STK_USAGE);
    assert_int_equal(trial_run(&trial, "Pad(-1)", pixels, 2, 2, 3), STK_USAGE);
    assert_int_equal(trial_run(&trial, "Pad(1, (1, 2))", pixels, 2, 2, 3), STK_USAGE);
    assert_non_null(strstr(trial.err.what, "2 numbers for 3 channels"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_are_made_as_numpy_makes_them),
        cmocka_unit_test(all_four_sides_and_all_channels_are_padded),
        cmocka_unit_test(a_pad_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
