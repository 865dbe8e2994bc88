#include "pack/arrow_maker.h"

#include <math.h>

#include "pack/arrow_column.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROWS 40

/* One column of one batch, for a test to bend. */
struct bent {
    struct made_column column;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    struct ArrowArray *child;
    struct arrow_type type;
    struct arrow_column view;
    struct stk_error err;
};

static void bent_start(struct bent *bent, struct made_column column, int64_t first, int64_t rows)
{
    struct made_table table = {.columns = &bent->column, .column_count = 1, .rows = first + rows};

    bent->column = column;
    bent->column.name = "v";
    made_schema(&bent->schema, &bent->column, 1);
    made_batch(&bent->batch, &table, first, rows);
    bent->child = bent->batch.children[0];
    assert_int_equal(arrow_schema_check(&bent->schema, &bent->err), STK_OK);
    assert_int_equal(arrow_type_read(&bent->type, bent->schema.children[0], &bent->err), STK_OK);
}

static stk_status bent_look(struct bent *bent)
{
    stk_status status = arrow_batch_check(&bent->batch, 1, &bent->err);
    if (!status)
        status = arrow_column_init(&bent->view, &bent->type, &bent->batch, 0, &bent->err);
    return status;
}

static void bent_end(struct bent *bent)
{
    bent->schema.release(&bent->schema);
    bent->batch.release(&bent->batch);
    assert_int_equal(made_live, 0);
}

static const float numbers[ROWS + 1] = {1, 2, 3, 4};
static const struct made_column plain = {.format = "f", .values = numbers};

/* --- types ---------------------------------------------------------------------------------------
 */

static void types_are_told_in_arrows_words(void **state)
{
    static const struct {
        const char *format, *words;
        int is_number, is_text, is_time;
    } cases[] = {{"b", "bool", 1, 0, 0},
                 {"C", "uint8", 1, 0, 1},
                 {"l", "int64", 1, 0, 1},
                 {"e", "halffloat", 1, 0, 0},
                 {"g", "double", 1, 0, 0},
                 {"u", "string", 0, 1, 0},
                 {"vu", "string_view", 0, 1, 0},
                 {"tsu:Asia/Tokyo", "timestamp[us, tz=Asia/Tokyo]", 0, 0, 1},
                 {"tsn:", "timestamp[ns]", 0, 0, 1},
                 {"tdD", "date32[day]", 0, 0, 1},
                 {"tdm", "date64[ms]", 0, 0, 1},
                 {"d:38,9", "decimal128(38, 9)", 1, 0, 0},
                 {"d:9,-3,32", "decimal32(9, -3)", 1, 0, 0},
                 {"d:9,99,64", "decimal64(9, 99)", 0, 0, 0},
                 {"d:50,-3,256", "decimal256(50, -3)", 0, 0, 0},
                 {"w:16", "fixed_size_binary(16)", 0, 0, 0},
                 {"tts", "time32[s]", 0, 0, 0},
                 {"nonsense", "format nonsense", 0, 0, 0},
                 {"", "format ", 0, 0, 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ArrowSchema schema;
        struct arrow_type type;
        made_schema_start(&schema, cases[i].format, "v");
        assert_int_equal(arrow_type_read(&type, &schema, NULL), STK_OK);
        assert_string_equal(type.words, cases[i].words);
        assert_int_equal(arrow_type_is_number(&type), cases[i].is_number);
        assert_int_equal(arrow_type_is_text(&type), cases[i].is_text);
        assert_int_equal(arrow_type_is_time(&type), cases[i].is_time);
        schema.release(&schema);
    }
}

static void timestamps_that_are_none_are_refused(void **state)
{
    static const char *const formats[] = {
        "ts",  "tsx:",   "ts:",
        "tss", "tsnUTC", "tss:a-name-of-a-time-zone-that-is-longer-than-any-that-was-ever-made-up"};
    struct ArrowSchema schema;
    struct arrow_type type;

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        made_schema_start(&schema, formats[i], "v");
        assert_int_equal(arrow_type_read(&type, &schema, NULL), STK_CORRUPT);
        schema.release(&schema);
    }
}

static void dictionaries_of_text_are_text_and_others_are_not(void **state)
{
    static const int8_t indices[] = {0};
    struct bent bent;

    (void)state;
    bent_start(&bent, (struct made_column){.format = "c", .values = indices, .words = "a\0"}, 0, 1);
    struct ArrowSchema *child = bent.schema.children[0];
    assert_true(arrow_type_is_text(&bent.type) && bent.type.is_dictionary);
    assert_string_equal(bent.type.words, "dictionary<string, int8>");
    child->format = "g"; /* an index must be an integer */
    assert_int_equal(arrow_type_read(&bent.type, child, NULL), STK_OK);
    assert_int_equal(bent.type.kind, ARROW_OTHER);
    child->format = "c";
    child->dictionary->format = "l";
    assert_int_equal(arrow_type_read(&bent.type, child, NULL), STK_OK);
    assert_int_equal(bent.type.kind, ARROW_OTHER);
    assert_string_equal(bent.type.words, "dictionary<int64, int8>");
    bent_end(&bent);
}

static void text_is_the_same_however_it_is_laid_out(void **state)
{
    static const char *const formats[] = {"u",    "U",       "vu",         "l",
                                          "tss:", "tss:UTC", "d:50,1,256", "d:51,1,256"};
    struct arrow_type types[COUNT(formats)];

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        struct ArrowSchema schema;
        made_schema_start(&schema, formats[i], "v");
        assert_int_equal(arrow_type_read(&types[i], &schema, NULL), STK_OK);
        schema.release(&schema);
    }
    for (size_t i = 0; i < COUNT(formats); i++)
        for (size_t k = 0; k < COUNT(formats); k++)
            assert_int_equal(arrow_type_same(&types[i], &types[k]), i == k || (i < 3 && k < 3));
}

static void schemas_that_cannot_be_walked_are_refused(void **state)
{
    struct bent bent;
    struct ArrowSchema deep[80];

    (void)state;
    bent_start(&bent, plain, 0, 1);
    struct ArrowSchema kept = bent.schema, *child = bent.schema.children[0], kept_child = *child;
    bent.schema.release = NULL;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_CORRUPT);
    bent.schema = kept;
    bent.schema.format = NULL;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_CORRUPT);
    bent.schema = kept;
    bent.schema.n_children = -1;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_CORRUPT);
    bent.schema = kept;
    bent.schema.children = NULL;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_CORRUPT);
    bent.schema = kept;
    child->release = NULL;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_CORRUPT);
    *child = kept_child;
    bent.schema.children[0] = NULL;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_CORRUPT);
    bent.schema.children[0] = child;
    assert_int_equal(arrow_schema_check(&bent.schema, NULL), STK_OK);
    for (size_t i = 0; i < COUNT(deep); i++) {
        deep[i] = (struct ArrowSchema){.format = "+l", .release = made_schema_release};
        deep[i].dictionary = i ? &deep[i - 1] : NULL;
    }
    assert_int_equal(arrow_schema_check(&deep[40], NULL), STK_OK);
    assert_int_equal(arrow_schema_check(&deep[79], NULL), STK_LIMIT);
    bent_end(&bent);
}

/* --- arrays that break the rules -----------------------------------------------------------------
 */

#define REFUSE(target, field, value)                                                               \
    do {                                                                                           \
        struct ArrowArray kept_ = *(target);                                                       \
        (target)->field = (value);                                                                 \
        assert_int_equal(bent_look(&bent), STK_CORRUPT);                                           \
        *(target) = kept_;                                                                         \
        assert_int_equal(bent_look(&bent), STK_OK);                                                \
    } while (0)

static void numbers_of_batch_and_column_are_checked_before_any_value(void **state)
{
    static const uint8_t third_missing[] = {0xFB};
    const void *no_values[] = {NULL, NULL}, *one_missing[] = {third_missing};
    struct bent bent;

    (void)state;
    bent_start(&bent, plain, 1, 4);
    struct ArrowArray *both[] = {&bent.batch, bent.child};
    for (int i = 0; i < 2; i++) {
        REFUSE(both[i], release, NULL);
        REFUSE(both[i], length, -1);
        REFUSE(both[i], length, INT64_MAX);
        REFUSE(both[i], offset, -1);
        REFUSE(both[i], offset, INT64_MAX);
        REFUSE(both[i], offset, INT64_MAX / 16);
        REFUSE(both[i], null_count, -2);
        REFUSE(both[i], null_count, 6);
        REFUSE(both[i], null_count, 1); /* and no bitmap */
        REFUSE(both[i], n_buffers, 0);
        REFUSE(both[i], n_buffers, -1);
        REFUSE(both[i], n_buffers, 3);
        REFUSE(both[i], buffers, NULL);
        REFUSE(both[i], n_children, -1);
        REFUSE(both[i], n_children, 2);
        REFUSE(both[i], dictionary, bent.child);
    }
    REFUSE(&bent.batch, children, NULL);
    REFUSE(bent.child, length, 4); /* the batch takes rows 1 to 4 */
    REFUSE(bent.child, buffers, no_values);
    const void **kept = bent.batch.buffers;
    bent.batch.buffers = one_missing;
    bent.batch.null_count = -1;
    assert_int_equal(bent_look(&bent), STK_CORRUPT); /* a row that is null as a whole */
    bent.batch.null_count = 0;                       /* the bitmap does not count then */
    assert_int_equal(bent_look(&bent), STK_OK);
    bent.batch.buffers = kept;
    bent.child->buffers[0] = third_missing;
    REFUSE(bent.child, null_count, 6); /* more than there are rows */
    bent_end(&bent);
}

static void empty_columns_need_no_buffers(void **state)
{
    static const char *const formats[] = {"f", "u", "U", "l"};

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        struct bent bent;
        bent_start(&bent, (struct made_column){.format = formats[i]}, 0, 0);
        assert_int_equal(bent_look(&bent), STK_OK);
        bent_end(&bent);
    }
}

static void offsets_of_strings_must_rise_from_nothing(void **state)
{
    static const int32_t good[] = {9, 1, 1, 3, 3, 1}; /* rows 1 to 3 are looked at */
    static const int32_t bad[][6] = {{0, -1, 1, 2, 3, 3}, {0, 2, 1, 3, 3, 3}, {0, 1, 2, 3, 2, 3}};
    static const int64_t wide[][6] = {{0, -1, 1, 2, 3, 3}, {0, 2, 1, 3, 3, 3}, {0, 1, 2, 3, 2, 3}};
    struct bent bent;
    struct arrow_text text;

    (void)state;
    bent_start(&bent, (struct made_column){.format = "u", .values = good, .bytes = "abc"}, 1, 3);
    assert_int_equal(bent_look(&bent), STK_OK);
    assert_true(arrow_column_text(&bent.view, 0, &text) && text.len == 0);
    assert_true(arrow_column_text(&bent.view, 1, &text) && text.len == 2);
    assert_memory_equal(text.data, "bc", 2);
    bent.child->buffers[2] = NULL;
    assert_int_equal(bent_look(&bent), STK_CORRUPT);
    bent.child->buffers[2] = "abc";
    bent.child->buffers[1] = NULL;
    assert_int_equal(bent_look(&bent), STK_CORRUPT);
    bent_end(&bent);
    for (size_t i = 0; i < COUNT(bad); i++)
        for (int is_wide = 0; is_wide < 2; is_wide++) {
            struct made_column column = {.format = is_wide ? "U" : "u", .bytes = "abc"};
            column.values = is_wide ? (const void *)wide[i] : bad[i];
            bent_start(&bent, column, 1, 3);
            assert_int_equal(bent_look(&bent), STK_CORRUPT);
            bent_end(&bent);
        }
}

/* --- views ---------------------------------------------------------------------------------------
 */

struct view {
    int32_t len;
    char prefix[4];
    int32_t buffer, offset;
};

static struct view long_view(const char *prefix, int32_t len, int32_t buffer, int32_t offset)
{
    struct view view = {len, {0}, buffer, offset};
    memcpy(view.prefix, prefix, sizeof(view.prefix));
    return view;
}

/* A column of one view, with one buffer of 20 bytes. */
static stk_status look_at_view(const struct view *view, struct arrow_text *out)
{
    static const char bytes[] = "0123456789abcdefghij";
    static const int64_t sizes[] = {20};
    const void *buffers[] = {NULL, view, bytes, sizes};
    struct bent bent;

    bent_start(&bent, (struct made_column){.format = "vu", .values = view}, 0, 1);
    const void **kept = bent.child->buffers;
    bent.child->buffers = buffers;
    bent.child->n_buffers = 4;
    stk_status status = bent_look(&bent);
    if (!status)
        assert_true(arrow_column_text(&bent.view, 0, out));
    bent.child->n_buffers = 2; /* views, and nothing that says how large buffers are */
    assert_int_equal(bent_look(&bent), STK_CORRUPT);
    bent.child->buffers = kept;
    bent_end(&bent);
    return status;
}

static void views_look_only_into_their_buffers(void **state)
{
    struct view inlined = {5, "hell", 0, 0}, whole = {12, "abcd", 0, 0};
    struct view good = long_view("4567", 13, 0, 4), last = long_view("789a", 13, 0, 7);
    const struct view bad[] = {
        long_view("4567", -1, 0, 4),         long_view("4567", 13, 1, 4),
        long_view("4567", 13, -1, 4),        long_view("4567", 13, 0, -4),
        long_view("89ab", 13, 0, 8),         long_view("4567", INT32_MAX, 0, 4),
        long_view("4567", 13, 0, INT32_MAX), long_view("4568", 13, 0, 4)};
    struct arrow_text text;

    (void)state;
    memcpy(&inlined.buffer, "o", 1);
    assert_int_equal(look_at_view(&inlined, &text), STK_OK);
    assert_true(text.len == 5 && !memcmp(text.data, "hello", 5));
    memcpy(&whole.buffer, "efghijkl", 8);
    assert_int_equal(look_at_view(&whole, &text), STK_OK);
    assert_true(text.len == 12 && !memcmp(text.data, "abcdefghijkl", 12));
    assert_int_equal(look_at_view(&good, &text), STK_OK);
    assert_true(text.len == 13 && !memcmp(text.data, "456789abcdefg", 13));
    assert_int_equal(look_at_view(&last, &text), STK_OK);
    assert_true(!memcmp(text.data, "789abcdefghij", 13));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(look_at_view(&bad[i], &text), STK_CORRUPT);
}

/* --- dictionaries --------------------------------------------------------------------------------
 */

static void indices_stay_in_their_dictionary(void **state)
{
    static const int8_t good[] = {1, 0, 99}, high[] = {1, 2, 0}, low[] = {1, -1, 0};
    static const uint64_t huge[] = {0, UINT64_MAX, 0};
    static const uint8_t two[] = {0x03};
    struct made_column column = {.format = "c", .values = good, .words = "p\0qq\0"};
    struct arrow_text text;
    struct bent bent;

    (void)state;
    column.validity = two; /* what is missing may point anywhere */
    bent_start(&bent, column, 0, 3);
    assert_int_equal(bent_look(&bent), STK_OK);
    assert_true(arrow_column_text(&bent.view, 0, &text) && text.len == 2);
    assert_false(arrow_column_text(&bent.view, 2, &text));
    REFUSE(bent.child, dictionary, NULL);
    REFUSE(bent.child->dictionary, release, NULL);
    REFUSE(bent.child->dictionary, dictionary, bent.child);
    REFUSE(bent.child->dictionary, length, -1);
    REFUSE(bent.child->dictionary, length, 1);
    bent_end(&bent);
    column.validity = NULL;
    static const struct {
        const char *format;
        const void *values;
    } bad[] = {{"c", good}, {"c", high}, {"c", low}, {"L", huge}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        column.format = bad[i].format;
        column.values = bad[i].values;
        bent_start(&bent, column, 0, 3);
        assert_int_equal(bent_look(&bent), STK_CORRUPT);
        bent_end(&bent);
    }
}

/* --- values --------------------------------------------------------------------------------------
 */

static void what_is_missing_becomes_nan_at_every_place(void **state)
{
    static float given[200];
    uint8_t bits[32];
    float out[200];

    (void)state;
    for (int i = 0; i < 200; i++)
        given[i] = (float)i;
    for (int64_t first = 0; first < 20; first++)
        for (int64_t missing = 0; missing < 150; missing += 7) {
            struct bent bent;
            struct arrow_numbers found = {.n = 150, .dtype = STK_F32, .scratch = out};
            memset(bits, 0xFF, sizeof(bits));
            int64_t at = first + missing;
            bits[at / 8] = (uint8_t)(bits[at / 8] & ~(1 << at % 8));
            bent_start(&bent,
                       (struct made_column){.format = "f", .values = given, .validity = bits},
                       first, 150);
            assert_int_equal(bent_look(&bent), STK_OK);
            arrow_column_numbers(&bent.view, &found);
            assert_ptr_equal(found.values, out);
            assert_false(found.is_finite);
            for (int64_t i = 0; i < 150; i++)
                assert_true(i == missing ? isnan(out[i]) : out[i] == given[first + i]);
            if (missing < 149) { /* behind it nothing is missing, and nothing is copied */
                found.first = (uint64_t)missing + 1;
                found.n = (uint32_t)(149 - missing);
                arrow_column_numbers(&bent.view, &found);
                assert_ptr_equal(found.values, given + first + missing + 1);
            }
            bent_end(&bent);
        }
}

static void buffers_need_not_be_aligned(void **state)
{
    static char memory[8 * 64 + 8];
    static const char *const formats[] = {"s", "i", "l", "g", "f"};
    double out[8];
    int64_t times[8];

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        struct bent bent;
        struct arrow_numbers found = {.n = 7, .dtype = STK_F64, .scratch = out};
        memset(memory, 0, sizeof(memory));
        bent_start(&bent, (struct made_column){.format = formats[i], .values = memory + 1}, 1, 7);
        assert_int_equal(bent_look(&bent), STK_OK);
        arrow_column_numbers(&bent.view, &found);
        double value;
        memcpy(&value, (const char *)found.values + 8, sizeof(value));
        assert_true(value == 0);
        if (arrow_type_is_time(&bent.type))
            assert_int_equal(arrow_column_times(&bent.view, 0, 7, times), 7);
        bent_end(&bent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_told_in_arrows_words),
        cmocka_unit_test(timestamps_that_are_none_are_refused),
        cmocka_unit_test(dictionaries_of_text_are_text_and_others_are_not),
        cmocka_unit_test(text_is_the_same_however_it_is_laid_out),
        cmocka_unit_test(schemas_that_cannot_be_walked_are_refused),
        cmocka_unit_test(numbers_of_batch_and_column_are_checked_before_any_value),
        cmocka_unit_test(empty_columns_need_no_buffers),
        cmocka_unit_test(offsets_of_strings_must_rise_from_nothing),
        cmocka_unit_test(views_look_only_into_their_buffers),
        cmocka_unit_test(indices_stay_in_their_dictionary),
        cmocka_unit_test(what_is_missing_becomes_nan_at_every_place),
        cmocka_unit_test(buffers_need_not_be_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
