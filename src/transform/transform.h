/* transform.h -- what every transform says of itself: one row a transform in transforms.c.
 * Owns: nothing; arguments belong to the chain (chain.h).   Threads: all calls are pure; one
 * scratch a thread.   Errors: status, words; the caller adds field and sample.
 * Not here: the text of a chain (chain.h), the order of work (pipeline/pipeline.h).
 *
 * The definition of a transform is its draw and its run. draw takes random numbers from a key that
 * is made of (seed, epoch, sample, place in the chain) and leaves plain data, `params`; run is a
 * pure function of arguments, params and input. So the result is the same on any number of threads,
 * after a resume, and on a GPU that is given the same params. */
#ifndef TRANSFORM_TRANSFORM_H
#define TRANSFORM_TRANSFORM_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"
#include "stoker/media.h"
#include "base/scratch.h"

struct gpu;            /* gpu/gpu.h */
struct gpu_stream;     /* gpu/gpu.h */
struct image_geometry; /* image_geometry.h */

/* How a pipeline treats it. */
enum transform_stage {
    TRANSFORM_DECODE,   /* options of decoding: only as the first of a chain */
    TRANSFORM_GEOMETRY, /* image, video: crops, resizes, flips; folded into one step, by fold */
    TRANSFORM_PIXELS, /* uint8 (H, W, C) -> uint8 (H, W, C); video: each frame with the same params
                       */
    TRANSFORM_FORMAT, /* Normalize, Cast, Layout; for pixels folded into the writing of the result
                       */
    TRANSFORM_TENSOR  /* any other: the whole tensor */
};

enum transform_type {
    ARG_INT,    /* int64_t */
    ARG_FLOAT,  /* double */
    ARG_BOOL,   /* int: True, False, true, false, 1, 0 */
    ARG_CHOICE, /* int: number of the word in `choices` */
    ARG_DTYPE,  /* int: enum stk_dtype */
    ARG_FLOATS, /* struct transform_list: (a, b, c), [a, b, c] or a single number */
    ARG_TEXT    /* char[64], ended by NUL */
};
#define TRANSFORM_LIST_MAX 8
struct transform_list {
    uint32_t count; /* 0: None */
    double values[TRANSFORM_LIST_MAX];
};
#define TRANSFORM_TEXT_MAX 64

/* One argument: positional in this order, or by name. */
struct transform_arg {
    const char *name; /* NULL ends the table */
    enum transform_type type;
    uint32_t offset;     /* in the arguments' struct */
    const char *preset;  /* its default, as text, parsed as any other; "None": the struct's zero.
                            NULL: must be given */
    double least, most;  /* INT, FLOAT and each of FLOATS: within [least, most]; both 0: any finite
                          */
    const char *choices; /* CHOICE: "bilinear|bicubic|area|nearest". FLOATS: words that may stand
                            for the numbers; then the list's count is 0 and values[0] the word's
                            number, from 1 on */
    uint32_t least_count, most_count; /* FLOATS */
};

#define TRANSFORM_PARAMS 256 /* bytes of params at most */

/* One step on the device, for all samples of a batch at once: they are of one shape. Addresses are
 * in device memory; sample i is at from + i * its size, and so on. */
struct transform_device_step {
    const void *args;
    const struct stk_flow *in, *out; /* of one sample; data NULL, lengths known */
    uint32_t count;
    uint64_t from, to;      /* never the same memory */
    uint64_t params;        /* of sample 0 ... */
    uint32_t params_stride; /* ... and so many bytes to the next */
    uint64_t scratch;       /* device_scratch bytes */
    struct gpu *gpu;
    struct gpu_stream *stream;
};

struct transform_ops {
    const char *name; /* "RandomResizedCrop" */
    const char *help; /* one sentence */
    uint32_t media;   /* STK_MEDIA_BIT of what it takes */
    enum transform_stage stage;
    const struct transform_arg *args; /* NULL: none */
    uint32_t size;                    /* of the arguments' struct, zeroed before parsing */
    /* After parsing: checks what the table cannot say, and fills derived members. NULL: nothing. */
    stk_status (*check)(void *args, struct stk_error *err);
    /* The row that does it with these arguments: of the same name and arguments, but of another
     * stage. NULL, or returned: this one. */
    const struct transform_ops *(*instead)(const void *args);
    /* What comes out of what goes in. When the chain is compiled params is NULL and unknown lengths
     * are -1; for a sample all are known and params are those drawn. Refuses what it cannot take,
     * with the reason and a remedy. NULL: the same comes out. */
    stk_status (*shape)(const void *args, const void *params, struct stk_flow *flow,
                        struct stk_error *err);
    /* Not 0: with these arguments lengths of the result are drawn, so that samples differ in them.
     * NULL: never. */
    int (*draws_shape)(const void *args);
    /* Draws params (TRANSFORM_PARAMS zeroed bytes, aligned to 16) for one sample. in: what goes in,
     * lengths known, data NULL. Takes random_unit(key, 0), random_unit(key, 1) ... NULL: nothing is
     * random; params are zeros. */
    void (*draw)(const void *args, uint64_t key, const struct stk_flow *in, void *params);
    /* GEOMETRY: adds itself to the geometry. 0: it cannot be added (the image was resized already):
     * the pipeline makes the image so far, and asks again on a fresh geometry, which never fails.
     */
    int (*fold)(const void *args, const void *params, struct image_geometry *geometry);
    /* All but GEOMETRY and DECODE: in->tensor -> out->tensor.data, which has room for what shape
     * said; out's other members are set already. in_place: out's data may be in's. Scratch pieces
     * live until the sample is done. */
    stk_status (*run)(const void *args, const void *params, const struct stk_flow *in,
                      struct stk_flow *out, struct scratch *scratch, struct stk_error *err);
    int in_place;
    /* The device twin of run: enqueues, and does not wait. NULL: runs on the CPU alone. GEOMETRY
     * and FORMAT have none: they are fused (image_device.h, tensor_device.h). */
    stk_status (*run_device)(const struct transform_device_step *step, struct stk_error *err);
    /* Not 0: with these arguments and this input the twin cannot serve. NULL: it always can. */
    int (*device_refuses)(const void *args, const struct stk_flow *in);
    /* Device memory that run_device needs beside input and output. NULL: none. */
    uint64_t (*device_scratch)(const void *args, const struct stk_flow *in, uint32_t count);
    /* Frees what check put into the arguments. NULL: nothing. */
    void (*release)(void *args);
    void *user; /* plugin_transform.c: the plugin's own row. Not NULL: the chain puts it at the
                   beginning of the arguments' struct */
};

const struct transform_ops *transform_find(const char *name); /* NULL: none; case counts */
const struct transform_ops *transform_at(uint32_t row); /* sorted by name; NULL past the last */

#endif
