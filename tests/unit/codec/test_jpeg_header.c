/* test_jpeg_header.c -- plain JPEGs are told from all others by their header, whatever the bytes.
 */
#include "base/testing.h"
#include "codec/jpeg_making.h"

#include "codec/jpeg_header.h"

/* From memory of exactly that size, so that a read beyond it is seen. */
static stk_status look(const uint8_t *data, size_t len, struct jpeg_header *header)
{
    struct stk_error err = {0};
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, data, len);
    struct stk_bytes bytes = {copy, len};
    stk_status status = jpeg_header_read(&bytes, header, &err);
    assert_true(status == STK_OK || (status == STK_UNSUPPORTED && err.what[0]));
    free(copy);
    return status;
}

static stk_status look_made(const struct jpeg_recipe *recipe, struct jpeg_header *header)
{
    struct stk_bytes bytes = jpeg_made(recipe);
    stk_status status = look(bytes.data, bytes.len, header);
    free((void *)bytes.data);
    return status;
}

static void plain_jpegs_are_taken_with_their_size(void **state)
{
    (void)state;
    static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}};
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++)
        for (int restart = 0; restart < 4; restart += 3) {
            struct jpeg_header header;
            struct jpeg_recipe recipe = {.width = 61,
                                         .height = 300,
                                         .h = samplings[i][0],
                                         .v = samplings[i][1],
                                         .optimize = restart,
                                         .restart = restart};
            assert_int_equal(look_made(&recipe, &header), STK_OK);
            assert_int_equal(header.width, 61);
            assert_int_equal(header.height, 300);
            assert_int_equal(header.components, 3);
            assert_int_equal(header.across, samplings[i][0]);
            assert_int_equal(header.down, samplings[i][1]);
        }
    struct jpeg_header header;
    struct jpeg_recipe grey = {.width = 9, .height = 8, .in = JCS_GRAYSCALE};
    assert_int_equal(look_made(&grey, &header), STK_OK);
    assert_int_equal(header.components, 1);
    assert_int_equal(header.across * header.down, 1);
}

static void all_others_are_refused(void **state)
{
    (void)state;
    static const struct jpeg_recipe others[] = {
        {.width = 40, .height = 30, .progressive = 1},
        {.width = 40, .height = 30, .progressive = 3},
        {.width = 40, .height = 30, .arithmetic = 1},
        {.width = 40, .height = 30, .in = JCS_CMYK},
        {.width = 40, .height = 30, .stored = JCS_RGB},
        {.width = 40, .height = 30, .h = 1, .v = 2},
        {.width = 40, .height = 30, .h = 4, .v = 1},
        {.width = 40, .height = 30, .h = 2, .v = 2, .second_h = 2, .second_v = 1},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct jpeg_header header;
        if (look_made(&others[i], &header) != STK_UNSUPPORTED)
            print_error("recipe %zu was taken\n", i);
        assert_int_equal(look_made(&others[i], &header), STK_UNSUPPORTED);
    }
    struct jpeg_header header;
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n and much more";
    assert_int_equal(look(png, sizeof png, &header), STK_UNSUPPORTED);
    assert_int_equal(look(png, 0, &header), STK_UNSUPPORTED);
}

static void an_image_that_is_to_be_turned_is_refused(void **state)
{
    (void)state;
    for (uint8_t orientation = 0; orientation < 10; orientation++) {
        uint8_t exif[] = {'E', 'x', 'i', 'f',  0, 0, 'M', 'M', 0, 42, 0, 0,           0, 8,
                          0,   1,   1,   0x12, 0, 3, 0,   0,   0, 1,  0, orientation, 0, 0};
        struct jpeg_recipe recipe = {
            .width = 20, .height = 10, .app1 = exif, .app1_len = sizeof exif};
        struct jpeg_header header;
        int turned = orientation > 1 && orientation <= 8;
        assert_int_equal(look_made(&recipe, &header), turned ? STK_UNSUPPORTED : STK_OK);
    }
}

static void a_jpeg_without_its_end_or_its_tables_is_refused(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 64, .height = 48};
    struct stk_bytes bytes = jpeg_made(&recipe);
    struct jpeg_header header;
    uint8_t *data = malloc(bytes.len + 200);
    memcpy(data, bytes.data, bytes.len);
    memset(data + bytes.len, 0, 200);
    assert_int_equal(look(data, bytes.len + 40, &header), STK_OK); /* a little behind the end */
    assert_int_equal(look(data, bytes.len + 100, &header), STK_UNSUPPORTED);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_equal(look(data, len, &header), STK_UNSUPPORTED);
    for (size_t at = 2; data[at + 1] != 0xda; at += 2 + (size_t)(data[at + 2] << 8 | data[at + 3]))
        if (data[at + 1] == 0xc4) /* a table becomes a comment */
            data[at + 1] = 0xfe;
    assert_int_equal(look(data, bytes.len, &header), STK_UNSUPPORTED);
    free(data);
    free((void *)bytes.data);
}

/* Where the segment begins. */
static size_t find_segment(const uint8_t *data, uint8_t marker)
{
    size_t at = 2;
    while (data[at + 1] != marker)
        at += 2 + (size_t)(data[at + 2] << 8 | data[at + 3]);
    return at;
}

/* Another decoder may read on elsewhere, find another size, and write as much. */
static void a_segment_of_an_unknown_kind_is_refused(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 64, .height = 48};
    struct stk_bytes bytes = jpeg_made(&recipe);
    uint8_t *data = (uint8_t *)bytes.data;
    size_t at = find_segment(data, 0xe0);
    for (int marker = 0; marker < 0xff; marker++) {
        struct jpeg_header header;
        int known = marker == 0xdd || marker == 0xfe || (marker >= 0xe0 && marker <= 0xef);
        data[at + 1] = (uint8_t)marker;
        assert_int_equal(look(data, bytes.len, &header), known ? STK_OK : STK_UNSUPPORTED);
    }
    free(data);
}

static void damaged_tables_and_scan_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t marker, at, value;
    } damages[] = {
        {0xc4, 4, 0x24}, /* a table of no class */
        {0xc4, 5, 3},    /* three codes of one bit */
        {0xc4, 20, 250}, /* more codes than the segment holds */
        {0xc4, 21, 77},  /* a DC symbol of 77 bits */
        {0xdb, 4, 0x10}, /* of 16 bits, and too short for it */
        {0xc0, 12, 3},   /* a table of quantisation that is not there */
        {0xda, 4, 1},    /* fewer colours than the frame */
        {0xda, 5, 9},    /* a colour of no frame */
        {0xda, 6, 0x22}, /* codes that are not there */
        {0xda, 12, 5},   /* some coefficients alone */
    };
    struct jpeg_recipe recipe = {.width = 64, .height = 48};
    struct stk_bytes bytes = jpeg_made(&recipe);
    uint8_t *data = (uint8_t *)bytes.data;
    struct jpeg_header header;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        uint8_t *byte = data + find_segment(data, damages[i].marker) + damages[i].at, kept = *byte;
        *byte = damages[i].value;
        if (look(data, bytes.len, &header) != STK_UNSUPPORTED)
            print_error("damage %zu was taken\n", i);
        assert_int_equal(look(data, bytes.len, &header), STK_UNSUPPORTED);
        *byte = kept;
    }
    assert_int_equal(look(data, bytes.len, &header), STK_OK);
    free(data);
}

static void no_damage_makes_it_read_outside(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 24, .height = 16, .quality = 30};
    struct stk_bytes bytes = jpeg_made(&recipe);
    uint8_t *data = malloc(bytes.len);
    for (uint32_t i = 0; i < 20000; i++) {
        struct jpeg_header header;
        memcpy(data, bytes.data, bytes.len);
        for (uint32_t k = 0; k < 3; k++)
            data[made_noise(6 * i + k) % bytes.len] = (uint8_t)made_noise(6 * i + 3 + k);
        if (look(data, bytes.len, &header) == STK_OK)
            assert_true(header.width > 0 && header.height > 0 &&
                        (header.components == 1 || header.components == 3));
    }
    free(data);
    free((void *)bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_jpegs_are_taken_with_their_size),
        cmocka_unit_test(all_others_are_refused),
        cmocka_unit_test(an_image_that_is_to_be_turned_is_refused),
        cmocka_unit_test(a_jpeg_without_its_end_or_its_tables_is_refused),
        cmocka_unit_test(a_segment_of_an_unknown_kind_is_refused),
        cmocka_unit_test(damaged_tables_and_scan_headers_are_refused),
        cmocka_unit_test(no_damage_makes_it_read_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
