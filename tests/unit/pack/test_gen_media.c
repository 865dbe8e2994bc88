#include "base/testing.h"

#include <math.h>

#include "stoker/pack.h"

#include "base/context.h"
#include "base/fail.h"
#include "base/random.h"
#include "pack/avi_write.h"
#include "pack/image_pattern.h"
#include "pack/jpeg_write.h"
#include "pack/png_write.h"
#include "pack/wav_write.h"

#define WIDTH 80
#define HEIGHT 60
#define PIXELS (WIDTH * HEIGHT)

/* --- pixels ---------------------------------------------------------------------------------- */

static struct image_pattern *pattern_of(uint64_t seed)
{
    struct image_pattern *pattern;
    struct stk_error err;

    assert_int_equal(image_pattern_new(&pattern, WIDTH, seed, &err), STK_OK);
    return pattern;
}

static void draw(const struct image_pattern *pattern, uint64_t key, uint32_t label, uint8_t *to)
{
    struct image_scene scene;
    void *room = malloc(image_pattern_room(WIDTH));

    memset(room, 0xA5, image_pattern_room(WIDTH)); /* it may hold anything before */
    image_scene_init(&scene, WIDTH, HEIGHT, key);
    image_scene_mark(&scene, label, 4, random_key(key, 1));
    image_scene_draw(pattern, &scene, to, room);
    free(room);
}

static void a_picture_is_a_function_of_seed_key_and_class(void **state)
{
    struct image_pattern *one = pattern_of(7), *same = pattern_of(7), *other = pattern_of(8);
    static uint8_t a[PIXELS * 3], b[PIXELS * 3];

    (void)state;
    draw(one, 5, 2, a);
    draw(same, 5, 2, b);
    assert_memory_equal(a, b, sizeof(a));
    draw(other, 5, 2, b);
    assert_memory_not_equal(a, b, sizeof(a));
    draw(one, 6, 2, b);
    assert_memory_not_equal(a, b, sizeof(a));
    draw(one, 5, 3, b);
    assert_memory_not_equal(a, b, sizeof(a));
    image_pattern_free(one);
    image_pattern_free(same);
    image_pattern_free(other);
}

/* Neighbours are alike, distant pixels are not: the difference grows with the distance. */
static void near_pixels_are_more_alike_than_far_ones(void **state)
{
    struct image_pattern *pattern = pattern_of(0);
    static uint8_t pixels[PIXELS * 3];
    double change[3] = {0};

    (void)state;
    for (uint64_t key = 0; key < 20; key++) {
        draw(pattern, key, 0, pixels);
        for (int i = 0; i < 3; i++)
            for (int y = 0; y < HEIGHT; y++)
                for (int x = 0; x + (1 << 2 * i) < WIDTH; x++)
                    change[i] += pow(pixels[(y * WIDTH + x) * 3] -
                                         pixels[(y * WIDTH + x + (1 << 2 * i)) * 3],
                                     2) /
                                 (WIDTH - (1 << 2 * i));
    }
    assert_true(change[0] > 0 && change[1] > 1.3 * change[0] && change[2] > 1.3 * change[1]);
    image_pattern_free(pattern);
}

static void shapes_outside_the_picture_are_harmless(void **state)
{
    struct image_pattern *pattern = pattern_of(0);
    static uint8_t pixels[PIXELS * 3];
    static int16_t room[4 * (WIDTH + 64)];
    struct image_scene scene;

    (void)state;
    assert_true(image_pattern_room(WIDTH) <= sizeof(room));
    for (uint32_t sides = 0; sides <= 6; sides += sides ? 1 : 3)
        for (int x = -200; x <= 300; x += 20)
            for (int y = -100; y <= 200; y += 50) {
                image_scene_init(&scene, WIDTH, HEIGHT, 1);
                scene.count = 1;
                scene.shapes[0] = (struct image_shape){.sides = sides,
                                                       .x = (float)x,
                                                       .y = (float)y,
                                                       .width = 70,
                                                       .height = 0.5f,
                                                       .turn = (float)(x + y) / 50,
                                                       .level = {255, 0, 255},
                                                       .grating = 90,
                                                       .wave = {-3.7f, 12.3f}};
                image_scene_draw(pattern, &scene, pixels, room);
            }
    image_pattern_free(pattern);
}

static void colours_turn_into_those_of_jfif(void **state)
{
    static const struct {
        uint8_t ycc[3], rgb[3];
    } rows[] = {
        {{0, 128, 128}, {0, 0, 0}},    {{255, 128, 128}, {255, 255, 255}},
        {{76, 85, 255}, {254, 0, 0}},  {{150, 44, 21}, {0, 255, 1}},
        {{29, 255, 107}, {0, 0, 254}}, {{255, 255, 255}, {255, 121, 255}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t pixel[3];
        memcpy(pixel, rows[i].ycc, 3);
        image_to_rgb(pixel, 1);
        assert_memory_equal(pixel, rows[i].rgb, 3);
    }
}

/* --- files ----------------------------------------------------------------------------------- */

static uint32_t number_at(const struct text *text, size_t at)
{
    const uint8_t *from = (const uint8_t *)text->data + at;

    return from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
}

static void a_wave_has_its_header_and_its_samples(void **state)
{
    static const int16_t samples[] = {1, -2, 300, -32768};
    static const uint8_t expected[] = {
        'R', 'I', 'F', 'F', 44, 0, 0,    0,    'W', 'A', 'V',  'E',  'f',  'm', 't', ' ', 16, 0,
        0,   0,   1,   0,   2,  0, 0x40, 0x1f, 0,   0,   0,    0x7d, 0,    0,   4,   0,   16, 0,
        'd', 'a', 't', 'a', 8,  0, 0,    0,    1,   0,   0xfe, 0xff, 0x2c, 1,   0,   0x80};
    struct text text = {0};

    (void)state;
    wav_write(&(struct sound){samples, 2, 2, 8000}, &text);
    assert_int_equal(text.len, sizeof(expected));
    assert_memory_equal(text.data, expected, sizeof(expected));
    text_free(&text);
}

static void an_avi_counts_and_indexes_its_frames(void **state)
{
    static const char *const frames[] = {"odd", "even", "", "largest"};
    struct text text = {0};
    struct avi_writer writer = {0};

    (void)state;
    text_add(&text, "before", 6);
    for (int again = 0; again < 2; again++) {
        size_t first = text.len;
        avi_writer_begin(&writer, &(struct avi_format){320, 240, 30000, 1001}, &text);
        for (int i = 0; i < 4; i++) {
            avi_writer_begin_frame(&writer);
            text_add(&text, frames[i], strlen(frames[i]));
            avi_writer_end_frame(&writer);
        }
        avi_writer_end(&writer);
        assert_memory_equal(text.data + first, "RIFF", 4);
        assert_int_equal(number_at(&text, first + 4), text.len - first - 8);
        assert_int_equal(number_at(&text, first + 32), 33366);  /* microseconds a frame */
        assert_int_equal(number_at(&text, first + 32 + 16), 4); /* frames */
        assert_int_equal(number_at(&text, first + 32 + 28), 7); /* the largest */
        size_t movi = first + 220, index = text.len - 4 * 16;
        assert_memory_equal(text.data + movi, "movi", 4);
        assert_int_equal(number_at(&text, movi - 4), index - 8 - movi);
        assert_memory_equal(text.data + index - 8, "idx1", 4);
        for (size_t i = 0; i < 4; i++) {
            size_t at = movi + number_at(&text, index + i * 16 + 8);
            assert_memory_equal(text.data + at, "00dc", 4);
            assert_int_equal(at % 2, first % 2);
            assert_int_equal(number_at(&text, at + 4), strlen(frames[i]));
            assert_memory_equal(text.data + at + 8, frames[i], strlen(frames[i]));
        }
    }
    avi_writer_reset(&writer);
    text_free(&text);
}

static void a_jpeg_writer_writes_one_file_after_the_other(void **state)
{
    struct image_pattern *pattern = pattern_of(0);
    static uint8_t pixels[PIXELS * 3];
    struct jpeg_image image = {pixels, WIDTH, HEIGHT, 1};
    struct jpeg_writer *writer;
    struct text plain = {0}, progressive = {0}, again = {0};
    struct stk_error err;

    (void)state;
    draw(pattern, 1, 1, pixels);
    image_pattern_free(pattern);
    if (jpeg_writer_new(&writer, &err))
        skip();
    /* A progressive one between two plain ones leaves nothing behind. */
    for (int i = 0; i < 3; i++) {
        struct jpeg_write_options how = {90, 420, i == 1};
        struct text *to = i == 0 ? &plain : i == 1 ? &progressive : &again;
        assert_int_equal(jpeg_writer_add(writer, &image, &how, to, &err), STK_OK);
        assert_memory_equal(to->data, "\xff\xd8\xff", 3);
        assert_memory_equal(to->data + to->len - 2, "\xff\xd9", 2);
    }
    assert_memory_not_equal(plain.data, progressive.data, progressive.len);
    assert_int_equal(plain.len, again.len);
    assert_memory_equal(plain.data, again.data, plain.len);
    text_free(&plain);
    text_free(&progressive);
    text_free(&again);
    jpeg_writer_free(writer);
}

static void a_jpeg_that_cannot_be_is_a_status(void **state)
{
    static const uint8_t pixel[3];
    struct jpeg_write_options how = {90, 420, 0};
    struct jpeg_writer *writer;
    struct text text = {0};
    struct stk_error err;

    (void)state;
    if (jpeg_writer_new(&writer, &err))
        skip();
    for (int i = 0; i < 2; i++) {
        struct jpeg_image image = {pixel, i ? 70000 : 0, 1, 0};
        assert_int_equal(jpeg_writer_add(writer, &image, &how, &text, &err), STK_UNSUPPORTED);
        assert_non_null(strstr(err.what, "JPEG cannot be written"));
    }
    assert_int_equal(
        jpeg_writer_add(writer, &(struct jpeg_image){pixel, 1, 1, 0}, &how, &text, &err), STK_OK);
    text_free(&text);
    jpeg_writer_free(writer);
}

/* --- whole sets ------------------------------------------------------------------------------ */

struct fixture {
    char folder[PATH_MAX], out[PATH_MAX + 8];
    struct stk_context context;
    int cancel_after, reports;
    uint64_t done;
    int kind, folders;
    uint32_t threads;
};

static int on_progress(void *user, const struct stk_progress *progress)
{
    struct fixture *fixture = user;

    fixture->done = progress->done;
    return ++fixture->reports > fixture->cancel_after;
}

static void fixture_open(struct fixture *fixture)
{
    *fixture = (struct fixture){.cancel_after = INT_MAX, .threads = 2};
    fixture->context.hooks = (struct stk_hooks){.user = fixture, .progress = on_progress};
    folder_new(fixture->folder);
    snprintf(fixture->out, sizeof(fixture->out), "%s/out", fixture->folder);
}

/* Some of each kind and format, small. */
static stk_status generate(struct fixture *fixture, int kind, struct stk_pack_result *result,
                           struct stk_error *err)
{
    struct stk_gen_options common = {.out = fixture->out,
                                     .samples = 5,
                                     .classes = 2,
                                     .shards = 2,
                                     .threads = fixture->threads,
                                     .folders = fixture->folders,
                                     .force = 1};
    struct stk_gen_images_options images = {common, 20, 16, 0.5, STK_GEN_JPEG, 80, 444, 0};
    struct stk_gen_audio_options audio = {common, 0.02, 8000, 2, STK_GEN_WAV};
    struct stk_gen_video_options video = {common, 16, 20, 2, 25, 70};
    struct stk_gen_points_options points = {common, 7, STK_GEN_BIN};

    switch (kind) {
    case 0:
    case 1:
        images.format = kind ? STK_GEN_PNG : STK_GEN_JPEG;
        return stk_gen_images(&fixture->context, &images, result, err);
    case 2:
    case 3:
    case 4:
        audio.format = (enum stk_gen_audio_format)(kind - 2);
        return stk_gen_audio(&fixture->context, &audio, result, err);
    case 5:
        return stk_gen_video(&fixture->context, &video, result, err);
    default:
        points.format = (enum stk_gen_points_format)(kind - 6);
        return stk_gen_points(&fixture->context, &points, result, err);
    }
}
#define GENERATED 10

static void every_kind_is_written_and_told(void **state)
{
    struct fixture fixture;
    struct stk_pack_result result;
    struct stk_error err;
    struct stat found;

    (void)state;
    fixture_open(&fixture);
    for (int kind = 0; kind < GENERATED; kind++) {
        stk_status status = generate(&fixture, kind, &result, &err);
        if (status == STK_UNSUPPORTED) /* a library that this build has not */
            continue;
        assert_int_equal(status, STK_OK);
        assert_int_equal(result.samples, 5);
        assert_int_equal(result.shards, 2);
        assert_int_equal(fixture.done, 5);
        uint64_t bytes = 0;
        for (int i = 0; i < 2; i++) {
            char name[32];
            snprintf(name, sizeof(name), "shard-%04d.tar", i);
            assert_int_equal(stat(path_in(fixture.out, name), &found), 0);
            assert_int_equal(found.st_size % 512, 0);
            bytes += (uint64_t)found.st_size;
        }
        assert_int_equal(result.bytes, bytes);
    }
    folder_remove(fixture.folder);
}

static void who_is_asked_to_stop_leaves_nothing(void **state)
{
    struct fixture fixture;
    struct stk_pack_result result;
    struct stk_error err;

    (void)state;
    fixture_open(&fixture);
    fixture.cancel_after = 0;
    for (int kind = 0; kind < GENERATED; kind++) {
        stk_status status = generate(&fixture, kind, &result, &err);
        assert_true(status == STK_CANCELLED || status == STK_UNSUPPORTED);
        assert_int_equal(result.samples, 0);
        assert_int_equal(access(fixture.out, F_OK), -1);
    }
    folder_remove(fixture.folder);
}

static int generate_one(void *user)
{
    struct fixture *fixture = user;
    struct stk_pack_result result;
    struct stk_error err;
    stk_status status = generate(fixture, fixture->kind, &result, &err);

    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void memory_that_is_short_is_a_status_for_every_kind(void **state)
{
    static const int kinds[] = {0, 1, 2, 3, 5, 9}; /* one of each way to write */
    struct stk_pack_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture);
    fixture.threads = 1; /* allocations are counted without a lock */
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        fixture.kind = kinds[i];
        fixture.folders = i % 2;
        if (generate(&fixture, kinds[i], &result, NULL) == STK_UNSUPPORTED)
            continue; /* a library that this build has not */
        fail_each_allocation(generate_one, &fixture);
    }
    folder_remove(fixture.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_is_a_function_of_seed_key_and_class),
        cmocka_unit_test(near_pixels_are_more_alike_than_far_ones),
        cmocka_unit_test(shapes_outside_the_picture_are_harmless),
        cmocka_unit_test(colours_turn_into_those_of_jfif),
        cmocka_unit_test(a_wave_has_its_header_and_its_samples),
        cmocka_unit_test(an_avi_counts_and_indexes_its_frames),
        cmocka_unit_test(a_jpeg_writer_writes_one_file_after_the_other),
        cmocka_unit_test(a_jpeg_that_cannot_be_is_a_status),
        cmocka_unit_test(every_kind_is_written_and_told),
        cmocka_unit_test(who_is_asked_to_stop_leaves_nothing),
        cmocka_unit_test(memory_that_is_short_is_a_status_for_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
