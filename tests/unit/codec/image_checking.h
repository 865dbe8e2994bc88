/* image_checking.h -- what the tests of images share: a decoder, calls that must succeed or fail,
 * and the comparison with an oracle's pixels. Owns: one decoder, made and freed by the group.
 * Threads: one.   Errors: cmocka fails. Not here: making images (jpeg_making.h). */
#ifndef TESTS_UNIT_CODEC_IMAGE_CHECKING_H
#define TESTS_UNIT_CODEC_IMAGE_CHECKING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/image_codec.h"

static struct image_decoder *decoder;

static inline int make_decoder(void **state)
{
    (void)state;
    return image_decoder_new(&decoder, NULL);
}

static inline int free_decoder(void **state)
{
    (void)state;
    image_decoder_free(decoder);
    return 0;
}

static inline struct image_header begin_ok(const struct stk_bytes *bytes)
{
    struct image_header header;
    struct stk_error err = {0};
    if (image_begin(decoder, bytes, NULL, &header, &err))
        fail_msg("%s", err.what);
    return header;
}

static inline struct image_view read_ok(const struct image_want *want)
{
    struct image_view view;
    struct stk_error err = {0};
    if (image_read(decoder, want, &view, &err))
        fail_msg("%s", err.what);
    return view;
}

/* The largest difference between a view and the part of full pixels that begins at (x, y). */
static inline int view_error(const struct image_view *view, const uint8_t *full, int full_width,
                             int x, int y)
{
    int worst = 0;
    for (int32_t i = 0; i < view->height; i++)
        for (int32_t j = 0; j < view->width * view->channels; j++) {
            int is = view->pixels[i * view->stride + j];
            int ought =
                full[((size_t)(y + i) * (size_t)full_width + (size_t)x) * (size_t)view->channels +
                     (size_t)j];
            int error = is > ought ? is - ought : ought - is;
            worst = error > worst ? error : worst;
        }
    return worst;
}

static uint32_t random_state = 1;

static inline int random_below(int end)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (uint32_t)end);
}

/* A box; sometimes at an edge, sometimes on a block's border. */
static inline struct image_want random_box(int width, int height)
{
    struct image_want want = {.channels = IMAGE_CHANNELS_RGB};
    want.x = random_below(width);
    want.y = random_below(height);
    if (random_below(3) == 0)
        want.x &= ~15;
    if (random_below(3) == 0)
        want.y &= ~15;
    want.width = 1 + random_below(width - want.x);
    want.height = 1 + random_below(height - want.y);
    if (random_below(4) == 0)
        want.width = want.width < 3 ? want.width : 1 + random_below(3);
    if (random_below(4) == 0)
        want.width = width - want.x;
    if (random_below(4) == 0)
        want.height = height - want.y;
    return want;
}

/* Begins, and reads all of it in RGB; the first status that is not OK. */
static inline stk_status decode(const struct stk_bytes *bytes, const struct image_limits *limits,
                                struct image_view *view, struct stk_error *err)
{
    struct image_header header;
    *view = (struct image_view){0};
    stk_status status = image_begin(decoder, bytes, limits, &header, err);
    if (status)
        return status;
    struct image_want want = {.width = header.width, .height = header.height};
    return image_read(decoder, &want, view, err);
}

/* It fails so, and says something with these words. */
static inline void refuses(const struct stk_bytes *bytes, const struct image_limits *limits,
                           stk_status status, const char *words)
{
    struct image_view view;
    struct stk_error err = {0};
    stk_status is = decode(bytes, limits, &view, &err);
    if (is != status || !strstr(err.what, words))
        fail_msg("%s: %s", stk_status_name(is), err.what);
    assert_int_equal(err.status, status);
    assert_null(view.pixels);
}

struct counted {
    uint64_t calls, largest;
    uint64_t fail_at; /* the call that fails; 0: none */
};

static inline int count_call(void *user, size_t size)
{
    struct counted *counted = user;
    counted->calls++;
    counted->largest = size > counted->largest ? size : counted->largest;
    return counted->calls == counted->fail_at;
}

/* Fails the first allocation, then the second, and so on, each time with a new decoder, until all
 * succeed; then, once warm, there are none. */
static inline void survives_every_failed_allocation(const struct stk_bytes *bytes)
{
    struct image_decoder *kept = decoder;
    struct image_view view;
    stk_status status = STK_MEMORY;
    uint64_t failures = 0;
    while (status) {
        struct counted counted = {.fail_at = ++failures};
        struct stk_error err = {0};
        memory_set_hook(count_call, &counted);
        status = image_decoder_new(&decoder, &err);
        if (!status)
            status = decode(bytes, NULL, &view, &err);
        memory_set_hook(NULL, NULL);
        assert_true(status == STK_OK || status == STK_MEMORY);
        assert_int_equal(err.status, status);
        if (!status)
            break;
        image_decoder_free(decoder);
    }
    assert_in_range(failures, 3, 100);
    assert_int_equal(decode(bytes, NULL, &view, NULL), STK_OK); /* pools reach their size */
    struct counted counted = {0};
    memory_set_hook(count_call, &counted);
    assert_int_equal(decode(bytes, NULL, &view, NULL), STK_OK);
    memory_set_hook(NULL, NULL);
    assert_int_equal(counted.calls, 0);
    image_decoder_free(decoder);
    decoder = kept;
}

#endif
