/* test_jpeg_faults.c -- JPEGs that are cut, garbled, huge, endless or strange: each is a status
 * with words, and the decoder goes on with the next image. */
#include "codec/image_checking.h"
#include "codec/jpeg_making.h"

#define SOF0 0xc0
#define DHT 0xc4
#define EOI 0xd9
#define SOS 0xda
#define DQT 0xdb

/* A JPEG that may be changed; grown by at most `room` bytes. */
struct draft {
    uint8_t *data;
    size_t len;
};

static struct draft draft_of(const struct jpeg_recipe *recipe, size_t room)
{
    struct stk_bytes bytes = jpeg_made(recipe);
    struct draft draft = {malloc(bytes.len + room), bytes.len};
    memcpy(draft.data, bytes.data, bytes.len);
    free((void *)bytes.data);
    return draft;
}

static struct stk_bytes draft_bytes(const struct draft *draft)
{
    return (struct stk_bytes){draft->data, draft->len};
}

/* Where the nth marker of that code lies; entropy coded data hold none. */
static size_t draft_find(const struct draft *draft, uint8_t code, int nth)
{
    for (size_t at = 2; at + 1 < draft->len; at++)
        if (draft->data[at] == 0xff && draft->data[at + 1] == code && nth-- == 0)
            return at;
    fail_msg("no marker %02x", code);
    return 0;
}

static void draft_cut(struct draft *draft, size_t at, size_t len)
{
    memmove(draft->data + at, draft->data + at + len, draft->len - at - len);
    draft->len -= len;
}

static void draft_insert(struct draft *draft, size_t at, const void *bytes, size_t len)
{
    memmove(draft->data + at + len, draft->data + at, draft->len - at);
    memcpy(draft->data + at, bytes, len);
    draft->len += len;
}

static void draft_drop_segments(struct draft *draft, uint8_t code, int count)
{
    while (count-- > 0) {
        size_t at = draft_find(draft, code, 0);
        draft_cut(draft, at, 2 + (size_t)(draft->data[at + 2] << 8 | draft->data[at + 3]));
    }
}

static void draft_resize(struct draft *draft, int width, int height)
{
    uint8_t *frame = draft->data + draft_find(draft, SOF0, 0) + 5;
    frame[0] = (uint8_t)(height >> 8);
    frame[1] = (uint8_t)height;
    frame[2] = (uint8_t)(width >> 8);
    frame[3] = (uint8_t)width;
}

static const struct jpeg_recipe common = {.width = 99, .height = 77};

/* A good image still comes out right, whatever was decoded before. */
static void check_recovery(void)
{
    struct stk_bytes bytes = jpeg_made(&common);
    int width, height;
    uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
    struct image_view view;
    assert_int_equal(decode(&bytes, NULL, &view, NULL), STK_OK);
    assert_int_equal(view_error(&view, full, width, 0, 0), 0);
    free(full);
    free((void *)bytes.data);
}

static void refuses_draft(struct draft *draft, stk_status status, const char *words)
{
    struct stk_bytes bytes = draft_bytes(draft);
    refuses(&bytes, NULL, status, words);
    check_recovery();
    free(draft->data);
}

static void a_huge_header_is_refused_before_memory_is_taken(void **state)
{
    (void)state;
    static const int huge[][2] = {{65535, 65535}, {65000, 65000}, {65000, 2760}};
    check_recovery();
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        struct draft draft = draft_of(&common, 0);
        struct counted counted = {0};
        draft_resize(&draft, huge[i][0], huge[i][1]);
        struct stk_bytes bytes = draft_bytes(&draft);
        memory_set_hook(count_call, &counted);
        refuses(&bytes, NULL, STK_LIMIT, huge[i][0] > 65500 ? "too large" : "more than 178956970");
        memory_set_hook(NULL, NULL);
        assert_int_equal(counted.calls, 0);
        free(draft.data);
    }
}

static void the_cap_on_pixels_is_exact(void **state)
{
    (void)state;
    struct stk_bytes bytes = jpeg_made(&common);
    struct image_limits limits = {.max_pixels = 99 * 77};
    struct image_view view;
    assert_int_equal(decode(&bytes, &limits, &view, NULL), STK_OK);
    limits.max_pixels--;
    refuses(&bytes, &limits, STK_LIMIT, "99 x 77");
    free((void *)bytes.data);
}

/* The last scan, again and again. */
static struct draft endless(size_t times)
{
    struct jpeg_recipe recipe = {.width = 16, .height = 16, .progressive = 2, .quality = 10};
    struct draft draft = draft_of(&recipe, times * 4000);
    size_t last = draft_find(&draft, SOS, 3), len = draft.len - 2 - last;
    assert_true(len < 4000);
    for (size_t i = 0; i < times; i++)
        memcpy(draft.data + last + i * len, draft.data + last, len);
    draft.len = last + times * len;
    draft_insert(&draft, draft.len, "\xff\xd9", 2);
    return draft;
}

static void scans_without_end_are_refused(void **state)
{
    (void)state;
    struct draft draft = endless(3000);
    struct image_limits limits = {.max_scans = 4000};
    struct image_view view;
    struct stk_bytes bytes = draft_bytes(&draft);
    assert_int_equal(decode(&bytes, &limits, &view, NULL), STK_OK);
    limits.max_ns = 1;
    refuses(&bytes, &limits, STK_LIMIT, "took longer");
    refuses_draft(&draft, STK_LIMIT, "more than 500 scans");
}

static void time_is_up_in_a_baseline_image_too(void **state)
{
    (void)state;
    struct stk_bytes bytes = jpeg_made(&common);
    struct image_limits limits = {.max_ns = 1};
    refuses(&bytes, &limits, STK_LIMIT, "took longer");
    check_recovery();
    free((void *)bytes.data);
}

static void an_image_that_nobody_wants_any_more_is_left(void **state)
{
    (void)state;
    struct stk_bytes bytes = jpeg_made(&common);
    _Atomic int stop = 0;
    struct image_limits limits = {.stop = &stop};
    struct image_view view;
    assert_int_equal(decode(&bytes, &limits, &view, NULL), STK_OK);
    stop = 1;
    assert_int_equal(decode(&bytes, &limits, &view, NULL), STK_LIMIT);
    check_recovery();
    free((void *)bytes.data);
}

static void a_cut_at_any_byte_is_an_error_or_a_whole_image(void **state)
{
    (void)state;
    for (int progressive = 0; progressive < 2; progressive++) {
        struct jpeg_recipe recipe = {.width = 33, .height = 21, .progressive = progressive};
        struct draft draft = draft_of(&recipe, 0);
        struct stk_bytes bytes = draft_bytes(&draft);
        int width, height;
        uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
        for (size_t len = 2; len < draft.len; len++) {
            struct image_view view;
            uint8_t *copy = malloc(len); /* so that a read beyond it is seen */
            memcpy(copy, draft.data, len);
            bytes = (struct stk_bytes){copy, len};
            stk_status status = decode(&bytes, NULL, &view, NULL);
            if (!status) /* only what follows the last row may be missing */
                assert_int_equal(view_error(&view, full, width, 0, 0), 0);
            else
                assert_int_equal(status, STK_TRUNCATED);
            assert_true(status || len + 8 > draft.len);
            free(copy);
        }
        free(full);
        free(draft.data);
    }
    check_recovery();
}

static void a_relaxed_decode_keeps_the_rows_that_came(void **state)
{
    (void)state;
    struct draft draft = draft_of(&common, 0);
    struct stk_bytes bytes = draft_bytes(&draft);
    struct image_limits relaxed = {.relaxed = 1};
    struct image_view view;
    int width, height;
    uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
    bytes.len = bytes.len * 6 / 10;
    refuses(&bytes, NULL, STK_TRUNCATED, "ends too early");
    assert_int_equal(decode(&bytes, &relaxed, &view, NULL), STK_OK);
    assert_int_equal(view.height, height);
    view.height = 16;
    assert_int_equal(view_error(&view, full, width, 0, 0), 0);
    free(full);
    free(draft.data);
    check_recovery();
}

static void a_size_that_the_scan_does_not_have_is_an_error(void **state)
{
    (void)state;
    struct draft tall = draft_of(&common, 0);
    draft_resize(&tall, 99, 300);
    refuses_draft(&tall, STK_TRUNCATED, "ends too early");
    struct draft none = draft_of(&common, 0);
    draft_resize(&none, 99, 0);
    refuses_draft(&none, STK_CORRUPT, "damaged");
    struct draft thin = draft_of(&common, 0);
    draft_resize(&thin, 0, 77);
    refuses_draft(&thin, STK_CORRUPT, "damaged");
}

/* Also right after an image that had tables: they are not lent. */
static void missing_tables_are_errors_after_a_good_image_too(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct draft coarse = draft_of(&common, 0);
        draft_drop_segments(&coarse, DQT, 2);
        refuses_draft(&coarse, STK_CORRUPT, "no quantization table");
        struct draft mute = draft_of(&common, 0);
        draft_drop_segments(&mute, DHT, 4);
        refuses_draft(&mute, STK_CORRUPT, "no Huffman table");
    }
}

static void a_colour_without_a_scan_is_an_error(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 40, .height = 30, .progressive = 3};
    struct draft draft = draft_of(&recipe, 0);
    size_t last = draft_find(&draft, SOS, 2); /* each colour has one: this is the third's */
    draft_cut(&draft, last, draft.len - 2 - last);
    refuses_draft(&draft, STK_CORRUPT, "no scan for colour 2");
}

static void garbage_at_a_restart_is_an_error(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = common;
    recipe.restart = 3;
    struct draft wrong = draft_of(&recipe, 0);
    wrong.data[draft_find(&wrong, 0xd1, 0) + 1] = 0xd5;
    refuses_draft(&wrong, STK_CORRUPT, "damaged");
    struct draft stuffed = draft_of(&recipe, 16);
    draft_insert(&stuffed, draft_find(&stuffed, 0xd1, 0), "\x12\x34\x56\x78\x9a\xbc\xde\x11", 8);
    refuses_draft(&stuffed, STK_CORRUPT, "damaged");
    struct draft gone = draft_of(&recipe, 0);
    draft_cut(&gone, draft_find(&gone, 0xd2, 0), 2);
    refuses_draft(&gone, STK_CORRUPT, "damaged");
}

static void bytes_between_segments_change_nothing(void **state)
{
    (void)state;
    struct stk_bytes plain = jpeg_made(&common);
    int width, height;
    uint8_t *full = jpeg_oracle(&plain, JCS_RGB, 8, &width, &height);
    struct draft draft = draft_of(&common, 16);
    struct image_view view;
    draft_insert(&draft, draft_find(&draft, DQT, 0), "\0\0\0", 3);
    struct stk_bytes bytes = draft_bytes(&draft);
    assert_int_equal(decode(&bytes, NULL, &view, NULL), STK_OK);
    assert_int_equal(view_error(&view, full, width, 0, 0), 0);
    free(full);
    free(draft.data);
    free((void *)plain.data);
}

static void twelve_bits_are_refused_and_arithmetic_coding_is_decoded_or_refused(void **state)
{
    (void)state;
    struct draft deep = draft_of(&common, 0);
    deep.data[draft_find(&deep, SOF0, 0) + 4] = 12;
    refuses_draft(&deep, STK_UNSUPPORTED, "precision");
    struct jpeg_recipe recipe = common;
    recipe.arithmetic = 1;
    struct stk_bytes bytes = jpeg_made(&recipe);
    struct image_view view;
    stk_status status = decode(&bytes, NULL, &view, NULL);
    if (!status) {
        int width, height;
        uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
        assert_int_equal(view_error(&view, full, width, 0, 0), 0);
        free(full);
    } else {
        assert_int_equal(status, STK_UNSUPPORTED);
    }
    free((void *)bytes.data);
}

/* Lengths that lie, an orientation of 77, an ICC profile without end: all are passed over. */
static void malformed_metadata_change_nothing(void **state)
{
    (void)state;
    static const uint8_t bad[] = "Exif\0\0MM\0*\xff\xff\xff\xff";
    struct jpeg_recipe recipe = common;
    recipe.app1 = bad;
    recipe.app1_len = sizeof bad - 1;
    struct stk_bytes plain = jpeg_made(&recipe);
    int width, height;
    uint8_t *full = jpeg_oracle(&plain, JCS_RGB, 8, &width, &height);
    struct draft draft = draft_of(&recipe, 70000 * 3);
    static uint8_t profile[2 + 65535] = {0xff, 0xe2, 0xff, 0xff, 'I', 'C', 'C', '_', 'P',
                                         'R',  'O',  'F',  'I',  'L', 'E', 0,   9,   3};
    for (int i = 0; i < 3; i++)
        draft_insert(&draft, 2, profile, sizeof profile);
    struct stk_bytes bytes = draft_bytes(&draft);
    struct image_view view;
    assert_int_equal(decode(&bytes, NULL, &view, NULL), STK_OK);
    assert_int_equal(view_error(&view, full, width, 0, 0), 0);
    free(full);
    free(draft.data);
    free((void *)plain.data);
}

static void any_byte_of_the_header_may_be_anything(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 9, .height = 7};
    struct draft draft = draft_of(&recipe, 0);
    size_t end = draft_find(&draft, SOS, 0) + 14;
    struct image_limits limits = {.max_pixels = 1000000};
    for (size_t at = 2; at < end; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct stk_bytes bytes = draft_bytes(&draft);
            struct image_view view;
            struct stk_error err;
            draft.data[at] ^= (uint8_t)(1 << bit);
            stk_status status = decode(&bytes, &limits, &view, &err);
            assert_true(!status == (view.pixels != NULL));
            draft.data[at] ^= (uint8_t)(1 << bit);
        }
    free(draft.data);
    check_recovery();
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    static const uint8_t turned[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\x12\0\3\0\0\0\1\0\6\0\0";
    struct jpeg_recipe recipe = common;
    recipe.app1 = turned;
    recipe.app1_len = sizeof turned - 1;
    struct stk_bytes bytes = jpeg_made(&recipe);
    survives_every_failed_allocation(&bytes);
    free((void *)bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_huge_header_is_refused_before_memory_is_taken),
        cmocka_unit_test(the_cap_on_pixels_is_exact),
        cmocka_unit_test(scans_without_end_are_refused),
        cmocka_unit_test(time_is_up_in_a_baseline_image_too),
        cmocka_unit_test(an_image_that_nobody_wants_any_more_is_left),
        cmocka_unit_test(a_cut_at_any_byte_is_an_error_or_a_whole_image),
        cmocka_unit_test(a_relaxed_decode_keeps_the_rows_that_came),
        cmocka_unit_test(a_size_that_the_scan_does_not_have_is_an_error),
        cmocka_unit_test(missing_tables_are_errors_after_a_good_image_too),
        cmocka_unit_test(a_colour_without_a_scan_is_an_error),
        cmocka_unit_test(garbage_at_a_restart_is_an_error),
        cmocka_unit_test(bytes_between_segments_change_nothing),
        cmocka_unit_test(twelve_bits_are_refused_and_arithmetic_coding_is_decoded_or_refused),
        cmocka_unit_test(malformed_metadata_change_nothing),
        cmocka_unit_test(any_byte_of_the_header_may_be_anything),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_decoder, free_decoder);
}
