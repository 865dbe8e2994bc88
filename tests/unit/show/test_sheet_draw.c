/* test_sheet_draw.c -- contact sheets of shards of JPEGs. */
#include "loader/media_fixture.h"

#include "stoker/show.h"
#include "base/memory.h"
#include "show/color_map.h"

#define CHAIN "RandomResizedCrop(48) | RandomHorizontalFlip | ColorJitter(brightness=0.4)"
#define CELL 48

static const uint64_t all[8] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct stk_show_options options_of(uint32_t count)
{
    return (struct stk_show_options){
        .positions = all, .count = count, .cell = CELL, .columns = 3, .chain = CHAIN, .seed = 5};
}

static struct stk_sheet *sheet_of(struct fixture *fixture, const struct stk_show_options *options)
{
    struct stk_sheet *sheet;
    struct stk_error err;
    if (stk_sheet_draw(fixture->context, fixture->dataset, &sheet, options, &err))
        fixture_fail(&err);
    return sheet;
}

/* Row y of a box, without the frame of 2 pixels around it. */
static const uint8_t *inner_row(const struct stk_sheet *sheet, const struct stk_sheet_box *box,
                                uint32_t y)
{
    return sheet->pixels + ((size_t)(box->y + y) * sheet->width + box->x + 2) * 3;
}

static void cells_hold_what_the_loader_delivers(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 2, .each = 4, .width = 90, .height = 70};
    fixture_images(&fixture, &set);
    struct stk_field_chain chain = {"jpg", CHAIN};
    struct stk_loader_options loading = {
        .batch_size = 8, .seed = 5, .threads = 2, .transforms = &chain, .transform_count = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &loading);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        struct stk_show_options options = options_of(8);
        options.epoch = epoch;
        struct stk_sheet *sheet = sheet_of(&fixture, &options);
        struct stk_batch *batch = fixture_next(loader);
        const uint8_t *pixels = batch->fields[0].tensor.data;
        assert_int_equal(sheet->count, 8);
        assert_int_equal(sheet->bad, 0);
        assert_string_equal(sheet->field, "jpg");
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(batch->samples[i], i);
            for (uint32_t y = 2; y < CELL - 2; y++)
                assert_memory_equal(inner_row(sheet, &sheet->cells[i].after, y),
                                    pixels + ((i * CELL + y) * CELL + 2) * 3, (CELL - 4) * 3);
        }
        stk_batch_release(batch);
        assert_null(fixture_next(loader)); /* the epoch is over */
        stk_sheet_free(sheet);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static enum flaw third_is_cut(uint32_t number)
{
    return number == 2 ? FLAW_CUT : number == 5 ? FLAW_HTML : number == 6 ? FLAW_EMPTY : FLAW_NONE;
}

static void a_damaged_sample_is_a_cell_with_words(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set good = {.shards = 1, .each = 8, .width = 90, .height = 70};
    struct image_set bad = good;
    bad.flaw = third_is_cut;
    struct stk_show_options options = options_of(8);
    fixture_images(&fixture, &good);
    struct stk_sheet *whole = sheet_of(&fixture, &options);
    fixture_close(&fixture);
    fixture_images(&fixture, &bad);
    struct stk_sheet *sheet = sheet_of(&fixture, &options);
    assert_int_equal(sheet->bad, 3);
    assert_int_equal(sheet->height, whole->height);
    for (uint32_t i = 0; i < 8; i++) {
        const struct stk_sheet_cell *cell = &sheet->cells[i];
        int is_bad = i == 2 || i == 5 || i == 6;
        assert_int_equal(*cell->words != 0, is_bad);
        int same = !memcmp(inner_row(sheet, &cell->before, 20),
                           inner_row(whole, &whole->cells[i].before, 20), 40 * 3);
        assert_int_equal(same, !is_bad);
    }
    stk_sheet_free(sheet);
    stk_sheet_free(whole);
    fixture_close(&fixture);
}

static void cells_lie_apart_and_on_the_sheet(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 8, .width = 40, .height = 30};
    fixture_images(&fixture, &set);
    for (uint32_t count = 1; count <= 8; count++) {
        struct stk_show_options options = options_of(count);
        options.title = "a title that is rather long for so small a sheet, so that it is broken";
        options.chain = count % 2 ? CHAIN : NULL;
        struct stk_sheet *sheet = sheet_of(&fixture, &options);
        for (uint32_t i = 0; i < count; i++) {
            const struct stk_sheet_cell *cell = &sheet->cells[i];
            assert_int_equal(cell->position, i);
            assert_int_equal(cell->before.width, CELL);
            assert_true(cell->before.y + CELL + 16 < sheet->height);
            assert_true(cell->before.x + CELL < sheet->width);
            assert_int_equal(cell->after.width, options.chain ? CELL : 0);
            if (options.chain)
                assert_true(cell->after.x > cell->before.x + CELL &&
                            cell->after.x + CELL < sheet->width);
            if (i % 3)
                assert_true(cell->before.x >
                            sheet->cells[i - 1].before.x + (options.chain ? 2 * CELL : CELL));
        }
        stk_sheet_free(sheet);
    }
    fixture_close(&fixture);
}

static void bad_options_and_chains_are_refused_with_words(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 8, .width = 40, .height = 30};
    fixture_images(&fixture, &set);
    struct stk_show_options cases[8];
    for (int i = 0; i < 8; i++)
        cases[i] = options_of(8);
    cases[0].count = 0;
    cases[1].cell = 31;
    cases[2].cell = 2049;
    cases[3].columns = 257;
    cases[4].chain = "Reszie(3)";
    cases[5].chain = "LogMel(n_mels=4)";
    cases[6].field = "cls";
    cases[7].field = "png";
    for (int i = 0; i < 8; i++) {
        struct stk_sheet *sheet;
        struct stk_error err;
        stk_status status =
            stk_sheet_draw(fixture.context, fixture.dataset, &sheet, &cases[i], &err);
        assert_int_equal(status, i == 7 ? STK_NOT_FOUND : STK_USAGE);
        assert_null(sheet);
        assert_true(*err.what);
    }
    fixture_close(&fixture);
}

static int fail_at(void *user, size_t size)
{
    int *left = user;
    (void)size;
    return (*left)-- == 0;
}

static void every_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 2, .width = 40, .height = 30};
    fixture_images(&fixture, &set);
    struct stk_show_options options = options_of(2);
    int failed = 0;
    for (int nth = 0; nth < 2000; nth++) {
        struct stk_sheet *sheet;
        struct stk_bytes png;
        struct stk_error err;
        int left = nth;
        memory_set_hook(fail_at, &left);
        stk_status status =
            stk_sheet_draw(fixture.context, fixture.dataset, &sheet, &options, &err);
        if (!status)
            status = stk_sheet_png(sheet, &png, &err);
        memory_set_hook(NULL, NULL);
        stk_sheet_free(sheet);
        if (left >= 0) /* it was not reached */
            break;
        failed += status != STK_OK;
    }
    assert_true(failed > 10);
    fixture_close(&fixture);
}

static void the_file_is_a_png_and_is_made_once(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 2, .width = 40, .height = 30};
    struct stk_bytes first, second;
    struct stk_error err;
    fixture_images(&fixture, &set);
    struct stk_show_options options = options_of(2);
    struct stk_sheet *sheet = sheet_of(&fixture, &options);
    if (stk_sheet_png(sheet, &first, &err)) {
        assert_int_equal(err.status, STK_UNSUPPORTED); /* a build without libpng */
    } else {
        assert_memory_equal(first.data, "\x89PNG\r\n\x1a\n", 8);
        assert_int_equal(stk_sheet_png(sheet, &second, &err), STK_OK);
        assert_ptr_equal(first.data, second.data);
        assert_int_equal(first.len, second.len);
    }
    stk_sheet_free(sheet);
    stk_sheet_free(NULL);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_hold_what_the_loader_delivers),
        cmocka_unit_test(a_damaged_sample_is_a_cell_with_words),
        cmocka_unit_test(cells_lie_apart_and_on_the_sheet),
        cmocka_unit_test(bad_options_and_chains_are_refused_with_words),
        cmocka_unit_test(every_failing_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(the_file_is_a_png_and_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
