/* test_image_codec.c -- PNG and WebP against what was written and libwebp's own full decode;
 * formats told apart by content; turning upright; and broken bytes as errors. */
#include <png.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include "codec/image_checking.h"
#include "codec/jpeg_making.h"

/* ---- PNG ----------------------------------------------------------------------------------- */

struct png_recipe {
    int width, height, depth, color, interlaced;
    int transparent; /* with a tRNS chunk */
    size_t text;     /* bytes of zeros, compressed, in a comment */
};

static int png_samples(int color)
{
    switch (color) {
    case PNG_COLOR_TYPE_RGB:
        return 3;
    case PNG_COLOR_TYPE_RGBA:
        return 4;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return 2;
    default:
        return 1;
    }
}

static unsigned png_sample(const struct png_recipe *recipe, int x, int y, int c)
{
    unsigned value = made_noise((uint32_t)(y * 977 + x * 5 + c) + 1) >> 3;
    return recipe->depth == 16 ? value % 3 * 0x5a5b & 0xffff : value & ((1u << recipe->depth) - 1);
}

/* The pixel as RGBA of 8 bits, by the PNG specification. */
static void png_expected(const struct png_recipe *recipe, int x, int y, uint8_t rgba[4])
{
    unsigned raw[4], top = (1u << recipe->depth) - 1;
    int color = recipe->color, count = png_samples(color), match = 1;
    for (int c = 0; c < 4; c++)
        raw[c] = c < count ? png_sample(recipe, x, y, c) : 0;
    if (color == PNG_COLOR_TYPE_PALETTE) {
        for (int c = 0; c < 3; c++)
            rgba[c] = (uint8_t)(raw[0] * 37 + (unsigned)c * 80);
        rgba[3] = recipe->transparent && raw[0] < 2 ? (uint8_t)(raw[0] * 100) : 255;
        return;
    }
    for (int c = 0; c < 4; c++)
        raw[c] = recipe->depth == 16 ? raw[c] : raw[c] * 255 / top;
    int shift = recipe->depth == 16 ? 8 : 0;
    int colors = color & PNG_COLOR_MASK_COLOR ? 3 : 1;
    for (int c = 0; c < 3; c++)
        rgba[c] = (uint8_t)(raw[colors == 3 ? c : 0] >> shift);
    rgba[3] = color & PNG_COLOR_MASK_ALPHA ? (uint8_t)(raw[colors] >> shift) : 255;
    for (int c = 0; c < colors; c++) /* the transparent colour is the one of pixel 0, 0 */
        match &= png_sample(recipe, x, y, c) == png_sample(recipe, 0, 0, c);
    if (recipe->transparent && match)
        rgba[3] = 0;
}

static void png_pack(const struct png_recipe *recipe, int y, uint8_t *row)
{
    int count = png_samples(recipe->color);
    memset(row, 0, (size_t)recipe->width * 8);
    for (int i = 0; i < recipe->width * count; i++) {
        unsigned value = png_sample(recipe, i / count, y, i % count);
        if (recipe->depth == 16) {
            row[i * 2] = (uint8_t)(value >> 8);
            row[i * 2 + 1] = (uint8_t)value;
        } else {
            int bit = i * recipe->depth;
            row[bit / 8] |= (uint8_t)(value << (8 - recipe->depth - bit % 8));
        }
    }
}

static void png_write_bytes(png_structp png, png_bytep data, size_t len)
{
    struct stk_bytes *bytes = png_get_io_ptr(png);
    bytes->data = realloc((void *)bytes->data, bytes->len + len);
    memcpy((uint8_t *)bytes->data + bytes->len, data, len);
    bytes->len += len;
}

static void png_write_extras(png_structp png, png_infop info, const struct png_recipe *recipe)
{
    png_color palette[256];
    png_byte alpha[2] = {0, 100};
    png_color_16 color = {.gray = (png_uint_16)png_sample(recipe, 0, 0, 0),
                          .red = (png_uint_16)png_sample(recipe, 0, 0, 0),
                          .green = (png_uint_16)png_sample(recipe, 0, 0, 1),
                          .blue = (png_uint_16)png_sample(recipe, 0, 0, 2)};
    for (unsigned i = 0; i < 256; i++)
        palette[i] =
            (png_color){(png_byte)(i * 37), (png_byte)(i * 37 + 80), (png_byte)(i * 37 + 160)};
    if (recipe->color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << recipe->depth);
    if (recipe->transparent && recipe->color == PNG_COLOR_TYPE_PALETTE)
        png_set_tRNS(png, info, alpha, 2, NULL);
    else if (recipe->transparent)
        png_set_tRNS(png, info, NULL, 0, &color);
    if (!recipe->text)
        return;
    char *zeros = malloc(recipe->text + 1);
    memset(zeros, '0', recipe->text);
    zeros[recipe->text] = 0;
    png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt,
                     .key = (char *)"Comment",
                     .text = zeros,
                     .text_length = recipe->text};
    png_set_text(png, info, &text, 1);
    free(zeros);
}

static struct stk_bytes png_made(const struct png_recipe *recipe)
{
    struct stk_bytes bytes = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &bytes, png_write_bytes, NULL);
    png_set_IHDR(png, info, (png_uint_32)recipe->width, (png_uint_32)recipe->height, recipe->depth,
                 recipe->color, recipe->interlaced, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_extras(png, info, recipe);
    png_write_info(png, info);
    uint8_t *rows = malloc((size_t)recipe->width * 8 * (size_t)recipe->height);
    png_bytepp lines = malloc((size_t)recipe->height * sizeof *lines);
    for (int y = 0; y < recipe->height; y++) {
        lines[y] = rows + (size_t)y * (size_t)recipe->width * 8;
        png_pack(recipe, y, lines[y]);
    }
    png_write_image(png, lines);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(lines);
    free(rows);
    return bytes;
}

static int luminance(const uint8_t *rgb)
{
    return (int)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static void png_check_view(const struct png_recipe *recipe, const struct image_want *want,
                           const struct image_view *view)
{
    for (int y = 0; y < want->height; y++)
        for (int x = 0; x < want->width; x++) {
            const uint8_t *is = view->pixels + y * view->stride + x * view->channels;
            uint8_t rgba[4];
            png_expected(recipe, want->x + x, want->y + y, rgba);
            if (view->channels == 1)
                assert_int_equal(is[0], luminance(rgba));
            else
                assert_memory_equal(is, rgba, (size_t)view->channels);
        }
}

static void png_check(const struct png_recipe *recipe)
{
    struct stk_bytes bytes = png_made(recipe);
    int alpha = recipe->transparent || (recipe->color & PNG_COLOR_MASK_ALPHA);
    int stored = alpha ? 4 : recipe->color == PNG_COLOR_TYPE_GRAY ? 1 : 3;
    const int counts[] = {3, 1, 4, stored};
    for (int i = 0; i < 16; i++) {
        struct image_header header = begin_ok(&bytes);
        assert_string_equal(header.format, "png");
        assert_int_equal(header.channels, stored);
        assert_int_equal(header.bits, recipe->depth == 16 ? 16 : 8);
        struct image_want want = random_box(recipe->width, recipe->height);
        want.channels = (enum image_channels)(i % 4);
        struct image_view view = read_ok(&want);
        assert_int_equal(view.channels, counts[i % 4]);
        png_check_view(recipe, &want, &view);
    }
    free((void *)bytes.data);
}

static void every_kind_of_png_comes_out_as_it_was_written(void **state)
{
    (void)state;
    static const struct {
        int color, depth, transparent;
    } kinds[] = {
        {PNG_COLOR_TYPE_GRAY, 1, 0},        {PNG_COLOR_TYPE_GRAY, 2, 0},
        {PNG_COLOR_TYPE_GRAY, 4, 1},        {PNG_COLOR_TYPE_GRAY, 8, 0},
        {PNG_COLOR_TYPE_GRAY, 8, 1},        {PNG_COLOR_TYPE_GRAY, 16, 0},
        {PNG_COLOR_TYPE_GRAY, 16, 1},       {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 0},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 0}, {PNG_COLOR_TYPE_PALETTE, 1, 0},
        {PNG_COLOR_TYPE_PALETTE, 2, 1},     {PNG_COLOR_TYPE_PALETTE, 4, 0},
        {PNG_COLOR_TYPE_PALETTE, 8, 0},     {PNG_COLOR_TYPE_PALETTE, 8, 1},
        {PNG_COLOR_TYPE_RGB, 8, 0},         {PNG_COLOR_TYPE_RGB, 8, 1},
        {PNG_COLOR_TYPE_RGB, 16, 0},        {PNG_COLOR_TYPE_RGB, 16, 1},
        {PNG_COLOR_TYPE_RGBA, 8, 0},        {PNG_COLOR_TYPE_RGBA, 16, 0},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            struct png_recipe recipe = {
                37, 29, kinds[i].depth, kinds[i].color, interlaced, kinds[i].transparent, 0};
            png_check(&recipe);
        }
}

static const struct png_recipe png_common = {37, 29, 8, PNG_COLOR_TYPE_RGB, 0, 0, 0};

static void a_changed_byte_of_a_png_is_an_error(void **state)
{
    (void)state;
    struct stk_bytes bytes = png_made(&png_common);
    uint8_t *data = (uint8_t *)bytes.data;
    for (size_t at = 8; at < bytes.len - 12; at++) { /* all but the end chunk, which is not read */
        struct image_view view;
        data[at] ^= 0x10;
        stk_status status = decode(&bytes, NULL, &view, NULL);
        data[at] ^= 0x10;
        if (status == STK_OK)
            fail_msg("byte %zu of %zu may be anything", at, bytes.len);
    }
    free((void *)bytes.data);
}

static void a_cut_png_is_truncated_and_relaxed_keeps_its_rows(void **state)
{
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct png_recipe recipe = png_common;
        recipe.interlaced = interlaced;
        struct stk_bytes bytes = png_made(&recipe);
        struct image_limits relaxed = {.relaxed = 1};
        struct image_view view;
        for (size_t len = 4; len < bytes.len - 24; len += 7) {
            struct stk_bytes cut = {bytes.data, len};
            refuses(&cut, NULL, STK_TRUNCATED, "the PNG ends too early");
        }
        struct stk_bytes cut = {bytes.data, bytes.len * 3 / 4};
        assert_int_equal(decode(&cut, &relaxed, &view, NULL), STK_OK);
        assert_int_equal(view.height, recipe.height);
        struct image_want top = {.width = recipe.width, .height = interlaced ? 1 : 16};
        if (!interlaced) {
            png_check_view(&recipe, &top, &view);
            assert_int_equal(view.pixels[(recipe.height - 1) * view.stride], 128);
        }
        free((void *)bytes.data);
    }
}

static void a_png_bomb_takes_little_memory(void **state)
{
    (void)state;
    struct png_recipe recipe = png_common;
    recipe.text = 30 << 20;
    struct stk_bytes bytes = png_made(&recipe);
    struct counted counted = {0};
    struct image_view view;
    assert_true(bytes.len < 100000);
    memory_set_hook(count_call, &counted);
    assert_int_equal(decode(&bytes, NULL, &view, NULL), STK_OK);
    memory_set_hook(NULL, NULL);
    assert_true(counted.largest < 1 << 20);
    free((void *)bytes.data);
    struct image_limits limits = {.max_pixels = 37 * 29 - 1};
    bytes = png_made(&png_common);
    refuses(&bytes, &limits, STK_LIMIT, "37 x 29");
    limits = (struct image_limits){.max_ns = 1};
    refuses(&bytes, &limits, STK_LIMIT, "took longer");
    free((void *)bytes.data);
}

/* ---- WebP ---------------------------------------------------------------------------------- */

enum webp_kind { WEBP_LOSSY, WEBP_LOSSLESS, WEBP_LOSSY_ALPHA, WEBP_LOSSLESS_ALPHA };

static struct stk_bytes webp_made(int width, int height, enum webp_kind kind)
{
    uint8_t *pixels = malloc((size_t)width * (size_t)height * 4), *data = NULL;
    int channels = kind >= WEBP_LOSSY_ALPHA ? 4 : 3, stride = width * channels;
    size_t len = 0;
    for (int y = 0; y < height; y++)
        made_row(pixels + y * stride, width, channels, y);
    switch (kind) {
    case WEBP_LOSSY:
        len = WebPEncodeRGB(pixels, width, height, stride, 70, &data);
        break;
    case WEBP_LOSSLESS:
        len = WebPEncodeLosslessRGB(pixels, width, height, stride, &data);
        break;
    case WEBP_LOSSY_ALPHA:
        len = WebPEncodeRGBA(pixels, width, height, stride, 70, &data);
        break;
    default:
        len = WebPEncodeLosslessRGBA(pixels, width, height, stride, &data);
    }
    free(pixels);
    return (struct stk_bytes){data, len};
}

static void every_box_of_a_webp_equals_a_full_decode(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct stk_bytes bytes = webp_made(75, 61, (enum webp_kind)kind);
        int width, height, channels = kind >= WEBP_LOSSY_ALPHA ? 4 : 3;
        uint8_t *full[2] = {WebPDecodeRGB(bytes.data, bytes.len, &width, &height),
                            WebPDecodeRGBA(bytes.data, bytes.len, &width, &height)};
        for (int i = 0; i < 60; i++) {
            struct image_header header = begin_ok(&bytes);
            assert_string_equal(header.format, "webp");
            assert_int_equal(header.channels, channels);
            struct image_want want = random_box(75, 61);
            want.channels = i % 2 ? IMAGE_CHANNELS_RGBA : IMAGE_CHANNELS_RGB;
            want.least_width = want.least_height = i % 3; /* not scaled: the box comes whole */
            struct image_view view = read_ok(&want);
            assert_int_equal(view.channels, 3 + i % 2);
            assert_int_equal(view.width, want.width);
            assert_int_equal(view_error(&view, full[i % 2], width, want.x, want.y), 0);
        }
        WebPFree(full[0]);
        WebPFree(full[1]);
        WebPFree((void *)bytes.data);
    }
}

static void a_broken_webp_is_an_error_and_relaxed_has_its_size(void **state)
{
    (void)state;
    static const uint8_t animated[] =
        "RIFF\x2a\0\0\0WEBPVP8X\x0a\0\0\0\2\0\0\0\x0f\0\0\x0f\0\0ANIM";
    struct stk_bytes moving = {animated, sizeof animated - 1};
    refuses(&moving, NULL, STK_UNSUPPORTED, "animated");
    for (int kind = 0; kind < 4; kind++) {
        struct stk_bytes bytes = webp_made(75, 61, (enum webp_kind)kind);
        struct image_limits relaxed = {.relaxed = 1}, small = {.max_pixels = 75 * 61 - 1};
        struct image_view view;
        refuses(&bytes, &small, STK_LIMIT, "75 x 61");
        struct stk_bytes cut = {bytes.data, bytes.len / 2};
        refuses(&cut, NULL, STK_TRUNCATED, "the WebP image ends too early");
        assert_int_equal(decode(&cut, &relaxed, &view, NULL), STK_OK);
        assert_int_equal(view.height, 61);
        WebPFree((void *)bytes.data);
    }
}

/* ---- all formats --------------------------------------------------------------------------- */

static void content_decides_and_other_content_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        stk_status status;
        const char *words;
    } cases[] = {
        {"", 0, STK_CORRUPT, "0 bytes"},
        {"GIF89a", 6, STK_CORRUPT, "a GIF image"},
        {"\r\n<!DOCTYPE html>", 17, STK_CORRUPT, "an HTML page"},
        {"<HTML>", 6, STK_CORRUPT, "an HTML page"},
        {"version https://git-lfs.github.com/spec/v1", 40, STK_CORRUPT, "Git LFS"},
        {"BM", 2, STK_CORRUPT, "a BMP image"},
        {"x", 1, STK_CORRUPT, "neither JPEG, PNG nor WebP"},
        {"\xff", 1, STK_CORRUPT, "neither JPEG, PNG nor WebP"},
        {"\xff\xd8", 2, STK_TRUNCATED, "JPEG"},
        {"\xff\xd8\xff\xd9", 4, STK_CORRUPT, "JPEG"},
        {"\x89PNG", 4, STK_TRUNCATED, "PNG"},
        {"\x89PNG\n\x1a\n___", 10, STK_CORRUPT, "PNG"},
        {"RIFF\0\0\0\0WEBP", 12, STK_CORRUPT, "WebP"},
        {"RIFF\0\0\0\0WAVE", 12, STK_CORRUPT, "neither JPEG, PNG nor WebP"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *copy = malloc(cases[i].len + !cases[i].len); /* a read beyond it is seen */
        memcpy(copy, cases[i].bytes, cases[i].len);
        struct stk_bytes bytes = {copy, cases[i].len};
        refuses(&bytes, NULL, cases[i].status, cases[i].words);
        free(copy);
    }
}

static void formats_are_listed_with_what_they_lack(void **state)
{
    (void)state;
    static const char *const names[] = {"jpeg", "png", "webp", NULL};
    for (uint32_t i = 0; i < 4; i++) {
        const char *remedy = "", *name = image_format_at(i, &remedy);
        assert_null(remedy); /* these tests are linked with the libraries */
        if (names[i])
            assert_string_equal(name, names[i]);
        else
            assert_null(name);
    }
}

/* The stored pixel that is seen at (u, v), by the table of the Exif standard. */
static void seen_at(int orientation, int width, int height, int u, int v, int *x, int *y)
{
    int right = width - 1, bottom = height - 1;
    const int table[8][2] = {{u, v}, {right - u, v},  {right - u, bottom - v}, {u, bottom - v},
                             {v, u}, {v, bottom - u}, {right - v, bottom - u}, {right - v, u}};
    *x = table[orientation - 1][0];
    *y = table[orientation - 1][1];
}

static void check_turned(const struct image_view *view, const uint8_t *full,
                         const struct image_want *want, int orientation)
{
    for (int v = 0; v < want->height; v++)
        for (int u = 0; u < want->width; u++) {
            int x, y;
            seen_at(orientation, 83, 59, want->x + u, want->y + v, &x, &y);
            assert_memory_equal(view->pixels + v * view->stride + u * 3, full + (y * 83 + x) * 3,
                                3);
        }
}

static void an_image_comes_upright(void **state)
{
    (void)state;
    for (int orientation = 1; orientation <= 8; orientation++) {
        uint8_t exif[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\x12\0\3\0\0\0\1\0\1\0\0";
        exif[25] = (uint8_t)orientation;
        struct jpeg_recipe recipe = {
            .width = 83, .height = 59, .app1 = exif, .app1_len = sizeof exif - 1};
        struct stk_bytes bytes = jpeg_made(&recipe);
        int width, height, swapped = orientation >= 5;
        uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
        for (int i = 0; i < 20; i++) {
            struct image_header header = begin_ok(&bytes);
            assert_int_equal(header.width, swapped ? 59 : 83);
            assert_int_equal(header.height, swapped ? 83 : 59);
            struct image_want want = random_box(header.width, header.height);
            struct image_view view = read_ok(&want);
            assert_int_equal(view.width, want.width);
            assert_int_equal(view.height, want.height);
            check_turned(&view, full, &want, orientation);
            begin_ok(&bytes); /* the same, smaller: the box keeps its place */
            want.least_width = want.width / 2;
            want.least_height = want.height / 2;
            view = read_ok(&want);
            double scale = (view.x1 - view.x0) / want.width;
            assert_true(view.y1 - view.y0 == want.height * scale);
            assert_true(view.x0 >= 0 && view.x0 < 1 && view.x1 <= view.width);
            assert_true(view.y0 >= 0 && view.y0 < 1 && view.y1 <= view.height);
        }
        free(full);
        free((void *)bytes.data);
    }
}

static void a_read_without_a_begin_or_outside_the_image_is_refused(void **state)
{
    (void)state;
    struct stk_bytes bytes = png_made(&png_common);
    static const struct image_want outside[] = {
        {.width = 38, .height = 1},         {.width = 1, .height = 30},
        {.x = -1, .width = 5, .height = 5}, {.x = 37, .width = 1, .height = 1},
        {.width = 0, .height = 1},          {.x = 5, .width = INT32_MAX, .height = 1}};
    struct image_view view;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        begin_ok(&bytes);
        assert_int_equal(image_read(decoder, &outside[i], &view, NULL), STK_USAGE);
    }
    assert_int_equal(decode(&bytes, NULL, &view, NULL), STK_OK);
    struct image_want want = {.width = 1, .height = 1};
    assert_int_equal(image_read(decoder, &want, &view, NULL), STK_USAGE);
    assert_true(image_decoder_bytes(decoder) >= 37 * 29 * 3);
    free((void *)bytes.data);
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    struct stk_bytes bytes = png_made(&png_common);
    survives_every_failed_allocation(&bytes);
    free((void *)bytes.data);
    bytes = webp_made(75, 61, WEBP_LOSSY);
    survives_every_failed_allocation(&bytes);
    WebPFree((void *)bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_png_comes_out_as_it_was_written),
        cmocka_unit_test(a_changed_byte_of_a_png_is_an_error),
        cmocka_unit_test(a_cut_png_is_truncated_and_relaxed_keeps_its_rows),
        cmocka_unit_test(a_png_bomb_takes_little_memory),
        cmocka_unit_test(every_box_of_a_webp_equals_a_full_decode),
        cmocka_unit_test(a_broken_webp_is_an_error_and_relaxed_has_its_size),
        cmocka_unit_test(content_decides_and_other_content_is_named),
        cmocka_unit_test(formats_are_listed_with_what_they_lack),
        cmocka_unit_test(an_image_comes_upright),
        cmocka_unit_test(a_read_without_a_begin_or_outside_the_image_is_refused),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_decoder, free_decoder);
}
