/* plugin.h -- a shared library of a user's own: transforms in C, and the decoder of videos.
 * Owns: the plugin owns what its calls make.   Threads: run, open, read and close are called from
 * many threads at once; one video is used by one thread at a time.   Errors: a stk_status other
 * than STK_OK, words into `words`.   Not here: loading (stk_context_load_plugin).
 *
 * A plugin exports one symbol, `stoker_plugin`, a const struct stk_plugin whose version is
 * STK_PLUGIN_VERSION. It links with nothing of Stoker's. examples/plugin holds a small one.
 * Traps for an implementer:
 *  - fill the `size` members: structs grow at their end, and the host looks no further than size;
 *  - all that stoker_plugin points to must stay: make it static const;
 *  - never keep a pointer that a call was given;
 *  - draw nothing from rand(): take the numbers from the key, so that a run can be repeated;
 *  - write every byte of the output;
 *  - words are ended by NUL within STK_PLUGIN_WORDS bytes (snprintf does that); they are empty
 *    before a call. A number that is no stk_status is taken for STK_USAGE. */
#ifndef STOKER_PLUGIN_H
#define STOKER_PLUGIN_H

#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/media.h"
#include "stoker/status.h"

#define STK_PLUGIN_VERSION 1
#define STK_PLUGIN_SYMBOL "stoker_plugin"
#define STK_PLUGIN_WORDS 256 /* room for the words of an error, with the NUL */
#define STK_PLUGIN_ARGUMENTS 8

/* Numbers alone: positional in this order, or by name. */
struct stk_plugin_argument {
    const char *name;   /* letters, digits and _, a letter first */
    double preset;      /* its default */
    double least, most; /* both 0: any finite number */
};

/* Images and videos alone, and no shape: it gets uint8 (H, W, C), of a video each frame with the
 * same key, and may stand between crops and resizes. All others get the tensor as it is there. */
struct stk_plugin_transform {
    const char *name;        /* as in a chain: "Solarize"; letters and digits, a capital first */
    const char *help;        /* one sentence */
    uint32_t media;          /* STK_MEDIA_BIT of what it takes */
    uint32_t argument_count; /* STK_PLUGIN_ARGUMENTS at most */
    const struct stk_plugin_argument *arguments;
    /* What comes out: changes *flow from input to output. When the chain is compiled lengths that
     * differ from sample to sample are -1; for a sample all are known. data is NULL. NULL: the same
     * comes out. */
    int (*shape)(const double *arguments, struct stk_flow *flow, char *words);
    /* in->tensor -> out->tensor.data, which has room for what shape said and is apart from in's.
     * key: random numbers are stk_plugin_random(key, 0), (key, 1) ... */
    int (*run)(const double *arguments, uint64_t key, const struct stk_flow *in,
               struct stk_flow *out, char *words);
};

/* Videos. A file lies in memory while it is open. */
struct stk_video_header {
    int32_t width, height; /* upright: after the rotation that the file asks for */
    int64_t frames;        /* counted, not guessed; 1 or more */
    double rate;           /* frames a second, on average; 0: not known */
};
struct stk_plugin_video {
    uint32_t size;    /* sizeof(struct stk_plugin_video) */
    const char *name; /* "FFmpeg, libavcodec 59.37.100" */
    int (*open)(void **video, const struct stk_bytes *bytes, struct stk_video_header *header,
                char *words);
    /* Frames first, first + stride ...: count of them, RGB (count, height, width, 3) into to. A
     * frame past the last is the last one. 0 <= first < frames; stride and count are 1 or more. */
    int (*read)(void *video, int64_t first, int64_t stride, int64_t count, uint8_t *to,
                char *words);
    void (*close)(void *video);
};

struct stk_plugin {
    uint32_t version; /* STK_PLUGIN_VERSION */
    uint32_t size;    /* sizeof(struct stk_plugin) */
    const char *name;
    const struct stk_plugin_transform *transforms;
    uint32_t transform_count;
    uint32_t transform_size;              /* sizeof(struct stk_plugin_transform) */
    const struct stk_plugin_video *video; /* NULL: none */
};

/* The counter-th number of a key's stream: uniform in [0, 1), 53 bits. The same numbers as those of
 * Stoker's own transforms: the key and the counter go through two rounds of a bijection of 64 bits
 * (shifts and odd multipliers), and the upper 53 bits are the fraction. */
static inline uint64_t stk_plugin_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 29;
    x *= UINT64_C(0xa0761d6478bd642f);
    return x ^ x >> 32;
}
static inline double stk_plugin_random(uint64_t key, uint64_t counter)
{
    uint64_t x = stk_plugin_mix(counter * UINT64_C(0x9e3779b97f4a7c15) + key);
    x = stk_plugin_mix(x ^ ((key << 29 | key >> 35) + UINT64_C(0x8ebc6af09c88c6e3)));
    return (double)(x >> 11) * 0x1p-53;
}

#endif
