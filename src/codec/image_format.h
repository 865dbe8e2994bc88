/* image_format.h -- what a file format of images implements; image_codec.c holds the table.
 * Owns: a format's state belongs to one decoder.   Threads: one a state.   Errors: status, words.
 * Not here: telling formats apart, orientation, grey from colour: image_codec.c does it for all. */
#ifndef CODEC_IMAGE_FORMAT_H
#define CODEC_IMAGE_FORMAT_H

#include "codec/image_codec.h"

/* Pixel memory that only grows. Zeroed is empty. */
struct image_buffer {
    uint8_t *data;
    uint64_t size;
};

/* Makes room for rows of width pixels, which may begin up to 64 bytes behind data, with some
 * readable bytes behind the last; what it held before is lost. *stride: bytes from row to row, a
 * multiple of 64. */
STK_CHECK stk_status image_buffer_room(struct image_buffer *buffer, int32_t width, int32_t height,
                                       int32_t channels, int64_t *stride, struct stk_error *err);
void image_buffer_free(struct image_buffer *buffer);

/* One image under way. limits hold no 0 any more, but for relaxed and stop. */
struct image_task {
    struct stk_bytes bytes;
    struct image_limits limits;
    int64_t began, cpu_began; /* the wall's clock, and this thread's */
};

/* Has the image had its time, or was it stopped? Only time this thread worked counts: a paused or
 * crowded machine must not make samples fail. */
int image_task_is_late(const struct image_task *task);
/* STK_LIMIT, with words. */
stk_status image_task_fail_late(const struct image_task *task, struct stk_error *err);
/* STK_LIMIT when the image is larger than allowed. */
STK_CHECK stk_status image_task_check_size(const struct image_task *task, uint64_t width,
                                           uint64_t height, struct stk_error *err);
/* An error of the bytes, with a remedy. status: STK_CORRUPT or STK_TRUNCATED. */
stk_status image_fail(struct stk_error *err, stk_status status, const char *format, ...)
    STK_PRINTF(3, 4);

/* The image as it is stored. */
struct image_stored {
    int32_t width, height;
    int32_t channels, bits; /* as in image_header */
    int orientation;        /* Exif, 1 to 8; 0: none */
};

struct image_format {
    const char *name;
    const char *remedy; /* not NULL: the library is not there, and how to get it */
    stk_status (*open)(void **state, struct stk_error *err);
    void (*close)(void *state);          /* NULL is fine */
    uint64_t (*held)(const void *state); /* bytes, as far as they are known */
    /* Looks at the header; allocates nothing that grows with the image. The task stays where it is
     * until the read is over. */
    stk_status (*begin)(void *state, const struct image_task *task, struct image_stored *stored,
                        struct stk_error *err);
    /* Decodes the box, in stored coordinates, into the buffer. The view has the channels that are
     * wanted; but grey of a colour image is left to the caller: then it has 3. */
    stk_status (*read)(void *state, const struct image_want *box, struct image_buffer *buffer,
                       struct image_view *view, struct stk_error *err);
};

extern const struct image_format jpeg_image_format;
extern const struct image_format png_image_format;
extern const struct image_format webp_image_format;

#endif
